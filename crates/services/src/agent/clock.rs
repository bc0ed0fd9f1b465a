//! Was the clock set since it was read last? Cool-downs and graces are of times that went by, and not of what a clock says.

use jiff::{SignedDuration, Timestamp};
use std::time::Instant;

/// Less is the clock being corrected, or this process having to wait between two readings.
const LEAST: SignedDuration = SignedDuration::from_secs(5);

/// When the clock was read last, and what a clock nobody sets said then.
#[derive(Debug, Default)]
pub(super) struct Clock(Option<(Timestamp, Instant)>);

impl Clock {
    /// By how much it was set since it was read last; none if it was not.
    pub fn set_by(&mut self, now: Timestamp, at: Instant) -> Option<SignedDuration> {
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
            let mut clock = Clock::default();
            assert_eq!(clock.set_by(begin, since), None, "{why}: read for the first time");
            let now = begin + SignedDuration::from_secs(says);
            let at = since + Duration::from_secs(passed);
            assert_eq!(clock.set_by(now, at).map(|by| by.as_secs()), set, "{why}");
            assert_eq!(clock.set_by(now, at), None, "{why}: told once");
        }
    }
}
