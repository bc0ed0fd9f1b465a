//! How many points does each cluster have? One column per prioritizer, one total per cluster.
//!
//! Points are floating-point figures cut off toward zero, in the order of operations written here. That is no detail:
//! 0.6 of a resource is 19 points, not 20, and a point decides.

use super::filter::Filters;
use super::index::{Column, Id, at};
use super::prepare::Prioritizer;
use super::spec::{Missing, Source};
use fixedbitset::FixedBitSet;
use jiff::Timestamp;
use std::sync::Arc;

/// What everybody has been selected for, by cluster.
pub(super) struct Counts {
    pub of: Vec<u32>,
    pub most: u32,
}

/// What was found while scoring.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// Score objects that are past their time.
    pub expired: Vec<String>,
    /// The first time something used here will be too old.
    pub until: Option<Timestamp>,
    /// The oldest published load that was used.
    pub oldest: Option<Timestamp>,
    /// Clusters whose published load is too old, from the future, or not there.
    pub unknown: usize,
}

impl Found {
    fn lasts(&mut self, until: Timestamp) {
        self.until = Some(self.until.map_or(until, |known| known.min(until)));
    }
}

/// The points of one prioritizer, for each survivor in order; none where nothing is known.
pub(super) type Points = Vec<Option<i64>>;

pub(super) struct Scoring<'a> {
    pub filters: &'a Filters<'a>,
    pub counts: &'a Counts,
    pub survivors: &'a [Id],
    pub tainted: &'a FixedBitSet,
}

