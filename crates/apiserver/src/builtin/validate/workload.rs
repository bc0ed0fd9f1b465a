//! Kinds that keep a number of pods alive.

use super::check::{
    Errors, at_most_all, each, forbidden, immutable, int_or_percent, invalid, invalid_text, labels_value,
    matches, nonnegative, plain_number, required, selector, selector_text,
};
use crate::builtin::json::{entries, get, has, int, list, text};
use crate::builtin::{meta, names, pod};
use crate::status::{FieldError, Mistake};
use serde_json::{Value, json};

/// Required, well-formed and not empty.
fn own_selector(out: &mut Errors, spec: &Value, kind: &str) {
    let held = get(spec, "selector");
    if held.is_null() {
        return required(out, "spec.selector", "");
    }
    selector(out, held, "spec.selector");
    if is_empty(held) {
        let why = format!("empty selector is invalid for {kind}");
        invalid_text(out, "spec.selector", selector_text(held), why);
    }
}

fn is_empty(selector: &Value) -> bool {
    entries(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// The template of pods that run until they are told otherwise.
fn template(out: &mut Errors, spec: &Value, kind: &str, broken_selector: &str) {
    let held = get(spec, "selector");
    let template = get(spec, "template");
    let labels = get(get(template, "metadata"), "labels");
    match matches(held, labels) {
        None => return invalid_text(out, "spec.selector", selector_text(held), broken_selector),
        Some(false) if held.is_null() || !is_empty(held) => mismatch(out, labels),
        Some(_) => {}
    }
    pod::validate::template(template, "spec.template", out);
    lasting(out, template, kind);
}

fn mismatch(out: &mut Errors, labels: &Value) {
    let why = "`selector` does not match template `labels`";
    invalid(out, "spec.template.metadata.labels", &labels_value(labels), why);
}

fn lasting(out: &mut Errors, template: &Value, kind: &str) {
    let inner = get(template, "spec");
    if text(inner, "restartPolicy") != "Always" {
        let value = json!(text(inner, "restartPolicy"));
        out.push(FieldError::not_supported("spec.template.spec.restartPolicy", &value, &["Always"]));
    }
    if has(inner, "activeDeadlineSeconds") {
        let why = format!("activeDeadlineSeconds in {kind} is not Supported");
        forbidden(out, "spec.template.spec.activeDeadlineSeconds", why);
    }
}

pub(super) fn deployment(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    nonnegative(out, spec, "replicas", "spec");
    own_selector(out, spec, "deployment");
    template(out, spec, "ReplicaSet", "invalid label selector");
    deployment_strategy(out, get(spec, "strategy"));
    for key in ["minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"] {
        nonnegative(out, spec, key, "spec");
    }
    let deadline = int(spec, "progressDeadlineSeconds");
    if deadline.is_some_and(|d| d <= int(spec, "minReadySeconds").unwrap_or(0)) {
        let value = get(spec, "progressDeadlineSeconds");
        invalid(out, "spec.progressDeadlineSeconds", value, "must be greater than minReadySeconds");
    }
}

fn deployment_strategy(out: &mut Errors, strategy: &Value) {
    let path = "spec.strategy.rollingUpdate";
    let update = get(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "Recreate" => {
            if !update.is_null() {
                forbidden(out, path, "may not be specified when strategy `type` is 'Recreate'");
            }
        }
        "RollingUpdate" => {
            int_or_percent(out, update, "maxUnavailable", path);
            int_or_percent(out, update, "maxSurge", path);
            if plain_number(get(update, "maxUnavailable")) == 0 && plain_number(get(update, "maxSurge")) == 0
            {
                let value = get(update, "maxUnavailable");
                invalid(out, format!("{path}.maxUnavailable"), value, "may not be 0 when `maxSurge` is 0");
            }
            at_most_all(out, update, "maxUnavailable", path);
        }
        other => unknown_strategy(out, "spec.strategy", other, update, &["Recreate", "RollingUpdate"]),
    }
}

/// Upstream prints the whole strategy, under the names its own type has.
fn unknown_strategy(out: &mut Errors, path: &str, ty: &str, update: &Value, all: &[&str]) {
    let list: Vec<String> = all.iter().map(|s| format!("{s:?}")).collect();
    out.push(FieldError {
        mistake: Mistake::NotSupported,
        field: path.to_owned(),
        value: Some(format!("{{\"Type\":{ty:?},\"RollingUpdate\":{update}}}")),
        detail: format!("supported values: {}", list.join(", ")),
    });
}

pub(super) fn replica_set(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    nonnegative(out, spec, "replicas", "spec");
    nonnegative(out, spec, "minReadySeconds", "spec");
    own_selector(out, spec, "deployment");
    template(out, spec, "ReplicaSet", "invalid label selector");
}

pub(super) fn replication_controller(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    nonnegative(out, spec, "minReadySeconds", "spec");
    if entries(spec, "selector").next().is_none() {
        required(out, "spec.selector", "");
    }
    nonnegative(out, spec, "replicas", "spec");
    let template = get(spec, "template");
    if template.is_null() {
        return required(out, "spec.template", "");
    }
    let labels = get(get(template, "metadata"), "labels");
    if !entries(spec, "selector").all(|(key, value)| labels.get(key) == Some(value)) {
        mismatch(out, labels);
    }
    pod::validate::template(template, "spec.template", out);
    lasting(out, template, "ReplicationController");
}

pub(super) fn stateful_set(obj: &Value, updating: bool, out: &mut Errors) {
    let spec = get(obj, "spec");
    let policy = text(spec, "podManagementPolicy");
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let why = "must be 'OrderedReady' or 'Parallel'";
        invalid(out, "spec.podManagementPolicy", &json!(policy), why);
    }
    let strategy = get(spec, "updateStrategy");
    match text(strategy, "type") {
        "OnDelete" => {
            if has(strategy, "rollingUpdate") {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                let shown = partition_text(get(strategy, "rollingUpdate"));
                invalid_text(out, "spec.updateStrategy.rollingUpdate", shown, why);
            }
        }
        "RollingUpdate" => {
            let update = get(strategy, "rollingUpdate");
            let path = "spec.updateStrategy.rollingUpdate";
            nonnegative(out, update, "partition", path);
            if has(update, "maxUnavailable") {
                int_or_percent(out, update, "maxUnavailable", path);
                at_most_all(out, update, "maxUnavailable", path);
                if plain_number(get(update, "maxUnavailable")) == 0 {
                    let value = get(update, "maxUnavailable");
                    invalid(out, format!("{path}.maxUnavailable"), value, "cannot be 0");
                }
            }
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            let update = partition_text(get(strategy, "rollingUpdate"));
            let shown = format!("{{\"Type\":{:?},\"RollingUpdate\":{update}}}", text(strategy, "type"));
            invalid_text(out, "spec.updateStrategy", shown, why);
        }
    }
    nonnegative(out, spec, "replicas", "spec");
    nonnegative(out, spec, "minReadySeconds", "spec");
    let service = text(spec, "serviceName");
    if !updating && !service.is_empty() {
        each(out, "spec.serviceName", service, names::label(service));
    }
    own_selector(out, spec, "statefulset");
    claims_template(out, spec);
}

/// A partition under the names upstream's own type has.
fn partition_text(update: &Value) -> String {
    if update.is_null() {
        return "null".to_owned();
    }
    let partition = int(update, "partition").unwrap_or(0);
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{}}}", get(update, "maxUnavailable"))
}

