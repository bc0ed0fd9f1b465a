//! What an update of a pod may change.

use super::scheduling;
use crate::builtin::json::{copy, get, has, int, list, text};
use crate::builtin::names;
use crate::builtin::validate::check::{Errors, each, forbidden, invalid, required};
use crate::status::FieldError;
use serde_json::{Value, json};

const RULE: &str = "pod updates may not change fields other than `spec.containers[*].image`,\
                    `spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions \
                    to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was \
                    previously negative)";

/// Changes to the spec that are not allowed.
pub(in crate::builtin) fn changes(new: &Value, old: &Value, out: &mut Errors) {
    let (spec, before) = (get(new, "spec"), get(old, "spec"));
    for key in ["containers", "initContainers"] {
        if list(spec, key).len() != list(before, key).len() {
            return forbidden(out, format!("spec.{key}"), "pod updates may not add or remove containers");
        }
        for (i, held) in list(spec, key).iter().enumerate() {
            let image = text(held, "image");
            if image.is_empty() {
                required(out, format!("spec.{key}[{i}].image"), "");
            }
            if image.trim() != image {
                let why = "must not have leading or trailing whitespace";
                invalid(out, format!("spec.{key}[{i}].image"), &json!(image), why);
            }
        }
    }
    if !deadline(spec, before, out) {
        return;
    }
    added_tolerations(spec, before, out);
    removed_gates(spec, before, out);
    if spec != before {
        rest(spec, before, out);
    }
}

/// A deadline may appear and may come closer. Says whether to go on.
fn deadline(spec: &Value, before: &Value, out: &mut Errors) -> bool {
    let path = "spec.activeDeadlineSeconds";
    let most = i64::from(i32::MAX);
    match (int(spec, "activeDeadlineSeconds"), int(before, "activeDeadlineSeconds")) {
        (Some(now), _) if !(0..=most).contains(&now) => {
            invalid(out, path, &json!(now), names::between(0, most));
            false
        }
        (Some(now), Some(was)) if was < now => {
            invalid(out, path, &json!(now), "must be less than or equal to previous value");
            false
        }
        (None, Some(_)) => {
            invalid(out, path, &Value::Null, "must not update from a positive integer to nil value");
            true
        }
        _ => true,
    }
}

fn added_tolerations(spec: &Value, before: &Value, out: &mut Errors) {
    let but_seconds = |t: &Value| {
        let mut t = t.clone();
        crate::builtin::json::remove(&mut t, "tolerationSeconds");
        t
    };
    let now: Vec<Value> = list(spec, "tolerations").iter().map(but_seconds).collect();
    if list(before, "tolerations").iter().any(|t| !now.contains(&but_seconds(t))) {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        return forbidden(out, "spec.tolerations", why);
    }
    scheduling::tolerations(spec, "spec.tolerations", out);
}

fn removed_gates(spec: &Value, before: &Value, out: &mut Errors) {
    for (i, gate) in list(spec, "schedulingGates").iter().enumerate() {
        if !list(before, "schedulingGates").contains(gate) {
            let why =
                format!("only deletion is allowed, but found new scheduling gate '{}'", text(gate, "name"));
            forbidden(out, format!("spec.schedulingGates[{i}].name"), why);
        }
    }
}

/// Everything else must be as it was, apart from placement rules of gated pods, which may get stricter.
fn rest(spec: &Value, before: &Value, out: &mut Errors) {
    let mut munged = spec.clone();
    for key in ["containers", "initContainers"] {
        let held = munged.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, was) in held.zip(list(before, key)) {
            copy(container, was, "image");
        }
    }
    for key in ["activeDeadlineSeconds", "schedulingGates", "tolerations"] {
        copy(&mut munged, before, key);
    }
    if !list(before, "schedulingGates").is_empty() {
        gated(&mut munged, spec, before, out);
    }
    if &munged != before {
        forbidden(out, "spec", format!("{RULE}\n{}", difference(before, &munged)));
    }
}

