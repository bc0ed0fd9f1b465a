//! Are facts the same whether or not the fields nobody reads are skipped while decoding?

use loadline_api::json::{Skip, Tree};
use loadline_api::{Context, cluster, context, node, owners, pod, qos, quota, waiting};
use loadline_core::view::Texts;
use serde_json::{Value, json};
use std::fmt::Debug;

/// A kind, an object of it, and how it is read.
type Case = (&'static str, Value, fn(&Tree<'_>) -> String);

/// A reader, what it says it does not read, an object with everything in it, and fields that must be gone.
struct Row {
    name: &'static str,
    skip: Skip,
    object: Value,
    gone: &'static [&'static str],
    /// All that is read, problems and warnings included, as text.
    read: fn(&Tree<'_>) -> String,
}

fn shown<T: Debug>(read: T) -> String {
    format!("{read:?}")
}

fn rows() -> Vec<Row> {
    let managed: &[&str] = &["/metadata/managedFields"];
    let metadata: &[&str] = &["/metadata/managedFields", "/metadata/annotations"];
    let row = |name, skip, object, gone, read| Row { name, skip, object, gone, read };
    let mut rows = vec![
        row("node", node::SKIP, a_node(), NODE_GONE, |tree| shown(node::facts(tree))),
        row("pod, to be placed", pod::SKIP, a_pod(true), POD_GONE, |tree| {
            shown((pod::read(tree), pod::facts(tree, &Context::new()), waiting::unplaced(tree)))
        }),
        row("pod, to be counted", pod::SKIP_VOLUMES, a_pod(false), POD_GONE, |tree| {
            shown((pod::facts(tree, &Context::new()), waiting::unplaced(tree)))
        }),
        row("node with addresses", node::SKIP_BUT_ADDRESSES, a_node(), NODE_GONE, |tree| {
            shown((node::facts(tree), node::addresses(tree)))
        }),
        row("node with images", node::SKIP_BUT_IMAGES, a_node(), &NODE_GONE[..3], |tree| {
            shown(node::with_images(tree))
        }),
        row("service", cluster::SKIP_SERVICE, a_service(), metadata, |tree| shown(cluster::service(tree))),
        row("maker of pods", owners::SKIP, a_workload(), &["/spec/template", "/metadata/labels"], |tree| {
            shown(owners::read_as("apps", "ReplicaSet", tree))
        }),
        row("maker of makers", owners::SKIP_SELECTOR, a_workload(), &["/spec"], |tree| {
            shown(owners::read_as("apps", "Deployment", tree))
        }),
        row("pod that was bound", pod::SKIP_BUT_BINDING, a_pod(false), &["/spec/containers"], |tree| {
            shown(pod::bound(tree))
        }),
        row("replica set", waiting::SKIP, a_workload(), metadata, |tree| {
            shown((waiting::replica_set(tree), owners::made_by("apps", "ReplicaSet", tree)))
        }),
        row("deployment", waiting::SKIP, a_workload(), metadata, |tree| shown(waiting::deployment(tree))),
        row("protected node", qos::snapshot::SKIP_NODE, a_node(), PROTECTED_NODE_GONE, |tree| {
            shown((qos::snapshot::node(tree), tree["status"]["conditions"].as_array().map(<[_]>::len)))
        }),
        row("protected pod", qos::pod::SKIP, a_pod(true), &POD_GONE[2..], |tree| shown(qos::pod::read(tree))),
        row("quota", quota::SKIP, a_quota(), metadata, |tree| shown(quota::quota(tree))),
    ];
    let others: [Case; 9] = [
        ("namespace", a_node(), |tree| shown(cluster::namespace_facts(tree, &mut Texts::default()))),
        ("budget", a_budget(), |tree| shown(cluster::budget(tree))),
        ("priority class", a_quota(), |tree| shown(context::priority_class(tree))),
        ("claim", a_claim(), |tree| shown(context::claim(tree))),
        ("volume", a_volume(), |tree| shown(context::volume(tree))),
        ("storage class", a_quota(), |tree| shown(context::storage_class(tree))),
        ("CSI node", a_quota(), |tree| shown(context::csi_node(tree))),
        ("node rules", a_quota(), |tree| shown(qos::rules::node_qos(tree))),
        ("workload", a_workload(), |tree| shown(owners::read_as("apps", "Deployment", tree))),
    ];
    rows.extend(others.map(|(name, object, read)| row(name, Skip::MANAGED_FIELDS, object, managed, read)));
    rows
}

