//! May a pod that waits be told again why it does?
//!
//! That it waits is told at once, and that it waits for the same reason never again. But loads change all the time, and with them how
//! many nodes are refused for what: ten thousand pods that wait would be written about day and night, and nobody reads it. So telling
//! others than the first time has a budget, shared by all pods. Few that wait never notice; of many, each hears of it later.

use super::execute::Why;
use super::queue::Pending;
use crate::ctx::Now;
use std::time::Duration;
use tokio::time::Instant;

/// So many at a time.
const MOST: u32 = 100;
/// And one more after each of these.
const EVERY: Duration = Duration::from_millis(50);

/// What is left of the budget.
#[derive(Debug)]
pub(super) struct Retellings {
    left: u32,
    /// What has come back since then is not counted yet.
    since: Option<Instant>,
}

impl Default for Retellings {
    fn default() -> Self {
        Self { left: MOST, since: None }
    }
}

impl Retellings {
    /// Why a pod goes nowhere, to be told or not.
    pub fn why(&mut self, pod: &Pending, text: String, now: Now) -> Why {
        let is_news = self.is_news(pod.pod.unschedulable.as_deref(), &text, now.at);
        Why { text, is_news }
    }

    /// Is it to be told now that it waits because of this, if it was told that before?
    fn is_news(&mut self, told: Option<&str>, why: &str, now: Instant) -> bool {
        match told {
            None => true,
            Some(told) if told == why => false,
            Some(_) => self.take(now),
        }
    }

    fn take(&mut self, now: Instant) -> bool {
        let since = *self.since.get_or_insert(now);
        let back = u32::try_from(now.duration_since(since).as_nanos() / EVERY.as_nanos()).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(back).min(MOST);
        // What is left of a pause counts for the next one.
        self.since = Some(if self.left == MOST { now } else { since + EVERY.saturating_mul(back) });
        let Some(left) = self.left.checked_sub(1) else { return false };
        self.left = left;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_first_time_is_always_news_the_same_never_and_another_reason_within_a_budget() {
        let (mut retellings, start) = (Retellings::default(), Instant::now());
        for _ in 0..1000 {
            assert!(retellings.is_news(None, "full", start));
            assert!(!retellings.is_news(Some("full"), "full", start));
        }
        let mut told = |count: usize, at: Instant| {
            (0..count).filter(|_| retellings.is_news(Some("full"), "hot", at)).count()
        };
        assert_eq!(told(1000, start), 100, "nobody was told anything for long");
        assert_eq!(told(1000, start + Duration::from_millis(49)), 0);
        assert_eq!(told(1000, start + Duration::from_millis(125)), 2, "at 50 and at 100");
        assert_eq!(told(1000, start + Duration::from_millis(150)), 1, "the rest was not lost");
        assert_eq!(told(1000, start + Duration::from_secs(1)), 17, "20 a second: 850 ÷ 50");
        assert_eq!(told(1000, start + Duration::from_hours(1)), 100, "never more at a time");
    }
}
