//! How many would fit, going by what a cluster says about itself?
//!
//! ```text
//! by totals   min( free pods, min over requested r of floor( free(r) / request(r) ) )
//! by models   min( free pods, Σ over grades of nodes × min( 110, floor( least(r) / request(r) ) ) )
//! ```
//!
//! Totals overlook that ten nodes with 8 free cores each take no pod of 12; models are closer, and coarse. Neither looks
//! at what a replica demands of its node.

use super::summary::{Stock, Summary, amount};
use super::{Member, Model};
use crate::estimate::{Ask, Assumed, Component, UNCONSTRAINED};
use std::collections::BTreeMap;

/// Places for pods a node of a model is taken to have.
const PODS: i64 = 110;

/// A cluster gets one set: from so many on it does not matter how many more.
const ENOUGH: i64 = 100;

/// An estimate, and what is odd about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Estimated {
    /// How many.
    pub count: i32,
    /// What is odd.
    pub note: Option<String>,
}

/// What is asked for, in the units of [`Stock`]; nothing that is not asked for.
pub(super) type Wanted<'a> = Vec<(&'a str, i64)>;

/// What one replica asks for.
pub(super) fn wanted(ask: &Ask) -> Wanted<'_> {
    let amounts = ask.requests.iter().map(|(name, quantity)| (name.as_str(), amount(name, quantity)));
    amounts.filter(|(_, amount)| *amount > 0).collect()
}

/// How many more replicas. Without requirements, as many as there are places for pods.
///
/// A resource the models do not list is bounded by the totals; `upstream` takes it to be missing.
#[must_use]
pub fn replicas(member: &Member, ask: Option<&Ask>, assumed: &[Assumed], upstream: bool) -> Estimated {
    estimate(member, ask.map(wanted).as_ref(), assumed, upstream)
}

pub(super) fn estimate(
    member: &Member,
    wanted: Option<&Wanted<'_>>,
    assumed: &[Assumed],
    upstream: bool,
) -> Estimated {
    let Some(summary) = &member.summary else { return none(Some("it has no resource summary")) };
    let free = Free::new(summary, assumed);
    let pods = free.get("pods").unwrap_or(0).max(0);
    let Some(wanted) = wanted.filter(|_| pods > 0) else { return held(pods, None) };
    match Runs::of(member, summary, upstream) {
        Some(Ok(mut runs)) => {
            runs.occupy(assumed);
            let by_models = runs.count(wanted);
            let rest = if upstream { UNCONSTRAINED.into() } else { free.times(&runs.unlisted(wanted)) };
            held(pods.min(by_models).min(rest), None)
        }
        Some(Err(problem)) => held(pods.min(free.times(wanted)), Some(problem)),
        None => held(pods.min(free.times(wanted)), None),
    }
}

/// How many complete sets.
#[must_use]
pub fn sets(member: &Member, components: &[Component], assumed: &[Assumed], upstream: bool) -> Estimated {
    let Some(summary) = &member.summary else { return none(Some("it has no resource summary")) };
    let free = Free::new(summary, assumed);
    let pods = free.get("pods").unwrap_or(0).max(0);
    let each = components.iter().map(|c| i64::from(c.replicas.max(0))).fold(0, i64::saturating_add);
    if each == 0 || pods == 0 {
        return held(pods, None);
    }
    let mut sum: BTreeMap<&str, i64> = BTreeMap::new();
    for component in components {
        for (name, amount) in wanted(&component.ask) {
            let all = amount.saturating_mul(component.replicas.max(0).into());
            let known = sum.entry(name).or_default();
            *known = known.saturating_add(all);
        }
    }
    let sum: Wanted<'_> = sum.into_iter().filter(|(_, amount)| *amount > 0).collect();
    let bound = (pods / each).min(free.times(&sum));
    match Runs::of(member, summary, upstream) {
        Some(Ok(mut runs)) => {
            runs.occupy(assumed);
            let counted = runs.sets(components, bound.min(ENOUGH));
            held(if counted == ENOUGH { bound } else { counted.min(bound) }, None)
        }
        Some(Err(problem)) => held(bound, Some(problem)),
        None => held(bound, None),
    }
}

/// Could the cluster hold so many replicas if nothing else were there?
pub(super) fn could_hold(member: &Member, wanted: &Wanted<'_>, replicas: i32) -> bool {
    member.summary.as_ref().is_some_and(|summary| {
        let enough =
            |(name, each): &(&str, i64)| summary.total.get(name).unwrap_or(0) / each >= i64::from(replicas);
        wanted.iter().all(enough) && summary.total.get("pods").unwrap_or(0) >= i64::from(replicas)
    })
}

fn none(note: Option<&str>) -> Estimated {
    Estimated { count: 0, note: note.map(str::to_owned) }
}

fn held(count: i64, note: Option<String>) -> Estimated {
    Estimated { count: i32::try_from(count.max(0)).unwrap_or(UNCONSTRAINED), note }
}

/// What is free by the totals, once what is on its way has come.
struct Free<'a> {
    stock: &'a Stock,
    coming: BTreeMap<&'a str, i64>,
}

impl<'a> Free<'a> {
    #[inline]
    fn new(summary: &'a Summary, assumed: &'a [Assumed]) -> Self {
        let mut coming: BTreeMap<&str, i64> = BTreeMap::new();
        if assumed.is_empty() {
            return Self { stock: &summary.free, coming };
        }
        for component in assumed.iter().flat_map(|assumed| &assumed.components) {
            let count = i64::from(component.replicas.max(0));
            for (name, each) in [("pods", 1)].into_iter().chain(wanted(&component.ask)) {
                let known = coming.entry(name).or_default();
                *known = known.saturating_add(each.saturating_mul(count));
            }
        }
        Self { stock: &summary.free, coming }
    }

