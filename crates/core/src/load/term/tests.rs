use super::*;
use crate::load::Metered;
use crate::load::policy::Policy;
use crate::load::settings::Settings;
use proptest::prelude::*;
use std::collections::BTreeMap;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("tests write times")
}

fn upstream() -> Rules {
    let settings = Settings { mode: Mode::Upstream, ..Settings::default() };
    Rules::new(Policy::default(), settings).expect("the default is valid").0
}

fn seen(rules: &Rules, annotations: &[(&str, String)], derived: Option<Derived>) -> Seen {
    let map: BTreeMap<String, String> =
        annotations.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    Seen::new(rules, &map, derived)
}

fn load(value: &str, second: i64) -> String {
    format!("{value},{}", at(second).strftime("%Y-%m-%dT%H:%M:%SZ"))
}

fn term(rules: &Rules, seen: &Seen, metric: &str, now: Timestamp) -> (Term, Option<Timestamp>) {
    let (node, _) = rules.node(&BTreeMap::new(), &BTreeMap::new());
    let all = evaluate(rules, &node, seen, now);
    let one = all.terms.into_iter().find(|t| &*t.metric == metric).expect("the policy has it");
    (one, all.valid_until)
}

fn derived(at_second: i64, since: i64, nano: i64) -> Derived {
    let both = Both { cpu: Some(Ratio::from_nano(nano)), memory: None };
    Derived { at: at(at_second), since: at(since), avg_5m: both, max_1h: both, max_1d: both }
}

const SHORT: &str = "cpu_usage_avg_5m";
const HOUR: &str = "cpu_usage_max_avg_1h";

#[test]
fn every_metric_of_the_policy_is_told_once_with_its_limit_and_weight() {
    let rules = Rules::default();
    let (node, _) = rules.node(&BTreeMap::new(), &BTreeMap::new());
    let got = evaluate(&rules, &node, &seen(&rules, &[], None), at(0));
    let told: Vec<_> = got
        .terms
        .iter()
        .map(|t| (&*t.metric, t.limit.map(Figure::to_f64), t.weight.map(Figure::to_f64), t.reason))
        .collect();
    let missing = Some(Unknown::Missing);
    assert_eq!(told[0], ("cpu_usage_avg_5m", Some(0.65), Some(0.2), missing));
    assert_eq!(told[2], ("cpu_usage_max_avg_1d", None, Some(0.5), missing));
    assert_eq!((told.len(), got.valid_until), (6, None));
}

// D3, D5
#[test]
fn an_annotation_is_good_for_its_window_and_a_stamp_far_ahead_is_not() {
    let rules = Rules::default();
    for (why, text, now, value, reason) in [
        ("fresh", load("0.5", 1000), 1000, Some(0.5), None),
        ("480 s, the last second", load("0.5", 1000), 1479, Some(0.5), None),
        ("equality is expired", load("0.5", 1000), 1480, None, Some(Unknown::Expired)),
        ("30 s ahead is a clock that differs", load("0.5", 1000), 970, Some(0.5), None),
        ("31 s ahead is a mistake", load("0.5", 1000), 969, None, Some(Unknown::Future)),
        ("eight hours ahead", load("0.5", 29_800), 1000, None, Some(Unknown::Future)),
        ("no number", load("NaN", 1000), 1000, None, Some(Unknown::Malformed)),
        ("less than nothing", load("-0.5", 1000), 1000, None, Some(Unknown::Negative)),
        ("no time", "0.5,now".to_owned(), 1000, None, Some(Unknown::Malformed)),
        ("expired before it is malformed", load("abc", 1000), 1480, None, Some(Unknown::Expired)),
        ("expired before it is negative", load("-1", 1000), 1480, None, Some(Unknown::Expired)),
        ("from the future before it is malformed", load("abc", 9000), 1480, None, Some(Unknown::Future)),
    ] {
        let (got, _) = term(&rules, &seen(&rules, &[(SHORT, text)], None), SHORT, at(now));
        assert_eq!((got.value.map(Figure::to_f64), got.reason), (value, reason), "{why}");
        assert_eq!(got.source, value.map(|_| Source::Annotation), "{why}");
        assert_eq!(got.window_seconds, Some(480), "{why}");
    }
    let ahead = term(&rules, &seen(&rules, &[(SHORT, load("0.5", 1000))], None), SHORT, at(990)).0;
    assert_eq!(ahead.age_seconds, Some(0), "not minus ten");
}

