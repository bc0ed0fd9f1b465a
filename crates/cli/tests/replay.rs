//! `loadline replay` beside its table: the page for people who were not there, and what is told of doubtful input.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use std::path::Path;
use std::process::{Command, Output};

fn replay(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_loadline")).arg("replay").args(args).output().unwrap()
}

fn small(more: &[&str]) -> Output {
    replay(&[&["--pods", "60", "--days", "2", "--node-cores", "4"], more].concat())
}

#[test]
fn the_page_is_one_file_that_needs_nothing_else_and_has_every_policy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let policies = ["requests", "line", "line+rebalance", "crane+protection", "oracle"];
    let output = small(&["--policy", &policies.join(","), "--seeds", "2", "--html", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stderr.is_empty(),
        "the bar is for terminals: {:?}",
        String::from_utf8_lossy(&output.stderr)
    );
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");

    let page = std::fs::read_to_string(&path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for reference in
        ["http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link", "<iframe"]
    {
        assert!(!page.contains(reference), "it loads something: {reference}");
    }
    // In the table, beside its bar, and in the legend of its line.
    for policy in policies {
        assert_eq!(page.matches(&format!(">{policy}<")).count(), 3, "{policy}");
    }
    assert_eq!(page.matches("<polyline").count(), policies.len(), "a line each");
    assert_eq!(page.matches("<circle").count(), 2 * policies.len(), "a dot for each seed");
    let table = String::from_utf8(output.stdout).unwrap();
    let row = table.lines().find(|line| line.trim_start().starts_with("requests ")).unwrap();
    let over = row.split_whitespace().find(|word| word.contains('.')).unwrap();
    assert!(page.contains(&format!("<td>{over} %")), "the figures of the table, {over}: {page}");
}

#[test]
fn the_page_has_every_column_of_the_table() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.html");
    let policies = "requests,line+rebalance,crane+protection";
    let output = small(&["--policy", policies, "--nodes", "fewest", "--html", path.to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(&path).unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    for (heading, column) in
        [("SLOWED", "slowed"), ("BY ALL", "by all"), ("CAPACITY GAINED", "capacity gained")]
    {
        assert!(
            table.contains(heading) && page.contains(&format!("<th>{column}<")),
            "{heading}: {table}\n{page}"
        );
    }
    // The last three of each row: slowed, by all, gained.
    for policy in policies.split(',') {
        let row = table.lines().find(|line| line.trim_start().starts_with(&format!("{policy} "))).unwrap();
        let words: Vec<&str> = row.split_whitespace().collect();
        let [.., slowed, by_all, gained, "%"] = words[..] else { panic!("another row: {row}") };
        let cells = format!("<td>{slowed}<td>{by_all}<td>{gained} %</tr>");
        let shown = page.lines().find(|line| line.contains(&format!("\">{policy}<td>"))).unwrap();
        assert!(shown.ends_with(&cells), "{cells}: {shown}");
    }
}

fn csv(folder: &Path, text: &str) -> String {
    let path = folder.join("use.csv");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_unit_that_looks_wrong_is_told_beside_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let row: Vec<String> = (0..288).map(|step| format!("{}", 20 + step % 70)).collect();
    let file = csv(folder.path(), &format!("web,{}\n", row.join(",")));
    let told = |unit: &str| {
        let output = replay(&[
            &file,
            "--unit",
            unit,
            "--pods",
            "10",
            "--days",
            "2",
            "--node-cores",
            "100",
            "--policy",
            "requests",
        ]);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(told("cores").contains("a workload uses 89 cores: are the numbers percent, and not cores?\n"));
    assert!(told("millicores").contains("are the numbers percent or cores, and not millicores?\n"));
    assert!(!told("percent").contains('?'));
}

#[test]
fn a_budget_of_nothing_moves_nobody() {
    let moved = |budget: &[&str]| {
        let output = small(&[&["--policy", "line+rebalance", "--seed", "2", "-o", "json"], budget].concat());
        let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        answer["policies"][0]["mean"]["moves"].as_u64().unwrap()
    };
    assert!(moved(&[]) > 0);
    assert_eq!(moved(&["--budget", "0"]), 0);
}
