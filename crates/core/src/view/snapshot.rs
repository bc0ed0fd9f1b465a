//! The cluster at one moment.

use super::groups::Groups;
use super::images::Index as ImageIndex;
use super::labels::Index as LabelIndex;
use super::siblings::Siblings;
use super::volumes::Storage;
use super::{HostPort, Labels, NodeId, Owner, Phase, Wants};
use crate::load::Load;
use crate::load::estimate::Asks;
use crate::load::need::{Day, Needs};
use crate::object::Key;
use crate::requests::NonZero;
use crate::resources::{Amounts, Names, Resource};
use crate::select::Taint;
use std::collections::BTreeMap;
use std::ops::Index;
use std::sync::Arc;

/// A node as decisions see it.
#[derive(Clone, Debug)]
pub struct NodeView {
    pub id: NodeId,
    pub name: Arc<str>,
    /// Is it there? Pods may be on a node nobody has told us of yet, or any more; nothing new goes there.
    pub present: bool,
    pub labels: Labels,
    pub annotations: Labels,
    pub taints: Arc<[Taint]>,
    /// Is it cordoned?
    pub unschedulable: bool,
    /// What it has for pods.
    pub allocatable: Amounts,
    /// What it has for pods of what is metered; `None` where it does not say.
    pub allocatable_load: [Option<i64>; 2],
    /// What it has in all of what is metered.
    pub capacity_load: [Option<i64>; 2],
    /// What its pods ask for, one of `pods` each.
    pub requested: Amounts,
    /// What its pods count as when scoring.
    pub nonzero: NonZero,
    /// How many volumes each driver can attach.
    pub attach_limits: Arc<BTreeMap<String, i64>>,
    /// Its pods that are not over, by arrival.
    pub pods: Vec<Arc<PodView>>,
    /// What they are expected to need together, but for those that leave.
    pub needs: Needs,
}

impl NodeView {
    /// What is free; negative where more is promised than there is.
    #[must_use]
    pub fn free(&self) -> Amounts {
        self.allocatable.minus(&self.requested)
    }

    /// The ports its pods take.
    pub fn ports(&self) -> impl Iterator<Item = &HostPort> {
        self.pods.iter().flat_map(|p| &p.wants.ports)
    }
}

/// A pod as decisions see it.
#[derive(Clone, Debug)]
pub struct PodView {
    pub key: Key,
    /// Its identity: a pod of the same name later is another pod.
    pub uid: Arc<str>,
    pub labels: Labels,
    /// What it asks for, with one of `pods`.
    pub requests: Amounts,
    /// What it counts as when scoring.
    pub nonzero: NonZero,
    /// What its load can be foretold from.
    pub asks: Arc<Asks>,
    /// What it is expected to use.
    pub estimate: Load,
    /// When in the day it is expected to use how much; `None` if all that is known is the estimate.
    pub day: Option<Arc<Day>>,
    /// Larger goes first, and stays longest.
    pub priority: i32,
    /// May lower ones be evicted for it?
    pub preempts: bool,
    /// Who made it.
    pub owner: Option<Owner>,
    /// Does a `DaemonSet` own it?
    pub daemon: bool,
    /// Where it is in its life.
    pub phase: Phase,
    /// Is it being deleted?
    pub terminating: bool,
    /// Since when it exists.
    pub created: Option<jiff::Timestamp>,
    /// Since when its node has known of it.
    pub accepted: Option<jiff::Timestamp>,
    /// Since when all of it runs.
    pub started: Option<jiff::Timestamp>,
    /// The node others were evicted from for it.
    pub nominated: Option<Arc<str>>,
    /// What it wants of its node.
    pub wants: Arc<Wants>,
}

impl PodView {
    /// What it is expected to use by the hour; all day the same if all that is known is the estimate.
    #[must_use]
    pub fn need(&self) -> Day {
        self.day.as_deref().copied().unwrap_or_else(|| Day::flat(self.estimate.cpu_nano))
    }
}

