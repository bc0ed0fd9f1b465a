//! What is used on each node, and what is on its way there or gone already?
//!
//! A measurement is always late. A node is known by its newest sample: usage averaged over a window W that
//! ended at T. Pods that came since are not in it, pods that left since still are. The ledger keeps the
//! difference, so that everybody who asks for the load of a node gets the same answer:
//!
//! ```text
//! expected = measured + pending − departed          per resource, never negative
//! ```
//!
//! **Pending** is a pod that is assigned, by the cluster or by a reservation of ours, and not settled. It is
//! settled once it started and `started + settle <= T − W`: then the whole window has seen it run. A pod that
//! waits an hour for its image stays pending; its load will come. Without a sample everything is pending.
//! A pending pod counts with its estimate, or, where pod samples are used and one is not older than the node's,
//! with what the estimate exceeds it by.
//!
//! **Departed** is what the newest sample contains of pods that are gone, by their own last sample if that is
//! not older than five minutes before their end. Without one nothing is taken off: a guess could make a node look
//! idler than it is.
//!
//! **Reservations** are decisions in flight. They count from the moment of the decision, until the pod is seen
//! bound, binding fails, or they expire. Reservations of other schedulers cannot be known; their pods count when
//! they are seen bound.
//!
//! **Cooling** is a mark: load was just taken off this node by force, do not bring it straight back.
//!
//! Numbers only: nodes are slots handed out by the caller, pods are [`Uid`]s. A pod may be on a slot whose node
//! is not there (yet). All sums are kept exactly, and an event costs the same whatever the size of the cluster:
//! constant, or in the number of unsettled pods of its node.
//!
//! ```
//! use loadline_core::ledger::{Assigned, Ledger, Options, Sample, Uid};
//! use loadline_core::load::Load;
//! use loadline_core::view::NodeId;
//!
//! let (mut ledger, node, now) = (Ledger::new(Options::default()), NodeId(0), "2026-01-05T10:00:00Z".parse()?);
//! ledger.node(node);
//! ledger.sample(node, Sample { at: now, window: "15s".parse()?, usage: Load::new(800_000_000, 1 << 30) });
//! let web = Assigned { node, estimate: Load::new(500_000_000, 1 << 28), started: None };
//! ledger.reserve(Uid::new("a-pod"), web, now);
//! assert_eq!(ledger.figures(node).expected(), Some(Load::new(1_300_000_000, (1 << 30) + (1 << 28))));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::load::Load;
use crate::view::NodeId;
use jiff::Timestamp;
use std::collections::BTreeSet;

pub mod checkpoint;

mod chunks;
mod columns;
mod departures;
mod facts;
mod history;
mod node;
mod pods;
mod time;
mod uid;

use chunks::Chunks;
use columns::{Row, UNKNOWN as NO_MOMENT};
use departures::Departure;
use history::{Kept, Past};
use node::{Node, Sum};
use pods::{Measured, NEVER, NONE, Pods};
use time::{SHORT, length, moment, nanos};

pub use columns::{AllFigures, BLOCK, Block, UNKNOWN};
pub use facts::{Assigned, Figures, History, Ignored, Options, PodMetrics, Reserved, Sample, Taken};
pub use uid::Uid;

pub(crate) use history::Coarse;

/// What happens when time comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    /// A node has cooled.
    Cooled(u32),
    /// A reservation expires.
    Expired(u32),
}

/// The books of all nodes. See the [module](self).
#[derive(Clone, Debug)]
pub struct Ledger {
    settle: i64,
    reservation: i64,
    metrics: PodMetrics,
    pods: Pods,
    nodes: Chunks<Node, 64>,
    columns: AllFigures,
    changed: Vec<NodeId>,
    due: BTreeSet<(i64, Due)>,
}

impl Ledger {
    /// Empty books.
    #[must_use]
    pub fn new(rules: Options) -> Self {
        Self {
            settle: length(rules.settle).max(0),
            reservation: length(rules.reservation).max(0),
            metrics: rules.pods,
            pods: Pods::new(),
            nodes: Chunks::new(),
            columns: AllFigures::default(),
            changed: Vec::new(),
            due: BTreeSet::new(),
        }
    }

