//! How far a container is slowed down.

use super::*;
use crate::qos::gap::Category;
use crate::qos::throttle::quota;

fn container(usage: f64, quota_us: i64) -> Container {
    Container { usage: Some(mc(usage)), quota: CpuQuota::from_us(quota_us), ..Container::default() }
}

// R5, R21, R22, and the floors of §10.
#[test]
fn a_step_starts_at_what_is_used_and_ends_at_the_floor() {
    let with = |request: Option<f64>, limit: Option<f64>, elastic: Option<f64>, of: Container| Container {
        request: request.map(mc),
        limit: limit.map(mc),
        elastic: elastic.map(mc),
        ..of
    };
    let plain = |usage, quota| with(None, None, None, container(usage, quota));
    for (why, container, (percent, least_percent), expected) in [
        ("without a quota from the usage: 2000 × 0.8", plain(2000.0, -1), (20, 10), Some((160_000, 400.0))),
        ("a quota of 0 is none", plain(2000.0, 0), (20, 10), Some((160_000, 400.0))),
        ("a quota that binds: 1600 × 0.8", plain(1600.0, 160_000), (20, 10), Some((128_000, 320.0))),
        ("a quota far above: from the usage", plain(500.0, 400_000), (20, 10), Some((40_000, 100.0))),
        ("no step", plain(2000.0, -1), (0, 10), None),
        (
            "a step of everything ends at the kernel's least",
            plain(2000.0, -1),
            (100, 0),
            Some((1_000, 1990.0)),
        ),
        (
            "not below the request",
            with(Some(1800.0), None, None, container(2000.0, -1)),
            (20, 10),
            Some((180_000, 200.0)),
        ),
        (
            "nothing is freed above the request",
            with(Some(2500.0), None, None, container(2000.0, -1)),
            (20, 10),
            None,
        ),
        (
            "not below a share of the limit: 4000 × 0.45",
            with(None, Some(4000.0), None, container(2000.0, 400_000)),
            (20, 45),
            Some((180_000, 200.0)),
        ),
        (
            "of the elastic limit where there is no other: 3000 × 0.6",
            with(None, None, Some(3000.0), container(2000.0, 300_000)),
            (20, 60),
            Some((180_000, 200.0)),
        ),
        (
            "a least share of 0: only the other floors",
            with(None, Some(4000.0), None, container(2000.0, 400_000)),
            (99, 0),
            Some((2_000, 1980.0)),
        ),
        ("already at the kernel's least", plain(10.0, 1_000), (50, 0), None),
        ("a quota below the kernel's least is not raised", plain(5.0, 500), (50, 0), None),
        (
            "a tenth of three: 300 × 0.9, exactly",
            plain(0.1 * 3.0 * 1000.0, -1),
            (10, 0),
            Some((27_000, 30.0)),
        ),
    ] {
        let found = quota::down(&Pod::default(), &container, Step { percent, least_percent });
        let found = found.map(|lowered| (lowered.quota_us, lowered.release.to_f64()));
        assert_eq!(found, expected, "{why}");
    }
}

#[test]
fn what_nobody_knows_is_not_lowered() {
    let step = Step { percent: 20, least_percent: 10 };
    let unread = Container { quota: CpuQuota::Unknown, ..container(2000.0, -1) };
    let unmeasured = Container { usage: None, ..container(0.0, 400_000) };
    let odd = Container { period_us: 0, ..container(2000.0, 50_000) };
    for container in [unread, unmeasured, odd] {
        assert_eq!(quota::down(&Pod::default(), &container, step), None);
    }
}

#[test]
fn a_short_period_does_not_go_below_the_kernels_least() {
    // 10 ms: one millisecond of it is 100 millicores.
    let short = Container { period_us: 10_000, ..container(500.0, -1) };
    let lowered = quota::down(&Pod::default(), &short, Step { percent: 90, least_percent: 0 }).unwrap();
    assert_eq!((lowered.quota_us, lowered.release.to_f64()), (1_000, 400.0));
}

