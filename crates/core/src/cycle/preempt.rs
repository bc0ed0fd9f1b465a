//! Who must go so that this pod can come? Preemption by priority, as a plan.
//!
//! Only pods of lower priority go, and only from the node the pod is to have. On each node where evicting could
//! help, all of them are taken off in thought; if the pod fits then, as many as possible are put back: first those
//! whose eviction would overdraw a disruption budget, then the others, each from the most to the least important.
//! Who cannot be put back is a victim. Every rule is asked again at every step, with the victims gone from
//! amounts, ports, attachments, spread and affinity.
//!
//! Importance is priority, then age: of equals the one its node accepted first stays, however often it has been
//! restarted since. One that is not accepted yet counts as the youngest. Among equals still, the one created first
//! stays, then the first name.
//!
//! Among nodes, in this order: fewest victims that overdraw a budget; the lowest priority of the most important
//! victim; the smallest sum of priorities, each counted from the lowest there is, so that more victims never cost
//! less; fewest victims; the most important victim was accepted last; first name. That is kube-scheduler's order, but
//! every node is tried, where it tries a sample.
//!
//! # Load
//!
//! Evicting does not change what was measured, so a node over a threshold, of unknown load, or cooling is never
//! cured by it. A node at the line is cured only as far as somebody knows which load surely goes away with a
//! victim ([`Releases`]); unless told, none does.
//!
//! # Budgets
//!
//! A budget that selects without conditions covers every pod of its namespace, also pods without labels.
//! kube-scheduler passes over both when it looks for victims, though an eviction would be refused.

use super::decide::{Input, answers};
use super::memo::Memo;
use super::prepare::Prepared;
use super::{Filter, apart, local, spread};
use crate::load::board::Board;
use crate::load::{Load, Metered};
use crate::view::{Budget, Labels, NodeId, NodeView, PodView, Snapshot};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::sync::Arc;

/// How much load surely goes away from a node with a pod on it. Load that was measured may stay, or may be another
/// pod's: what is sure is what the pod was expected to bring and no measurement has seen yet. Less than nothing
/// counts as nothing.
pub type Releases<'a> = &'a dyn Fn(&PodView, NodeId) -> Load;

/// Who goes, and from where.
#[derive(Clone, Debug)]
pub struct Preemption {
    /// The node the pod fits on when the victims are gone.
    pub node: NodeId,
    /// Who has to go, the least important first. One that is terminating already need only be waited for.
    pub victims: Vec<Arc<PodView>>,
    /// How many of them overdraw a disruption budget.
    pub budget_violations: u32,
    /// On how many nodes evicting would have helped.
    pub considered: u32,
}

/// Who must go so that this pod can come? `None` if evicting helps nowhere or nobody need go; if the pod must not
/// push others away or is held back; and while pods are still leaving the node that was cleared for it. The same
/// answer for the same input, with any memo.
#[must_use]
pub fn preempt(
    input: &Input<'_>,
    pod: &Arc<PodView>,
    budgets: &[Budget],
    releases: Option<Releases<'_>>,
    memo: &mut Memo,
) -> Option<Preemption> {
    if !pod.preempts || !pod.wants.holds.is_empty() {
        return None;
    }
    let shape = answers(input, pod, memo);
    let Memo { places, shapes, .. } = memo;
    let shape = &shapes[shape];
    let spread = spread::Hard::new(input, pod, &shape.ready, places);
    let apart = apart::Hard::new(input, pod, &shape.ready, places);
    let mut curable = Vec::new();
    for node in input.cluster.nodes() {
        let at = node.id.index();
        // A node that takes the pod as it is ends the search.
        let rule = shape.refused[at].or_else(|| spread.check(at)).or_else(|| apart.check(at))?;
        let could_hold = || shape.ready.asked.iter().all(|(r, asked)| *asked <= node.allocatable.get(*r));
        if rule.yields_to_eviction() && could_hold() {
            curable.push(node);
        }
    }
    if is_awaiting(pod, &curable) {
        return None;
    }

    let mut budgets = Budgets::new(budgets);
    let mut trial = Trial {
        input: *input,
        pod,
        releases,
        released: Load::ZERO,
        cluster: input.cluster.clone(),
        board: input.board.map(Cow::Borrowed),
        ready: shape.ready.clone(),
        spread,
        apart,
    };
    let mut best: Option<(Rank, Preemption)> = None;
    let mut considered = 0;
    for node in curable {
        let mut lower: Vec<&Arc<PodView>> = node.pods.iter().filter(|p| p.priority < pod.priority).collect();
        if lower.is_empty() || !trial.has_room(node, &lower) {
            continue;
        }
        lower.sort_by(|a, b| importance(b).cmp(&importance(a)));
        for other in &lower {
            trial.take(other, node.id);
        }
        let mut off = vec![true; lower.len()];
        let mut found = None;
        if trial.refused(node.id).is_none() {
            considered += 1;
            let least = best.as_ref().map(|(rank, _)| rank);
            found = trial.spare(node.id, &lower, &budgets.overdrawn(&lower), &mut off, least);
        }
        for (other, _) in lower.iter().zip(&off).filter(|(_, off)| **off) {
            trial.put(other, node.id);
        }
        // Nodes come by name, so of equals the first name stays.
        if let Some((rank, plan)) = found
            && best.as_ref().is_none_or(|(least, _)| rank < *least)
        {
            best = Some((rank, plan));
        }
    }
    best.map(|(_, plan)| Preemption { considered, ..plan })
}

