//! Giving back.

use super::*;
use crate::qos::gap::Category;
use crate::qos::policy::RuleName;
use crate::qos::throttle::{Room, quota};
use proptest::prelude::*;

pub(super) fn squeeze() -> Policy {
    policy(vec![rule("a", "cpu_total_usage", 6000, "squeeze")], vec![throttle("squeeze", 20, 10)])
}

pub(super) fn name(rule: &str) -> Arc<RuleName> {
    Arc::new(RuleName { object: "nq".into(), rule: rule.into() })
}

/// Pods that were slowed down from unlimited to these quotas, and the rule restoring.
pub(super) fn held(used: f64, pods: &[(&str, f64, i64)]) -> NodeSnapshot {
    let mut now = snapshot(&[("cpu_total_usage", used)], vec![]);
    for (who, cores, quota) in pods {
        let mut one = pod(who, *cores);
        one.containers[0].quota = CpuQuota::Us(*quota);
        now.state.throttled.push(Throttled {
            pod: one.key.clone(),
            uid: one.uid.clone(),
            container: "main".into(),
            original_us: -1,
            written_us: *quota,
            unsure_us: Vec::new(),
            back_since: None,
            rules: vec![name("a")],
        });
        now.pods.push(one);
    }
    let restoring = RuleState {
        active: true,
        restoring: true,
        below: 1,
        last_triggered: Some(t(-1000)),
        ..RuleState::default()
    };
    now.state.rules.insert(name("a"), restoring);
    now
}

// R25 and R16.
#[test]
fn the_most_important_comes_back_first_and_only_as_far_as_there_is_room() {
    let now = held(5500.0, &[("a", 1.6, 160_000), ("b", 1.2, 120_000), ("c", 0.32, 32_000)]);
    let plan = plan(&squeeze(), &now);
    // Room: 0.9 × 500 = 450. In reverse: c 320 → 384 adds 64, b 1200 → 1440 adds 240, a would add 320, 146 are left:
    // 1600 + 146 = 1746.
    assert_eq!(writes(&plan), [("c", 38_400), ("b", 144_000), ("a", 174_600)]);
    assert!(gap(&plan, Category::ThrottleUp, "cpu_total_usage").abs() < 1e-9);
    assert_eq!(phases(&plan), ["restored"]);
    assert_eq!(plan.steps.order["cpu_total_usage"].iter().map(short).collect::<Vec<_>>(), ["c", "b", "a"]);
    assert!(plan.as_planned().rules[&name("a")].active, "not everything is back");
}

#[test]
fn that_it_gives_back_is_told_when_it_begins_and_not_again() {
    let begun = |plan: &Plan| plan.events().iter().filter(|event| event.reason == "RestoreTriggered").count();
    let mut now = held(5500.0, &[("a", 1.6, 160_000)]);
    now.state.rules.get_mut(&name("a")).unwrap().restoring = false;
    let first = plan(&squeeze(), &now);
    assert_eq!((phases(&first), begun(&first), first.rules[0].changed), (vec!["restored"], 1, true));
    let again = plan(&squeeze(), &next(&now, &first, 10, &[("cpu_total_usage", 5500.0)]));
    assert_eq!((phases(&again), begun(&again), again.rules[0].changed), (vec!["restored"], 0, false));
}

// R24.
#[test]
fn what_had_no_limit_gets_none_back_once_it_could_have_the_node() {
    let now = held(2000.0, &[("a", 0.2, 700_000)]);
    let plan = plan(&squeeze(), &now);
    // 7000 × 1.2 = 8400, more than the 8 cores of the node; it uses 200, its quota does not hold it.
    assert_eq!(writes(&plan), [("a", -1)]);
    assert!(plan.as_planned().throttled.is_empty());
    assert!(!plan.as_planned().rules[&name("a")].active, "everything is back and it has cooled");
}

