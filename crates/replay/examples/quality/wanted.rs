//! What was wanted, what came of it, and whether that is enough.

use crate::sheet::{LEAST, Logs, Sheets};
use crate::text::{ratio, slowed};
use std::fmt::{Error, Write};

/// How pods are placed by default,
const DEFAULT: &str = "line";
/// and what might be the default if it won everywhere.
const PLACING: [&str; 4] = ["line", "learned", "day-growth", "bursts"];
const MOVING: [&str; 4] = ["line+rebalance", "learned+rebalance", "day-growth+rebalance", "bursts+rebalance"];
/// What is had today, without and with recommendations: both have to keep what is promised of moving.
const SHIPPED: [&str; 2] = ["line+rebalance", "learned+rebalance"];
/// The peak predictors of Bashir et al.
const PREDICTORS: [&str; 4] = ["limits", "n-sigma", "rc-like", "max-peak"];
const STEADY: &str = "google";
const BURSTY: &str = "bitbrains";

const NOTES: &str = "
- Where use is steady (Google) requests that are guessed well pack nodes as full as they get: nobody saves a node there, and the predictors are as good.
";

/// One line of the table.
struct Line {
    wanted: &'static str,
    found: String,
    met: bool,
    /// Whose figures decide that.
    by: String,
}

pub fn write(text: &mut String, sheets: &Sheets) -> Result<(), Error> {
    writeln!(
        text,
        "\n## What is wanted, and what is met\n\nGeometric means over worlds of equal nodes, of time over 100 % unless another figure is named. \
         Where several policies are\nnamed, the best is first. What decides is in the last column: what is had today where that can be asked for, else the best. `line` is the default, `learned` the same\nwith recommendations; `day-growth` and `bursts` are candidates that only replays know so far.\n\n| wanted | found | | by |\n|---|---|---|---|"
    )?;
    let lines = [
        never_worse(sheets),
        near_the_oracle(sheets),
        fifth(sheets, "requests", "with rebalance at most ⅕ of requests only, where mean use is below 40 %"),
        fifth(sheets, "crane", "with rebalance at most ⅕ of crane's rules, where mean use is below 40 %"),
        few_moves(sheets),
        fewer_nodes(sheets),
        few_disturbed(sheets),
        capacity(sheets),
    ];
    for Line { wanted, found, met, by } in lines {
        writeln!(text, "| {wanted} | {found} | {} | {by} |", if met { "met" } else { "**not met**" })?;
    }
    text.push_str(NOTES);
    Ok(())
}

/// `name 0.42` of each, the best of them first.
fn listed(all: &[(&str, Option<f64>)]) -> String {
    all.iter().map(|(name, found)| format!("`{name}` {}", ratio(*found))).collect::<Vec<_>>().join(", ")
}

fn ranked<'n>(names: &[&'n str], of: impl Fn(&str) -> Option<f64>) -> Vec<(&'n str, Option<f64>)> {
    let mut all: Vec<(&str, Option<f64>)> = names.iter().map(|name| (*name, of(name))).collect();
    all.sort_by(|a, b| a.1.unwrap_or(f64::MAX).total_cmp(&b.1.unwrap_or(f64::MAX)));
    all
}

fn never_worse(sheets: &Sheets) -> Line {
    // The worst data set decides.
    let worst = |policy: &str| {
        sheets.all.iter().filter_map(|sheet| sheet.beside(policy, "requests").ratio()).reduce(f64::max)
    };
    let worlds = sheets.beside(DEFAULT, "requests");
    Line {
        wanted: "placing alone never worse than requests only on any data set",
        found: format!(
            "on its worst data set: {}; world by world `{DEFAULT}` is worse in {} of {}",
            listed(&ranked(&PLACING, worst)),
            worlds.worse(),
            worlds.0.len()
        ),
        met: worst(DEFAULT).is_some_and(|worst| worst <= 1.0),
        by: format!("`{DEFAULT}` on its worst data set"),
    }
}

fn near_the_oracle(sheets: &Sheets) -> Line {
    let Some(sheet) = sheets.of(STEADY) else {
        return Line { wanted: "", found: String::new(), met: false, by: String::new() };
    };
    // All worlds count: where both are never over 100 %, they are equal.
    let beside = |policy: &str| {
        let pairs = sheet.figures(policy).into_iter().zip(sheet.figures("oracle"));
        Logs(
            pairs
                .map(|(mine, oracle)| (mine.over_full.max(LEAST) / oracle.over_full.max(LEAST)).ln())
                .collect(),
        )
        .ratio()
    };
    let all = ranked(&PLACING, beside);
    let best = all.first().copied().unwrap_or(("", None));
    let p99 = |policy: &str| sheet.mean(policy, |figures| figures.p99_use) * 100.0;
    Line {
        wanted: "placing alone within 10 % of the oracle of placing once on steady data",
        found: format!(
            "{STEADY}, of the oracle: {}; p99 of node use: `{}` {:.0} %, oracle {:.0} %",
            listed(&all),
            best.0,
            p99(best.0),
            p99("oracle")
        ),
        met: beside(DEFAULT).is_some_and(|ratio| ratio <= 1.1),
        by: format!("`{DEFAULT}` on {STEADY}"),
    }
}