fn gated(munged: &mut Value, spec: &Value, before: &Value, out: &mut Errors) {
    let (now, was) = (get(spec, "nodeSelector"), get(before, "nodeSelector"));
    if now != was {
        let kept = |(key, value): (&String, &Value)| now.get(key) == Some(value);
        if !was.as_object().into_iter().flatten().all(kept) {
            let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
            invalid(out, "spec.nodeSelector", now, why);
        }
        copy(munged, before, "nodeSelector");
    }
    let nodes = |spec: &Value| get(get(spec, "affinity"), "nodeAffinity").clone();
    if nodes(spec) != nodes(before) {
        if has(get(before, "affinity"), "nodeAffinity") {
            narrowed(&nodes(spec), &nodes(before), out);
        }
        let alone =
            !has(get(spec, "affinity"), "podAffinity") && !has(get(spec, "affinity"), "podAntiAffinity");
        if !has(before, "affinity") && alone {
            crate::builtin::json::remove(munged, "affinity");
        } else if !has(munged, "affinity") {
            munged["affinity"] = json!({ "nodeAffinity": nodes(before) });
        } else if let Some(affinity) = munged.get_mut("affinity") {
            copy(affinity, get(before, "affinity"), "nodeAffinity");
        }
    }
}

/// Required node affinity of a gated pod keeps its terms, which may each only get more conditions.
fn narrowed(now: &Value, was: &Value, out: &mut Errors) {
    let key = "requiredDuringSchedulingIgnoredDuringExecution";
    let path = format!("spec.affinity.nodeAffinity.{key}");
    let terms = |v: &Value| list(get(v, key), "nodeSelectorTerms").to_vec();
    let (now, was) = (terms(now), terms(was));
    if was.is_empty() {
        return;
    }
    if now.len() != was.len() {
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        return invalid(out, format!("{path}.nodeSelectorTerms"), &json!(now), why);
    }
    for (i, (now, was)) in now.iter().zip(&was).enumerate() {
        let grown = ["matchExpressions", "matchFields"]
            .iter()
            .all(|key| list(was, key).iter().all(|wish| list(now, key).contains(wish)));
        if !grown {
            let why = "only additions are allowed (no mutations or deletions)";
            invalid(out, format!("{path}.nodeSelectorTerms[{i}]"), now, why);
        }
    }
}

/// A listing of what changed. Upstream prints a diff of its internal types here, which nobody can rely on.
fn difference(before: &Value, after: &Value) -> String {
    let mut keys: Vec<&String> =
        before.as_object().into_iter().chain(after.as_object()).flat_map(serde_json::Map::keys).collect();
    keys.sort_unstable();
    keys.dedup();
    let changed = keys.into_iter().filter(|key| before.get(*key) != after.get(*key));
    let lines = changed.map(|key| format!("  {key}:\n- {}\n+ {}\n", get(before, key), get(after, key)));
    lines.collect()
}

/// Problems of a write to the status of a pod.
pub(in crate::builtin) fn status(new: &Value, old: &Value, out: &mut Errors) {
    let (status, before) = (get(new, "status"), get(old, "status"));
    for (i, condition) in list(status, "conditions").iter().enumerate() {
        let ty = text(condition, "type");
        if !matches!(ty, "PodScheduled" | "Ready" | "Initialized") {
            each(out, &format!("status.conditions[{i}].Type"), ty, names::qualified(ty));
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if nominated != text(before, "nominatedNodeName") && !nominated.is_empty() {
        each(out, "status.nominatedNodeName", nominated, names::subdomain(nominated));
        if !text(get(old, "spec"), "nodeName").is_empty() {
            let why = "may not be set on pods that are already bound to a node";
            forbidden(out, "status.nominatedNodeName", why);
        }
    }
    if text(status, "qosClass") != text(before, "qosClass") {
        out.push(FieldError::invalid("status.qosClass", get(status, "qosClass"), "field is immutable"));
    }
}
