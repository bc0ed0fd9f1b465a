//! What does the annotator look at, and what is kept of it?

use crate::cluster::Event;
use crate::cluster::resource::{CONFIG_MAPS, NODES, PODS};
use crate::cluster::watch::{logged, watched};
use crate::sources::metrics_api::Measurements;
use crate::sources::prometheus::Answered;
use jiff::Timestamp;
use loadline_api as api;
use loadline_api::json::Skip;
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

/// A node, and by what else monitoring may name it.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub facts: NodeFacts,
    pub addresses: Vec<Arc<str>>,
}

/// Where a pod was sent, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Binding {
    pub node: String,
    pub at: Timestamp,
}

watched!(Nodes: NODES, skip api::node::SKIP_BUT_ADDRESSES, Box<Node>, |o| {
    let facts = api::node::facts(o).map(logged)?;
    Ok(Box::new(Node { facts, addresses: api::node::addresses(o) }))
});
watched!(Pods: PODS, skip api::pod::SKIP_BUT_BINDING, Option<Binding>, |o| {
    Ok(api::pod::bound(o).map(|(node, at)| Binding { node, at }))
});
watched!(ConfigMaps: CONFIG_MAPS, skip Skip::MANAGED_FIELDS, BTreeMap<String, String>, api::cluster::config_map);
