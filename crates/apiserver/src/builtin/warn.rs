//! What kube-apiserver warns about when it accepts pods and templates of pods.
//!
//! Only what people who schedule run into: selectors that match nothing, labels of nodes that are no more, amounts
//! that are no amounts, and definitions that hide each other.

use super::GroupVersionKind;
use super::json::get;
use loadline_machinery::quantity::Quantity;
use serde_json::Value;

/// Labels of nodes that have a successor.
const OLD_LABELS: [(&str, &str); 8] = [
    ("beta.kubernetes.io/arch", r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#),
    ("beta.kubernetes.io/os", r#"deprecated since v1.14; use "kubernetes.io/os" instead"#),
    (
        "failure-domain.beta.kubernetes.io/region",
        r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#,
    ),
    (
        "failure-domain.beta.kubernetes.io/zone",
        r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#,
    ),
    (
        "beta.kubernetes.io/instance-type",
        r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#,
    ),
    ("app.kubernetes.io/created-by", "deprecated since v1.9"),
    (
        "scheduler.alpha.kubernetes.io/preferAvoidPods",
        "deprecated since v1.22; use Taints and Tolerations instead",
    ),
    ("node-role.kubernetes.io/master", r#"use "node-role.kubernetes.io/control-plane" instead"#),
];

const NULL_SELECTOR: &str = "a null labelSelector results in matching no pod";

/// Warnings about an object that is otherwise good; `old` is what it replaces.
#[must_use]
pub(crate) fn warnings(kind: GroupVersionKind<'_>, obj: &Value, old: Option<&Value>) -> Vec<String> {
    let path = match (kind.group, kind.kind) {
        ("", "Pod") => "",
        ("apps", "Deployment" | "ReplicaSet" | "StatefulSet" | "DaemonSet")
        | ("batch", "Job")
        | ("", "ReplicationController") => "spec.template.",
        _ => return Vec::new(),
    };
    let of = |object: &Value| {
        if path.is_empty() { object.clone() } else { get(get(object, "spec"), "template").clone() }
    };
    // Templates are looked at when their owner's generation moves, pods always.
    let generation = |object: &Value| get(get(object, "metadata"), "generation").clone();
    if !path.is_empty() && old.is_some_and(|old| generation(old) == generation(obj)) {
        return Vec::new();
    }
    let pod = of(obj);
    let mut out = Vec::new();
    scheduling(get(&pod, "spec"), path, &mut out);
    containers(get(&pod, "spec"), path, &mut out);
    if get(&pod, "spec")["terminationGracePeriodSeconds"].as_i64().is_some_and(|s| s < 0) {
        let why = "must be >= 0; negative values are invalid and will be treated as 1";
        out.push(format!("{path}spec.terminationGracePeriodSeconds: {why}"));
    }
    pod_affinity(get(&pod, "spec"), path, &mut out);
    out
}

fn old_label(key: &str) -> Option<&'static str> {
    OLD_LABELS.iter().find(|(old, _)| *old == key).map(|(_, why)| *why)
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = (usize, &'a Value)> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn scheduling(spec: &Value, path: &str, out: &mut Vec<String>) {
    for key in spec["nodeSelector"].as_object().into_iter().flatten().map(|(key, _)| key) {
        out.extend(old_label(key).map(|why| format!("{path}spec.nodeSelector[{key}]: {why}")));
    }
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let preferred = "preferredDuringSchedulingIgnoredDuringExecution";
    let mut term = |term: &Value, at: String| {
        for (i, expression) in list(term, "/matchExpressions") {
            let key = expression["key"].as_str().unwrap_or_default();
            out.extend(old_label(key).map(|why| format!("{at}.matchExpressions[{i}].key: {key} is {why}")));
        }
    };
    for (i, one) in list(spec, &format!("/affinity/nodeAffinity/{required}/nodeSelectorTerms")) {
        term(one, format!("{path}spec.affinity.nodeAffinity.{required}.nodeSelectorTerms[{i}]"));
    }
    for (i, one) in list(spec, &format!("/affinity/nodeAffinity/{preferred}")) {
        term(&one["preference"], format!("{path}spec.affinity.nodeAffinity.{preferred}[{i}].preference"));
    }
    for (i, constraint) in list(spec, "/topologySpreadConstraints") {
        let at = format!("{path}spec.topologySpreadConstraints[{i}]");
        let key = constraint["topologyKey"].as_str().unwrap_or_default();
        out.extend(old_label(key).map(|why| format!("{at}.topologyKey: {key} is {why}")));
        if constraint.get("labelSelector").is_none_or(Value::is_null) {
            out.push(format!("{at}.labelSelector: {NULL_SELECTOR}"));
        }
    }
}

fn containers(spec: &Value, path: &str, out: &mut Vec<String>) {
    let mut ports: Vec<(String, &Value)> = Vec::new();
    let mut duplicates = Vec::new();
    for field in ["initContainers", "containers", "ephemeralContainers"] {
        for (i, container) in list(spec, &format!("/{field}")) {
            let at = format!("{path}spec.{field}[{i}]");
            for (name, kind) in [
                ("memory", "limits"),
                ("memory", "requests"),
                ("ephemeral-storage", "limits"),
                ("ephemeral-storage", "requests"),
            ] {
                let amount = container["resources"][kind][name].as_str().unwrap_or_default();
                if amount.parse::<Quantity>().is_ok_and(|quantity| !quantity.is_whole()) {
                    out.push(format!(
                        "{at}.resources.{kind}[{name}]: fractional byte value {amount:?} is invalid, must be an integer"
                    ));
                }
            }
            environment(container, &at, out);
            for (i, port) in list(container, "/ports") {
                let here = format!("{at}.ports[{i}]");
                let same = |other: &Value| {
                    ["containerPort", "protocol", "hostIP", "hostPort"]
                        .iter()
                        .all(|key| other[*key] == port[*key])
                };
                let others = ports.iter().filter(|(_, other)| same(other));
                duplicates.extend(
                    others.map(|(there, _)| format!("{here}: duplicate port definition with {there}")),
                );
                ports.push((here, port));
            }
        }
    }
    out.extend(duplicates);
}

fn environment(container: &Value, at: &str, out: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, variable) in list(container, "/env") {
        let name = variable["name"].as_str().unwrap_or_default();
        if !seen.contains(&name) {
            seen.push(name);
            continue;
        }
        // Building on the earlier value is what people do on purpose.
        let value = variable["value"].as_str().unwrap_or_default();
        let reference = format!("$({name})");
        if variable.get("valueFrom").is_some() || value == reference || !value.contains(&reference) {
            out.push(format!(
                "{at}.env[{i}]: hides previous definition of {name:?}, which may be dropped when using apply"
            ));
        }
    }
}

fn pod_affinity(spec: &Value, path: &str, out: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        for (rule, below) in [
            ("requiredDuringSchedulingIgnoredDuringExecution", ""),
            ("preferredDuringSchedulingIgnoredDuringExecution", "podAffinityTerm"),
        ] {
            for (i, term) in list(spec, &format!("/affinity/{kind}/{rule}")) {
                let inner = if below.is_empty() { term } else { &term[below] };
                if inner.get("labelSelector").is_none_or(Value::is_null) {
                    let dot = if below.is_empty() { "" } else { "." };
                    out.push(format!(
                        "{path}spec.affinity.{kind}.{rule}[{i}]{dot}{below}.labelSelector: {NULL_SELECTOR}"
                    ));
                }
            }
        }
    }
}
