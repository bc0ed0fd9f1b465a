//! Worlds as kube-scheduler hears them, where that is not what they say. See `differences.md`.

use super::{Pod, World};
use serde_json::{Value, json};

/// The world to ask us about for the answer kube-scheduler gives to this one.
pub fn heard(world: &World) -> World {
    let mut out = World { pod: heard_from(&world.pod), ..world.clone() };
    // What is used on nodes that are not there is not in use.
    for pod in out.pods.iter_mut().filter(|pod| !world.nodes.iter().any(|node| node.name == pod.on)) {
        if !world.storage.is_empty() {
            pod.spec.remove("volumes");
        }
    }
    // Budgets without conditions, and pods without labels, are passed over.
    if !out.budgets.is_empty() {
        out.budgets.retain(|budget| !is_empty(&budget.selector));
        for budget in &mut out.budgets {
            let unless = json!({"key": BARE, "operator": "DoesNotExist"});
            match budget.selector["matchExpressions"].as_array_mut() {
                Some(all) => all.push(unless),
                None => budget.selector["matchExpressions"] = json!([unless]),
            }
        }
        for pod in out.pods.iter_mut().filter(|pod| pod.labels.is_empty()) {
            pod.labels.insert(BARE.to_owned(), String::new());
        }
    }
    out
}

/// What the pod that looks for a place is taken to say.
pub fn heard_from(pod: &Pod) -> Pod {
    let mut out = pod.clone();
    if let Some(affinity) = out.spec.get_mut("affinity") {
        widen(affinity);
    }
    out
}

/// A label for pods that have none. No selector of a world speaks of it.
const BARE: &str = "bare";

fn is_empty(selector: &Value) -> bool {
    let expressions = selector["matchExpressions"].as_array().is_none_or(Vec::is_empty);
    expressions && selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
}

/// Choosing namespaces by labels they do not have chooses all of them.
fn widen(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields {
                if key == "namespaceSelector" && matches_no_labels(field) {
                    *field = json!({});
                } else {
                    widen(field);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(widen),
        _ => {}
    }
}

fn matches_no_labels(selector: &Value) -> bool {
    let negative = |e: &Value| e["operator"] == "NotIn" || e["operator"] == "DoesNotExist";
    let none = |key: &str| selector[key].as_object().is_none_or(serde_json::Map::is_empty);
    none("matchLabels") && selector["matchExpressions"].as_array().is_none_or(|all| all.iter().all(negative))
}
