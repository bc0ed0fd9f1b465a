//! The page about `up`: its commands are run, and print what its tables say.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/guide.rs"]
mod guide;
#[path = "common/service.rs"]
mod service;

use guide::{Guide, Terminal};
use loadline_testkit::parts;
use service::until;

const PAGE: &str = include_str!("../../../docs/guide/up.md");

/// What a line must have in it, in this order; anything may stand between.
type Promise = Vec<&'static str>;

fn section(title: &str) -> &'static str {
    let (_, rest) = PAGE.split_once(&format!("# {title}\n")).unwrap_or_else(|| panic!("no {title}"));
    rest.split("\n## ").next().unwrap()
}

fn promise(text: &'static str) -> Promise {
    let pieces = text.split('…').flat_map(|piece| match piece.split_once(", cpu ") {
        // Which figures those are depends on when a node was looked at.
        Some((before, _)) => vec![before, ", cpu ", " → "],
        None => vec![piece],
    });
    pieces.filter(|piece| !piece.is_empty()).collect()
}

/// What the tables of a section say is printed.
fn printed(title: &str) -> Vec<Promise> {
    let rows = section(title).lines().filter(|line| line.starts_with("| ") && line.contains(" s | "));
    let cells = rows.map(|row| row.trim_end_matches(" |").rsplit("| ").next().unwrap());
    let spans = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    spans.map(promise).collect()
}

fn is_kept(promise: &[&str], said: &str) -> bool {
    said.lines().any(|line| {
        let rest = promise.iter().try_fold(line, |rest, piece| Some(rest.split_once(piece)?.1));
        rest.is_some()
    })
}

/// Waits until everything was printed, in whatever order.
fn until_kept(up: &Terminal, promises: &[Promise]) {
    until(&format!("{promises:?}"), || {
        let said = up.said();
        let open: Vec<&Promise> = promises.iter().filter(|promise| !is_kept(promise, &said)).collect();
        open.is_empty().then_some(())
    });
}

fn blocks(guide: &Guide) -> [String; 4] {
    guide.blocks().try_into().unwrap_or_else(|found| panic!("four commands, not {found:?}"))
}

#[test]
fn the_story_and_a_node_that_is_overrun_print_what_the_page_says() {
    let Some(guide) = Guide::start(PAGE, &[]) else { return };
    let [story, overrun, ..] = blocks(&guide);
    let (told, happens) = (printed("The first minute"), printed("A node that is overrun"));
    assert!(told.len() >= 8 && happens.len() >= 6, "{told:?}, {happens:?}");
    // Beside each other: both take their minute.
    let (story, overrun) = (guide.open(&story), guide.open(overrun.trim_end().trim_end_matches("--for 75s")));
    until_kept(&story, &told);
    until_kept(&overrun, &happens);
    // The last line is printed again at the end.
    let said = story.end();
    assert!(said.trim_end().lines().last().unwrap().starts_with("by requests alone"), "{said}");
    overrun.end();
}

#[test]
fn a_fleet_where_totals_mislead_binds_what_the_page_says() {
    let Some(guide) = Guide::start(PAGE, &[]) else { return };
    let [_, _, _, totals] = blocks(&guide);
    let (_, lines) = section("Where totals mislead").rsplit_once("```text\n").unwrap();
    let lines: Vec<Promise> = lines
        .split("```")
        .next()
        .unwrap()
        .lines()
        .map(|line| vec![line.trim_start_matches("hub ")])
        .collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    let up = guide.open(&totals);
    until_kept(&up, &lines);
    up.end();
}

#[test]
fn a_stock_scheduler_has_the_pods_that_name_none() {
    let Some(program) = parts::find_or_skip("kube-scheduler") else { return };
    let Some(guide) = Guide::start(PAGE, &[]) else { return };
    let [_, _, stock, _] = blocks(&guide);
    std::os::unix::fs::symlink(program, guide.folder().join("kube-scheduler")).unwrap();
    let up = guide.open(&stock);
    until("both", || {
        is_kept(&["scheduler ", "kube-scheduler, for all other pods"], &up.said()).then_some(())
    });
    // How it counts for whom pods were placed, `up.rs` shows.
    let said = up.end();
    assert!(said.contains("scheduler   ours, load-aware, for pods with schedulerName: loadline"), "{said}");
}
