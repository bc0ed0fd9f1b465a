//! What did objects of older versions mean? They become those of today, before anything else looks at them.
//!
//! | then | now | what changes |
//! |---|---|---|
//! | `NodeQOSEnsurancePolicy` | `NodeQOS` | `objectiveEnsurances` are `rules` |
//! | `PodQOSEnsurancePolicy` | `PodQOS` | `selector` is `labelSelector`, `qualityProbe` is `podQualityProbe`, its namespace a scope |
//! | `ServicePolicy` | `PodQOS` | priorities of resources are part of `resourceQOS` |
//! | `reachedThreshold`, `restoredThreshold` | `avoidanceThreshold`, `restoreThreshold` | the names |
//!
//! What has no place today is left out and told; nothing is guessed that could make an action hit more pods.

use super::GROUP;
use serde_json::{Map, Value, json};

/// The version of today.
const VERSION: &str = "v1alpha1";

/// What applying a file left behind; it tells of the older object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The object of today that means the same, and what could not be carried over; none if the object is no older one.
#[must_use]
pub fn modern(value: &Value) -> Option<(Value, Vec<String>)> {
    let (group, _) = value["apiVersion"].as_str()?.split_once('/')?;
    if group != GROUP {
        return None;
    }
    let mut warnings = Vec::new();
    let spec = value.get("spec").cloned().unwrap_or_else(|| json!({}));
    let (kind, spec) = match value["kind"].as_str()? {
        "NodeQOSEnsurancePolicy" => ("NodeQOS", node(spec, &mut warnings)),
        "NodeQOS" if spells_thresholds_otherwise(&spec) => ("NodeQOS", node(spec, &mut warnings)),
        "PodQOSEnsurancePolicy" => ("PodQOS", pod(spec, &value["metadata"], &mut warnings)),
        "ServicePolicy" => ("PodQOS", service(&spec, &mut warnings)),
        _ => return None,
    };
    let now = json!({
        "apiVersion": format!("{GROUP}/{VERSION}"),
        "kind": kind,
        "metadata": metadata(&value["metadata"]),
        "spec": spec,
    });
    Some((now, warnings))
}

