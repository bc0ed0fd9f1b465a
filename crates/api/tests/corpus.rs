//! The committed corpus of every fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use loadline_api::fuzz::{fuzz_estimator, fuzz_extender, fuzz_journal, fuzz_lease, fuzz_prometheus};

#[test]
fn the_extender_corpus_holds() {
    corpus::run("extender", 12, fuzz_extender);
}

#[test]
fn the_prometheus_corpus_holds() {
    corpus::run("prometheus", 12, fuzz_prometheus);
}

#[test]
fn the_journal_corpus_holds() {
    corpus::run("journal", 12, fuzz_journal);
}

#[test]
fn the_lease_corpus_holds() {
    corpus::run("lease", 12, fuzz_lease);
}

#[test]
fn the_estimator_corpus_holds() {
    corpus::run("estimator", 12, fuzz_estimator);
}
