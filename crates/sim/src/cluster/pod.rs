//! Pods and nodes, as far as simulated nodes and controllers look at them.

use super::{ObjectMeta, meta, resource};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::json::Tree;
use loadline_core::qos::Class;
use loadline_core::requests::{self, Options};
use loadline_core::resources::List;
use loadline_core::select::node::{NodeAffinity, Required};
use loadline_core::select::{Taint, Toleration};
use loadline_core::view::Phase;
use loadline_services::cluster::{Resource, Watched};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// After how long a pod ends by itself.
pub const RUN_FOR: &str = "loadline.dev/run-for";
/// How long a pod lingers after it is asked to end.
pub const STOP_AFTER: &str = "loadline.dev/stop-after";

/// One container.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Container {
    pub name: String,
    /// What it runs.
    #[serde(default)]
    pub image: String,
    /// What it asks for.
    #[serde(default)]
    pub resources: requests::Requirements,
    /// `Always` makes a sidecar of an init container.
    #[serde(default)]
    pub restart_policy: Option<String>,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pod {
    pub meta: ObjectMeta,
    /// The node it is bound to.
    pub node: Option<String>,
    /// Who is to bind it.
    pub scheduler: String,
    /// Does something else hold it back from being bound?
    pub gated: bool,
    pub containers: Vec<Container>,
    pub init_containers: Vec<Container>,
    /// What it asks for as a whole.
    pub requests: List,
    /// What it demands of its node.
    pub required: Required,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// Does it use the addresses of its node?
    pub host_network: bool,
    /// Where it is in its life.
    pub phase: Phase,
    /// How well it is served, as the API server says.
    pub class: Class,
    /// Since when it is ready.
    pub ready: Option<Timestamp>,
    /// Since when its node runs it.
    pub started: Option<Timestamp>,
    pub ip: Option<String>,
    /// Why it is not bound, as last told.
    pub unschedulable: Option<String>,
    /// Since when the `PodScheduled` condition holds.
    pub scheduled: Option<Timestamp>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Raw {
    spec: RawSpec,
    status: RawStatus,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawSpec {
    node_name: Option<String>,
    scheduler_name: Option<String>,
    scheduling_gates: Vec<Value>,
    containers: Vec<Container>,
    init_containers: Vec<Container>,
    node_selector: BTreeMap<String, String>,
    affinity: Option<RawAffinity>,
    tolerations: Vec<Toleration>,
    host_network: bool,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawAffinity {
    node_affinity: Option<NodeAffinity>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawStatus {
    phase: Phase,
    qos_class: String,
    conditions: Vec<RawCondition>,
    start_time: Option<Timestamp>,
    #[serde(rename = "podIP")]
    pod_ip: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct RawCondition {
    r#type: String,
    status: String,
    message: Option<String>,
    last_transition_time: Option<Timestamp>,
}

impl Watched for Pod {
    const RESOURCE: Resource = resource::PODS;
    type Facts = Self;

    fn read(object: &Tree<'_>) -> Result<Self, Error> {
        let (_, asks) = meta::read::<requests::Pod>("Pod", object)?;
        let requests = requests::requests(&asks, Options::default());
        let (meta, Raw { spec, status }) = meta::read("Pod", object)?;
        let condition = |name: &str| status.conditions.iter().find(|c| c.r#type == name);
        let since = |name: &str| {
            let held = condition(name).filter(|c| c.status == "True")?;
            Some(held.last_transition_time.unwrap_or(Timestamp::UNIX_EPOCH))
        };
        let unschedulable = condition("PodScheduled").filter(|c| c.status == "False");
        let affinity = spec.affinity.and_then(|a| a.node_affinity).and_then(|a| a.required);
        Ok(Self {
            node: spec.node_name.filter(|name| !name.is_empty()),
            scheduler: spec.scheduler_name.unwrap_or_default(),
            gated: !spec.scheduling_gates.is_empty(),
            requests,
            required: Required::new(&spec.node_selector, affinity.as_ref()),
            tolerations: spec.tolerations,
            host_network: spec.host_network,
            containers: spec.containers,
            init_containers: spec.init_containers,
            phase: status.phase,
            class: Class::named(&status.qos_class).unwrap_or_default(),
            ready: since("Ready"),
            scheduled: since("PodScheduled"),
            unschedulable: unschedulable.and_then(|c| c.message.clone()),
            started: status.start_time,
            ip: status.pod_ip.filter(|ip| !ip.is_empty()),
            meta,
        })
    }
}

impl Pod {
    /// Is it neither over nor being deleted?
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.phase.is_over() && !self.meta.is_deleted()
    }

    /// Has it been ready for this many seconds?
    #[must_use]
    pub fn is_available(&self, min_ready_seconds: i64, now: Timestamp) -> bool {
        self.ready.is_some_and(|since| {
            min_ready_seconds == 0 || now.duration_since(since).as_secs() >= min_ready_seconds
        })
    }

    /// After how long it ends by itself, if ever. A value that is no duration counts as none.
    #[must_use]
    pub fn run_for(&self) -> Option<Duration> {
        self.duration(RUN_FOR)
    }

    /// How long it lingers after it is asked to end.
    #[must_use]
    pub fn stop_after(&self) -> Duration {
        self.duration(STOP_AFTER).unwrap_or_default()
    }

    fn duration(&self, annotation: &str) -> Option<Duration> {
        let parsed: jiff::SignedDuration = self.meta.annotation(annotation)?.parse().ok()?;
        Duration::try_from(parsed).ok()
    }
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    pub meta: ObjectMeta,
    /// Marks that keep pods away.
    pub taints: Vec<Taint>,
    /// Is it cordoned?
    pub unschedulable: bool,
    /// Does it say it is ready?
    pub ready: bool,
    /// What it has for pods.
    pub allocatable: List,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNode {
    spec: RawNodeSpec,
    status: RawNodeStatus,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNodeSpec {
    taints: Vec<Taint>,
    unschedulable: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct RawNodeStatus {
    conditions: Vec<RawCondition>,
    allocatable: List,
}

impl Watched for Node {
    const RESOURCE: Resource = resource::NODES;
    type Facts = Self;

    fn read(object: &Tree<'_>) -> Result<Self, Error> {
        let (meta, RawNode { spec, status }) = meta::read("Node", object)?;
        let ready = status.conditions.iter().any(|c| c.r#type == "Ready" && c.status == "True");
        Ok(Self {
            meta,
            taints: spec.taints,
            unschedulable: spec.unschedulable,
            ready,
            allocatable: status.allocatable,
        })
    }
}
