//! The life of a rule, cycle by cycle.

use super::*;
use crate::qos::gap::Category;
use crate::qos::phase::{RulePhase, advance};

/// Two lines on one node of 8 cores: throttle above 6 cores, evict above 7.
fn two_lines() -> Policy {
    policy(
        vec![rule("a", "cpu_total_usage", 6000, "squeeze"), rule("b", "cpu_total_usage", 7000, "drop")],
        vec![throttle("squeeze", 20, 10), evict("drop")],
    )
}

#[test]
fn throttling_makes_the_eviction_unnecessary() {
    let pods = vec![pod("a", 2.0), pod("b", 1.5), pod("c", 0.4)];
    let now = snapshot(&[("cpu_total_usage", 7500.0)], pods);
    let first = plan(&two_lines(), &now);
    // Throttle: 1.1 × (7500 − 6000) = 1650. Each loses a fifth: 400 + 300 + 80 = 780, 870 are left.
    assert_eq!(writes(&first), [("a", 160_000), ("b", 120_000), ("c", 32_000)]);
    assert!((gap(&first, Category::ThrottleDown, "cpu_total_usage") - 870.0).abs() < 1e-9);
    // Evict: 1.1 × (7500 − 7000) = 550, and 780 are released already.
    assert!(victims(&first).is_empty());
    assert!((gap(&first, Category::Evict, "cpu_total_usage") + 230.0).abs() < 1e-9);
    assert!(first.closed.present);

    // The quotas bind: 7500 − 780 = 6720. The eviction line is not passed any more, its rule holds.
    let mut then = next(&now, &first, 10, &[("cpu_total_usage", 6720.0)]);
    then.pods = vec![pod("a", 1.6), pod("b", 1.2), pod("c", 0.32)];
    for (pod, quota) in then.pods.iter_mut().zip([160_000, 120_000, 32_000]) {
        pod.containers[0].quota = CpuQuota::Us(quota);
    }
    let policy = {
        let mut b = rule("b", "cpu_total_usage", 7000, "drop");
        b.restore_after = 6;
        let mut a = rule("a", "cpu_total_usage", 6000, "squeeze");
        a.restore_after = 6;
        super::policy(vec![a, b], vec![throttle("squeeze", 20, 10), evict("drop")])
    };
    // What the rules say has changed with the thresholds; as if it had been so from the beginning.
    for state in then.state.rules.values_mut() {
        state.definition = None;
    }
    let second = plan(&policy, &then);
    assert_eq!(phases(&second), ["triggered", "holding"]);
    // 1.1 × 720 = 792; a fifth each: 320 + 240 + 64 = 624.
    assert_eq!(writes(&second), [("a", 128_000), ("b", 96_000), ("c", 25_600)]);
    assert!((gap(&second, Category::ThrottleDown, "cpu_total_usage") - 168.0).abs() < 1e-9);
}

