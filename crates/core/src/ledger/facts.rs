//! What is told to the ledger, and what it answers.

use crate::load::Load;
use crate::view::NodeId;
use jiff::{SignedDuration, Timestamp};

/// Do samples of single pods make pending ones count less?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PodMetrics {
    /// No: a pending pod counts with its full estimate. Samples still tell what a departed pod used.
    #[default]
    Unused,
    /// Yes: a pending pod counts with what its estimate exceeds its sample by.
    Used,
}

/// What the ledger goes by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How long after its start a pod is not taken as running at its usual load; for programs that warm up
    /// slowly. Negative is nothing.
    pub settle: SignedDuration,
    /// How long a reservation holds when nothing is heard of the pod.
    pub reservation: SignedDuration,
    /// Whether samples of pods are used.
    pub pods: PodMetrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            settle: SignedDuration::ZERO,
            reservation: SignedDuration::from_mins(15),
            pods: PodMetrics::Unused,
        }
    }
}

/// What was measured of a node or a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When the measurement ended (T).
    pub at: Timestamp,
    /// Over how long CPU was averaged (W).
    pub window: SignedDuration,
    /// CPU averaged, memory at the end.
    pub usage: Load,
}

/// A pod on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assigned {
    pub node: NodeId,
    /// What it is expected to use; below nothing counts as nothing.
    pub estimate: Load,
    /// Since when it runs, as [`crate::view::PodFacts::started`]: none while a container has never started,
    /// far back for one that was restarted. Of a reservation it is not looked at: what is not bound has not
    /// started.
    pub started: Option<Timestamp>,
}

/// What became of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is the newest of its node.
    Newest,
    /// There is a newer one; it counts for the mean only.
    History,
    /// It does not count at all.
    Ignored(Ignored),
}

/// Why a sample does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ignored {
    /// There is one of the same moment; the first counts.
    Repeated,
    /// It ended five minutes or more before the newest.
    TooOld,
    /// Its usage or its window is negative.
    Negative,
    /// The node is not there.
    NoNode,
    /// It is stamped too far ahead to be believed yet. The books know no clock; who keeps them says so.
    Ahead,
}

/// What became of a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reserved {
    /// It counts from now on, until then at the latest.
    Until(Timestamp),
    /// The pod is known to be bound, to this node: nothing was changed.
    Bound(NodeId),
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub newest: Option<Sample>,
    /// What the measurement cannot contain yet.
    pub pending: Load,
    /// What the measurement contains of pods that are gone; never more than was measured.
    pub departed: Load,
    /// The estimates of everything assigned or reserved: what to go by without a measurement.
    pub assigned: Load,
    /// How many pods are assigned or reserved.
    pub pods: u32,
    /// How many of them are pending.
    pub pending_pods: u32,
    /// Until when the node cools.
    pub cooling_until: Option<Timestamp>,
}

impl Figures {
    /// measured + pending − departed. None without a measurement: unknown is not zero.
    #[must_use]
    pub fn expected(&self) -> Option<Load> {
        self.newest.map(|newest| newest.usage.minus(self.departed).max(Load::ZERO).plus(self.pending))
    }
}

/// How loaded a node has been.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// When the newest sample ended; all ranges end there.
    pub newest: Timestamp,
    /// The oldest sample known, at most a day before. Later than the beginning of a range, that range is not
    /// filled yet. After a gap it may be up to two hours early.
    pub since: Timestamp,
    /// The mean of the last five minutes: samples weighted by how much of their window lies in them, rounded
    /// up.
    pub mean_5m: Load,
    /// The largest five-minute mean of the last hour, the present one included. May be up to five minutes older,
    /// never understated; rounded up to ten-thousandths of a core and 16 KiB. Means of less than five minutes
    /// count only while they are the present one.
    pub max_1h: Load,
    /// The largest five-minute mean of the last day. May be up to two hours older; otherwise the same.
    pub max_1d: Load,
}

impl History {
    /// What there is to say after a single sample.
    #[must_use]
    pub fn of(sample: &Sample) -> Self {
        let Sample { at, usage, .. } = *sample;
        Self { newest: at, since: at, mean_5m: usage, max_1h: usage, max_1d: usage }
    }
}