/// What the user wrote. The rest belongs to the older object, and nothing of today is in a namespace.
fn metadata(then: &Value) -> Value {
    let mut out = Map::new();
    for name in ["name", "labels", "annotations"] {
        if let Some(value) = then.get(name) {
            out.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(Value::Object(annotations)) = out.get_mut("annotations") {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            out.remove("annotations");
        }
    }
    Value::Object(out)
}

/// Thresholds as they were called, and as they are.
const THRESHOLDS: [(&str, &str); 2] =
    [("reachedThreshold", "avoidanceThreshold"), ("restoredThreshold", "restoreThreshold")];

fn spells_thresholds_otherwise(spec: &Value) -> bool {
    let rules = spec["rules"].as_array().into_iter().flatten();
    rules.into_iter().any(|rule| THRESHOLDS.iter().any(|(then, _)| rule.get(then).is_some()))
}

fn node(spec: Value, warnings: &mut Vec<String>) -> Value {
    let Value::Object(mut spec) = spec else { return spec };
    rename(&mut spec, "spec", "objectiveEnsurances", "rules", warnings);
    let rules = spec.get_mut("rules").and_then(Value::as_array_mut);
    for (index, rule) in rules.into_iter().flatten().enumerate() {
        let Value::Object(rule) = rule else { continue };
        for (then, now) in THRESHOLDS {
            rename(rule, &format!("spec.rules[{index}]"), then, now, warnings);
        }
    }
    Value::Object(spec)
}

fn pod(spec: Value, metadata: &Value, warnings: &mut Vec<String>) -> Value {
    let Value::Object(mut spec) = spec else { return spec };
    rename(&mut spec, "spec", "selector", "labelSelector", warnings);
    rename(&mut spec, "spec", "qualityProbe", "podQualityProbe", warnings);
    for name in ["objectiveEnsurance", "objectiveEnsurances"] {
        if spec.remove(name).is_some() {
            warnings.push(format!("spec.{name}: left out, pods have no rules of their own any more"));
        }
    }
    // It was about pods of its own namespace; without this it would be about all.
    let namespace = metadata["namespace"].as_str().unwrap_or_else(|| {
        warnings.push("metadata.namespace: nothing found, taken for default".to_owned());
        "default"
    });
    let own = json!({"scopeName": "Namespace", "operator": "In", "values": [namespace]});
    spec.insert("scopeSelector".to_owned(), json!({"matchExpressions": [own]}));
    warnings
        .push("spec.allowedActions: nothing is done to these pods until actions are named here".to_owned());
    Value::Object(spec)
}

/// Priorities of resources as they were called, and where they are.
const PRIORITIES: [(&str, &str, &str); 3] = [
    ("cpuPriority", "cpuQOS", "cpuPriority"),
    ("memoryPriority", "memoryQOS", "memPriority"),
    ("networkIOPriority", "netIOQOS", "netIOPriority"),
];

fn service(spec: &Value, warnings: &mut Vec<String>) -> Value {
    let mut out = Map::new();
    if let Some(class) = spec["priorityClassName"].as_str() {
        warnings.push(format!(
            "spec.priorityClassName: {class} left out, no pod matches until its value is in a scope Priority"
        ));
    }
    let mut resources = Map::new();
    for (then, part, now) in PRIORITIES {
        if let Some(priority) = spec["resourcePriority"].get(then) {
            resources.insert(part.to_owned(), json!({now: priority}));
        }
    }
    if !resources.is_empty() {
        out.insert("resourceQOS".to_owned(), Value::Object(resources));
    }
    for (name, what) in [("allowThrottle", "throttle"), ("allowEvict", "evict")] {
        if spec["avoidanceStrategy"][name] == json!(true) {
            warnings.push(format!(
                "spec.avoidanceStrategy.{name}: left out, name the actions that {what} in allowedActions"
            ));
        }
    }
    if spec.get("resourceMutation").is_some() {
        warnings.push("spec.resourceMutation: left out, there is nothing like it".to_owned());
    }
    Value::Object(out)
}

/// The new name wins if both are there.
fn rename(fields: &mut Map<String, Value>, path: &str, then: &str, now: &str, warnings: &mut Vec<String>) {
    let Some(value) = fields.remove(then) else { return };
    if fields.contains_key(now) {
        warnings.push(format!("{path}.{then}: left out, {now} is set"));
    } else {
        fields.insert(now.to_owned(), value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, metadata: &Value, spec: &Value) -> Value {
        json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec})
    }

    type Case = (&'static str, Value, Value, Vec<&'static str>);

    fn check(cases: impl IntoIterator<Item = Case>) {
        for (reason, then, now, warnings) in cases {
            let (got, told) = modern(&then).expect(reason);
            assert_eq!(got, now, "{reason}");
            assert_eq!(told, warnings, "{reason}");
            assert_eq!(modern(&got), None, "{reason}: once is enough");
        }
    }

    #[test]
    fn older_policies_for_nodes_become_those_of_today() {
        let line = json!({"name": "cpu_total_usage", "value": "6000"});
        let probe = json!({"nodeLocalGet": {"localCacheTTLSeconds": 60}});
        check([
            (
                "the rules of a policy for nodes have another name, the rest stays",
                object(
                    "NodeQOSEnsurancePolicy",
                    &json!({"name": "busy"}),
                    &json!({
                        "selector": {"matchLabels": {"pool": "mixed"}},
                        "nodeQualityProbe": probe,
                        "objectiveEnsurances": [{
                            "name": "cpu", "metricRule": line, "avoidanceThreshold": 2, "actionName": "squeeze",
                            "strategy": "Preview",
                        }],
                    }),
                ),
                object(
                    "NodeQOS",
                    &json!({"name": "busy"}),
                    &json!({
                        "selector": {"matchLabels": {"pool": "mixed"}},
                        "nodeQualityProbe": probe,
                        "rules": [{
                            "name": "cpu", "metricRule": line, "avoidanceThreshold": 2, "actionName": "squeeze",
                            "strategy": "Preview",
                        }],
                    }),
                ),
                vec![],
            ),
            (
                "thresholds of the first days",
                object(
                    "NodeQOSEnsurancePolicy",
                    &json!({"name": "busy"}),
                    &json!({"objectiveEnsurances": [{"reachedThreshold": 3, "restoredThreshold": 5}]}),
                ),
                object(
                    "NodeQOS",
                    &json!({"name": "busy"}),
                    &json!({"rules": [{"avoidanceThreshold": 3, "restoreThreshold": 5}]}),
                ),
                vec![],
            ),
            (
                "an object of today with a threshold of the first days: the name of today wins",
                object(
                    "NodeQOS",
                    &json!({"name": "busy"}),
                    &json!({"rules": [
                        {"name": "a"},
                        {"name": "b", "restoredThreshold": 5, "restoreThreshold": 2},
                    ]}),
                ),
                object(
                    "NodeQOS",
                    &json!({"name": "busy"}),
                    &json!({"rules": [{"name": "a"}, {"name": "b", "restoreThreshold": 2}]}),
                ),
                vec!["spec.rules[1].restoredThreshold: left out, restoreThreshold is set"],
            ),
        ]);
    }

    #[test]
    fn older_policies_for_pods_become_those_of_today() {
        check([
            (
                "a policy for pods was about its own namespace, and had rules",
                object(
                    "PodQOSEnsurancePolicy",
                    &json!({"name": "batch", "namespace": "jobs"}),
                    &json!({
                        "selector": {"matchLabels": {"workload": "batch"}},
                        "qualityProbe": {"timeoutSeconds": 1},
                        "objectiveEnsurance": [{"name": "slow"}],
                    }),
                ),
                object(
                    "PodQOS",
                    &json!({"name": "batch"}),
                    &json!({
                        "labelSelector": {"matchLabels": {"workload": "batch"}},
                        "podQualityProbe": {"timeoutSeconds": 1},
                        "scopeSelector": {"matchExpressions": [
                            {"scopeName": "Namespace", "operator": "In", "values": ["jobs"]},
                        ]},
                    }),
                ),
                vec![
                    "spec.objectiveEnsurance: left out, pods have no rules of their own any more",
                    "spec.allowedActions: nothing is done to these pods until actions are named here",
                ],
            ),
            (
                "a policy for services names a class, whose value is not in the object",
                object(
                    "ServicePolicy",
                    &json!({"name": "low"}),
                    &json!({
                        "priorityClassName": "low",
                        "resourcePriority": {"cpuPriority": 7, "memoryPriority": 6, "networkIOPriority": 5},
                        "avoidanceStrategy": {"allowThrottle": true, "allowEvict": false},
                    }),
                ),
                object(
                    "PodQOS",
                    &json!({"name": "low"}),
                    &json!({"resourceQOS": {
                        "cpuQOS": {"cpuPriority": 7},
                        "memoryQOS": {"memPriority": 6},
                        "netIOQOS": {"netIOPriority": 5},
                    }}),
                ),
                vec![
                    "spec.priorityClassName: low left out, no pod matches until its value is in a scope Priority",
                    "spec.avoidanceStrategy.allowThrottle: left out, name the actions that throttle in allowedActions",
                ],
            ),
        ]);
    }

    #[test]
    fn what_belongs_to_the_older_object_is_not_carried_over() {
        let metadata = json!({
            "name": "busy", "uid": "1", "resourceVersion": "7", "generation": 2, "managedFields": [],
            "labels": {"team": "a"}, "annotations": {LAST_APPLIED: "{}"},
        });
        let mut then = object("NodeQOSEnsurancePolicy", &metadata, &json!({}));
        then["status"] = json!({});
        let (now, _) = modern(&then).unwrap();
        assert_eq!(now, object("NodeQOS", &json!({"name": "busy", "labels": {"team": "a"}}), &json!({})));
    }

    #[test]
    fn other_objects_are_left_alone() {
        let cases = [
            ("of today", object("NodeQOS", &json!({}), &json!({"rules": [{"restoreThreshold": 1}]}))),
            (
                "of another group",
                json!({"apiVersion": "example.com/v1", "kind": "ServicePolicy", "spec": {}}),
            ),
            ("of the core group", json!({"apiVersion": "v1", "kind": "Pod"})),
            ("no object", json!([1])),
            ("nothing", Value::Null),
        ];
        for (reason, value) in cases {
            assert_eq!(modern(&value), None, "{reason}");
        }
    }

    #[test]
    fn nonsense_is_carried_over_for_whoever_reads_it() {
        for spec in [json!(null), json!(3), json!([]), json!({"objectiveEnsurances": 3, "rules": [1]})] {
            for kind in ["NodeQOSEnsurancePolicy", "PodQOSEnsurancePolicy", "ServicePolicy"] {
                assert!(modern(&object(kind, &json!(null), &spec)).is_some(), "{kind} {spec}");
            }
        }
    }
}
