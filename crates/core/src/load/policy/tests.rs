use super::*;

// Crane adds in 64 bits of nanoseconds, which overflow here.
#[test]
fn the_longest_period_does_not_overflow() {
    let mut policy = Policy::default();
    let longest = SignedDuration::from_nanos(i64::MAX);
    policy.sync[0].period = longest;
    let name = policy.sync[0].name.clone();
    assert_eq!(policy.window(&name), longest.checked_add(GRACE));
    policy.sync[0].period = -GRACE;
    assert_eq!(policy.window(&name), None, "good for exactly no time");
}
use crate::load::Both;
use crate::load::settings::{Mode, NodeRule, Settings};
use std::collections::BTreeMap;

fn refused(policy: Policy) -> Vec<String> {
    let problems = Rules::new(policy, Settings::default()).expect_err("the policy is refused");
    problems.iter().map(ToString::to_string).collect()
}

fn share(float: f64) -> Ratio {
    Ratio::from_f64(float).expect("tests write ratios")
}

fn predicate(name: &str, limit: f64) -> Predicate {
    Predicate { name: name.into(), limit }
}

fn priority(name: &str, weight: f64) -> Priority {
    Priority { name: name.into(), weight }
}

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect()
}

const UPSTREAM: Mode = Mode::Upstream;

// A10, A11: limits are ratios, and by default the 1d metrics have none.
#[test]
fn the_default_policy_is_the_one_crane_ships() {
    let (rules, warnings) = Rules::new(Policy::default(), Settings::default()).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let got: Vec<_> = rules
        .metrics()
        .iter()
        .map(|m| {
            let seconds = |t: Option<SignedDuration>| t.map_or(0, |t| t.as_secs());
            let (period, window) = (seconds(m.period), seconds(m.window));
            (&*m.name, period, window, m.limit.map(Figure::to_f64), m.weight.map(Figure::to_f64))
        })
        .collect();
    let want = [
        ("cpu_usage_avg_5m", 180, 480, Some(0.65), Some(0.2)),
        ("cpu_usage_max_avg_1h", 900, 1200, Some(0.75), Some(0.3)),
        ("cpu_usage_max_avg_1d", 10_800, 11_100, None, Some(0.5)),
        ("mem_usage_avg_5m", 180, 480, Some(0.65), Some(0.2)),
        ("mem_usage_max_avg_1h", 900, 1200, Some(0.75), Some(0.3)),
        ("mem_usage_max_avg_1d", 10_800, 11_100, None, Some(0.5)),
    ];
    assert_eq!(got, want);
    let hot: Vec<_> = rules.policy().hot.iter().map(|b| (b.range.as_secs(), b.count)).collect();
    assert_eq!(hot, [(300, 5), (60, 2)]);
    assert_eq!(rules, Rules::default());
}

// D13, A11
#[test]
fn every_problem_is_named_at_once_with_its_path() {
    let mut policy = Policy::default();
    policy.predicates[0].limit = 65.0;
    policy.predicates[1].limit = -0.1;
    policy.predicates.push(predicate("gpu_usage", f64::NAN));
    policy.predicates.push(predicate("cpu_usage_avg_5m", 6500.0));
    policy.priorities[0].weight = -1.0;
    policy.hot[0].count = 0;
    policy.hot[1].range = SignedDuration::ZERO;
    policy.sync[1].period = SignedDuration::from_secs(-1);
    policy.sync.push(Sync { name: "a b".into(), period: SignedDuration::from_secs(1) });
    assert_eq!(
        refused(policy),
        [
            "spec.syncPolicy[6].name: \"a b\" cannot be the key of an annotation: the name must be letters, digits, '-', '_' or '.', with a letter or digit at both ends",
            "spec.syncPolicy[1].period: expected more than 0s, not 1s ago",
            "spec.predicate[5].name: cpu_usage_avg_5m is listed twice, expected each metric once",
            "spec.predicate[0].maxLimitPecent: 65 is not a ratio 0..1: did you mean 0.65?",
            "spec.predicate[1].maxLimitPecent: -0.1 is not a ratio 0..1",
            "spec.predicate[4].maxLimitPecent: NaN is not a ratio 0..1",
            "spec.predicate[4].name: no syncPolicy entry fetches gpu_usage, expected one with that name: it would never be enforced",
            "spec.predicate[5].maxLimitPecent: 6500 is not a ratio 0..1",
            "spec.priority[0].weight: expected a weight from 0 to 1000000, not -1",
            "spec.hotValue[0].count: expected at least 1, not 0",
            "spec.hotValue[1].timeRange: expected more than 0s, not 0s",
        ]
    );
}

