//! How does a case become a list of answers?

use crate::http::{Reply, Server, Watch};
use crate::mask;
use crate::script::{Case, Goal, Step, expand};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How long something that happens in the background may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// Pause between two looks at it.
const PAUSE: Duration = Duration::from_millis(30);

/// How long an event that should be there may take.
const EVENT: Duration = Duration::from_secs(15);

/// Runs a case in a namespace of its own. The answers are masked.
pub fn run(server: &Server, case: &Case, namespace: &str) -> Vec<Value> {
    let mut values = case.lets.clone();
    values.insert("ns".to_owned(), namespace.to_owned());
    let object = json!({"metadata": {"name": namespace}}).to_string();
    let json = [("Content-Type".to_owned(), "application/json".to_owned())];
    let made = server.send("POST", "/api/v1/namespaces", &json, object.as_bytes()).unwrap();
    assert_eq!(made.status, 201, "namespace of {}: {}", case.name, String::from_utf8_lossy(&made.body));
    let mut watches = BTreeMap::new();
    let mut answers: Vec<Value> =
        case.steps.iter().map(|step| perform(server, step, &mut values, &mut watches)).collect();
    mask::mask(&mut answers, namespace);
    for (answer, step) in answers.iter_mut().zip(&case.steps) {
        select(answer, step);
    }
    answers
}

fn perform(
    server: &Server,
    step: &Step,
    values: &mut BTreeMap<String, String>,
    watches: &mut BTreeMap<String, Watch>,
) -> Value {
    let text = |text: &str, values: &BTreeMap<String, String>| {
        String::from_utf8(expand(text, values)).unwrap_or_else(|_| panic!("{text} is not UTF-8"))
    };
    if step.method == "EVENTS" {
        let (name, count) = step.path.split_once(' ').unwrap();
        return events(watches.get_mut(name).unwrap(), count);
    }
    let (method, kind) = match step.method.as_str() {
        "MERGE" => ("PATCH", "application/merge-patch+json"),
        "JSON" => ("PATCH", "application/json-patch+json"),
        "STRATEGIC" => ("PATCH", "application/strategic-merge-patch+json"),
        "APPLY" => ("PATCH", "application/apply-patch+yaml"),
        "WATCH" => ("GET", ""),
        other => (other, if step.body.is_empty() { "" } else { "application/json" }),
    };
    let mut headers: Vec<(String, String)> =
        step.headers.iter().map(|(key, value)| (key.clone(), text(value, values))).collect();
    let has = |name: &str| step.headers.iter().any(|(key, _)| key == name);
    if !kind.is_empty() && !has("Content-Type") {
        headers.push(("Content-Type".to_owned(), kind.to_owned()));
    }
    let body = expand(&step.body, values);
    if step.method == "WATCH" {
        let (name, path) = step.path.split_once(' ').unwrap();
        let watch = server.open(method, &text(path, values), &headers, &body).unwrap();
        let reply = Reply { status: watch.status, headers: watch.headers.clone(), body: Vec::new() };
        watches.insert(name.to_owned(), watch);
        return answer(&reply);
    }
    let path = text(&step.path, values);
    let started = Instant::now();
    loop {
        let reply = server.send(method, &path, &headers, &body);
        let reply = reply.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let found: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let done = step.until.as_ref().is_none_or(|(pointer, goal)| {
            let at =
                if pointer == "status" { Some(json!(reply.status)) } else { found.pointer(pointer).cloned() };
            match goal {
                Goal::Absent => at.is_none(),
                Goal::Is(want) => at == serde_json::from_slice(&expand(want, values)).ok(),
            }
        });
        if !done && started.elapsed() < PATIENCE {
            std::thread::sleep(PAUSE);
            continue;
        }
        for (name, pointer) in &step.save {
            let value = match found.pointer(pointer) {
                Some(Value::String(text)) => text.clone(),
                other => other.unwrap_or(&Value::Null).to_string(),
            };
            values.insert(name.clone(), value);
        }
        let mut answer = answer(&reply);
        if !done {
            answer["waited"] = json!("in vain");
        }
        return answer;
    }
}

