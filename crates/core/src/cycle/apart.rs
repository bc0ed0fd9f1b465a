//! Which pods want to be near each other, and which apart?
//!
//! Three demands can refuse a node: pods the new one must be near are not there, pods it must avoid are, or pods
//! already there keep it away. Preferences of both sides score.

use super::Filter;
use super::decide::Input;
use super::memo::Places;
use super::prepare::Prepared;
use crate::view::groups::Group;
use crate::view::labels::Domains;
use crate::view::{Labels, PodTerm, PodView};
use std::sync::Arc;

/// How many pods there are by place.
#[derive(Debug)]
struct Counted {
    places: Arc<Domains>,
    pods: Vec<u32>,
    total: u64,
}

impl Counted {
    fn new(places: Arc<Domains>) -> Self {
        Self { pods: vec![0; places.count], places, total: 0 }
    }

    fn add(&mut self, node: usize, pods: u32) {
        if let Some(place) = self.places.place(node) {
            self.pods[place] = self.pods[place].saturating_add(pods);
            self.total += u64::from(pods);
        }
    }

    fn shift(&mut self, node: usize, by: i32) {
        if let Some(place) = self.places.place(node) {
            self.pods[place] = self.pods[place].saturating_add_signed(by);
            self.total = self.total.saturating_add_signed(by.into());
        }
    }

    /// Is anybody at the node's place? `None` if it has none.
    fn has(&self, node: usize) -> Option<bool> {
        self.places.place(node).map(|place| self.pods[place] > 0)
    }
}

/// What affinity between pods demands, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Hard {
    near: Vec<Counted>,
    /// Is the pod one of those it must be near? Then it may be the first of them.
    itself: bool,
    away: Vec<Counted>,
    /// Pods that keep it away, by the label that makes the places.
    kept: Vec<(Arc<str>, Counted)>,
    /// Nodes on which pods that go there first will be in the way, and how. Nobody counts on them to be near: they may come
    /// to be elsewhere.
    first: Vec<(usize, Filter)>,
}

/// Does a term of the new pod speak of pods like these?
fn speaks_of(input: &Input<'_>, term: &PodTerm, namespace: &str, labels: &Labels) -> bool {
    term.selector.matches(labels)
        && (term.namespaces.iter().any(|n| **n == *namespace)
            || term
                .namespace_selector
                .as_ref()
                .is_some_and(|s| s.matches(&input.cluster.namespace_labels(namespace))))
}

fn groups<'a>(input: &Input<'a>, term: &'a PodTerm) -> impl Iterator<Item = &'a Group> {
    let hint = match (term.namespaces.as_slice(), &term.namespace_selector) {
        ([only], None) => Some(&**only),
        _ => None,
    };
    let input = *input;
    let groups = input.cluster.groups().matching(&term.selector, hint);
    groups.filter(move |g| speaks_of(&input, term, g.namespace(), g.labels()))
}

