//! Every test that `docs/load-rules.md` and `SECURITY.md` name is there, and every row names one.

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

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All there is.
fn code() -> String {
    let mut files = Vec::new();
    sources(&root().join("crates"), &mut files);
    files.iter().map(|f| fs::read_to_string(f).expect("source text")).collect()
}

/// The cells of the rows of a page that begin like one of these.
fn rows<'a>(page: &'a str, begin: &[&str]) -> Vec<Vec<&'a str>> {
    let rows = page.lines().filter(|line| begin.iter().any(|begin| line.starts_with(begin)));
    rows.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
}

/// The tests that a cell names, all of which are there.
fn named<'a>(code: &str, row: &str, cell: &'a str) -> Vec<&'a str> {
    let named: Vec<&str> = cell.split(", ").map(|t| t.trim_matches('`')).filter(|t| !t.is_empty()).collect();
    for test in &named {
        assert!(code.contains(&format!("fn {test}(")), "{row}: there is no test {test}");
    }
    named
}

#[test]
fn every_documented_test_exists() {
    let code = code();
    let page = fs::read_to_string(root().join("docs/load-rules.md")).expect("the page");
    let rows = rows(&page, &["| D", "| A", "| U"]);
    assert_eq!(rows.len(), 18 + 18 + 8);
    for row in rows {
        let [id, _, _, tests] = row[..] else { unreachable!("four columns: {row:?}") };
        // Not being linked against something is shown by the build.
        assert!(id == "D17" || !named(&code, id, tests).is_empty(), "{id} names no test");
    }
}

#[test]
fn whatever_stands_in_somebodys_way_is_shown_by_a_test() {
    let code = code();
    let page = fs::read_to_string(root().join("SECURITY.md")).expect("the page");
    let rows = rows(&page, &["| who"]);
    assert!(matches!(&rows[0][..], ["who", _, _, "shown by"]), "{:?}", rows[0]);
    assert_eq!(rows.len(), 1 + 6);
    for row in &rows[1..] {
        let [who, _, _, tests] = row[..] else { unreachable!("four columns: {row:?}") };
        assert!(!named(&code, who, tests).is_empty(), "{who}: no test is named");
    }
}
