//! What is ours to choose? Everything the policy format of crane has no place for.
//!
//! It is a document of its own (`LoadSettings`), so that the policy stays readable by crane.

use super::Both;
use super::ratio::Ratio;
use crate::select::{Lookup, Selector};
use jiff::SignedDuration;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;

/// Whose arithmetic and whose treatment of missing data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Ours: exact decimals, and unknown is never idle.
    #[default]
    Default,
    /// Bit for bit what crane's scheduler does.
    Upstream,
}

/// What to do about a node of which nothing is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Missing {
    /// Take the sum of its pods' estimates for its usage.
    #[default]
    Estimate,
    /// Let every pod in.
    Allow,
    /// Let none in.
    Deny,
}

/// Does something count in the score?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scored {
    #[default]
    Yes,
    No,
}

/// For which pods does the line hold for CPU? For memory it always does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Line {
    /// For those of which no day is known. Those of which it is are placed by what nodes are expected to need, and what a node
    /// happens to use now would only be in the way of that; limits of the policy hold for them, too.
    #[default]
    Unlearned,
    /// For all.
    Always,
}

/// What holds for some nodes only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRule {
    /// Which nodes, by their labels.
    pub selector: Selector,
    /// How full they may be; `None` leaves it to what follows.
    pub targets: Both<Option<Ratio>>,
    /// Limits in place of the policy's, by metric.
    pub thresholds: BTreeMap<String, Ratio>,
}

/// Pods the load rules do not hold back. Those of daemon sets never are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exempt {
    /// All pods of these namespaces.
    pub namespaces: Vec<String>,
    /// And pods with such labels.
    pub pod_selector: Option<Selector>,
}

impl Exempt {
    /// Is a pod of that namespace with such labels among them?
    pub fn covers<L: Lookup + ?Sized>(&self, namespace: &str, labels: &L) -> bool {
        self.namespaces.iter().any(|n| n == namespace)
            || self.pod_selector.as_ref().is_some_and(|s| s.matches(labels))
    }
}

/// All of it. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Whose arithmetic.
    pub mode: Mode,
    /// The zone that annotations written by crane tell the time of; none: they tell UTC.
    pub time_zone: Option<TimeZone>,
    /// How full nodes may be; `None` falls back to the limit of the five-minute metric.
    pub targets: Both<Option<Ratio>>,
    /// Exceptions; the first that matches and says something counts.
    pub nodes: Vec<NodeRule>,
    /// Without any measurement.
    pub missing: Missing,
    /// How long after its start a pod's load is taken to be still on its way.
    pub settle: SignedDuration,
    /// Is the [need](super::need) of nodes scored, where days are known? Never in upstream mode.
    pub need: Scored,
    /// For which pods the CPU line holds.
    pub line: Line,
    /// Who is let through.
    pub exempt: Exempt,
}
