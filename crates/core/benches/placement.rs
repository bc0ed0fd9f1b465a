//! What does it cost to place, all at once and after one change, and does that depend on the size of the fleet?
//! `cargo bench -p loadline-core --bench placement`
//!
//! Fleets of three sizes with a tenth as many placements. Figures are the quickest of several runs, in CPU time of this process
//! where the system tells it, so that what else runs on the machine hardly matters.

mod placements;

use loadline_core::place::{ClusterFacts, Effect, Fleet, NoCel, Taint};
use placements::{amounts, cluster, fleet, noon, settle};
use std::hint::black_box;
use std::time::{Duration, Instant};

/// How long this process has had a CPU for, if the system tells.
fn on_cpu() -> Option<Duration> {
    let told = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    Some(Duration::from_nanos(told.split_whitespace().next()?.parse().ok()?))
}

/// What something comes to, and how long it takes. The account of CPU time is brought up to date by the tick of the system's
/// clock: too coarse for what takes no longer than a few of them.
fn timed<T>(work: impl FnOnce() -> T) -> (T, Duration) {
    let (begun, before) = (Instant::now(), on_cpu());
    let out = work();
    let (took, after) = (begun.elapsed(), on_cpu());
    let cpu = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    (out, cpu.filter(|cpu| *cpu > Duration::from_millis(20)).map_or(took, |cpu| cpu.min(took)))
}

fn quickest(runs: usize, mut work: impl FnMut() -> Duration) -> f64 {
    (0..runs).map(|_| work()).min().unwrap_or_default().as_secs_f64() * 1e3
}

/// How many placements a change touches, and how long it takes to decide them, in milliseconds. What was decided is published
/// before the next change, so that each has something to move.
fn change(fleet: &mut Fleet, mut next: impl FnMut(usize) -> ClusterFacts) -> (usize, f64) {
    let (mut touched, mut round) = (0, 0);
    let took = quickest(20, || {
        round += 1;
        let changed = next(round);
        let (outcomes, took) = timed(|| {
            fleet.set_cluster(changed);
            black_box(fleet.decide(&NoCel, noon()))
        });
        touched = outcomes.len();
        for outcome in &outcomes {
            fleet.assume(outcome);
        }
        took
    });
    (touched, took)
}

fn main() {
    println!(
        "{:>9} {:>11} {:>10} {:>13} {:>14} {:>12} {:>12} {:>12} {:>12}",
        "clusters",
        "placements",
        "all, ms",
        "pairs per us",
        "published, ms",
        "by resource",
        "change, ms",
        "by taint",
        "change, ms"
    );
    for (clusters, placements) in [(100, 10), (1_000, 100), (10_000, 1_000)] {
        let fresh = fleet(clusters, placements);
        let all = quickest(3, || {
            let mut fleet = fresh.clone();
            let (outcomes, took) = timed(|| fleet.decide(&NoCel, noon()));
            assert_eq!(black_box(outcomes).len(), placements);
            took
        });
        let mut fleet = fresh;
        settle(&mut fleet);
        // With everything published, as a controller finds it after a restart.
        let again = quickest(3, || {
            let mut fleet = fleet.clone();
            timed(|| black_box(fleet.decide(&NoCel, noon()))).1
        });
        fleet.decide(&NoCel, noon());
        let one = || cluster(clusters / 2);
        let (by_resource, resource) =
            change(&mut fleet, |round| ClusterFacts { allocatable: amounts(100 + round, 400), ..one() });
        // Everybody who may select it looks at its taints, also those who select all there are.
        let taint = Taint {
            key: "example.com/full".into(),
            value: String::new(),
            effect: Effect::NoSelect,
            time_added: Some(noon()),
        };
        let (by_taint, tainted) = change(&mut fleet, |round| ClusterFacts {
            taints: if round % 2 == 1 { vec![taint.clone()] } else { Vec::new() },
            ..one()
        });
        #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
        let rate = (clusters * placements) as f64 / (all * 1e3);
        println!(
            "{clusters:>9} {placements:>11} {all:>10.1} {rate:>13.1} {again:>14.1} {by_resource:>12} {resource:>12.2} {by_taint:>12} {tainted:>12.2}"
        );
    }
}
