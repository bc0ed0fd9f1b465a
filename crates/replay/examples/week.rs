//! How long does it take to replay a week of 1 000 nodes and 20 000 pods, for one policy?
//!
//! `cargo xtask bench replay`; `-- line+rebalance` or others name the policies.

use loadline_replay::policy::Policy;
use loadline_replay::run::{Options, run};
use loadline_replay::trace::built_in::Data;
use loadline_replay::world::{Plan, World, draw};
use std::error::Error;
use std::time::Instant;

const NODES: usize = 1000;
const PODS: usize = 20_000;
const DAYS: usize = 7;
/// So that about a third of the nodes is used.
const NODE_MILLI: i64 = 4_000;

fn main() -> Result<(), Box<dyn Error>> {
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let usual = ["requests", "line", "day-growth", "line+rebalance"].map(str::to_owned);
    let policies: Vec<Policy> = if named.is_empty() { &usual[..] } else { &named }
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, String>>()?;
    let series = Data::find("bitbrains").map(|data| data.series()).unwrap_or_default();
    let plan = Plan { pods: PODS, days: DAYS, largest_milli: NODE_MILLI, ..Plan::default() };
    let world = World { nodes: vec![NODE_MILLI; NODES], ..draw(&series, &plan) };
    println!("a week of {NODES} nodes and {PODS} pods, one policy on one core");
    for policy in policies {
        let begun = Instant::now();
        let figures = run(&world, policy, Options::default(), |_| {}).figures;
        println!(
            "{:<20} {:>6.1} s   used by {:.0} %, {:.2} % over 100 %, {} moves",
            policy.to_string(),
            begun.elapsed().as_secs_f64(),
            figures.mean_use * 100.0,
            figures.over_full * 100.0,
            figures.moves
        );
    }
    Ok(())
}
