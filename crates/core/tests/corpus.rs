//! The committed corpus of every fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

#[path = "../../../fuzz/corpus.rs"]
mod corpus;

use loadline_core::fuzz::{fuzz_annotation, fuzz_kernel};

#[test]
fn the_annotation_corpus_holds() {
    corpus::run("annotation", 12, fuzz_annotation);
}

#[test]
fn the_kernel_corpus_holds() {
    corpus::run("kernel", 12, fuzz_kernel);
}
