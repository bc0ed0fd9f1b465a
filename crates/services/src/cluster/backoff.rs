//! How long until the next try? Longer each time, and not the same for everybody who lost the same server.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::time::Duration;
use tokio::time::Instant;

/// Before the second try.
const FIRST: Duration = Duration::from_millis(800);
/// Never longer than this.
const LONGEST: Duration = Duration::from_secs(30);
/// Who has had no trouble for so long begins anew.
const FORGOTTEN: Duration = Duration::from_mins(2);

/// Pauses between tries: each between once and twice the one it doubles, up to [`LONGEST`].
#[derive(Debug)]
pub struct Backoff {
    /// How often in a row, and when last.
    failures: u32,
    last: Option<Instant>,
    /// What pauses are spread by.
    seed: u64,
}

/// Spread by chance.
impl Default for Backoff {
    fn default() -> Self {
        Self::new(by_chance())
    }
}

/// A number nobody can foretell: hashers of the standard library are keyed by the operating system's.
pub(crate) fn by_chance() -> u64 {
    RandomState::new().build_hasher().finish()
}

impl Backoff {
    /// Spread by a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { failures: 0, last: None, seed }
    }

    /// How long to wait now.
    pub fn pause(&mut self, now: Instant) -> Duration {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) > FORGOTTEN) {
            self.failures = 0;
        }
        let least = FIRST.saturating_mul(1 << self.failures.min(16)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.last = Some(now);
        // Between nothing and 1023 thousandths and a bit of it more.
        // The multiplier and increment are Knuth's for 64 bits; the upper ones are the good ones.
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let more = u32::try_from((self.seed >> 33) % 1024).unwrap_or(0);
        (least + least * more / 1024).min(LONGEST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute_and_begin_anew_after_a_calm_time() {
        let mut now = Instant::now();
        let mut backoff = Backoff::default();
        for (least, most) in [
            (800, 1600),
            (1600, 3200),
            (3200, 6400),
            (6400, 12_800),
            (12_800, 25_600),
            (25_600, 30_000),
            (30_000, 30_000),
        ] {
            let pause = backoff.pause(now).as_millis();
            assert!((least..=most).contains(&pause), "{pause} is not between {least} and {most}");
            now += Duration::from_secs(30);
        }
        now += FORGOTTEN;
        assert!(backoff.pause(now) <= Duration::from_millis(1600), "two minutes without trouble");
    }

    #[test]
    fn not_everybody_waits_equally_long() {
        let now = Instant::now();
        let pauses: std::collections::BTreeSet<_> = (0..64).map(|_| Backoff::default().pause(now)).collect();
        assert!(pauses.len() > 8, "{pauses:?}");
    }
}