#[test]
fn upstream_judges_the_time_before_the_value_and_trusts_the_future() {
    let rules = upstream();
    for (why, text, now, value, reason) in [
        ("years ahead", load("0.5", 999_999_999), 1000, Some(0.5), None),
        ("expired before it is malformed", load("x", 1000), 1480, None, Some(Unknown::Expired)),
        ("expired before it is negative", load("-1", 1000), 1480, None, Some(Unknown::Expired)),
        ("no number", load("x", 1000), 1000, None, Some(Unknown::Malformed)),
        ("less than nothing", load("-1", 1000), 1000, None, Some(Unknown::Negative)),
        ("infinite", load("Inf", 1000), 1000, Some(f64::INFINITY), Some(Unknown::Malformed)),
        ("past our time", "0.5,9999-12-31T23:59:59Z".to_owned(), 1000, Some(0.5), None),
        ("hexadecimal", load("0x1p-2", 1000), 1000, Some(0.25), None),
        ("underscores", load("0.7_5", 1000), 1000, Some(0.75), None),
    ] {
        let (got, _) = term(&rules, &seen(&rules, &[(SHORT, text)], None), SHORT, at(now));
        assert_eq!((got.value.map(Figure::to_f64), got.reason), (value, reason), "{why}");
    }
}

#[test]
fn upstream_counts_what_is_no_number_and_says_so() {
    let rules = upstream();
    for (text, note) in
        [("NaN", "NaN, counted as crane counts it"), ("Inf", "+Inf, counted as crane counts it")]
    {
        let (got, _) = term(&rules, &seen(&rules, &[(SHORT, load(text, 1000))], None), SHORT, at(1000));
        assert_eq!((got.value.is_some(), got.reason, got.note), (true, Some(Unknown::Malformed), Some(note)));
    }
}

// Crane passes over a metric whose annotations are good for exactly no time, whatever their stamps say.
#[test]
fn a_window_of_exactly_nothing_says_nothing() {
    for (minutes, known) in [(-5, false), (-4, true)] {
        let mut policy = Policy::default();
        policy.sync[0].period = SignedDuration::from_mins(minutes);
        let settings = Settings { mode: Mode::Upstream, ..Settings::default() };
        let rules = Rules::new(policy, settings).unwrap().0;
        let ahead = seen(&rules, &[(SHORT, load("0.5", 2000))], None);
        assert_eq!(term(&rules, &ahead, SHORT, at(1000)).0.value.is_some(), known, "{minutes} min + 5 min");
    }
}

// A1
#[test]
fn the_short_metric_comes_from_our_samples_while_they_are_recent() {
    let rules = Rules::default();
    let written = [(SHORT, load("0.5", 1000)), (HOUR, load("0.6", 1000))];
    let known = seen(&rules, &written, Some(derived(1000, 0, 700_000_000)));
    let told = |now| {
        let (t, _) = term(&rules, &known, SHORT, at(now));
        (t.value.map(Figure::to_f64), t.source, t.age_seconds, t.window_seconds)
    };
    assert_eq!(told(1300), (Some(0.7), Some(Source::Metrics), Some(300), Some(300)), "not older than 300 s");
    assert_eq!(told(1301), (Some(0.5), Some(Source::Annotation), Some(301), Some(480)));
    assert_eq!(told(1480), (None, None, Some(480), Some(300)), "both are too old");
    let hour = term(&rules, &known, HOUR, at(1100)).0;
    assert_eq!(hour.source, Some(Source::Annotation), "the long ones are read first");
    assert_eq!(hour.note, None);
    let upstream = upstream();
    let same = seen(&upstream, &written, Some(derived(1000, 0, 700_000_000)));
    assert_eq!(
        term(&upstream, &same, SHORT, at(1100)).0.source,
        Some(Source::Annotation),
        "crane has no samples"
    );
}

#[test]
fn long_metrics_fall_back_on_our_samples_and_say_when_these_are_short() {
    let rules = Rules::default();
    for (why, since, note) in
        [("an hour and more", 0, None), ("a second short of it", 401, Some(SHORT_HISTORY))]
    {
        let known = seen(&rules, &[(HOUR, "broken".into())], Some(derived(4000, since, 700_000_000)));
        let got = term(&rules, &known, HOUR, at(4000)).0;
        assert_eq!(
            (got.value.map(Figure::to_f64), got.source, got.note),
            (Some(0.7), Some(Source::Metrics), note),
            "{why}"
        );
    }
    let mem = seen(&rules, &[], Some(derived(4000, 0, 1)));
    let got = term(&rules, &mem, "mem_usage_avg_5m", at(4000)).0;
    assert_eq!(got.reason, Some(Unknown::Missing), "memory was not sampled");
    assert_eq!(Derivable::of(HOUR).map(|d| d.resource), Some(Metered::Cpu));
}

