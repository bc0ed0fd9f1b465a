//! What does one container of a workload use? Everything that is remembered of it, and what is made of that.

use super::LearnedContainer;
use super::crane::{self, Linear};
use super::day::Hours;
use super::facts::{CraneRule, Like, Options};
use super::histogram::{Histogram, Scale};
use crate::ledger::Sample;
use crate::load::ratio::Ratio;
use crate::load::recommend::Advice;
use crate::load::{Both, Load};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// In milliseconds.
const DAY: i64 = 86_400_000;
/// How long a sample counts as observed, in milliseconds.
const PER_SAMPLE: i64 = 60_000;
/// What the peak of an interval weighs; all the same, so any number with room for halving will do.
const PEAK: u32 = 1 << 16;
/// Answers are whole millicores and mebibytes, rounded up.
const MILLICORE: i64 = 1_000_000;
const MEBIBYTE: i64 = 1 << 20;

/// A length in milliseconds, at least one.
pub(super) fn millis(length: SignedDuration) -> i64 {
    i64::try_from(length.as_millis()).unwrap_or(i64::MAX).max(1)
}

/// Options in the units computed with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    pub(super) half_life: i64,
    interval: i64,
    oom_memory: i64,
    pub(super) expiry: i64,
    pub(super) pause: i64,
    pub(super) refresh: i64,
    pub(super) tolerance: Ratio,
    cpu_percentile: Ratio,
    memory_percentile: Ratio,
    margin: Ratio,
    wide_margin: Ratio,
    crane: Option<Both<CraneRule>>,
}

impl Rules {
    pub(super) fn new(options: &Options) -> Self {
        Self {
            half_life: millis(options.half_life),
            interval: millis(options.interval),
            oom_memory: millis(options.oom_memory),
            expiry: millis(options.expiry),
            pause: millis(options.pause),
            refresh: millis(options.refresh),
            tolerance: options.tolerance,
            cpu_percentile: options.cpu_percentile,
            memory_percentile: options.memory_percentile,
            margin: options.margin,
            wide_margin: options.wide_margin.max(options.margin),
            crane: match options.like {
                Like::Loadline => None,
                Like::Crane(rules) => Some(rules),
            },
        }
    }

    /// Is it crane's arithmetic?
    pub(super) fn is_crane(&self) -> bool {
        self.crane.is_some()
    }

    /// What is put on top at that confidence: all of the wide margin at 0, next to nothing of the difference near 1.
    fn margin(&self, confidence: Ratio) -> Ratio {
        let unsure = Ratio::from_nano(Ratio::ONE.nano() - confidence.nano());
        let wider = self.wide_margin.nano().saturating_sub(self.margin.nano());
        Ratio::from_nano(self.margin.nano().saturating_add(unsure.floor_of(wider)))
    }
}

/// The amount and that much of it, up to the next whole unit.
fn with_margin(amount: i64, margin: Ratio, unit: i64) -> i64 {
    let one = i128::from(Ratio::ONE.nano());
    let exact = i128::from(amount) * (one + i128::from(margin.nano()));
    let divisor = one * i128::from(unit);
    let units = exact.div_euclid(divisor) + i128::from(exact.rem_euclid(divisor) != 0);
    i64::try_from(units).unwrap_or(i64::MAX).saturating_mul(unit)
}

/// A container was killed for lack of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Oom {
    /// What would have sufficed, as far as anybody knows.
    pub(super) bytes: i64,
    pub(super) at: i64,
}

impl Oom {
    /// As VPA and crane have it: a fifth more than it had, or 100 MiB more.
    fn new(had: i64, at: i64) -> Self {
        let fifth_more = i64::try_from(i128::from(had) * 6 / 5).unwrap_or(i64::MAX);
        Self { bytes: fifth_more.max(had.saturating_add(100 * MEBIBYTE)), at }
    }
}

/// What was used, in the form the answers are computed from.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Evidence {
    Decaying {
        cpu: Histogram,
        /// Of the peaks of intervals that are over.
        memory: Histogram,
        /// When the interval that is not over began.
        open: i64,
        /// Its peak in bytes so far.
        peak: i64,
    },
    Crane {
        cpu: Linear,
        memory: Linear,
    },
}

impl Evidence {
    fn heap(&self) -> usize {
        match self {
            Self::Decaying { cpu, memory, .. } => cpu.heap() + memory.heap(),
            Self::Crane { cpu, memory } => cpu.heap() + memory.heap(),
        }
    }
}

/// One container of a workload. Moments are in milliseconds since 1970.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Profile {
    pub(super) name: Arc<str>,
    /// When the first sample ended, and the newest; or it was killed.
    pub(super) since: i64,
    pub(super) newest: i64,
    pub(super) samples: u32,
    /// The worst of those that are not too long ago.
    pub(super) oom: Option<Oom>,
    pub(super) hours: Hours,
    pub(super) evidence: Evidence,
}

impl Profile {
    /// Of a container first heard of at that moment.
    pub(super) fn new(name: &str, at: i64, rules: &Rules) -> Self {
        let evidence = if rules.is_crane() {
            Evidence::Crane { cpu: Linear::default(), memory: Linear::default() }
        } else {
            Evidence::Decaying {
                cpu: Histogram::default(),
                memory: Histogram::default(),
                open: i64::MIN,
                peak: 0,
            }
        };
        Self {
            name: name.into(),
            since: at,
            newest: at,
            samples: 0,
            oom: None,
            hours: Hours::default(),
            evidence,
        }
    }

