//! A varied cluster in a real API server, the same with every run.
//!
//! The names of nodes are such that both orders of filling agree: Karmada takes zones as they come, nodes by name,
//! ours takes zones by name, too. What the two count differently on purpose (sidecars, resources of whole pods) is
//! not in here; see `listed.rs`.

use loadline_testkit::ControlPlane;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value, json};

/// How many nodes there are.
pub const NODES: usize = 60;
/// How many pods.
pub const PODS: usize = 300;

/// Region and zone of a node, in the order in which both fill them; the first nodes are one of each.
const ZONES: [(&str, &str); 4] = [("", ""), ("", "a"), ("east", "a"), ("east", "b")];

/// A resource that some nodes have beyond the usual: extended, huge pages, volumes, and one that only looks native.
pub const SCALARS: [(&str, &[&str]); 4] = [
    ("example.com/gpu", &["1", "4", "8"]),
    ("hugepages-2Mi", &["512Mi", "1Gi"]),
    ("attachable-volumes-csi-example", &["25"]),
    ("slots.kubernetes.io/batch", &["1000"]),
];

/// Taints, with the cordon's and those of a node that is not ready.
pub const TAINTS: [(&str, &str, &str); 6] = [
    ("dedicated", "gpu", "NoSchedule"),
    ("spot", "", "NoExecute"),
    ("old", "5", "NoSchedule"),
    ("busy", "yes", "PreferNoSchedule"),
    ("node.kubernetes.io/not-ready", "", "NoExecute"),
    ("node.kubernetes.io/unreachable", "", "NoSchedule"),
];

/// Labels and what they may be.
pub const LABELS: [(&str, &[&str]); 5] = [
    ("disk", &["ssd", "hdd", "nvme"]),
    ("generation", &["1", "2", "07", "12", "x7", "9223372036854775808"]),
    ("pool", &["general", "gpu", "spot"]),
    ("example.com/team", &["a", "b"]),
    ("empty", &[""]),
];

/// Fills the cluster.
pub fn build(plane: &ControlPlane, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    for index in 0..NODES {
        let (node, allocatable) = node(&mut rng, index);
        let name = node["metadata"]["name"].as_str().expect("a name").to_owned();
        plane.create("/api/v1/nodes", &node).expect("a node");
        let status = json!({"status": {"capacity": allocatable, "allocatable": allocatable}});
        plane.patch(&format!("/api/v1/nodes/{name}/status"), &status).expect("what it has");
    }
    let overhead = json!({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "boxed"},
        "handler": "boxed", "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}}});
    plane.create("/apis/node.k8s.io/v1/runtimeclasses", &overhead).expect("a runtime class");
    for index in 0..PODS {
        pod(plane, &mut rng, index);
    }
}

pub fn node_name(index: usize) -> String {
    format!("node-{index:03}")
}

fn some<'a>(rng: &mut StdRng, from: &[&'a str]) -> &'a str {
    from.choose(rng).expect("there are some")
}

