//! Which pods want to be near each other, and which apart?
//!
//! Three demands can refuse a node: pods the new one must be near are not there, pods it must avoid are, or pods
//! already there keep it away. Preferences of both sides score.

use super::Rule;
use super::decide::Input;
use super::memo::Places;
use crate::view::groups::Group;
use crate::view::labels::Domains;
use crate::view::{PodTerm, PodView};
use std::sync::Arc;

/// A place-by-place mark.
#[derive(Debug)]
struct Marked {
    places: Arc<Domains>,
    marks: Vec<bool>,
}

impl Marked {
    fn new(places: Arc<Domains>) -> Self {
        Self { marks: vec![false; places.count], places }
    }

    fn mark(&mut self, node: usize) -> bool {
        let Some(place) = self.places.place(node) else { return false };
        self.marks[place] = true;
        true
    }

    fn has(&self, node: usize) -> Option<bool> {
        self.places.place(node).map(|place| self.marks[place])
    }
}

/// What affinity between pods demands, ready to be asked.
#[derive(Debug, Default)]
pub(super) struct Hard {
    near: Vec<Marked>,
    /// Nobody it must be near exists anywhere, but it is of that kind itself: it may be the first.
    first: bool,
    away: Vec<Marked>,
    kept: Vec<Marked>,
}

/// Does a term of the new pod speak of this group?
fn speaks_of(input: &Input<'_>, term: &PodTerm, group: &Group) -> bool {
    term.selector.matches(group.labels())
        && (term.namespaces.iter().any(|n| **n == *group.namespace())
            || term
                .namespace_selector
                .as_ref()
                .is_some_and(|s| s.matches(&input.cluster.namespace_labels(group.namespace()))))
}

fn groups<'a>(input: &Input<'a>, term: &'a PodTerm) -> impl Iterator<Item = &'a Group> {
    let hint = match (term.namespaces.as_slice(), &term.namespace_selector) {
        ([only], None) => Some(&**only),
        _ => None,
    };
    let input = *input;
    input.cluster.groups().matching(&term.selector, hint).filter(move |g| speaks_of(&input, term, g))
}

impl Hard {
    pub fn new(input: &Input<'_>, pod: &PodView, places: &mut Places) -> Self {
        let at = input.cluster;
        let labels = at.namespace_labels(&pod.namespace);
        let speaks = |t: &PodTerm| t.selector.matches(&pod.labels) && t.covers(&pod.namespace, &labels);
        let mut out = Self::default();

        for group in at.groups().repelling(&pod.labels) {
            for term in group.anti_affinity().required.iter().filter(|t| speaks(t)) {
                let mut marked = Marked::new(places.of(at, &term.topology_key));
                let mut any = false;
                for (node, _) in group.nodes() {
                    any |= marked.mark(node);
                }
                if any {
                    out.kept.push(marked);
                }
            }
        }

        for term in &pod.wants.anti_affinity.required {
            let mut marked = Marked::new(places.of(at, &term.topology_key));
            for group in groups(input, term) {
                for (node, _) in group.nodes() {
                    marked.mark(node);
                }
            }
            out.away.push(marked);
        }

        let near = &pod.wants.affinity.required;
        if let Some((one, rest)) = near.split_first() {
            out.near = near.iter().map(|t| Marked::new(places.of(at, &t.topology_key))).collect();
            let mut any = false;
            // Only pods that meet every term count.
            for group in groups(input, one).filter(|g| rest.iter().all(|t| speaks_of(input, t, g))) {
                for (node, _) in group.nodes() {
                    for marked in &mut out.near {
                        any |= marked.mark(node);
                    }
                }
            }
            out.first = !any && near.iter().all(speaks);
        }
        out
    }

    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.away.is_empty() && self.kept.is_empty()
    }

    /// The first demand the node fails.
    pub fn check(&self, node: usize) -> Option<Rule> {
        if !self.near.is_empty() {
            let mut there = true;
            for marked in &self.near {
                match marked.has(node) {
                    None => return Some(Rule::Affinity),
                    Some(has) => there &= has,
                }
            }
            if !there && !self.first {
                return Some(Rule::Affinity);
            }
        }
        if self.away.iter().any(|m| m.has(node) == Some(true)) {
            return Some(Rule::AntiAffinity);
        }
        if self.kept.iter().any(|m| m.has(node) == Some(true)) {
            return Some(Rule::ExistingAntiAffinity);
        }
        None
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
        let labels = at.namespace_labels(&pod.namespace);
        for group in at.groups().opinionated(&pod.labels) {
            let needs = group.affinity().required.iter().map(|t| (NEEDED, t));
            let for_it = group.affinity().preferred.iter().map(|(w, t)| (*w, t));
            let against = group.anti_affinity().preferred.iter().map(|(w, t)| (-w, t));
            for (weight, term) in needs.chain(for_it).chain(against) {
                if term.selector.matches(&pod.labels) && term.covers(&pod.namespace, &labels) {
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