    fn get(&self, name: &str) -> Option<i64> {
        let there = self.stock.get(name)?;
        Some(if self.coming.is_empty() {
            there
        } else {
            there.saturating_sub(self.coming.get(name).copied().unwrap_or(0))
        })
    }

    /// How often that fits.
    fn times(&self, wanted: &Wanted<'_>) -> i64 {
        let fit = |(name, each): &(&str, i64)| self.get(name).unwrap_or(0).max(0) / each;
        wanted.iter().map(fit).min().unwrap_or(i64::MAX)
    }
}

/// Nodes as the models describe them: runs of equal ones, so that the work does not depend on how many there are.
struct Runs<'a> {
    /// The resources, places for pods first.
    names: Vec<&'a str>,
    /// How many nodes, and what each has free, in the order of the names.
    nodes: Vec<(i64, Vec<i64>)>,
    /// What a resource that is not listed amounts to.
    unlisted: i64,
}

impl<'a> Runs<'a> {
    /// `None` without models or counts; an error where they make no sense.
    fn of(member: &'a Member, summary: &Summary, upstream: bool) -> Option<Result<Self, String>> {
        if summary.grades.is_empty() || member.models.is_empty() {
            return None;
        }
        let mut counts: BTreeMap<i64, i64> = BTreeMap::new();
        for (grade, count) in &summary.grades {
            if *count < 0 {
                let problem =
                    format!("grade {grade} has {count} nodes; its totals are used instead of models");
                return Some(Err(problem));
            }
            let known = counts.entry(*grade).or_default();
            *known = known.saturating_add(*count);
        }
        let mut names = vec!["pods"];
        for (name, _) in member.models.iter().flat_map(|model| model.least.iter()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        // Of several models of one grade, the last counts.
        let models: BTreeMap<i64, &Model> = member.models.iter().map(|model| (model.grade, model)).collect();
        let unlisted = if upstream { 0 } else { i64::MAX };
        let free = |model: &Model| {
            let least = |name: &&str| match model.least.get(name) {
                _ if *name == "pods" => PODS,
                Some(least) => least.max(0),
                None => unlisted,
            };
            names.iter().map(least).collect()
        };
        let run = |(grade, model): (i64, &Model)| Some((*counts.get(&grade)?, free(model)));
        let nodes = models.into_iter().filter_map(run).filter(|(count, _)| *count > 0).collect();
        Some(Ok(Self { names, nodes, unlisted }))
    }

    /// What of it no model lists, or not all do.
    fn unlisted<'w>(&self, wanted: &Wanted<'w>) -> Wanted<'w> {
        let listed = |name: &str| {
            let at = self.names.iter().position(|known| *known == name);
            at.is_some_and(|at| self.nodes.iter().all(|(_, free)| free[at] != i64::MAX))
        };
        wanted.iter().filter(|(name, _)| !listed(name)).copied().collect()
    }

    /// Positions and amounts; a resource nobody lists is left to the totals, or impossible.
    fn costs(&self, wanted: &Wanted<'_>) -> Option<Vec<(usize, i64)>> {
        let mut costs = vec![(0, 1)];
        for (name, each) in wanted {
            match self.names.iter().position(|known| known == name) {
                Some(0) => {}
                Some(at) => costs.push((at, *each)),
                None if self.unlisted == 0 => return None,
                None => {}
            }
        }
        Some(costs)
    }

    fn count(&self, wanted: &Wanted<'_>) -> i64 {
        let Some(costs) = self.costs(wanted) else { return 0 };
        self.nodes
            .iter()
            .map(|(nodes, free)| nodes.saturating_mul(fit(free, &costs)))
            .fold(0, i64::saturating_add)
    }

    /// Places what is on its way; what does not fit is left out.
    fn occupy(&mut self, assumed: &[Assumed]) {
        for component in assumed.iter().flat_map(|assumed| &assumed.components) {
            self.place(&component.ask, component.replicas.into());
        }
    }

    /// Counts sets, up to so many, placing each component on the first nodes that take it.
    fn sets(&mut self, components: &[Component], most: i64) -> i64 {
        let mut sets = 0;
        while sets < most && components.iter().all(|one| self.place(&one.ask, one.replicas.into())) {
            sets += 1;
        }
        sets
    }

    /// Places replicas on the first nodes that take them; false if not all fit.
    fn place(&mut self, ask: &Ask, replicas: i64) -> bool {
        let Some(costs) = self.costs(&wanted(ask)) else { return replicas <= 0 };
        let mut left = replicas.max(0);
        let mut at = 0;
        while left > 0 && at < self.nodes.len() {
            let (nodes, free) = &self.nodes[at];
            let each = fit(free, &costs);
            if each == 0 {
                at += 1;
                continue;
            }
            // So many nodes are filled, one more perhaps in part, and the rest stays as it is.
            let (nodes, full, part) = (*nodes, (left / each).min(*nodes), left % each);
            let part = if full < nodes { part } else { 0 };
            let taken = |count: i64| {
                let mut free = free.clone();
                for (position, amount) in &costs {
                    if free[*position] != i64::MAX {
                        free[*position] -= amount * count;
                    }
                }
                free
            };
            let rest = nodes - full - i64::from(part > 0);
            let new = [(full, taken(each)), (i64::from(part > 0), taken(part)), (rest, free.clone())];
            let new: Vec<_> = new.into_iter().filter(|(nodes, _)| *nodes > 0).collect();
            left -= full * each + part;
            let count = new.len();
            self.nodes.splice(at..=at, new);
            at += count;
        }
        left == 0
    }
}

fn fit(free: &[i64], costs: &[(usize, i64)]) -> i64 {
    costs.iter().map(|(at, each)| free[*at] / each).min().unwrap_or(0)
}
