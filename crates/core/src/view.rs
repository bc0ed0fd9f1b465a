//! What is the cluster like right now? Nodes and pods as decisions see them: lean, frozen, by dense number.
//!
//! Objects become views once, at the edge; a [`Snapshot`] never changes afterwards, so a decision reads it
//! without locks and gives the same answer for the same snapshot. Nodes and pods are numbered in the order of
//! their names: arrays indexed by [`NodeId`] or [`PodId`] replace maps, and results come out sorted.
//!
//! Pods that have ended hold nothing: they are in the snapshot, but not among the pods of their node.

use crate::requests::NonZero;
use crate::resources::{Amounts, Names, Resource};
use crate::select::{Lookup, Taint};
use indexmap::IndexSet;
use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

#[cfg(any(test, feature = "test-util"))]
pub mod build;
mod facts;

pub use facts::{
    Budget, Hold, HostPort, NamespaceFacts, NodeFacts, Owner, Phase, PodAffinity, PodFacts, PodTerm, Spread,
    Volume, Wants,
};

/// The number of a node in its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u32);

/// The number of a pod in its snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PodId(pub u32);

impl NodeId {
    /// As a position in an array with one place per node.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl PodId {
    /// As a position in an array with one place per pod.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Keeps one copy of every text: a hundred thousand pods share a few hundred labels.
#[derive(Clone, Debug, Default)]
pub struct Texts {
    known: IndexSet<Arc<str>>,
}

impl Texts {
    /// The shared copy of a text.
    pub fn share(&mut self, text: &str) -> Arc<str> {
        if let Some(known) = self.known.get(text) {
            return known.clone();
        }
        let new: Arc<str> = text.into();
        self.known.insert(new.clone());
        new
    }
}

/// Labels or annotations, sorted by key. Cloning shares them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Labels(Arc<[(Arc<str>, Arc<str>)]>);

impl Labels {
    /// From a map, sharing texts.
    #[must_use]
    pub fn new(from: &BTreeMap<String, String>, texts: &mut Texts) -> Self {
        Self(from.iter().map(|(k, v)| (texts.share(k), texts.share(v))).collect())
    }

    /// Keys and values, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }
}

impl Lookup for Labels {
    fn value(&self, key: &str) -> Option<&str> {
        self.0.binary_search_by(|(k, _)| (**k).cmp(key)).ok().map(|i| &*self.0[i].1)
    }
}

/// Where a pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere yet.
    Unbound,
    /// On a node of this snapshot.
    On(NodeId),
    /// On a node that is not in this snapshot; it is placed, and counts nowhere.
    Gone(Arc<str>),
}

/// A node as decisions see it.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// Its number.
    pub id: NodeId,
    /// Its name.
    pub name: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// Its annotations.
    pub annotations: Labels,
    /// Its taints.
    pub taints: Arc<[Taint]>,
    /// Is it cordoned?
    pub unschedulable: bool,
    /// What it has for pods.
    pub allocatable: Amounts,
    /// What its pods ask for, one of `pods` each.
    pub requested: Amounts,
    /// The difference; negative where more is promised than there is.
    pub free: Amounts,
    /// What its pods count as when scoring.
    pub nonzero: NonZero,
    /// Its pods that are not over.
    pub pods: Vec<PodId>,
}

/// A pod as decisions see it.
#[derive(Clone, Debug)]
pub struct PodView {
    /// Its number.
    pub id: PodId,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its identity: a pod of the same name later is another pod.
    pub uid: Arc<str>,
    /// Its labels.
    pub labels: Labels,
    /// What it asks for, with one of `pods`.
    pub requests: Amounts,
    /// What it counts as when scoring.
    pub nonzero: NonZero,
    /// Larger goes first, and stays longest.
    pub priority: i32,
    /// Who made it.
    pub owner: Option<Owner>,
    /// Where it is in its life.
    pub phase: Phase,
    /// Is it being deleted?
    pub terminating: bool,
    /// Since when it exists.
    pub created: Option<jiff::Timestamp>,
    /// Where it is.
    pub place: Place,
    /// What it wants of its node.
    pub wants: Arc<Wants>,
}

/// Collects facts and freezes them. A second object of the same name replaces the first.
#[derive(Clone, Debug, Default)]
pub struct Collect {
    nodes: BTreeMap<String, NodeFacts>,
    pods: BTreeMap<(String, String), PodFacts>,
}

impl Collect {
    /// Adds a node.
    pub fn node(&mut self, facts: NodeFacts) {
        self.nodes.insert(facts.name.clone(), facts);
    }

