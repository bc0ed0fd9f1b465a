//! Keeping the free resources current: every event changes what it touches and nothing else.

use super::chunks::Chunks;
use super::kinds::{Kind, Kinds};
use super::owners::Owners;
use super::rows::Rows;
use super::view::{NONE, Node, Pending, View};
use super::{Quota, Room};
use crate::ledger::Uid;
use crate::load::recommend::WorkloadRef;
use crate::object::Key;
use crate::resources::{Amounts, Names, Resource};
use crate::view::{NodeFacts, Owner, PodFacts, Texts};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// What the writer knows of a node beyond what readers see.
#[derive(Debug, Default)]
struct Slot {
    present: bool,
    allocatable: Amounts,
    requested: Amounts,
    /// Requested by priority, lowest first.
    by_priority: BTreeMap<i32, Amounts>,
    pods: u32,
}

/// A pod on a node, or waiting for one.
#[derive(Debug)]
enum Place {
    On { slot: u32, requests: Amounts, priority: i32, owner: Option<Arc<WorkloadRef>> },
    Waits { at: u32 },
}

/// The cluster's free resources as the events so far tell them.
///
/// Applying the same event twice changes nothing; the order of events about different objects does not matter.
#[derive(Debug, Default)]
pub struct Index {
    names: Arc<Names>,
    texts: Texts,
    kinds: Arc<Kinds>,
    rows: Rows,
    nodes: Chunks<Node>,
    rooms: Chunks<Option<Arc<Room>>>,
    slots: Vec<Slot>,
    by_name: FxHashMap<Arc<str>, u32>,
    unused: Vec<u32>,
    pods: FxHashMap<Uid, Place>,
    pending: Chunks<Option<Arc<Pending>>>,
    unused_pending: Vec<u32>,
    waiting: usize,
    owners: Owners,
    parents: FxHashMap<Arc<WorkloadRef>, Arc<WorkloadRef>>,
    quotas: Arc<BTreeMap<Arc<str>, Vec<Arc<Quota>>>>,
    order: Arc<OnceLock<Vec<u32>>>,
    present: usize,
    /// How many nodes' rooms are known.
    measured: usize,
}

impl Index {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A node is there, and this is what it is like.
    pub fn set_node(&mut self, facts: &NodeFacts) {
        let allocatable = self.amounts(&facts.allocatable);
        let kind = Kind::of(facts, &mut self.texts);
        let at = self.slot(&facts.name);
        let was = self.nodes.get(at as usize).map_or(NONE, |node| node.kind);
        if !self.slots[at as usize].present || !self.kinds.is(was, &kind) {
            let kinds = Arc::make_mut(&mut self.kinds);
            let new = kinds.enter(kind);
            if was != NONE {
                kinds.leave(was);
            }
            if let Some(node) = self.nodes.get_mut(at as usize) {
                node.kind = new;
            }
            self.order = Arc::default();
        }
        let slot = &mut self.slots[at as usize];
        if !slot.present {
            slot.present = true;
            self.present += 1;
        }
        slot.allocatable = allocatable;
        self.write(at);
    }

    /// A node is gone. Its pods count again if it comes back.
    pub fn remove_node(&mut self, name: &str) {
        let Some(at) = self.by_name.get(name).copied() else { return };
        let slot = &mut self.slots[at as usize];
        if !std::mem::replace(&mut slot.present, false) {
            return;
        }
        self.present -= 1;
        self.order = Arc::default();
        if let Some(node) = self.nodes.get_mut(at as usize) {
            if node.row != NONE {
                self.rows.leave(node.row);
            }
            Arc::make_mut(&mut self.kinds).leave(node.kind);
            (node.row, node.kind) = (NONE, NONE);
        }
        self.set_room(name, None);
        self.release(at);
    }