// R26.
#[test]
fn never_more_than_there_was() {
    let us = CpuQuota::Us;
    for (why, original, limit, elastic, expected, back) in [
        ("the recorded quota", us(170_000), None, None, 170_000, true),
        ("the limit, where nothing is recorded", CpuQuota::Unknown, Some(1700.0), None, 170_000, true),
        ("the elastic limit", CpuQuota::Unknown, None, Some(1700.0), 170_000, true),
        ("the recorded one below the limit", us(165_000), Some(1700.0), None, 165_000, true),
        ("none, whatever the limit", CpuQuota::Unlimited, Some(1700.0), None, 180_000, false),
        ("none, whatever the elastic limit", CpuQuota::Unlimited, None, Some(1700.0), 180_000, false),
    ] {
        let container = Container {
            usage: Some(mc(100.0)),
            quota: CpuQuota::Us(150_000),
            limit: limit.map(mc),
            elastic: elastic.map(mc),
            ..Container::default()
        };
        let node = Node { cpu: Some(Level::whole(8000)), ..Node::default() };
        let room = Room { original, left: Some(mc(5000.0)), at_once: false };
        let step = Step { percent: 20, least_percent: 10 };
        let raised = quota::up(&node, &container, step, room).unwrap();
        assert_eq!((raised.quota, raised.back), (us(expected), back), "{why}");
        let all = quota::up(&node, &container, step, Room { at_once: true, ..room }).unwrap();
        let was = if original == CpuQuota::Unlimited { original } else { us(expected) };
        assert_eq!((all.quota, all.back), (was, true), "{why}, at once");
    }
}

#[test]
fn a_quota_somebody_else_changed_is_theirs() {
    let mut now = held(3000.0, &[("a", 1.0, 160_000)]);
    now.pods[0].containers[0].quota = CpuQuota::Us(90_000);
    let plan = plan(&squeeze(), &now);
    assert!(writes(&plan).is_empty() && plan.as_planned().throttled.is_empty());
    assert!(plan.warnings.iter().any(|w| w.contains("somebody else has changed it")), "{:?}", plan.warnings);
}

#[test]
fn a_container_that_is_gone_is_forgotten() {
    let mut now = held(3000.0, &[("a", 1.0, 160_000)]);
    now.pods.clear();
    assert!(plan(&squeeze(), &now).as_planned().throttled.is_empty());
}

#[test]
fn an_action_without_steps_gives_everything_back_at_once() {
    for (why, actions) in [("edited", vec![throttle("squeeze", 0, 10)]), ("gone", vec![])] {
        let policy = policy(vec![rule("a", "cpu_total_usage", 6000, "squeeze")], actions);
        let plan = plan(&policy, &held(5000.0, &[("a", 1.6, 160_000)]));
        assert_eq!(writes(&plan), [("a", -1)], "{why}");
    }
}

// R15.
#[test]
fn nothing_comes_back_while_another_rule_on_the_resource_is_over_or_waiting() {
    let rules =
        vec![rule("a", "cpu_total_usage", 6000, "squeeze"), rule("p", "cpu_total_utilization", 50, "drop")];
    let policy = policy(rules, vec![throttle("squeeze", 20, 10), evict("drop")]);
    let mut now = held(5000.0, &[("a", 1.6, 160_000)]);
    now.series.push(series("cpu_total_utilization", 62.5));
    now.state.cycles = Some(0);
    let plan = plan(&policy, &now);
    assert_eq!(phases(&plan), ["restored", "triggered"]);
    assert!(writes(&plan).is_empty());
    assert_eq!(plan.steps.suppressed.len(), 1);
}

#[test]
fn a_pod_that_is_slowed_down_is_not_raised_in_the_same_cycle() {
    // The rule on memory has slowed a down and restores; the one on CPU slows it down now.
    let rules = vec![
        rule("c", "cpu_total_usage", 6000, "squeeze"),
        rule("a", "memory_total_usage", 20 * GI, "squeeze"),
    ];
    let policy = policy(rules, vec![throttle("squeeze", 20, 10)]);
    let mut now = held(7000.0, &[("a", 1.6, 160_000)]);
    now.series.push(series("memory_total_usage", 1.0));
    let plan = plan(&policy, &now);
    assert_eq!(writes(&plan), [("a", 128_000)]);
    assert_eq!(plan.as_planned().throttled[0].rules, [name("a"), name("c")]);
    assert_eq!(plan.as_planned().throttled[0].original_us, -1, "what it had at first");
}

/// A node under a steady load, and pods that would use `wants` if they might.
fn live(policy: &Policy, wants: &[f64], rest: f64, cycles: usize) -> Vec<(f64, usize)> {
    live_with_noise(policy, wants, rest, &vec![1.0; cycles], 0)
}

