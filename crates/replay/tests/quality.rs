//! `docs/quality.md` says what `cargo xtask quality` found: a cell of it is worked out again, and nothing is missing. All of it takes minutes.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]
#![expect(clippy::cast_precision_loss, reason = "a few seeds")]

use loadline_replay::policy::Placing;
use loadline_replay::run::{Options, run};
use loadline_replay::trace::built_in::{self, Data};
use loadline_replay::world::{Plan, World, draw};
use std::path::Path;

fn document(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name);
    std::fs::read_to_string(docs).unwrap()
}

/// The part of the page under a heading that begins so.
fn section<'p>(page: &'p str, heading: &str) -> &'p str {
    let (_, rest) = page.split_once(&format!("\n## {heading}")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// The cells of the row of a policy, its name left out.
fn row<'s>(section: &'s str, policy: &str) -> Vec<&'s str> {
    let begins = format!("| {policy} |");
    let row = section
        .lines()
        .find(|line| line.starts_with(&begins))
        .unwrap_or_else(|| panic!("no row of {policy}"));
    row[begins.len()..].trim_end_matches('|').split('|').map(str::trim).collect()
}

#[test]
fn a_cell_of_the_page_is_what_a_replay_gives() {
    let page = document("quality.md");
    let google = section(&page, "google");
    let series = Data::find("google").unwrap().series();
    let shares: Vec<f64> = (1..=5)
        .map(|seed| {
            let world = draw(&series, &Plan { pods: 1000, seed, ..Plan::default() });
            let world = World { nodes: vec![16_000; world.nodes_for(0.75, 16_000)], ..world };
            run(&world, "crane".parse().unwrap(), Options::default(), |_| {}).figures.over_full * 100.0
        })
        .collect();
    let mean = shares.iter().sum::<f64>() / shares.len() as f64;
    let (least, most) =
        (shares.iter().copied().fold(f64::MAX, f64::min), shares.iter().copied().fold(0.0, f64::max));
    assert_eq!(
        row(google, "crane")[2],
        format!("{mean:.2} % ({least:.2} to {most:.2})"),
        "google at 75 %: write it again with cargo xtask quality"
    );
}

#[test]
fn the_page_has_every_policy_on_every_data_set_and_says_of_all_that_is_wanted_whether_it_is_met() {
    let page = document("quality.md");
    for data in built_in::ALL {
        let section = section(&page, data.name);
        for placing in Placing::ALL {
            assert_eq!(row(section, placing.name()).len(), 7, "{} on {}", placing.name(), data.name);
        }
        for policy in ["requests", "crane", "line", "learned", "day-growth", "bursts"] {
            row(section, &format!("{policy}+rebalance"));
        }
    }
    let wanted = section(&page, "What is wanted, and what is met");
    let verdicts: Vec<&str> = wanted.lines().filter(|line| line.starts_with("| ")).skip(1).collect();
    assert_eq!(verdicts.len(), 8, "{wanted}");
    for verdict in verdicts {
        let cells: Vec<&str> = verdict.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, _, met, by] = cells[..] else { panic!("other columns: {verdict}") };
        assert!(["met", "**not met**"].contains(&met), "{verdict}");
        assert!(by.contains('`') || by.contains("each"), "whose figures decide: {verdict}");
        assert!(verdict.contains(|c: char| c.is_ascii_digit()), "with its figure: {verdict}");
    }
}

#[test]
fn the_plot_is_one_file_that_needs_nothing_else() {
    assert!(document("quality.md").contains("](pictures/quality.svg)"));
    let plot = document("pictures/quality.svg");
    assert!(plot.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && plot.ends_with("</svg>\n"));
    assert_eq!(plot.matches("://").count(), 1, "the namespace alone");
    for reference in ["href", "url(", "<script", "<image", "@import"] {
        assert!(!plot.contains(reference), "{reference}");
    }
    for placing in Placing::ALL {
        assert!(plot.contains(&format!(">{}<", placing.name())), "{}", placing.name());
    }
}
