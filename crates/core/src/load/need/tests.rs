#![expect(clippy::cast_precision_loss, reason = "the formula is repeated in floats")]

use super::*;
use crate::load::estimate::ContainerAsk;
use crate::load::recommend::Advice;
use proptest::prelude::*;

const CORE: i64 = 1_000_000_000;

/// So many cores all day, but for some hours.
fn day(cores: i64, but: &[(usize, i64)]) -> Day {
    let mut hours = [cores * CORE; HOURS];
    for (hour, cores) in but {
        hours[*hour] = cores * CORE;
    }
    Day::new(hours.into_iter().enumerate()).unwrap()
}

fn needs(days: &[Day]) -> Needs {
    let mut needs = Needs::default();
    for day in days {
        needs.add(Some(day), Load::ZERO);
    }
    needs
}

#[test]
fn the_documented_example() {
    let (ten, one) = (Some(10 * CORE), Day::flat(CORE));
    for (there, score, why) in [
        (vec![], 90, "each hour 0.1⁴ = 0.0001, its root 0.1"),
        (vec![day(5, &[])], 49, "0.6⁴ − 0.5⁴ = 0.1296 − 0.0625 = 0.0671, its root 0.509"),
        (vec![day(5, &[(13, 8)])], 47, "(23 × 0.0671 + 0.9⁴ − 0.8⁴ = 0.2465) ÷ 24 = 0.0746, its root 0.523"),
        (vec![day(9, &[])], 23, "1 − 0.6561 = 0.3439, its root 0.7658"),
        (vec![day(30, &[])], 0, "3.1⁴ − 3⁴ is more than one: no worse than the worst"),
    ] {
        assert_eq!(needs(&there).score(&one, ten), score, "{why}");
    }
}

#[test]
fn who_peaks_at_another_hour_is_welcome_where_who_peaks_together_is_not() {
    let there = needs(&[day(1, &[(9, 6)])]);
    let (same, other) = (day(1, &[(9, 3)]), day(1, &[(21, 3)]));
    let score = |day| there.score(day, Some(10 * CORE));
    // At 9: 0.9⁴ − 0.6⁴ = 0.5265, else 23 × (0.2⁴ − 0.1⁴ = 0.0015); mean 0.0234, its root 0.391.
    assert_eq!(score(&same), 60);
    // At 9: 0.7⁴ − 0.6⁴ = 0.1105; at 21: 0.4⁴ − 0.1⁴ = 0.0255; else 22 × 0.0015; mean 0.0070, its root 0.290.
    assert_eq!(score(&other), 71);
    let need = there.with(&same, Some(10 * CORE));
    assert_eq!(
        need,
        Need { score: 60, hour: 9, before: 6 * CORE, after: 9 * CORE, capacity: Some(10 * CORE) }
    );
    assert_eq!(Needs::default().with(&other, None).hour, 21, "the hour in which most is needed");
    assert_eq!(Needs::default().with(&Day::flat(CORE), None).hour, 0, "the first of equals");
}

#[test]
fn a_node_that_does_not_say_what_it_has_is_neither_good_nor_bad() {
    assert_eq!(needs(&[day(5, &[])]).score(&Day::flat(CORE), None), NEUTRAL);
    assert_eq!(Needs::default().score(&Day::flat(CORE), Some(0)), NEUTRAL);
}

#[test]
fn hours_nobody_has_seen_are_as_the_largest_of_the_others() {
    assert_eq!(Day::new([]), None, "nothing is known");
    assert_eq!(Day::new([(24, CORE)]), None, "there is no such hour");
    let hours = Day::new([(3, 2 * CORE), (4, CORE)]).unwrap().cpu_nano();
    assert_eq!((hours[3], hours[4], hours[5]), (2 * CORE, CORE, 2 * CORE));
    assert_eq!(Day::new([(0, 1)]).unwrap().cpu_nano()[0], UNIT, "little is not nothing");
    assert_eq!(Day::new([(0, -5)]).unwrap().cpu_nano()[0], 0);
}

