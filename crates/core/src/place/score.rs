//! How many points does each cluster have? One column per prioritizer, one total per cluster.
//!
//! Points are floating-point figures cut off toward zero, in the order of operations written here. That is no detail:
//! 0.6 of a resource is 19 points, not 20, and a point decides.

use super::cohort::Cohort;
use super::filter::Filters;
use super::index::{Column, Id, at};
use super::prepare::Prioritizer;
use super::spec::{Missing, Source};
use fixedbitset::FixedBitSet;
use jiff::Timestamp;
use std::borrow::Cow;

/// How often each cluster has been selected.
#[derive(Clone, Debug, Default)]
pub(super) struct Counts {
    of: Vec<u32>,
    most: u32,
}

impl Counts {
    /// By others: of all that is published, so many clusters, without one's own. That never counts for oneself.
    pub fn of_others(&mut self, all: &[u32], size: usize, own: &[Id]) {
        self.of.clear();
        self.of.extend_from_slice(all);
        self.of.resize(size, 0);
        for id in own {
            self.of[at(*id)] = self.of[at(*id)].saturating_sub(1);
        }
        self.most = self.of.iter().copied().max().unwrap_or(0);
    }
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
    /// By number.
    pub survivors: &'a [Id],
    /// What the placement has selected so far; a cluster may be there twice.
    pub published: &'a [Id],
    pub tainted: &'a FixedBitSet,
}

/// Where points go: into the totals, and apart, if somebody wants to see them.
struct Sink<'a> {
    survivors: &'a [Id],
    totals: &'a mut [i64],
    weight: i64,
    /// What counts where nothing is known.
    missing: i64,
    apart: Option<Points>,
}

impl Sink<'_> {
    fn take(&mut self, mut points: impl FnMut(Id) -> Option<i64>) {
        let (weight, missing) = (self.weight, self.missing);
        let add = |total: &mut i64, points: Option<i64>| {
            *total = total.saturating_add(points.map_or(missing, |points| weight * points));
        };
        let rows = self.totals.iter_mut().zip(self.survivors);
        match &mut self.apart {
            None => rows.for_each(|(total, id)| add(total, points(*id))),
            Some(apart) => rows.for_each(|(total, id)| {
                let points = points(*id);
                add(total, points);
                apart.push(points);
            }),
        }
    }
}