    /// How long after its start a pod's load is taken to be still on its way, from each node's next sample on.
    pub fn set_settle(&mut self, settle: jiff::SignedDuration) {
        self.settle = length(settle).max(0);
    }

    /// The node of this slot is there. Slots are to be handed out from 0 on: memory is kept up to the largest.
    pub fn node(&mut self, id: NodeId) {
        self.reach(id);
        let node = &mut self.nodes[id.index()];
        if !node.present {
            node.present = true;
            self.touch(id);
        }
    }

    /// The node is gone. Its samples, departures and cooling are forgotten; its pods stay until they are
    /// removed themselves.
    pub fn remove_node(&mut self, id: NodeId) {
        let i = id.index();
        if !self.nodes.get(i).is_some_and(|n| n.present) {
            return;
        }
        let node = &mut self.nodes[i];
        (node.present, node.past, node.gone) = (false, None, Box::default());
        let old = self.columns.row(i);
        self.due.remove(&(old.cooling, Due::Cooled(id.0)));
        let row = Row::EMPTY;
        self.resettle(i, &old, &row);
        self.publish(id, row);
        self.touch(id);
    }

    /// May the slot be given to another node? True once its node and all its pods are gone.
    #[must_use]
    pub fn is_vacant(&self, id: NodeId) -> bool {
        self.nodes.get(id.index()).is_none_or(|n| !n.present && n.pods == 0)
    }

    /// A pod is bound, as seen by watch. May be repeated; what is said last counts. Takes the place of a
    /// reservation.
    pub fn assign(&mut self, uid: Uid, pod: Assigned) {
        let started = pod.started.map_or(NEVER, nanos);
        self.put(uid, pod.node, pod.estimate.max(Load::ZERO), started, false);
    }

    /// A decision of ours is in flight: the pod counts from now on. A second reservation of the same pod takes
    /// the place of the first.
    pub fn reserve(&mut self, uid: Uid, pod: Assigned, now: Timestamp) -> Reserved {
        if let Some(place) = self.pods.find(uid).filter(|p| !self.pods[*p].is_reserved()) {
            return Reserved::Bound(NodeId(self.pods[place].node));
        }
        let expiry = nanos(now).saturating_add(self.reservation);
        self.put(uid, pod.node, pod.estimate.max(Load::ZERO), expiry, true);
        Reserved::Until(moment(expiry))
    }

    /// Binding failed: the reservation is gone at once. A pod seen bound is left alone.
    pub fn unreserve(&mut self, uid: Uid) {
        if let Some(place) = self.pods.find(uid).filter(|p| self.pods[*p].is_reserved()) {
            self.forget(place);
        }
    }

    /// The pod ended, was deleted or evicted at `at`. What the newest sample contains of it, if that was
    /// measured, is taken off from now on.
    pub fn remove(&mut self, uid: Uid, at: Timestamp) {
        let Some(place) = self.pods.find(uid) else { return };
        let (pod, end) = (self.pods[place], nanos(at));
        let proof = self.pods.measured(place).filter(|m| m.at >= end.saturating_sub(SHORT));
        let node = &mut self.nodes[pod.node as usize];
        if let (Some(measured), false, true, true) =
            (proof, pod.is_reserved(), node.present, pod.moment != NEVER)
        {
            let newest = match self.columns.row(pod.node as usize).at {
                NO_MOMENT => end,
                at => at,
            };
            let new = Departure { start: pod.moment, end, usage: measured.usage };
            let gone = std::mem::take(&mut node.gone).into_iter().chain([new]);
            node.gone = gone.filter(|d| !d.is_past(newest)).collect();
        }
        self.forget(place);
    }

