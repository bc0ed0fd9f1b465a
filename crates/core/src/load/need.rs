//! What will the pods of a node need, hour by hour, and how much worse does one more make it?
//!
//! What a node uses when a pod is placed says little of the day that follows; what its pods are known to use says more. Each
//! pod has a [`Day`]: what it is expected to use at most in each of the 24 hours of a day, in UTC. It comes from what its
//! workload was learned to use ([`crate::learn::Day`], told with its Recommendation); a pod of which that is not known is
//! expected to use its estimate all day ([`super::estimate`]). The days of the pods of a node are added up ([`Needs`]): two
//! workloads that peak at different hours fit where two that peak together do not.
//!
//! A pod makes every hour of that sum larger. Hours that are nearly full weigh far more than half full ones, and empty ones
//! next to nothing, so fourth powers are compared:
//!
//! ```text
//! growth = Σ over 24 hours (after ÷ capacity)⁴ − (before ÷ capacity)⁴        after = before + what the pod adds
//! score  = 100 − ⌈100 × ⁴√(growth ÷ 24)⌉, not below 0
//! ```
//!
//! A node of 10 cores is expected to need 5 all day, and a pod brings 1: each hour grows by 0.6⁴ − 0.5⁴ = 0.0671, the fourth
//! root of that is 0.509, the score 49. If it is 8 for one of the hours, that one grows by 0.9⁴ − 0.8⁴ = 0.2465, the mean is
//! 0.0746, its root 0.523, the score 47. On an empty node every hour grows by 0.1⁴: 90. For the same pod the order of scores is
//! that of growth, whatever the sizes of nodes.
//!
//! Capacity is what the node has for pods. Amounts are whole ten-thousandths of a core and the root is cut to one, so every
//! run gives the same figures. Memory is left out: it does not come and go with the hours as CPU does, and the line holds it.

use super::estimate::{Asks, expected};
use super::recommend::Recommendation;
use super::score::{BEST, NEUTRAL};
use super::{Load, Metered};

/// A ten-thousandth of a core, in billionths.
const UNIT: i64 = 100_000;

/// No machine has as many ten-thousandths of a core (26 843 cores), and sums of their fourth powers still fit.
const MOST: u64 = 1 << 28;

/// How many hours a day has.
pub const HOURS: usize = 24;

/// Rounded up, so that little is never nothing.
fn units(cpu_nano: i64) -> u32 {
    let nano = cpu_nano.max(0);
    u32::try_from(nano / UNIT + i64::from(nano % UNIT != 0)).unwrap_or(u32::MAX)
}

fn nano(units: u64) -> i64 {
    i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(UNIT)
}

/// The CPU a container or a pod is expected to use at most in each hour of the day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Day([u32; HOURS]);

impl Day {
    /// From the hours that are known, from 0 to 23, and the CPU used at most in each, in billionths of a core. In hours nobody
    /// has seen it is taken to be as in the largest of the others. `None` if no hour is known.
    pub fn new(known: impl IntoIterator<Item = (usize, i64)>) -> Option<Self> {
        let mut hours = [None; HOURS];
        for (hour, cpu_nano) in known {
            if let Some(held) = hours.get_mut(hour) {
                *held = Some(units(cpu_nano));
            }
        }
        let most = hours.iter().flatten().max().copied()?;
        Some(Self(hours.map(|hour| hour.unwrap_or(most))))
    }

    /// The same all day.
    #[must_use]
    pub fn flat(cpu_nano: i64) -> Self {
        Self([units(cpu_nano); HOURS])
    }

    /// What a pod is expected to use: its containers by their days, those without one by what they are expected to use. `None`
    /// if no container has a day.
    #[must_use]
    pub fn of(asks: &Asks, recommended: Option<&Recommendation>) -> Option<Self> {
        let known = recommended.filter(|found| !found.days.is_empty())?;
        let mut day = Self::flat(asks.sidecars.plus(asks.overhead).cpu_nano);
        let mut any = false;
        for ask in &asks.containers {
            let own = known.days.get(&ask.name);
            any |= own.is_some();
            let flat =
                || Self::flat(expected(ask, known.containers.get(&ask.name), Metered::Cpu, Load::ZERO).0);
            let more = own.copied().unwrap_or_else(flat);
            day.0.iter_mut().zip(more.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
        }
        any.then_some(day)
    }

    /// By hour, in billionths of a core.
    #[must_use]
    pub fn cpu_nano(&self) -> [i64; HOURS] {
        self.0.map(|hour| nano(hour.into()))
    }
}

/// What the pods of a node are expected to need in each hour of the day, added up. Pods that are leaving are not counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Those of which no day is known.
    flat: u64,
    /// How many there are of which it is.
    days: u32,
    /// What these need; none without them.
    hours: Option<Box<[u64; HOURS]>>,
}

