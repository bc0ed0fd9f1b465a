//! Would pods like this one stay spread evenly?
//!
//! A constraint makes places of nodes by a label and counts the pods its selector matches in each. Hard ones
//! refuse a place that would have more than `max_skew` pods over the emptiest; soft ones score.

use super::Filter;
use super::decide::Input;
use super::memo::Places;
use super::prepare::Prepared;
use crate::view::labels::Domains;
use crate::view::{PodView, Spread};
use std::sync::Arc;

const HOSTNAME: &str = "kubernetes.io/hostname";

/// One constraint with its counts.
#[derive(Debug)]
struct Counted {
    places: Arc<Domains>,
    /// Pods by place.
    counts: Vec<i64>,
    /// The pod itself counts, too, if it matches.
    itself: i64,
    max_skew: i64,
    /// Which places are compared.
    compared: Vec<bool>,
    /// Are there as many places as the constraint demands?
    enough: bool,
    /// Pods in the emptiest place.
    least: i64,
    host: bool,
}

impl Counted {
    fn emptiest(&self) -> i64 {
        if !self.enough {
            return 0;
        }
        let compared = self.counts.iter().zip(&self.compared).filter(|(_, at)| **at);
        // Without any place that counts, there is nothing to compare with and every place will do.
        compared.map(|(n, _)| *n).min().unwrap_or(i64::from(i32::MAX))
    }
}

/// All hard constraints of a pod, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Hard(Vec<Counted>);

/// All soft constraints of a pod, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Soft {
    counted: Vec<Counted>,
    /// Nodes with all the labels the constraints speak of.
    weights: Vec<f64>,
}

/// Does the node count for this constraint?
fn counts(input: &Input<'_>, ready: &Prepared, constraint: &Spread, node: usize) -> bool {
    let class = input.cluster.columns().taints[node] as usize;
    (!constraint.honor_affinity || ready.required.as_ref().is_none_or(|nodes| nodes.contains(node)))
        && (!constraint.honor_taints || ready.tolerated[class])
}

/// A selector without conditions counts nobody, though it matches everybody.
fn counts_anybody(constraint: &Spread) -> bool {
    constraint.selector.requirements().is_some_and(|r| !r.is_empty())
}

fn count(
    input: &Input<'_>,
    pod: &PodView,
    ready: &Prepared,
    constraint: &Spread,
    all: &[Arc<Domains>],
    places: &Arc<Domains>,
) -> Counted {
    let at = input.cluster;
    let whole = |node: usize| all.iter().all(|d| d.place(node).is_some());
    let mut counts_at = vec![false; places.count];
    let mut by_place = vec![0; places.count];
    // Which nodes count is the same for all of a place most of the time, but not always: ask each.
    let simple = !constraint.honor_taints && (ready.required.is_none() || !constraint.honor_affinity);
    if simple && all.len() == 1 {
        counts_at.fill(true);
    } else {
        for node in at.labels().present().ones() {
            if let Some(place) = places.place(node)
                && !counts_at[place]
                && whole(node)
                && counts(input, ready, constraint, node)
            {
                counts_at[place] = true;
            }
        }
    }
    if counts_anybody(constraint) {
        for group in at.groups().of_namespace(&pod.key.namespace, &constraint.selector) {
            if group.is_terminating() {
                continue;
            }
            for (node, pods) in group.nodes() {
                if let Some(place) = places.place(node)
                    && whole(node)
                    && counts(input, ready, constraint, node)
                {
                    by_place[place] += i64::from(pods);
                }
            }
        }
    }
    let places_that_count = counts_at.iter().filter(|c| **c).count();
    let enough = i64::try_from(places_that_count).unwrap_or(i64::MAX) >= constraint.min_domains.unwrap_or(1);
    let mut out = Counted {
        itself: i64::from(constraint.selector.matches(&pod.labels)),
        max_skew: constraint.max_skew,
        compared: counts_at,
        enough,
        least: 0,
        host: &*constraint.topology_key == HOSTNAME,
        counts: by_place,
        places: places.clone(),
    };
    out.least = out.emptiest();
    out
}

