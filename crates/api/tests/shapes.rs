//! Whatever the shape of an object, reading it ends in an answer or an error, never in a panic.

use loadline_api::json::Tree;
use loadline_api::{
    Context, cluster, context, duration, event, metrics, node, owners, pod, quota, recommendation, workload,
};
use loadline_core::view::Texts;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Names that mean something somewhere, so that random objects get past the first field.
const NAMES: &[&str] = &[
    "metadata",
    "name",
    "namespace",
    "labels",
    "annotations",
    "ownerReferences",
    "controller",
    "spec",
    "status",
    "containers",
    "initContainers",
    "restartPolicy",
    "resources",
    "requests",
    "limits",
    "cpu",
    "memory",
    "volumes",
    "persistentVolumeClaim",
    "claimName",
    "affinity",
    "nodeAffinity",
    "podAffinity",
    "topologySpreadConstraints",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "labelSelector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "nodeSelectorTerms",
    "tolerations",
    "containerStatuses",
    "state",
    "running",
    "startedAt",
    "allocatable",
    "taints",
    "effect",
    "usage",
    "window",
    "timestamp",
    "recommendedValue",
    "recommendedInfo",
    "resourceRequest",
    "target",
    "containerName",
    "targetRef",
    "kind",
    "apiVersion",
    "drivers",
    "csi",
    "driver",
    "selector",
    "type",
    "reason",
    "message",
    "count",
    "topology.kubernetes.io/zone",
    "analysis.crane.io/resource-recommendation",
    "ports",
    "hostPort",
    "priority",
    "template",
    "components",
    "replicas",
    "replicaRequirements",
    "nodeClaim",
    "hardNodeAffinity",
    "hard",
    "scopes",
];

const TEXTS: &[&str] = &[
    "",
    "a",
    "1",
    "100m",
    "1Gi",
    "-1",
    "1e999999999",
    "NaN",
    "__",
    "a__b",
    "In",
    "Always",
    "Normal",
    "Scheduled",
    "Successfully assigned a/b to c",
    "2025-01-01T00:00:00Z",
    "9999999999h",
    "containers: [{containerName: a}]",
    "{\"spec\": []}",
    "&a [*a]",
    "é",
    "Resource",
    "Bound",
    "\u{0}",
];

fn some_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        proptest::sample::select(TEXTS).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(8, 64, 6, |inner| {
        let name = proptest::sample::select(NAMES).prop_map(str::to_owned);
        prop_oneof![
            1 => proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => proptest::collection::btree_map(name, inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// A pod that uses nearly everything, to be damaged in one place.
fn rich() -> Value {
    json!({"metadata": {"namespace": "shop", "name": "p", "labels": {"app": "web"}, "creationTimestamp": "2025-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "controller": true}]},
      "spec": {"nodeName": "n", "priority": 1, "nodeSelector": {"a": "b"}, "overhead": {"cpu": "1"}, "hostNetwork": true,
        "containers": [{"name": "c", "ports": [{"containerPort": 80}], "resources": {"limits": {"cpu": "1"}}}],
        "initContainers": [{"name": "s", "restartPolicy": "Always"}], "resources": {"limits": {"memory": "1Gi"}},
        "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "d"}}, {"name": "e", "ephemeral": {}}],
        "tolerations": [{"key": "k", "operator": "Exists", "effect": "NoSchedule"}],
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["app"]}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "z", "operator": "Gt", "values": ["1"]}]}]}},
            "podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm":
                {"topologyKey": "z", "namespaceSelector": {}, "labelSelector": {}, "mismatchLabelKeys": ["app"]}}]}}},
      "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running":
        {"startedAt": "2025-01-01T00:00:00Z"}}}]}})
}

/// All places in an object.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    let escape = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(map) => map.iter().for_each(|(k, v)| places(v, &format!("{at}/{}", escape(k)), out)),
        Value::Array(list) => list.iter().enumerate().for_each(|(i, v)| places(v, &format!("{at}/{i}"), out)),
        _ => {}
    }
}

/// Reads it as everything there is.
fn read_as_everything(value: &Value) {
    let mut context = Context::new();
    let object = &Tree::from(value);
    let _ = context.priority_class(object);
    let _ = context.claim(object);
    let _ = context.volume(object);
    let _ = context.storage_class(object);
    let _ = context.csi_node(object);
    let _ = context::priority_class(object);
    let _ = pod::facts(object, &context);
    let _ = node::with_images(object);
    let _ = cluster::service(object);
    let _ = node::is_ready(object);
    let _ = metrics::node(object);
    let _ = metrics::pod(object);
    let _ = event::binding(object);
    let _ = owners::read(object);
    let _ = cluster::budget(object);
    let _ = cluster::namespace_facts(object, &mut Texts::default());
    let _ = recommendation::read(object);
    let _ = quota::quota(object);
    let _ = workload::assumed(object, &context);
    for (version, kind) in workload::KINDS {
        let mut value = value.clone();
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".to_owned(), version.into());
            fields.insert("kind".to_owned(), kind.into());
        }
        let _ = workload::read(&Tree::from(&value), &context);
    }
}

proptest! {
    #[test]
    fn no_shape_is_a_panic(value in some_value()) {
        read_as_everything(&value);
    }

    /// One wrong field is told of by its path, or does not matter.
    #[test]
    fn a_damaged_pod_is_an_error_that_names_the_damage(place in any::<prop::sample::Index>(), damage in some_value()) {
        let mut all = Vec::new();
        places(&rich(), "", &mut all);
        let place = &all[place.index(all.len())];
        let mut pod = rich();
        *pod.pointer_mut(place).expect("listed") = damage;
        read_as_everything(&pod);
        if let Err(error) = pod::facts(&Tree::from(&pod), &Context::new()) {
            let pointer = |path: &str| path.replace(['.', '['], "/").replace(']', "");
            for problem in error.problems {
                let at = format!("/{}", pointer(&problem.path));
                let near = at.starts_with(place.as_str()) || place.starts_with(at.trim_end_matches('/'));
                prop_assert!(near, "{} is told of at {}", place, problem.path);
            }
        }
    }

    #[test]
    fn no_text_is_a_panic(text in "\\PC{0,12}|[-+0-9.hmsnuµ]{0,12}") {
        let _ = duration::parse(&text);
    }
}