impl Scoring<'_> {
    /// Adds the points of a prioritizer to the totals. Those that are the same for all placements with these survivors are
    /// worked out once.
    pub fn add_shared(
        &self,
        prioritizer: &Prioritizer,
        weight: i64,
        cohort: &mut Cohort,
        totals: &mut [i64],
        found: &mut Found,
    ) {
        if !self.is_shared(prioritizer) {
            return self.add(prioritizer, weight, totals, found, None);
        }
        if !cohort.knows(prioritizer) {
            let points = self.lasting(prioritizer, totals.len());
            cohort.keep(prioritizer, points.as_ref());
        }
        let column = cohort.column(prioritizer);
        let missing = self.missing(prioritizer, weight);
        if !column.is_some_and(|column| column.add(weight, missing, totals)) {
            self.add(prioritizer, weight, totals, found, None);
        }
    }

    /// Do the points follow from the clusters and their scores alone?
    fn is_shared(&self, prioritizer: &Prioritizer) -> bool {
        match prioritizer {
            Prioritizer::Allocatable(_) | Prioritizer::Ratio(_) => {
                self.filters.placement.extra.source == Source::Static
            }
            Prioritizer::AddOn(..) => true,
            _ => false,
        }
    }

    /// The points of a prioritizer, unless they expire.
    fn lasting(&self, prioritizer: &Prioritizer, survivors: usize) -> Option<Points> {
        let mut found = Found::default();
        let (mut nowhere, apart) = (vec![0; survivors], Some(Vec::with_capacity(survivors)));
        let mut sink = Sink { survivors: self.survivors, totals: &mut nowhere, weight: 1, missing: 0, apart };
        self.points(prioritizer, &mut found, &mut sink);
        sink.apart.filter(|_| found.until.is_none() && found.expired.is_empty())
    }

    /// What counts where nothing is known: a resource may be worth less then, a score nobody has never is.
    fn missing(&self, prioritizer: &Prioritizer, weight: i64) -> i64 {
        let resource = matches!(prioritizer, Prioritizer::Allocatable(_) | Prioritizer::Ratio(_));
        match self.filters.placement.extra.missing() {
            Missing::Worst if resource => -100 * weight.abs(),
            _ => 0,
        }
    }

    /// Adds the points of a prioritizer to the totals; keeps them apart, too, if asked for.
    pub fn add(
        &self,
        prioritizer: &Prioritizer,
        weight: i64,
        totals: &mut [i64],
        found: &mut Found,
        apart: Option<&mut Vec<(Prioritizer, i64, Points)>>,
    ) {
        let missing = self.missing(prioritizer, weight);
        let kept = apart.is_some().then(|| Vec::with_capacity(totals.len()));
        let mut sink = Sink { survivors: self.survivors, totals, weight, missing, apart: kept };
        self.points(prioritizer, found, &mut sink);
        if let Some((apart, points)) = apart.zip(sink.apart) {
            apart.push((prioritizer.clone(), weight, points));
        }
    }

    fn points(&self, prioritizer: &Prioritizer, found: &mut Found, sink: &mut Sink<'_>) {
        match prioritizer {
            Prioritizer::Balance => self.balance(sink),
            Prioritizer::Steady => self.steady(sink),
            Prioritizer::Allocatable(resource) => match self.free(resource, found) {
                None => sink.take(|_| None),
                Some(Free { usable, .. }) => {
                    let (least, most) = self.extremes(&usable);
                    let span = most - least;
                    sink.take(|id| {
                        let free = usable[at(id)];
                        let points = || if span == 0.0 { 100 } else { points((free - least) / span) };
                        (!free.is_nan()).then(points)
                    });
                }
            },
            Prioritizer::Ratio(resource) => match self.free(resource, found) {
                None => sink.take(|_| None),
                Some(Free { usable, capacity }) => sink.take(|id| {
                    let (free, capacity) = (usable[at(id)], capacity[at(id)]);
                    let known = !free.is_nan() && capacity != 0.0;
                    known.then(|| points(free / capacity).clamp(-100, 100))
                }),
            },
            Prioritizer::TaintPreference => sink.take(|id| {
                if !self.tainted.contains(at(id)) {
                    return Some(0);
                }
                let (disliked, until) = self.filters.disliked(self.filters.index.cluster(id));
                if let Some(until) = until {
                    found.lasts(until);
                }
                Some(if disliked { -100 } else { 0 })
            }),
            Prioritizer::AddOn(object, score) => self.add_on(object, score, found, sink),
            Prioritizer::Spread => sink.take(|_| None),
        }
    }

    /// 100 for those selected already. Where these are few, only they are looked at.
    fn steady(&self, sink: &mut Sink<'_>) {
        let incumbents = self.filters.incumbents;
        if sink.apart.is_some() || self.published.len() > self.survivors.len() / 16 {
            return sink.take(|id| Some(if incumbents.contains(at(id)) { 100 } else { 0 }));
        }
        let mut all = self.published.to_vec();
        all.sort_unstable();
        all.dedup();
        for row in all.iter().filter_map(|id| self.survivors.binary_search(id).ok()) {
            sink.totals[row] = sink.totals[row].saturating_add(sink.weight * 100);
        }
    }

    /// The least and the most that any survivor has.
    fn extremes(&self, of: &[f64]) -> (f64, f64) {
        let (mut least, mut most) = (f64::MAX, f64::MIN);
        for id in self.survivors {
            // What is not known is neither less nor more than anything.
            let value = of[at(*id)];
            least = if value < least { value } else { least };
            most = if value > most { value } else { most };
        }
        (least, most)
    }

    /// `2 × trunc(100 × (0.5 − count ÷ most))`, and 100 for a cluster nobody else has.
    fn balance(&self, sink: &mut Sink<'_>) {
        let most = f64::from(self.counts.most);
        let points = |count: u32| match count {
            0 => 100,
            count => 2 * truncated(100.0 * (0.5 - f64::from(count) / most)),
        };
        // Counts are few; dividing once for each is enough.
        let few: Vec<i64> = (0..=self.counts.most.min(4096)).map(points).collect();
        sink.take(|id| {
            let count = self.counts.of[at(id)];
            Some(few.get(at(count)).copied().unwrap_or_else(|| points(count)))
        });
    }

    /// What is free of a resource, and what there is in all; none if no cluster has it.
    fn free(&self, resource: &str, found: &mut Found) -> Option<Free<'_>> {
        let Column { usable, capacity, .. } = self.filters.index.column(resource)?;
        let source = self.filters.placement.extra.source;
        if source == Source::Static {
            return Some(Free { usable: Cow::Borrowed(usable), capacity });
        }
        let mut free = vec![f64::NAN; usable.len()];
        for id in self.survivors {
            // Not known of one of them is not known.
            if let Some(taken) = self.taken(*id, resource, source, found) {
                let all = usable[at(*id)];
                free[at(*id)] = if all.is_nan() { all } else { (all - taken).max(0.0) };
            }
        }
        Some(Free { usable: Cow::Owned(free), capacity })
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

    fn add_on(&self, object: &str, score: &str, found: &mut Found, sink: &mut Sink<'_>) {
        let Filters { index, scores, now, .. } = *self.filters;
        let Some(all) = scores.get(object) else { return sink.take(|_| None) };
        sink.take(|id| {
            let scores = all.get(at(id))?.as_ref()?;
            if scores.expired(now) {
                found.expired.push(format!("{}/{object}", index.name(id)));
                return None;
            }
            if let Some(until) = scores.valid_until {
                found.lasts(until);
            }
            scores.values.get(score).map(|value| i64::from(*value))
        });
    }
}

/// What is free of a resource by cluster, [`f64::NAN`] where that or the capacity is not known.
struct Free<'a> {
    usable: Cow<'a, [f64]>,
    capacity: &'a [f64],
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
