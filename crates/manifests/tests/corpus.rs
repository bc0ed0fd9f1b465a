//! The committed corpus of the fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use loadline_manifests::fuzz::fuzz_yaml;

#[test]
fn the_yaml_corpus_holds() {
    corpus::run("yaml", 20, fuzz_yaml);
}
