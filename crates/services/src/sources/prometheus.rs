//! What does Prometheus know of all nodes? One query per metric, whatever the number of nodes.
//!
//! Answers come as messages. A server that is away, hangs, or answers something else is told once per round and asked
//! again later, more and more seldom; it holds up nobody. What one metric lacks does not touch the others.

mod client;

pub use client::{Auth, Client, Headers, Range, Target, Trouble};

use jiff::Timestamp;
use loadline_api::prometheus::{self, Query, Refused};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::sleep;

/// The longest pause between two rounds that fail.
const LONGEST: Duration = Duration::from_mins(5);

/// What is asked, and how often.
#[derive(Clone, Debug)]
pub struct Options {
    pub target: Target,
    /// Pause between rounds. Rules are evaluated about once a minute; asking more often brings nothing.
    pub every: Duration,
    /// How long an answer may take.
    pub timeout: Duration,
    /// The label that names a node; without, one of the usual does.
    pub label: Option<String>,
    /// What is asked for each metric.
    pub queries: Vec<(Arc<str>, Query)>,
}

impl Options {
    pub const EVERY: Duration = Duration::from_mins(1);
    pub const TIMEOUT: Duration = Duration::from_secs(10);
}

/// What was answered for one metric.
#[derive(Clone, Debug)]
pub struct Answered {
    pub metric: Arc<str>,
    /// The series, and what is odd; or why there are none.
    pub answer: Result<prometheus::Answer, Problem>,
    pub at: Timestamp,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// Nobody answers, or too late, or not as one should.
    #[error("{0}")]
    Away(String),
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// Asks round after round until nobody listens any more. The first round is at once; where the wait between rounds ends
/// differs a little, by `seed`, so that several do not ask at the same moment.
pub async fn poll<M: Send + 'static>(
    options: Options,
    seed: u64,
    events: mpsc::Sender<M>,
    wrap: fn(Answered) -> M,
) {
    let (mut failures, mut spread) = (0, seed);
    loop {
        let mut failed = false;
        // Made anew for each round: certificates may have been rotated.
        let client = Client::new(options.target.clone()).await;
        for (metric, query) in &options.queries {
            let asked = async {
                let client = client.as_ref().map_err(|problem| Problem::Away(problem.clone()))?;
                let body = client.query(&query.text(), options.timeout).await.map_err(Problem::Away)?;
                Ok(prometheus::read(&body, options.label.as_deref())?)
            };
            let answer: Result<_, Problem> = tokio::select! {
                () = events.closed() => return,
                answer = asked => answer,
            };
            // If one cannot be reached, the next cannot be either: nothing is gained by waiting for each.
            let away = matches!(answer, Err(Problem::Away(_)));
            failed |= away;
            let message = Answered { metric: metric.clone(), answer, at: Timestamp::now() };
            if events.send(wrap(message)).await.is_err() {
                return;
            }
            if away {
                break;
            }
        }
        failures = if failed { failures + 1 } else { 0 };
        // xorshift: any spread does.
        spread ^= spread << 13;
        spread ^= spread >> 7;
        spread ^= spread << 17;
        tokio::select! {
            () = events.closed() => return,
            () = sleep(pause(options.every, failures, spread)) => {}
        }
    }
}

/// The time to the next round: the usual, doubled with every failure from a quarter of it on, and up to a tenth less.
fn pause(every: Duration, failures: u32, spread: u64) -> Duration {
    let wait = match failures {
        0 => every,
        _ => (every / 4).saturating_mul(2_u32.saturating_pow(failures.min(16) - 1)).min(LONGEST.max(every)),
    };
    wait.saturating_sub(wait / 1000 * u32::try_from(spread % 100).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_that_fail_are_repeated_soon_then_ever_more_seldom() {
        let minute = Duration::from_mins(1);
        for (failures, seconds) in [(0, 60), (1, 15), (2, 30), (3, 60), (5, 240), (6, 300), (u32::MAX, 300)] {
            assert_eq!(pause(minute, failures, 0), Duration::from_secs(seconds), "after {failures}");
        }
        assert_eq!(pause(minute, 0, 99), Duration::from_millis(60_000 - 99 * 60), "up to a tenth less");
    }
}
