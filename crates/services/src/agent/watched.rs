//! Which objects does an agent look at, and what is kept of them?

use crate::cluster::Event;
use crate::cluster::resource::{NODES, PODS, Resource};
use crate::cluster::watch::{logged, watched};
use loadline_api::json::{Skip, Tree};
use loadline_api::node::COOLING;
use loadline_api::qos::{GROUP, pod, rules, snapshot};
use loadline_api::{Error, Warning};
use loadline_core::qos;
use loadline_core::qos::policy::{Action, NodeQos};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::taint::{CONDITION, KEY};
use loadline_core::view::NodeFacts;
use serde::{Deserialize, Serialize};

pub const NODE_QOS: Resource = Resource::new(GROUP, "v1alpha1", "nodeqoss", "NodeQOS");
pub const POD_QOS: Resource = Resource::new(GROUP, "v1alpha1", "podqoss", "PodQOS");
pub const ACTIONS: Resource = Resource::new(GROUP, "v1alpha1", "avoidanceactions", "AvoidanceAction");

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Node(Event<Node>),
    Pod(Event<Box<Pod>>),
    NodeRules(Event<NodeQos>),
    Action(Event<Action>),
    Scope(Event<Scope>),
    /// What the file of the scheduler's load policy says.
    Targets(Result<String, String>),
}

/// A node, as far as its agent looks at it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub view: qos::Node,
    /// What a scheduler sees of it.
    pub facts: Box<NodeFacts>,
    /// As they are written, others' included.
    pub taints: Vec<Taint>,
    /// Until when schedulers leave it alone, as it is written.
    pub cooling: Option<String>,
    /// Does its condition say that it has too much?
    pub overloaded: bool,
}

impl Node {
    /// Does it bear our taint?
    pub fn is_tainted(&self) -> bool {
        self.taints.iter().any(|taint| taint.key == KEY)
    }

    /// Does it bear our taint with that effect, as we write it, and none other of its key?
    pub fn is_tainted_with(&self, effect: &str) -> bool {
        let mut ours = self.taints.iter().filter(|taint| taint.key == KEY);
        let is_it =
            |taint: &Taint| taint.effect == effect && taint.value.as_deref().is_none_or(str::is_empty);
        ours.next().is_some_and(is_it) && ours.next().is_none()
    }

    /// Does it bear anything of ours that must go one day?
    pub fn is_marked(&self) -> bool {
        self.is_tainted() || self.overloaded || self.cooling.is_some()
    }
}

/// A taint with everything that is written of it: others' must stay as they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Taint {
    pub key: String,
    pub effect: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// A pod; nothing is measured of it yet.
#[derive(Clone, Debug)]
pub(super) struct Pod {
    pub pod: qos::Pod,
    pub node: Option<String>,
}

watched!(Nodes: NODES, skip snapshot::SKIP_NODE, Node, |o| node(o).map(logged));
watched!(Pods: PODS, skip pod::SKIP, Box<Pod>, |o| {
    let (pod, node) = pod::read(o).map(logged)?;
    Ok(Box::new(Pod { pod, node }))
});
watched!(NodeRules: NODE_QOS, skip Skip::MANAGED_FIELDS, NodeQos, |o| rules::node_qos(o).map(logged));
watched!(Actions: ACTIONS, skip Skip::MANAGED_FIELDS, Action, |o| rules::action(o).map(logged));
watched!(Scopes: POD_QOS, skip Skip::MANAGED_FIELDS, Scope, |o| rules::pod_qos(o).map(logged));

fn node(object: &Tree<'_>) -> Result<(Node, Vec<Warning>), Error> {
    let (node, warnings) = snapshot::node(object)?;
    // Only what is said of it depends on them.
    let facts = loadline_api::node::facts(object).map(|(facts, _)| Box::new(facts)).unwrap_or_default();
    let taints = Vec::<Taint>::deserialize(&object["spec"]["taints"]).unwrap_or_default();
    let cooling = object["metadata"]["annotations"][COOLING].as_str().map(str::to_owned);
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    let overloaded = conditions
        .filter(|one| one["type"].as_str() == Some(CONDITION))
        .any(|one| one["status"].as_str() == Some("True"));
    Ok((Node { view: node, facts, taints, cooling, overloaded }, warnings))
}
