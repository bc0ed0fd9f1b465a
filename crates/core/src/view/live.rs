//! Keeping the view current: every event changes what it touches and nothing else.

use super::siblings::Maker;
use super::snapshot::{NodeView, PodView, Snapshot};
use super::volumes::Storage;
use super::{Labels, NamespaceFacts, NodeFacts, NodeId, Phase, PodFacts, Texts};
use crate::load::Load;
use crate::load::need::Needs;
use crate::object::Key;
use crate::quantity::Quantity;
use crate::requests::NonZero;
use crate::resources::{Amounts, Resource};
use crate::select::{Selector, Taint};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a pod was and where it is now.
#[derive(Clone, Debug)]
pub struct Moved {
    /// The pod as it is now.
    pub pod: Arc<PodView>,
    /// The node it was counted on.
    pub from: Option<NodeId>,
    /// The node it is counted on.
    pub to: Option<NodeId>,
}

/// The cluster as the events so far tell it.
///
/// Applying the same event twice changes nothing; the order of events about different objects does not matter.
#[derive(Clone, Debug, Default)]
pub struct Live {
    now: Snapshot,
    texts: Texts,
    slots: FxHashMap<Arc<str>, NodeId>,
    free: Vec<NodeId>,
    pods: FxHashMap<Arc<str>, (NodeId, Arc<PodView>)>,
    /// How many nodes have each list of taints.
    tainted: Vec<u32>,
    unordered: bool,
}

impl Live {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The cluster now. A clone of it stays as it is.
    pub fn snapshot(&mut self) -> &Snapshot {
        if self.unordered {
            self.unordered = false;
            let nodes = &self.now.nodes;
            let mut order: Vec<NodeId> = nodes.iter().filter(|n| n.present).map(|n| n.id).collect();
            order.sort_unstable_by(|a, b| nodes[a.index()].name.cmp(&nodes[b.index()].name));
            let mut rank = vec![u32::MAX; nodes.len()];
            for (id, at) in order.iter().zip(0..) {
                rank[id.index()] = at;
            }
            self.now.order = order.into();
            self.now.rank = rank.into();
        }
        &self.now
    }

    /// One node now. Unlike a snapshot this needs no order among nodes, which many new ones would upset every time.
    #[must_use]
    pub fn node(&self, id: NodeId) -> &NodeView {
        &self.now[id]
    }

    /// The number of a node, if it has one.
    #[must_use]
    pub fn id(&self, node: &str) -> Option<NodeId> {
        self.slots.get(node).copied()
    }

    /// A node is there, and this is what it is like.
    pub fn set_node(&mut self, facts: &NodeFacts) -> NodeId {
        let id = self.slot(&facts.name);
        let names = Arc::make_mut(&mut self.now.names);
        let allocatable = names.amounts(&facts.allocatable);
        let resources = names.len();
        let labels = Labels::new(&facts.labels, &mut self.texts);
        let node = self.node_mut(id);
        let (before, was) = (node.labels.clone(), node.present);
        node.present = true;
        node.labels = labels.clone();
        node.annotations = Labels::plain(&facts.annotations);
        node.taints = facts.taints.as_slice().into();
        node.unschedulable = facts.unschedulable;
        node.allocatable = allocatable;
        node.allocatable_load = loads(&facts.allocatable);
        node.capacity_load = loads(&facts.capacity);
        node.attach_limits = Arc::new(facts.attach_limits.clone());
        let (name, taints) = (node.name.clone(), node.taints.clone());
        if !was || before != labels {
            let index = Arc::make_mut(&mut self.now.labels);
            if was {
                index.remove(id, &name, &before);
            }
            index.add(id, &name, &labels);
        }
        if !self.now.images.is(id, &facts.images) {
            Arc::make_mut(&mut self.now.images).set(id, &facts.images);
        }
        self.unordered |= !was;
        let class = self.taint_class(&taints);
        let width = self.now.nodes.len();
        let columns = Arc::make_mut(&mut self.now.columns);
        columns.grow(width, resources);
        let before = std::mem::replace(&mut columns.taints[id.index()], class);
        columns.unschedulable[id.index()] = facts.unschedulable;
        if was {
            self.untaint(before);
        }
        self.now.write(id);
        id
    }

    /// A node is cordoned.
    pub(crate) fn close(&mut self, id: NodeId) {
        self.node_mut(id).unschedulable = true;
        Arc::make_mut(&mut self.now.columns).unschedulable[id.index()] = true;
        self.now.write(id);
    }

    /// A node is gone. Its pods stay counted there until they are gone, too.
    pub fn remove_node(&mut self, name: &str) -> Option<NodeId> {
        let id = self.id(name)?;
        let node = self.node_mut(id);
        if !node.present {
            return None;
        }
        node.present = false;
        node.allocatable = Amounts::default();
        (node.allocatable_load, node.capacity_load) = Default::default();
        let labels = std::mem::take(&mut node.labels);
        Arc::make_mut(&mut self.now.labels).remove(id, name, &labels);
        if !self.now.images.is(id, &[]) {
            Arc::make_mut(&mut self.now.images).set(id, &[]);
        }
        self.unordered = true;
        self.untaint(self.now.columns.taints[id.index()]);
        self.now.write(id);
        self.release(id);
        Some(id)
    }

