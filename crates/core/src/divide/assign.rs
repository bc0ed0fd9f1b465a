//! How many replicas does each of the chosen clusters get?
//!
//! What a cluster has, it keeps while the number of replicas grows; what is added goes by what still fits. When the
//! number shrinks, every cluster gives back its share. When it stays, everything does.

use super::affinity::Matcher;
use super::estimates::Candidate;
use super::general::{could_hold, wanted};
use super::outcome::{Failure, Lacking, Target};
use super::webster::{Ties, webster};
use super::{Case, Division, Shortfall, Weights};
use std::collections::BTreeMap;

/// What was decided.
pub(super) struct Decided {
    pub targets: Vec<Target>,
    pub lacking: Option<Lacking>,
}

/// Replicas by position, and what is lacking, where not all fit.
struct Shares {
    replicas: Vec<i64>,
    lacking: Option<Lacking>,
}

impl Case<'_> {
    pub fn assign(
        &self,
        chosen: &[&Candidate<'_>],
        overflow: bool,
        warnings: &mut Vec<String>,
    ) -> Result<Decided, Failure> {
        if chosen.is_empty() {
            return Err(Failure::Error("no clusters available to schedule".into()));
        }
        let parts = self.binding.components.len();
        let divided = !self.sets && parts <= 1 && (self.binding.replicas > 0 || self.binding.ask.is_some());
        if !divided {
            return Ok(Decided { targets: self.whole(chosen), lacking: None });
        }
        let Shares { replicas, lacking } = if overflow {
            self.tiers(chosen, warnings)?
        } else {
            self.divided(chosen, i64::from(self.binding.replicas), warnings)?
        };
        let empty = self.given.options.empty;
        let targets = by_name(chosen)
            .into_iter()
            .filter(|at| replicas[*at] > 0 || empty)
            .map(|at| Target {
                name: chosen[at].member.name.clone(),
                replicas: Some(i32::try_from(replicas[at]).unwrap_or(i32::MAX)),
                components: Vec::new(),
            })
            .collect();
        Ok(Decided { targets, lacking })
    }

    /// What is not divided goes to every cluster chosen, with all its components if it has any.
    fn whole(&self, chosen: &[&Candidate<'_>]) -> Vec<Target> {
        let parts = self.binding.components.iter().filter(|_| self.sets);
        let components: Vec<_> = parts.map(|c| (c.name.clone(), c.replicas)).collect();
        let target = |at: usize| Target {
            name: chosen[at].member.name.clone(),
            replicas: None,
            components: components.clone(),
        };
        by_name(chosen).into_iter().map(target).collect()
    }

    /// Tier after tier: the next gets only what does not fit into those before.
    fn tiers(&self, chosen: &[&Candidate<'_>], warnings: &mut Vec<String>) -> Result<Shares, Failure> {
        let mut tiers: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (at, candidate) in chosen.iter().enumerate() {
            tiers.entry(candidate.tier).or_default().push(at);
        }
        let mut replicas = vec![0; chosen.len()];
        let wanted = i64::from(self.binding.replicas);
        let (mut left, mut room) = (wanted, 0_i64);
        for tier in tiers.values() {
            let members: Vec<_> = tier.iter().map(|at| chosen[*at]).collect();
            let fits: i64 = members.iter().map(|candidate| candidate.available).sum();
            let take = left.min(fits);
            room = room.saturating_add(fits);
            let shares = self.divided(&members, take, warnings)?;
            for (at, share) in tier.iter().zip(shares.replicas) {
                replicas[*at] = share;
            }
            left -= take;
            if left <= 0 {
                return Ok(Shares { replicas, lacking: None });
            }
        }
        Ok(Shares { replicas, lacking: Some(self.short(left, room)?) })
    }

    /// Not all fit: a failure, unless part of it will do.
    fn short(&self, left: i64, available: i64) -> Result<Lacking, Failure> {
        let partial = self.given.options.shortfall == Shortfall::Partial;
        let kept = self.binding.clusters.iter().any(|known| known.replicas > 0);
        if partial && (available > 0 || kept) {
            Ok(Lacking { replicas: i32::try_from(left).unwrap_or(i32::MAX), available })
        } else {
            Err(Failure::Short { available })
        }
    }

    fn divided(
        &self,
        chosen: &[&Candidate<'_>],
        replicas: i64,
        warnings: &mut Vec<String>,
    ) -> Result<Shares, Failure> {
        let ties = Ties::of(&self.binding.resource.uid);
        match &self.placement.division {
            Division::Duplicated => Ok(Shares { replicas: vec![replicas; chosen.len()], lacking: None }),
            Division::Aggregated => self.dynamic(chosen, replicas, true, ties, warnings),
            Division::Weighted(Some(weights)) if weights.dynamic => {
                self.dynamic(chosen, replicas, false, ties, warnings)
            }
            Division::Weighted(weights) => {
                let votes = votes(chosen, weights.as_ref());
                Ok(Shares { replicas: shared(replicas, chosen, &votes, ties), lacking: None })
            }
            Division::Unknown { kind, preference } => Err(Failure::Error(format!(
                "unsupported replica scheduling strategy, replicaSchedulingType: {kind}, replicaDivisionPreference: {preference}, please try another scheduling strategy"
            ))),
        }
    }

    /// By what fits, or fitted.
    fn dynamic(
        &self,
        chosen: &[&Candidate<'_>],
        replicas: i64,
        aggregated: bool,
        ties: Ties,
        warnings: &mut Vec<String>,
    ) -> Result<Shares, Failure> {
        let previous: Vec<i64> = chosen.iter().map(|candidate| candidate.previous.into()).collect();
        let assigned: i64 = previous.iter().sum();
        let fresh = self.binding.is_fresh() || assigned == replicas && self.given.options.rebalance;
        if !fresh && assigned == replicas {
            self.flag(chosen, warnings);
            return Ok(Shares { replicas: previous, lacking: None });
        }
        let grows = !fresh && assigned < replicas;
        let votes: Vec<i64> = if fresh {
            chosen.iter().map(|candidate| candidate.available.max(0)).collect()
        } else if grows {
            chosen.iter().map(|candidate| candidate.allocatable.into()).collect()
        } else {
            previous.clone()
        };
        let mut target = if grows { replicas - assigned } else { replicas };
        let room: i64 = votes.iter().copied().fold(0, i64::saturating_add);
        let mut lacking = None;
        if room < target {
            lacking = Some(self.short(target - room, room)?);
            target = room;
        }
        let votes = if aggregated {
            let places: Vec<usize> =
                if fresh || grows { (0..chosen.len()).collect() } else { self.written(chosen) };
            let key = |(place, at): (usize, &usize)| {
                let first = grows && previous[*at] > 0;
                (!first, !chosen[*at].confirmed, std::cmp::Reverse(votes[*at]), place)
            };
            let mut order: Vec<_> = places.iter().enumerate().map(key).collect();
            order.sort_unstable();
            let mut kept = vec![0; votes.len()];
            let mut sum = 0_i64;
            for at in order.into_iter().map(|(.., place)| places[place]) {
                kept[at] = votes[at];
                sum = sum.saturating_add(votes[at]);
                if sum >= target {
                    break;
                }
            }
            kept
        } else {
            votes
        };
        let votes: Vec<u64> = votes.into_iter().map(|votes| u64::try_from(votes).unwrap_or(0)).collect();
        let mut replicas = shared(target, chosen, &votes, ties);
        if grows {
            for (share, previous) in replicas.iter_mut().zip(&previous) {
                *share += previous;
            }
        }
        Ok(Shares { replicas, lacking })
    }

    /// Positions in the order in which the clusters are written in the binding, then the others.
    fn written(&self, chosen: &[&Candidate<'_>]) -> Vec<usize> {
        let place: BTreeMap<&str, usize> =
            self.binding.clusters.iter().map(|known| known.name.as_str()).zip(0..).collect();
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        order.sort_by_key(|at| place.get(&*chosen[*at].member.name).copied().unwrap_or(usize::MAX));
        order
    }

    /// Nothing changes even where a cluster has lost what its replicas stand on; but it is told.
    fn flag(&self, chosen: &[&Candidate<'_>], warnings: &mut Vec<String>) {
        let Some(ask) = &self.binding.ask else { return };
        let wanted = wanted(ask);
        for candidate in chosen.iter().filter(|candidate| candidate.previous > 0) {
            let (name, has) = (&candidate.member.name, candidate.previous);
            if !could_hold(candidate.member, &wanted, has) {
                warnings.push(format!("cluster {name}: keeps {has} replicas, more than it could hold"));
            }
        }
    }
}

/// Written weights: the largest that matches. Where none matches any cluster, all weigh the same.
fn votes(chosen: &[&Candidate<'_>], weights: Option<&Weights>) -> Vec<u64> {
    let rules: Vec<(Matcher<'_>, u64)> = weights
        .iter()
        .flat_map(|weights| &weights.fixed)
        .map(|(affinity, weight)| (Matcher::new(affinity), u64::try_from(*weight).unwrap_or(0)))
        .collect();
    let weight = |candidate: &&Candidate<'_>| {
        let matching = rules.iter().filter(|(rule, _)| rule.matches(candidate.member));
        matching.map(|(_, weight)| *weight).max().unwrap_or(0)
    };
    let votes: Vec<u64> = chosen.iter().map(weight).collect();
    if votes.iter().all(|votes| *votes == 0) { vec![1; chosen.len()] } else { votes }
}

/// Positions by name. Ranks are few and each is there once: putting everybody in its place is quicker than sorting.
fn by_name(chosen: &[&Candidate<'_>]) -> Vec<usize> {
    let size = chosen.iter().map(|candidate| candidate.rank + 1).max().unwrap_or(0);
    let mut places = vec![usize::MAX; size];
    for (at, candidate) in chosen.iter().enumerate() {
        places[candidate.rank] = at;
    }
    places.retain(|at| *at != usize::MAX);
    places
}

fn shared(replicas: i64, chosen: &[&Candidate<'_>], votes: &[u64], ties: Ties) -> Vec<i64> {
    let order = by_name(chosen);
    let ordered: Vec<u64> = order.iter().map(|at| votes[*at]).collect();
    let seats = u32::try_from(replicas.max(0)).unwrap_or(u32::MAX);
    let mut out = vec![0; chosen.len()];
    for (at, seats) in order.into_iter().zip(webster(seats, &ordered, ties)) {
        out[at] = seats.into();
    }
    out
}