fn squeeze(value: i64) -> Policy {
    policy(vec![rule("a", "cpu_total_usage", value, "squeeze")], vec![throttle("squeeze", 20, 10)])
}

// Promise 4.
#[test]
fn the_pods_after_the_one_that_closes_the_gap_are_left_alone() {
    let pods = vec![pod("a", 2.0), pod("b", 1.5), pod("c", 0.4)];
    // 1.1 × 400 = 440; a frees 400, b closes it, c is not needed.
    let plan = plan(&squeeze(6000), &snapshot(&[("cpu_total_usage", 6400.0)], pods));
    assert_eq!(writes(&plan), [("a", 160_000), ("b", 120_000)]);
    assert!(plan.steps.unclosed.is_empty());
    let told = &plan.steps.writes[0];
    assert_eq!((told.before, told.after), (Some(mc(440.0)), Some(mc(40.0))));
    assert_eq!(told.rule.to_string(), "nq/a");
}

#[test]
fn a_gap_that_is_closed_to_the_millionth_is_closed() {
    // 1.1 × (6000.4 / 1.1) … the first frees exactly what is asked for.
    let pods = vec![pod("a", 1.1), pod("b", 1.0)];
    let mut now = snapshot(&[("cpu_total_usage", 6200.0)], pods);
    // 1.1 × 200 = 220 = 1100 × 0.2.
    let plan = plan(&squeeze(6000), &now);
    assert_eq!(writes(&plan), [("a", 88_000)]);
    now.options.excess = 0;
}

// Defect 8 of peers.
#[test]
fn every_container_of_a_pod_counts() {
    let mut two = pod("a", 2.0);
    two.containers = vec![
        Container { name: "x".into(), ..container(1500.0, -1) },
        Container { name: "y".into(), ..container(500.0, -1) },
    ];
    let plan = plan(&squeeze(6000), &snapshot(&[("cpu_total_usage", 6300.0)], vec![two, pod("b", 1.0)]));
    // 1.1 × 300 = 330: 300 + 100 of the one pod are enough.
    assert_eq!(writes(&plan), [("a", 120_000), ("a", 40_000)]);
    assert!((gap(&plan, Category::ThrottleDown, "cpu_total_usage") + 70.0).abs() < 1e-9);
}

// Defect 7 of peers, and §3: percent is throttled as well.
#[test]
fn a_share_of_the_node_is_a_gap_in_millicores() {
    let policy =
        policy(vec![rule("p", "cpu_total_utilization", 75, "squeeze")], vec![throttle("squeeze", 20, 10)]);
    let plan =
        plan(&policy, &snapshot(&[("cpu_total_utilization", 80.0)], vec![pod("a", 2.0), pod("b", 1.5)]));
    // 1.1 × 5 % of 8 cores = 440.
    let target = &plan.steps.targets[0];
    assert_eq!(target.bounds[0].before, Some(mc(440.0)));
    assert_eq!(writes(&plan), [("a", 160_000), ("b", 120_000)]);
}

#[test]
fn both_metrics_of_cpu_are_credited() {
    let rules = vec![
        rule("u", "cpu_total_usage", 6000, "squeeze"),
        rule("p", "cpu_total_utilization", 75, "squeeze"),
    ];
    let policy = policy(rules, vec![throttle("squeeze", 20, 10)]);
    let samples = [("cpu_total_usage", 6300.0), ("cpu_total_utilization", 78.75)];
    let plan = plan(&policy, &snapshot(&samples, vec![pod("a", 2.0), pod("b", 1.5)]));
    assert_eq!(writes(&plan), [("a", 160_000)], "the same 330 millicores twice are 330 millicores");
}

#[test]
fn of_several_actions_the_harder_step_and_the_larger_rest_count() {
    let rules = vec![rule("a", "cpu_total_usage", 6000, "soft"), rule("b", "cpu_total_usage", 6100, "hard")];
    let policy = policy(rules, vec![throttle("soft", 10, 60), throttle("hard", 50, 10)]);
    let mut one = pod("a", 2.0);
    one.containers[0].limit = Some(mc(2000.0));
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 7000.0)], vec![one]));
    assert_eq!(writes(&plan), [("a", 120_000)], "half would be 1000, but 60 % of 2000 are left in any case");
}

