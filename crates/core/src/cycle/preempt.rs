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
//! Where nothing else helps, a plan overdraws budgets, as kube-scheduler's does. Who evicts through the API is refused
//! then: how many victims that concerns is said ([`Preemption::kept`]). The API asks no budget about pods that are leaving,
//! or whose containers have not begun to run.
//!
//! A budget that selects without conditions covers every pod of its namespace, also pods without labels.
//! kube-scheduler passes over both when it looks for victims, though an eviction would be refused.

use super::decide::{Input, answers};
use super::memo::{Memo, Shape};
use super::message::{available, insufficient, words};
use super::prepare::Prepared;
use super::{Filter, apart, local, spread};
use crate::load::board::Board;
use crate::load::{Load, Metered};
use crate::resources::Resource;
use crate::view::{Budget, Labels, NodeId, NodeView, Phase, PodView, Snapshot};
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BTreeMap;
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
    /// How many of them the API would refuse to evict because of a budget, if all were asked in their order.
    pub kept: u32,
    /// On how many nodes evicting would have helped.
    pub considered: u32,
}

/// Why nobody is to go for a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InVain {
    /// It must not push others away.
    Forbidden,
    /// A node takes it as it is.
    Needless,
    /// Pods are still leaving the node that was cleared for it.
    Awaiting,
    /// It helps nowhere, or the pod is held back whatever the nodes are like.
    Nowhere {
        /// How many nodes there are, and how many of them are of no use for which reason, in kube-scheduler's words.
        nodes: usize,
        reasons: BTreeMap<String, usize>,
        /// Would the node that was cleared for it do, but for its load? What is measured does not go with a pod at once.
        loaded: bool,
    },
}

impl InVain {
    /// Is there nothing left to wait for on the node that was cleared for the pod, if one was?
    #[must_use]
    pub fn forfeits(&self) -> bool {
        matches!(self, Self::Nowhere { loaded: false, .. })
    }

    /// What kube-scheduler adds to its message about a pod that goes nowhere; nothing where it adds nothing.
    #[must_use]
    pub fn words(&self) -> Option<String> {
        Some(match self {
            Self::Nowhere { nodes, reasons, .. } if !reasons.is_empty() => {
                format!("preemption: {}", available(*nodes, reasons))
            }
            Self::Forbidden => "preemption: not eligible due to preemptionPolicy=Never.".to_owned(),
            Self::Awaiting => {
                "preemption: not eligible due to a terminating pod on the nominated node.".to_owned()
            }
            Self::Needless | Self::Nowhere { .. } => return None,
        })
    }
}

/// Where nothing that goes with a pod is in the way.
const UNHELPFUL: &str = "Preemption is not helpful for scheduling";
/// Where nobody less important is.
const NOBODY: &str = "No preemption victims found for incoming pod";

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
    make_room(input, pod, true, budgets, releases, memo).ok()
}

/// The same, and if nobody is to go, why. Is anybody less important, on any node? Who knows that nobody is spares the walk
/// over all pods.
///
/// # Errors
/// When nobody is to go.
pub fn make_room(
    input: &Input<'_>,
    pod: &Arc<PodView>,
    is_any_lesser: bool,
    budgets: &[Budget],
    releases: Option<Releases<'_>>,
    memo: &mut Memo,
) -> Result<Preemption, InVain> {
    if !pod.preempts {
        return Err(InVain::Forbidden);
    }
    let nodes = input.cluster.nodes().len();
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    if !pod.wants.holds.is_empty() {
        return Err(InVain::Nowhere { nodes, reasons, loaded: false });
    }
    let shape = answers(input, pod, memo);
    let Memo { places, shapes, .. } = memo;
    let shape = &mut shapes[shape];
    // Many of a kind ask one after the other when something happened, and nothing happens between them. What was promised
    // is each one's own.
    if pod.nominated.is_none()
        && let Some(vain) = shape.in_vain(pod.priority, input.changes)
    {
        return Err(vain.clone());
    }
    let spread = spread::Hard::new(input, pod, &shape.ready, places);
    let apart = apart::Hard::new(input, pod, &shape.ready, places);
    let (curable, loaded) = curable(input, pod, shape, &spread, &apart).ok_or(InVain::Needless)?;
    if is_awaiting(pod, &curable) {
        return Err(InVain::Awaiting);
    }
    if curable.len() < nodes {
        reasons.insert(UNHELPFUL.to_owned(), nodes - curable.len());
    }

    let mut covered = Budgets::new(budgets);
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
    let (mut considered, mut alone) = (0, 0);
    for (node, rule) in curable {
        let there = if is_any_lesser { &node.pods[..] } else { &[] };
        let mut lower: Vec<&Arc<PodView>> = there.iter().filter(|p| p.priority < pod.priority).collect();
        if lower.is_empty() {
            alone += 1;
            continue;
        }
        // Of ports only a trial tells whether they would be free.
        if rule != Filter::Ports {
            let lacks = trial.lacks(node, &lower);
            if !lacks.is_empty() {
                for lack in lacks {
                    *reasons.entry(lack).or_default() += 1;
                }
                continue;
            }
        }
        lower.sort_by(|a, b| importance(b).cmp(&importance(a)));
        let overdrawn = covered.overdrawn(&lower);
        let found = match trial.clear(node.id, &lower, &overdrawn, best.as_ref().map(|(rank, _)| rank)) {
            Ok(found) => found,
            Err(refused) => {
                for why in refused {
                    *reasons.entry(why).or_default() += 1;
                }
                continue;
            }
        };
        considered += 1;
        // Nodes come by name, so of equals the first name stays.
        if let Some((rank, plan)) = found
            && best.as_ref().is_none_or(|(least, _)| rank < *least)
        {
            best = Some((rank, plan));
        }
    }
    let Some((_, plan)) = best else {
        if alone > 0 {
            reasons.insert(NOBODY.to_owned(), alone);
        }
        let vain = InVain::Nowhere { nodes, reasons, loaded };
        shape.vain = input
            .changes
            .filter(|_| pod.nominated.is_none())
            .map(|changes| (changes.count(), pod.priority, vain.clone()));
        return Err(vain);
    };
    let asked = |victim: &&Arc<PodView>| !victim.terminating && victim.phase != Phase::Pending;
    let asked: Vec<&Arc<PodView>> = plan.victims.iter().filter(asked).collect();
    let kept = covered.overdrawn(&asked).into_iter().map(u32::from).sum();
    Ok(Preemption { kept, considered, ..plan })
}

