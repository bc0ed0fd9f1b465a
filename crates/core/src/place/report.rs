//! Why was it decided so? Everything found on the way, for those who ask.

use super::choose::Ranked;
use super::decide::{Cycle, Findings, Outcome};
use super::filter::Why;
use super::index::{Id, at};
use super::prepare::Prioritizer;
use super::spec::{Missing, Source};
use super::spread::Round;
use fixedbitset::FixedBitSet;
use jiff::Timestamp;
use std::sync::Arc;

/// A decision with all its reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The decision.
    pub outcome: Outcome,
    /// All candidates: the selected in their order, then the others by points, then those filtered by name.
    pub clusters: Vec<ClusterReport>,
    /// How it went round by round, under a spread policy.
    pub rounds: Vec<Round>,
    /// What resource scores took for free.
    pub source: Source,
    /// Is any resource weighed at all?
    pub weighs_resources: bool,
    /// The oldest published load that was used.
    pub oldest_load: Option<Timestamp>,
    /// When the answer may be another one.
    pub(super) look: Option<Timestamp>,
}

/// What was found about one candidate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterReport {
    /// Which one.
    pub cluster: Arc<str>,
    pub selected: bool,
    /// Why not.
    pub why: Option<Why>,
    /// Its points by prioritizer; none if it was filtered.
    pub scores: Vec<Score>,
    /// Their sum; none if it was filtered.
    pub total: Option<i64>,
    /// By how many points it is ahead of the first that is not selected, any margin included.
    pub margin: Option<i64>,
    /// Is it too fresh to be given up?
    pub held: bool,
    /// The published load it was judged by.
    pub load: Option<LoadUsed>,
}

/// Points of one prioritizer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    /// Its name, such as `Balance` or `AddOn/object/score`.
    pub name: String,
    /// The points; none if nothing is known.
    pub raw: Option<i64>,
    /// How much they count.
    pub weight: i64,
    /// What they come to.
    pub weighted: i64,
}

impl Score {
    pub(super) fn new(prioritizer: &Prioritizer, weight: i64, raw: Option<i64>, missing: Missing) -> Self {
        let resource = matches!(prioritizer, Prioritizer::Allocatable(_) | Prioritizer::Ratio(_));
        let worst = resource && missing == Missing::Worst;
        let unknown = if worst { -100 * weight.abs() } else { 0 };
        Self { name: prioritizer.to_string(), raw, weight, weighted: raw.map_or(unknown, |raw| raw * weight) }
    }
}

/// A published load and whether it could be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoadUsed {
    /// When it was summed up.
    pub at: Timestamp,
    /// How long ago that is.
    pub age_seconds: i64,
    /// Is it young enough, and not from the future?
    pub fresh: bool,
}

impl Cycle<'_> {
    /// Everybody, with what was found.
    pub(super) fn report(&self, candidates: &FixedBitSet, found: Findings<'_>) -> Report {
        let rejected = self.rejected(candidates, &found);
        let Findings { scored, picks, .. } = found;
        let margin = self.margin(&picks);
        let placement = self.placement();
        let spread = self.row.prepared.spread_weight;
        let missing = placement.extra.missing();
        let scores = |one: &Ranked| {
            let points = scored.apart.iter().map(|(prioritizer, weight, points)| {
                Score::new(prioritizer, *weight, points[at(one.row)], missing)
            });
            let worth = picks.worth.get(&one.id).filter(|_| spread != 0);
            let spread = worth.map(|worth| Score::new(&Prioritizer::Spread, spread, *worth, missing));
            points.chain(spread).collect::<Vec<_>>()
        };
        let entry = |one: &Ranked, why: Option<Why>, margin| ClusterReport {
            cluster: self.fleet.index.name(one.id).clone(),
            selected: why.is_none(),
            why,
            scores: scores(one),
            total: Some(one.total),
            margin,
            held: one.held,
            load: self.load_used(one.id),
        };
        let mut clusters = Vec::new();
        let cut = picks.chosen.last().copied();
        for one in &picks.chosen {
            let ahead = picks.next.filter(|_| margin.is_some());
            clusters.push(entry(one, None, ahead.map(|next| one.standing().saturating_sub(next.standing()))));
        }
        for one in &picks.left {
            let why = match (picks.lacking.get(&one.id), cut) {
                (Some(key), _) => Why::NoTopology { key: key.clone() },
                (None, Some(last)) if placement.spread.is_empty() => {
                    Why::Outranked { points: last.standing().saturating_sub(one.standing()) }
                }
                (None, _) if !placement.spread.is_empty() && picks.worth.get(&one.id) == Some(&None) => {
                    Why::Crowded
                }
                (None, last) => {
                    let points = last.map_or(0, |last| last.standing().saturating_sub(one.standing()).max(0));
                    Why::Outranked { points }
                }
            };
            clusters.push(entry(one, Some(why), None));
        }
        clusters.extend(rejected.into_iter().map(|(id, why)| ClusterReport {
            cluster: self.fleet.index.name(id).clone(),
            why: Some(why),
            load: self.load_used(id),
            ..ClusterReport::default()
        }));
        Report {
            outcome: Outcome::default(),
            clusters,
            rounds: picks.rounds,
            source: placement.extra.source,
            weighs_resources: !self.row.prepared.reads.resources.is_empty(),
            oldest_load: scored.found.oldest,
            look: None,
        }
    }

    /// Who was filtered, by name, and why.
    fn rejected(&self, candidates: &FixedBitSet, found: &Findings<'_>) -> Vec<(Id, Why)> {
        let index = &self.fleet.index;
        let why = |id: Id| {
            if found.filtered.matching.contains(at(id)) {
                found.filters.untolerated(id)
            } else {
                Some(found.filters.mismatch(id))
            }
        };
        let all = index.by_name().iter().copied().filter(|id| candidates.contains(at(*id)));
        all.filter_map(|id| Some((id, why(id)?))).collect()
    }

    fn load_used(&self, id: Id) -> Option<LoadUsed> {
        let placement = self.placement();
        if placement.extra.source == Source::Static || self.row.prepared.reads.resources.is_empty() {
            return None;
        }
        let load = self.fleet.index.cluster(id).load.as_ref()?;
        let age = self.now.duration_since(load.at);
        let fresh = !age.is_negative() && age <= placement.extra.max_age;
        Some(LoadUsed { at: load.at, age_seconds: age.as_secs(), fresh })
    }
}
