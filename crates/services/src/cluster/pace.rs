//! How fast may we write? So many a second on average, and a few at once.

use std::time::Duration;
use tokio::time::Instant;

/// A bucket that fills steadily: each write takes one out, and what is empty must be waited for.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Between two writes, on average.
    apart: Duration,
    /// How far writes may run ahead of that.
    ahead: Duration,
    /// When the next one would be due if all had been apart.
    next: Instant,
}

impl Pace {
    /// So many a second, and up to that many at once after a pause.
    #[must_use]
    pub fn new(per_second: f64, now: Instant) -> Self {
        let apart = Duration::from_secs_f64(1.0 / per_second.clamp(0.01, 10_000.0));
        Self { apart, ahead: Duration::from_secs(1), next: now }
    }

    /// Counts one that is sent now.
    ///
    /// # Errors
    /// When it may be sent, if that is not now.
    pub fn take(&mut self, now: Instant) -> Result<(), Instant> {
        let from = self.next.checked_sub(self.ahead).unwrap_or(self.next);
        if now < from {
            return Err(from);
        }
        self.next = self.next.max(now) + self.apart;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_of_writes_at_once_then_the_rate_is_kept() {
        let start = Instant::now();
        let mut pace = Pace::new(10.0, start);
        let sent = (0..100).take_while(|_| pace.take(start).is_ok()).count();
        assert_eq!(sent, 11, "ten for the second ahead, and the one that is due");
        let wait = pace.take(start).expect_err("empty");
        assert_eq!(wait - start, Duration::from_millis(100));
        // In ten seconds from then on, a hundred more.
        let mut sent = 0;
        for tick in 1..=1000 {
            let now = start + Duration::from_millis(10) * tick;
            while pace.take(now).is_ok() {
                sent += 1;
            }
        }
        assert_eq!(sent, 100);
    }
}
