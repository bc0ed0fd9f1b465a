//! What is remembered is what came of a plan.

use super::restoring::{held, name, squeeze};
use super::*;
use crate::qos::evict::Block;
use proptest::prelude::*;
use std::collections::BTreeSet;

fn drop() -> Policy {
    policy(vec![rule("a", "cpu_total_usage", 6000, "drop")], vec![evict("drop")])
}

/// Passed by 500; `a` alone is enough, and so is `b`.
fn busy() -> NodeSnapshot {
    snapshot(&[("cpu_total_usage", 6500.0)], vec![pod("a", 1.0), pod("b", 0.9)])
}

fn replied(reply: Reply) -> Results {
    Results { replies: [(key("a"), reply)].into(), ..Results::default() }
}

fn unwritten(pods: &[&str]) -> Results {
    let containers = pods.iter().map(|pod| (key(pod), "main".into()));
    Results { unwritten: containers.collect(), ..Results::default() }
}

/// `pod quota` of everything that is slowed down.
fn slowed(state: &State) -> Vec<(&str, i64)> {
    state.throttled.iter().map(|entry| (short(&entry.pod), entry.written_us)).collect()
}

// R29.
#[test]
fn what_was_replied_decides_about_the_next_cycle() {
    for (why, reply, victims_then, blocked, credited) in [
        ("it goes, which is enough", Reply::Granted, &[][..], None, 1),
        ("it was gone, which is enough", Reply::Gone, &[], None, 1),
        ("another pod has its key", Reply::Replaced, &[], None, 1),
        ("a budget refused: another goes", Reply::Refused, &["b"], Some(Block::DisruptionBudget), 0),
        ("it failed: another goes", Reply::Failed(1), &["b"], Some(Block::EvictionFailed), 0),
    ] {
        let now = busy();
        let first = plan(&drop(), &now);
        assert_eq!(victims(&first), ["a"]);
        let state = first.settle(&replied(reply));
        assert_eq!(
            state.evictions.iter().map(|e| (short(&e.pod), e.reply)).collect::<Vec<_>>(),
            [("a", reply)]
        );
        let then = plan(&drop(), &NodeSnapshot { state, ..now });
        assert_eq!(victims(&then), victims_then, "{why}");
        assert_eq!(then.steps.blocked.first().map(|b| b.reason), blocked, "{why}");
        assert_eq!(then.steps.credited.len(), credited, "{why}");
    }
}

#[test]
fn who_was_not_asked_is_asked_in_the_next_cycle() {
    let now = busy();
    let state = plan(&drop(), &now).settle(&Results::default());
    assert_eq!(state.evictions, []);
    assert_eq!(victims(&plan(&drop(), &NodeSnapshot { state, ..now })), ["a"]);
}

#[test]
fn only_who_went_counts_as_evicted_within_the_hour() {
    let mut now = busy();
    now.options.max_per_hour = 1;
    for (reply, left) in [(Reply::Granted, 0), (Reply::Gone, 1), (Reply::Refused, 1), (Reply::Failed(1), 1)] {
        let state = plan(&drop(), &now).settle(&replied(reply));
        // Ten minutes later the pod is still there, whatever was replied, or there again, and nothing is waited for.
        let later = NodeSnapshot {
            now: t(600),
            series: vec![Series { at: t(600), ..series("cpu_total_usage", 6500.0) }],
            state,
            ..now.clone()
        };
        assert_eq!(victims(&plan(&drop(), &later)).len(), left, "{reply:?}");
    }
}

// R29: each kind of failure is waited for on its own, twice as long each time.
#[test]
fn a_failure_of_another_kind_is_not_the_same_again() {
    let failed = |kind, at| Eviction {
        pod: key("a"),
        uid: Arc::default(),
        at: t(at),
        reply: Reply::Failed(kind),
        grace_seconds: None,
    };
    for (why, first, second, expected) in
        [("twice the same: 60 seconds", 1, 1, "b"), ("each the first of its kind: 30 seconds", 1, 2, "a")]
    {
        let mut now = busy();
        now.state.evictions = vec![failed(first, -80), failed(second, -40)];
        assert_eq!(victims(&plan(&drop(), &now)), [expected], "{why}");
    }
}

