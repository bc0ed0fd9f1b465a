//! Autoscalers: `autoscaling/v1` knows the CPU alone, and keeps in annotations what the newer version says beyond that.
//!
//! The texts in these annotations are what kube-apiserver would write, but for the order of fields in conditions, in how
//! fast to scale, and in what metrics refer to.

use serde_json::{Value, json};
use std::fmt::Write as _;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";

/// A field of a metric: its older name, where the newer version has it, and whether the older one cannot leave it out.
type Field = (&'static str, &'static [&'static str], bool);

const NAME: Field = ("name", &["name"], false);
const METRIC: Field = ("metricName", &["metric", "name"], false);
const SELECTOR: Field = ("selector", &["metric", "selector"], false);
const CONTAINER: Field = ("container", &["container"], false);

/// What is wanted of a metric, by kind of metric.
const WANTED: &[(&str, &[Field])] = &[
    (
        "object",
        &[
            ("target", &["describedObject"], false),
            METRIC,
            ("targetValue", &["target", "value"], true),
            SELECTOR,
            ("averageValue", &["target", "averageValue"], false),
        ],
    ),
    ("pods", &[METRIC, ("targetAverageValue", &["target", "averageValue"], true), SELECTOR]),
    (
        "resource",
        &[
            NAME,
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
    (
        "containerResource",
        &[
            NAME,
            ("targetAverageUtilization", &["target", "averageUtilization"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
            CONTAINER,
        ],
    ),
    (
        "external",
        &[
            METRIC,
            ("metricSelector", &["metric", "selector"], false),
            ("targetValue", &["target", "value"], false),
            ("targetAverageValue", &["target", "averageValue"], false),
        ],
    ),
];

/// What a metric is now.
const MEASURED: &[(&str, &[Field])] = &[
    (
        "object",
        &[
            ("target", &["describedObject"], false),
            METRIC,
            ("currentValue", &["current", "value"], true),
            SELECTOR,
            ("averageValue", &["current", "averageValue"], false),
        ],
    ),
    ("pods", &[METRIC, ("currentAverageValue", &["current", "averageValue"], true), SELECTOR]),
    (
        "resource",
        &[
            NAME,
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
        ],
    ),
    (
        "containerResource",
        &[
            NAME,
            ("currentAverageUtilization", &["current", "averageUtilization"], false),
            ("currentAverageValue", &["current", "averageValue"], true),
            CONTAINER,
        ],
    ),
    (
        "external",
        &[
            METRIC,
            ("metricSelector", &["metric", "selector"], false),
            ("currentValue", &["current", "value"], true),
            ("currentAverageValue", &["current", "averageValue"], false),
        ],
    ),
];

/// From `autoscaling/v2` to `autoscaling/v1`.
pub(super) fn older(mut object: Value) -> Value {
    let metrics = take_list(&mut object, "spec", "metrics");
    let current = take_list(&mut object, "status", "currentMetrics");
    let conditions = take_list(&mut object, "status", "conditions");
    let behavior = take(&mut object, "spec", "behavior");
    // The first one is what this version can say; further ones of the kind are lost, as upstream loses them.
    if let Some(percent) = metrics.iter().find_map(|metric| cpu(metric, "target")) {
        object["spec"]["targetCPUUtilizationPercentage"] = percent;
    }
    if let Some(percent) = current.iter().find_map(|metric| cpu(metric, "current")) {
        object["status"]["currentCPUUtilizationPercentage"] = percent;
    }
    let others: Vec<String> = metrics
        .iter()
        .filter(|metric| cpu(metric, "target").is_none())
        .map(|metric| to_older(metric, WANTED))
        .collect();
    let current: Vec<String> = current.iter().map(|metric| to_older(metric, MEASURED)).collect();
    let conditions: Vec<String> = conditions.iter().map(Value::to_string).collect();
    forget_annotations(&mut object);
    for (key, list) in [(METRICS, others), (CURRENT, current), (CONDITIONS, conditions)] {
        if !list.is_empty() {
            object["metadata"]["annotations"][key] = json!(format!("[{}]", list.join(",")));
        }
    }
    if let Some(behavior) = behavior {
        object["metadata"]["annotations"][BEHAVIOR] = json!(capitalized(&behavior).to_string());
    }
    // What this version cannot leave out.
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
        status.entry("currentReplicas").or_insert_with(|| json!(0));
    }
    object["apiVersion"] = json!("autoscaling/v1");
    object
}

/// From `autoscaling/v1` to `autoscaling/v2`.
pub(super) fn newer(mut object: Value) -> Value {
    let annotation = |object: &Value, key: &str| -> Option<Value> {
        serde_json::from_str(object["metadata"]["annotations"].get(key)?.as_str()?).ok()
    };
    let list = |object: &Value, key: &str| match annotation(object, key) {
        Some(Value::Array(list)) => Some(list),
        _ => None,
    };
    let wanted = list(&object, METRICS).unwrap_or_default();
    let mut metrics: Vec<Value> = wanted.iter().map(|metric| to_newer(metric, WANTED)).collect();
    if let Some(percent) = take(&mut object, "spec", "targetCPUUtilizationPercentage") {
        metrics.push(json!({"type": "Resource", "resource":
            {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}}));
    }
    let measured = take(&mut object, "status", "currentCPUUtilizationPercentage");
    let current = match (list(&object, CURRENT), measured) {
        (Some(list), _) => list.iter().map(|metric| to_newer(metric, MEASURED)).collect(),
        (None, Some(percent)) => vec![json!({"type": "Resource", "resource":
            {"name": "cpu", "current": {"averageUtilization": percent}}})],
        (None, None) => Vec::new(),
    };
    let conditions = list(&object, CONDITIONS).unwrap_or_default();
    for (place, key, list) in [
        ("spec", "metrics", metrics),
        ("status", "currentMetrics", current),
        ("status", "conditions", conditions),
    ] {
        if !list.is_empty() {
            object[place][key] = Value::Array(list);
        }
    }
    if let Some(behavior) = annotation(&object, BEHAVIOR) {
        object["spec"]["behavior"] = uncapitalized(&behavior);
    }
    // None are not told in the newer form, and what was measured always is.
    if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut)
        && status.get("currentReplicas").is_some_and(|count| count == 0)
    {
        status.remove("currentReplicas");
    }
    if object["status"].is_object() && object["status"].get("currentMetrics").is_none() {
        object["status"]["currentMetrics"] = Value::Null;
    }
    forget_annotations(&mut object);
    object["apiVersion"] = json!("autoscaling/v2");
    object
}

fn take(object: &mut Value, place: &str, key: &str) -> Option<Value> {
    object.get_mut(place)?.as_object_mut()?.remove(key).filter(|value| !value.is_null())
}

fn take_list(object: &mut Value, place: &str, key: &str) -> Vec<Value> {
    match take(object, place, key) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    }
}

/// The share of the CPU a metric is about, if it is about that.
fn cpu(metric: &Value, place: &str) -> Option<Value> {
    let resource = metric.get("resource").filter(|resource| resource["name"] == "cpu")?;
    let percent = resource.get(place)?.get("averageUtilization").filter(|percent| !percent.is_null())?;
    (metric["type"] == "Resource").then(|| percent.clone())
}

/// The text of a metric in the older version, its fields in upstream's order.
fn to_older(metric: &Value, fields: &[(&str, &[Field])]) -> String {
    let mut out = format!("{{\"type\":{}", metric["type"]);
    for (kind, fields) in fields {
        let Some(source) = metric.get(*kind).filter(|source| source.is_object()) else { continue };
        let mut older = Vec::new();
        for (name, path, always) in *fields {
            let found =
                path.iter().try_fold(source, |at, part| at.get(*part)).filter(|value| !value.is_null());
            match found {
                Some(value) => older.push(format!("\"{name}\":{value}")),
                None if *always => older.push(format!("\"{name}\":\"0\"")),
                None => {}
            }
        }
        let _ = write!(out, ",\"{kind}\":{{{}}}", older.join(","));
    }
    out.push('}');
    out
}

fn to_newer(metric: &Value, fields: &[(&str, &[Field])]) -> Value {
    let mut out = json!({"type": metric["type"]});
    for (kind, fields) in fields {
        let Some(source) = metric.get(*kind).filter(|source| source.is_object()) else { continue };
        let averaged = source.get("averageValue").is_some_and(|value| !value.is_null());
        let mut newer = json!({});
        for (name, path, always) in *fields {
            let Some(value) = source.get(*name).filter(|value| !value.is_null()) else { continue };
            // A nought that only says that nothing was said.
            if *always && averaged && *kind == "object" && value == "0" {
                continue;
            }
            let mut place = &mut newer;
            for part in *path {
                place = &mut place[*part];
            }
            *place = value.clone();
        }
        if newer["target"].is_object() && newer["target"].get("type").is_none() {
            let has = |key: &str| newer["target"].get(key).is_some();
            let kind = if has("averageUtilization") {
                "Utilization"
            } else if has("averageValue") {
                "AverageValue"
            } else {
                "Value"
            };
            newer["target"]["type"] = json!(kind);
        }
        out[*kind] = newer;
    }
    out
}

fn forget_annotations(object: &mut Value) {
    let metadata = &mut object["metadata"];
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    for key in [METRICS, CURRENT, BEHAVIOR, CONDITIONS] {
        annotations.remove(key);
    }
    if annotations.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("annotations");
    }
}

/// How fast to scale is kept as Go names the fields, all of them.
fn capitalized(behavior: &Value) -> Value {
    let rules = |rules: &Value| {
        if rules.is_null() {
            return Value::Null;
        }
        let policies = rules["policies"].as_array().map(|policies| {
            let policy = |p: &Value| json!({"Type": p["type"], "Value": p["value"], "PeriodSeconds": p["periodSeconds"]});
            policies.iter().map(policy).collect::<Vec<_>>()
        });
        json!({
            "StabilizationWindowSeconds": rules["stabilizationWindowSeconds"],
            "SelectPolicy": rules["selectPolicy"], "Policies": policies, "Tolerance": rules["tolerance"],
        })
    };
    json!({"ScaleUp": rules(&behavior["scaleUp"]), "ScaleDown": rules(&behavior["scaleDown"])})
}

fn uncapitalized(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter().filter(|(_, value)| !value.is_null()).map(|(key, value)| {
                let mut letters = key.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect(), uncapitalized(value))
            });
            Value::Object(fields.collect())
        }
        Value::Array(items) => items.iter().map(uncapitalized).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything() -> Value {
        let target = |kind: &str, key: &str, value: Value| json!({"type": kind, key: value});
        json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a", "annotations": {"mine": "x"}},
            "spec": {
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "minReplicas": 1, "maxReplicas": 5,
                "metrics": [
                    {"type": "Resource", "resource": {"name": "memory", "target": target("AverageValue", "averageValue", json!("1Gi"))}},
                    {"type": "ContainerResource", "containerResource": {"name": "cpu", "container": "c", "target": target("Utilization", "averageUtilization", json!(50))}},
                    {"type": "Pods", "pods": {"metric": {"name": "m", "selector": {"matchLabels": {"a": "b"}}}, "target": target("AverageValue", "averageValue", json!("3"))}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"}, "target": target("Value", "value", json!("7"))}},
                    {"type": "Object", "object": {"describedObject": {"kind": "Service", "name": "s"}, "metric": {"name": "m"}, "target": target("AverageValue", "averageValue", json!("8"))}},
                    {"type": "External", "external": {"metric": {"name": "q"}, "target": target("Value", "value", json!("9"))}},
                    {"type": "Resource", "resource": {"name": "cpu", "target": target("Utilization", "averageUtilization", json!(60))}},
                ],
                "behavior": {"scaleUp": {"selectPolicy": "Max", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}},
            },
            "status": {
                "currentReplicas": 1, "desiredReplicas": 2,
                "currentMetrics": [{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 70, "averageValue": "700m"}}}],
                "conditions": [{"type": "AbleToScale", "status": "True"}],
            },
        })
    }

    #[test]
    fn nothing_is_lost_on_the_way_to_the_older_version_and_back() {
        let there = older(everything());
        assert_eq!(there["spec"]["targetCPUUtilizationPercentage"], 60);
        assert_eq!(there["status"]["currentCPUUtilizationPercentage"], 70);
        assert_eq!(there["spec"].get("metrics"), None);
        let kept: Value =
            serde_json::from_str(there["metadata"]["annotations"][METRICS].as_str().unwrap()).unwrap();
        assert_eq!(
            kept[2]["pods"],
            json!({"metricName": "m", "targetAverageValue": "3", "selector": {"matchLabels": {"a": "b"}}})
        );
        assert_eq!(kept[4]["object"]["targetValue"], "0", "which the older version cannot leave out");
        assert_eq!(newer(there), everything());
    }

    #[test]
    fn the_older_version_alone_means_the_cpu() {
        let plain = json!({"apiVersion": "autoscaling/v1", "metadata": {}, "spec": {"targetCPUUtilizationPercentage": 80}, "status": {"currentReplicas": 0}});
        let there = newer(plain.clone());
        assert_eq!(
            there["spec"]["metrics"][0]["resource"]["target"],
            json!({"type": "Utilization", "averageUtilization": 80})
        );
        assert_eq!(older(there), plain);
    }
}
