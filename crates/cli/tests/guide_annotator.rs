//! The page about the annotator, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/annotator.md");

#[test]
fn nodes_on_a_laptop_are_annotated_by_three_commands() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8090"]) else { return };
    let [up, annotator, look] = &guide.blocks()[..] else { panic!("three terminals") };
    let _up = guide.open(up);
    until("the cluster", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    let _annotator = guide.open(annotator);
    let said = guide.run(look);
    for wanted in [
        "node/node-02 condition met",
        "\"cpu_usage_avg_5m\":\"0.0",
        "metrics API: answered",
        "nodes: 3 fresh",
    ] {
        assert!(said.contains(wanted), "{wanted:?} is not in {said}");
    }
}
