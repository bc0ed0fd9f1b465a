use super::*;
use crate::load::policy::{Policy, Priority};
use crate::load::settings::Settings;
use crate::load::term::{Seen, evaluate};
use jiff::Timestamp;
use proptest::prelude::*;
use std::collections::BTreeMap;

type Map = BTreeMap<String, String>;

fn rules(policy: Policy, mode: Mode) -> Rules {
    Rules::new(policy, Settings { mode, ..Settings::default() }).expect("a valid policy").0
}

/// Scores with one text per metric of the policy; an empty one is no annotation.
fn scored(rules: &Rules, texts: &[&str], hot: Hot) -> LoadScore {
    let annotations: Map = rules
        .metrics()
        .iter()
        .zip(texts)
        .filter(|(_, text)| !text.is_empty())
        .map(|(metric, text)| (metric.name.to_string(), format!("{text},1970-01-01T00:16:40Z")))
        .collect();
    let (node, _) = rules.node(&Map::new(), &Map::new());
    let now = Timestamp::from_second(1000).expect("within range");
    score(rules, &evaluate(rules, &node, &Seen::new(rules, &annotations, None), now), hot)
}

fn both(texts: &[&str], hot: Hot) -> (LoadScore, LoadScore) {
    let of = |mode| scored(&rules(Policy::default(), mode), texts, hot);
    (of(Mode::Upstream), of(Mode::Default))
}

