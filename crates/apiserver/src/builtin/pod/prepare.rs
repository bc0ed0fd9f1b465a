//! What a client may not choose about a pod.

use super::qos_class;
use crate::builtin::json::{child_of, copy, entries, get, int, list, remove, text};
use serde_json::{Value, json};

/// A new pod is pending, has its class of service, and says so if gates hold it back.
pub(in crate::builtin) fn create(obj: &mut Value) {
    let class = qos_class(get(obj, "spec"));
    let gated = !list(get(obj, "spec"), "schedulingGates").is_empty();
    if let Some(status) = child_of(obj, "status") {
        status.insert("phase".to_owned(), json!("Pending"));
        status.insert("qosClass".to_owned(), json!(class));
        if gated {
            let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
            status.insert(
                "conditions".to_owned(),
                json!([{
                    "type": "PodScheduled", "status": "False", "lastProbeTime": null,
                    "lastTransitionTime": now, "reason": "SchedulingGated",
                    "message": "Scheduling is blocked due to non-empty scheduling gates",
                }]),
            );
        }
    }
    label_keys(obj);
}

/// A status write keeps the spec, the owners and the class of service.
pub(in crate::builtin) fn status(new: &mut Value, old: &Value) {
    if let Some(meta) = new.get_mut("metadata") {
        remove(meta, "deletionTimestamp");
        copy(meta, get(old, "metadata"), "ownerReferences");
    }
    let before = get(old, "status").clone();
    let Some(status) = new.get_mut("status").filter(|s| s.is_object()) else { return };
    if text(status, "qosClass").is_empty() {
        copy(status, &before, "qosClass");
    }
    if int(status, "observedGeneration").unwrap_or(0) == 0 {
        copy(status, &before, "observedGeneration");
    }
    let mut known: Vec<&Value> = list(&before, "conditions").iter().collect();
    for condition in status.get_mut("conditions").and_then(Value::as_array_mut).into_iter().flatten() {
        let Some(at) = known.iter().position(|k| text(k, "type") == text(condition, "type")) else {
            continue;
        };
        let was = known.remove(at);
        if int(condition, "observedGeneration").unwrap_or(0) == 0 {
            copy(condition, was, "observedGeneration");
        }
    }
}

/// `matchLabelKeys` become part of the selector, with the values the pod has.
fn label_keys(obj: &mut Value) {
    let labels: Vec<(String, Value)> =
        entries(get(obj, "metadata"), "labels").map(|(k, v)| (k.clone(), v.clone())).collect();
    let Some(spec) = obj.get_mut("spec") else { return };
    for constraint in
        spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten()
    {
        extend(constraint, "matchLabelKeys", "In", &labels);
    }
    let Some(affinity) = spec.get_mut("affinity") else { return };
    for side in ["podAffinity", "podAntiAffinity"] {
        let Some(side) = affinity.get_mut(side) else { continue };
        let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
        for weighted in side.get_mut(preferred).and_then(Value::as_array_mut).into_iter().flatten() {
            if let Some(term) = weighted.get_mut("podAffinityTerm") {
                extend(term, "matchLabelKeys", "In", &labels);
                extend(term, "mismatchLabelKeys", "NotIn", &labels);
            }
        }
        let required = "requiredDuringSchedulingIgnoredDuringExecution";
        for term in side.get_mut(required).and_then(Value::as_array_mut).into_iter().flatten() {
            extend(term, "matchLabelKeys", "In", &labels);
            extend(term, "mismatchLabelKeys", "NotIn", &labels);
        }
    }
}

fn extend(term: &mut Value, keys: &str, operator: &str, labels: &[(String, Value)]) {
    let added: Vec<Value> = list(term, keys)
        .iter()
        .filter_map(|key| labels.iter().find(|(name, _)| Some(name.as_str()) == key.as_str()))
        .map(|(key, value)| json!({"key": key, "operator": operator, "values": [value]}))
        .collect();
    let Some(selector) = term.get_mut("labelSelector").filter(|s| s.is_object()) else { return };
    if added.is_empty() {
        return;
    }
    let mut expressions = list(selector, "matchExpressions").to_vec();
    expressions.extend(added);
    selector["matchExpressions"] = Value::Array(expressions);
}
