//! The page about placements, done as it says.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::Guide;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/fleet-ocm.md");

#[test]
fn a_placement_is_decided_by_load_and_explained_by_two_commands() {
    let Some(guide) = Guide::start(PAGE, &[]) else { return };
    let blocks = guide.blocks();
    let [up, place] = &blocks[..] else { panic!("two terminals") };
    let free = up.replace("--clusters 3", "--clusters 3 --port 0");
    let _up = guide.open(&free);
    until("the fleet", || guide.folder().join("demo.kubeconfig").is_file().then_some(()));
    let said = guide.run(place);
    let chosen = said.lines().find(|line| line.starts_with("member")).expect("two clusters");
    assert_eq!(chosen.split(' ').count(), 2, "{said}");
    assert!(said.contains(&format!("default/web → {}", explained(&said))), "{said}");
    let mut named: Vec<String> = explained(&said).split(", ").map(str::to_owned).collect();
    named.sort_unstable();
    assert_eq!(named, chosen.split(' ').collect::<Vec<_>>(), "explained as published: {said}");
}

/// Who is selected, by the explanation.
fn explained(said: &str) -> String {
    let line = said.lines().find(|line| line.starts_with("default/web → ")).expect("an explanation");
    line.trim_start_matches("default/web → ").to_owned()
}
