//! The page about published load, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use service::until;
use std::path::Path;

const PAGE: &str = include_str!("../../../docs/guide/fleet-publish.md");

#[test]
fn a_hub_is_told_how_loaded_members_are_and_that_one_gets_busier() {
    let Some(guide) = Guide::start(PAGE, &["127.0.0.1:8001"]) else { return };
    let blocks = guide.blocks();
    let [hub, members, prepare, publish, look, start] = &blocks[..] else { panic!("six blocks") };
    let _hub = guide.open(hub);
    let _members = guide.open(&members.replace("--clusters 2", "--clusters 2 --port 0"));
    until("the members", || guide.folder().join("members.kubeconfig").is_file().then_some(()));
    until("the hub", || guide.answers("127.0.0.1:8001").then_some(()));
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let definitions = clone.join("deploy/crds/");
    guide.run(&prepare.replace("deploy/crds/", definitions.to_str().unwrap()));
    let _publisher = guide.open(publish);
    // What is measured may come a moment later than what is asked for.
    let idle = until("all scores", || {
        let said = guide.run(look);
        score(&said, "cpuFreeMeasured").and(score(&said, "cpuFreeRequested"))
    });
    assert!(idle > 90, "next to nothing runs: {idle}");
    guide.run(start);
    // 40 pods that ask for a fifth of a core are 8 cores: more than a fifth of three nodes, whatever their size here.
    until("less room by requests", || {
        score(&guide.run(look), "cpuFreeRequested").filter(|left| *left < idle - 20)
    });
}

/// The points of that name, if there are any yet.
fn score(said: &str, name: &str) -> Option<i64> {
    let line = said.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
    line.trim().parse().ok()
}
