//! The exact planner, against trying everything.

use super::*;
use crate::qos::order::{sorted, tier};
use crate::qos::snapshot::Planner;
use proptest::prelude::*;

fn minimal(now: &NodeSnapshot) -> NodeSnapshot {
    let mut now = now.clone();
    now.options.planner = Planner::Minimal;
    now.options.max_per_cycle = 0;
    now
}

fn drop_at(cpu: i64, memory_gi: i64) -> Policy {
    let rules = vec![
        rule("c", "cpu_total_usage", cpu, "drop"),
        rule("m", "memory_total_usage", memory_gi * GI, "drop"),
    ];
    policy(rules, vec![evict("drop")])
}

#[expect(clippy::cast_precision_loss, reason = "a small number of gibibytes")]
fn samples(cpu: f64, memory_gi: i64) -> [(&'static str, f64); 2] {
    [("cpu_total_usage", cpu), ("memory_total_usage", (memory_gi * GI) as f64)]
}

#[test]
fn one_pod_that_fits_is_better_than_two_that_come_first() {
    // CPU 1.1 × 1000 = 1100, memory 1.1 × 2 Gi = 2.2 Gi. Greedily the one with most memory goes, then the one with most CPU.
    let pods = vec![using("memory", 0.1, 5), using("cpu", 2.0, 1), using("both", 1.2, 3)];
    let now = snapshot(&samples(6000.0, 22), pods);
    let policy = drop_at(5000, 20);
    assert_eq!(victims(&plan(&policy, &now)), ["memory", "cpu"]);
    assert_eq!(victims(&plan(&policy, &minimal(&now))), ["both"]);
}

#[test]
fn a_more_important_pod_goes_only_if_it_must() {
    let mut important = using("important", 2.0, 8);
    important.priority = 10;
    let pods = vec![using("a", 0.6, 2), using("b", 0.6, 2), important];
    let now = snapshot(&samples(6000.0, 22), pods);
    assert_eq!(
        victims(&plan(&drop_at(5000, 20), &minimal(&now))),
        ["a", "b"],
        "two are fewer than one important one"
    );
    let harder = snapshot(&samples(6500.0, 22), now.pods.clone());
    assert_eq!(
        victims(&plan(&drop_at(5000, 20), &minimal(&harder))),
        ["important"],
        "1650 need it, and it alone does"
    );
}

#[test]
fn past_the_limit_of_the_search_nobody_is_taken_for_nothing() {
    let pods: Vec<Pod> = (0..60).map(|i| using(&format!("p{i:02}"), 0.1 + f64::from(i) / 100.0, 1)).collect();
    let now = minimal(&snapshot(&samples(7000.0, 1), pods));
    let plan = plan(&drop_at(5000, 20), &now);
    // 2200: no one of them can be left out.
    let release: Vec<f64> =
        plan.steps.victims.iter().map(|v| v.release["cpu_total_usage"].to_f64()).collect();
    let all: f64 = release.iter().sum();
    assert!(all >= 2200.0 && release.iter().all(|one| all - one < 2200.0), "{release:?}");
}

/// Highest tier, how many, how much beyond, work lost, places in the order.
type Key = (Option<crate::qos::order::Tier>, usize, i64, i64, Vec<usize>);

/// Every set, the best by the words of the module.
fn brute(now: &NodeSnapshot, gaps: (f64, f64)) -> Option<Vec<String>> {
    let catalogue = Catalogue::default();
    // Memory is acted on first, if anything is to be done about it: its order, its tiers, its usage.
    let by_memory = gaps.1 > 0.0;
    let first = catalogue.find(if by_memory { "memory_total_usage" } else { "cpu_total_usage" }).unwrap();
    let pods: Vec<&Pod> = now.pods.iter().collect();
    let order = sorted(&pods, Some(first), now.options.order);
    let cpu = |i: usize| pods[order[i]].cpu.unwrap().to_f64();
    let bytes = |i: usize| pods[order[i]].memory.unwrap().to_f64();
    let mut best: Option<(Key, Vec<String>)> = None;
    for set in 1_u32..1 << pods.len() {
        let taken: Vec<usize> = (0..pods.len()).filter(|i| set & (1 << i) != 0).collect();
        let (c, m) =
            (taken.iter().map(|i| cpu(*i)).sum::<f64>(), taken.iter().map(|i| bytes(*i)).sum::<f64>());
        if (gaps.0 > 0.0 && c < gaps.0 - 1e-6) || (gaps.1 > 0.0 && m < gaps.1 - 1e-6) {
            continue;
        }
        let highest = taken.iter().map(|i| tier(pods[order[*i]], Some(first), now.options.order)).max();
        let beyond = |sum: f64, gap: f64| if gap > 0.0 { (sum - gap).max(0.0) / gap } else { 0.0 };
        #[expect(clippy::cast_possible_truncation, reason = "small shares")]
        let excess = ((beyond(c, gaps.0) + beyond(m, gaps.1)) * 1e6).round() as i64;
        let work: i64 = taken
            .iter()
            .map(|i| {
                let pod = pods[order[*i]];
                let used = if by_memory { pod.memory } else { pod.cpu };
                #[expect(clippy::cast_possible_truncation, reason = "whole gibibytes or millicores")]
                let used = (used.unwrap().to_f64() / if by_memory { 1_073_741_824.0 } else { 1.0 }) as i64;
                pod.started.map_or(0, |at| now.now.duration_since(at).as_secs()) * used
            })
            .sum();
        let key = (highest, taken.len(), excess, work, taken.clone());
        if best.as_ref().is_none_or(|(known, _)| key < *known) {
            best = Some((key, taken.iter().map(|i| pods[order[*i]].key.to_string()).collect()));
        }
    }
    best.map(|(_, names)| names)
}

proptest! {
    #[test]
    fn the_best_set_is_found(
        pods in proptest::collection::vec((0..3_i32, 1..20_i64, 0..6_i64, 0..3_i64), 1..9),
        (cpu, memory) in (0..6_i64, 0..12_i64),
    ) {
        let of = |(i, (priority, tenths, gibibytes, hours)): (usize, &(i32, i64, i64, i64))| Pod {
            priority: *priority,
            started: Some(t(-3600 * hours)),
            cpu: Some(Level::whole(tenths * 100)),
            ..using(&format!("p{i}"), 0.0, *gibibytes)
        };
        let now = minimal(&snapshot(
            &samples(5000.0 + f64::from(i32::try_from(cpu).unwrap()) * 250.0, 20 + memory),
            pods.iter().enumerate().map(of).collect(),
        ));
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        let gaps = (cpu as f64 * 275.0, (memory * GI) as f64 * 1.1);
        let planned = plan(&drop_at(5000, 20), &now);
        let found: Vec<String> = planned.steps.victims.iter().map(|v| v.pod.to_string()).collect();
        if cpu + memory == 0 {
            prop_assert!(found.is_empty());
            return Ok(());
        }
        match brute(&now, gaps) {
            Some(best) => prop_assert_eq!(found, best),
            // Nothing closes it: everybody who helps goes.
            None => prop_assert!(planned.steps.unclosed.len() + planned.steps.victims.len() > 0),
        }
    }
}