impl Hard {
    pub fn new(input: &Input<'_>, pod: &PodView, ready: &Prepared, places: &mut Places) -> Self {
        let hard: Vec<&Spread> = pod.wants.spread.iter().filter(|s| s.hard).collect();
        let all: Vec<Arc<Domains>> = hard.iter().map(|s| places.of(input.cluster, &s.topology_key)).collect();
        Self(hard.iter().zip(&all).map(|(s, d)| count(input, pod, ready, s, &all, d)).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// As if there were one more (`by` 1) or one fewer (`by` -1) pod like the other on the node.
    pub fn shift(
        &mut self,
        input: &Input<'_>,
        pod: &PodView,
        ready: &Prepared,
        other: &PodView,
        node: usize,
        by: i64,
    ) {
        let whole = self.0.iter().all(|c| c.places.place(node).is_some());
        if !whole || other.terminating || other.key.namespace != pod.key.namespace {
            return;
        }
        for (constraint, c) in pod.wants.spread.iter().filter(|s| s.hard).zip(&mut self.0) {
            if let Some(place) = c.places.place(node)
                && counts_anybody(constraint)
                && constraint.selector.matches(&other.labels)
                && counts(input, ready, constraint, node)
            {
                let before = c.counts[place];
                c.counts[place] += by;
                if before.min(before + by) <= c.least {
                    c.least = c.emptiest();
                }
            }
        }
    }

    /// The first constraint the node fails.
    pub fn check(&self, node: usize) -> Option<Filter> {
        self.0.iter().find_map(|c| match c.places.place(node) {
            None => Some(Filter::SpreadLabel),
            Some(place) => {
                let skew = c.counts[place] + c.itself - c.least;
                (skew > c.max_skew).then_some(Filter::Spread)
            }
        })
    }

    /// The first constraint the node has no label for, by number.
    pub fn unplaced(&self, node: usize) -> Option<usize> {
        self.0.iter().position(|c| c.places.place(node).is_none())
    }

    /// The constraint a node fails by being too full: its number, pods there, pods in the emptiest, allowed.
    pub fn skew(&self, node: usize) -> Option<(usize, i64, i64, i64)> {
        self.0.iter().enumerate().find_map(|(i, c)| {
            let here = c.counts[c.places.place(node)?];
            (here + c.itself - c.least > c.max_skew).then_some((i, here, c.least, c.max_skew))
        })
    }
}

impl Soft {
    /// `feasible` are the nodes that will be scored: only their places weigh.
    pub fn new(
        input: &Input<'_>,
        pod: &PodView,
        ready: &Prepared,
        places: &mut Places,
        feasible: &[u32],
    ) -> Option<Self> {
        let soft: Vec<&Spread> = pod.wants.spread.iter().filter(|s| !s.hard).collect();
        if soft.is_empty() {
            return None;
        }
        let all: Vec<Arc<Domains>> = soft.iter().map(|s| places.of(input.cluster, &s.topology_key)).collect();
        let counted: Vec<Counted> =
            soft.iter().zip(&all).map(|(s, d)| count(input, pod, ready, s, &all, d)).collect();
        let mut seen: Vec<Vec<bool>> = counted.iter().map(|c| vec![false; c.places.count]).collect();
        let mut scored = 0usize;
        for node in feasible.iter().map(|n| *n as usize) {
            if counted.iter().any(|c| c.places.place(node).is_none()) {
                continue;
            }
            scored += 1;
            for (seen, c) in seen.iter_mut().zip(&counted) {
                if let Some(place) = c.places.place(node) {
                    seen[place] = true;
                }
            }
        }
        let weights = counted.iter().zip(&seen).map(|(c, seen)| {
            let size = if c.host { scored } else { seen.iter().filter(|s| **s).count() };
            weight(size)
        });
        Some(Self { weights: weights.collect(), counted })
    }

    /// Pods in the node's places, weighed; fewer is better. `None` for nodes without all the labels.
    pub fn raw(&self, node: usize) -> Option<i64> {
        let mut score = 0.0;
        for (c, weight) in self.counted.iter().zip(&self.weights) {
            let place = c.places.place(node)?;
            score += term(c.counts[place], *weight, c.max_skew);
        }
        Some(rounded(score))
    }
}

/// Many places water the counts down; this weighs against it.
#[expect(clippy::cast_precision_loss, reason = "there are not that many nodes")]
fn weight(places: usize) -> f64 {
    ((places + 2) as f64).ln()
}

#[expect(clippy::cast_precision_loss, reason = "there are not that many pods")]
fn term(pods: i64, weight: f64, max_skew: i64) -> f64 {
    pods as f64 * weight + (max_skew - 1) as f64
}

#[expect(clippy::cast_possible_truncation, reason = "there are not that many pods")]
fn rounded(score: f64) -> i64 {
    score.round() as i64
}

/// From "fewer is better" to 0..100, as kube-scheduler does it. `None` where the node lacks a label: 0.
pub(super) fn normal(raw: Option<i64>, least: i64, most: i64) -> i64 {
    match raw {
        None => 0,
        Some(_) if most == 0 => 100,
        Some(raw) => 100 * (most + least - raw) / most,
    }
}