    /// A node was measured. The caller refuses moments ahead of its clock: nothing is newer than a sample from
    /// the future.
    pub fn sample(&mut self, id: NodeId, sample: Sample) -> Taken {
        let i = id.index();
        if !self.nodes.get(i).is_some_and(|n| n.present) {
            return Taken::Ignored(Ignored::NoNode);
        }
        let (at, window, usage) = (nanos(sample.at), length(sample.window), sample.usage);
        if window < 0 || usage.cpu_nano < 0 || usage.memory_bytes < 0 {
            return Taken::Ignored(Ignored::Negative);
        }
        let old = self.columns.row(i);
        if at <= old.at {
            if at == old.at {
                return Taken::Ignored(Ignored::Repeated);
            }
            let kept = self.nodes[i].past.as_mut().map_or(Kept::TooOld, |p| p.insert(at, window, usage));
            return match kept {
                Kept::Yes => {
                    self.touch(id);
                    Taken::History
                }
                Kept::Repeated => Taken::Ignored(Ignored::Repeated),
                Kept::TooOld => Taken::Ignored(Ignored::TooOld),
            };
        }
        let node = &mut self.nodes[i];
        match &mut node.past {
            Some(past) => past.add(at, window, usage),
            missing => *missing = Some(Box::new(Past::new(at, window, usage))),
        }
        if node.gone.iter().any(|d| d.is_past(at)) {
            node.gone = node.gone.iter().filter(|d| !d.is_past(at)).copied().collect();
        }
        let row = Row { at, window, usage, ..old };
        self.resettle(i, &old, &row);
        self.publish(id, row);
        Taken::Newest
    }

    /// A pod was measured. Of pods that are not known, and when a newer sample is held, it does not count.
    pub fn pod_sample(&mut self, uid: Uid, sample: Sample) {
        let Some(place) = self.pods.find(uid) else { return };
        let (at, usage) = (nanos(sample.at), sample.usage);
        let bad = usage.cpu_nano < 0 || usage.memory_bytes < 0 || sample.window.is_negative();
        if bad || self.pods.measured(place).is_some_and(|held| held.at >= at) {
            return;
        }
        let Some(row) = self.pending_row(place) else {
            self.pods.set_measured(place, Some(Measured { at, usage }));
            return;
        };
        let before = self.share(place, &row);
        self.pods.set_measured(place, Some(Measured { at, usage }));
        let after = self.share(place, &row);
        if before != after {
            let id = NodeId(self.pods[place].node);
            let pending = &mut self.nodes[id.index()].pending;
            pending.sub(before);
            pending.add(after);
            self.publish(id, row);
        }
    }

    /// Load was taken off the node by force; it cools until then, or longer if that was said before. Of a node
    /// that is not there nothing is kept.
    pub fn cool(&mut self, id: NodeId, until: Timestamp) {
        if !self.nodes.get(id.index()).is_some_and(|n| n.present) {
            return;
        }
        let (row, until) = (self.columns.row(id.index()), nanos(until));
        if until > row.cooling {
            self.due.remove(&(row.cooling, Due::Cooled(id.0)));
            self.due.insert((until, Due::Cooled(id.0)));
            self.publish(id, Row { cooling: until, ..row });
        }
    }

    /// It is now so late: reservations expire and nodes have cooled.
    pub fn advance(&mut self, now: Timestamp) {
        let now = nanos(now);
        while let Some(due) = self.due.first().copied().filter(|(at, _)| *at <= now) {
            self.due.remove(&due);
            match due.1 {
                Due::Expired(place) => self.forget(place),
                Due::Cooled(node) => {
                    let row = self.columns.row(node as usize);
                    self.publish(NodeId(node), Row { cooling: NO_MOMENT, ..row });
                }
            }
        }
    }

    /// When [`Ledger::advance`] next has something to do.
    #[must_use]
    pub fn next_expiry(&self) -> Option<Timestamp> {
        self.due.first().map(|(at, _)| moment(*at))
    }

    /// The nodes whose figures or history changed since this was last asked, each once, in the order of their
    /// first change.
    pub fn changed(&mut self) -> impl Iterator<Item = NodeId> + use<> {
        let changed = std::mem::take(&mut self.changed);
        for id in &changed {
            self.nodes[id.index()].listed = false;
        }
        changed.into_iter()
    }

