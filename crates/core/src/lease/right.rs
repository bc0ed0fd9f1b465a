//! May I still write, now?

use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// Both clocks, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Since some start. Never goes back; may stand still while the machine is suspended.
    pub monotonic: Duration,
    /// The time of day. May jump either way; goes on while the machine is suspended.
    pub wall: Timestamp,
}

/// The right to write, from when a renewal was sent until the renew deadline has passed.
///
/// It holds only while both clocks say so. A machine that was suspended finds few seconds gone on its monotonic clock
/// and an hour on the wall; one whose wall clock was set back cannot tell how long it has been away, and has no right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Right {
    sent: Reading,
    length: Duration,
}

impl Right {
    pub(super) fn new(sent: Reading, length: Duration) -> Self {
        Self { sent, length }
    }

    /// Does it hold?
    #[must_use]
    pub fn holds(&self, now: Reading) -> bool {
        let wall = now.wall.duration_since(self.sent.wall);
        let length = SignedDuration::try_from(self.length).unwrap_or(SignedDuration::MAX);
        now.monotonic < self.until() && !wall.is_negative() && wall < length
    }

    /// When it ends on the monotonic clock, if the other one does not end it first.
    #[must_use]
    pub fn until(&self) -> Duration {
        self.sent.monotonic.saturating_add(self.length)
    }
}