fn fifth(sheets: &Sheets, base: &str, wanted: &'static str) -> Line {
    let all =
        ranked(&MOVING, |policy| sheets.of(BURSTY).and_then(|sheet| sheet.beside(policy, base).ratio()));
    let by_density = sheets.of(BURSTY).zip(all.first()).map(|(sheet, (best, _))| {
        let at = |density: usize| {
            let mean = |policy: &str| {
                let all = sheet.at(density, policy);
                all.iter().map(|figures| figures.over_full).sum::<f64>() / all.len().max(1) as f64
            };
            format!("{:.2} at {:.0} %", mean(best) / mean(base).max(LEAST), sheet.densities[density] * 100.0)
        };
        format!("; means of `{best}`: {}, {}, {}", at(0), at(1), at(2))
    });
    Line {
        wanted,
        found: format!("{BURSTY}: {}{}", listed(&all), by_density.unwrap_or_default()),
        met: shipped(&all, 0.2),
        by: both(),
    }
}

/// Is the figure of each that is had today at most that?
fn shipped(all: &[(&str, Option<f64>)], most: f64) -> bool {
    let of = |name: &str| all.iter().find(|one| one.0 == name).and_then(|one| one.1);
    SHIPPED.iter().all(|name| of(name).is_some_and(|found| found <= most))
}

fn both() -> String {
    format!("each of `{}` on {BURSTY}", SHIPPED.join("`, `"))
}

fn few_moves(sheets: &Sheets) -> Line {
    let moves = |policy: &str| sheets.of(BURSTY).map(|sheet| sheet.mean(policy, |f| f.moves_per_pod_day));
    let all = ranked(&MOVING, moves);
    Line {
        wanted: "that with at most 0.15 moves per pod and day",
        found: format!("{BURSTY}: {}", listed(&all)),
        met: shipped(&all, 0.15),
        by: both(),
    }
}

fn fewer_nodes(sheets: &Sheets) -> Line {
    let names = ["line", "day-growth", "line+rebalance", "day-growth+rebalance"];
    let beside = |policy: &str| -> Option<f64> {
        let logs = sheets.all.iter().filter(|sheet| !sheet.beside("requests", "requests").0.is_empty());
        Logs(logs.filter_map(|sheet| Some((sheet.nodes(policy)? / sheet.nodes("requests")?).ln())).collect())
            .ratio()
    };
    let all = ranked(&names, beside);
    let best = all.first().copied().unwrap_or(("", None));
    let each: Vec<String> = sheets
        .all
        .iter()
        .filter_map(|sheet| {
            let fewer = 1.0 - sheet.nodes(best.0)? / sheet.nodes("requests")?;
            Some(format!("{} {:.0} %", sheet.data.name, fewer * 100.0))
        })
        .collect();
    Line {
        wanted: "at equal overload at least 30 % fewer nodes than requests only",
        found: format!(
            "nodes beside requests only, where it is ever over 100 %: {}; fewer by `{}`: {}",
            listed(&all),
            best.0,
            each.join(", ")
        ),
        met: best.1.is_some_and(|ratio| ratio <= 0.7),
        by: format!("the best, `{}`, over the data sets", best.0),
    }
}

fn few_disturbed(sheets: &Sheets) -> Line {
    let share = |policy: &str| {
        let (exactly, by_all) =
            sheets.all.iter().map(|sheet| slowed(sheet, policy)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        (by_all > 0).then(|| exactly as f64 / by_all as f64)
    };
    let all = ranked(&["crane+protection", "line+rebalance+protection"], share);
    Line {
        wanted: "with protection, pods disturbed at most ¼ of act-on-all",
        found: format!("pods slowed down, of those acting on all slows down: {}", listed(&all)),
        met: all.iter().all(|(_, share)| share.is_some_and(|share| share <= 0.25)),
        by: "each, over all data sets".to_owned(),
    }
}

fn capacity(sheets: &Sheets) -> Line {
    let ours = ["line+rebalance", "day-growth+rebalance"];
    let (mut said, mut met) = (Vec::new(), true);
    for sheet in &sheets.all {
        let fewest = |names: &[&'static str]| {
            ranked(names, |policy| sheet.nodes(policy))
                .first()
                .copied()
                .and_then(|(name, nodes)| Some((name, nodes?)))
        };
        let (Some((their, theirs)), Some((our, mine))) = (fewest(&PREDICTORS), fewest(&ours)) else {
            continue;
        };
        let gained = theirs / mine - 1.0;
        met &= gained > 0.0;
        said.push(format!("{}: `{our}` {:+.0} % beside `{their}`", sheet.data.name, gained * 100.0));
    }
    Line {
        wanted: "usable capacity above the best predictor of Bashir et al., at no more violations",
        found: format!(
            "{} (at {:.0} % of nodes' time over 100 %)",
            said.join("; "),
            crate::VIOLATIONS * 100.0
        ),
        met: met && !said.is_empty(),
        by: "the best of ours beside the best predictor, on each data set".to_owned(),
    }
}