/// The same, measured with a factor in each cycle, and with a margin for that.
fn live_with_noise(
    policy: &Policy,
    wants: &[f64],
    rest: f64,
    noise: &[f64],
    restore_margin: i64,
) -> Vec<(f64, usize)> {
    let mut now = snapshot(&[], wants.iter().enumerate().map(|(i, _)| pod(&format!("p{i}"), 0.0)).collect());
    now.options.restore_margin = restore_margin;
    let mut seen = Vec::new();
    for noise in noise {
        for (pod, want) in now.pods.iter_mut().zip(wants) {
            let container = &mut pod.containers[0];
            let quota = container.quota.level(container.period_us);
            let used = quota.map_or(mc(*want), |quota| quota.min(mc(*want)));
            (container.usage, pod.cpu) = (Some(used), Some(used));
        }
        let used = now.pods.iter().map(|pod| pod.cpu.unwrap().to_f64()).sum::<f64>() + rest;
        let used = used * noise;
        now.series = vec![Series { at: now.now, ..series("cpu_total_usage", used) }];
        let plan = plan(policy, &now);
        for write in &plan.steps.writes {
            let pod = now.pods.iter_mut().find(|pod| pod.key == write.pod).expect("a pod of ours");
            pod.containers[0].quota = write.quota;
        }
        let lowered = plan.steps.writes.iter().filter(|w| w.category == Category::ThrottleDown).count();
        seen.push((used, lowered));
        now.now += SignedDuration::from_secs(10);
        now.state = plan.as_planned();
    }
    seen
}

#[test]
fn everything_comes_back_when_the_load_is_gone() {
    let mut now = held(1000.0, &[("a", 0.3, 40_000), ("b", 0.2, 30_000)]);
    let policy = squeeze();
    let mut last = plan(&policy, &now);
    for cycle in 0..60 {
        for write in &last.steps.writes {
            let pod = now.pods.iter_mut().find(|pod| pod.key == write.pod).unwrap();
            pod.containers[0].quota = write.quota;
        }
        now = next(&now, &last, 10, &[("cpu_total_usage", 1000.0)]);
        last = plan(&policy, &now);
        if phases(&last) == ["idle"] {
            assert!(last.as_planned().throttled.is_empty() && cycle > 5);
            assert!(now.pods.iter().all(|pod| pod.containers[0].quota == CpuQuota::Unlimited));
            return;
        }
    }
    panic!("not everything came back: {:?}", last.as_planned().throttled);
}

proptest! {
    // Promise of the restore: a steady load is slowed down until it is under the line, and from then on never again.
    #[test]
    fn a_steady_load_does_not_make_it_swing(
        wants in proptest::collection::vec(50.0..3000.0_f64, 1..8),
        rest in 0.0..3000.0_f64,
        (avoid, restore) in (1..4_i32, 1..4_i32),
        percent in 5..60_i32,
    ) {
        let mut rule = rule("a", "cpu_total_usage", 6000, "squeeze");
        (rule.avoid_after, rule.restore_after) = (avoid, restore);
        let policy = policy(vec![rule], vec![throttle("squeeze", percent, 10)]);
        let seen = live(&policy, &wants, rest, 200);
        // 3000 at most cannot be slowed down, and the floor is 10 for each of seven: there is always a way below the
        // line. By 5 % a step, 24000 get there in 3 + ln(21/3) / 0.051 = 42 cycles.
        let settled = seen.iter().position(|(used, _)| *used <= 6000.0);
        let from = settled.expect("it comes below the line");
        prop_assert!(from < 50, "after {from} cycles only");
        for (cycle, (used, lowered)) in seen.iter().enumerate().skip(from) {
            prop_assert!(*used <= 6000.0 + 1e-6 && *lowered == 0, "cycle {cycle}: {used}, {lowered} lowered");
        }
    }
}

// Seen on a real node: given back up to the line, the next sample was two thousandths above it, and a whole step was taken again.
#[test]
fn noise_within_the_margin_does_not_make_it_swing() {
    // 1000 + 2 × 3000 is over 6000. Up to two hundredths more or less are measured, in a pattern of 7 cycles.
    let noise: Vec<f64> = (0..200).map(|i| 1.0 + 0.02 * (f64::from(i * 3 % 7) - 3.0) / 3.0).collect();
    let lowered_late = |margin: i64| {
        let seen = live_with_noise(&squeeze(), &[3000.0, 3000.0], 1000.0, &noise, margin);
        seen.iter().skip(50).filter(|(_, lowered)| *lowered > 0).count()
    };
    assert_eq!(lowered_late(50_000_000), 0, "5 % below the line, 2 % of noise");
    assert!(lowered_late(0) > 10, "up to the line, it swings");
}