#[test]
fn weights_must_not_all_be_zero() {
    let mut policy = Policy::empty();
    policy.priorities = vec![priority("cpu_usage_avg_5m", 0.0), priority("mem_usage_avg_5m", 0.0)];
    let problems = refused(policy.clone());
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems[0].starts_with("spec.priority: all weights are 0"), "{problems:?}");
    policy.priorities[0].weight = 1.0;
    assert!(Rules::new(policy, Settings::default()).is_ok(), "one of them may be");
    assert!(Rules::new(Policy::empty(), Settings::default()).is_ok(), "a policy may ask for nothing");
}

#[test]
fn what_we_derive_ourselves_need_not_be_fetched() {
    let mut policy = Policy::empty();
    policy.predicates.push(predicate("mem_usage_max_avg_1d", 0.9));
    policy.priorities.push(priority("cpu_usage_avg_5m", 1.0));
    let (rules, warnings) = Rules::new(policy, Settings::default()).unwrap();
    let paths: Vec<_> = warnings.iter().map(|w| w.path.as_str()).collect();
    assert_eq!(paths, ["spec.predicate[0].name", "spec.priority[0].name"]);
    assert!(rules.metrics().iter().all(|m| m.window.is_none() && m.derivable.is_some()));
}

#[test]
fn what_crane_accepts_upstream_mode_accepts_with_the_same_findings() {
    let mut policy = Policy::default();
    policy.predicates[0].limit = 65.0;
    policy.predicates.push(predicate("gpu_usage", 0.5));
    policy.hot[0].count = 0;
    let zone = Some(jiff::tz::TimeZone::fixed(jiff::tz::offset(8)));
    let settings = Settings { mode: UPSTREAM, time_zone: zone, ..Settings::default() };
    let (_, warnings) = Rules::new(policy.clone(), settings).unwrap();
    let problems = Rules::new(policy, Settings::default()).unwrap_err();
    assert_eq!(warnings, problems);
    assert_eq!(problems.len(), 3);
}

// D3
#[test]
fn upstream_mode_without_a_zone_says_which_clock_crane_writes() {
    let settings = Settings { mode: UPSTREAM, ..Settings::default() };
    let (_, warnings) = Rules::new(Policy::default(), settings).unwrap();
    assert_eq!(warnings.len(), 1);
    assert_eq!((warnings[0].origin, warnings[0].path.as_str()), (Origin::Settings, "spec.timeZone"));
    assert!(warnings[0].message.contains("Asia/Shanghai"), "{}", warnings[0]);
}

#[test]
fn the_first_entry_with_a_period_gives_the_window() {
    let mut policy = Policy::empty();
    for seconds in [0, 60, 600] {
        policy.sync.push(Sync { name: "load".into(), period: SignedDuration::from_secs(seconds) });
    }
    assert_eq!(policy.window("load"), Some(SignedDuration::from_secs(360)), "60 s and 5 min");
    assert_eq!(policy.window("other"), None);
}

#[test]
fn settings_out_of_range_are_refused_in_both_modes() {
    let rule = NodeRule {
        selector: "pool=big".parse().unwrap(),
        targets: Both { cpu: Some(Ratio::ZERO), memory: None },
        thresholds: [("cpu_usage_avg_5m".into(), share(70.0)), ("gpu".into(), Ratio::ZERO)].into(),
    };
    let settings = Settings {
        targets: Both { cpu: Some(share(80.0)), memory: Some(Ratio::ONE) },
        nodes: vec![rule],
        settle: SignedDuration::from_secs(-5),
        ..Settings::default()
    };
    for mode in [Mode::Default, UPSTREAM] {
        let problems = Rules::new(Policy::default(), Settings { mode, ..settings.clone() }).unwrap_err();
        let told: Vec<_> = problems.iter().map(ToString::to_string).collect();
        assert_eq!(
            told,
            [
                "spec.targets.cpu: 80 is not a ratio 0..1: did you mean 0.8?",
                "spec.nodes[0].targets.cpu: expected more than 0: nothing would ever fit",
                "spec.nodes[0].thresholds.cpu_usage_avg_5m: 70 is not a ratio 0..1: did you mean 0.7?",
                "spec.settle: expected 0s or more, not 5s ago",
            ]
        );
    }
}