#[test]
fn as_planned_is_everybody_goes_and_every_quota_is_written() {
    let now = busy();
    let evicting = plan(&drop(), &now);
    assert_eq!(evicting.as_planned(), evicting.settle(&replied(Reply::Granted)));
    let slowing = plan(&squeeze(), &now);
    assert_eq!(slowing.as_planned(), slowing.settle(&Results::default()));
    assert_eq!(slowed(&slowing.as_planned()), writes(&slowing));
}

#[test]
fn a_quota_that_was_not_written_is_not_remembered() {
    // 550 to release: 20 % of 2000, then 20 % of 1000; a gets 1600, b 800.
    let now = snapshot(&[("cpu_total_usage", 6500.0)], vec![pod("a", 2.0), pod("b", 1.0)]);
    let plan = plan(&squeeze(), &now);
    assert_eq!(writes(&plan), [("a", 160_000), ("b", 80_000)]);
    assert_eq!(slowed(&plan.settle(&unwritten(&["a"]))), [("b", 80_000)]);
    assert_eq!(slowed(&plan.settle(&unwritten(&["nobody"]))), writes(&plan), "nothing of it was planned");
}

#[test]
fn a_second_step_that_was_not_written_leaves_the_first() {
    let mut now = held(6500.0, &[("a", 1.6, 160_000)]);
    now.state.rules.clear();
    let plan = plan(&squeeze(), &now);
    // 20 % of the 1600 it uses.
    assert_eq!(writes(&plan), [("a", 128_000)]);
    assert_eq!(plan.settle(&unwritten(&["a"])).throttled, now.state.throttled);
}

#[test]
fn what_was_not_given_back_is_still_owed() {
    let steps = held(5500.0, &[("a", 1.6, 160_000), ("b", 1.2, 120_000), ("c", 0.32, 32_000)]);
    let state = plan(&squeeze(), &steps).settle(&unwritten(&["b"]));
    assert_eq!(slowed(&state), [("a", 174_600), ("b", 120_000), ("c", 38_400)]);
    // The last step, after which there would be nothing left to remember.
    let last = held(2000.0, &[("a", 0.2, 700_000)]);
    let plan = plan(&squeeze(), &last);
    assert_eq!(slowed(&plan.as_planned()), []);
    let state = plan.settle(&unwritten(&["a"]));
    assert_eq!(state.throttled, last.state.throttled);
    assert!(state.rules[&name("a")].active, "not everything is back");
}

/// What a cycle meets: what else uses the node, and of which pods quotas cannot be written.
fn cycle() -> impl Strategy<Value = (f64, BTreeSet<usize>)> {
    (0.0..8000.0_f64, proptest::collection::btree_set(0..4_usize, 0..3))
}

