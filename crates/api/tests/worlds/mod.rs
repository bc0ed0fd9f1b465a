//! Small worlds: some nodes, pods already on them, and one pod that looks for a place.
//!
//! A world is kept in a short form, one line of JSON, and becomes objects of the API where it is used. Names of
//! nodes are `@1`, `@2`, … in the short form, also where labels and affinity speak of them, and get a prefix of
//! their world: no two worlds ever share a node.

#![allow(dead_code, reason = "with and without a control plane, not the same parts are used")]

pub mod crowd;
pub mod dice;
pub mod differences;
pub mod generate;
pub mod ours;
pub mod queue;
pub mod real;
pub mod storage;
pub mod unasked;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Every namespace there is, with its labels. Namespaces cannot be deleted without a controller, so all worlds
/// share these.
pub const NAMESPACES: &[(&str, &[(&str, &str)])] = &[
    ("red", &[("team", "a"), ("stage", "live")]),
    ("blue", &[("team", "b"), ("stage", "live")]),
    ("green", &[("team", "a")]),
    ("plain", &[]),
];

/// Every priority class, with its value. None preempts, so that what the scheduler says is about places only.
pub const CLASSES: &[(&str, i32)] = &[("low", -5), ("mid", 0), ("high", 1000)];

/// Classes of worlds that are about preemption, with their value and policy.
pub const RANKS: &[(&str, i32, &str)] = &[
    ("batch", -100, "PreemptLowerPriority"),
    ("base", 0, "PreemptLowerPriority"),
    ("serve", 100, "PreemptLowerPriority"),
    ("urgent", 1000, "PreemptLowerPriority"),
    ("patient", 1000, "Never"),
];

/// Every priority class as an object.
pub fn classes() -> Vec<Value> {
    let class = |name: &str, value: i32, policy: &str| json!({"metadata": {"name": name}, "value": value, "preemptionPolicy": policy});
    let quiet = CLASSES.iter().map(|(name, value)| class(name, *value, "Never"));
    quiet.chain(RANKS.iter().map(|(name, value, policy)| class(name, *value, policy))).collect()
}

/// A node, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Node {
    pub name: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cordoned: bool,
    /// What is allocatable.
    pub has: BTreeMap<String, String>,
    /// Images, each by its names, with their size in bytes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<(Vec<String>, i64)>,
}

/// What has become of a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    There,
    /// Being deleted, with an hour to go.
    Leaving,
    Succeeded,
    Failed,
}

impl State {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks with a reference")]
    fn is_there(&self) -> bool {
        *self == Self::There
    }

    /// The phase of a pod that has ended.
    pub fn over(self) -> Option<&'static str> {
        match self {
            Self::Succeeded => Some("Succeeded"),
            Self::Failed => Some("Failed"),
            Self::There | Self::Leaving => None,
        }
    }
}

/// A pod, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pod {
    pub name: String,
    #[serde(rename = "in")]
    pub namespace: String,
    /// Its node; none looks for one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub on: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// What each container asks for.
    pub asks: Vec<BTreeMap<String, String>>,
    /// What init containers ask for, and whether each is a sidecar.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub init: Vec<(BTreeMap<String, String>, bool)>,
    /// Ports of the first container.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<Value>,
    /// Images of containers, then of init containers; those without one have `none`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// Kind and name of who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<(String, String)>,
    /// Its priority class.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub class: String,
    /// Further fields of the spec, as they are.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub spec: Map<String, Value>,
    #[serde(skip_serializing_if = "State::is_there")]
    pub state: State,
    /// When it started, in seconds of its day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<u32>,
}

/// How many pods may be disrupted, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    pub name: String,
    #[serde(rename = "in")]
    pub namespace: String,
    /// As it is.
    pub selector: Value,
    pub allowed: usize,
    /// Pods that are about to go, and counted already.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disrupted: Vec<String>,
}

/// A service, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Service {
    pub name: String,
    #[serde(rename = "in")]
    pub namespace: String,
    pub selector: Option<BTreeMap<String, String>>,
}

/// A workload that selects pods, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    pub kind: String,
    pub name: String,
    #[serde(rename = "in")]
    pub namespace: String,
    /// As it is.
    pub selector: Value,
    /// Labels of the pods it makes.
    pub labels: BTreeMap<String, String>,
}

/// A world, short.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct World {
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<Service>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub workloads: Vec<Workload>,
    /// Classes, volumes, claims and what else storage is made of, as they are but for the version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
    /// The one that looks for a place.
    pub pod: Pod,
}

/// What became of the pod.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// It got a node. Where several would do, how far each is behind the best.
    Bound {
        node: String,
        behind: BTreeMap<String, i64>,
        /// Which of its claims get which volumes that are there, on that node.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        volumes: BTreeMap<String, String>,
    },
    /// It got none, and why, with what is said of preemption.
    Refused(String),
    /// It got none, and pods have to go for it. Those that are leaving already count.
    Preempts { why: String, node: String, victims: BTreeSet<String> },
}

/// A world and what kube-scheduler made of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    pub world: World,
    pub outcome: Outcome,
}

/// The objects of a world.
#[derive(Clone, Debug)]
pub struct Objects {
    pub nodes: Vec<Value>,
    pub pods: Vec<(State, Value)>,
    pub pod: Value,
    /// Services, workloads and budgets.
    pub selecting: Vec<Value>,
    pub storage: Vec<Value>,
}