/// Are pods that went for this one still leaving? Then more need not go, if the node can still be had.
fn is_awaiting(pod: &PodView, curable: &[&NodeView]) -> bool {
    let Some(name) = &pod.nominated else { return false };
    let node = curable.iter().find(|n| n.name == *name);
    node.is_some_and(|n| n.pods.iter().any(|p| p.terminating && p.priority < pod.priority))
}

/// The more important is the larger.
fn importance(pod: &PodView) -> impl Ord + '_ {
    let created = pod.created.unwrap_or(Timestamp::MAX);
    (pod.priority, Reverse((accepted(pod), created, &pod.key, &pod.uid)))
}

fn accepted(pod: &PodView) -> Timestamp {
    pod.accepted.unwrap_or(Timestamp::MAX)
}

/// What evicting costs; the least is best. No part of it gets smaller with another victim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    violations: u32,
    highest: i32,
    sum: i64,
    victims: usize,
}

impl Cost {
    const NONE: Self = Self { violations: 0, highest: i32::MIN, sum: 0, victims: 0 };

    fn add(&mut self, victim: &PodView, violates: bool) {
        self.violations += u32::from(violates);
        self.highest = self.highest.max(victim.priority);
        self.sum += i64::from(victim.priority) - i64::from(i32::MIN);
        self.victims += 1;
    }
}

/// What nodes are compared by.
type Rank = (Cost, Reverse<Timestamp>);

/// The budgets, and whom they cover.
struct Budgets<'a> {
    all: &'a [Budget],
    allowed: Vec<i64>,
    /// Which budgets cover pods of a namespace with certain labels; replicas are asked about once.
    known: FxHashMap<(Arc<str>, Labels), Vec<usize>>,
}

impl<'a> Budgets<'a> {
    fn new(all: &'a [Budget]) -> Self {
        Self { all, allowed: all.iter().map(|b| b.allowed).collect(), known: FxHashMap::default() }
    }

    /// If all of these go, in this order: which are more than a budget allows?
    fn overdrawn(&mut self, pods: &[&Arc<PodView>]) -> Vec<bool> {
        let Self { all, allowed, known } = self;
        let mut left: Option<Vec<i64>> = None;
        let mut one = |pod: &PodView| {
            let covering =
                known.entry((pod.key.namespace.clone(), pod.labels.clone())).or_insert_with(|| {
                    let covers =
                        |b: &Budget| b.key.namespace == pod.key.namespace && b.selector.matches(&pod.labels);
                    (0..all.len()).filter(|i| covers(&all[*i])).collect()
                });
            let mut over = false;
            for i in covering.iter().filter(|i| !all[**i].disrupted.contains(&pod.key.name)) {
                let left = &mut left.get_or_insert_with(|| allowed.clone())[*i];
                *left = left.saturating_sub(1);
                over |= *left < 0;
            }
            over
        };
        if all.is_empty() { vec![false; pods.len()] } else { pods.iter().map(|p| one(p)).collect() }
    }
}