/// One number per node, side by side: what a scan over all nodes reads.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// What is free, by resource, then by node.
    pub free: Vec<Vec<i64>>,
    /// What there is of CPU (thousandths) and memory (bytes).
    pub allocatable: [Vec<i64>; 2],
    /// What pods count as of CPU (thousandths) and memory (bytes) when scoring.
    pub nonzero: [Vec<i64>; 2],
    /// Which of [`Snapshot::taints`] a node has.
    pub taints: Vec<u32>,
    /// Is the node cordoned?
    pub unschedulable: Vec<bool>,
}

impl Columns {
    pub(super) fn grow(&mut self, nodes: usize, resources: usize) {
        self.free.resize_with(resources.max(self.free.len()), Vec::new);
        let pairs = self.allocatable.iter_mut().chain(&mut self.nonzero);
        for column in self.free.iter_mut().chain(pairs) {
            column.resize(nodes.max(column.len()), 0);
        }
        self.taints.resize(nodes.max(self.taints.len()), 0);
        self.unschedulable.resize(nodes.max(self.unschedulable.len()), false);
    }

    /// What is free of a resource on every node; nothing where nobody ever had any.
    #[must_use]
    pub fn free_of(&self, resource: Resource) -> &[i64] {
        self.free.get(resource.index()).map_or(&[], Vec::as_slice)
    }
}

/// The cluster at one moment. A clone shares everything and never changes.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Which snapshot: larger is newer.
    pub generation: u64,
    pub(super) names: Arc<Names>,
    pub(super) nodes: Arc<Vec<Arc<NodeView>>>,
    pub(super) columns: Arc<Columns>,
    pub(super) order: Arc<Vec<NodeId>>,
    pub(super) rank: Arc<Vec<u32>>,
    pub(super) labels: Arc<LabelIndex>,
    pub(super) taints: Arc<Vec<Arc<[Taint]>>>,
    /// How often a list of taints came or went.
    pub(super) taints_version: u64,
    pub(super) groups: Arc<Groups>,
    pub(super) images: Arc<ImageIndex>,
    pub(super) siblings: Arc<Siblings>,
    pub(super) namespaces: Arc<BTreeMap<Arc<str>, Labels>>,
    /// Pods that others were evicted for, and the node they wait for.
    pub(super) nominated: Arc<Vec<(NodeId, Arc<PodView>)>>,
    pub(super) nominations: u64,
    pub(super) exclusive: Arc<BTreeMap<Arc<str>, u32>>,
    /// Of how many pods on nodes a day is known.
    pub(super) days: u64,
    pub(super) storage: Arc<Storage>,
}

