//! How many more fit in each cluster, all told? Several estimators, one number.
//!
//! An estimator that counts nodes knows better than totals do, so where it answered, it alone is believed; `min` takes
//! the least of all instead, as Karmada does. One that fails is not heard for that cluster, and for no other: the
//! totals stand in, and clusters whose number is confirmed come first.

use super::general::{self, Estimated};
use super::outcome::{Feasible, Said};
use super::{Along, Binding, Case, Division, Known, Member, Placement};
use crate::estimate::UNCONSTRAINED;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What one estimator said.
#[derive(Clone, Debug, Default)]
pub struct Estimator {
    pub name: Arc<str>,
    /// By cluster; those missing got no answer and gave no reason.
    pub opinions: BTreeMap<String, Opinion>,
}

/// What it said of one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// So many. -1 is the wire's word for no opinion; less is a confused way of saying none.
    Count(i32),
    /// It could not say, and why.
    Failed(String),
}

/// Whose estimate counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// That of estimators which count nodes, where there is one; else the general.
    #[default]
    AccurateFirst,
    /// The least.
    Min,
    /// Only the general one.
    General,
}

/// A cluster that may have it.
#[derive(Clone, Copy)]
pub(super) struct Candidate<'a> {
    pub member: &'a Member,
    /// Its place by name: names are far apart in memory, numbers are not.
    pub rank: usize,
    pub tier: usize,
    pub score: i64,
    /// What it has already.
    pub previous: i32,
    pub allocatable: i32,
    pub available: i64,
    /// Where it is kept what was said of it.
    pub said: (u32, u32),
    pub confirmed: bool,
}

impl Candidate<'_> {
    pub fn told(&self) -> Feasible {
        Feasible {
            name: self.member.name.clone(),
            tier: self.tier,
            score: self.score,
            allocatable: self.allocatable,
            available: self.available,
            said: self.said,
            confirmed: self.confirmed,
        }
    }
}

/// Do estimates bear on the answer at all? Where not, nobody need be asked.
#[must_use]
pub fn needed(binding: &Binding, placement: &Placement) -> bool {
    let overflow = placement.groups.iter().any(|group| !group.overflow.is_empty());
    let counted = binding.replicas > 0 || !binding.components.is_empty();
    counted
        && (overflow
            || match &placement.division {
                Division::Aggregated => true,
                Division::Duplicated => !placement.spread.is_empty(),
                Division::Weighted(None) | Division::Unknown { .. } => false,
                Division::Weighted(Some(weights)) => {
                    weights.dynamic || weights.fixed.is_empty() && !placement.spread.is_empty()
                }
            })
}

const GENERAL: &str = "general-estimator";
const REPLACED: &str = "override";

