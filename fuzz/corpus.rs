//! Runs what a fuzz target does over its committed corpus, for the ordinary tests of the crate that has it.

use std::path::Path;

/// Each seed once; there are at least so many.
pub fn run(target: &str, least: usize, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for entry in entries {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        body(&std::fs::read(path).unwrap());
        count += 1;
    }
    assert!(count >= least, "{target} has {count} seeds");
}