    /// What is known of a node; of one never heard of, nothing.
    #[must_use]
    pub fn figures(&self, id: NodeId) -> Figures {
        self.columns.figures(id)
    }

    /// The pending pods of a node and what each counts with, by identity: what an explanation lists.
    pub fn pending(&self, id: NodeId) -> impl Iterator<Item = (Uid, Load)> + use<> {
        let (head, row) =
            (self.nodes.get(id.index()).map_or(NONE, |n| n.unsettled), self.columns.row(id.index()));
        let mut out: Vec<_> =
            self.pods.chain(head).map(|(p, pod)| (pod.uid(), self.share(p, &row))).collect();
        out.sort_unstable_by_key(|(uid, _)| *uid);
        out.into_iter()
    }

    /// How loaded the node has been; none without a sample and without a checkpoint.
    #[must_use]
    pub fn history(&self, id: NodeId) -> Option<History> {
        let past = self.nodes.get(id.index())?.past.as_ref()?;
        Some(History {
            newest: moment(self.columns.row(id.index()).at.max(past.newest())),
            since: moment(past.since()),
            mean_5m: past.mean(),
            max_1h: past.hour(),
            max_1d: past.day(),
        })
    }

    /// The figures of all nodes as they are now. Later events do not show in it.
    #[must_use]
    pub fn snapshot(&self) -> AllFigures {
        self.columns.clone()
    }

    /// Where a pod is assigned or reserved.
    #[must_use]
    pub fn place(&self, uid: Uid) -> Option<NodeId> {
        self.pods.find(uid).map(|place| NodeId(self.pods[place].node))
    }

    /// How many pods are assigned or reserved.
    #[must_use]
    pub fn pods(&self) -> usize {
        self.pods.len()
    }

