//! The `resize` subresource: other amounts of CPU and memory for the containers of a running pod.

use super::qos_class;
use crate::status::FieldError;
use serde_json::{Map, Value, json};

const LISTS: [&str; 2] = ["containers", "initContainers"];

fn list<'a>(pod: &'a Value, name: &str) -> &'a [Value] {
    pod["spec"][name].as_array().map_or(&[], Vec::as_slice)
}

/// Takes from `new` only what may be resized; the rest is that of `old`. The generation counts up if that changes
/// anything. Renamed or missing containers are left for [`validate`] to find.
pub(crate) fn prepare(new: &mut Value, old: &Value) {
    let mut spec = old["spec"].clone();
    for name in LISTS {
        let (theirs, ours) = (list(new, name), list(old, name));
        let same = theirs.len() == ours.len() && theirs.iter().zip(ours).all(|(a, b)| a["name"] == b["name"]);
        if !same {
            return;
        }
        for (at, container) in theirs.iter().enumerate() {
            for field in ["resources", "resizePolicy"] {
                match (container.get(field), spec[name][at].as_object_mut()) {
                    (Some(value), Some(target)) => drop(target.insert(field.to_owned(), value.clone())),
                    (None, Some(target)) => drop(target.remove(field)),
                    _ => {}
                }
            }
        }
    }
    if let Some(resources) = new["spec"].get("resources") {
        spec["resources"] = resources.clone();
    }
    let managed = new["metadata"]["managedFields"].take();
    *new = old.clone();
    if !managed.is_null() {
        new["metadata"]["managedFields"] = managed;
    }
    if spec != old["spec"] {
        let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
        new["metadata"]["generation"] = json!(generation + 1);
        new["spec"] = spec;
    }
}

/// Problems of a resize.
#[must_use]
pub(crate) fn validate(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let class = old["status"]["qosClass"].as_str().unwrap_or_else(|| qos_class(&old["spec"]));
    if qos_class(&new["spec"]) != class {
        let why = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid("spec", &json!(class), why));
    }
    for name in LISTS {
        let (theirs, ours) = (list(new, name), list(old, name));
        if theirs.len() != ours.len() {
            let why = format!("{name} may not be added or removed on resize");
            errors.push(FieldError::forbidden(format!("spec.{name}"), why));
            continue;
        }
        for (at, (new, old)) in theirs.iter().zip(ours).enumerate() {
            if new["name"] != old["name"] {
                let why = format!("{name} may not be renamed or reordered on resize");
                errors.push(FieldError::forbidden(format!("spec.{name}[{at}].name"), why));
                continue;
            }
            for kind in ["requests", "limits"] {
                let (new, old) = (amounts(new, kind), amounts(old, kind));
                if old.iter().any(|(name, _)| !new.contains_key(name)) {
                    let field = format!("spec.{name}[{at}].resources.{kind}");
                    errors.push(FieldError::forbidden(field, format!("resource {kind} cannot be removed")));
                }
            }
            if fixed(new) != fixed(old) {
                errors.push(FieldError::forbidden("spec", "only cpu and memory resources are mutable"));
            }
        }
    }
    errors
}

fn amounts(container: &Value, kind: &str) -> Map<String, Value> {
    container["resources"][kind].as_object().cloned().unwrap_or_default()
}

/// A container without what a resize may change.
fn fixed(container: &Value) -> Value {
    let mut container = container.clone();
    for kind in ["requests", "limits"] {
        let rest =
            amounts(&container, kind).into_iter().filter(|(name, _)| name != "cpu" && name != "memory");
        container["resources"][kind] = Value::Object(rest.collect());
    }
    container
}