/// The cluster with some pods of one node taken off, and all that depends on them kept in step.
struct Trial<'a> {
    input: Input<'a>,
    pod: &'a PodView,
    releases: Option<Releases<'a>>,
    /// The load that went with the pods taken off.
    released: Load,
    cluster: Snapshot,
    board: Option<Cow<'a, Board>>,
    ready: Prepared,
    spread: spread::Hard,
    apart: apart::Hard,
}

impl Trial<'_> {
    /// Is enough of every resource there when these are gone? Cheap, to be asked first.
    fn has_room(&self, node: &NodeView, lower: &[&Arc<PodView>]) -> bool {
        let promised = self.ready.promised(node.id);
        self.ready.asked.iter().all(|(resource, asked)| {
            let freed = lower.iter().map(|p| p.requests.get(*resource)).fold(0, i64::saturating_add);
            let taken = node.requested.get(*resource).saturating_sub(freed);
            let before = promised.map_or(0, |p| p.requests.get(*resource));
            *asked <= node.allocatable.get(*resource).saturating_sub(taken).saturating_sub(before)
        })
    }

    /// The rule the node fails as things are in the trial.
    fn refused(&self, node: NodeId) -> Option<Filter> {
        let input = Input { cluster: &self.cluster, board: self.board.as_deref(), ..self.input };
        let at = node.index();
        local::check(&input, self.pod, &self.ready, at)
            .or_else(|| self.spread.check(at))
            .or_else(|| self.apart.check(at))
    }

    fn take(&mut self, other: &Arc<PodView>, node: NodeId) {
        self.cluster.take(other, node);
        self.follow(other, node, -1);
    }

    fn put(&mut self, other: &Arc<PodView>, node: NodeId) {
        self.cluster.put(other, node);
        self.follow(other, node, 1);
    }

    fn follow(&mut self, other: &PodView, node: NodeId, by: i32) {
        let Self { input, pod, ready, cluster, .. } = self;
        let at = node.index();
        if let Some(volumes) = &mut ready.volumes {
            volumes.refresh(cluster, &pod.wants);
        }
        self.spread.shift(input, pod, ready, other, at, by.into());
        self.apart.shift(input, pod, other, at, by);
        let (Some(releases), Some(known), Some(board)) = (self.releases, input.board, &mut self.board) else {
            return;
        };
        let load = releases(other, node).max(Load::ZERO);
        self.released = if by < 0 { self.released.plus(load) } else { self.released.minus(load) };
        let heads = Metered::ALL.into_iter().zip(&known.head).zip(&mut board.to_mut().head);
        for ((resource, known), head) in heads {
            // Where there is no line the head is the largest number, and stays it.
            head[at] = known[at].saturating_add(self.released.get(resource));
        }
    }

    /// Puts back as many as possible of the pods that are off, those that overdraw a budget first. Gives up as
    /// soon as it costs more than the best so far: another victim never makes it cheaper.
    fn spare(
        &mut self,
        node: NodeId,
        lower: &[&Arc<PodView>],
        overdrawn: &[bool],
        off: &mut [bool],
        best: Option<&Rank>,
    ) -> Option<(Rank, Preemption)> {
        let mut cost = Cost::NONE;
        for violates in [true, false] {
            for (i, other) in lower.iter().enumerate().filter(|(i, _)| overdrawn[*i] == violates) {
                self.put(other, node);
                off[i] = self.refused(node).is_some();
                if !off[i] {
                    continue;
                }
                self.take(other, node);
                cost.add(other, violates);
                if best.is_some_and(|(least, _)| cost > *least) {
                    return None;
                }
            }
        }
        // They come from the most important down.
        let victims = lower.iter().zip(&*off).rev().filter(|(_, off)| **off).map(|(p, _)| (*p).clone());
        let victims: Vec<Arc<PodView>> = victims.collect();
        let accepted = accepted(victims.last()?);
        let plan = Preemption { node, victims, budget_violations: cost.violations, considered: 0 };
        Some(((cost, Reverse(accepted)), plan))
    }
}

#[cfg(test)]
mod tests;