impl Hard {
    pub fn new(input: &Input<'_>, pod: &PodView, ready: &Prepared, places: &mut Places) -> Self {
        let at = input.cluster;
        let labels = at.namespace_labels(&pod.key.namespace);
        let speaks = |t: &PodTerm| t.selector.matches(&pod.labels) && t.covers(&pod.key.namespace, &labels);
        let mut out = Self::default();

        for group in at.groups().repelling(&pod.labels) {
            for term in group.anti_affinity().required.iter().filter(|t| speaks(t)) {
                let known = out.kept.iter().position(|(key, _)| *key == term.topology_key);
                let known = known.unwrap_or_else(|| {
                    let counted = Counted::new(places.of(at, &term.topology_key));
                    out.kept.push((term.topology_key.clone(), counted));
                    out.kept.len() - 1
                });
                for (node, pods) in group.nodes() {
                    out.kept[known].1.add(node, pods);
                }
            }
        }
        out.kept.retain(|(_, counted)| counted.total > 0);

        for term in &pod.wants.anti_affinity.required {
            let mut counted = Counted::new(places.of(at, &term.topology_key));
            for group in groups(input, term) {
                for (node, pods) in group.nodes() {
                    counted.add(node, pods);
                }
            }
            out.away.push(counted);
        }

        let near = &pod.wants.affinity.required;
        if let Some((one, rest)) = near.split_first() {
            out.near = near.iter().map(|t| Counted::new(places.of(at, &t.topology_key))).collect();
            out.itself = near.iter().all(speaks);
            // Only pods that meet every term count.
            let all = |g: &&Group| rest.iter().all(|t| speaks_of(input, t, g.namespace(), g.labels()));
            for group in groups(input, one).filter(all) {
                for (node, pods) in group.nodes() {
                    for counted in &mut out.near {
                        counted.add(node, pods);
                    }
                }
            }
        }

        for (node, promised) in &ready.promised {
            let mut is_placed = |term: &PodTerm| places.of(at, &term.topology_key).place(*node).is_some();
            let mut avoids = pod.wants.anti_affinity.required.iter();
            let avoids = avoids.any(|term| {
                let of = |other: &Arc<PodView>| speaks_of(input, term, &other.key.namespace, &other.labels);
                promised.pods.iter().any(of) && is_placed(term)
            });
            let mut theirs = promised.pods.iter().flat_map(|other| &other.wants.anti_affinity.required);
            if avoids {
                out.first.push((*node, Filter::AntiAffinity));
            } else if theirs.any(|term| speaks(term) && is_placed(term)) {
                out.first.push((*node, Filter::ExistingAntiAffinity));
            }
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.away.is_empty() && self.kept.is_empty() && self.first.is_empty()
    }

    /// As if there were one more (`by` 1) or one fewer (`by` -1) pod like the other on the node. It must have
    /// been counted when this was made.
    pub fn shift(&mut self, input: &Input<'_>, pod: &PodView, other: &PodView, node: usize, by: i32) {
        let spoken_of = |t: &PodTerm| speaks_of(input, t, &other.key.namespace, &other.labels);
        if !self.kept.is_empty() && !other.wants.anti_affinity.required.is_empty() {
            let labels = input.cluster.namespace_labels(&pod.key.namespace);
            let terms = other.wants.anti_affinity.required.iter();
            for term in
                terms.filter(|t| t.selector.matches(&pod.labels) && t.covers(&pod.key.namespace, &labels))
            {
                for (_, counted) in self.kept.iter_mut().filter(|(key, _)| *key == term.topology_key) {
                    counted.shift(node, by);
                }
            }
        }
        for (term, counted) in pod.wants.anti_affinity.required.iter().zip(&mut self.away) {
            if spoken_of(term) {
                counted.shift(node, by);
            }
        }
        if !self.near.is_empty() && pod.wants.affinity.required.iter().all(spoken_of) {
            for counted in &mut self.near {
                counted.shift(node, by);
            }
        }
    }

    /// The first demand the node fails.
    pub fn check(&self, node: usize) -> Option<Filter> {
        if !self.near.is_empty() {
            let mut there = true;
            for counted in &self.near {
                match counted.has(node) {
                    None => return Some(Filter::Affinity),
                    Some(has) => there &= has,
                }
            }
            // Nobody it must be near exists anywhere, but it is of that kind itself: it may be the first.
            let first = || self.itself && self.near.iter().all(|c| c.total == 0);
            if !there && !first() {
                return Some(Filter::Affinity);
            }
        }
        let first = self.first.iter().find(|(n, _)| *n == node).map(|(_, rule)| *rule);
        if first == Some(Filter::AntiAffinity) || self.away.iter().any(|c| c.has(node) == Some(true)) {
            return Some(Filter::AntiAffinity);
        }
        if self.kept.iter().any(|(_, c)| c.has(node) == Some(true)) {
            return Some(Filter::ExistingAntiAffinity);
        }
        first
    }
}

/// What both sides like, added up by place.
#[derive(Debug, Default)]
pub(super) struct Soft(Vec<(Arc<str>, Arc<Domains>, Vec<i64>)>);

/// What needing a pod is worth to the pod that needs it, when the needed one is placed.
const NEEDED: i64 = 1;

impl Soft {
    /// `None` when nobody likes or dislikes anything.
    pub fn new(input: &Input<'_>, pod: &PodView, places: &mut Places) -> Option<Self> {
        let at = input.cluster;
        let mut out = Self::default();
        let mut any = false;
        let (affinity, anti) = (&pod.wants.affinity, &pod.wants.anti_affinity);
        let liked = affinity.preferred.iter().map(|(w, t)| (*w, t));
        let disliked = anti.preferred.iter().map(|(w, t)| (-w, t));
        for (weight, term) in liked.chain(disliked) {
            for group in groups(input, term) {
                any |= out.add(input, places, &term.topology_key, group, weight);
            }
        }
        let labels = at.namespace_labels(&pod.key.namespace);
        for group in at.groups().opinionated(&pod.labels) {
            let needs = group.affinity().required.iter().map(|t| (NEEDED, t));
            let for_it = group.affinity().preferred.iter().map(|(w, t)| (*w, t));
            let against = group.anti_affinity().preferred.iter().map(|(w, t)| (-w, t));
            for (weight, term) in needs.chain(for_it).chain(against) {
                if term.selector.matches(&pod.labels) && term.covers(&pod.key.namespace, &labels) {
                    any |= out.add(input, places, &term.topology_key, group, weight);
                }
            }
        }
        any.then_some(out)
    }

    fn add(
        &mut self,
        input: &Input<'_>,
        places: &mut Places,
        key: &Arc<str>,
        group: &Group,
        weight: i64,
    ) -> bool {
        let at = self.0.iter().position(|(k, ..)| k == key).unwrap_or_else(|| {
            let domains = places.of(input.cluster, key);
            let sums = vec![0; domains.count];
            self.0.push((key.clone(), domains, sums));
            self.0.len() - 1
        });
        let (_, domains, sums) = &mut self.0[at];
        let mut any = false;
        for (node, count) in group.nodes() {
            if let Some(place) = domains.place(node) {
                sums[place] += weight * i64::from(count);
                any = true;
            }
        }
        any
    }

    pub fn raw(&self, node: usize) -> i64 {
        self.0.iter().filter_map(|(_, domains, sums)| domains.place(node).map(|place| sums[place])).sum()
    }
}

/// From the least to the most liked: 0 to 100, as kube-scheduler computes it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    reason = "the same floats as kube-scheduler, cut as it cuts"
)]
pub(super) fn normal(raw: i64, least: i64, most: i64) -> i64 {
    if most > least { (100.0 * ((raw - least) as f64 / (most - least) as f64)) as i64 } else { 0 }
}
