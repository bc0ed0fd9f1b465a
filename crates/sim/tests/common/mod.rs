//! Waiting for what the API server will show, and letting it show what nodes use.
#![allow(dead_code, reason = "each test uses its own part of this")]
#![allow(clippy::panic, reason = "a helper that fails fails the test")]

use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_sim::node::{Figures, Sink, Use};
use std::collections::BTreeMap;
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

/// What nodes and pods use goes to the server, which serves it as metrics.
pub fn metered(server: &ApiServer) -> Sink {
    let measured = server.clone();
    Sink::new(move |figures: &Figures| {
        let sample = Sample { at: figures.at, window: figures.window };
        let usage = |used: Use| {
            BTreeMap::from([
                ("cpu".to_owned(), format!("{}m", used.cpu_milli)),
                ("memory".to_owned(), used.memory_bytes.to_string()),
            ])
        };
        for node in &figures.nodes {
            measured.set_node_metrics(&node.name, &usage(node.used), sample);
        }
        for pod in &figures.pods {
            let containers = pod.containers.iter().map(|(name, used)| (name.clone(), usage(*used))).collect();
            measured.set_pod_metrics(&pod.key.namespace, &pod.key.name, &containers, sample);
        }
    })
}