    /// What a pod looks like to decisions. Does not count it anywhere.
    pub fn view(&mut self, facts: &PodFacts, estimate: Load) -> PodView {
        let names = Arc::make_mut(&mut self.now.names);
        let requests = names.amounts(&facts.requests).with(Resource::PODS, 1);
        let (resources, width) = (names.len(), self.now.nodes.len());
        if resources > self.now.columns.free.len() {
            Arc::make_mut(&mut self.now.columns).grow(width, resources);
        }
        // Objects written by hand have no uid; their key is identity enough then.
        let uid = if facts.uid.is_empty() { facts.key.to_string().into() } else { facts.uid.clone() };
        PodView {
            key: Key { namespace: self.texts.share(&facts.key.namespace), name: facts.key.name.clone() },
            uid,
            labels: Labels::new(&facts.labels, &mut self.texts),
            requests,
            nonzero: facts.nonzero,
            asks: facts.asks.clone(),
            estimate,
            day: None,
            priority: facts.priority,
            preempts: facts.preempts,
            owner: facts.owner.clone(),
            daemon: facts.daemon,
            phase: facts.phase,
            terminating: facts.terminating,
            created: facts.created,
            accepted: facts.accepted,
            started: facts.started,
            nominated: facts.nominated.as_deref().map(Into::into),
            wants: facts.wants.clone(),
        }
    }

    /// A pod is there; it counts on its node unless it is over or has none.
    pub fn set_pod(&mut self, pod: PodView, node: Option<&str>) -> Moved {
        let pod = Arc::new(pod);
        let to = node.filter(|n| !n.is_empty() && !pod.phase.is_over()).map(|n| self.slot(n));
        let from = self.take(&pod.uid);
        self.nominate(&pod, to.is_none());
        if let Some(to) = to {
            self.put(&pod, to);
        }
        if let Some(from) = from.filter(|f| Some(*f) != to) {
            self.release(from);
        }
        Moved { pod, from, to }
    }

    /// Counts a pod on a node we chose, before anybody else knows.
    pub fn assume(&mut self, pod: &Arc<PodView>, node: NodeId) {
        self.take(&pod.uid);
        self.nominate(pod, false);
        self.put(pod, node);
    }

    /// A pod is gone, by uid. Says where it was counted.
    pub fn remove_pod(&mut self, uid: &str) -> Option<NodeId> {
        let gone = |(_, p): &(NodeId, Arc<PodView>)| &*p.uid == uid;
        if self.now.nominated.iter().any(gone) {
            self.now.nominations += 1;
            Arc::make_mut(&mut self.now.nominated).retain(|n| !gone(n));
        }
        let from = self.take(uid)?;
        self.release(from);
        Some(from)
    }

    /// Where a pod is counted, by uid.
    #[must_use]
    pub fn place(&self, uid: &str) -> Option<(NodeId, &Arc<PodView>)> {
        self.pods.get(uid).map(|(node, pod)| (*node, pod))
    }

    /// Every pod that counts somewhere, in no particular order.
    pub fn placed(&self) -> impl Iterator<Item = (NodeId, &Arc<PodView>)> {
        self.pods.values().map(|(node, pod)| (*node, pod))
    }

    /// A namespace has these labels.
    pub fn set_namespace(&mut self, facts: NamespaceFacts) {
        Arc::make_mut(&mut self.now.namespaces).insert(facts.name, facts.labels);
    }

    /// A service selects pods with all these labels; one without any selects none.
    pub fn set_service(&mut self, key: &Key, labels: &BTreeMap<String, String>) {
        Arc::make_mut(&mut self.now.siblings).set_service(key, labels, &mut self.texts);
    }

    /// A service is gone.
    pub fn remove_service(&mut self, key: &Key) {
        Arc::make_mut(&mut self.now.siblings).remove_service(key);
    }

    /// A workload selects its pods like this.
    pub fn set_workload(&mut self, maker: Maker, key: &Key, selector: Selector) {
        // Workloads are told of often, and hardly ever select others than before.
        if !self.now.siblings.knows(maker, key, &selector) {
            Arc::make_mut(&mut self.now.siblings).set_workload(maker, key, selector);
        }
    }

    /// A workload is gone.
    pub fn remove_workload(&mut self, maker: Maker, key: &Key) {
        Arc::make_mut(&mut self.now.siblings).remove_workload(maker, key);
    }

    /// How many volumes each driver can attach to a node that is there. Says which, if that is not what was known.
    pub fn set_attach_limits(&mut self, node: &str, limits: BTreeMap<String, i64>) -> Option<NodeId> {
        let id = self.id(node)?;
        let known = self.node(id);
        if !known.present || *known.attach_limits == limits {
            return None;
        }
        self.node_mut(id).attach_limits = Arc::new(limits);
        self.now.write(id);
        Some(id)
    }