impl Snapshot {
    /// The resources all vectors here are indexed by.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// How long a column is: one more than the largest number given out.
    #[must_use]
    pub fn width(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes that are there, by name.
    #[must_use]
    pub fn nodes(&self) -> impl ExactSizeIterator<Item = &NodeView> {
        self.order.iter().map(|id| &*self.nodes[id.index()])
    }

    /// Where a node stands among all in the order of names.
    #[must_use]
    pub fn rank(&self, id: NodeId) -> u32 {
        self.rank.get(id.index()).copied().unwrap_or(u32::MAX)
    }

    /// One number per node.
    #[must_use]
    pub fn columns(&self) -> &Columns {
        &self.columns
    }

    /// The nodes by label.
    #[must_use]
    pub fn labels(&self) -> &LabelIndex {
        &self.labels
    }

    /// Another one after each time a list of taints came or went.
    #[must_use]
    pub fn taints_version(&self) -> u64 {
        self.taints_version
    }

    /// The lists of taints nodes have; most have the same few. Since when is left out, for nobody who places a pod asks.
    #[must_use]
    pub fn taints(&self) -> &[Arc<[Taint]>] {
        &self.taints
    }

    /// The pods that are somewhere, by what they look like to others.
    #[must_use]
    pub fn groups(&self) -> &Groups {
        &self.groups
    }

    /// The nodes by image.
    #[must_use]
    pub fn images(&self) -> &ImageIndex {
        &self.images
    }

    /// What services and workloads select.
    #[must_use]
    pub fn siblings(&self) -> &Siblings {
        &self.siblings
    }

    /// The labels of a namespace. One nobody told us of has the label every namespace has: its name.
    #[must_use]
    pub fn namespace_labels(&self, name: &str) -> Labels {
        self.namespaces.get(name).cloned().unwrap_or_else(|| {
            Labels::plain(&BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())]))
        })
    }

    /// Pods that others were evicted for, and the node they wait for.
    #[must_use]
    pub fn nominated(&self) -> &[(NodeId, Arc<PodView>)] {
        &self.nominated
    }

    /// Changes whenever [`Snapshot::nominated`] does.
    #[must_use]
    pub fn nominations(&self) -> u64 {
        self.nominations
    }

    /// How many pods use a claim that only one may use, by `namespace/name`.
    #[must_use]
    pub fn users(&self, claim: &str) -> u32 {
        self.exclusive.get(claim).copied().unwrap_or(0)
    }

    /// Of how many pods on nodes is known when in the day they use how much?
    #[must_use]
    pub fn days(&self) -> u64 {
        self.days
    }

    /// What claims without a volume can get.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The node of that name.
    #[must_use]
    pub fn find_node(&self, name: &str) -> Option<&NodeView> {
        let at = self.order.binary_search_by(|id| (*self.nodes[id.index()].name).cmp(name));
        at.ok().map(|i| &*self.nodes[self.order[i].index()])
    }

    pub(super) fn node_mut(&mut self, id: NodeId) -> &mut NodeView {
        Arc::make_mut(&mut Arc::make_mut(&mut self.nodes)[id.index()])
    }

    /// Counts a pod on a node, as far as the node is concerned: the groups are not told.
    pub(crate) fn put(&mut self, pod: &Arc<PodView>, id: NodeId) {
        let node = self.node_mut(id);
        node.pods.push(pod.clone());
        node.requested.add(&pod.requests);
        node.nonzero = node.nonzero.plus(pod.nonzero);
        if !pod.terminating {
            node.needs.add(pod.day.as_deref(), pod.estimate);
            self.days += u64::from(pod.day.is_some());
        }
        for claim in &pod.wants.exclusive {
            *Arc::make_mut(&mut self.exclusive).entry(claim.clone()).or_default() += 1;
        }
        self.write(id);
    }

    /// Takes a pod that was put on a node off again, as far as the node is concerned: the groups are not told.
    pub(crate) fn take(&mut self, pod: &Arc<PodView>, id: NodeId) {
        let node = self.node_mut(id);
        let Some(at) = node.pods.iter().position(|p| Arc::ptr_eq(p, pod)) else { return };
        node.pods.remove(at);
        node.requested.sub(&pod.requests);
        node.nonzero = node.nonzero.minus(pod.nonzero);
        if !pod.terminating {
            node.needs.remove(pod.day.as_deref(), pod.estimate);
            self.days -= u64::from(pod.day.is_some());
        }
        for claim in &pod.wants.exclusive {
            let users = Arc::make_mut(&mut self.exclusive);
            if let Some(count) = users.get_mut(claim) {
                *count -= 1;
                if *count == 0 {
                    users.remove(claim);
                }
            }
        }
        self.write(id);
    }

    /// Brings the columns of a node up to date.
    pub(super) fn write(&mut self, id: NodeId) {
        self.generation += 1;
        let node = &self.nodes[id.index()];
        let columns = Arc::make_mut(&mut self.columns);
        let at = id.index();
        for (column, resource) in columns.free.iter_mut().zip(Resource::all()) {
            column[at] = node.allocatable.get(resource).saturating_sub(node.requested.get(resource));
        }
        columns.allocatable[0][at] = node.allocatable.get(Resource::CPU);
        columns.allocatable[1][at] = node.allocatable.get(Resource::MEMORY);
        columns.nonzero[0][at] = node.nonzero.cpu_milli;
        columns.nonzero[1][at] = node.nonzero.memory_bytes;
    }

    /// The pods of a node that are not over.
    pub fn pods_on(&self, node: NodeId) -> impl Iterator<Item = &PodView> {
        self[node].pods.iter().map(|p| &**p)
    }
}

/// Numbers are only meaningful in snapshots of the [`super::Live`] that gave them out.
impl Index<NodeId> for Snapshot {
    type Output = NodeView;

    fn index(&self, id: NodeId) -> &NodeView {
        &self.nodes[id.index()]
    }
}