/// Claims of a stateful set are volumes of its pods.
fn claims_template(out: &mut Errors, spec: &Value) {
    let mut spec = spec.clone();
    let claimed: Vec<Value> = list(&spec, "volumeClaimTemplates")
        .iter()
        .map(|claim| {
            let name = text(get(claim, "metadata"), "name");
            json!({"name": name, "persistentVolumeClaim": {"claimName": name}})
        })
        .collect();
    if !claimed.is_empty()
        && let Some(inner) = spec.get_mut("template").and_then(|t| t.get_mut("spec"))
    {
        let taken = |v: &Value| claimed.iter().any(|c| text(c, "name") == text(v, "name"));
        let others: Vec<Value> = list(inner, "volumes").iter().filter(|v| !taken(v)).cloned().collect();
        inner["volumes"] = Value::Array(claimed.into_iter().chain(others).collect());
    }
    template(out, &spec, "StatefulSet", "");
    // Upstream looks at the labels and annotations of this template a second time.
    let held = get(get(&spec, "template"), "metadata");
    meta::labels(held, "labels", "spec.template.labels", out);
    meta::annotations(held, "spec.template.annotations", out);
}

pub(super) fn daemon_set(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    let held = get(spec, "selector");
    let template = get(spec, "template");
    selector(out, held, "spec.selector");
    let labels = get(get(template, "metadata"), "labels");
    if matches(held, labels) == Some(false) {
        mismatch(out, labels);
    }
    if !held.is_null() && is_empty(held) {
        invalid_text(out, "spec.selector", selector_text(held), "empty selector is invalid for daemonset");
    }
    pod::validate::template(template, "spec.template", out);
    lasting(out, template, "DaemonSet");
    nonnegative(out, spec, "minReadySeconds", "spec");
    let strategy = get(spec, "updateStrategy");
    let path = "spec.updateStrategy.rollingUpdate";
    let update = get(strategy, "rollingUpdate");
    match text(strategy, "type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            for key in ["maxUnavailable", "maxSurge"] {
                int_or_percent(out, update, key, path);
            }
            for key in ["maxUnavailable", "maxSurge"] {
                at_most_all(out, update, key, path);
            }
            let (down, up) =
                (plain_number(get(update, "maxUnavailable")), plain_number(get(update, "maxSurge")));
            if down != 0 && up != 0 {
                let why = "may not be set when maxUnavailable is non-zero";
                invalid(out, format!("{path}.maxSurge"), get(update, "maxSurge"), why);
            } else if down == 0 && up == 0 {
                required(out, format!("{path}.maxUnavailable"), "cannot be 0 when maxSurge is 0");
            }
        }
        other => unknown_strategy(out, "spec.updateStrategy", other, update, &["RollingUpdate", "OnDelete"]),
    }
    nonnegative(out, spec, "revisionHistoryLimit", "spec");
}

