//! Waiting for what the API server will show.
#![allow(clippy::panic, reason = "a helper that fails fails the test")]

use std::future::Future;
use std::time::Duration;

/// Generous: a busy machine must not fail a test.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Asks again until there is an answer. Every ask goes to the server, whose watches drive everything.
pub async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.unwrap_or_else(|_| panic!("waited too long for {what}"))
}
