//! What would have to be different for another outcome? Each sentence is checked: everything is divided again under it, and
//! what does not help is not told.

use super::filter::Refusal;
use super::outcome::{Answer, Failure, wanted};
use super::{Binding, Given, Member, divide};
use crate::select::Taint;
use std::fmt;
use std::sync::Arc;

/// So many are told.
const MOST: usize = 8;
/// So many clusters are tried of each kind, whether that helps or not: each costs a division, and whoever asks must not hold up those
/// who wait for a decision.
const TRIED: usize = 16;

/// What is different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The binding puts up with a taint, or the cluster has lost it.
    Tolerated(Taint),
    /// The cluster has room for so many more replicas, or complete sets.
    Room(i64),
}

/// What would come of a change of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    pub cluster: Arc<str>,
    pub change: Change,
    /// How many replicas the cluster would get; none for what has none.
    pub gets: Option<i32>,
    /// Would nothing be left over?
    pub settles: bool,
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} would get ", self.cluster)?;
        match self.gets {
            Some(count) => write!(f, "{count}")?,
            None => f.write_str("it")?,
        }
        match &self.change {
            Change::Tolerated(taint) => write!(f, " if the taint {{{taint}}} were tolerated")?,
            Change::Room(more) => write!(f, " if it had room for {more} more")?,
        }
        f.write_str(if self.settles { "" } else { ", and some would still be left over" })
    }
}

/// Single changes of single clusters that would change who gets what: taints that are not tolerated; and where not all fits,
/// the room that is missing. Only the first few clusters of each kind are tried.
#[must_use]
pub fn counterfactuals(
    members: &[Member],
    binding: &Binding,
    given: &Given<'_>,
    answer: &Answer,
) -> Vec<Counterfactual> {
    let taints = answer.filtered.iter().filter_map(|one| match &one.reason {
        Refusal::Taint(taint) => Some((one.name.clone(), taint.clone())),
        _ => None,
    });
    let mut changed = Vec::new();
    let tolerated = taints.take(TRIED).filter_map(|(cluster, taint)| {
        if changed.is_empty() {
            changed = members.to_vec();
        }
        let at = changed.iter().position(|member| member.name == cluster)?;
        changed[at].taints.retain(|one| *one != taint);
        let settled = divide(&changed, binding, given);
        changed[at].taints.clone_from(&members[at].taints);
        told(&settled, cluster, Change::Tolerated(taint))
    });
    let missing = match answer.failure {
        Some(Failure::Short { .. }) => {
            let there: i64 = answer.feasible.iter().map(|one| one.available).sum();
            i64::from(wanted(binding)) - there
        }
        None => i64::from(answer.shortfall),
        Some(_) => 0,
    };
    let short = answer.feasible.iter().filter(|_| missing > 0).take(TRIED);
    let room = short.filter_map(|one| {
        let mut given = given.clone();
        let fits = i64::from(one.allocatable).saturating_add(missing).min(i64::from(i32::MAX));
        given.replaced.insert(one.name.to_string(), i32::try_from(fits).unwrap_or(i32::MAX));
        let settled = divide(members, binding, &given);
        // Room for what is missing that leaves something missing is no help.
        told(&settled, one.name.clone(), Change::Room(missing)).filter(|one| one.settles)
    });
    tolerated.chain(room).take(MOST).collect()
}

/// What a cluster would get, if anything.
fn told(answer: &Answer, cluster: Arc<str>, change: Change) -> Option<Counterfactual> {
    let target = answer.clusters.iter().find(|target| target.name == cluster)?;
    let settles = answer.failure.is_none() && answer.shortfall == 0;
    Some(Counterfactual { gets: target.replicas, cluster, change, settles })
}
