//! Would pods like this one stay spread evenly?
//!
//! A constraint makes places of nodes by a label and counts the pods its selector matches in each. Hard ones
//! refuse a place that would have more than `max_skew` pods over the emptiest; soft ones score. Pods that have neither
//! are spread softly with those the same services and workload select.

use super::Filter;
use super::decide::Input;
use super::memo::Places;
use super::prepare::Prepared;
use crate::select::Selector;
use crate::view::labels::Domains;
use crate::view::{PodView, Spread};
use std::sync::Arc;

const HOSTNAME: &str = "kubernetes.io/hostname";
const ZONE: &str = "topology.kubernetes.io/zone";

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
}

/// One constraint that only scores.
#[derive(Debug)]
struct Weighed {
    places: Arc<Domains>,
    /// Pods by place.
    counts: Vec<i64>,
    max_skew: i64,
    /// Set against how many places there are.
    weight: f64,
}

impl Counted {
    fn emptiest(&self) -> i64 {
        self.emptiest_with(0, 0)
    }

    /// With so many more in one place.
    fn emptiest_with(&self, place: usize, more: i64) -> i64 {
        if !self.enough {
            return 0;
        }
        let compared = self.counts.iter().zip(&self.compared).enumerate().filter(|(_, (_, at))| **at);
        let counts = compared.map(|(at, (count, _))| if at == place { count + more } else { *count });
        // Without any place that counts, there is nothing to compare with and every place will do.
        counts.min().unwrap_or(i64::from(i32::MAX))
    }
}

/// All hard constraints of a pod, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Hard {
    constraints: Vec<Counted>,
    /// How many more there will be, by constraint, on nodes that pods go to first.
    first: Vec<(usize, Vec<i64>)>,
}

/// All soft constraints of a pod, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Soft {
    weighed: Vec<Weighed>,
    /// Is a node without one of the labels no place at all? Otherwise the other constraints go on without it.
    strict: bool,
}