proptest! {
    // Otherwise the next cycle would take what it did itself, or failed to do, for somebody else's doing.
    #[test]
    fn what_is_remembered_is_what_the_node_has(
        wants in proptest::collection::vec(50.0..3000.0_f64, 4),
        cycles in proptest::collection::vec(cycle(), 1..30),
    ) {
        let pods = wants.iter().enumerate().map(|(i, want)| pod(&i.to_string(), want / 1000.0)).collect();
        let mut now = snapshot(&[], pods);
        for (rest, failing) in cycles {
            for (pod, want) in now.pods.iter_mut().zip(&wants) {
                let container = &mut pod.containers[0];
                let quota = container.quota.level(container.period_us);
                let used = quota.map_or(mc(*want), |quota| quota.min(mc(*want)));
                (container.usage, pod.cpu) = (Some(used), Some(used));
            }
            let used: f64 = now.pods.iter().map(|pod| pod.cpu.unwrap().to_f64()).sum::<f64>() + rest;
            now.series = vec![Series { at: now.now, ..series("cpu_total_usage", used) }];
            let plan = plan(&squeeze(), &now);
            prop_assert!(!plan.warnings.iter().any(|warning| warning.contains("somebody else")), "{:?}", plan.warnings);
            let mut results = Results::default();
            for write in &plan.steps.writes {
                let pod: usize = write.pod.name.parse().unwrap();
                if failing.contains(&pod) {
                    results.unwritten.insert((write.pod.clone(), write.container.clone()));
                } else {
                    now.pods[pod].containers[0].quota = write.quota;
                }
            }
            now.state = plan.settle(&results);
            now.now += SignedDuration::from_secs(10);
            for pod in &now.pods {
                let entry = now.state.throttled.iter().find(|entry| entry.pod == pod.key);
                let live = pod.containers[0].quota.us();
                prop_assert_eq!(live, Some(entry.map_or(-1, |entry| entry.written_us)), "{}", pod.key);
                prop_assert!(entry.is_none_or(|entry| entry.original_us == -1), "what it had is not forgotten");
            }
        }
    }
}

/// The pod's quota, as the kernel has it in the next cycle, in which the node is calm and everything comes back at once.
fn calm_with(state: State, quota: CpuQuota) -> NodeSnapshot {
    let mut now = snapshot(&[("cpu_total_usage", 2000.0)], vec![pod("a", 0.5)]);
    now.pods[0].containers[0].quota = quota;
    now.state = state;
    now.state.rules.clear();
    now
}

#[test]
fn a_write_nobody_knows_the_outcome_of_is_found_in_the_quota_there_is() {
    // 2 cores of an unlimited container, a fifth less is 160 000 µs.
    let busy = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let first = plan(&squeeze(), &busy);
    assert_eq!(writes(&first), [("a", 160_000)]);
    let state = first.settle(&Results::unknown(&first));
    let entry = &state.throttled[0];
    assert_eq!((entry.original_us, entry.written_us, &*entry.unsure_us), (-1, -1, &[160_000][..]));
    for (why, quota, written, warned) in [
        ("it was written: given back", CpuQuota::Us(160_000), &[("a", -1)][..], false),
        ("it was not, or not yet: what it had is written after it", CpuQuota::Unlimited, &[("a", -1)], false),
        ("somebody else wrote something: theirs", CpuQuota::Us(50_000), &[], true),
        ("not readable: it waits", CpuQuota::Unknown, &[], false),
    ] {
        let no_rules = policy(vec![], vec![]);
        let then = plan(&no_rules, &calm_with(state.clone(), quota));
        assert_eq!(writes(&then), written, "{why}");
        assert_eq!(!then.steps.warnings.is_empty(), warned, "{why}: {:?}", then.steps.warnings);
        let kept: Vec<bool> = then.as_planned().throttled.iter().map(Throttled::is_slowed).collect();
        let expected: &[bool] = match quota {
            CpuQuota::Unknown => &[true],
            // It may still come, and is looked out for.
            CpuQuota::Unlimited => &[false],
            CpuQuota::Us(_) => &[],
        };
        assert_eq!(kept, expected, "{why}");
    }
}

#[test]
fn of_several_writes_without_an_answer_whichever_arrives_last_is_ours() {
    // A fifth less of 2 cores is 160 000 µs; in the next cycle it uses 1.5, and a fifth less of that is 120 000 µs.
    let busy = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let first = plan(&squeeze(), &busy);
    let state = first.settle(&Results::unknown(&first));
    let again = NodeSnapshot { state, ..snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 1.5)]) };
    let second = plan(&squeeze(), &again);
    assert_eq!(writes(&second), [("a", 120_000)]);
    let state = second.settle(&Results::unknown(&second));
    assert_eq!(
        (state.throttled[0].written_us, &*state.throttled[0].unsure_us),
        (-1, &[160_000, 120_000][..])
    );
    let no_rules = policy(vec![], vec![]);
    for (late, other) in [(160_000, 120_000), (120_000, 160_000)] {
        let then = plan(&no_rules, &calm_with(state.clone(), CpuQuota::Us(late)));
        assert_eq!(writes(&then), [("a", -1)], "{late} was ours, and is given back");
        // That, too, is not answered; the other arrives after all.
        let unknown = then.settle(&Results::unknown(&then));
        let last = plan(&no_rules, &calm_with(unknown, CpuQuota::Us(other)));
        assert_eq!(writes(&last), [("a", -1)], "{other} was ours as well");
        assert_eq!(last.as_planned().throttled, []);
    }
}

