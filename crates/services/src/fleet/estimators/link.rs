//! Is an estimator worth asking? What is known of one of them: its connection, its latest answers, how often it failed.

use jiff::Timestamp;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;
use tonic::transport::Channel;

/// After so many failures in a row nobody waits for it any more.
pub(super) const STRIKES: u32 = 3;
/// How long it is left alone then, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));
/// Answers that are remembered; questions differ by workload.
const ANSWERS: usize = 1024;

/// Whether it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gate {
    /// It is, and waited for.
    Open,
    /// It is asked, on the side: it failed before.
    Ajar,
    /// It is not.
    Shut,
}

#[derive(Clone, Copy, Debug)]
struct Answer {
    count: i32,
    at: Timestamp,
    since: Instant,
}

#[derive(Debug, Default)]
struct State {
    strikes: u32,
    /// Not asked before then.
    shut_until: Option<Instant>,
    /// Somebody is finding out.
    trying: bool,
    trouble: Option<String>,
    answers: HashMap<Vec<u8>, Answer>,
}

/// One estimator.
#[derive(Debug)]
pub(super) struct Link {
    cluster: Arc<str>,
    /// Locked while connecting: whoever comes second gets the connection of the first.
    channel: tokio::sync::Mutex<Option<Channel>>,
    state: Mutex<State>,
}

impl Link {
    pub fn new(cluster: &Arc<str>) -> Arc<Self> {
        Arc::new(Self {
            cluster: cluster.clone(),
            channel: tokio::sync::Mutex::default(),
            state: Mutex::default(),
        })
    }

    pub fn cluster(&self) -> &Arc<str> {
        &self.cluster
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The connection; made if there is none.
    pub async fn channel<F>(&self, connect: impl FnOnce() -> F) -> Result<Channel, String>
    where
        F: Future<Output = Result<Channel, String>>,
    {
        let mut held = self.channel.lock().await;
        if let Some(channel) = &*held {
            return Ok(channel.clone());
        }
        let channel = connect().await?;
        *held = Some(channel.clone());
        Ok(channel)
    }

    /// May it be asked? One that is asked on the side is asked by one at a time.
    pub fn gate(&self, now: Instant) -> Gate {
        let mut state = self.state();
        match state.shut_until {
            None => Gate::Open,
            Some(until) if now < until || state.trying => Gate::Shut,
            Some(_) => {
                state.trying = true;
                Gate::Ajar
            }
        }
    }

    /// Somebody is there, though it may have refused. Says whether nobody was before.
    pub fn answered(&self, refusal: Option<String>) -> bool {
        let mut state = self.state();
        (state.strikes, state.trying, state.trouble) = (0, false, refusal);
        state.shut_until.take().is_some()
    }

    /// Nobody is there.
    pub fn struck(&self, why: String, now: Instant) {
        // Not while somebody connects: that attempt is not this one.
        if let Ok(mut held) = self.channel.try_lock() {
            *held = None;
        }
        let mut state = self.state();
        state.strikes = state.strikes.saturating_add(1);
        (state.trying, state.trouble) = (false, Some(why));
        if state.strikes >= STRIKES {
            let longer = (state.strikes - STRIKES).min(10);
            let pause = PAUSES.0.saturating_mul(1 << longer).min(PAUSES.1);
            state.shut_until = Some(now + pause);
        }
    }

    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// The answer to that question, if it is not older than that.
    pub fn answer(&self, question: &[u8], now: Instant, fresh: Duration) -> Option<(i32, Timestamp)> {
        let state = self.state();
        let answer = state.answers.get(question)?;
        (now.duration_since(answer.since) < fresh).then_some((answer.count, answer.at))
    }

    pub fn keep(&self, question: Vec<u8>, count: i32, at: Timestamp, now: Instant, fresh: Duration) {
        if fresh.is_zero() {
            return;
        }
        let mut state = self.state();
        if state.answers.len() >= ANSWERS {
            state.answers.retain(|_, answer| now.duration_since(answer.since) < fresh);
        }
        if state.answers.len() < ANSWERS {
            state.answers.insert(question, Answer { count, at, since: now });
        }
    }

    pub fn forget_answers(&self) {
        self.state().answers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_one_that_failed_thrice_and_one_at_a_time_finds_out_whether_it_is_back() {
        let (link, start) = (Link::new(&"a".into()), Instant::now());
        for _ in 0..STRIKES {
            assert_eq!(link.gate(start), Gate::Open);
            link.struck("gone".into(), start);
        }
        assert_eq!(link.gate(start), Gate::Shut);
        let later = start + PAUSES.0;
        assert_eq!([link.gate(later), link.gate(later)], [Gate::Ajar, Gate::Shut]);
        link.struck("still gone".into(), later);
        assert_eq!(link.gate(later + PAUSES.0), Gate::Shut, "the pause is longer each time");
        assert_eq!(link.gate(later + PAUSES.0 * 2), Gate::Ajar);
        assert!(link.answered(None), "that is news");
        assert_eq!((link.gate(later), link.trouble()), (Gate::Open, None));
        assert!(!link.answered(None), "and then no more");
    }

    #[test]
    fn a_refusal_is_no_strike() {
        let link = Link::new(&"a".into());
        for _ in 0..STRIKES {
            link.answered(Some("no such workload".into()));
        }
        assert_eq!(link.gate(Instant::now()), Gate::Open);
        assert_eq!(link.trouble().as_deref(), Some("no such workload"));
    }

    #[test]
    fn an_answer_is_used_again_while_it_is_fresh() {
        let (link, start, fresh) = (Link::new(&"a".into()), Instant::now(), Duration::from_secs(1));
        let at = Timestamp::UNIX_EPOCH;
        link.keep(b"q".to_vec(), 7, at, start, fresh);
        assert_eq!(link.answer(b"q", start + fresh / 2, fresh), Some((7, at)));
        assert_eq!(link.answer(b"other", start, fresh), None);
        assert_eq!(link.answer(b"q", start + fresh, fresh), None, "too old");
        link.forget_answers();
        assert_eq!(link.answer(b"q", start, fresh), None);
        for question in 0..2 * ANSWERS {
            link.keep(question.to_be_bytes().to_vec(), 1, at, start, fresh);
        }
        assert_eq!(link.state().answers.len(), ANSWERS, "memory is bounded");
    }
}