impl World {
    /// Are there objects of which the scheduler does not say when it hears of them?
    pub fn is_heard_of_silently(&self) -> bool {
        let selecting = !self.services.is_empty() || !self.workloads.is_empty() || !self.budgets.is_empty();
        selecting || !self.storage.is_empty()
    }

    /// As objects of the API, names of nodes starting with the prefix.
    pub fn objects(&self, prefix: &str) -> Objects {
        let named = |value: Value| -> Value {
            let text = value.to_string().replace("\"@", &format!("\"{prefix}"));
            serde_json::from_str(&text).expect("names need no escapes")
        };
        Objects {
            nodes: self.nodes.iter().map(|n| named(node(n))).collect(),
            pods: self.pods.iter().map(|p| (p.state, named(pod(p)))).collect(),
            pod: named(pod(&self.pod)),
            storage: self.storage.iter().map(|object| named(stored(object))).collect(),
            selecting: (self.services.iter().map(service))
                .chain(self.workloads.iter().map(workload))
                .chain(self.budgets.iter().map(budget))
                .collect(),
        }
    }
}

/// A message of a world whose names start with the prefix, as it would be without: names are in quotes.
pub fn unnamed(message: &str, prefix: &str) -> String {
    message.replace(&format!("\"{prefix}"), "\"@")
}

fn node(short: &Node) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": short.name, "labels": short.labels},
        "spec": {"taints": short.taints, "unschedulable": short.cordoned},
        "status": {
            "allocatable": short.has,
            "capacity": short.has,
            "conditions": [{"type": "Ready", "status": "True"}],
            "images": short.images.iter().map(|(names, size)| json!({"names": names, "sizeBytes": size})).collect::<Value>(),
        },
    })
}

/// Something of storage, with its version.
fn stored(short: &Value) -> Value {
    let core = short["kind"].as_str().is_some_and(|kind| kind.starts_with("Persistent"));
    let mut out = short.clone();
    out["apiVersion"] = if core { "v1" } else { "storage.k8s.io/v1" }.into();
    out
}

fn service(short: &Service) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": short.name, "namespace": short.namespace},
        "spec": {"clusterIP": "None", "ports": [{"port": 80}], "selector": short.selector},
    })
}

/// Its status is what the disruption controller would write; none runs.
fn budget(short: &Budget) -> Value {
    let disrupted: BTreeMap<&str, &str> =
        short.disrupted.iter().map(|pod| (pod.as_str(), "2026-01-01T00:00:00Z")).collect();
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": short.name, "namespace": short.namespace},
        "spec": {"selector": short.selector, "maxUnavailable": 1},
        "status": {"disruptionsAllowed": short.allowed, "disruptedPods": disrupted,
            "currentHealthy": short.allowed, "desiredHealthy": 0, "expectedPods": short.allowed},
    })
}

/// What is made of pods that nobody makes.
fn workload(short: &Workload) -> Value {
    let container = json!({"name": "c", "image": "none"});
    let mut out = json!({
        "apiVersion": if short.kind == "ReplicationController" { "v1" } else { "apps/v1" },
        "kind": short.kind,
        "metadata": {"name": short.name, "namespace": short.namespace},
        "spec": {
            "selector": short.selector,
            "template": {"metadata": {"labels": short.labels}, "spec": {"containers": [container]}},
        },
    });
    if short.kind == "StatefulSet" {
        out["spec"]["serviceName"] = "none".into();
    }
    out
}

fn pod(short: &Pod) -> Value {
    let container = |kind: &str, at: usize, asks: &BTreeMap<String, String>, image: Option<&String>| {
        // Of what is not shared, a limit as large must be given.
        let whole = |name: &str| name.contains('/') || name.starts_with("hugepages-");
        let limits: BTreeMap<_, _> = asks.iter().filter(|(name, _)| whole(name)).collect();
        let image = image.map_or("none", |image| image);
        json!({"name": format!("{kind}{at}"), "image": image, "resources": {"requests": asks, "limits": limits}})
    };
    let (images, init_images) = short.images.split_at(short.images.len().min(short.asks.len()));
    let mut containers: Vec<Value> =
        short.asks.iter().enumerate().map(|(at, asks)| container("c", at, asks, images.get(at))).collect();
    containers[0]["ports"] = short.ports.clone().into();
    let init = short.init.iter().enumerate().map(|(at, (asks, sidecar))| {
        let mut out = container("i", at, asks, init_images.get(at));
        if *sidecar {
            out["restartPolicy"] = "Always".into();
        }
        out
    });
    let mut spec = short.spec.clone();
    spec.insert("initContainers".into(), init.collect());
    spec.insert("containers".into(), containers.into());
    spec.insert("terminationGracePeriodSeconds".into(), 3600.into());
    if !short.on.is_empty() {
        spec.insert("nodeName".into(), short.on.as_str().into());
    }
    if !short.class.is_empty() {
        spec.insert("priorityClassName".into(), short.class.as_str().into());
    }
    let mut out = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": short.name, "namespace": short.namespace, "labels": short.labels},
        "spec": spec,
    });
    if let Some(second) = short.started {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        out["status"] = json!({"startTime": format!("2026-01-01T{hour:02}:{minute:02}:{second:02}Z")});
    }
    if let Some((kind, name)) = &short.owner {
        let version = match kind.as_str() {
            "ReplicationController" => "v1",
            "Job" => "batch/v1",
            _ => "apps/v1",
        };
        let owner =
            json!({"apiVersion": version, "kind": kind, "name": name, "uid": "some-uid", "controller": true});
        out["metadata"]["ownerReferences"] = json!([owner]);
    }
    out
}
