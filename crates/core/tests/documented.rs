//! Every test that `docs/load-rules.md` names is there, and every row names one.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
}

#[test]
fn every_documented_test_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    sources(&root.join("crates"), &mut files);
    let code: String = files.iter().map(|f| fs::read_to_string(f).expect("source text")).collect();
    let page = fs::read_to_string(root.join("docs/load-rules.md")).expect("the page");
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|l| l.starts_with("| D") || l.starts_with("| A") || l.starts_with("| U"))
        .map(|l| l.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(rows.len(), 18 + 18 + 8);
    for row in rows {
        let [id, _, _, tests] = row[..] else { unreachable!("four columns: {row:?}") };
        let named: Vec<&str> =
            tests.split(", ").map(|t| t.trim_matches('`')).filter(|t| !t.is_empty()).collect();
        // Not being linked against something is shown by the build.
        assert!(id == "D17" || !named.is_empty(), "{id} names no test");
        for test in named {
            assert!(code.contains(&format!("fn {test}(")), "{id}: there is no test {test}");
        }
    }
}
