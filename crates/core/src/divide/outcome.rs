//! What came of it? The targets, everything found on the way, and the condition to write.

use super::{Binding, Division, Refusal};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// What was decided, and why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// What to write, by name. Empty when nothing could be decided.
    pub clusters: Vec<Target>,
    /// Clusters that passed all filters, in the order in which they are chosen.
    pub feasible: Vec<Feasible>,
    /// Clusters that did not, by name.
    pub filtered: Vec<Filtered>,
    /// Why nothing was decided.
    pub failure: Option<Failure>,
    /// Replicas that are wanted and not assigned.
    pub shortfall: i32,
    /// The affinity group that won.
    pub affinity: Option<String>,
    /// What is odd and bears on the decision.
    pub warnings: Vec<String>,
    pub(super) said: Said,
    pub(super) lacking: Option<Lacking>,
    /// Where not everything was tried that might have room.
    pub(super) limit: Option<String>,
    pub(super) upstream: bool,
}

/// What estimators said of all clusters, one after the other: a list for each would cost more than the estimates.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Said {
    pub names: Vec<Arc<str>>,
    /// By whom, as a position among the names, and what.
    pub all: Vec<(u32, Option<i32>)>,
}

impl Said {
    /// Where the next word goes.
    pub fn end(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(u32::MAX)
    }
}

/// What a cluster gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Which cluster.
    pub name: Arc<str>,
    /// How many replicas; `None` for what has none.
    pub replicas: Option<i32>,
    /// A complete set of these, for workloads of several templates.
    pub components: Vec<(String, i32)>,
}

/// A cluster that may have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feasible {
    /// Which.
    pub name: Arc<str>,
    /// Its tier: 0, or how many groups must be full before it gets anything.
    pub tier: usize,
    /// 100 where it is already, else 0.
    pub score: i64,
    /// How many more fit, by all estimates: replicas, or complete sets.
    pub allocatable: i32,
    /// The same and what it has already.
    pub available: i64,
    /// What was said of it, see [`Answer::estimates`].
    pub(super) said: (u32, u32),
    /// False if an estimator that would know better did not answer.
    pub confirmed: bool,
}

/// A cluster that may not have it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filtered {
    /// Which.
    pub name: Arc<str>,
    /// Why.
    pub reason: Refusal,
}

/// Not all replicas fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lacking {
    /// So many are left over.
    pub replicas: i32,
    /// So many would have fit.
    pub available: i64,
}

/// Why nothing was decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No cluster passed the filters.
    NoFit {
        /// How many there are.
        clusters: usize,
        /// How many were refused for what.
        reasons: BTreeMap<String, usize>,
    },
    /// The clusters have room for so many more only.
    Short {
        /// How many fit.
        available: i64,
    },
    /// The spread constraints cannot be kept.
    Spread(String),
    /// The binding asks for what makes no sense.
    Error(String),
}

/// When it is worth trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not before something about binding or clusters changes.
    Changed,
    /// When a cluster has more room.
    Room,
}

/// The condition `Scheduled`, as it is written to the binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Was it decided?
    pub status: bool,
    /// One word for programs.
    pub reason: &'static str,
    /// One sentence for people.
    pub message: String,
}

impl Condition {
    pub const TYPE: &'static str = "Scheduled";
}

impl Failure {
    pub(super) fn no_fit<'a>(clusters: usize, refusals: impl Iterator<Item = &'a Refusal>) -> Self {
        let mut reasons = BTreeMap::new();
        for refusal in refusals {
            *reasons.entry(refusal.to_string()).or_default() += 1;
        }
        Self::NoFit { clusters, reasons }
    }

    /// When it is worth trying again.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::NoFit { .. } | Self::Error(_) => Retry::Changed,
            Self::Short { .. } | Self::Spread(_) => Retry::Room,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFit { clusters, reasons } => {
                let mut reasons: Vec<_> =
                    reasons.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
                reasons.sort();
                let reasons =
                    if reasons.is_empty() { "no cluster exists".to_owned() } else { reasons.join(", ") };
                write!(f, "0/{clusters} clusters are available: {reasons}.")
            }
            Self::Short { available } => {
                let available = (*available).min(i64::from(i32::MAX));
                write!(f, "Clusters available replicas {available} are not enough to schedule.")
            }
            Self::Spread(problem) | Self::Error(problem) => f.write_str(problem),
        }
    }
}

impl Answer {
    pub(super) fn failed(binding: &Binding, failure: Failure) -> Self {
        Self { failure: Some(failure), shortfall: wanted(binding), ..Self::default() }
    }

    /// What each estimator said of a cluster of this answer; `None` for no opinion.
    pub fn estimates(&self, of: &Feasible) -> impl Iterator<Item = (&Arc<str>, Option<i32>)> {
        let (from, to) = of.said;
        let said = self.said.all.get(from as usize..to as usize).unwrap_or_default();
        said.iter().filter_map(|(by, count)| Some((self.said.names.get(*by as usize)?, *count)))
    }

    /// What to write about it.
    #[must_use]
    pub fn condition(&self) -> Condition {
        let done = "Binding has been scheduled successfully.";
        let (status, reason, message) = match (&self.failure, self.lacking) {
            (None, None) => (true, "Success", done.to_owned()),
            (None, Some(lacking)) => {
                let short = Failure::Short { available: lacking.available };
                (true, "Success", format!("{done} {} replicas are left over: {short}", lacking.replicas))
            }
            (Some(failure), _) => {
                let reason = match failure {
                    Failure::NoFit { .. } => "NoClusterFit",
                    Failure::Spread(_) if self.upstream => "SchedulerError",
                    Failure::Short { .. } | Failure::Spread(_) => "Unschedulable",
                    Failure::Error(_) => "SchedulerError",
                };
                // Whoever looks at the condition alone would take what was not tried for impossible.
                let limit = self.limit.as_ref().map_or_else(String::new, |limit| format!(" ({limit})"));
                (false, reason, format!("{failure}{limit}"))
            }
        };
        Condition { status, reason, message }
    }
}

/// How many replicas are to be assigned in all, where they are divided.
pub(super) fn wanted(binding: &Binding) -> i32 {
    let whole = binding.placement.as_ref().is_none_or(|p| p.division == Division::Duplicated);
    if whole || !binding.components.is_empty() { 0 } else { binding.replicas.max(0) }
}