fn metadata() -> Value {
    json!({
        "name": "x", "namespace": "shop", "uid": "u", "generation": 3, "resourceVersion": "7",
        "labels": {"env": "prod", "image": "x", "volumes": "y", "managedFields": "z"},
        "annotations": {"a": "b", "loadline.dev/cooling-until": "2025-01-01T00:00:00Z",
            "volume.beta.kubernetes.io/storage-class": "fast"},
        "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}], "finalizers": ["f"],
        "creationTimestamp": "2025-01-01T00:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r",
            "controller": true}],
    })
}

const NODE_GONE: &[&str] =
    &["/metadata/managedFields", "/status/nodeInfo", "/status/conditions", "/status/images"];

const PROTECTED_NODE_GONE: &[&str] = &["/metadata/managedFields", "/status/nodeInfo", "/status/images"];

fn a_node() -> Value {
    json!({
        "metadata": metadata(),
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true, "podCIDRs": ["10.0.0.0/24"]},
        "status": {"allocatable": {"cpu": "4", "pods": "110"}, "capacity": {"cpu": "5", "memory": "1Gi"},
            "images": [{"names": ["i"], "sizeBytes": 1}], "nodeInfo": {"kernelVersion": "6"},
            "conditions": [{"type": "Ready", "status": "True"}], "addresses": [{"type": "Hostname", "address": "x"}]},
    })
}

const POD_GONE: &[&str] = &[
    "/metadata/managedFields",
    "/metadata/annotations",
    "/spec/containers/0/env",
    "/spec/containers/0/livenessProbe",
    "/spec/initContainers/0/volumeMounts",
    "/spec/ephemeralContainers",
    "/status/containerStatuses/0/imageID",
];

/// A pod with everything in it that facts are read from, and much that they are not.
fn a_pod(volumes: bool) -> Value {
    let container = |name: &str| {
        json!({
            "name": name, "image": "i", "command": ["c"], "args": ["a"], "env": [{"name": "A", "value": "b"}],
            "envFrom": [{"configMapRef": {"name": "m"}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "livenessProbe": {"periodSeconds": 1}, "securityContext": {"runAsUser": 1},
            "ports": [{"containerPort": 80, "hostPort": 8080}], "resizePolicy": [{"resourceName": "cpu"}],
            "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
        })
    };
    let status = |name: &str| {
        json!({"name": name, "image": "i", "imageID": "x", "containerID": "y", "restartCount": 0,
            "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}},
            "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}})
    };
    let mut sidecar = container("s");
    sidecar["restartPolicy"] = json!("Always");
    let mut pod = json!({
        "metadata": metadata(),
        "spec": {
            "nodeName": null, "priority": 7, "priorityClassName": "high", "nodeSelector": {"env": "prod"},
            "overhead": {"cpu": "10m"}, "schedulerName": "loadline", "schedulingGates": [{"name": "g"}],
            "containers": [container("c")], "initContainers": [container("i"), sidecar],
            "ephemeralContainers": [container("e")], "imagePullSecrets": [{"name": "s"}],
            "securityContext": {"fsGroup": 1}, "tolerations": [{"key": "k", "operator": "Exists"}],
            "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"env": "prod"}}}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}},
                "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "zone", "labelSelector": {"matchLabels": {"image": "x"}}}]}},
            "resources": {"requests": {"cpu": "3"}},
        },
        "status": {
            "phase": "Pending", "podIPs": [{"ip": "1.2.3.4"}], "qosClass": "Burstable",
            "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "why",
                "lastTransitionTime": "2025-01-01T00:00:00Z"}],
            "containerStatuses": [status("c")], "initContainerStatuses": [status("i"), status("s")],
        },
    });
    if volumes {
        pod["spec"]["volumes"] = json!([{"name": "v", "emptyDir": {}}, {"name": "p",
            "persistentVolumeClaim": {"claimName": "p"}}, {"name": "d", "azureDisk": {"diskURI": "d"}}]);
    }
    pod
}

fn a_workload() -> Value {
    json!({"metadata": metadata(), "status": {"replicas": 3},
        "spec": {"selector": {"matchLabels": {"app": "web"}}, "template": a_pod(true)}})
}

fn a_service() -> Value {
    json!({"metadata": metadata(), "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}],
        "clusterIP": "10.0.0.1", "clusterIPs": ["10.0.0.1"]}, "status": {"loadBalancer": {}}})
}

/// And whatever else fits into one object.
fn a_quota() -> Value {
    json!({
        "metadata": metadata(), "value": 7, "globalDefault": true, "preemptionPolicy": "Never",
        "volumeBindingMode": "WaitForFirstConsumer",
        "spec": {"hard": {"pods": "9"}, "scopes": ["NotBestEffort"], "scopeSelector": {"matchExpressions": [
            {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]},
            "drivers": [{"name": "d", "allocatable": {"count": 3}}],
            "selector": {"matchLabels": {"a": "b"}}, "rules": [{"name": "r", "actionName": "a",
                "metricRule": {"name": "cpu_total_usage", "value": "6"}}]},
        "status": {"hard": {"pods": "10"}, "used": {"pods": "2"}},
    })
}

fn a_budget() -> Value {
    json!({"metadata": metadata(), "spec": {"selector": {"matchLabels": {"a": "b"}}},
        "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2025-01-01T00:00:00Z"}}})
}