// R12.
#[test]
fn a_line_must_be_passed_in_a_row() {
    let table: [(&str, (i32, i32), &str, &str); 6] = [
        ("one spike is not two", (2, 1), "o.o", "..."),
        ("two in a row are", (2, 1), "oo", ".T"),
        ("holding until it was below often enough", (1, 3), "o...", "THHR"),
        ("restored repeats", (1, 1), "o..", "TRR"),
        ("over again while restoring counts anew", (2, 1), "oo.oo", ".TRHT"),
        ("holding and over again triggers at once", (3, 3), "ooo.o", "..THT"),
    ];
    for (why, limits, samples, expected) in table {
        let mut state = RuleState::default();
        let found: String = samples
            .bytes()
            .enumerate()
            .map(|(i, sample)| {
                match advance(&mut state, Some(sample == b'o'), limits, t(i64::try_from(i).unwrap())) {
                    RulePhase::Idle => '.',
                    RulePhase::Triggered => 'T',
                    RulePhase::Holding => 'H',
                    RulePhase::Restored => 'R',
                    RulePhase::Error => 'E',
                }
            })
            .collect();
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn without_a_sample_nothing_is_counted_or_concluded() {
    let mut state = RuleState { above: 1, active: true, ..RuleState::default() };
    let before = state.clone();
    assert_eq!(advance(&mut state, None, (2, 2), t(0)), RulePhase::Error);
    assert_eq!(state, before);
}

// R2 and promise 1.
#[test]
fn what_is_no_measurement_is_neither_over_nor_under() {
    let policy = two_lines();
    for (why, value, age) in [
        ("not a number", Some(f64::NAN), 0),
        ("negative", Some(-1.0), 0),
        ("absurd", Some(1e30), 0),
        ("older than three intervals", Some(9000.0), 31),
        ("of the future", Some(9000.0), -11),
        ("missing", None, 0),
    ] {
        let mut now = snapshot(&[], vec![pod("a", 2.0)]);
        now.series.extend(value.map(|value| Series { at: t(-age), ..series("cpu_total_usage", value) }));
        // A rule that has acted keeps the node closed meanwhile.
        let name = Arc::new(crate::qos::policy::RuleName { object: "nq".into(), rule: "a".into() });
        let active = RuleState { active: true, last_triggered: Some(t(-3000)), ..RuleState::default() };
        now.state.rules.insert(name, active);
        let plan = plan(&policy, &now);
        assert_eq!(phases(&plan), ["error", "error"], "{why}");
        assert!(plan.steps.writes.is_empty() && plan.steps.victims.is_empty(), "{why}");
        assert!(plan.closed.present, "{why}");
        assert!(!plan.warnings.is_empty(), "{why}");
    }
    let mut fresh = snapshot(&[], vec![pod("a", 2.0)]);
    fresh.series.push(Series { at: t(-30), ..series("cpu_total_usage", 9000.0) });
    assert_eq!(phases(&plan(&policy, &fresh)), ["triggered", "triggered"], "three intervals are not older");
}

#[test]
fn one_series_over_the_line_is_enough_and_one_unreadable_is_not_under() {
    let policy = policy(vec![rule("d", "disk_utilization", 90, "drop")], vec![evict("drop")]);
    let disk = |name: &str, value: f64| {
        let labels =
            Labels::plain(&std::collections::BTreeMap::from([("diskName".to_owned(), name.to_owned())]));
        Series { labels, ..series("disk_utilization", value) }
    };
    let judged = |series: Vec<Series>| {
        let mut now = snapshot(&[], vec![]);
        now.series = series;
        phases(&plan(&policy, &now))[0]
    };
    assert_eq!(judged(vec![disk("sda", 10.0), disk("sdb", 95.0)]), "triggered");
    assert_eq!(judged(vec![disk("sda", f64::NAN), disk("sdb", 95.0)]), "triggered");
    assert_eq!(judged(vec![disk("sda", f64::NAN), disk("sdb", 10.0)]), "error");
    assert_eq!(judged(vec![disk("sda", 90.0)]), "idle", "at the line is not over it");
    // The name peers publish it under.
    assert_eq!(judged(vec![series("disk_read_utilization", 95.0)]), "triggered");
}

// R13.
#[test]
fn an_edited_rule_counts_anew() {
    let with = |value| {
        let mut rule = rule("a", "cpu_total_usage", value, "drop");
        rule.avoid_after = 2;
        policy(vec![rule], vec![evict("drop")])
    };
    let now = snapshot(&[("cpu_total_usage", 7500.0)], vec![]);
    let first = plan(&with(6000), &now);
    let then = next(&now, &first, 10, &[("cpu_total_usage", 7500.0)]);
    assert_eq!(phases(&plan(&with(6000), &then)), ["triggered"], "twice in a row");
    assert_eq!(phases(&plan(&with(5000), &then)), ["idle"], "the first time over the new line");
}

// R13 and R32.
#[test]
fn a_deleted_rule_is_restored_and_its_taint_goes_when_it_has_cooled() {
    let with = two_lines();
    let now = snapshot(&[("cpu_total_usage", 6500.0)], vec![pod("a", 2.0)]);
    let first = plan(&with, &now);
    assert_eq!(writes(&first), [("a", 160_000)]);
    let without = policy(vec![], vec![]);
    let mut then = next(&now, &first, 10, &[("cpu_total_usage", 6500.0)]);
    then.pods[0].containers[0].quota = CpuQuota::Us(160_000);
    then.node.taints = first.closed.taints.clone();
    let second = plan(&without, &then);
    assert_eq!(writes(&second), [("a", -1)], "what it had, in one write");
    assert!(second.closed.present, "its cool-down is not over");
    assert!(second.as_planned().throttled.is_empty());
    let mut later = next(&then, &second, 290, &[]);
    assert!(plan(&without, &later).closed.present, "at the last moment it is not over");
    later.now = t(301);
    let third = plan(&without, &later);
    assert!(!third.closed.present && third.closed.taints.is_empty() && third.as_planned().rules.is_empty());
}

// R32.
#[test]
fn the_taint_stays_until_every_rule_has_cooled_and_leaves_others_alone() {
    let mut quick = evict("drop");
    quick.cool_down_seconds = 20;
    let policy = policy(vec![rule("a", "cpu_total_usage", 6000, "drop")], vec![quick]);
    let mut now = snapshot(&[("cpu_total_usage", 7000.0)], vec![]);
    let foreign = |key: &str, value: &str| crate::select::Taint {
        key: key.into(),
        value: value.into(),
        effect: crate::select::taint::Effect::NoSchedule,
        time_added: None,
    };
    // One of our key that is not as it should be is replaced.
    now.node.taints = vec![foreign("gpu", "yes"), foreign(taint::KEY, "old")];
    let first = plan(&policy, &now);
    let said: Vec<String> = first.closed.taints.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["gpu=yes:NoSchedule", "interference.crane.io:PreferNoSchedule"]);
    assert_eq!(first.closed.reason(), "WaterlineExceeded");
    assert_eq!(first.closed.message, "nq/a triggered (cpu_total_usage 7000, line 6000)");
    let second = next(&now, &first, 10, &[("cpu_total_usage", 5000.0)]);
    let restored = plan(&policy, &second);
    assert_eq!(phases(&restored), ["restored"]);
    assert!(restored.closed.present && restored.closed.until == Some(t(20)));
    assert_eq!((first.closed.cools_until, restored.closed.cools_until), (Some(t(20)), Some(t(20))));
    let third = next(&second, &restored, 11, &[("cpu_total_usage", 5000.0)]);
    let cooled = plan(&policy, &third);
    assert_eq!(phases(&cooled), ["restored"], "the cycle in which it has cooled is its last");
    assert!(!cooled.closed.present && cooled.closed.cools_until.is_none());
    assert_eq!(cooled.closed.reason(), "WaterlineRestored");
    assert_eq!(cooled.closed.taints.len(), 1, "others' taints stay");
    let fourth = next(&third, &cooled, 10, &[("cpu_total_usage", 5000.0)]);
    assert_eq!(phases(&plan(&policy, &fourth)), ["idle"]);
}

// R32.
#[test]
fn a_taint_nobody_remembers_is_taken_away() {
    let mut now = snapshot(&[("cpu_total_usage", 1000.0)], vec![]);
    now.node.taints = plan(&two_lines(), &snapshot(&[("cpu_total_usage", 7000.0)], vec![])).closed.taints;
    assert_eq!(now.node.taints.len(), 1);
    assert!(plan(&two_lines(), &now).closed.taints.is_empty());
    let nothing = policy(vec![], vec![]);
    assert!(plan(&nothing, &now).closed.taints.is_empty(), "also when no rule is left");
}

// R34: dry run, and the kill switch of the node; §16.
#[test]
fn a_preview_says_everything_and_changes_nothing() {
    let acting = snapshot(&[("cpu_total_usage", 7500.0)], vec![pod("a", 2.0), pod("b", 1.5)]);
    let done = plan(&two_lines(), &acting);
    let mut dry = acting.clone();
    dry.options.dry_run = true;
    let mut switched = acting.clone();
    switched.node.preview = true;
    let mut rule = rule("a", "cpu_total_usage", 6000, "squeeze");
    rule.strategy = policy::Strategy::Preview;
    let previewed = policy(vec![rule], vec![throttle("squeeze", 20, 10)]);
    for (why, plan) in [
        ("dry run", plan(&two_lines(), &dry)),
        ("switch", plan(&two_lines(), &switched)),
        ("rule", plan(&previewed, &acting)),
    ] {
        assert!(plan.steps.writes.is_empty() && plan.steps.victims.is_empty(), "{why}");
        assert!(!plan.closed.present && plan.as_planned().throttled.is_empty(), "{why}");
        assert_eq!(plan.rules[0].phase, RulePhase::Triggered, "{why}: it counts as usual");
        assert_eq!(plan.events()[0].reason, "AvoidanceTriggered", "{why}");
        let shown = plan.preview.expect("a preview");
        assert_eq!(shown.writes, done.steps.writes, "{why}");
    }
}

// R3 and §7.
#[test]
fn gaps_use_what_was_read_again_just_before() {
    let mut now = snapshot(&[("cpu_total_usage", 7500.0)], vec![pod("a", 2.0), pod("b", 1.5)]);
    let again = |value| Latest { name: "cpu_total_usage".into(), labels: Labels::default(), value };
    now.latest = vec![again(Some(Level::whole(6300)))];
    let plan = plan(&two_lines(), &now);
    // 1.1 × 300 = 330: the first alone is enough. And 6300 is under the line of the eviction.
    assert_eq!(writes(&plan), [("a", 160_000)]);
    assert!(
        (gap(&plan, Category::Evict, "cpu_total_usage") + 1170.0).abs() < 1e-9,
        "1.1 × (6300 − 7000) = −770, and 400 are released"
    );
}