    /// What claims without a volume can get.
    #[must_use]
    pub fn storage(&self) -> &Storage {
        &self.now.storage
    }

    /// What claims without a volume can get, to be changed.
    pub fn storage_mut(&mut self) -> &mut Storage {
        Arc::make_mut(&mut self.now.storage)
    }

    fn nominate(&mut self, pod: &Arc<PodView>, waiting: bool) {
        let known = self.now.nominated.iter().any(|(_, p)| p.uid == pod.uid);
        let to = pod.nominated.as_deref().filter(|_| waiting && pod.phase == Phase::Pending);
        if !known && to.is_none() {
            return;
        }
        self.now.nominations += 1;
        let to = to.map(|n| self.slot(n));
        let list = Arc::make_mut(&mut self.now.nominated);
        list.retain(|(_, p)| p.uid != pod.uid);
        list.extend(to.map(|to| (to, pod.clone())));
    }

    fn slot(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.slots.get(name) {
            return *id;
        }
        let nodes = Arc::make_mut(&mut self.now.nodes);
        let id = self.free.pop().unwrap_or_else(|| NodeId::at(nodes.len()));
        let name: Arc<str> = name.into();
        let node = Arc::new(NodeView::absent(id, name.clone()));
        match nodes.get_mut(id.index()) {
            Some(place) => *place = node,
            None => nodes.push(node),
        }
        self.slots.insert(name, id);
        let (width, resources) = (self.now.nodes.len(), self.now.names.len());
        Arc::make_mut(&mut self.now.columns).grow(width, resources);
        self.unordered = true;
        id
    }

    /// Gives the number of a node back when nothing refers to it any more.
    fn release(&mut self, id: NodeId) {
        let node = &self.now.nodes[id.index()];
        let awaited = self.now.nominated.iter().any(|(n, _)| *n == id);
        if !node.present && node.pods.is_empty() && !awaited {
            self.slots.remove(&node.name);
            self.free.push(id);
        }
    }

    fn node_mut(&mut self, id: NodeId) -> &mut NodeView {
        self.now.node_mut(id)
    }

    fn put(&mut self, pod: &Arc<PodView>, id: NodeId) {
        self.now.put(pod, id);
        Arc::make_mut(&mut self.now.groups).add(pod, id);
        self.pods.insert(pod.uid.clone(), (id, pod.clone()));
    }

    fn take(&mut self, uid: &str) -> Option<NodeId> {
        let (id, pod) = self.pods.remove(uid)?;
        self.now.take(&pod, id);
        Arc::make_mut(&mut self.now.groups).remove(&pod, id);
        Some(id)
    }

    /// The number of a list of taints, for one more node that has it.
    fn taint_class(&mut self, taints: &[Taint]) -> u32 {
        // When a taint was added makes no difference to who comes, and would make every outage a list of its own.
        let taints: Arc<[Taint]> = taints.iter().map(|t| Taint { time_added: None, ..t.clone() }).collect();
        let used = |class: &usize| self.tainted[*class] > 0;
        let known = (0..self.tainted.len()).filter(used).find(|class| self.now.taints[*class] == taints);
        let class = known.unwrap_or_else(|| {
            let free = self.tainted.iter().position(|count| *count == 0);
            let all = Arc::make_mut(&mut self.now.taints);
            let class = free.unwrap_or(all.len());
            if free.is_none() {
                all.push([].into());
                self.tainted.push(0);
            }
            all[class] = taints;
            self.now.taints_version += 1;
            class
        });
        self.tainted[class] += 1;
        u32::try_from(class).unwrap_or(u32::MAX)
    }

    /// One node fewer has that list of taints; one that nobody has is given out again.
    fn untaint(&mut self, class: u32) {
        let class = class as usize;
        let Some(count) = self.tainted.get_mut(class) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            Arc::make_mut(&mut self.now.taints)[class] = [].into();
            self.now.taints_version += 1;
        }
    }
}

impl NodeView {
    fn absent(id: NodeId, name: Arc<str>) -> Self {
        Self {
            id,
            name,
            present: false,
            labels: Labels::default(),
            annotations: Labels::default(),
            taints: [].into(),
            unschedulable: false,
            allocatable: Amounts::default(),
            allocatable_load: [None; 2],
            capacity_load: [None; 2],
            requested: Amounts::default(),
            nonzero: NonZero::default(),
            attach_limits: Arc::default(),
            pods: Vec::new(),
            needs: Needs::default(),
        }
    }
}

/// CPU in billionths of a core and memory in bytes, where a list has more than none of them.
pub(crate) fn loads(list: &crate::resources::List) -> [Option<i64>; 2] {
    let cpu = list.get("cpu").and_then(Quantity::nano_value).map(|n| i64::try_from(n).unwrap_or(i64::MAX));
    [cpu, list.get("memory").map(Quantity::value)].map(|amount| amount.filter(|a| *a > 0))
}