/// What counts of a reply.
fn answer(reply: &Reply) -> Value {
    let mut out = Map::new();
    out.insert("code".to_owned(), json!(reply.status));
    let kind = reply.header("Content-Type").next().unwrap_or_default();
    let kind = kind.split(';').filter(|part| !part.contains("charset")).collect::<Vec<_>>().join(";");
    if kind != "application/json" {
        out.insert("type".to_owned(), json!(kind));
    }
    let warnings: Vec<&str> = reply.header("Warning").collect();
    if !warnings.is_empty() {
        out.insert("warnings".to_owned(), json!(warnings));
    }
    for name in ["Retry-After", "Allow"] {
        if let Some(value) = reply.header(name).next() {
            out.insert(name.to_lowercase(), json!(value));
        }
    }
    if !reply.body.is_empty() {
        let body = serde_json::from_slice(&reply.body);
        out.insert("body".to_owned(), body.unwrap_or_else(|_| json!(String::from_utf8_lossy(&reply.body))));
    }
    Value::Object(out)
}

/// Reads `count` events, or all until the watch ends.
fn events(watch: &mut Watch, count: &str) -> Value {
    let most = count.parse().unwrap_or(usize::MAX);
    let mut found = Vec::new();
    while found.len() < most {
        match watch.line(EVENT) {
            Ok(Some(line)) => {
                let event: Value =
                    serde_json::from_slice(&line).unwrap_or_else(|_| json!(String::from_utf8_lossy(&line)));
                // When a server sends other bookmarks is up to the server.
                let marked = event.to_string().contains("k8s.io/initial-events-end");
                if event["type"] != "BOOKMARK" || marked {
                    found.push(event);
                }
            }
            Ok(None) => {
                found.extend((most != usize::MAX).then(|| json!("the watch ended")));
                break;
            }
            Err(_) => {
                found.push(json!("no more events"));
                break;
            }
        }
    }
    json!({ "events": found })
}

/// Leaves of an answer what the case looks at.
fn select(answer: &mut Value, step: &Step) {
    if step.brief {
        *answer = json!({"code": answer["code"]});
        return;
    }
    let body = &mut answer["body"];
    for (pointer, key, values) in &step.keep {
        if let Some(Value::Array(items)) = body.pointer_mut(pointer) {
            let at = if key.starts_with('/') { key.clone() } else { format!("/{key}") };
            items.retain(|item| {
                item.pointer(&at).is_some_and(|found| values.iter().any(|value| found == value.as_str()))
            });
        }
    }
    for pointer in &step.sort {
        if let Some(Value::Array(items)) = body.pointer_mut(pointer) {
            items.sort_by_key(Value::to_string);
        }
    }
    if !step.only.is_empty() {
        let kept = step.only.iter().map(|pointer| {
            (pointer.clone(), body.pointer(pointer).cloned().unwrap_or_else(|| json!("(absent)")))
        });
        *body = Value::Object(kept.collect());
    }
    for pointer in &step.drop {
        let parts: Vec<&str> = pointer.split('/').skip(1).collect();
        remove(
            if answer.get("events").is_some() { &mut answer["events"] } else { &mut answer["body"] },
            &parts,
        );
    }
    if answer["body"].is_null()
        && let Some(object) = answer.as_object_mut()
    {
        object.remove("body");
    }
}

fn remove(value: &mut Value, path: &[&str]) {
    let [first, rest @ ..] = path else { return };
    match value {
        Value::Object(object) if rest.is_empty() => {
            if *first == "*" {
                object.clear();
            }
            object.remove(&first.replace("~1", "/"));
        }
        Value::Object(object) if *first == "*" => object.values_mut().for_each(|below| remove(below, rest)),
        Value::Object(object) => {
            if let Some(below) = object.get_mut(&first.replace("~1", "/")) {
                remove(below, rest);
            }
        }
        Value::Array(items) if *first == "*" => items.iter_mut().for_each(|below| remove(below, rest)),
        Value::Array(items) => {
            if let Some(below) = first.parse().ok().and_then(|at: usize| items.get_mut(at)) {
                remove(below, rest);
            }
        }
        _ => {}
    }
}
