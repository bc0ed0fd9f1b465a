//! What counts as loaded? The policy: which metrics are fetched, what limits and weighs them, what is hot.
//!
//! A [`Policy`] is the content of a `DynamicSchedulerPolicy` document as crane's scheduler knows it; what is
//! ours is in [`super::settings`]. Both together, checked and prepared, are [`Rules`].
//!
//! Limits are shares from 0 to 1, whatever the field's name says about percent; 0 switches an entry off.
//! Weights need not add up to 1. A metric's annotation is good for its period and [`GRACE`] more.

mod check;
mod rules;

pub use rules::{Metric, NodeRules, Rules};

use super::Metered;
use super::ratio::Ratio;
use jiff::SignedDuration;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::sync::Arc;

/// How much longer than its period an annotation is good.
pub const GRACE: SignedDuration = SignedDuration::from_mins(5);

/// Which metrics count, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// What is fetched.
    pub sync: Vec<Sync>,
    /// What keeps pods away, in the order it is looked at.
    pub predicates: Vec<Predicate>,
    /// What the score is made of.
    pub priorities: Vec<Priority>,
    /// What makes a node hot.
    pub hot: Vec<Bucket>,
}

/// A metric that is fetched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sync {
    /// The metric, also the key of its annotation.
    pub name: Arc<str>,
    /// How often.
    pub period: SignedDuration,
}

/// A limit above which a node takes no more pods.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// The metric.
    pub name: Arc<str>,
    /// A share from 0 to 1; 0 is no limit.
    pub limit: f64,
}

/// A part of the score.
#[derive(Clone, Debug, PartialEq)]
pub struct Priority {
    /// The metric.
    pub name: Arc<str>,
    /// How much it counts among the others.
    pub weight: f64,
}

/// So many bindings within such a time make a node hotter by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The time, counted in whole seconds.
    pub range: SignedDuration,
    /// The bindings.
    pub count: i64,
}

impl Policy {
    /// A policy that asks for nothing.
    #[must_use]
    pub fn empty() -> Self {
        Self { sync: Vec::new(), predicates: Vec::new(), priorities: Vec::new(), hot: Vec::new() }
    }

    /// How often a metric is fetched: its first entry with a period.
    #[must_use]
    pub fn period(&self, metric: &str) -> Option<SignedDuration> {
        self.sync.iter().find(|s| &*s.name == metric && !s.period.is_zero()).map(|s| s.period)
    }

    /// How long an annotation of a metric is good: its period and [`GRACE`]. A negative period, which only crane takes,
    /// may leave exactly nothing: then it says nothing, as there.
    #[must_use]
    pub fn window(&self, metric: &str) -> Option<SignedDuration> {
        self.period(metric).map(|period| period.saturating_add(GRACE)).filter(|window| !window.is_zero())
    }
}

/// What crane ships: limits on the short metrics, more weight on the long ones.
impl Default for Policy {
    fn default() -> Self {
        let mut policy = Self::empty();
        for resource in Metered::ALL {
            for (range, period_minutes, limit, weight) in
                [(Range::Avg5m, 3, 0.65, 0.2), (Range::Max1h, 15, 0.75, 0.3), (Range::Max1d, 180, 0.0, 0.5)]
            {
                let name: Arc<str> = Derivable { resource, range }.name().into();
                let period = SignedDuration::from_mins(period_minutes);
                policy.sync.push(Sync { name: name.clone(), period });
                if limit > 0.0 {
                    policy.predicates.push(Predicate { name: name.clone(), limit });
                }
                policy.priorities.push(Priority { name, weight });
            }
        }
        policy.hot = [(5, 5), (1, 2)]
            .map(|(minutes, count)| Bucket { range: SignedDuration::from_mins(minutes), count })
            .to_vec();
        policy
    }
}

/// Over which time a metric looks back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Range {
    /// The mean of five minutes.
    Avg5m,
    /// The largest such mean of an hour.
    Max1h,
    /// The largest such mean of a day.
    Max1d,
}

impl Range {
    /// All, the shortest first.
    pub const ALL: [Self; 3] = [Self::Avg5m, Self::Max1h, Self::Max1d];

