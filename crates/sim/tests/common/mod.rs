//! Waiting for what the API server will show, and letting it show what nodes use.
#![allow(dead_code, reason = "each test uses its own part of this")]
#![allow(clippy::panic, reason = "a helper that fails fails the test")]

use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_sim::node::{Figures, Sink};
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

/// What nodes use goes to the server, which serves it as metrics.
pub fn metered(server: &ApiServer) -> Sink {
    let measured = server.clone();
    Sink::new(move |figures: &Figures| {
        let sample = Sample { at: figures.at, window: figures.window };
        for node in &figures.nodes {
            let usage = [
                ("cpu".to_owned(), format!("{}m", node.used.cpu_milli)),
                ("memory".to_owned(), node.used.memory_bytes.to_string()),
            ];
            measured.set_node_metrics(&node.name, &usage.into(), sample);
        }
    })
}
