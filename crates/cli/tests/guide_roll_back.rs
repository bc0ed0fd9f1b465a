//! The page about rolling back, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/roll-back.md");

#[test]
fn what_was_written_on_nodes_is_taken_away_and_what_is_others_stays() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8090"]) else { return };
    let [up, annotator, wait, cleanup] = &guide.blocks()[..] else { panic!("four blocks") };
    let _up = guide.open(up);
    until("the cluster", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    let annotator = guide.open(annotator);
    guide.run(wait);
    annotator.end();
    let said = guide.run(cleanup);
    assert!(said.contains("example.com/mine"), "{said}");
    for ours in ["cpu_usage", "mem_usage", "node_hot_value", "loadline.dev/load"] {
        assert!(!said.contains(ours), "{ours} is left: {said}");
    }
}