/// How pods that do not say are spread with their siblings, for the score alone: not as evenly as those that do.
fn unasked(selector: &Selector) -> [Spread; 2] {
    [(HOSTNAME, 3), (ZONE, 5)].map(|(key, max_skew)| Spread {
        max_skew,
        topology_key: key.into(),
        hard: false,
        selector: selector.clone(),
        min_domains: None,
        honor_affinity: true,
        honor_taints: false,
    })
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

/// Pods by place. `whole` says which nodes have all the labels they need.
fn tally(
    input: &Input<'_>,
    pod: &PodView,
    ready: &Prepared,
    constraint: &Spread,
    places: &Domains,
    whole: impl Fn(usize) -> bool,
) -> Vec<i64> {
    let mut by_place = vec![0; places.count];
    if counts_anybody(constraint) {
        for group in input.cluster.groups().of_namespace(&pod.key.namespace, &constraint.selector) {
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
    by_place
}

fn count(
    input: &Input<'_>,
    pod: &PodView,
    ready: &Prepared,
    constraint: &Spread,
    all: &[Arc<Domains>],
    places: &Arc<Domains>,
) -> Counted {
    let whole = |node: usize| all.iter().all(|d| d.place(node).is_some());
    let mut counts_at = vec![false; places.count];
    // Which nodes count is the same for all of a place most of the time, but not always: ask each.
    let simple = !constraint.honor_taints && (ready.required.is_none() || !constraint.honor_affinity);
    if simple && all.len() == 1 {
        counts_at.fill(true);
    } else {
        for node in input.cluster.labels().present().ones() {
            if let Some(place) = places.place(node)
                && !counts_at[place]
                && whole(node)
                && counts(input, ready, constraint, node)
            {
                counts_at[place] = true;
            }
        }
    }
    let by_place = tally(input, pod, ready, constraint, places, whole);
    let places_that_count = counts_at.iter().filter(|c| **c).count();
    let enough = i64::try_from(places_that_count).unwrap_or(i64::MAX) >= constraint.min_domains.unwrap_or(1);
    let mut out = Counted {
        itself: i64::from(constraint.selector.matches(&pod.labels)),
        max_skew: constraint.max_skew,
        compared: counts_at,
        enough,
        least: 0,
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
        let constraints: Vec<Counted> =
            hard.iter().zip(&all).map(|(s, d)| count(input, pod, ready, s, &all, d)).collect();
        let mut out = Self { constraints, first: Vec::new() };
        if out.is_empty() {
            return out;
        }
        for (node, promised) in &ready.promised {
            let more = |s: &&Spread| {
                let counted =
                    promised.pods.iter().filter(|other| out.is_counted(input, pod, ready, s, other, *node));
                i64::try_from(counted.count()).unwrap_or(i64::MAX)
            };
            let more: Vec<i64> = hard.iter().map(more).collect();
            if more.iter().any(|more| *more > 0) {
                out.first.push((*node, more));
            }
        }
        out
    }

    /// Does a pod on that node count for this constraint?
    fn is_counted(
        &self,
        input: &Input<'_>,
        pod: &PodView,
        ready: &Prepared,
        constraint: &Spread,
        other: &PodView,
        node: usize,
    ) -> bool {
        self.constraints.iter().all(|c| c.places.place(node).is_some())
            && !other.terminating
            && other.key.namespace == pod.key.namespace
            && counts_anybody(constraint)
            && constraint.selector.matches(&other.labels)
            && counts(input, ready, constraint, node)
    }

    /// Of a constraint, by number: how many are in a place of a node and in the emptiest place, with those that go to that node
    /// first.
    fn here(&self, number: usize, node: usize, place: usize) -> (i64, i64) {
        let c = &self.constraints[number];
        let more = self.first.iter().find(|(n, _)| *n == node).map_or(0, |(_, more)| more[number]);
        let here = c.counts[place] + more;
        if more == 0 || c.counts[place] > c.least {
            return (here, c.least);
        }
        (here, c.emptiest_with(place, more))
    }

    pub fn is_empty(&self) -> bool {
        self.constraints.is_empty()
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
        for (number, constraint) in pod.wants.spread.iter().filter(|s| s.hard).enumerate() {
            if !self.is_counted(input, pod, ready, constraint, other, node) {
                continue;
            }
            let c = &mut self.constraints[number];
            if let Some(place) = c.places.place(node) {
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
        self.constraints.iter().enumerate().find_map(|(number, c)| match c.places.place(node) {
            None => Some(Filter::SpreadLabel),
            Some(place) => {
                let (here, least) = self.here(number, node, place);
                (here + c.itself - least > c.max_skew).then_some(Filter::Spread)
            }
        })
    }

    /// The first constraint the node has no label for, by number.
    pub fn unplaced(&self, node: usize) -> Option<usize> {
        self.constraints.iter().position(|c| c.places.place(node).is_none())
    }

    /// The constraint a node fails by being too full: its number, pods there, pods in the emptiest, allowed.
    pub fn skew(&self, node: usize) -> Option<(usize, i64, i64, i64)> {
        self.constraints.iter().enumerate().find_map(|(i, c)| {
            let (here, least) = self.here(i, node, c.places.place(node)?);
            (here + c.itself - least > c.max_skew).then_some((i, here, least, c.max_skew))
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
        let strict = !pod.wants.spread.is_empty();
        let siblings = if strict { None } else { input.cluster.siblings().of(pod) };
        let unasked = siblings.as_ref().map(unasked);
        let soft = || pod.wants.spread.iter().filter(|s| !s.hard).chain(unasked.iter().flatten());
        let all: Vec<Arc<Domains>> = soft().map(|s| places.of(input.cluster, &s.topology_key)).collect();
        if all.is_empty() {
            return None;
        }
        let whole = |node: usize| !strict || all.iter().all(|d| d.place(node).is_some());
        let scored = || feasible.iter().map(|n| *n as usize).filter(|n| whole(*n));
        let weigh = |(constraint, places): (&Spread, &Arc<Domains>)| {
            let size = if &*constraint.topology_key == HOSTNAME {
                if strict { scored().count() } else { feasible.len() }
            } else {
                // Nodes without the label are one place together.
                let mut seen = vec![false; places.count + 1];
                scored().for_each(|node| seen[places.place(node).unwrap_or(places.count)] = true);
                seen.iter().filter(|s| **s).count()
            };
            Weighed {
                counts: tally(input, pod, ready, constraint, places, whole),
                max_skew: constraint.max_skew,
                weight: weight(size),
                places: places.clone(),
            }
        };
        Some(Self { weighed: soft().zip(&all).map(weigh).collect(), strict })
    }

    /// Pods in the node's places, weighed; fewer is better. `None` for nodes that are no place at all.
    pub fn raw(&self, node: usize) -> Option<i64> {
        let mut score = 0.0;
        for w in &self.weighed {
            match w.places.place(node) {
                Some(place) => score += term(w.counts[place], w.weight, w.max_skew),
                None if self.strict => return None,
                None => {}
            }
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

/// To the nearest, halves up. Quicker than what the library has, which also knows what is below zero.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "there are not that many pods"
)]
fn rounded(score: f64) -> i64 {
    let whole = score as i64;
    whole + i64::from(score - whole as f64 >= 0.5)
}

/// From "fewer is better" to 0..100, as kube-scheduler does it. `None` where the node lacks a label: 0.
pub(super) fn normal(raw: Option<i64>, least: i64, most: i64) -> i64 {
    match raw {
        None => 0,
        Some(_) if most == 0 => 100,
        Some(raw) => 100 * (most + least - raw) / most,
    }
}
