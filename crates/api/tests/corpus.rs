//! The committed corpus of every fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

use loadline_api::fuzz::{fuzz_estimator, fuzz_extender, fuzz_journal, fuzz_lease, fuzz_prometheus};
use std::path::Path;

fn run(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        body(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count >= 12, "{target} has {count} seeds");
}

#[test]
fn the_extender_corpus_holds() {
    run("extender", fuzz_extender);
}

#[test]
fn the_prometheus_corpus_holds() {
    run("prometheus", fuzz_prometheus);
}

#[test]
fn the_journal_corpus_holds() {
    run("journal", fuzz_journal);
}

#[test]
fn the_lease_corpus_holds() {
    run("lease", fuzz_lease);
}

#[test]
fn the_estimator_corpus_holds() {
    run("estimator", fuzz_estimator);
}
