//! Is the node too busy for any more? One metric above its limit keeps pods away; all that are, are told.
//!
//! A limit that is reached exactly is kept. What is not known never rejects by itself, here; how many limits could
//! not be checked is part of the answer, and the admission rule, which does not need these metrics, stands beside.
//! Scores and limits are about the node alone: which pod comes plays no part, except that some are exempt.

use super::policy::{Figure, Rules};
use super::ratio::Ratio;
use super::term::{Term, Terms};
use crate::explain::Reason;
use crate::select::Lookup;

/// What the limits say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filtered {
    /// Every metric above its limit, in the order of the policy.
    pub reasons: Vec<Reason>,
    /// How many limits could not be checked because the value is not known.
    pub unknown: usize,
}

/// Compares every metric with its limit on the node of that name, in the order of the policy.
#[must_use]
pub fn filter(rules: &Rules, name: &str, node: &super::policy::NodeRules, terms: &Terms) -> Filtered {
    let mut answer = Filtered::default();
    for (i, predicate) in rules.predicates().iter().enumerate() {
        let (Some(Some(limit)), Some(term)) = (node.limits.get(i), terms.terms.get(predicate.metric)) else {
            continue;
        };
        match term.value {
            None => answer.unknown += 1,
            Some(value) if value.exceeds(*limit) => answer.reasons.extend(over(name, term, value, *limit)),
            Some(_) => {}
        }
    }
    answer
}

/// Why a metric above its limit keeps pods away; in upstream mode, where figures are floats, as crane says it.
fn over(node: &str, term: &Term, value: Figure, limit: Figure) -> Option<Reason> {
    let (metric, age_seconds) = (term.metric.to_string(), term.age_seconds.unwrap_or_default());
    Some(match (value, limit) {
        (Figure::Exact(value), Figure::Exact(limit)) => {
            Reason::OverThreshold { metric, value, limit, age_seconds, source: term.source? }
        }
        _ => Reason::LoadTooHigh { metric, node: node.to_owned(), value, limit, age_seconds },
    })
}

/// How far the metric furthest above its limit is above it, as a share of the node; `None` if none is.
#[must_use]
pub fn excess(rules: &Rules, node: &super::policy::NodeRules, terms: &Terms) -> Option<Ratio> {
    let over = rules.predicates().iter().zip(&node.limits).filter_map(|(predicate, limit)| {
        let (value, limit) = (terms.terms.get(predicate.metric)?.value?.ratio()?, (*limit)?.ratio()?);
        (value > limit).then(|| Ratio::from_nano(value.nano().saturating_sub(limit.nano())))
    });
    over.max()
}

/// A pod, as far as exemptions go.
#[derive(Clone, Copy, Debug)]
pub struct Who<'a, L: ?Sized> {
    pub namespace: &'a str,
    pub labels: &'a L,
    /// Does a `DaemonSet` own it?
    pub daemon: bool,
}

/// Is the pod let through whatever the load? Pods of daemon sets are, and by default those the settings name.
#[must_use]
pub fn exempt<L: Lookup + ?Sized>(rules: &Rules, who: &Who<'_, L>) -> bool {
    let ours = rules.mode() == super::settings::Mode::Default;
    who.daemon || (ours && rules.settings().exempt.covers(who.namespace, who.labels))
}

#[cfg(test)]
mod tests;