/// Targets 0.9 for all; pools have their own.
fn pools() -> Settings {
    let rule = |selector: &str, cpu: Option<f64>, threshold: Option<f64>| NodeRule {
        selector: selector.parse().expect("tests write selectors"),
        targets: Both { cpu: cpu.map(share), memory: None },
        thresholds: threshold.map(|t| ("cpu_usage_avg_5m".to_owned(), share(t))).into_iter().collect(),
    };
    Settings {
        targets: Both { cpu: Some(share(0.9)), memory: None },
        nodes: vec![rule("pool=big", None, Some(0.8)), rule("pool in (big,small)", Some(0.5), Some(0.4))],
        ..Settings::default()
    }
}

// D18, A6
#[test]
fn a_node_has_its_own_targets_and_limits() {
    let (rules, warnings) = Rules::new(Policy::default(), pools()).unwrap();
    assert!(warnings.is_empty());
    let own = [("loadline.dev/target-cpu", "0.3"), ("loadline.dev/threshold-cpu_usage_avg_5m", "0.2")];
    for (why, pool, annotations, cpu, memory, limit) in [
        ("memory: the limit of mem_usage_avg_5m", "none", &[][..], 0.9, 0.65, 0.65),
        ("cpu from the second entry, the limit from the first", "big", &[], 0.5, 0.65, 0.8),
        ("both from the second entry", "small", &[], 0.5, 0.65, 0.4),
        ("the node's own word counts most", "small", &own, 0.3, 0.65, 0.2),
    ] {
        let (node, warnings) = rules.node(&map(&[("pool", pool)]), &map(annotations));
        assert!(warnings.is_empty(), "{why}: {warnings:?}");
        assert_eq!(node.targets, Both { cpu: Some(share(cpu)), memory: Some(share(memory)) }, "{why}");
        assert_eq!(node.limits[0], Some(Figure::Exact(share(limit))), "{why}");
    }
    let (node, _) = rules.node(&map(&[]), &map(&[("loadline.dev/threshold-mem_usage_avg_5m", "0")]));
    assert_eq!(node.limits[2], None, "0 switches the limit off");
    assert_eq!(node.targets.memory, None, "and the target that would follow from it");
}

#[test]
fn a_malformed_override_is_told_and_ignored() {
    let (rules, _) = Rules::new(Policy::default(), pools()).unwrap();
    for bad in ["80", "80%", "-0.1", "NaN", "", " 0.5", "0.5 ", "1.01", "0"] {
        let (node, warnings) = rules.node(&map(&[]), &map(&[("loadline.dev/target-cpu", bad)]));
        assert_eq!(node.targets.cpu, Some(share(0.9)), "{bad:?}");
        assert_eq!(
            warnings,
            [format!(
                "annotation loadline.dev/target-cpu is ignored: {bad:?}, expected a ratio above 0, up to 1"
            )]
        );
    }
}

// D18
#[test]
fn upstream_mode_knows_neither_overrides_nor_targets() {
    let (rules, warnings) = Rules::new(Policy::default(), Settings { mode: UPSTREAM, ..pools() }).unwrap();
    let paths: Vec<_> = warnings.iter().map(|w| w.path.as_str()).collect();
    assert_eq!(paths, ["spec.timeZone", "spec.targets", "spec.nodes"], "what is not looked at is told");
    let own =
        map(&[("loadline.dev/target-memory", "0.3"), ("loadline.dev/threshold-cpu_usage_avg_5m", "0.2")]);
    let (node, warnings) = rules.node(&map(&[("pool", "big")]), &own);
    assert!(warnings.is_empty());
    assert_eq!(node.targets, Both { cpu: None, memory: None });
    assert_eq!(node.limits[0], Some(Figure::Float(0.65)));
}
