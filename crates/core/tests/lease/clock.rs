//! What do the clocks of a machine show?

use crate::flaw::Flaw;
use crate::plan::{Machine, Micros, SECOND};
use jiff::{SignedDuration, Timestamp};
use loadline_core::lease::Reading;
use std::time::Duration;

const MILLION: i128 = 1_000_000;

/// The two clocks of one machine.
#[derive(Clone, Debug)]
pub struct Clocks {
    monotonic_rate: i128,
    wall_rate: i128,
    /// Microseconds by which the wall clock is ahead.
    ahead: i128,
    /// How long the machine was suspended so far, and since when it is.
    suspended: Micros,
    since: Option<Micros>,
    /// A machine that looks at one clock only.
    monotonic_only: bool,
}

impl Clocks {
    pub fn new(machine: &Machine, flaw: Flaw) -> Self {
        Self {
            monotonic_rate: MILLION + i128::from(machine.monotonic_drift),
            wall_rate: MILLION + i128::from(machine.wall_drift),
            ahead: i128::from(machine.wall_skew) * MILLION,
            suspended: 0,
            since: None,
            monotonic_only: flaw == Flaw::MonotonicOnly,
        }
    }

    pub fn now(&self, at: Micros) -> Reading {
        let awake = self.since.map_or(at, |since| since.min(at)) - self.suspended;
        let monotonic = i128::from(awake) * self.monotonic_rate / MILLION;
        let wall = if self.monotonic_only { monotonic } else { i128::from(at) * self.wall_rate / MILLION };
        let wall = SignedDuration::from_micros(i64::try_from(wall + self.ahead).unwrap());
        Reading {
            monotonic: Duration::from_micros(u64::try_from(monotonic).unwrap()),
            wall: Timestamp::from_second(1_700_000_000).unwrap() + wall,
        }
    }

    /// When the monotonic clock will show this, if the machine is not suspended any more.
    pub fn when(&self, monotonic: Duration) -> Micros {
        let shown = i128::try_from(monotonic.as_nanos().div_ceil(1000)).unwrap();
        let awake = (shown * MILLION + self.monotonic_rate - 1) / self.monotonic_rate;
        // Far enough for what never comes.
        u64::try_from(awake).map_or(u64::MAX / 2, |awake| awake.saturating_add(self.suspended))
    }

    pub fn suspend(&mut self, at: Micros) {
        self.since.get_or_insert(at);
    }

    pub fn resume(&mut self, at: Micros) {
        self.suspended += self.since.take().map_or(0, |since| at - since);
    }

    pub fn step_wall(&mut self, seconds: i64) {
        self.ahead += i128::from(seconds) * i128::from(SECOND);
    }
}
