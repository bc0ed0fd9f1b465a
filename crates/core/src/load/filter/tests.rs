use super::*;
use crate::load::policy::{NodeRules, Policy};
use crate::load::settings::{Exempt, Mode, Settings};
use crate::load::term::{Seen, evaluate};
use jiff::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Map = BTreeMap<String, String>;

fn ask(rules: &Rules, annotations: &Map) -> Filtered {
    let (node, _) = rules.node(&Map::new(), &Map::new());
    let now = Timestamp::from_second(1000).expect("within range");
    filter(rules, "n1", &node, &evaluate(rules, &node, &Seen::new(rules, annotations, None), now))
}

/// Values as of the present, one per given metric.
fn loads(values: &[(&str, &str)]) -> Map {
    values.iter().map(|(m, v)| ((*m).to_owned(), format!("{v},1970-01-01T00:16:40Z"))).collect()
}

fn over(answer: &Filtered) -> Vec<&str> {
    let mut all = Vec::new();
    for reason in &answer.reasons {
        match reason {
            Reason::OverThreshold { metric, .. } | Reason::LoadTooHigh { metric, .. } => all.push(&**metric),
            other => panic!("{other}"),
        }
    }
    all
}

fn in_mode(mode: Mode) -> Settings {
    Settings { mode, ..Settings::default() }
}

/// Why, values by metric, the metrics above their limits, how many are unknown.
type Case = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str], usize);

// A10, A12, D5
#[test]
fn every_metric_above_its_limit_keeps_pods_away_and_is_told() {
    let cases: [Case; 7] = [
        ("nothing known, nothing rejected, all four limits unchecked", &[], &[], 4),
        ("equality passes", &[("cpu_usage_avg_5m", "0.65000")], &[], 3),
        ("a hair above", &[("cpu_usage_avg_5m", "0.65001")], &["cpu_usage_avg_5m"], 3),
        (
            "two, in policy order",
            &[("mem_usage_avg_5m", "0.9"), ("cpu_usage_max_avg_1h", "0.9")],
            &["cpu_usage_max_avg_1h", "mem_usage_avg_5m"],
            2,
        ),
        ("1d has no limit", &[("cpu_usage_max_avg_1d", "5")], &[], 4),
        (
            "a broken reading hides no other",
            &[("cpu_usage_avg_5m", "x"), ("mem_usage_avg_5m", "0.7")],
            &["mem_usage_avg_5m"],
            3,
        ),
        ("above one", &[("mem_usage_max_avg_1h", "1e300")], &["mem_usage_max_avg_1h"], 3),
    ];
    for mode in [Mode::Default, Mode::Upstream] {
        let rules = Rules::new(Policy::default(), in_mode(mode)).unwrap().0;
        for (why, values, want, unknown) in cases {
            let answer = ask(&rules, &loads(values));
            assert_eq!((&*over(&answer), answer.unknown), (want, unknown), "{why}, {mode:?}");
        }
    }
}

#[test]
fn a_limit_of_zero_is_none() {
    let mut policy = Policy::default();
    policy.predicates[0].limit = 0.0;
    for mode in [Mode::Default, Mode::Upstream] {
        let rules = Rules::new(policy.clone(), in_mode(mode)).unwrap().0;
        let answer = ask(&rules, &loads(&[("cpu_usage_avg_5m", "0.9")]));
        assert_eq!((&*over(&answer), answer.unknown), (&[][..], 3), "{mode:?}");
    }
}

#[test]
fn upstream_never_enforces_what_nobody_fetches_nor_nan() {
    let mut policy = Policy::default();
    policy.sync.remove(0);
    let rules = Rules::new(policy, in_mode(Mode::Upstream)).unwrap().0;
    let none: [&str; 0] = [];
    assert_eq!(over(&ask(&rules, &loads(&[("cpu_usage_avg_5m", "0.9")]))), none, "no syncPolicy entry");
    assert_eq!(over(&ask(&rules, &loads(&[("mem_usage_avg_5m", "NaN")]))), none);
    let infinite = ask(&rules, &loads(&[("mem_usage_avg_5m", "Inf")])).reasons;
    assert_eq!(
        infinite[0].to_string(),
        "Load[mem_usage_avg_5m] of node[n1] is too high",
        "crane's very words"
    );
    let data = serde_json::to_value(&infinite[0]).unwrap();
    assert_eq!((&data["value"], &data["limit"]), (&serde_json::Value::Null, &serde_json::json!(0.65)));
}

#[test]
fn a_reason_names_value_limit_age_and_source() {
    let answer = ask(&Rules::default(), &loads(&[("cpu_usage_avg_5m", "0.71")]));
    assert_eq!(
        answer.reasons[0].to_string(),
        "cpu_usage_avg_5m of the node is 0.71, above its limit 0.65 (from annotation, 0 s old)"
    );
}

// A15
#[test]
fn daemon_sets_and_named_pods_are_exempt() {
    let exempted =
        Exempt { namespaces: vec!["kube-system".into()], pod_selector: Some("tier=infra".parse().unwrap()) };
    let infra: Map = [("tier".to_owned(), "infra".to_owned())].into();
    let none = Map::new();
    for (why, namespace, labels, daemon, ours, crane) in [
        ("an ordinary pod", "default", &none, false, false, false),
        ("of a daemon set", "default", &none, true, true, true),
        ("by namespace", "kube-system", &none, false, true, false),
        ("by label", "default", &infra, false, true, false),
    ] {
        for (mode, want) in [(Mode::Default, ours), (Mode::Upstream, crane)] {
            let settings = Settings { exempt: exempted.clone(), ..in_mode(mode) };
            let rules = Rules::new(Policy::default(), settings).unwrap().0;
            assert_eq!(exempt(&rules, &Who { namespace, labels, daemon }), want, "{why}, {mode:?}");
        }
    }
}

proptest! {
    /// D5: a reading above its limit rejects, whatever becomes of the others; and what is not known is counted.
    #[test]
    fn broken_readings_never_hide_one_that_is_above(
        mut texts in prop::collection::vec(prop_oneof!["0\\.[0-9]{5}", "[-a-z0-9.]{0,6}"], 6),
        hot in 0..6_usize,
    ) {
        let rules = Rules::default();
        texts[hot] = "0.99".into();
        let values: Vec<(&str, &str)> =
            rules.metrics().iter().zip(&texts).map(|(m, t)| (&*m.name, t.as_str())).collect();
        let answer = ask(&rules, &loads(&values));
        if rules.metrics()[hot].limit.is_some() {
            prop_assert!(!answer.reasons.is_empty());
        }
        // Alone, the same reading decides the same.
        let alone = ask(&rules, &loads(&values[hot..=hot]));
        prop_assert_eq!(!alone.reasons.is_empty(), rules.metrics()[hot].limit.is_some());
        prop_assert!(answer.unknown <= alone.unknown);
    }
}

#[test]
fn answers_are_calm_about_rules_of_another_shape() {
    let rules = Rules::default();
    let terms = Terms { terms: Vec::new(), valid_until: None };
    assert_eq!(filter(&rules, "n1", &NodeRules::default(), &terms), Filtered::default());
}
