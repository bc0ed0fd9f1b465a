//! Replays what a real kube-apiserver v1.36.3 answered: same objects stored, same problems named.
//!
//! `recorded/builtin.json` holds one case per line: what was sent, what was stored before (for updates) and what
//! came back.

use super::json::{get, list, text};
use super::{
    GroupVersionKind, admission, default, meta, normalize, prepare_create, prepare_status_update,
    prepare_update, validate_create, validate_status_update, validate_update,
};
use crate::status::{FieldError, Status, Subject};
use serde_json::{Value, json};

struct System;

impl admission::PriorityClasses for System {
    fn get(&self, name: &str) -> Option<Value> {
        let value = match name {
            "system-node-critical" => 2_000_001_000,
            "system-cluster-critical" => 2_000_000_000,
            _ => return None,
        };
        Some(json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": "PreemptLowerPriority"}))
    }
    fn global_default(&self) -> Option<Value> {
        None
    }
}

fn cases() -> Vec<Value> {
    serde_json::from_str(include_str!("../../recorded/builtin.json")).unwrap()
}

fn kind(case: &Value) -> GroupVersionKind<'_> {
    GroupVersionKind { group: text(case, "group"), version: "v1", kind: text(case, "kind") }
}

/// What differs from server to server and run to run.
fn mask(obj: &mut Value) {
    if let Some(meta) = obj.get_mut("metadata").and_then(Value::as_object_mut) {
        for key in ["uid", "resourceVersion", "creationTimestamp", "managedFields"] {
            meta.remove(key);
        }
    }
    if let Some(status) = obj.get_mut("status").and_then(Value::as_object_mut) {
        status.remove("lastPhaseTransitionTime");
        for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
            condition.as_object_mut().unwrap().remove("lastTransitionTime");
        }
    }
    // Addresses are allocated elsewhere.
    if obj["kind"] == "Service" && obj["spec"]["clusterIP"] != "None" {
        for key in ["clusterIP", "clusterIPs"] {
            obj["spec"].as_object_mut().unwrap().remove(key);
        }
    }
}

enum Outcome {
    Stored(Value),
    Invalid(Vec<FieldError>),
    Refused(String),
}

fn replay(case: &Value) -> Outcome {
    let kind = kind(case);
    let mut obj = case["object"].clone();
    let classes = System;
    default(kind, &mut obj);
    normalize(kind, &mut obj);
    let problems = match text(case, "verb") {
        "create" => {
            if let Err(refused) = admission::create(kind, &mut obj, &classes, &[]) {
                return Outcome::Refused(refused.0);
            }
            meta::prepare_create(&mut obj);
            let known = get(case, "response");
            obj["metadata"]["uid"] = json!("u");
            if let Some(uid) = get(known, "metadata").get("uid") {
                obj["metadata"]["uid"] = uid.clone();
            }
            prepare_create(kind, &mut obj);
            let problems = validate_create(kind, &obj);
            if problems.is_empty()
                && let Err(refused) = admission::check(kind, &obj, None, &classes, &[])
            {
                return Outcome::Refused(refused.0);
            }
            problems
        }
        "update" => {
            admission::update(kind, &mut obj, &case["old"]);
            prepare_update(kind, &mut obj, &case["old"]);
            validate_update(kind, &obj, &case["old"])
        }
        _ => {
            prepare_status_update(kind, &mut obj, &case["old"]);
            validate_status_update(kind, &obj, &case["old"])
        }
    };
    if !problems.is_empty() {
        return Outcome::Invalid(problems);
    }
    default(kind, &mut obj);
    normalize(kind, &mut obj);
    Outcome::Stored(obj)
}

/// Upstream walks maps in random order, and its pod diff is of internal types.
fn comparable(mut causes: Vec<(String, String, String)>, unordered: bool) -> Vec<(String, String, String)> {
    let uid = regex::Regex::new("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").unwrap();
    for (field, _, message) in &mut causes {
        *message = uid.replace_all(message, "u").into_owned();
        if field == "spec.template" && message.ends_with("field is immutable") {
            "field is immutable".clone_into(message);
        }
        if message.contains("pod updates may not change fields") {
            message.truncate(message.find('\n').unwrap_or(message.len()));
        }
    }
    if unordered {
        causes.sort();
    }
    causes
}