impl Scoring<'_> {
    /// Adds the points of a prioritizer to the totals; keeps them apart, too, if asked for.
    pub fn add(
        &self,
        prioritizer: &Prioritizer,
        weight: i64,
        totals: &mut [i64],
        found: &mut Found,
        apart: Option<&mut Vec<(Prioritizer, i64, Points)>>,
    ) {
        let missing = match self.filters.placement.extra.missing() {
            Missing::Middle => 0,
            Missing::Worst => -100 * weight.abs(),
        };
        let points = self.points(prioritizer, found);
        // A score nobody has is only worth less where a resource is not known.
        let resource = matches!(prioritizer, Prioritizer::Allocatable(_) | Prioritizer::Ratio(_));
        let missing = if resource { missing } else { 0 };
        for (total, points) in totals.iter_mut().zip(&points) {
            *total = total.saturating_add(points.map_or(missing, |points| weight * points));
        }
        if let Some(apart) = apart {
            apart.push((prioritizer.clone(), weight, points));
        }
    }

    fn points(&self, prioritizer: &Prioritizer, found: &mut Found) -> Points {
        match prioritizer {
            Prioritizer::Balance => self.balance(),
            Prioritizer::Steady => {
                let incumbents = self.filters.incumbents;
                self.each(|id| Some(if incumbents.contains(at(id)) { 100 } else { 0 }))
            }
            Prioritizer::Allocatable(resource) => {
                let free = self.free(resource, found);
                let known = || free.iter().copied().flatten().map(|(free, _)| free);
                let (least, most) = (known().fold(f64::MAX, f64::min), known().fold(f64::MIN, f64::max));
                let span = most - least;
                let points = |free: f64| if span == 0.0 { 100 } else { points((free - least) / span) };
                free.iter().map(|known| known.map(|(free, _)| points(free))).collect()
            }
            Prioritizer::Ratio(resource) => {
                let ratio = |(free, capacity): (f64, f64)| {
                    (capacity != 0.0).then(|| points(free / capacity).clamp(-100, 100))
                };
                self.free(resource, found).into_iter().map(|known| known.and_then(ratio)).collect()
            }
            Prioritizer::TaintPreference => self.each(|id| {
                let disliked = self.tainted.contains(at(id)) && {
                    self.filters.disliked(self.filters.index.cluster(id))
                };
                Some(if disliked { -100 } else { 0 })
            }),
            Prioritizer::AddOn(object, score) => self.add_on(object, score, found),
            Prioritizer::Spread => vec![None; self.survivors.len()],
        }
    }

    fn each(&self, points: impl Fn(Id) -> Option<i64>) -> Points {
        self.survivors.iter().map(|id| points(*id)).collect()
    }

    /// `2 × trunc(100 × (0.5 − count ÷ most))`, and 100 for a cluster nobody else has.
    fn balance(&self) -> Points {
        let most = f64::from(self.counts.most);
        let points = |count: u32| match count {
            0 => 100,
            count => 2 * truncated(100.0 * (0.5 - f64::from(count) / most)),
        };
        // Counts are few; dividing once for each is enough.
        let few: Vec<i64> = (0..=self.counts.most.min(4096)).map(points).collect();
        self.each(|id| {
            let count = self.counts.of[at(id)];
            Some(few.get(at(count)).copied().unwrap_or_else(|| points(count)))
        })
    }

    /// What is free of a resource, and what there is in all, where both are known.
    fn free(&self, resource: &str, found: &mut Found) -> Vec<Option<(f64, f64)>> {
        let Some(Column { allocatable, capacity }) = self.filters.index.column(resource) else {
            return vec![None; self.survivors.len()];
        };
        let plain = |id: Id| {
            let (free, all) = (allocatable[at(id)], capacity[at(id)]);
            (!free.is_nan() && !all.is_nan()).then_some((free, all))
        };
        let source = self.filters.placement.extra.source;
        if source == Source::Static {
            return self.survivors.iter().map(|id| plain(*id)).collect();
        }
        let live = |id: &Id| {
            let taken = self.taken(*id, resource, source, found);
            plain(*id).zip(taken).map(|((free, all), taken)| ((free - taken).max(0.0), all))
        };
        self.survivors.iter().map(live).collect()
    }

    /// How much of a resource is taken, by a load that is neither too old nor ahead of time.
    fn taken(&self, id: Id, resource: &str, source: Source, found: &mut Found) -> Option<f64> {
        let Filters { index, placement, now, .. } = *self.filters;
        let known = index.cluster(id).load.as_ref().and_then(|load| {
            let until = load.at.checked_add(placement.extra.max_age).unwrap_or(Timestamp::MAX);
            let fresh = load.at <= now && now <= until;
            if load.at > now {
                found.lasts(load.at);
            }
            let amounts = if source == Source::Measured { &load.measured } else { &load.requested };
            let taken = amounts.get(resource).filter(|_| fresh)?;
            found.lasts(until);
            found.oldest = Some(found.oldest.map_or(load.at, |oldest| oldest.min(load.at)));
            Some(taken.float())
        });
        found.unknown += usize::from(known.is_none());
        known
    }

    fn add_on(&self, object: &str, score: &str, found: &mut Found) -> Points {
        let Filters { index, scores, now, .. } = *self.filters;
        let Some(all) = scores.get(object) else { return vec![None; self.survivors.len()] };
        let mut points = |id: &Id| {
            let name: &Arc<str> = index.name(*id);
            let scores = all.get(name)?;
            if scores.expired(now) {
                let name = format!("{name}/{object}");
                if !found.expired.contains(&name) {
                    found.expired.push(name);
                }
                return None;
            }
            if let Some(until) = scores.valid_until {
                found.lasts(until);
            }
            scores.values.get(score).map(|value| i64::from(*value))
        };
        self.survivors.iter().map(&mut points).collect()
    }
}

/// From a share between 0 and 1 to points between -100 and 100.
fn points(share: f64) -> i64 {
    truncated((share - 0.5) * 2.0 * 100.0)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "points are cut off toward zero; what is no number is none"
)]
fn truncated(value: f64) -> i64 {
    value as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_points_cut_off_toward_zero() {
        // Row A1: (0.6 − 0.5) × 2 × 100 is 19.999999999999996.
        for (share, want) in [
            (0.0, -100),
            (0.2, -60),
            (0.4, -19),
            (0.45, -9),
            (0.5, 0),
            (0.55, 10),
            (0.6, 19),
            (0.7, 39),
            (0.75, 50),
            (0.8, 60),
            (0.9, 80),
            (1.0, 100),
            (15.0 / 18.0, 66),
            (63194.0 / 69938.0, 80),
        ] {
            assert_eq!(points(share), want, "{share}");
        }
    }
}