    /// Counts a sample of any of its pods; window in milliseconds.
    pub(super) fn observe(&mut self, at: i64, window: u32, usage: Load, rules: &Rules) {
        self.samples = self.samples.saturating_add(1);
        self.since = self.since.min(at);
        self.newest = self.newest.max(at);
        match &mut self.evidence {
            Evidence::Decaying { cpu, memory, open, peak } => {
                cpu.add(Scale::CPU.bucket(usage.cpu_nano), window, at, rules.half_life);
                let interval = at.div_euclid(rules.interval).saturating_mul(rules.interval);
                if interval > *open {
                    if *open != i64::MIN {
                        memory.add(Scale::MEMORY.bucket(*peak), PEAK, *open, rules.half_life);
                    }
                    (*open, *peak) = (interval, 0);
                }
                // What a slower pod tells of the interval before counts here: late, but not lost.
                *peak = usage.memory_bytes.max(*peak);
            }
            #[expect(clippy::cast_precision_loss, reason = "crane computes in floats")]
            Evidence::Crane { cpu, memory } => {
                cpu.add(usage.cpu_nano as f64 / 1e9, crane::CPU, at);
                memory.add(usage.memory_bytes as f64, crane::MEMORY, at);
            }
        }
    }

    /// It was killed while it had that much memory. The same told twice is told once.
    pub(super) fn killed(&mut self, at: i64, had: i64, rules: &Rules) {
        let new = Oom::new(had, at);
        self.newest = self.newest.max(at);
        let forgotten = |old: Oom| at.saturating_sub(old.at) > rules.oom_memory;
        if self.oom.is_none_or(|old| new.bytes > old.bytes || forgotten(old)) {
            self.oom = Some(new);
        } else if let Some(old) = self.oom.as_mut().filter(|old| old.bytes == new.bytes) {
            old.at = old.at.max(at);
        }
    }

    /// How sure one may be: days ÷ (days + 1), where days is the shorter of the time since the first sample and the
    /// samples at a minute each.
    pub(super) fn confidence(&self) -> Ratio {
        let known = self.newest.saturating_sub(self.since).min(i64::from(self.samples) * PER_SAMPLE).max(0);
        Ratio::of(known, known.saturating_add(DAY)).unwrap_or_default()
    }

    /// What to ask for.
    pub(super) fn advice(&self, now: i64, rules: &Rules) -> Advice {
        let oom = self.oom.filter(|oom| now.saturating_sub(oom.at) <= rules.oom_memory).map(|oom| oom.bytes);
        match &self.evidence {
            Evidence::Decaying { cpu, memory, open, peak } => {
                let margin = rules.margin(self.confidence());
                let open = (*open != i64::MIN).then(|| Scale::MEMORY.edge(Scale::MEMORY.bucket(*peak)));
                let before = memory.percentile(rules.memory_percentile).map(|at| Scale::MEMORY.edge(at));
                let cpu = cpu.percentile(rules.cpu_percentile).map(|at| Scale::CPU.edge(at));
                Advice {
                    cpu_nano: cpu.map(|edge| with_margin(edge, margin, MILLICORE)),
                    memory_bytes: before.max(open).max(oom).map(|peak| with_margin(peak, margin, MEBIBYTE)),
                }
            }
            Evidence::Crane { cpu, memory } => {
                let rules = rules.crane.unwrap_or_default();
                let memory = memory.target(crane::MEMORY, rules.memory, now).map(crane::bytes);
                Advice {
                    cpu_nano: cpu.target(crane::CPU, rules.cpu, now).map(crane::nanocores),
                    memory_bytes: memory.map(|bytes| oom.map_or(bytes, |oom| bytes.max(oom))),
                }
            }
        }
    }

    /// All that is known.
    pub(super) fn learned(&self, now: i64, rules: &Rules) -> LearnedContainer {
        LearnedContainer {
            advice: self.advice(now, rules),
            confidence: self.confidence(),
            samples: self.samples,
            since: moment(self.since),
            day: self.hours.day(now.saturating_sub(rules.expiry)),
        }
    }

    /// Is it crane's arithmetic it is kept for?
    pub(super) fn is_crane(&self) -> bool {
        matches!(self.evidence, Evidence::Crane { .. })
    }

    /// Allocated bytes, itself not included.
    pub(super) fn heap(&self) -> usize {
        shared(&self.name) + self.evidence.heap()
    }
}

/// A sample as it is counted: when it ended, over how long, at most a day, and no less than nothing.
pub(super) fn counted(sample: Sample) -> (i64, u32, Load) {
    let window = u32::try_from(millis(sample.window).min(DAY)).unwrap_or(u32::MAX);
    (sample.at.as_millisecond(), window, sample.usage.max(Load::ZERO))
}

/// The moment again.
pub(super) fn moment(millis: i64) -> Timestamp {
    Timestamp::from_millisecond(millis).unwrap_or_default()
}

/// What a shared text allocates: itself and two counts.
pub(super) fn shared(text: &Arc<str>) -> usize {
    text.len().next_multiple_of(size_of::<usize>()) + 2 * size_of::<usize>()
}

#[cfg(test)]
mod tests;
