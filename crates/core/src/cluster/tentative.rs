//! Who may be about to arrive? Pods that another scheduler places, by our answers.
//!
//! It asks which of some nodes will do and how good they are, takes one of them by reasons of its own, and does not say
//! which: that is seen when the pod is bound. So the pod is charged to **every** node it may have gone to. Whichever
//! is chosen, no node passes its line; the price is that the last places of a node are given away one after the other.
//! The best of the nodes also counts as bound to for its hot value, so that the next pod prefers another.
//!
//! A pod whose volume is made for its node takes longer, and where it goes is told: on its claim.
//!
//! Such a charge is replaced when the pod is asked about again, becomes a real one when the pod is seen on a node or we
//! bind it ourselves, and is dropped when the pod is gone or its time is over. How long that is depends on what is heard: a
//! scheduler decides faster than it binds, and a pod that waits in its line of bindings looks like one that waits for nothing.
//!
//! | what is heard of the pod since it was asked about | it is on its way |
//! |---|---|
//! | it is told why it has no node, in other words than before | no longer than [`Wait::least`] |
//! | nothing, and it is known to be there without a node | no longer than [`Wait::most`] |
//! | it is not known at all | no longer than [`Wait::least`] |

use super::{Asked, Cluster};
use crate::cycle::Filter;
use crate::cycle::among::{Rules, levels};
use crate::ledger::Uid;
use crate::load::estimate::estimate;
use crate::load::{Load, Metered};
use crate::object::Key;
use crate::view::{NodeId, PodView};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// How far below the best load score a node may be and still be one of the best.
const BAND: i64 = 5;

/// Which nodes are asked about, for whom.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    /// By the rules of which profile.
    pub profile: usize,
    pub pod: &'a Arc<PodView>,
    /// From [`Cluster::candidates`].
    pub nodes: &'a [Option<NodeId>],
    pub wait: Wait<'a>,
}

/// How long is a pod taken to be on its way?
#[derive(Clone, Copy, Debug)]
pub struct Wait<'a> {
    /// Until then, unless it is seen on a node or gone.
    pub least: Timestamp,
    /// Until then, if it is known to be there without a node and nobody says that none was found for it.
    pub most: Timestamp,
    /// Is it known to be there, without a node?
    pub is_known: bool,
    /// Why it has had no node so far, as it was told.
    pub told: Option<&'a str>,
}

impl Wait<'_> {
    /// Until then, whatever is heard.
    #[must_use]
    pub fn until(at: Timestamp) -> Self {
        Self { least: at, most: at, is_known: false, told: None }
    }
}

/// Which of the nodes that will do are told?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All: they are compared afterwards.
    #[default]
    All,
    /// Those with the best load score and a little less: nobody compares them.
    Best,
}

/// What the load rules say of one candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Passes,
    Refused(Filter),
    /// It would do, and others are better.
    Outranked,
    /// There is no such node, as far as is known.
    Unknown,
}

/// A pod that may be about to arrive.
#[derive(Clone, Debug)]
struct Reservation {
    pod: Arc<PodView>,
    nodes: Vec<NodeId>,
    /// Where it counts as bound to.
    best: Option<NodeId>,
    least: Timestamp,
    most: Timestamp,
    /// Why it had no node when it was asked about, as it was told.
    told: Option<Box<str>>,
    /// Is it there, and has nobody said since that there is no node for it?
    waits: bool,
    /// How it may be asked about again without naming the nodes.
    again: Option<Again>,
}

/// What was told of all nodes that will do, so that it need not be worked out again.
#[derive(Clone, Copy, Debug)]
struct Again {
    told: Told,
    profile: usize,
    /// How many nodes were told. Fewer are left when one is gone.
    count: usize,
}

/// Which answer of [`Cluster::filter`]: no two have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Told(u64);

impl Reservation {
    fn new(pod: &Arc<PodView>, wait: Wait<'_>, nodes: Vec<NodeId>, best: Option<NodeId>) -> Self {
        let Wait { least, most, is_known, told } = wait;
        let told = told.map(Box::from);
        Self {
            pod: pod.clone(),
            nodes,
            best,
            least,
            most: most.max(least),
            told,
            waits: is_known,
            again: None,
        }
    }

    /// When it is no longer taken to be on its way, as far as is known now.
    fn end(&self) -> Timestamp {
        if self.waits { self.most } else { self.least }
    }
}

/// All of them, and what they bring to each node together.
#[derive(Clone, Debug, Default)]
pub(super) struct Tentative {
    pods: FxHashMap<Arc<str>, Reservation>,
    ends: BTreeSet<(Timestamp, Arc<str>)>,
    load: [Vec<i64>; 2],
    /// How many answers could be asked about again.
    answers: u64,
}