fn a_claim() -> Value {
    json!({"metadata": metadata(), "spec": {"volumeName": "v", "accessModes": ["ReadWriteOncePod"]},
        "status": {"phase": "Bound"}})
}

fn a_volume() -> Value {
    json!({"metadata": metadata(), "spec": {"csi": {"driver": "d", "volumeHandle": "h"}, "nodeAffinity": {"required":
        {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}}})
}

/// What the reader makes of the object, with everything decoded and without what is skipped.
fn both(row: &Row, object: &Value) -> (String, String) {
    let text = object.to_string();
    let read = |skip| (row.read)(&Tree::parse(text.as_bytes(), skip).expect("valid JSON"));
    (read(Skip::NOTHING), read(row.skip))
}

/// What is left of the object.
fn lean(row: &Row) -> Value {
    let text = row.object.to_string();
    Value::from(&Tree::parse(text.as_bytes(), row.skip).expect("valid JSON"))
}

#[test]
fn facts_are_the_same_without_what_is_skipped() {
    for row in rows() {
        let (whole, skipped) = both(&row, &row.object);
        assert_eq!(whole, skipped, "{}", row.name);
        assert!(!whole.contains("Err("), "{}: {whole}", row.name);
        let left = lean(&row);
        for path in row.gone {
            assert!(
                row.object.pointer(path).is_some() && left.pointer(path).is_none(),
                "{}: {path}",
                row.name
            );
        }
    }
}

#[test]
fn templates_are_not_touched() {
    let text = a_workload().to_string();
    let left = Value::from(&Tree::parse(text.as_bytes(), waiting::SKIP).expect("valid JSON"));
    assert_eq!(left["spec"], a_workload()["spec"]);
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

#[test]
fn whatever_is_written_in_a_field_that_is_skipped_reads_the_same() {
    let others = [
        json!(-1),
        json!(true),
        json!("other"),
        json!([]),
        json!([1]),
        json!([{"name": "n", "status": "True"}]),
        json!({"name": "n", "cpu": "x"}),
    ];
    for row in rows() {
        let left = lean(&row);
        let mut all = Vec::new();
        places(&row.object, "", &mut all);
        let skipped = |place: &&String| {
            let above = place.rsplit_once('/').map_or("", |(above, _)| above);
            left.pointer(place).is_none() && left.pointer(above).is_some()
        };
        for place in all.iter().filter(skipped) {
            for other in &others {
                let mut object = row.object.clone();
                *object.pointer_mut(place).expect("a place in it") = other.clone();
                let (whole, skipped) = both(&row, &object);
                assert_eq!(whole, skipped, "{} with {other} in {place}", row.name);
            }
        }
    }
}
