//! What becomes of objects of the built-in kinds?
//!
//! A question is an object to create (`object`), or one to create first (`base`) and what to change about it
//! (`change`). The answer is what is stored, or what is wrong.

use crate::Real;
use crate::file::{Compared, File};
use regex::Regex;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

pub fn objects(real: &Real) -> Compared {
    let resources = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/recorded/resources.json"));
    let resources: Vec<Value> = serde_json::from_str(&resources.unwrap()).unwrap();
    File::read("builtin.json").compare(None, 1, |_, row| ask(real, &resources, row), mask)
}

fn ask(real: &Real, resources: &[Value], row: &Value) -> Value {
    let list = list(resources, row);
    let mut out = row.as_object().unwrap().clone();
    for key in ["code", "response", "message", "causes", "reason"] {
        out.remove(key);
    }
    let (code, answer) = if row["verb"] == "create" {
        real.ask("POST", &list, Some(&row["object"]))
    } else {
        let (code, old) = real.ask("POST", &list, Some(&row["base"]));
        assert_eq!(code, 201, "{old}");
        let new = merged(&old, &row["change"]);
        out.insert("old".to_owned(), without_managers(old));
        out.insert("object".to_owned(), without_managers(new.clone()));
        let below = if row["verb"] == "status" { "/status" } else { "" };
        let name = new["metadata"]["name"].as_str().unwrap();
        real.ask("PUT", &format!("{list}/{name}{below}"), Some(&new))
    };
    out.insert("code".to_owned(), json!(code));
    if code < 300 {
        out.insert("response".to_owned(), without_managers(answer.clone()));
    } else {
        for key in ["message", "reason"] {
            out.insert(key.to_owned(), answer.get(key).cloned().unwrap_or_else(|| json!("")));
        }
        let causes = answer.pointer("/details/causes").cloned();
        out.insert("causes".to_owned(), causes.unwrap_or_else(|| json!([])));
    }
    let made = if row["verb"] == "create" { &answer } else { &out["old"] };
    // Nobody here empties namespaces; each has a name of its own.
    if (code == 201 || row["verb"] != "create")
        && row["kind"] != "Namespace"
        && let Some(name) = made["metadata"]["name"].as_str()
    {
        real.remove(&format!("{list}/{name}"));
    }
    Value::Object(out)
}

fn list(resources: &[Value], row: &Value) -> String {
    let found = resources.iter().find(|r| r["group"] == row["group"] && r["kind"] == row["kind"]).unwrap();
    let text = |key: &str| found[key].as_str().unwrap();
    let mut path = match text("group") {
        "" => format!("/api/{}", text("version")),
        group => format!("/apis/{group}/{}", text("version")),
    };
    if found["namespaced"] == true {
        path.push_str("/namespaces/default");
    }
    format!("{path}/{}", text("resource"))
}

/// A merge patch.
fn merged(target: &Value, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let mut out = target.as_object().cloned().unwrap_or_default();
    for (key, value) in patch {
        if value.is_null() {
            out.remove(key);
        } else {
            let value = merged(out.get(key).unwrap_or(&Value::Null), value);
            out.insert(key.clone(), value);
        }
    }
    Value::Object(out)
}

fn without_managers(mut object: Value) -> Value {
    if let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        meta.remove("managedFields");
    }
    object
}

/// What differs between any two runs: identities, times, addresses, and the order in which upstream walks its maps.
fn mask(row: &Value) -> Value {
    static GIVEN: LazyLock<Regex> = LazyLock::new(|| {
        let uid = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}";
        Regex::new(&format!(r"{uid}|10\.(0|96)\.\d+\.\d+|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\dZ|0x[0-9a-f]{{9,}}"))
            .unwrap()
    });
    let mut out: Value = serde_json::from_str(&GIVEN.replace_all(&row.to_string(), "GIVEN")).unwrap();
    for object in ["object", "old", "response"] {
        let meta = out.get_mut(object).and_then(|object| object.get_mut("metadata"));
        let meta: &mut Map<String, Value> = match meta.and_then(Value::as_object_mut) {
            Some(meta) => meta,
            None => continue,
        };
        meta.remove("resourceVersion");
        if row[object]["metadata"].get("generateName").is_some() {
            meta.remove("name");
        }
    }
    if let Some(causes) = out.get_mut("causes").and_then(Value::as_array_mut)
        && causes.len() > 1
    {
        causes.sort_by_key(Value::to_string);
        out["message"] = json!("several");
    }
    out
}
