//! Writes `docs/quality.md` and the plot it shows: every policy on every data set that is built in, at three densities, over five
//! seeds; how few nodes would have been enough; and what of all that was wanted is met.
//!
//! `cargo xtask quality` runs it. What is written follows from what is built in alone, so it is the same everywhere.

#![expect(clippy::cast_precision_loss, reason = "numbers of runs and nodes")]

mod plot;
mod sheet;
mod text;
mod wanted;

use loadline_replay::compare::{Comparison, Nodes};
use loadline_replay::fewest::Enough;
use loadline_replay::policy::Policy;
use loadline_replay::run::Options;
use loadline_replay::trace::built_in;
use loadline_replay::world::Plan;
use sheet::{Sheet, Sheets};
use std::error::Error;
use std::path::PathBuf;

/// Every policy, as the tables have them.
const POLICIES: [&str; 23] = [
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
    "learned+rebalance",
    "day-growth+rebalance",
    "bursts+rebalance",
    "crane+protection",
    "line+rebalance+protection",
];
/// Of these the fewest nodes are looked for.
const SPARING: [&str; 10] = [
    "requests",
    "crane",
    "limits",
    "n-sigma",
    "rc-like",
    "max-peak",
    "line",
    "day-growth",
    "line+rebalance",
    "day-growth+rebalance",
];
const SEEDS: [u64; 5] = [1, 2, 3, 4, 5];
const PODS: usize = 1000;
const NODE_MILLI: i64 = 16_000;
/// So much of nodes' time may be over 100 % where the fewest nodes are looked for.
const VIOLATIONS: f64 = 0.01;
/// How wrong requests are there: pods must fit by them, so where people guess badly it is requests that decide.
const GUESS: f64 = 0.3;

fn main() -> Result<(), Box<dyn Error>> {
    let parse =
        |names: &[&str]| names.iter().map(|name| name.parse()).collect::<Result<Vec<Policy>, String>>();
    let (policies, sparing) = (parse(&POLICIES)?, parse(&SPARING)?);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut all = Vec::new();
    for data in built_in::ALL {
        let densities = if data.name == "google" { [0.45, 0.6, 0.75] } else { [0.22, 0.3, 0.38] };
        let series = data.series();
        let comparison = |policies, nodes, error| Comparison {
            recorded: None,
            series: &series,
            policies,
            seeds: &SEEDS,
            plan: Plan { pods: PODS, error, ..Plan::default() },
            nodes,
            node_milli: NODE_MILLI,
            options: Options::default(),
        };
        let mut rows = Vec::new();
        for density in densities {
            eprintln!("{} at {density}", data.name);
            let one = comparison(&policies, Nodes::Density(density), Plan::default().error);
            rows.push(one.rows(threads, |_| {})?);
        }
        eprintln!("{} on as few nodes as are enough", data.name);
        let enough = Nodes::Fewest(Enough { over_full: VIOLATIONS });
        let fewest = comparison(&sparing, enough, GUESS).rows(threads, |_| {})?;
        all.push(Sheet { data, densities, rows, fewest });
    }
    let sheets = Sheets { policies, sparing, all };
    let page = text::page(&sheets)?;
    match std::env::args_os().nth(1).map(PathBuf::from) {
        Some(path) => {
            let pictures = path.with_file_name("pictures");
            std::fs::create_dir_all(&pictures)?;
            std::fs::write(pictures.join("quality.svg"), plot::svg(&sheets))?;
            std::fs::write(path, page)?;
        }
        None => print!("{page}"),
    }
    Ok(())
}
