//! Which resources are there, and what can be done with them?
//!
//! The rows say which resources and subresources we serve; everything else about them is discovered.

use crate::Real;
use crate::file::{Compared, File};
use serde_json::{Map, Value, json};

/// Served by other servers, which a real cluster has behind its API server.
const ELSEWHERE: &[&str] = &["metrics.k8s.io"];

pub fn resources(real: &Real) -> Compared {
    File::read("resources.json").compare(
        None,
        1,
        |_, row| if ELSEWHERE.contains(&text(row, "group")) { row.clone() } else { discover(real, row) },
        Value::clone,
    )
}

fn discover(real: &Real, row: &Value) -> Value {
    let (group, version) = (text(row, "group"), text(row, "version"));
    let path = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
    let (code, answer) = real.ask("GET", &path, None);
    assert_eq!(code, 200, "{path}");
    let all = answer["resources"].as_array().unwrap();
    let plural = text(row, "resource");
    let found = all.iter().find(|resource| resource["name"] == plural);
    let found = found.unwrap_or_else(|| panic!("{path} has no {plural}"));
    let mut out = Map::new();
    for (key, value) in [
        ("group", &row["group"]),
        ("version", &row["version"]),
        ("resource", &row["resource"]),
        ("singular", &found["singularName"]),
        ("kind", &found["kind"]),
        ("namespaced", &found["namespaced"]),
        ("verbs", &found["verbs"]),
    ] {
        out.insert(key.to_owned(), value.clone());
    }
    for key in ["shortNames", "categories"] {
        out.extend(found.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    let below: Vec<Value> = row["subresources"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|sub| subresource(all, plural, text(sub, "name")))
        .collect();
    if !below.is_empty() {
        out.insert("subresources".to_owned(), Value::Array(below));
    }
    Value::Object(out)
}

fn subresource(all: &[Value], plural: &str, name: &str) -> Value {
    let whole = format!("{plural}/{name}");
    let found = all.iter().find(|resource| resource["name"] == whole.as_str());
    let found = found.unwrap_or_else(|| panic!("there is no {whole}"));
    let mut out = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("verbs".to_owned(), found["verbs"].clone()),
        ("kind".to_owned(), found["kind"].clone()),
    ]);
    for key in ["group", "version"] {
        out.extend(found.get(key).map(|value| (key.to_owned(), value.clone())));
    }
    Value::Object(out)
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}
