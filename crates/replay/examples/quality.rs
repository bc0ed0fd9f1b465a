//! Writes `docs/quality.md`, or to the standard output: every policy on every data set that is built in, at three densities, over five seeds.
//!
//! `cargo xtask quality` runs it. What is written follows from what is built in alone, so it is the same everywhere.

#![expect(clippy::cast_precision_loss, reason = "numbers of runs")]

use loadline_replay::compare::{Comparison, Nodes, Row};
use loadline_replay::figures::Figures;
use loadline_replay::policy::Policy;
use loadline_replay::run::Options;
use loadline_replay::trace::built_in;
use loadline_replay::world::Plan;
use std::error::Error;
use std::fmt::Write;

const POLICIES: [&str; 19] = [
    "requests",
    "crane",
    "packing",
    "risk",
    "limits",
    "n-sigma",
    "rc-like",
    "max-peak",
    "line",
    "learned",
    "percentiles",
    "day",
    "day-growth",
    "bursts",
    "oracle",
    "requests+rebalance",
    "crane+rebalance",
    "line+rebalance",
    "bursts+rebalance",
];
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const PODS: usize = 1000;
const NODE_MILLI: i64 = 16_000;
/// Below this a share of time is taken to be this, so that ratios mean something: a minute and a half of a day.
const LEAST: f64 = 0.001;

const HEAD: &str = "\
# Decision quality

What each policy would have done, by `loadline replay`. This page is written by `cargo xtask quality` from the data that is built in
([where it is from](../scenarios/replay/README.md)) and from nothing else; run it again and the same comes out. What the policies are is in
`loadline replay --help`; how a world is made, in [the guide](guide/replay.md).

1 000 pods in five days on nodes of 16 cores, of which the first day is not counted; three densities (how much of all nodes is used on
average), five seeds each. *Over 100 %* is the share of nodes' time in which more CPU was wanted than there is: the mean of the seeds,
and in brackets the least and the most. CPU only. All that fits by requests may be placed; where the rule of a policy allows no node,
the best of them is taken.
";

fn main() -> Result<(), Box<dyn Error>> {
    let policies: Vec<Policy> = POLICIES.iter().map(|name| name.parse()).collect::<Result<_, String>>()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = HEAD.to_owned();
    // By policy: the logarithm of how it compares with requests, for every data set, density and seed that says something.
    let mut logs: Vec<Vec<f64>> = vec![Vec::new(); policies.len()];
    for data in built_in::ALL {
        let densities = if data.name == "google" { [0.45, 0.6, 0.75] } else { [0.22, 0.3, 0.38] };
        writeln!(text, "\n## {}: {}\n", data.name, data.about)?;
        let series = data.series();
        let mut rows: Vec<Vec<Row>> = Vec::new();
        for density in densities {
            eprintln!("{} at {density}", data.name);
            let comparison = Comparison {
                recorded: None,
                series: &series,
                policies: &policies,
                seeds: &SEEDS,
                plan: Plan { pods: PODS, ..Plan::default() },
                nodes: Nodes::Density(density),
                node_milli: NODE_MILLI,
                options: Options::default(),
            };
            rows.push(comparison.rows(threads, |_| {}));
        }
        write!(text, "| policy |")?;
        densities
            .iter()
            .try_for_each(|density| write!(text, " over 100 %, {:.0} % used |", density * 100.0))?;
        writeln!(text, " not served | p99 use | moves per pod and day |\n|---|---|---|---|---|---|---|")?;
        for (place, policy) in policies.iter().enumerate() {
            write!(text, "| {policy} |")?;
            let mut all: Vec<&Figures> = Vec::new();
            for rows in &rows {
                let figures = |policy: &Policy| -> Vec<&Figures> {
                    rows.iter()
                        .filter(|row| row.policy == *policy)
                        .filter_map(|row| row.figures.as_ref())
                        .collect()
                };
                let (these, base) = (figures(policy), figures(&policies[0]));
                let over =
                    |figures: &[&Figures]| -> Vec<f64> { figures.iter().map(|f| f.over_full).collect() };
                for (mine, theirs) in over(&these).into_iter().zip(over(&base)) {
                    if theirs >= LEAST {
                        logs[place].push((mine.max(LEAST) / theirs).ln());
                    }
                }
                write!(text, " {} |", spread(&over(&these)))?;
                all.extend(these);
            }
            let mean =
                |of: fn(&Figures) -> f64| all.iter().map(|f| of(f)).sum::<f64>() / all.len().max(1) as f64;
            writeln!(
                text,
                " {:.2} % | {:.0} % | {:.2} |",
                mean(|f| f.not_served) * 100.0,
                mean(|f| f.p99_use) * 100.0,
                mean(|f| f.moves_per_pod_day)
            )?;
        }
        writeln!(text, "\nNot served, p99 and moves are means over densities and seeds.")?;
    }
    writeln!(
        text,
        "\n## All together\n\nTime over 100 % beside requests only: the geometric mean over the {} worlds in which requests only was \
         over 100 % for 0.1 % of\nthe time or more. Less than 0.1 % counts as that.\n\n| policy | of requests only | worlds in which it was \
         worse |\n|---|---|---|",
        logs[0].len()
    )?;
    for (policy, logs) in policies.iter().zip(&logs) {
        let ratio = (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp();
        let worse = logs.iter().filter(|log| **log > 0.0).count();
        writeln!(text, "| {policy} | {ratio:.2} | {worse} of {} |", logs.len())?;
    }
    match std::env::args_os().nth(1) {
        Some(path) => std::fs::write(path, text)?,
        None => print!("{text}"),
    }
    Ok(())
}

/// The mean, and the least and the most.
fn spread(shares: &[f64]) -> String {
    let mean = shares.iter().sum::<f64>() / shares.len().max(1) as f64;
    let (least, most) = shares.iter().fold((f64::MAX, 0.0), |(l, m): (f64, f64), s| (l.min(*s), m.max(*s)));
    format!("{:.2} % ({:.2} to {:.2})", mean * 100.0, least * 100.0, most * 100.0)
}
