//! The committed corpus of every fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use loadline_machinery::fuzz::{fuzz_protobuf, fuzz_quantity, fuzz_selector};

#[test]
fn the_quantity_corpus_holds() {
    corpus::run("quantity", 12, fuzz_quantity);
}

#[test]
fn the_selector_corpus_holds() {
    corpus::run("selector", 12, fuzz_selector);
}

#[test]
fn the_protobuf_corpus_holds() {
    corpus::run("protobuf", 12, fuzz_protobuf);
}