    /// A pod is there, as its object says now.
    pub fn set_pod(&mut self, facts: &PodFacts) {
        let uid = Uid::new(&facts.uid);
        let node = facts.node.as_deref().filter(|node| !node.is_empty());
        let requests = || self.names.find_all(&facts.requests).map(|all| all.with(Resource::PODS, 1));
        // Most news of a pod are about its status and change nothing here.
        if let (Some(Place::On { slot, requests: known, priority, owner }), Some(node)) =
            (self.pods.get(&uid), node)
            && !facts.phase.is_over()
            && is_owner(owner.as_deref(), facts.owner.as_ref())
            && *priority == facts.priority
            && self.by_name.get(node) == Some(slot)
            && requests().is_some_and(|new| new == *known)
        {
            return;
        }
        self.forget(uid);
        if facts.phase.is_over() {
            return;
        }
        let requests = self.amounts(&facts.requests).with(Resource::PODS, 1);
        let owner = facts.owner.as_ref().map(|owner| Arc::new(WorkloadRef::of(&facts.key.namespace, owner)));
        let place = match node {
            Some(node) => {
                let slot = self.slot(node);
                self.count(slot, &requests, facts.priority, true);
                if let Some(owner) = &owner {
                    self.owners.add(owner, &requests);
                }
                Place::On { slot, requests, priority: facts.priority, owner }
            }
            // One that is held back or on its way out will not take anything for now.
            None if facts.terminating || !facts.wants.holds.is_empty() => return,
            None => Place::Waits { at: self.wait(Pending::of(facts, requests)) },
        };
        self.pods.insert(uid, place);
    }

    /// A pod is gone, by uid.
    pub fn remove_pod(&mut self, uid: &str) {
        self.forget(Uid::new(uid));
    }

    fn forget(&mut self, uid: Uid) {
        match self.pods.remove(&uid) {
            None => {}
            Some(Place::On { slot, requests, priority, owner }) => {
                if let Some(owner) = &owner {
                    self.owners.remove(owner, &requests);
                }
                self.count(slot, &requests, priority, false);
                self.release(slot);
            }
            Some(Place::Waits { at }) => {
                if let Some(place) = self.pending.get_mut(at as usize) {
                    *place = None;
                }
                self.unused_pending.push(at);
                self.waiting -= 1;
            }
        }
    }

    fn wait(&mut self, pod: Pending) -> u32 {
        self.waiting += 1;
        let pod = Some(Arc::new(pod));
        match self.unused_pending.pop() {
            Some(at) => {
                if let Some(place) = self.pending.get_mut(at as usize) {
                    *place = pod;
                }
                at
            }
            None => number(self.pending.push(pod)),
        }
    }

    /// How much more load a node takes; `None` if that is not known.
    pub fn set_room(&mut self, node: &str, room: Option<Room>) {
        let Some(at) = self.by_name.get(node).map(|at| *at as usize) else { return };
        let known = self.rooms.get(at).and_then(Option::as_deref);
        if known == room.as_ref() {
            return;
        }
        self.measured = self.measured + usize::from(room.is_some()) - usize::from(known.is_some());
        if let Some(place) = self.rooms.get_mut(at) {
            *place = room.map(Arc::new);
        }
    }

    /// A quota is there, as its object says now.
    pub fn set_quota(&mut self, quota: Quota) {
        let quotas = Arc::make_mut(&mut self.quotas).entry(quota.key.namespace.clone()).or_default();
        match quotas.binary_search_by(|known| known.key.name.cmp(&quota.key.name)) {
            Ok(at) => quotas[at] = Arc::new(quota),
            Err(at) => quotas.insert(at, Arc::new(quota)),
        }
    }

    /// A quota is gone.
    pub fn remove_quota(&mut self, key: &Key) {
        let all = Arc::make_mut(&mut self.quotas);
        if let Some(quotas) = all.get_mut(&key.namespace) {
            quotas.retain(|quota| quota.key.name != key.name);
            if quotas.is_empty() {
                all.remove(&key.namespace);
            }
        }
    }

    /// Who controls a workload: pods of a `ReplicaSet` are pods of its `Deployment`. `None` if nobody does, or the
    /// workload is gone.
    pub fn controlled(&mut self, workload: WorkloadRef, by: Option<Owner>) {
        let parent = by.map(|owner| Arc::new(WorkloadRef::of(&workload.key.namespace, &owner)));
        let known = self.parents.get(&workload);
        if known == parent.as_ref() {
            return;
        }
        if let Some(known) = known.cloned() {
            self.owners.disown(&known, &workload);
        }
        match parent {
            None => {
                self.parents.remove(&workload);
            }
            Some(parent) => {
                let child = Arc::new(workload);
                self.owners.adopt(&parent, &child);
                self.parents.insert(child, parent);
            }
        }
    }