#[test]
fn a_write_that_arrives_after_a_later_one_was_answered_is_ours() {
    let busy = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]);
    let first = plan(&squeeze(), &busy);
    let state = first.settle(&Results::unknown(&first));
    let again = NodeSnapshot { state, ..snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 1.5)]) };
    let state = plan(&squeeze(), &again).as_planned();
    assert_eq!((state.throttled[0].written_us, &*state.throttled[0].unsure_us), (120_000, &[160_000][..]));
    let no_rules = policy(vec![], vec![]);
    for (quota, written, warned, looked_for) in
        [(120_000, &[("a", -1)][..], false, 1), (160_000, &[("a", -1)], false, 0), (50_000, &[], true, 0)]
    {
        let then = plan(&no_rules, &calm_with(state.clone(), CpuQuota::Us(quota)));
        assert_eq!(writes(&then), written, "{quota}");
        assert_eq!(!then.steps.warnings.is_empty(), warned, "{quota}: {:?}", then.steps.warnings);
        let left = then.as_planned().throttled;
        assert!(left.iter().all(|one| !one.is_slowed()), "{quota}: {left:?}");
        assert_eq!(left.len(), looked_for, "{quota}: 160 000 may still come");
    }
}

#[test]
fn a_write_that_arrives_after_everything_was_given_back_is_undone() {
    let first = plan(&squeeze(), &snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 2.0)]));
    assert_eq!(writes(&first), [("a", 160_000)]);
    let no_rules = policy(vec![], vec![]);
    let back = plan(&no_rules, &calm_with(first.settle(&Results::unknown(&first)), CpuQuota::Unlimited));
    assert_eq!(writes(&back), [("a", -1)], "once more, after the one that was not answered");
    let given_back = back.as_planned();
    assert!(!given_back.throttled[0].is_slowed());
    let after = |seconds: i64, quota: CpuQuota| {
        let mut now = calm_with(given_back.clone(), quota);
        now.now += SignedDuration::from_secs(seconds);
        for series in &mut now.series {
            series.at = now.now;
        }
        plan(&no_rules, &now)
    };
    for (seconds, quota, written, left, why) in [
        (10, CpuQuota::Unlimited, &[][..], 1, "nothing has come, and nothing is done"),
        (120, CpuQuota::Unlimited, &[], 1, "it may still come"),
        (121, CpuQuota::Unlimited, &[], 0, "two minutes were enough"),
        (10, CpuQuota::Us(160_000), &[("a", -1)], 0, "it came: given back"),
        (121, CpuQuota::Us(160_000), &[], 0, "whoever writes that now is somebody else"),
        (10, CpuQuota::Us(50_000), &[], 0, "somebody else's: it stays"),
    ] {
        let then = after(seconds, quota);
        assert_eq!(writes(&then), written, "{why}");
        assert_eq!(then.as_planned().throttled.len(), left, "{why}");
    }
    // What is taken again meanwhile is given back to what it had, whichever of the two writes comes last.
    let mut busy = snapshot(&[("cpu_total_usage", 7000.0)], vec![pod("a", 1.5)]);
    busy.state = given_back.clone();
    let again = plan(&squeeze(), &busy);
    assert_eq!(writes(&again), [("a", 120_000)]);
    for late in [120_000, 160_000] {
        let then = plan(&no_rules, &calm_with(again.as_planned(), CpuQuota::Us(late)));
        assert_eq!(writes(&then), [("a", -1)], "{late}");
    }
}

