//! Was the clock set since it was read last? Cool-downs, graces and promises are of times that went by, and not of what a
//! clock says.

use crate::ctx::Now;
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Less is the clock being corrected, or this process having to wait between two readings.
const LEAST: SignedDuration = SignedDuration::from_secs(5);

/// When the clock was read last, and what a clock nobody sets said then.
#[derive(Debug, Default)]
pub(crate) struct Jumps(Option<(Timestamp, Instant)>);

impl Jumps {
    /// By how much it was set since it was read last; none if it was not.
    pub fn set_by(&mut self, Now { clock: now, at }: Now) -> Option<SignedDuration> {
        let (before, since) = self.0.replace((now, at))?;
        let passed = SignedDuration::try_from(at.saturating_duration_since(since)).ok()?;
        let by = now.duration_since(before).checked_sub(passed)?;
        (by.abs() > LEAST).then_some(by)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_clock_that_goes_on_was_not_set() {
        let (begin, since) = (Timestamp::UNIX_EPOCH, Instant::now());
        for (says, passed, set, why) in [
            (10, 10, None, "as it should"),
            (14, 10, None, "corrected"),
            (3600, 10, Some(3590), "set forward, or the machine slept"),
            (-3600, 10, Some(-3610), "set back"),
        ] {
            let mut jumps = Jumps::default();
            assert_eq!(jumps.set_by(Now { clock: begin, at: since }), None, "{why}: read for the first time");
            let now = begin + SignedDuration::from_secs(says);
            let now = Now { clock: now, at: since + Duration::from_secs(passed) };
            assert_eq!(jumps.set_by(now).map(|by| by.as_secs()), set, "{why}");
            assert_eq!(jumps.set_by(now), None, "{why}: told once");
        }
    }
}
