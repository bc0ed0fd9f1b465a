//! The committed corpus of every fuzz target runs with the ordinary tests.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a missing corpus ends the test")]

use loadline_core::fuzz::{fuzz_annotation, fuzz_kernel};
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
fn the_annotation_corpus_holds() {
    run("annotation", fuzz_annotation);
}

#[test]
fn the_kernel_corpus_holds() {
    run("kernel", fuzz_kernel);
}