// R14.
#[test]
fn a_pod_serves_only_the_rules_whose_action_may_touch_it() {
    let rules =
        vec![rule("strict", "cpu_total_usage", 5000, "hard"), rule("mild", "cpu_total_usage", 6000, "soft")];
    let actions = vec![throttle("hard", 50, 0), throttle("soft", 20, 0)];
    let scopes = [
        scope("batch", ("Priority", "In", &["-10"]), &["hard"]),
        scope("web", ("Priority", "In", &["-20"]), &["soft"]),
    ];
    let policy = policy_for(rules, actions, &scopes);
    let low = Pod { priority: -20, ..pod("web", 2.0) };
    let batch = Pod { priority: -10, ..pod("batch", 1.0) };
    let other = pod("other", 3.0);
    // Web comes first, but only for the mild line: 1.1 × (6500 − 6000) = 550.
    let plan = plan(&policy, &snapshot(&[("cpu_total_usage", 6500.0)], vec![low, batch, other]));
    assert_eq!(writes(&plan), [("web", 160_000), ("batch", 50_000)]);
    let before: Vec<f64> = plan.steps.writes.iter().map(|w| w.before.unwrap().to_f64()).collect();
    // For batch 1.1 × (6500 − 5000) = 1650, less the 400 of web.
    assert_eq!(before, [550.0, 1250.0]);
    assert_eq!(plan.steps.protected[&key("other")].as_str(), "NotAllowed");
}

// §13 and R31.
#[test]
fn what_cannot_be_told_is_done_as_asked() {
    use crate::qos::snapshot::Missing;
    let policy = policy(vec![rule("l", "cpu_load_1_min", 10, "squeeze")], vec![throttle("squeeze", 20, 10)]);
    let mut older = pod("a", 2.0);
    older.started = Some(t(-9000));
    let now = snapshot(&[("cpu_load_1_min", 20.0)], vec![older, pod("b", 1.5)]);
    for (missing, expected) in [
        // In the general order: the younger first.
        (Missing::ActAll, vec![("b", 120_000), ("a", 160_000)]),
        (Missing::Paced, vec![("b", 120_000)]),
        (Missing::Skip, vec![]),
    ] {
        let mut now = now.clone();
        now.options.missing_throttle = missing;
        let plan = plan(&policy, &now);
        assert_eq!(writes(&plan), expected, "{missing:?}");
        assert_eq!(plan.steps.mode_throttle, Some(missing.into()));
        assert_eq!(plan.steps.targets[0].bounds[0].before, None, "unknown, not nothing");
        assert_eq!(plan.warnings.is_empty(), missing != Missing::Skip, "{:?}", plan.warnings);
    }
}

// R31.
#[test]
fn a_reading_that_fails_just_before_makes_it_imprecise() {
    let mut now = snapshot(&[("cpu_total_usage", 6100.0)], vec![pod("a", 2.0), pod("b", 1.5)]);
    now.latest = vec![Latest { name: "cpu_total_usage".into(), labels: Labels::default(), value: None }];
    let plan = plan(&squeeze(6000), &now);
    assert_eq!(plan.steps.mode_throttle, Some(Mode::All));
    assert_eq!(writes(&plan).len(), 2);
}

// Defect 3 of peers.
#[test]
fn metrics_no_rule_uses_do_not_matter() {
    let policy = policy(vec![rule("m", "memory_total_usage", 20 * GI, "drop")], vec![evict("drop")]);
    #[expect(clippy::cast_precision_loss, reason = "a small number of gibibytes")]
    let used = (22 * GI) as f64;
    let mut now = snapshot(&[("memory_total_usage", used)], vec![using("a", 1.0, 3), using("b", 1.0, 3)]);
    now.latest = vec![Latest { name: "cpu_total_usage".into(), labels: Labels::default(), value: None }];
    let plan = plan(&policy, &now);
    assert_eq!(plan.steps.mode_evict, Some(Mode::Precise));
    assert_eq!(victims(&plan), ["a"]);
}
