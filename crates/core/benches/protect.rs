//! What does it cost to plan one cycle of a node, and how does that grow with its pods?
//! `cargo bench -p loadline-core --bench protect`
//!
//! Six metrics, ten rules, all lines passed: pods are sorted for every metric, slowed down and evicted until all gaps are
//! closed, without a limit on how many. Figures are the quickest of many runs, in microseconds.

mod nodes;
mod quickest;

use loadline_core::qos::{Planner, plan};
use quickest::micros;
use std::hint::black_box;

fn main() {
    let policy = nodes::policy();
    println!("| pods | greedy | minimal | writes | evicted | acting on all |");
    println!("|---:|---:|---:|---:|---:|---:|");
    for pods in [30, 100, 250, 500, 1_000] {
        let greedy = nodes::node(pods, Planner::Greedy);
        let minimal = nodes::node(pods, Planner::Minimal);
        let found = plan(&policy, &greedy);
        let times =
            [&greedy, &minimal].map(|node| micros(|| drop(black_box(plan(&policy, black_box(node))))));
        println!(
            "| {pods} | {:.0} | {:.0} | {} | {} | {} |",
            times[0],
            times[1],
            found.steps.writes.len(),
            found.steps.victims.len(),
            found.steps.naive.pods_disturbed
        );
    }
}