impl<'a> Case<'a> {
    /// Clusters that passed, with their numbers.
    pub fn candidates(
        &self,
        passed: &[(Known<'a>, usize)],
        warnings: &mut Vec<String>,
    ) -> (Vec<Candidate<'a>>, Said) {
        let silent = self.silent(passed);
        let names = [GENERAL.into(), REPLACED.into()].into_iter();
        let names = names.chain(self.given.estimators.iter().map(|one| one.name.clone())).collect();
        let mut told = Said { names, all: Vec::new() };
        let wanted = self.binding.ask.as_ref().map(general::wanted);
        // A configuration needs no room, and a workload scaled to nothing neither.
        let counted = self.binding.replicas > 0 || !self.binding.components.is_empty();
        if counted {
            told.all.reserve(passed.len() * (1 + self.given.estimators.len()));
        }
        let mut said: Vec<_> = self
            .given
            .estimators
            .iter()
            .map(|one| Along::new(one.opinions.iter().map(|(name, opinion)| (name.as_str(), opinion))))
            .collect();
        let mut opinions: Vec<Option<&Opinion>> = Vec::new();
        let one = |(rank, (Known { member, previous: known }, tier)): (usize, &(Known<'a>, usize))| {
            let previous = known.unwrap_or(0);
            opinions.clear();
            opinions.extend(said.iter_mut().map(|said| said.find(&member.name)));
            let mut out = Candidate {
                member,
                rank,
                tier: *tier,
                score: if known.is_some() { 100 } else { 0 },
                previous,
                allocatable: UNCONSTRAINED,
                available: 0,
                said: (told.end(), 0),
                confirmed: true,
            };
            if counted {
                let replaced = self.given.replaced.get(&*member.name);
                if let Some(count) = replaced {
                    told.all.push((1, Some(*count)));
                    out.allocatable = (*count).max(0);
                } else {
                    let assumed = self.given.assumed.get(&*member.name).map_or(&[][..], Vec::as_slice);
                    let upstream = self.given.options.upstream;
                    let general = if self.sets {
                        general::sets(member, &self.binding.components, assumed, upstream)
                    } else {
                        general::estimate(member, wanted.as_ref(), assumed, upstream)
                    };
                    self.merge(&mut out, general, (&opinions, &silent), &mut told, warnings);
                }
                if out.allocatable == UNCONSTRAINED {
                    out.allocatable = self.need();
                }
            }
            out.said.1 = told.end();
            let (fits, has) = (i64::from(out.allocatable), i64::from(previous));
            if self.binding.changed && counted {
                // The estimate is of what it may have in all.
                out.available = fits;
                out.allocatable = out.allocatable.saturating_sub(previous).max(0);
            } else {
                out.available = fits + has;
            }
            out
        };
        let candidates = passed.iter().enumerate().map(one).collect();
        (candidates, told)
    }

    /// How many are wanted of a cluster, at most.
    pub fn need(&self) -> i32 {
        if self.sets { 1 } else { self.binding.replicas }
    }

    /// Estimators nobody listens to: in Karmada, those that failed for any cluster they are asked about.
    fn silent(&self, passed: &[(Known<'a>, usize)]) -> Vec<bool> {
        let failed = |one: &Estimator, (known, _): &(Known<'_>, usize)| {
            matches!(one.opinions.get(&*known.member.name), Some(Opinion::Failed(_)))
        };
        let upstream = self.given.options.upstream;
        let dead = |one: &Estimator| upstream && passed.iter().any(|known| failed(one, known));
        self.given.estimators.iter().map(dead).collect()
    }

    fn merge(
        &self,
        out: &mut Candidate<'_>,
        general: Estimated,
        (opinions, silent): (&[Option<&Opinion>], &[bool]),
        told: &mut Said,
        warnings: &mut Vec<String>,
    ) {
        let name = &out.member.name;
        if let Some(note) = general.note {
            warnings.push(format!("cluster {name}: {note}"));
        }
        let mode = if self.given.options.upstream { Mode::Min } else { self.given.options.mode };
        told.all.push((0, Some(general.count)));
        let mut accurate: Option<i32> = None;
        let mut failures = Vec::new();
        for (by, ((estimator, opinion), silent)) in
            (2..).zip(self.given.estimators.iter().zip(opinions).zip(silent))
        {
            let count = match opinion {
                Some(Opinion::Count(-1)) | None => None,
                Some(Opinion::Count(count)) => Some((*count).max(0)),
                Some(Opinion::Failed(why)) => {
                    failures.push(format!("cluster {name}: {} failed: {why}", estimator.name));
                    None
                }
            };
            told.all.push((by, count));
            if !silent && let Some(count) = count {
                accurate = Some(accurate.map_or(count, |known| known.min(count)));
            }
        }
        out.allocatable = match (mode, accurate) {
            (Mode::AccurateFirst, Some(accurate)) => accurate,
            (Mode::Min, Some(accurate)) => accurate.min(general.count),
            (Mode::General, _) | (_, None) => general.count,
        };
        if mode != Mode::General && accurate.is_none() && !failures.is_empty() {
            out.confirmed = self.given.options.upstream;
            for failure in &mut failures {
                failure.push_str("; only what the cluster says of itself is known");
            }
        }
        warnings.append(&mut failures);
    }
}