    /// How far back it looks.
    #[must_use]
    pub const fn length(self) -> SignedDuration {
        match self {
            Self::Avg5m => SignedDuration::from_mins(5),
            Self::Max1h => SignedDuration::from_hours(1),
            Self::Max1d => SignedDuration::from_hours(24),
        }
    }
}

/// A metric we can work out ourselves from samples of the metrics API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Derivable {
    /// Of what.
    pub resource: Metered,
    /// Over which time.
    pub range: Range,
}

impl Derivable {
    /// The metric of that name, if it is one of the six.
    #[must_use]
    pub fn of(name: &str) -> Option<Self> {
        let all = Metered::ALL.into_iter().flat_map(|r| Range::ALL.map(|range| Self { resource: r, range }));
        all.into_iter().find(|d| d.name() == name)
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match (self.resource, self.range) {
            (Metered::Cpu, Range::Avg5m) => "cpu_usage_avg_5m",
            (Metered::Cpu, Range::Max1h) => "cpu_usage_max_avg_1h",
            (Metered::Cpu, Range::Max1d) => "cpu_usage_max_avg_1d",
            (Metered::Memory, Range::Avg5m) => "mem_usage_avg_5m",
            (Metered::Memory, Range::Max1h) => "mem_usage_max_avg_1h",
            (Metered::Memory, Range::Max1d) => "mem_usage_max_avg_1d",
        }
    }
}

/// A number as the mode keeps it: an exact decimal by default, the very float in upstream mode.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    Exact(Ratio),
    /// A float, possibly not finite.
    Float(f64),
}

/// Floats are the same if their bits are: NaN is NaN.
impl PartialEq for Figure {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Exact(one), Self::Exact(other)) => one == other,
            (Self::Float(one), Self::Float(other)) => one.to_bits() == other.to_bits(),
            _ => false,
        }
    }
}

impl Eq for Figure {}

/// As a number; `null` for what JSON has no number for.
impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        Some(self.to_f64()).filter(|float| float.is_finite()).serialize(to)
    }
}

/// The very float; `null` stands for an infinite load, the only one that is above a limit and no number.
impl<'de> Deserialize<'de> for Figure {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Ok(Self::Float(Option::<f64>::deserialize(from)?.unwrap_or(f64::INFINITY)))
    }
}

/// As people read it: `0.65`, `NaN`, `+Inf`.
impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.to_f64() {
            f64::INFINITY => f.write_str("+Inf"),
            f64::NEG_INFINITY => f.write_str("-Inf"),
            float => float.fmt(f),
        }
    }
}

impl Figure {
    /// For output.
    #[must_use]
    pub fn to_f64(self) -> f64 {
        match self {
            Self::Exact(ratio) => ratio.to_f64(),
            Self::Float(float) => float,
        }
    }

    /// As a ratio; what is larger than any ratio is held at the largest. `None` for NaN.
    #[must_use]
    pub fn ratio(self) -> Option<Ratio> {
        match self {
            Self::Exact(ratio) => Some(ratio),
            Self::Float(float) => Ratio::from_f64(float).or_else(|| {
                let end = if float > 0.0 { i64::MAX } else { i64::MIN };
                (!float.is_nan()).then_some(Ratio::from_nano(end))
            }),
        }
    }

    /// Is it strictly more than the limit? NaN is never more.
    #[must_use]
    pub fn exceeds(self, limit: Self) -> bool {
        match (self, limit) {
            (Self::Exact(value), Self::Exact(limit)) => value > limit,
            _ => self.to_f64() > limit.to_f64(),
        }
    }

    /// Is it nothing?
    #[must_use]
    pub fn is_zero(self) -> bool {
        match self {
            Self::Exact(ratio) => ratio == Ratio::ZERO,
            Self::Float(float) => float == 0.0,
        }
    }
}

/// Which document a problem is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    Policy,
    /// Our settings.
    Settings,
}

/// What is wrong, or odd, with a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// In which document.
    pub origin: Origin,
    /// Where in it, such as `spec.hotValue[0].count`; empty for the document as a whole.
    pub path: String,
    /// What was found and what was expected.
    pub message: String,
}

impl Problem {
    pub fn policy(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { origin: Origin::Policy, path: path.into(), message: message.into() }
    }

    /// In our settings.
    pub fn settings(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { origin: Origin::Settings, path: path.into(), message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path, self.message)
        }
    }
}

#[cfg(test)]
mod tests;