impl Tentative {
    /// What is left of a node's room for a resource: `head` where nobody is about to arrive.
    pub fn left(&self, head: i64, resource: usize, node: usize) -> i64 {
        less(head, self.load[resource].get(node).copied().unwrap_or(0))
    }

    /// May that pod be about to arrive?
    pub fn is_expected(&self, uid: &str) -> bool {
        self.pods.contains_key(uid)
    }

    /// When the first is no longer waited for.
    pub fn next_end(&self) -> Option<Timestamp> {
        self.ends.first().map(|(at, _)| *at)
    }

    /// Rules are others than they were: what was told by the old ones is not to be told again.
    pub fn forget_rules(&mut self) {
        self.pods.values_mut().for_each(|reservation| reservation.again = None);
    }

    /// A node is gone, and its number may be another's soon.
    pub fn forget_node(&mut self, node: NodeId) {
        for reservation in self.pods.values_mut() {
            reservation.nodes.retain(|n| *n != node);
            reservation.best = reservation.best.filter(|n| *n != node);
        }
        for column in &mut self.load {
            if let Some(load) = column.get_mut(node.index()) {
                *load = 0;
            }
        }
    }
}

/// The first of those with the best score; none where none has one.
fn best_of(nodes: impl Iterator<Item = (Option<i64>, NodeId)>) -> Option<NodeId> {
    let mut best: Option<(i64, NodeId)> = None;
    for (score, node) in nodes {
        if let Some(score) = score.filter(|score| best.is_none_or(|(most, _)| *score > most)) {
            best = Some((score, node));
        }
    }
    best.map(|(_, node)| node)
}

/// Is no node named twice?
fn are_different(nodes: &[NodeId], width: usize) -> bool {
    let mut seen = vec![false; width];
    nodes.iter().all(|node| seen.get_mut(node.index()).is_some_and(|seen| !std::mem::replace(seen, true)))
}

/// Where there is no line, nothing is taken off it.
fn less(head: i64, load: i64) -> i64 {
    if head == i64::MAX { head } else { head.saturating_sub(load) }
}