#[test]
fn giving_back_that_was_cut_short_ends_with_everything_given_back() {
    let now = held(5000.0, &[("a", 1.6, 160_000)]);
    let mut gone = now.clone();
    gone.state.rules.clear();
    let no_rules = policy(vec![], vec![]);
    let first = plan(&no_rules, &gone);
    assert_eq!(writes(&first), [("a", -1)], "no rule is left: at once");
    let state = first.settle(&Results::unknown(&first));
    for (why, quota, written) in
        [("it did not arrive", CpuQuota::Us(160_000), &[("a", -1)][..]), ("it did", CpuQuota::Unlimited, &[])]
    {
        let then = plan(&no_rules, &calm_with(state.clone(), quota));
        assert_eq!(writes(&then), written, "{why}");
        assert_eq!(then.as_planned().throttled, [], "{why}");
    }
}

#[test]
fn who_was_asked_to_go_before_the_end_of_an_agent_is_not_asked_again_and_nobody_instead() {
    let now = busy();
    let first = plan(&drop(), &now);
    assert_eq!(victims(&first), ["a"]);
    let state = first.settle(&Results::unknown(&first));
    let then = plan(&drop(), &NodeSnapshot { state, ..now });
    assert_eq!(victims(&then), Vec::<&str>::new());
    assert_eq!(then.steps.credited.len(), 1);
}

// A StatefulSet's pods come back under the same name.
#[test]
fn what_a_successor_of_the_same_name_has_is_not_given_back_to() {
    let mut now = held(5000.0, &[("a", 0.2, 160_000)]);
    now.state.throttled[0].uid = "first".into();
    now.pods[0].uid = "second".into();
    let then = plan(&squeeze(), &now);
    assert_eq!(writes(&then), [], "its quota only happens to be what was written");
    assert_eq!(then.as_planned().throttled, []);
    // Slowed down itself, it gets back what it had, not what the other had.
    let mut busy = now.clone();
    busy.series = vec![series("cpu_total_usage", 7000.0)];
    busy.state.rules.clear();
    let state = plan(&squeeze(), &busy).as_planned();
    let entry = &state.throttled[0];
    assert_eq!((&*entry.uid, entry.original_us, entry.written_us), ("second", 160_000, 16_000));
}

// What is measured is of the time between two looks, and a victim was there for a part of it.
#[test]
fn who_went_since_the_last_look_still_counts_for_what_is_measured() {
    let now = snapshot(&[("cpu_total_usage", 6900.0)], vec![pod("a", 1.0), pod("b", 0.9)]);
    let first = plan(&drop(), &now);
    assert_eq!(victims(&first), ["a"], "1.1 × 900 = 990");
    let state = first.settle(&replied(Reply::Granted));
    // It went at once, and the sample has half of what it used: 5900 + 500, which is 440 too much.
    let later = |seconds: i64, used: f64, pods: Vec<Pod>, state: State| NodeSnapshot {
        now: t(seconds),
        series: vec![Series { at: t(seconds), ..series("cpu_total_usage", used) }],
        pods,
        state,
        ..now.clone()
    };
    let second = plan(&drop(), &later(10, 6400.0, vec![pod("b", 0.9)], state));
    assert_eq!(victims(&second), Vec::<&str>::new());
    let credited: Vec<_> =
        second.steps.credited.iter().map(|one| (short(&one.pod), one.reason.as_str())).collect();
    assert_eq!(credited, [("a", "StillMeasured")]);
    // If it is still too much without it, another goes.
    let third = plan(&drop(), &later(20, 6400.0, vec![pod("b", 0.9)], second.as_planned()));
    assert_eq!(victims(&third), ["b"]);
    assert_eq!(third.steps.credited, []);
}