    /// Allocated bytes, without what the allocator adds. Snapshots held elsewhere count for themselves; the
    /// tree of what is due is taken to be half full.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let kept = |n: &Node| n.past.as_ref().map_or(0, |p| p.bytes()) + size_of_val(&*n.gone);
        size_of::<Self>()
            + self.pods.bytes()
            + self.nodes.bytes()
            + self.nodes.iter().map(kept).sum::<usize>()
            + self.columns.bytes()
            + self.changed.capacity() * size_of::<NodeId>()
            + self.due.len() * 2 * size_of::<(i64, Due)>()
    }

    /// Enters a pod, or changes what is known of it.
    fn put(&mut self, uid: Uid, id: NodeId, estimate: Load, moment: i64, reserved: bool) {
        self.reach(id);
        let place = if let Some(place) = self.pods.find(uid) {
            let pod = self.pods[place];
            let same = (pod.node, pod.estimate, pod.moment) == (id.0, estimate, moment);
            if same && pod.is_reserved() == reserved {
                return;
            }
            self.detach(place);
            if pod.node != id.0 {
                self.pods.set_measured(place, None);
                let row = self.columns.row(pod.node as usize);
                self.publish(NodeId(pod.node), row);
            }
            let pod = &mut self.pods[place];
            (pod.node, pod.estimate, pod.moment) = (id.0, estimate, moment);
            place
        } else {
            self.pods.insert(uid, id.0, estimate, moment)
        };
        self.pods[place].set_reserved(reserved);
        let row = self.attach(place);
        self.publish(id, row);
    }

    /// Removes a pod without a trace.
    fn forget(&mut self, place: u32) {
        let id = NodeId(self.pods[place].node);
        self.detach(place);
        self.pods.remove(place);
        let row = self.columns.row(id.index());
        self.publish(id, row);
    }

    /// Books a pod on its node.
    fn attach(&mut self, place: u32) -> Row {
        let pod = self.pods[place];
        let i = pod.node as usize;
        let row = self.columns.row(i);
        let (settled, share) = (self.is_settled(place, &row), self.share(place, &row));
        let node = &mut self.nodes[i];
        node.assigned.add(pod.estimate);
        node.pods += 1;
        self.pods[place].set_settled(settled);
        if settled {
            self.pods.link(&mut node.settled, place);
        } else {
            node.pending.add(share);
            node.pending_pods += 1;
            self.pods.link(&mut node.unsettled, place);
        }
        if pod.is_reserved() {
            self.due.insert((pod.moment, Due::Expired(place)));
        }
        row
    }

    /// Takes a pod off its node again, exactly as it was booked.
    fn detach(&mut self, place: u32) {
        let pod = self.pods[place];
        let i = pod.node as usize;
        let share = self.share(place, &self.columns.row(i));
        let node = &mut self.nodes[i];
        node.assigned.sub(pod.estimate);
        node.pods -= 1;
        if pod.is_settled() {
            self.pods.unlink(&mut node.settled, place);
        } else {
            node.pending.sub(share);
            node.pending_pods -= 1;
            self.pods.unlink(&mut node.unsettled, place);
        }
        if pod.is_reserved() {
            self.due.remove(&(pod.moment, Due::Expired(place)));
        }
    }

    /// Has the whole window of the newest sample seen the pod run? `started + settle <= T − W`
    fn is_settled(&self, place: u32, row: &Row) -> bool {
        let pod = &self.pods[place];
        let started = !pod.is_reserved() && pod.moment != NEVER;
        started && row.edge().is_some_and(|edge| pod.moment.saturating_add(self.settle) <= edge)
    }

    /// What a pod counts with while it is pending: its estimate, less what was measured of it since T.
    fn share(&self, place: u32, row: &Row) -> Load {
        let estimate = self.pods[place].estimate;
        if self.metrics == PodMetrics::Unused || row.edge().is_none() {
            return estimate;
        }
        let fresh = self.pods.measured(place).filter(|m| m.at >= row.at);
        fresh.map_or(estimate, |m| estimate.minus(m.usage).max(Load::ZERO))
    }

    /// The row of a pod's node, if the pod is pending there.
    fn pending_row(&self, place: u32) -> Option<Row> {
        let pod = &self.pods[place];
        (!pod.is_settled()).then(|| self.columns.row(pod.node as usize))
    }

    /// Sorts the pods of a node anew after its newest sample changed. Only those not settled are looked at,
    /// unless the window reaches further back than before.
    fn resettle(&mut self, i: usize, old: &Row, new: &Row) {
        if new.edge() < old.edge() {
            let mut next = self.nodes[i].settled;
            while next != NONE {
                let place = next;
                next = self.pods[place].next;
                if !self.is_settled(place, new) {
                    let node = &mut self.nodes[i];
                    self.pods.unlink(&mut node.settled, place);
                    self.pods.link(&mut node.unsettled, place);
                    self.pods[place].set_settled(false);
                }
            }
        }
        let (mut pending, mut count) = (Sum::default(), 0);
        let mut next = self.nodes[i].unsettled;
        while next != NONE {
            let place = next;
            next = self.pods[place].next;
            if self.is_settled(place, new) {
                let node = &mut self.nodes[i];
                self.pods.unlink(&mut node.unsettled, place);
                self.pods.link(&mut node.settled, place);
                self.pods[place].set_settled(true);
            } else {
                pending.add(self.share(place, new));
                count += 1;
            }
        }
        (self.nodes[i].pending, self.nodes[i].pending_pods) = (pending, count);
    }

    /// Makes room up to a slot.
    fn reach(&mut self, id: NodeId) {
        while self.nodes.len() <= id.index() {
            self.nodes.push(Node::empty());
        }
    }

    /// Writes the sums of a node to its row.
    fn publish(&mut self, id: NodeId, mut row: Row) {
        let node = &self.nodes[id.index()];
        row.pending = node.pending.load();
        row.assigned = node.assigned.load();
        row.departed = departures::credit(&node.gone, &row);
        (row.pods, row.pending_pods) = (node.pods, node.pending_pods);
        if self.columns.put(id.index(), &row) {
            self.touch(id);
        }
    }

    fn touch(&mut self, id: NodeId) {
        let node = &mut self.nodes[id.index()];
        if !node.listed {
            node.listed = true;
            self.changed.push(id);
        }
    }
}

#[cfg(test)]
mod tests;