    /// How many nodes are there.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.present
    }

    /// How many pods are known that are not over.
    #[must_use]
    pub fn pod_count(&self) -> usize {
        self.pods.len()
    }

    /// The cluster as it is now, for readers; it stays as it is.
    #[must_use]
    pub fn publish(&self) -> View {
        View {
            names: self.names.clone(),
            kinds: self.kinds.clone(),
            blocks: self.rows.blocks.clone(),
            nodes: self.nodes.clone(),
            rooms: (self.measured > 0).then(|| self.rooms.clone()),
            pending: self.pending.clone(),
            owners: self.owners.clone(),
            quotas: self.quotas.clone(),
            order: self.order.clone(),
            node_count: self.present,
            pod_count: self.pods.len(),
            pending_count: self.waiting,
            row_count: self.rows.count(),
        }
    }

    /// Amounts by resource, without copying the names unless there is a new one.
    fn amounts(&mut self, list: &crate::resources::List) -> Amounts {
        match self.names.find_all(list) {
            Some(amounts) => amounts,
            None => Arc::make_mut(&mut self.names).amounts(list),
        }
    }

    fn slot(&mut self, name: &str) -> u32 {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let name: Arc<str> = name.into();
        let at = if let Some(at) = self.unused.pop() {
            if let Some(node) = self.nodes.get_mut(at as usize) {
                *node = Node::new(name.clone());
            }
            at
        } else {
            self.slots.push(Slot::default());
            self.rooms.push(None);
            number(self.nodes.push(Node::new(name.clone())))
        };
        self.by_name.insert(name, at);
        at
    }

    /// Gives a slot back once neither the node nor a pod needs it.
    fn release(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        if slot.present || slot.pods > 0 {
            return;
        }
        self.slots[at as usize] = Slot::default();
        if let Some(node) = self.nodes.get(at as usize) {
            self.by_name.remove(&node.name);
        }
        self.unused.push(at);
    }

    /// Counts a pod on a node, or takes it off.
    fn count(&mut self, at: u32, requests: &Amounts, priority: i32, on: bool) {
        let slot = &mut self.slots[at as usize];
        let level = slot.by_priority.entry(priority).or_default();
        if on {
            slot.requested.add(requests);
            level.add(requests);
            slot.pods += 1;
        } else {
            slot.requested.sub(requests);
            level.sub(requests);
            slot.pods -= 1;
        }
        if level.get(Resource::PODS) == 0 {
            slot.by_priority.remove(&priority);
        }
        if let Some(node) = self.nodes.get_mut(at as usize) {
            node.by_priority = slot.by_priority.iter().map(|(p, sum)| (*p, sum.clone())).collect();
        }
        self.write(at);
    }

    /// Brings the row of a node up to date.
    fn write(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        if !slot.present {
            return;
        }
        let free: Vec<i64> =
            slot.allocatable.minus(&slot.requested).iter().map(|(_, amount)| amount).collect();
        let Some(node) = self.nodes.get(at as usize) else { return };
        // Entering first keeps the row if nothing changed.
        let row = self.rows.enter(node.kind, &free);
        if node.row != NONE {
            self.rows.leave(node.row);
        }
        if node.row != row
            && let Some(node) = self.nodes.get_mut(at as usize)
        {
            node.row = row;
        }
    }
}

/// Is that still its controller?
fn is_owner(known: Option<&WorkloadRef>, now: Option<&Owner>) -> bool {
    match (known, now) {
        (None, None) => true,
        (Some(known), Some(now)) => {
            known.key.name == now.name && known.kind == now.kind && known.group == now.group
        }
        _ => false,
    }
}

fn number(at: usize) -> u32 {
    u32::try_from(at).unwrap_or(NONE)
}