/// What an update may not change.
pub(super) fn changes(kind: &str, new: &Value, old: &Value, out: &mut Errors) {
    let (spec, before) = (get(new, "spec"), get(old, "spec"));
    match kind {
        "Deployment" | "ReplicaSet" | "DaemonSet" => immutable(out, spec, before, "selector", "spec."),
        "StatefulSet" => {
            let free = [
                "replicas",
                "template",
                "updateStrategy",
                "minReadySeconds",
                "ordinals",
                "revisionHistoryLimit",
                "persistentVolumeClaimRetentionPolicy",
            ];
            let fixed = |spec: &Value| -> Vec<(String, Value)> {
                let all = spec.as_object().into_iter().flatten();
                let mut kept: Vec<_> = all
                    .filter(|(key, _)| !free.contains(&key.as_str()))
                    .map(|(k, v)| (k.clone(), v.clone()))
                    .collect();
                kept.sort_by(|a, b| a.0.cmp(&b.0));
                kept
            };
            if fixed(spec) != fixed(before) {
                let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', \
                           'template', 'updateStrategy', 'revisionHistoryLimit', \
                           'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
                forbidden(out, "spec", why);
            }
        }
        "ControllerRevision" if get(new, "data") != get(old, "data") => {
            invalid(out, "data", get(new, "data"), "field is immutable");
        }
        _ => {}
    }
}

/// Counts in a status must be plausible.
pub(super) fn status(kind: &str, obj: &Value, out: &mut Errors) {
    let status = get(obj, "status");
    let (checked, compared): (&[&str], &[&str]) = if kind == "Deployment" {
        (
            &[
                "observedGeneration",
                "replicas",
                "updatedReplicas",
                "readyReplicas",
                "availableReplicas",
                "unavailableReplicas",
                "terminatingReplicas",
                "collisionCount",
            ],
            &["updatedReplicas", "readyReplicas", "availableReplicas"],
        )
    } else {
        (
            &[
                "replicas",
                "fullyLabeledReplicas",
                "readyReplicas",
                "availableReplicas",
                "observedGeneration",
                "terminatingReplicas",
            ],
            &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        )
    };
    for key in checked {
        nonnegative(out, status, key, "status");
    }
    let count = |key: &str| int(status, key).unwrap_or(0);
    for key in compared {
        if count(key) > count("replicas") {
            let why = "cannot be greater than status.replicas";
            invalid(out, format!("status.{key}"), &json!(count(key)), why);
        }
    }
    if count("availableReplicas") > count("readyReplicas") {
        let why = "cannot be greater than readyReplicas";
        invalid(out, "status.availableReplicas", &json!(count("availableReplicas")), why);
    }
}