/// The nodes that could be cured, each with the rule it fails, and whether nothing but load keeps the pod from the node that was
/// cleared for it. `None` if a node takes it as it is.
fn curable<'a>(
    input: &Input<'a>,
    pod: &PodView,
    shape: &Shape,
    spread: &spread::Hard,
    apart: &apart::Hard,
) -> Option<(Vec<(&'a NodeView, Filter)>, bool)> {
    let (mut curable, mut loaded) = (Vec::new(), false);
    for node in input.cluster.nodes() {
        let at = node.id.index();
        let rule = shape.refused[at].or_else(|| spread.check(at)).or_else(|| apart.check(at))?;
        loaded |= rule.is_of_load() && pod.nominated.as_ref() == Some(&node.name);
        // What a node does not have at all nobody makes room for. kube-scheduler does not ask that of places for pods.
        let amounts = || shape.ready.asked.iter().filter(|(r, _)| *r != Resource::PODS);
        let could_hold = || amounts().all(|(r, asked)| *asked <= node.allocatable.get(*r));
        if rule.yields_to_eviction() && (rule != Filter::Resources || could_hold()) {
            curable.push((node, rule));
        }
    }
    Some((curable, loaded))
}

/// Are pods that went for this one still leaving? Then more need not go, if the node can still be had.
fn is_awaiting(pod: &PodView, curable: &[(&NodeView, Filter)]) -> bool {
    let Some(name) = &pod.nominated else { return false };
    let node = curable.iter().find(|(n, _)| n.name == *name);
    node.is_some_and(|(n, _)| n.pods.iter().any(|p| p.terminating && p.priority < pod.priority))
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
    /// What is not there in sufficient amounts when these are gone. Cheap, to be asked first.
    fn lacks(&self, node: &NodeView, gone: &[&Arc<PodView>]) -> Vec<String> {
        let promised = self.ready.promised(node.id);
        let lacking = self.ready.asked.iter().filter(|(resource, asked)| {
            let freed = gone.iter().map(|p| p.requests.get(*resource)).fold(0, i64::saturating_add);
            let taken = node.requested.get(*resource).saturating_sub(freed);
            let before = promised.map_or(0, |p| p.requests.get(*resource));
            *asked > node.allocatable.get(*resource).saturating_sub(taken).saturating_sub(before)
        });
        lacking.map(|(resource, _)| insufficient(self.input.cluster.names().name(*resource))).collect()
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

    /// Takes all of these off a node and finds out who of them can stay; nothing if that costs more than the best so far. Why not,
    /// if the pod does not fit even without any of them. In the end all are where they were.
    fn clear(
        &mut self,
        node: NodeId,
        lower: &[&Arc<PodView>],
        overdrawn: &[bool],
        best: Option<&Rank>,
    ) -> Result<Option<(Rank, Preemption)>, Vec<String>> {
        for other in lower {
            self.take(other, node);
        }
        let mut off = vec![true; lower.len()];
        let found = match self.refused(node) {
            None => Ok(self.spare(node, lower, overdrawn, &mut off, best)),
            Some(Filter::Resources) => Err(self.lacks(&self.cluster[node], &[])),
            Some(rule) => Err(vec![words(rule).to_owned()]),
        };
        for (other, _) in lower.iter().zip(&off).filter(|(_, off)| **off) {
            self.put(other, node);
        }
        found
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
        let plan = Preemption { node, victims, budget_violations: cost.violations, kept: 0, considered: 0 };
        Some(((cost, Reverse(accepted)), plan))
    }
}

#[cfg(test)]
mod tests;
