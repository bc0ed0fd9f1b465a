//! Worlds as kube-scheduler hears them, where that is not what they say. See `differences.md`.

use super::World;
use serde_json::{Value, json};

/// The world to ask us about for the answer kube-scheduler gives to this one.
pub fn heard(world: &World) -> World {
    let mut out = world.clone();
    if let Some(affinity) = out.pod.spec.get_mut("affinity") {
        widen(affinity);
    }
    out
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