fn node(rng: &mut StdRng, index: usize) -> (Value, Value) {
    let name = node_name(index);
    let mut labels = Map::new();
    let (region, zone) =
        ZONES.get(index).copied().unwrap_or_else(|| *ZONES.choose(rng).expect("there are some"));
    for (key, value) in [("topology.kubernetes.io/region", region), ("topology.kubernetes.io/zone", zone)] {
        if !value.is_empty() {
            labels.insert(key.into(), value.into());
        }
    }
    // A few do not say what they are called, and one says something else.
    if rng.random_bool(0.9) {
        labels.insert("kubernetes.io/hostname".into(), name.clone().into());
    }
    if index == 7 {
        labels.insert("kubernetes.io/hostname".into(), node_name(8).into());
    }
    for (key, values) in LABELS {
        if rng.random_bool(0.6) {
            labels.insert(key.into(), some(rng, values).into());
        }
    }
    let mut taints = Vec::new();
    for (key, value, effect) in TAINTS {
        if rng.random_bool(0.12) {
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
    }
    let mut allocatable = Map::new();
    allocatable.insert("cpu".into(), some(rng, &["4", "8", "3920m", "15890m", "64", "500m"]).into());
    let memory = ["8Gi", "31Gi", "16374580Ki", "64G", "1000000001", "7500000000500m"];
    allocatable.insert("memory".into(), some(rng, &memory).into());
    // Nodes without places take nothing.
    if rng.random_bool(0.95) {
        allocatable.insert("pods".into(), some(rng, &["110", "110", "30", "8", "3", "0"]).into());
    }
    if rng.random_bool(0.7) {
        allocatable.insert("ephemeral-storage".into(), some(rng, &["100Gi", "47093746742", "1M"]).into());
    }
    for (scalar, amounts) in SCALARS {
        if rng.random_bool(0.3) {
            allocatable.insert(scalar.into(), some(rng, amounts).into());
        }
    }
    let spec = json!({"unschedulable": rng.random_bool(0.1), "taints": taints});
    (json!({"metadata": {"name": name, "labels": labels}, "spec": spec}), allocatable.into())
}

fn container(rng: &mut StdRng, name: &str) -> Value {
    let mut requests = Map::new();
    if rng.random_bool(0.8) {
        requests.insert("cpu".into(), some(rng, &["10m", "100m", "250m", "1", "1500m", "3"]).into());
    }
    if rng.random_bool(0.8) {
        let amounts = ["32Mi", "100M", "1Gi", "4Gi", "1000000001"];
        requests.insert("memory".into(), some(rng, &amounts).into());
    }
    if rng.random_bool(0.2) {
        requests.insert("ephemeral-storage".into(), some(rng, &["1Gi", "500M"]).into());
    }
    // Those must not be promised twice: request and limit are the same.
    let mut limits = Map::new();
    if rng.random_bool(0.1) {
        let scalar = some(rng, &["example.com/gpu", "slots.kubernetes.io/batch"]);
        limits.insert(scalar.into(), "1".into());
    }
    // Only a limit: the API server makes the request of it.
    if rng.random_bool(0.1) {
        requests.remove("memory");
        limits.insert("memory".into(), "256Mi".into());
    }
    json!({"name": name, "image": "none", "resources": {"requests": requests, "limits": limits}})
}

fn pod(plane: &ControlPlane, rng: &mut StdRng, index: usize) {
    let name = format!("pod-{index:03}");
    let mut spec = json!({"containers": [container(rng, "a")], "terminationGracePeriodSeconds": 3600});
    // Some are nowhere yet, and some on a node that is not there.
    match rng.random_range(0..20) {
        0 => {}
        1 => spec["nodeName"] = "ghost".into(),
        _ => spec["nodeName"] = node_name(rng.random_range(0..NODES)).into(),
    }
    if rng.random_bool(0.3) {
        let second = container(rng, "b");
        spec["containers"].as_array_mut().expect("a list").push(second);
    }
    // Best effort: asks for nothing.
    if rng.random_bool(0.15) {
        spec["containers"] = json!([{"name": "a", "image": "none"}]);
    }
    if rng.random_bool(0.25) {
        spec["initContainers"] = json!([container(rng, "i"), container(rng, "j")]);
    }
    if rng.random_bool(0.15) {
        spec["runtimeClassName"] = "boxed".into();
    }
    let list = "/api/v1/namespaces/default/pods";
    plane.create(list, &json!({"metadata": {"name": name}, "spec": spec})).expect("a pod");
    let phase =
        *["Running", "Running", "Running", "Pending", "Succeeded", "Failed"].choose(rng).expect("one");
    let status = json!({"status": {"phase": phase}});
    plane.patch(&format!("{list}/{name}/status"), &status).expect("a phase");
    // It stays until its kubelet says that it is gone, and there is none.
    if rng.random_bool(0.1) {
        plane.delete(&format!("{list}/{name}")).expect("a pod that ends");
    }
}