#[test]
fn a_pod_is_its_containers_by_their_days_and_the_rest_by_estimate() {
    let ask = |name: &str, milli: i64| ContainerAsk {
        name: name.into(),
        cpu_nano: Some(milli * 1_000_000),
        memory_bytes: None,
    };
    let asks = Asks {
        containers: vec![ask("web", 4000), ask("log", 300), ask("cache", 100)],
        sidecars: Load::new(20_000_000, 0),
        overhead: Load::new(5_000_000, 0),
        effective: Load::new(4_425_000_000, 0),
    };
    let advice = |cpu: i64| Advice { cpu_nano: Some(cpu * 1_000_000), memory_bytes: None };
    let mut found = Recommendation {
        containers: [("web".into(), advice(1500)), ("log".into(), advice(50))].into(),
        ..Recommendation::default()
    };
    assert_eq!(Day::of(&asks, None), None);
    assert_eq!(Day::of(&asks, Some(&found)), None, "advice alone is no day");
    found.days = [("web".into(), day(1, &[(9, 2)]))].into();
    let hours = Day::of(&asks, Some(&found)).unwrap().cpu_nano();
    // 50 as recommended, 100 as requested, 20 of sidecars and 5 of the sandbox.
    assert_eq!((hours[8], hours[9]), (CORE + 175_000_000, 2 * CORE + 175_000_000));
    found.days = [("gone".into(), day(1, &[]))].into();
    assert_eq!(Day::of(&asks, Some(&found)), None, "it has no such container");
}

#[test]
fn absurd_amounts_neither_overflow_nor_look_good() {
    let mut needs = Needs::default();
    let most = Day::flat(i64::MAX);
    for _ in 0..1000 {
        needs.add(Some(&most), Load::ZERO);
        needs.add(None, Load::new(i64::MAX, 0));
    }
    assert_eq!(needs.score(&Day::flat(CORE), Some(10 * CORE)), 0);
    assert_eq!(Needs::default().score(&most, Some(i64::MAX)), 0);
    let thousands = Day::flat(20_000 * CORE);
    assert_eq!(Needs::default().score(&thousands, Some(10 * CORE)), 0);
    assert_eq!(Needs::default().score(&thousands, Some(100_000 * CORE)), 80);
}

fn any_day() -> impl Strategy<Value = Option<Day>> {
    prop::option::of(
        prop::array::uniform24(0..20 * CORE)
            .prop_map(|hours| Day::new(hours.into_iter().enumerate()).unwrap()),
    )
}

proptest! {
    #[test]
    fn what_came_and_went_again_leaves_nothing(pods in prop::collection::vec((any_day(), 0..9 * CORE), 0..12), stay in 0..12_usize) {
        let (mut lived, mut rebuilt) = (Needs::default(), Needs::default());
        for (day, flat) in &pods {
            lived.add(day.as_ref(), Load::new(*flat, 0));
        }
        for (day, flat) in pods.iter().skip(stay) {
            lived.remove(day.as_ref(), Load::new(*flat, 0));
        }
        for (day, flat) in pods.iter().take(stay) {
            rebuilt.add(day.as_ref(), Load::new(*flat, 0));
        }
        prop_assert_eq!(lived, rebuilt);
    }

    /// The formula in floats, word by word; a score is cut from it.
    #[test]
    fn the_score_is_the_formula(there in any_day(), flat in 0..20 * CORE, more in any_day(), cores in 1..64_i64) {
        let more = more.unwrap_or(Day::flat(CORE / 2));
        let mut needs = Needs::default();
        needs.add(there.as_ref(), Load::ZERO);
        needs.add(None, Load::new(flat, 0));
        let part = |nano: i64| nano as f64 / (cores * CORE) as f64;
        let hours = needs.cpu_nano().into_iter().zip(more.cpu_nano());
        let growth: f64 = hours.map(|(before, more)| part(before + more).powi(4) - part(before).powi(4)).sum();
        let exact = 100.0 - 100.0 * (growth / 24.0).powf(0.25);
        let score = needs.score(&more, Some(cores * CORE));
        prop_assert!((0..=BEST).contains(&score));
        prop_assert!((exact.max(0.0) - score as f64).abs() <= 1.01, "{exact} and {score}");
        prop_assert!((needs.grown(&more, cores * CORE) - growth).abs() <= growth * 1e-9 + 1e-12);
    }

    #[test]
    fn more_there_is_never_better(there in any_day(), more in any_day(), grown in any_day()) {
        let more = more.unwrap_or(Day::flat(CORE));
        let mut needs = Needs::default();
        needs.add(there.as_ref(), Load::ZERO);
        let before = needs.score(&more, Some(16 * CORE));
        needs.add(grown.as_ref(), Load::new(CORE, 0));
        prop_assert!(needs.score(&more, Some(16 * CORE)) <= before);
    }
}
