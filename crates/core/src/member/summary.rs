//! What is there of each resource, and how much of it is taken?

use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// How much of a cluster is taken, as of one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The moment the oldest measurement in it is of; without one, when it was summed up.
    pub at: Timestamp,
    /// Nodes that count: all that are not cordoned.
    pub nodes: usize,
    /// How many of them are measured.
    pub measured_nodes: usize,
    /// By name. What no node has is not listed.
    pub resources: BTreeMap<String, Taken>,
}

/// How much of a resource is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// All there is; more than nothing.
    pub allocatable: i64,
    /// What pods ask for.
    pub requested: i64,
    /// What is used, if that is known. Only CPU and memory are measured.
    pub measured: Option<i64>,
}

impl Summary {
    /// Until when it holds.
    #[must_use]
    pub fn valid_until(&self, validity: SignedDuration) -> Timestamp {
        self.at.checked_add(validity).unwrap_or(Timestamp::MAX)
    }

    /// Is anything of it measured?
    #[must_use]
    pub fn is_measured(&self) -> bool {
        self.resources.values().any(|taken| taken.measured.is_some())
    }
}