impl Cluster {
    /// The nodes of these names, in their order; nothing for names that are not known.
    pub fn candidates<'n>(&self, names: impl Iterator<Item = &'n str>) -> Vec<Option<NodeId>> {
        names.map(|name| self.live.id(name)).collect()
    }

    /// Which candidates do the load rules allow? The pod is taken to be on its way to one of those told.
    pub fn filter(&mut self, asked: Question<'_>, keep: Keep) -> Vec<Verdict> {
        self.release(&asked.pod.uid);
        let Asked { input, .. } = self.ask(asked.profile, asked.pod);
        let rules = Rules::new(&input, asked.pod);
        let mut best: Option<(i64, NodeId)> = None;
        let mut judge = |node: NodeId| {
            if let Some(rule) = rules.check(node, Load::ZERO) {
                return Verdict::Refused(rule);
            }
            let score = rules.score(node);
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, node));
            }
            Verdict::Passes
        };
        let mut verdicts: Vec<Verdict> =
            asked.nodes.iter().map(|node| node.map_or(Verdict::Unknown, &mut judge)).collect();
        if let (Keep::Best, Some((best, _))) = (keep, best) {
            for (verdict, node) in verdicts.iter_mut().zip(asked.nodes) {
                let score = node.map_or(i64::MIN, |node| rules.score(node));
                if *verdict == Verdict::Passes && score < best.saturating_sub(BAND) {
                    *verdict = Verdict::Outranked;
                }
            }
        }
        let passing = verdicts.iter().zip(asked.nodes).filter(|(verdict, _)| **verdict == Verdict::Passes);
        let nodes: Vec<NodeId> = passing.filter_map(|(_, node)| *node).collect();
        // Where somebody compares them, the best is not known before.
        let best = best.filter(|_| keep == Keep::Best).map(|(_, node)| node);
        let count = nodes.len();
        let comes_again = keep == Keep::All && are_different(&nodes, input.cluster.width());
        let mut reservation = Reservation::new(asked.pod, asked.wait, nodes, best);
        if comes_again {
            self.tentative.answers += 1;
            let told = Told(self.tentative.answers);
            reservation.again = Some(Again { told, profile: asked.profile, count });
        }
        self.expect(reservation);
        verdicts
    }

    /// By which answer a pod is taken to be on its way, if it can be [asked about again](Cluster::prioritize_told).
    #[must_use]
    pub fn told(&self, uid: &str) -> Option<Told> {
        Some(self.tentative.pods.get(uid)?.again?.told)
    }

    /// As [`Cluster::prioritize`], of the nodes that an answer to [`Cluster::filter`] told, in their order. The pod is charged to
    /// them already, and stays so, which saves taking it off and charging it again. `None` where they have to be named: the
    /// answer was another one, or what it rests on is not as it was.
    pub fn prioritize_told(&mut self, uid: &str, told: Told) -> Option<Vec<u8>> {
        let reservation = self.tentative.pods.get_mut(uid)?;
        let Again { profile, count, .. } = reservation.again.take_if(|again| again.told == told)?;
        // Who takes the place of a moved pod may not do so any more, and advice may have come.
        let pod = reservation.pod.clone();
        let found = self.advice.find(&pod.key.namespace, pod.owner.as_ref(), &pod.labels);
        let estimate = estimate(&pod.asks, found, Load::ZERO).load;
        if reservation.nodes.len() != count || !self.awaited.is_empty() || estimate != pod.estimate {
            return None;
        }
        let nodes = std::mem::take(&mut reservation.nodes);
        let Asked { input, .. } = self.ask(profile, &pod);
        let rules = Rules::new(&input, &pod);
        // Its own charge is not in its way.
        let allowed = |node: NodeId| rules.check(node, pod.estimate).is_none();
        let scores: Vec<Option<i64>> =
            nodes.iter().map(|node| allowed(*node).then(|| rules.score(*node))).collect();
        let best = best_of(scores.iter().copied().zip(nodes.iter().copied()));
        if let Some(node) = best {
            self.bindings.bind(node, Uid::new(uid), self.now, self.now);
            self.touch(node);
        }
        if let Some(reservation) = self.tentative.pods.get_mut(uid) {
            (reservation.nodes, reservation.best) = (nodes, best);
        }
        Some(levels(&scores))
    }

    /// The level of each candidate, 0 to [10](crate::cycle::among::BEST). The pod is taken to be on its way to one of them.
    pub fn prioritize(&mut self, asked: Question<'_>) -> Vec<u8> {
        self.release(&asked.pod.uid);
        let Asked { input, .. } = self.ask(asked.profile, asked.pod);
        let rules = Rules::new(&input, asked.pod);
        // What changed since it was asked about them may keep it off; they cannot be taken back, only put last.
        let allowed = |node: &NodeId| rules.check(*node, Load::ZERO).is_none();
        let scores: Vec<Option<i64>> =
            asked.nodes.iter().map(|node| node.filter(allowed).map(|node| rules.score(node))).collect();
        let known = scores.iter().zip(asked.nodes).filter_map(|(score, node)| Some((*score, (*node)?)));
        let best = best_of(known);
        let nodes = asked.nodes.iter().copied().flatten().collect();
        self.expect(Reservation::new(asked.pod, asked.wait, nodes, best));
        levels(&scores)
    }

    /// Would the load rules allow the pod on a node once these pods have left it? By node, and in that order. Only load
    /// nobody has measured yet surely goes with a pod. Who asks has found no node for the pod, so it is not on its way to any.
    pub fn allows_without(
        &mut self,
        profile: usize,
        pod: &Arc<PodView>,
        nodes: &[(Option<NodeId>, Vec<Uid>)],
    ) -> Vec<bool> {
        self.release(&pod.uid);
        let Asked { input, ledger, .. } = self.ask(profile, pod);
        let rules = Rules::new(&input, pod);
        let allows = |(node, victims): &(Option<NodeId>, Vec<Uid>)| {
            let Some(node) = *node else { return false };
            let gone = ledger.pending(node).filter(|(uid, _)| victims.contains(uid));
            let released = gone.fold(Load::ZERO, |sum, (_, load)| sum.plus(load));
            rules.check(node, released).is_none()
        };
        nodes.iter().map(allows).collect()
    }

    /// A pod that may be about to arrive, as it was asked about.
    #[must_use]
    pub fn tentative(&self, uid: &str) -> Option<&Arc<PodView>> {
        self.tentative.pods.get(uid).map(|reservation| &reservation.pod)
    }

    /// How many pods may be about to arrive.
    #[must_use]
    pub fn tentative_count(&self) -> usize {
        self.tentative.pods.len()
    }

    /// Charges a pod to a node that another scheduler has decided on and we are to bind it to. As
    /// [`Decided::reserve`](super::Decided::reserve) otherwise. One that was charged to another node is on its way to this
    /// one now. Says whether there is such a node.
    pub fn charge(&mut self, pod: &Arc<PodView>, node: &str) -> bool {
        self.release(&pod.uid);
        let Some(node) = self.live.id(node) else { return false };
        if self.assumed.get(&pod.uid).is_some_and(|before| *before != node) {
            self.unreserve(&pod.uid);
        }
        if self.live.place(&pod.uid).is_none() {
            self.reserve(pod, node);
        }
        true
    }

    /// Another scheduler has chosen a node for who uses a claim, and binds them once that has its volume: they are charged
    /// there alone, and for so long.
    pub fn await_volume(&mut self, claim: &Key, node: &str, until: Timestamp) {
        let Some(node) = self.live.id(node) else { return };
        let uses = |one: &&Reservation| {
            one.nodes.contains(&node) && one.pod.wants.claims.iter().any(|wanted| wanted.key == *claim)
        };
        let mut pods: Vec<_> = self.tentative.pods.values().filter(uses).map(|one| one.pod.clone()).collect();
        pods.sort_by(|a, b| a.uid.cmp(&b.uid));
        for pod in pods {
            self.release(&pod.uid);
            self.expect(Reservation::new(&pod, Wait::until(until), vec![node], Some(node)));
        }
    }

    /// Nobody waits for a pod any more that was about to arrive; it is seen there, or gone, or late.
    pub(super) fn release(&mut self, uid: &str) {
        let Some(reservation) = self.tentative.pods.remove(uid) else { return };
        self.tentative.ends.remove(&(reservation.end(), reservation.pod.uid.clone()));
        self.shift(&reservation, i64::saturating_neg);
        if let Some(node) = reservation.best {
            self.bindings.forget(Uid::new(uid));
            self.touch(node);
        }
    }

    /// A pod is there without a node, and was told this about why. If those are other words than when it was asked about, the
    /// scheduler that asked has found none for it.
    pub fn waits(&mut self, uid: &str, told: Option<&str>) {
        let Some(reservation) = self.tentative.pods.get_mut(uid) else { return };
        let waits = reservation.told.as_deref() == told;
        if reservation.waits == waits {
            return;
        }
        let before = reservation.end();
        reservation.waits = waits;
        let (after, uid) = (reservation.end(), reservation.pod.uid.clone());
        self.tentative.ends.remove(&(before, uid.clone()));
        self.tentative.ends.insert((after, uid));
    }

    /// A pod that was about to arrive did, there.
    pub(super) fn arrived(&mut self, uid: &str, node: NodeId) {
        if self.tentative.pods.contains_key(uid) {
            self.release(uid);
            self.bindings.bind(node, Uid::new(uid), self.now, self.now);
        }
    }

    /// Those that nothing was heard of in time.
    pub(super) fn expire_tentative(&mut self) {
        while let Some((at, uid)) = self.tentative.ends.first().cloned()
            && at <= self.now
        {
            self.tentative.ends.remove(&(at, uid.clone()));
            self.release(&uid);
        }
    }

    /// Takes a pod to be on its way to one of these nodes.
    fn expect(&mut self, reservation: Reservation) {
        let Reservation { pod, nodes, best, .. } = &reservation;
        // Without an identity nothing would ever be heard of it.
        let is_settled = pod.uid.is_empty() || self.live.place(&pod.uid).is_some();
        if nodes.is_empty() || is_settled {
            return;
        }
        let (uid, best) = (pod.uid.clone(), *best);
        self.shift(&reservation, |load| load);
        if let Some(node) = best {
            self.bindings.bind(node, Uid::new(&uid), self.now, self.now);
            self.touch(node);
        }
        self.tentative.ends.insert((reservation.end(), uid.clone()));
        self.tentative.pods.insert(uid, reservation);
    }

    /// Keeps room for a pod on a node until then.
    pub(super) fn keep(&mut self, pod: &Arc<PodView>, node: NodeId, until: Timestamp) {
        self.expect(Reservation::new(pod, Wait::until(until), vec![node], None));
    }

    /// Adds a pod to its nodes, or takes it off. The board follows at once: judging so many nodes anew would take longer
    /// than the answer.
    fn shift(&mut self, reservation: &Reservation, sign: impl Fn(i64) -> i64) {
        let width = self.live.snapshot().width();
        for (i, resource) in Metered::ALL.into_iter().enumerate() {
            let load = sign(reservation.pod.estimate.get(resource));
            let column = &mut self.tentative.load[i];
            if column.len() < width {
                column.resize(width, 0);
            }
            for node in &reservation.nodes {
                column[node.index()] = column[node.index()].saturating_add(load);
            }
            for judge in &mut self.judges {
                let heads = &mut judge.board.head[i];
                for node in &reservation.nodes {
                    if let Some(head) = heads.get_mut(node.index()) {
                        *head = less(*head, load);
                    }
                }
            }
        }
        for node in &reservation.nodes {
            self.changes.note(*node);
        }
    }
}

#[cfg(test)]
mod tests;
