//! What does the annotator look at, and what is kept of it?

use crate::cluster::Event;
use crate::cluster::resource::{CONFIG_MAPS, NODES, PODS};
use crate::cluster::watch::{logged, watched};
use crate::sources::metrics_api::Measurements;
use crate::sources::prometheus::Answered;
use jiff::Timestamp;
use loadline_api as api;
use loadline_api::json::Skip;
use loadline_core::load::Both;
use loadline_core::load::estimate::nanocores;
use loadline_core::quantity::Quantity;
use loadline_core::select::taint::Taint;
use loadline_core::view::NodeFacts;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Node(Event<Box<Node>>),
    Pod(Event<Option<Binding>>),
    Policy(Event<BTreeMap<String, String>>),
    Measured(Measurements),
    Answered(Answered),
    /// The text of the policy's file, or why it cannot be read.
    File(Result<String, String>),
    /// What was kept of the past of nodes, or why that is not known.
    History(Result<Vec<Vec<u8>>, String>),
}

/// What is kept of a node: there are thousands.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub labels: BTreeMap<String, String>,
    /// Those that may be metrics, and ours.
    pub annotations: BTreeMap<String, String>,
    pub taints: Vec<Taint>,
    pub unschedulable: bool,
    /// Billionths of a CPU, and bytes.
    pub capacity: Both<Option<i64>>,
    /// By what else monitoring may name it.
    pub addresses: Vec<Arc<str>>,
}

impl Node {
    fn new(facts: NodeFacts, addresses: Vec<Arc<str>>) -> Self {
        let NodeFacts { labels, mut annotations, taints, unschedulable, capacity, .. } = facts;
        annotations.retain(|key, _| !key.contains('/') || key.starts_with("loadline.dev/"));
        let capacity = Both {
            cpu: capacity.get("cpu").map(nanocores),
            memory: capacity.get("memory").map(Quantity::value),
        };
        Self { labels, annotations, taints, unschedulable, capacity, addresses }
    }
}

/// Where a pod was sent, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub node: String,
    pub at: Timestamp,
}

watched!(Nodes: NODES, skip api::node::SKIP_BUT_ADDRESSES, Box<Node>, |o| {
    let facts = api::node::facts(o).map(logged)?;
    Ok(Box::new(Node::new(facts, api::node::addresses(o))))
});
watched!(Pods: PODS, skip api::pod::SKIP_BUT_BINDING, Option<Binding>, |o| {
    Ok(api::pod::bound(o).map(|(node, at)| Binding { node, at }))
});
watched!(ConfigMaps: CONFIG_MAPS, skip Skip::MANAGED_FIELDS, BTreeMap<String, String>, api::cluster::config_map);
