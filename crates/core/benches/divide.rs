//! What does it cost to divide one binding, and how does that grow with the fleet?
//! `cargo bench -p loadline-core --bench divide`
//!
//! Figures are the quickest of many runs, in microseconds.

mod bindings;
mod quickest;

use bindings::{binding, dynamic, estimator, members};
use loadline_core::divide::{By, Division, Given, Spread, divide};
use quickest::micros;
use std::hint::black_box;

fn main() {
    let spread = |by: By, min, max| Spread { by, min, max };
    println!(
        "{:>8} {:>12} {:>12} {:>12} {:>12} {:>12} {:>12}",
        "clusters", "duplicated", "dynamic", "aggregated", "20 a cluster", "by cluster", "by region"
    );
    for clusters in [100, 1_000, 5_000, 20_000] {
        let members = members(clusters);
        let estimators = [estimator(clusters)];
        let given = Given { estimators: &estimators, ..Given::default() };
        let time = |replicas: usize, division: Division, spread: Vec<Spread>| {
            let binding = binding(clusters, replicas, division, spread);
            let answer = divide(&members, &binding, &given);
            assert!(answer.failure.is_none(), "{}", answer.condition().message);
            micros(|| drop(black_box(divide(black_box(&members), &binding, &given))))
        };
        println!(
            "{clusters:>8} {:>12.0} {:>12.0} {:>12.0} {:>12.0} {:>12.0} {:>12.0}",
            time(clusters, Division::Duplicated, Vec::new()),
            time(clusters * 2, dynamic(), Vec::new()),
            time(clusters * 2, Division::Aggregated, Vec::new()),
            time(clusters * 20, dynamic(), Vec::new()),
            time(
                clusters * 2,
                dynamic(),
                vec![spread(By::Cluster, 1, i64::try_from(clusters / 4).unwrap_or(1))]
            ),
            time(
                clusters * 2,
                dynamic(),
                vec![
                    spread(By::Region, 10, 15),
                    spread(By::Cluster, 20, i64::try_from(clusters / 2).unwrap_or(1))
                ]
            ),
        );
    }
}