// A8, A9, A14 (a hot node loses points and is not closed), A18
#[test]
fn upstream_scores_are_cranes_and_ours_are_exact() {
    let all = |text| [text; 6];
    for (why, texts, hot, upstream, ours) in [
        ("idle", all("0"), 0, 100, 100),
        ("0.8 everywhere, A18", all("0.8"), 0, 19, 20),
        ("0.9 everywhere, A18", all("0.9"), 0, 9, 10),
        ("half", all("0.5"), 0, 50, 50),
        ("full", all("1"), 0, 0, 0),
        ("above the whole", all("1.5"), 0, 0, 0),
        // (0.9×0.2 + 0.5×0.3 + 0.4×0.5 + 0.8×0.2 + 0.5×0.3 + 0.2×0.5) / 2 = 0.94 / 2
        ("weighed", ["0.1", "0.5", "0.6", "0.2", "0.5", "0.8"], 0, 47, 47),
        ("hot: 50 − 10 × 3", all("0.5"), 3, 20, 20),
        ("hotter than the base", all("0.5"), 6, 0, 0),
        // Known: weights 0.2 + 0.2, all idle. Upstream divides by all weights: 40 / 2.
        ("two short metrics alone", ["0", "", "", "0", "", ""], 0, 20, 100),
        ("nothing known", all(""), 0, 0, NEUTRAL),
        ("nothing known, hot", all(""), 2, 0, NEUTRAL - 20),
        ("nothing readable", all("-1"), 0, 0, NEUTRAL),
    ] {
        let (got_upstream, got_ours) = both(&texts, Hot::Count(hot));
        assert_eq!((got_upstream.r#final, got_ours.r#final), (upstream, ours), "{why}");
        assert_eq!((got_upstream.hot_penalty, got_ours.hot_penalty), (hot * 10, hot * 10), "{why}");
    }
    let (upstream, ours) = both(&all("1.5"), Hot::Count(0));
    assert_eq!((upstream.base, ours.base), (-50, -50), "the base may be negative, the score not");
}

#[test]
fn upstream_turns_nan_into_the_worst_and_with_a_penalty_into_the_best() {
    let nan = ["NaN", "0", "0", "0", "0", "0"];
    let (upstream, ours) = both(&nan, Hot::Count(0));
    assert_eq!((upstream.base, upstream.r#final), (i64::MIN, 0));
    assert_eq!(ours.r#final, 100, "the other five are idle; the broken one does not count");
    assert_eq!(both(&nan, Hot::Count(1)).0.r#final, 100, "the subtraction wraps");

    let mut policy = Policy::default();
    for priority in &mut policy.priorities {
        priority.weight = 0.0;
    }
    let zero = rules(policy, Mode::Upstream);
    assert_eq!(scored(&zero, &["0"; 6], Hot::Count(0)).r#final, 0, "0 / 0");
    assert_eq!(scored(&zero, &["0"; 6], Hot::Count(1)).r#final, 100);
    let (upstream, _) = both(&["Inf"; 6], Hot::Count(0));
    assert_eq!((upstream.base, upstream.r#final), (i64::MIN, 0), "minus infinity");
}

#[test]
fn upstream_hot_values_may_be_fractions() {
    let (upstream, _) = both(&["0.5"; 6], Hot::Float(1.29));
    assert_eq!((upstream.base, upstream.hot_penalty, upstream.r#final), (50, 12, 38), "12.9 is cut");
    let (upstream, _) = both(&["0.5"; 6], Hot::Float(f64::INFINITY));
    assert_eq!(upstream.r#final, 0, "50 minus the least there is wraps below zero");
}

#[test]
fn a_fraction_of_a_hot_value_costs_its_part() {
    let of = |text: &str| Hot::exact(Ratio::from_f64(text.parse().unwrap()).unwrap());
    for (why, hot, penalty, shown) in [
        ("15.7, cut", of("1.57"), 15, "1.57"),
        ("whole", of("2"), 20, "2"),
        ("less than a tenth costs nothing", of("0.09"), 0, "0.09"),
        ("with two bindings more: 35.7", of("1.57").plus(2), 35, "3.57"),
        (
            "the largest",
            Hot::Fraction(Ratio::from_nano(i64::MAX)).plus(1),
            92_233_720_368,
            "9223372036.854776",
        ),
        ("as crane has it", Hot::Float(2.55), 25, "2.55"),
        ("as crane has it, and two more", Hot::Float(2.5).plus(2), 45, "4.5"),
    ] {
        assert_eq!(both(&["0.5"; 6], hot).1.hot_penalty, penalty, "{why}");
        assert_eq!(hot.to_string(), shown, "{why}");
        assert_eq!(serde_json::to_string(&hot).unwrap(), shown, "{why}");
    }
    for (hot, text) in [(f64::INFINITY, "+Inf"), (f64::NAN, "NaN")] {
        assert_eq!(Hot::Float(hot).to_string(), text);
        assert_eq!(serde_json::to_value(Hot::Float(hot)).unwrap(), serde_json::Value::Null);
    }
    assert_eq!(serde_json::to_string(&Hot::Float(3.0)).unwrap(), "3");
}

#[test]
fn a_policy_without_weights_scores_nothing() {
    let mut policy = Policy::default();
    policy.priorities.clear();
    for mode in [Mode::Upstream, Mode::Default] {
        assert_eq!(scored(&rules(policy.clone(), mode), &["0"; 6], Hot::Count(0)).r#final, 0, "{mode:?}");
    }
}

#[test]
fn a_metric_that_weighs_nothing_does_not_make_a_node_known() {
    let mut policy = Policy::default();
    policy.priorities[0].weight = 0.0;
    let got = scored(&rules(policy, Mode::Default), &["0", "", "", "", "", ""], Hot::Count(0));
    assert_eq!(got.base, NEUTRAL);
}

#[test]
fn a_score_reads_as_documented() {
    let json = serde_json::to_value(LoadScore { base: 62, hot_penalty: 10, r#final: 52 }).unwrap();
    assert_eq!(json, serde_json::json!({"base": 62, "hotPenalty": 10, "final": 52}));
}

/// Loads in hundred-thousandths, up to twice the whole; none: not known.
fn loads() -> impl Strategy<Value = Vec<Option<u32>>> {
    prop::collection::vec(prop::option::of(0..200_000_u32), 6)
}

fn texts(loads: &[Option<u32>]) -> Vec<String> {
    loads
        .iter()
        .map(|load| load.map_or_else(String::new, |l| format!("{}.{:05}", l / 100_000, l % 100_000)))
        .collect()
}

fn final_of(rules: &Rules, loads: &[Option<u32>], hot: i64) -> i64 {
    let texts = texts(loads);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    scored(rules, &texts, Hot::Count(hot)).r#final
}

fn weighed(weights: &[u32]) -> Policy {
    let mut policy = Policy::default();
    for (priority, weight) in policy.priorities.iter_mut().zip(weights) {
        priority.weight = f64::from(*weight) / 100.0;
    }
    policy
}

proptest! {
    #[test]
    fn a_lower_load_never_scores_less(loads in loads(), which in 0..6_usize, less in 0..200_000_u32, hot in 0..12_i64) {
        let rules = rules(Policy::default(), Mode::Default);
        let mut lower = loads.clone();
        lower[which] = lower[which].map(|load| load.saturating_sub(less));
        prop_assert!(final_of(&rules, &lower, hot) >= final_of(&rules, &loads, hot));
    }

    #[test]
    fn scores_stay_within_bounds_and_do_not_depend_on_the_order_of_weights(
        loads in loads(),
        weights in prop::collection::vec(1..1000_u32, 6),
        shift in 0..6_usize,
        hot in -3..1_000_000_i64,
    ) {
        let policy = weighed(&weights);
        let mut turned = policy.clone();
        turned.priorities.rotate_left(shift);
        turned.priorities.reverse();
        let got = final_of(&rules(policy.clone(), Mode::Default), &loads, hot);
        prop_assert!((0..=100).contains(&got));
        prop_assert_eq!(got, final_of(&rules(turned, Mode::Default), &loads, hot));
        prop_assert!((0..=100).contains(&final_of(&rules(policy, Mode::Upstream), &loads, hot)));
    }

    /// Against whole numbers written out: weights in hundredths, loads in hundred-thousandths.
    #[test]
    fn the_base_is_the_weighted_mean_of_what_is_idle(loads in loads(), weights in prop::collection::vec(1..1000_u32, 6)) {
        let (mut sum, mut all) = (0_i64, 0_i64);
        for (load, weight) in loads.iter().zip(&weights) {
            let Some(load) = load else { continue };
            sum += (100_000 - i64::from(*load)) * i64::from(*weight);
            all += i64::from(*weight);
        }
        let want = if all == 0 { NEUTRAL } else { sum * 100 / (all * 100_000) };
        prop_assert_eq!(final_of(&rules(weighed(&weights), Mode::Default), &loads, 0), want.clamp(0, 100));
    }
}

#[test]
fn the_largest_weights_and_loads_do_not_overflow() {
    let mut policy = Policy::default();
    policy.priorities = policy.priorities.iter().map(|p| Priority { weight: 1e6, ..p.clone() }).collect();
    let got = scored(&rules(policy, Mode::Default), &["1e300"; 6], Hot::Count(i64::MAX));
    assert_eq!((got.hot_penalty, got.r#final), (i64::MAX, 0));
}
