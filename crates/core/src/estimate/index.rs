//! Keeping the free resources current: every event changes what it touches and nothing else.

use super::view::{Node, View};
use super::{Quota, Room};
use crate::load::recommend::Target;
use crate::resources::{Amounts, Names, Resource};
use crate::view::{NodeFacts, Owner, PodFacts};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The cluster's free resources as the events so far tell them.
///
/// Applying the same event twice changes nothing; the order of events about different objects does not matter.
#[derive(Debug, Default)]
pub struct Index {
    names: Names,
    nodes: BTreeMap<String, Node>,
    pods: BTreeMap<String, (String, Amounts)>,
}

impl Index {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A node is there, and this is what it is like.
    pub fn set_node(&mut self, facts: &NodeFacts) {
        let allocatable = self.names.amounts(&facts.allocatable);
        let node = Node {
            labels: facts.labels.clone(),
            taints: facts.taints.clone(),
            unschedulable: facts.unschedulable,
            allocatable,
            requested: Amounts::default(),
        };
        self.nodes.insert(facts.name.clone(), node);
    }

    /// A node is gone. Its pods count again when it comes back.
    pub fn remove_node(&mut self, name: &str) {
        self.nodes.remove(name);
    }

    /// A pod is there, as its object says now.
    pub fn set_pod(&mut self, facts: &PodFacts) {
        self.remove_pod(&facts.uid);
        if let Some(node) = facts.node.clone().filter(|_| !facts.phase.is_over()) {
            let requests = self.names.amounts(&facts.requests).with(Resource::PODS, 1);
            self.pods.insert(facts.uid.clone(), (node, requests));
        }
    }

    /// A pod is gone, by uid.
    pub fn remove_pod(&mut self, uid: &str) {
        self.pods.remove(uid);
    }

    /// How much more load a node takes; `None` if that is not known.
    pub fn set_room(&mut self, node: &str, room: Option<Room>) {
        let _ = (node, room, self);
    }

    /// A quota is there, as its object says now.
    pub fn set_quota(&mut self, quota: Quota) {
        let _ = (quota, self);
    }

    /// A quota is gone.
    pub fn remove_quota(&mut self, namespace: &str, name: &str) {
        let _ = (namespace, name, self);
    }

    /// Who controls a workload: pods of a `ReplicaSet` are pods of its `Deployment`.
    pub fn controlled(&mut self, workload: Target, by: Option<Owner>) {
        let _ = (workload, by, self);
    }

    /// How many pods are known.
    #[must_use]
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// The cluster as it is now, for readers; it stays as it is.
    pub fn publish(&mut self) -> View {
        let mut nodes = self.nodes.clone();
        for (node, requests) in self.pods.values() {
            if let Some(node) = nodes.get_mut(node) {
                node.requested.add(requests);
            }
        }
        View { names: self.names.clone(), nodes: Arc::new(nodes) }
    }
}
