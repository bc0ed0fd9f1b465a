//! May the cluster have it at all? In a fixed order; the first that objects gives the reason.

use super::affinity::Matcher;
use super::{Apis, By, Case, Group, Known, Member, Spread};
use crate::select::Taint;
use crate::select::taint::{Compare, repelling};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

/// Why a cluster was refused. Displays as Karmada words it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The workload is being moved away from there.
    Evicting,
    /// The placement does not mean this cluster.
    Affinity,
    /// A taint is not tolerated.
    Taint(Taint),
    /// The cluster does not serve the kind.
    Api,
    /// It is to be spread by provider, and the cluster has none.
    NoProvider,
    /// It is to be spread by region, and the cluster has none.
    NoRegion,
    /// It is to be spread by zone, and the cluster has none.
    NoZones,
    /// It is to be spread by a label the cluster does not have.
    NoLabel(String),
    /// It is a workload of several templates, and no complete set of them fits there.
    NoSet,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Evicting => f.write_str("cluster(s) is in the process of eviction"),
            Self::Affinity => {
                f.write_str("cluster(s) did not match the placement cluster affinity constraint")
            }
            Self::Taint(taint) => write!(f, "cluster(s) had untolerated taint {{{taint}}}"),
            Self::Api => f.write_str("cluster(s) did not have the API resource"),
            Self::NoProvider => f.write_str("cluster(s) did not have provider property"),
            Self::NoRegion => f.write_str("cluster(s) did not have region property"),
            Self::NoZones => f.write_str("cluster(s) did not have zones property"),
            Self::NoSet => f.write_str("cluster(s) did not have room for a complete set of components"),
            Self::NoLabel(key) => write!(f, "cluster(s) did not have the label {key}"),
        }
    }
}

/// Everything asked of a cluster, prepared once.
pub(super) struct Filter<'c, 'a> {
    case: &'c Case<'a>,
    /// One per tier; empty for no demands.
    tiers: Vec<Matcher<'a>>,
    /// Lists of kinds that were looked at: clusters of one version share theirs.
    known: RefCell<Vec<(*const Apis, bool)>>,
}

/// So many lists are remembered.
const KNOWN: usize = 16;

impl<'c, 'a> Filter<'c, 'a> {
    pub fn new(case: &'c Case<'a>, group: Option<&'a Group>) -> Self {
        let tiers = match group {
            None => case.placement.affinity.iter().map(Matcher::new).collect(),
            Some(group) => {
                // What runs no pods needs no room: it never overflows.
                let more = if case.binding.is_workload() { group.overflow.as_slice() } else { &[] };
                std::iter::once(&group.affinity).chain(more).map(Matcher::new).collect()
            }
        };
        Self { case, tiers, known: RefCell::default() }
    }

    /// Does the cluster serve the kind?
    fn serves(&self, member: &Member) -> bool {
        let list = Arc::as_ptr(&member.apis);
        let mut known = self.known.borrow_mut();
        if let Some((_, serves)) = known.iter().find(|(one, _)| *one == list) {
            return *serves;
        }
        let bound = &self.case.binding.resource;
        let serves = member.apis.get(&bound.api_version).is_some_and(|kinds| kinds.contains(&bound.kind));
        if known.len() < KNOWN {
            known.push((list, serves));
        }
        serves
    }

    /// The tier of a cluster that may have it, or why it may not.
    pub fn check(&self, Known { member, previous }: Known<'_>) -> Result<usize, Refusal> {
        let Case { binding, placement, given, .. } = self.case;
        if binding.evicting.contains(&*member.name) {
            return Err(Refusal::Evicting);
        }
        let tier = match self.tiers.as_slice() {
            [] => Some(0),
            tiers => tiers.iter().position(|tier| tier.matches(member)),
        };
        let tier = tier.ok_or(Refusal::Affinity)?;
        // What is there already is not thrown out by these: others see to it that it goes, in good order.
        if previous.is_none() {
            if let Some(taint) = repelling(&member.taints, &placement.tolerations, Compare::Off) {
                return Err(Refusal::Taint(taint.clone()));
            }
            if !self.serves(member) {
                return Err(Refusal::Api);
            }
        }
        match placement.spread.iter().find_map(|spread| lacks(spread, member, given.options.upstream)) {
            Some(refusal) => Err(refusal),
            None => Ok(tier),
        }
    }
}

fn lacks(spread: &Spread, member: &Member, upstream: bool) -> Option<Refusal> {
    match &spread.by {
        By::Provider if member.provider.is_empty() => Some(Refusal::NoProvider),
        By::Region if member.region.is_empty() => Some(Refusal::NoRegion),
        By::Zone if member.zones.is_empty() => Some(Refusal::NoZones),
        By::Label(key) if !upstream && !member.labels.contains_key(key) => {
            Some(Refusal::NoLabel(key.clone()))
        }
        _ => None,
    }
}