impl Needs {
    /// A pod comes: with its day, or with what it is expected to use.
    pub fn add(&mut self, day: Option<&Day>, estimate: Load) {
        let Some(day) = day else {
            self.flat += u64::from(units(estimate.cpu_nano));
            return;
        };
        self.days += 1;
        let hours = self.hours.get_or_insert_with(Box::default);
        hours.iter_mut().zip(day.0).for_each(|(sum, more)| *sum += u64::from(more));
    }

    /// A pod that came like this is gone.
    pub fn remove(&mut self, day: Option<&Day>, estimate: Load) {
        let Some(day) = day else {
            self.flat = self.flat.saturating_sub(units(estimate.cpu_nano).into());
            return;
        };
        self.days = self.days.saturating_sub(1);
        if self.days == 0 {
            self.hours = None;
        } else if let Some(hours) = &mut self.hours {
            hours.iter_mut().zip(day.0).for_each(|(sum, less)| *sum = sum.saturating_sub(less.into()));
        }
    }

    /// Of how many pods a day is known.
    #[must_use]
    pub fn days(&self) -> u32 {
        self.days
    }

    fn hour(&self, hour: usize) -> u64 {
        self.hours.as_ref().map_or(0, |hours| hours[hour]) + self.flat
    }

    /// By hour, in billionths of a core.
    #[must_use]
    pub fn cpu_nano(&self) -> [i64; HOURS] {
        std::array::from_fn(|hour| nano(self.hour(hour)))
    }

    /// How much the fourth powers of all hours grow together, in ten-thousandths of a core to the fourth.
    ///
    /// `a⁴ − b⁴ = (a − b)(a + b)(a² + b²)`, of which each half fits into 64 bits. `None` beyond what any machine has.
    fn growth(&self, more: &Day) -> Option<u128> {
        let hour = |hour: usize| {
            let before = self.hour(hour);
            let after = before.checked_add(more.0[hour].into()).filter(|after| *after <= MOST)?;
            let (up, squares) = ((after - before) * (after + before), after * after + before * before);
            Some(u128::from(up) * u128::from(squares))
        };
        (0..HOURS).map(hour).sum()
    }

    /// The growth as a share of what the node has: see the [module](self). Infinite beyond what any machine has.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for people and replays; decisions compare scores")]
    pub fn grown(&self, more: &Day, capacity_nano: i64) -> f64 {
        let capacity = f64::from(units(capacity_nano)).max(1.0);
        self.growth(more).map_or(f64::INFINITY, |growth| growth as f64) / capacity.powi(4)
    }

    /// How good it is to have a pod with that day there, from 0 to 100, on a node that has so much CPU for pods.
    #[must_use]
    pub fn score(&self, more: &Day, capacity_nano: Option<i64>) -> i64 {
        let Some(capacity) = capacity_nano.map(units).filter(|units| *units > 0) else { return NEUTRAL };
        let Some(growth) = self.growth(more) else { return 0 };
        let root = (growth / HOURS as u128).isqrt().isqrt();
        let share = (root * 100).div_ceil(capacity.into());
        BEST - i64::try_from(share).unwrap_or(BEST).min(BEST)
    }

    /// What a pod with that day would make of it, for people.
    #[must_use]
    pub fn with(&self, more: &Day, capacity_nano: Option<i64>) -> Need {
        let after = |hour: &usize| self.hour(*hour).saturating_add(more.0[*hour].into());
        // The first of equals.
        let peak = (0..HOURS).rev().max_by_key(after).unwrap_or(0);
        Need {
            score: self.score(more, capacity_nano),
            hour: peak,
            before: nano(self.hour(peak)),
            after: nano(after(&peak)),
            capacity: capacity_nano,
        }
    }
}

/// What a node is expected to need with a pod, in the hour in which that is most. CPU in billionths of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// How good that is, from 0 to 100.
    pub score: i64,
    /// Which hour of the day, in UTC.
    pub hour: usize,
    /// What is expected without the pod, and with it.
    pub before: i64,
    pub after: i64,
    /// What the node has for pods; `None` if it does not say.
    pub capacity: Option<i64>,
}

#[cfg(test)]
mod tests;
