//! How are pods slowed down? One step on every container, least important first, until the gap is closed.

pub mod quota;

use super::level::Level;
use super::pod::CpuQuota;

/// How hard a step is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// By how much of what is used, in percent; nothing is done for 0.
    pub percent: i32,
    /// What is left of the limit in any case, in percent.
    pub least_percent: i32,
}

impl Step {
    /// What an action that does not say takes, and leaves.
    pub const DEFAULT: Self = Self { percent: 10, least_percent: 10 };

    /// Of two actions on one pod, the harder step and the larger rest.
    #[must_use]
    pub fn merged(self, other: Self) -> Self {
        Self {
            percent: self.percent.max(other.percent),
            least_percent: self.least_percent.max(other.least_percent),
        }
    }
}

/// A container that can be slowed down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lowered {
    /// What to write, in microseconds per period (or the unit of the knob).
    pub quota_us: i64,
    /// What that frees, in the unit of gaps.
    pub release: Level,
}

/// How far a container may be raised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// What it had before anything was taken.
    pub original: CpuQuota,
    /// What is left below the line, in the unit of gaps; none where nobody can tell.
    pub left: Option<Level>,
    /// Nothing is left that asked for steps: everything comes back in one.
    pub at_once: bool,
}

/// A container that can be given something back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raised {
    /// What to write.
    pub quota: CpuQuota,
    /// What that adds at most, in the unit of gaps.
    pub added: Level,
    /// Has it got back all it had?
    pub back: bool,
}
