//! What learning goes by, and what it answers.

use super::Day;
use crate::load::Both;
use crate::load::need;
use crate::load::ratio::Ratio;
use crate::load::recommend::{Advice, Form, Recommendation, WorkloadRef};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What learning goes by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Options {
    /// After how long a sample counts half.
    pub half_life: SignedDuration,
    /// Which share of the time a container's CPU is to suffice.
    pub cpu_percentile: Ratio,
    /// Which share of the [intervals](Self::interval) a container's memory is to suffice.
    pub memory_percentile: Ratio,
    /// Of how long memory is learned as one peak.
    pub interval: SignedDuration,
    /// What is put on top once much is known.
    pub margin: Ratio,
    /// What is put on top while next to nothing is known; not less than the margin.
    pub wide_margin: Ratio,
    /// How long being killed for lack of memory is remembered.
    pub oom_memory: SignedDuration,
    /// By how much, of what was published, a recommendation has to change to be published again.
    pub tolerance: Ratio,
    /// How long a recommendation that was published stays, unless it is far too small.
    pub pause: SignedDuration,
    /// How long what was learned may go unpublished though it changes nothing: so much may a restart forget.
    pub refresh: SignedDuration,
    /// How long a workload, a container, or an hour of the day that is not seen is remembered.
    pub expiry: SignedDuration,
    pub like: Like,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            half_life: SignedDuration::from_hours(24),
            cpu_percentile: Ratio::from_nano(950_000_000),
            memory_percentile: Ratio::from_nano(980_000_000),
            interval: SignedDuration::from_hours(1),
            margin: Ratio::from_nano(150_000_000),
            wide_margin: Ratio::from_nano(300_000_000),
            oom_memory: SignedDuration::from_hours(7 * 24),
            tolerance: Ratio::from_nano(50_000_000),
            pause: SignedDuration::from_mins(5),
            refresh: SignedDuration::from_hours(1),
            expiry: SignedDuration::from_hours(14 * 24),
            like: Like::Loadline,
        }
    }
}

/// Whose arithmetic recommendations are made by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Like {
    #[default]
    Loadline,
    /// Craned's: percentiles, margins, half-life and interval of ours are not looked at.
    Crane(Both<CraneRule>),
}

/// How craned makes a target of what was used, with its defaults. Floats, as there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CraneRule {
    /// `cpu-request-percentile`, `mem-request-percentile`.
    pub percentile: f64,
    /// `cpu-request-margin-fraction`, `mem-request-margin-fraction`.
    pub margin: f64,
    /// `cpu-target-utilization`, `mem-target-utilization`.
    pub utilisation: f64,
}

impl Default for CraneRule {
    fn default() -> Self {
        Self { percentile: 0.99, margin: 0.15, utilisation: 1.0 }
    }
}

/// What is known of one container of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LearnedContainer {
    /// What to ask for; `None` of what was never measured.
    pub advice: Advice,
    /// From 0, next to nothing, to 1, never reached: see the [module](super).
    pub confidence: Ratio,
    pub samples: u32,
    /// When the first sample ended.
    pub since: Timestamp,
    pub day: Day,
}

/// What is known of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    pub workload: WorkloadRef,
    pub containers: BTreeMap<Arc<str>, LearnedContainer>,
    /// When the newest sample ended.
    pub updated: Timestamp,
}

impl Learned {
    /// What was learned as a recommendation, to be read like any other.
    ///
    /// Its name is that of the object it is, or will be, published as: once that is read back it replaces this one
    /// instead of standing beside it.
    #[must_use]
    pub fn recommendation(&self, name: impl Into<Arc<str>>) -> Recommendation {
        Recommendation {
            target: self.workload.clone(),
            containers: self.advice(),
            days: self.days(),
            success: true,
            message: None,
            updated: Some(self.updated),
            name: name.into(),
            shape: Form::default(),
        }
    }

    /// When in the day it uses how much CPU, by container.
    #[must_use]
    pub fn days(&self) -> BTreeMap<Arc<str>, need::Day> {
        let day = |(name, learned): (&Arc<str>, &LearnedContainer)| {
            let hours = learned.day.hours().map(|(hour, load)| (hour, load.cpu_nano));
            Some((name.clone(), need::Day::new(hours)?))
        };
        self.containers.iter().filter_map(day).collect()
    }

    /// What to ask for, by container.
    #[must_use]
    pub fn advice(&self) -> BTreeMap<Arc<str>, Advice> {
        self.containers.iter().map(|(name, learned)| (name.clone(), learned.advice)).collect()
    }
}
