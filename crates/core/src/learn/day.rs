//! When in the day is it busy? The largest five-minute mean per hour of the day, in UTC.
//!
//! Two workloads that peak at different hours fit on a node that could not bear the sum of their peaks; the sum of
//! their days, hour by hour, tells. What counts is what one pod used: the larger of two replicas, not both.
//!
//! A mean is of the samples of one pod that ended within five minutes on the clock, weighted by their windows. It
//! counts if the pod has samples in the five minutes before and in those after, too: the busy minute of a start is no
//! peak, nor is what came before a silence. A sample over five minutes or more is such a mean by itself.
//!
//! When an hour is over, its peak becomes
//!
//! ```text
//! max(peak of this hour, what was held × 2^(−days since it was seen × 24 h ÷ half-life))
//! ```
//!
//! With a half-life of a day: 4 cores yesterday and 1 today are 2 tomorrow. While the hour lasts the old value is held
//! whole, so that at its beginning it does not look idle. An hour in which nothing was measured keeps its value until
//! it is too old altogether: no pods, or nobody looking, says nothing about what a pod uses.

use super::decay::decayed;
use crate::ledger::Coarse;
use crate::load::Load;

/// In milliseconds.
pub(super) const MEAN: i64 = 300_000;
const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;

/// The largest five-minute mean of a pod per hour of the day, in UTC.
///
/// Rounded up to ten-thousandths of a core and 16 KiB.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Day([Coarse; 24]);

impl Day {
    /// What was used at most in that hour, from 0 to 23; `None` where nothing is known.
    #[must_use]
    pub fn hour(&self, hour: usize) -> Option<Load> {
        self.0.get(hour).filter(|peak| **peak != Coarse::default()).map(|peak| peak.load())
    }

    /// The hours that are known, and what was used at most.
    pub fn hours(&self) -> impl Iterator<Item = (usize, Load)> {
        (0..24).filter_map(|hour| Some((hour, self.hour(hour)?)))
    }
}

/// The mean of a pod over five minutes that are not over yet.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mean {
    /// Ten-thousandths of a core × milliseconds.
    cpu: u64,
    /// 16 KiB × milliseconds.
    memory: u64,
    weight: u32,
    /// Does the pod have samples in the five minutes before?
    follows: bool,
}

/// The five minutes a moment is in.
fn slot(at: i64) -> i64 {
    at.div_euclid(MEAN)
}

impl Mean {
    /// Adds a sample of the pod, the one before it having ended at `last`. Returns when and what the mean was if that
    /// completes one.
    pub(super) fn add(&mut self, last: i64, at: i64, window: u32, usage: Load) -> Option<(i64, Coarse)> {
        let complete = match slot(at).saturating_sub(slot(last)) {
            0 => None,
            passed => {
                let mean = (passed == 1 && self.follows).then(|| (slot(last) * MEAN, self.get()));
                *self = Self { follows: passed == 1, ..Self::default() };
                mean
            }
        };
        let usage = Coarse::new(usage);
        let weight = window.max(1);
        self.cpu = self.cpu.saturating_add(u64::from(usage.cpu) * u64::from(weight));
        self.memory = self.memory.saturating_add(u64::from(usage.memory) * u64::from(weight));
        self.weight = self.weight.saturating_add(weight);
        complete
    }

    fn get(&self) -> Coarse {
        let up = |sum: u64| u32::try_from(sum.div_ceil(self.weight.max(1).into())).unwrap_or(u32::MAX);
        Coarse { cpu: up(self.cpu), memory: up(self.memory) }
    }
}

/// The day of one container of a workload as it is learned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hours {
    /// Nothing is "not known": what is known is at least one unit.
    pub(super) peaks: [Coarse; 24],
    /// On which day since 1970 the hour was last seen.
    pub(super) seen: [u16; 24],
    /// The hour since 1970 that is not over, and its peak so far.
    pub(super) open: i64,
    pub(super) peak: Coarse,
}

/// Of the day.
fn place(hour: i64) -> usize {
    usize::try_from(hour.rem_euclid(24)).unwrap_or(0)
}

fn day_of(hour: i64) -> u16 {
    u16::try_from(hour.div_euclid(24).max(0)).unwrap_or(u16::MAX)
}

impl Hours {
    /// Notes a mean over five minutes that began at that moment.
    pub(super) fn note(&mut self, at: i64, mean: Coarse, half_life: i64) {
        let hour = at.div_euclid(HOUR);
        let mean = mean.max(Coarse { cpu: 1, memory: 1 });
        if hour > self.open {
            self.close(self.open, self.peak, half_life);
            (self.open, self.peak) = (hour, Coarse::default());
        }
        if hour == self.open {
            self.peak = self.peak.max(mean);
        } else if self.open.saturating_sub(hour) < 24 {
            // Told late by a slower pod.
            self.close(hour, mean, half_life);
        }
    }

    /// An hour that is over had that peak.
    fn close(&mut self, hour: i64, peak: Coarse, half_life: i64) {
        if peak == Coarse::default() {
            return;
        }
        let (place, day) = (place(hour), day_of(hour));
        let age = i64::from(day.saturating_sub(self.seen[place])) * DAY;
        let old = self.peaks[place];
        let left =
            Coarse { cpu: decayed(old.cpu, age, half_life), memory: decayed(old.memory, age, half_life) };
        self.peaks[place] = peak.max(left);
        self.seen[place] = day;
    }

    /// What is known now, but for what was last seen before `from`.
    pub(super) fn day(&self, from: i64) -> Day {
        let first = day_of(from.div_euclid(HOUR));
        let mut day = Day(self.peaks);
        for (peak, seen) in day.0.iter_mut().zip(self.seen) {
            if seen < first {
                *peak = Coarse::default();
            }
        }
        let open = &mut day.0[place(self.open)];
        *open = open.max(self.peak);
        day
    }
}

#[cfg(test)]
mod tests;