    /// Adds a pod.
    pub fn pod(&mut self, facts: PodFacts) {
        self.pods.insert((facts.namespace.clone(), facts.name.clone()), facts);
    }

    /// Numbers everything and adds up what is taken.
    #[must_use]
    pub fn freeze(self, generation: u64) -> Snapshot {
        let (mut names, mut texts) = (Names::new(), Texts::default());
        let nodes: Vec<NodeView> = self
            .nodes
            .into_values()
            .zip(0..)
            .map(|(f, i)| node(f, NodeId(i), &mut names, &mut texts))
            .collect();
        let mut out = Snapshot { generation, names: Names::new(), nodes, pods: Vec::new() };
        for (facts, i) in self.pods.into_values().zip(0..) {
            let pod = pod(facts, PodId(i), &out, &mut names, &mut texts);
            if let (Place::On(at), false) = (&pod.place, pod.phase.is_over()) {
                let node = &mut out.nodes[at.index()];
                node.requested.add(&pod.requests);
                node.nonzero.cpu_milli = node.nonzero.cpu_milli.saturating_add(pod.nonzero.cpu_milli);
                node.nonzero.memory_bytes =
                    node.nonzero.memory_bytes.saturating_add(pod.nonzero.memory_bytes);
                node.pods.push(pod.id);
            }
            out.pods.push(pod);
        }
        for node in &mut out.nodes {
            node.free = node.allocatable.minus(&node.requested);
        }
        Snapshot { names, ..out }
    }
}

fn node(facts: NodeFacts, id: NodeId, names: &mut Names, texts: &mut Texts) -> NodeView {
    let allocatable = names.amounts(&facts.allocatable);
    NodeView {
        id,
        name: facts.name.into(),
        labels: Labels::new(&facts.labels, texts),
        annotations: Labels::new(&facts.annotations, texts),
        taints: facts.taints.into(),
        unschedulable: facts.unschedulable,
        requested: Amounts::default(),
        free: allocatable.clone(),
        allocatable,
        nonzero: NonZero::default(),
        pods: Vec::new(),
    }
}

fn pod(facts: PodFacts, id: PodId, so_far: &Snapshot, names: &mut Names, texts: &mut Texts) -> PodView {
    let place = match facts.node.filter(|name| !name.is_empty()) {
        None => Place::Unbound,
        Some(name) => {
            so_far.find_node(&name).map_or_else(|| Place::Gone(texts.share(&name)), |n| Place::On(n.id))
        }
    };
    PodView {
        id,
        namespace: texts.share(&facts.namespace),
        name: facts.name.into(),
        uid: facts.uid.into(),
        labels: Labels::new(&facts.labels, texts),
        requests: names.amounts(&facts.requests).with(Resource::PODS, 1),
        nonzero: facts.nonzero,
        priority: facts.priority,
        owner: facts.owner,
        phase: facts.phase,
        terminating: facts.terminating,
        created: facts.created,
        place,
        wants: facts.wants,
    }
}

/// The cluster at one moment. Never changes.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// Which snapshot: larger is newer.
    pub generation: u64,
    names: Names,
    nodes: Vec<NodeView>,
    pods: Vec<PodView>,
}

impl Snapshot {
    /// The resources all vectors here are indexed by.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// All nodes, by name.
    #[must_use]
    pub fn nodes(&self) -> &[NodeView] {
        &self.nodes
    }

    /// All pods, by namespace and name.
    #[must_use]
    pub fn pods(&self) -> &[PodView] {
        &self.pods
    }

    /// The node of that name.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<&NodeView> {
        self.nodes.binary_search_by(|n| (*n.name).cmp(name)).ok().map(|i| &self.nodes[i])
    }

    /// The pod of that name.
    #[must_use]
    pub fn find_pod(&self, namespace: &str, name: &str) -> Option<&PodView> {
        let at = self.pods.binary_search_by(|p| (&*p.namespace, &*p.name).cmp(&(namespace, name)));
        at.ok().map(|i| &self.pods[i])
    }

    /// The pods of a node that are not over.
    pub fn pods_on(&self, node: NodeId) -> impl Iterator<Item = &PodView> {
        self[node].pods.iter().map(|id| &self[*id])
    }
}

/// Numbers are only meaningful in the snapshot that gave them out.
impl Index<NodeId> for Snapshot {
    type Output = NodeView;

    fn index(&self, id: NodeId) -> &NodeView {
        &self.nodes[id.index()]
    }
}

/// Numbers are only meaningful in the snapshot that gave them out.
impl Index<PodId> for Snapshot {
    type Output = PodView;

    fn index(&self, id: PodId) -> &PodView {
        &self.pods[id.index()]
    }
}

#[cfg(test)]
mod tests;
