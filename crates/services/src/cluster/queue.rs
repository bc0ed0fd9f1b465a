//! Which key is reconciled next? A work queue that holds every key once, waits, and tries failures again later.
//!
//! It never holds more than there are objects: a key that is already waiting is not added again, and one that
//! is being reconciled is only remembered as changed.

use crate::cluster::Failure;
use loadline_core::object::Key;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// When each waiting key is due.
    due: HashMap<Key, Instant>,
    /// The same, in order.
    order: BTreeSet<(Instant, Key)>,
    /// Being reconciled now.
    held: HashSet<Key>,
    /// Changed while being reconciled, and when it is due again.
    again: HashMap<Key, Instant>,
    failures: HashMap<Key, u32>,
}

impl State {
    fn add(&mut self, key: Key, at: Instant) {
        if self.held.contains(&key) {
            let due = self.again.entry(key).or_insert(at);
            *due = at.min(*due);
            return;
        }
        if let Some(due) = self.due.get(&key).copied() {
            if due <= at {
                return;
            }
            self.order.remove(&(due, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.order.insert((at, key));
    }
}

impl Queue {
    fn with<T>(&self, f: impl FnOnce(&mut State) -> T) -> T {
        f(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Reconciles a key as soon as possible.
    pub fn add(&self, key: Key) {
        self.add_after(key, Duration::ZERO);
    }

    /// Reconciles a key after a while, or earlier if it is added again.
    pub fn add_after(&self, key: Key, after: Duration) {
        self.with(|state| state.add(key, Instant::now() + after));
        self.changed.notify_one();
    }

    /// The next key that is due; its holder says [`Queue::done`] afterwards.
    async fn next(&self) -> Key {
        loop {
            let now = Instant::now();
            let (found, wait) = self.with(|state| match state.order.first() {
                Some((due, _)) if *due > now => (None, Some(*due)),
                None => (None, None),
                Some(_) => {
                    let key = state.order.pop_first().map(|(_, key)| key);
                    if let Some(key) = &key {
                        state.due.remove(key);
                        state.held.insert(key.clone());
                    }
                    (key, state.order.first().map(|(due, _)| *due))
                }
            });
            if let Some(key) = found {
                if wait.is_some() {
                    // Another worker may take the next one.
                    self.changed.notify_one();
                }
                return key;
            }
            match wait {
                Some(due) => {
                    tokio::select! {
                        biased;
                        () = tokio::time::sleep_until(due) => {}
                        () = self.changed.notified() => {}
                    }
                }
                None => self.changed.notified().await,
            }
        }
    }

    fn done(&self, key: &Key, outcome: &Result<Option<Duration>, Failure>) {
        self.with(|state| {
            state.held.remove(key);
            let after = if let Ok(after) = outcome {
                state.failures.remove(key);
                *after
            } else {
                let failures = state.failures.entry(key.clone()).or_default();
                *failures = failures.saturating_add(1);
                Some(FIRST_RETRY.saturating_mul(1 << (*failures - 1).min(10)).min(LAST_RETRY))
            };
            let changed = state.again.remove(key);
            let later = after.map(|after| Instant::now() + after);
            // A change does not shorten the wait after a failure: a server in trouble is left alone.
            let at = if outcome.is_err() { later } else { [changed, later].into_iter().flatten().min() };
            if let Some(at) = at {
                state.add(key.clone(), at);
            }
        });
        self.changed.notify_one();
    }
}

/// Reconciles keys with `workers` tasks until told to stop. `reconcile` may ask to be called again after a while.
pub fn run<F, Fut>(
    name: &'static str,
    queue: &Arc<Queue>,
    workers: usize,
    (tasks, stop): (&mut JoinSet<()>, &CancellationToken),
    reconcile: F,
) where
    F: Fn(Key) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Option<Duration>, Failure>> + Send,
{
    for _ in 0..workers {
        let (queue, stop, reconcile) = (queue.clone(), stop.clone(), reconcile.clone());
        tasks.spawn(async move {
            loop {
                let key = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    key = queue.next() => key,
                };
                let outcome = tokio::select! {
                    biased;
                    () = stop.cancelled() => return,
                    outcome = reconcile(key.clone()) => outcome,
                };
                if let Err(error) = &outcome {
                    tracing::debug!(controller = name, %key, %error, "reconcile failed");
                }
                queue.done(&key, &outcome);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::connection::{Call, Cause, Verb};
    use crate::cluster::resource::PODS;

    fn key(name: &str) -> Key {
        Key::new("", name)
    }

    fn failed() -> Result<Option<Duration>, Failure> {
        let call = Call { verb: Verb::Get, resource: PODS, subresource: "" };
        Err(Failure { call, path: String::new(), cause: Cause::Timeout, message: "try".into() })
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_added_twice_is_looked_at_once() {
        let queue = Queue::default();
        queue.add(key("a"));
        queue.add(key("a"));
        queue.add(key("b"));
        assert_eq!(queue.next().await, key("a"));
        assert_eq!(queue.next().await, key("b"));
        assert!(queue.with(|state| state.order.is_empty()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_key_changed_while_held_comes_again_only_after_it_is_done() {
        let queue = Queue::default();
        queue.add(key("a"));
        let held = queue.next().await;
        queue.add(key("a"));
        assert!(queue.with(|state| state.order.is_empty()), "two workers never hold the same key");
        queue.done(&held, &Ok(None));
        assert_eq!(queue.next().await, key("a"));
    }

    #[tokio::test(start_paused = true)]
    async fn failures_wait_longer_each_time_and_never_longer_than_the_limit() {
        let queue = Queue::default();
        queue.add(key("a"));
        let mut waits = Vec::new();
        for _ in 0..12 {
            let before = Instant::now();
            let held = queue.next().await;
            waits.push(before.elapsed());
            // A change meanwhile does not shorten the wait.
            queue.add(key("a"));
            queue.done(&held, &failed());
        }
        assert_eq!(waits[..4], [0, 20, 40, 80].map(Duration::from_millis));
        assert!(waits.is_sorted());
        assert_eq!(waits.last(), Some(&LAST_RETRY));
    }

    #[tokio::test(start_paused = true)]
    async fn the_earlier_of_two_times_counts() {
        let queue = Queue::default();
        queue.add_after(key("a"), Duration::from_mins(1));
        queue.add_after(key("a"), Duration::from_secs(1));
        queue.add_after(key("a"), Duration::from_secs(30));
        let before = Instant::now();
        queue.next().await;
        assert_eq!(before.elapsed(), Duration::from_secs(1));
    }
}