#[test]
fn a_metric_nobody_fetches_is_derived_or_unknown() {
    let mut policy = Policy::empty();
    policy.priorities = Policy::default().priorities;
    let rules = Rules::new(policy, Settings::default()).unwrap().0;
    let written = [(SHORT, load("0.5", 1000))];
    let got = term(&rules, &seen(&rules, &written, None), SHORT, at(1000)).0;
    assert_eq!(
        (got.reason, got.note),
        (Some(Unknown::Missing), Some(NOT_FETCHED)),
        "how long would it be good?"
    );
    let got = term(&rules, &seen(&rules, &written, Some(derived(1000, 0, 5))), SHORT, at(1000)).0;
    assert_eq!(got.source, Some(Source::Metrics));
}

#[test]
fn a_written_hot_value_is_good_for_five_minutes() {
    let key = annotation::HOT_VALUE;
    let half = |tenths: i64| Hot::Fraction(Ratio::from_nano(tenths * 100_000_000));
    for (mode, text, now, want) in [
        (Mode::Default, load("3", 1000), 1299, Ok(Hot::Count(3))),
        (Mode::Default, load("3", 1000), 1300, Err(Unknown::Expired)),
        (Mode::Default, load("2.5", 1000), 1000, Ok(half(25))),
        (Mode::Default, load("NaN", 1000), 1000, Err(Unknown::Malformed)),
        (Mode::Default, load("-1", 1000), 1000, Err(Unknown::Negative)),
        (Mode::Default, load("3", 1000), 969, Err(Unknown::Future)),
        (Mode::Default, "3".to_owned(), 1000, Err(Unknown::Malformed)),
        (Mode::Upstream, load("2.5", 1000), 1000, Ok(Hot::Float(2.5))),
        (Mode::Upstream, load("-1", 1000), 1000, Err(Unknown::Negative)),
        (Mode::Upstream, load("3", 1000), 0, Ok(Hot::Float(3.0))),
    ] {
        let settings = Settings { mode, ..Settings::default() };
        let rules = Rules::new(Policy::default(), settings).unwrap().0;
        let got = written_hot(&rules, &seen(&rules, &[(key, text.clone())], None), at(now)).value;
        assert_eq!(got, want, "{text} {mode:?}");
    }
}

fn facts() -> impl Strategy<Value = (Vec<Option<i64>>, Option<(i64, i64)>)> {
    let stamps = prop::collection::vec(prop::option::of(0..2000_i64), 6);
    (stamps, prop::option::of((0..2000_i64, 0..2000_i64)))
}

proptest! {
    /// What changes by time alone changes at `valid_until`, and nothing does before.
    #[test]
    fn an_evaluation_holds_exactly_as_long_as_it_says((stamps, samples) in facts(), now in 0..2500_i64, mode in any::<bool>()) {
        let rules = if mode { Rules::default() } else { upstream() };
        let written: Vec<(&str, String)> = rules.metrics().iter().zip(&stamps)
            .filter_map(|(m, s)| Some((&*m.name, load("0.5", (*s)?)))).collect();
        let known = seen(&rules, &written, samples.map(|(at, back)| derived(at, at - back, 9)));
        let (node, _) = rules.node(&BTreeMap::new(), &BTreeMap::new());
        let told = |now: Timestamp| {
            let all = evaluate(&rules, &node, &known, now);
            let facts: Vec<_> = all.terms.iter().map(|t| (t.value.map(Figure::to_f64), t.source, t.reason)).collect();
            (facts, all.valid_until)
        };
        let (first, until) = told(at(now));
        let nano = SignedDuration::from_nanos(1);
        match until {
            Some(until) => {
                prop_assert!(until > at(now));
                prop_assert_eq!(&told(until - nano).0, &first);
                prop_assert_ne!(&told(until).0, &first);
                for step in 0..40 {
                    let between = at(now) + until.duration_since(at(now)) * step / 40;
                    prop_assert_eq!(&told(between).0, &first);
                }
            }
            None => for later in [1, 10, 100, 1000, 10_000, 100_000] {
                prop_assert_eq!(&told(at(now + later)).0, &first);
            }
        }
    }
}