/// Compares the whole sentence, where it depends on nothing random or internal.
fn sentence(case: &Value, problems: &[FieldError]) -> Option<String> {
    let want = text(case, "message");
    let internal = want.contains("pod updates may not") || want.contains("spec.template: Invalid");
    let random = want.contains("batch.kubernetes.io/controller-uid");
    if internal || random || matches!(text(case, "kind"), "ConfigMap" | "ResourceQuota") {
        return None;
    }
    // Events are kept in their core form, and messages name them by it whichever group they came through.
    let group = if text(case, "kind") == "Event" { "" } else { text(case, "group") };
    let subject = Subject { group, resource: "", kind: text(case, "kind") };
    let name = text(get(&case["object"], "metadata"), "name");
    let got = Status::invalid(subject, name, problems).message;
    (got != want).then(|| format!("sentence\n  got  {got}\n  want {want}"))
}

/// Paths at which two values differ.
fn compare(path: &str, got: &Value, want: &Value, lines: &mut Vec<String>) {
    if let (Value::Object(a), Value::Object(b)) = (got, want) {
        let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        for key in keys {
            let none = json!("<absent>");
            let (a, b) = (a.get(key).unwrap_or(&none), b.get(key).unwrap_or(&none));
            compare(&format!("{path}.{key}"), a, b, lines);
        }
    } else if got != want {
        lines.push(format!("  {path}: got {got}, want {want}"));
    }
}

fn difference(case: &Value) -> Option<String> {
    let wanted = case["code"].as_u64().unwrap();
    match (replay(case), wanted) {
        (Outcome::Stored(mut got), 200 | 201) => {
            let mut want = case["response"].clone();
            mask(&mut got);
            mask(&mut want);
            let mut lines = Vec::new();
            compare("", &got, &want, &mut lines);
            (!lines.is_empty()).then(|| format!("stored\n{}", lines.join("\n")))
        }
        (Outcome::Invalid(problems), 422) => {
            if let Some(difference) = sentence(case, &problems) {
                return Some(difference);
            }
            let unordered = matches!(text(case, "kind"), "ConfigMap" | "ResourceQuota");
            let got = problems.iter().map(|p| (p.field.clone(), p.mistake.reason().to_owned(), p.body()));
            let got = comparable(got.collect(), unordered);
            let want = list(case, "causes").iter().map(|c| {
                (text(c, "field").to_owned(), text(c, "reason").to_owned(), text(c, "message").to_owned())
            });
            let want = comparable(want.collect(), unordered);
            (got != want).then(|| {
                let only = |a: &[(String, String, String)], b: &[(String, String, String)]| -> Vec<String> {
                    let mut b = b.to_vec();
                    let missing = a.iter().filter(|x| match b.iter().position(|y| y == *x) {
                        Some(at) => {
                            b.remove(at);
                            false
                        }
                        None => true,
                    });
                    missing.map(|x| format!("{x:?}")).collect()
                };
                format!("causes\n  only got  {:#?}\n  only want {:#?}", only(&got, &want), only(&want, &got))
            })
        }
        (Outcome::Refused(got), 403) => {
            let message = text(case, "message");
            (!message.ends_with(&got)).then(|| format!("refused\n  got  {got}\n  want {message}"))
        }
        (outcome, _) => {
            let got = match outcome {
                Outcome::Stored(_) => "stored".to_owned(),
                Outcome::Invalid(problems) => {
                    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
                }
                Outcome::Refused(why) => why,
            };
            Some(format!("outcome\n  got  {got}\n  want {wanted} {}", text(case, "message")))
        }
    }
}

#[test]
fn objects_end_up_as_on_a_real_server() {
    let failures: Vec<String> = cases()
        .iter()
        .filter_map(|case| {
            let name = format!("{} {} ({})", text(case, "verb"), text(case, "kind"), text(case, "why"));
            Some(format!("== {name}: {}", difference(case)?))
        })
        .collect();
    assert!(failures.is_empty(), "{} differ\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn defaults_and_normal_form_are_stable() {
    for case in cases() {
        let kind = kind(&case);
        let mut once = case["object"].clone();
        default(kind, &mut once);
        let mut twice = once.clone();
        default(kind, &mut twice);
        assert_eq!(once, twice, "defaults of {}", text(&case, "why"));
        normalize(kind, &mut once);
        twice.clone_from(&once);
        normalize(kind, &mut twice);
        assert_eq!(once, twice, "normal form of {}", text(&case, "why"));
    }
}
