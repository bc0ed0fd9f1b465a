//! Every rule by example; `random` compares with the obvious way and looks for what must never happen.

use super::*;
use crate::load::policy::{Figure, Policy, Rules};
use crate::load::ratio::Ratio;
use crate::load::settings::Settings;
use crate::load::term::{self, Seen, Term, Terms};
use std::collections::BTreeMap;

mod random;
mod slow;

/// Seconds after some moment.
fn t(secs: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + secs).expect("a year like any other")
}

fn percent(percent: i64) -> Ratio {
    Ratio::from_nano(percent * 10_000_000)
}

/// So many percent of a limit of 50 %.
fn hot(percent_of_limit: i64) -> Option<Heat> {
    let value = Ratio::from_nano(percent_of_limit * 5_000_000);
    Heat::new("cpu_usage_avg_5m".into(), value, percent(50))
}

fn node(name: &str, heat: Option<Heat>, taint: impl Into<Option<LoadTaint>>) -> NodeHeat {
    NodeHeat { name: name.into(), heat, taint: taint.into(), takes_pods: true }
}

fn since(grade: Grade, secs: i64) -> LoadTaint {
    LoadTaint { grade, since: Some(t(secs)) }
}

/// With nine idle ones beside it, so that the share is out of the way.
fn alone(heat: Option<Heat>, taint: impl Into<Option<LoadTaint>>, now: i64) -> Option<Change> {
    let mut nodes = vec![node("it", heat, taint)];
    nodes.extend((0..9).map(|i| node(&format!("idle-{i}"), hot(10), None)));
    let mut changes = decide(&nodes, &Options::default(), t(now));
    assert!(changes.len() <= 1, "the idle ones have nothing to tell: {changes:?}");
    changes.pop()
}

#[test]
fn a_grade_is_entered_above_its_line_and_left_clearly_below_it() {
    use Act::{Add, Keep, Lower, Raise, Remove};
    use Grade::{High, Over};
    // Lines: high 90 %, left below 90 × 0.9 = 81 %; over 100 %, left below 100 × 0.9 = 90 %. All long after the dwell.
    let cases = [
        (None, 89, None, "below the soft line"),
        (None, 90, None, "on it"),
        (None, 91, Some((Add, Some(High))), "above it"),
        (None, 100, Some((Add, Some(High))), "on the hard line: a limit reached exactly is kept"),
        (None, 101, Some((Add, Some(Over))), "above it"),
        (Some(High), 101, Some((Raise, Some(Over))), "hotter"),
        (Some(High), 100, Some((Keep, Some(High))), "as it was"),
        (Some(High), 85, Some((Keep, Some(High))), "below its line, not clearly"),
        (Some(High), 81, Some((Keep, Some(High))), "not below 81"),
        (Some(High), 80, Some((Remove, None)), "clearly below"),
        (Some(Over), 200, Some((Keep, Some(Over))), "as it was"),
        (Some(Over), 95, Some((Keep, Some(Over))), "below its line, not clearly"),
        (Some(Over), 90, Some((Keep, Some(Over))), "not below 90"),
        (Some(Over), 89, Some((Lower, Some(High))), "clearly below its line; high is left below 81"),
        (Some(Over), 81, Some((Lower, Some(High))), "the same"),
        (Some(Over), 80, Some((Remove, None)), "clearly below both"),
    ];
    for (held, heat, want, why) in cases {
        let got = alone(hot(heat), held.map(|grade| since(grade, 0)), 1000);
        let told = got.map(|c| (c.act, c.after.map(|a| a.grade)));
        assert_eq!(told, want, "{held:?} at {heat} % of the limit: {why}");
    }
}

#[test]
fn a_grade_is_kept_for_its_dwell_and_only_rises_before() {
    use Grade::{High, Over};
    // Reached at 0 s, three minutes: free to go at 180 s.
    let cases = [
        (High, 10, 179, Some(High), "cool, but it came only now"),
        (High, 10, 180, None, "three minutes later"),
        (High, 150, 1, Some(Over), "more is said at once"),
        (Over, 10, 179, Some(Over), "not even lowered"),
        (Over, 85, 179, Some(Over), "the same"),
        (Over, 85, 180, Some(High), "lowered"),
        (Over, 10, 180, None, "gone"),
    ];
    for (held, heat, now, want, why) in cases {
        let got = alone(hot(heat), since(held, 0), now).expect("it has a taint");
        assert_eq!(got.after.map(|a| a.grade), want, "{held} at {heat} %, {now} s: {why}");
        let moved = want != Some(held);
        let stamp = got.after.and_then(|a| a.since);
        assert_eq!(
            stamp,
            want.map(|_| t(if moved { now } else { 0 })),
            "{why}: counted from when it is reached"
        );
        assert_eq!(got.writes(), moved, "{why}");
    }
}

#[test]
fn a_time_that_is_missing_or_far_ahead_keeps_no_taint() {
    let cases = [
        (None, false, "somebody else wrote it"),
        (Some(t(130)), true, "a clock that is 30 s ahead"),
        (Some(t(131)), false, "a mistake, which must not keep it for years"),
        (Some(Timestamp::MAX), false, "the same"),
        (Some(Timestamp::MIN), false, "long over"),
    ];
    for (since, kept, why) in cases {
        let taint = Some(LoadTaint { grade: Grade::Over, since });
        let got = alone(hot(10), taint, 100).expect("it has a taint");
        assert_eq!(got.after.is_some(), kept, "{why}");
    }
}

#[test]
fn unknown_load_gets_no_taint_and_loses_one_after_its_dwell() {
    assert_eq!(alone(None, None, 0), None);
    let kept = alone(None, since(Grade::Over, 0), 179).expect("it has a taint");
    assert_eq!((kept.act, kept.after), (Act::Keep, Some(since(Grade::Over, 0))));
    assert_eq!(kept.because.to_string(), "kept until 2027-01-15T08:03:00Z: no metric with a limit is known");
    let gone = alone(None, since(Grade::Over, 0), 180).expect("it had a taint");
    assert_eq!((gone.act, gone.because), (Act::Remove, Because::Unknown));
}

#[test]
fn a_node_that_takes_no_pods_is_neither_marked_nor_counted() {
    let closed = |taint| NodeHeat { takes_pods: false, ..node("closed", hot(150), taint) };
    let decided = |nodes: &[NodeHeat], now| {
        let told = decide(nodes, &Options::default(), t(now)).into_iter();
        told.map(|c| (c.node.to_string(), c.act)).collect::<Vec<_>>()
    };
    let nodes = [closed(None), node("a", hot(150), None)];
    assert_eq!(decided(&nodes, 0), [("a".into(), Act::Spare)], "the only one that takes pods");
    let nodes = [closed(Some(since(Grade::Over, 0))), node("a", hot(150), None), node("b", hot(10), None)];
    let kept = [("a".into(), Act::Add), ("closed".into(), Act::Keep)];
    assert_eq!(decided(&nodes, 179), kept, "beside the one of two");
    assert_eq!(decided(&nodes, 180)[1], ("closed".into(), Act::Remove));
}

#[test]
fn so_many_nodes_may_be_marked() {
    let cases = [
        (30, 0, 0, "there is none"),
        (30, 1, 0, "its pods would have nowhere to go"),
        (30, 2, 1, "0.6, but at least one"),
        (30, 9, 2, "2.7"),
        (30, 10, 3, "exactly"),
        (0, 10, 0, "switched off"),
        (1, 10, 1, "0.1, but at least one"),
        (100, 10, 9, "never all"),
        (-5, 10, 0, "refused by the check, and harmless"),
    ];
    for (share, nodes, want, why) in cases {
        let options = Options { share: percent(share), ..Options::default() };
        assert_eq!(options.allowed(nodes), want, "{share} % of {nodes}: {why}");
    }
}

/// Who is marked among ten nodes, three of which may be; the rest idle.
fn marked(nodes: &[NodeHeat], now: i64) -> (Vec<String>, Vec<String>) {
    let mut all = nodes.to_vec();
    all.extend((nodes.len()..10).map(|i| node(&format!("idle-{i}"), hot(10), None)));
    let changes = decide(&all, &Options::default(), t(now));
    let names = |spared: bool| {
        let some = changes.iter().filter(|c| matches!(c.because, Because::Share { .. }) == spared);
        some.filter(|c| spared || c.after.is_some()).map(|c| c.node.to_string()).collect()
    };
    (names(false), names(true))
}

#[test]
fn when_too_many_are_hot_the_order_decides_and_the_others_are_told() {
    use Grade::{High, Over};
    /// Why, who is hot, who is marked, who is spared.
    type Case<'a> = (&'a str, &'a [NodeHeat], [&'a str; 3], &'a [&'a str]);
    let cases: [Case<'_>; 6] = [
        (
            "over before high, then the hotter",
            &[
                node("a", hot(92), None),
                node("b", hot(95), None),
                node("c", hot(101), None),
                node("d", hot(99), None),
                node("e", hot(102), None),
            ],
            ["c", "d", "e"],
            &["a", "b"],
        ),
        (
            "of equals by name",
            &["d", "a", "c", "b"].map(|name| node(name, hot(120), None)),
            ["a", "b", "c"],
            &["d"],
        ),
        (
            "of equals the one that has it",
            &[
                node("a", hot(120), None),
                node("b", hot(120), None),
                node("c", hot(120), None),
                node("d", hot(120), since(Over, 0)),
            ],
            ["a", "b", "d"],
            &["c"],
        ),
        (
            "110 × 0.9 = 99 is not more than 100: noise moves no taint",
            &[
                node("a", hot(110), None),
                node("b", hot(130), None),
                node("c", hot(130), None),
                node("d", hot(101), since(Over, 0)),
            ],
            ["b", "c", "d"],
            &["a"],
        ),
        (
            "113 × 0.9 = 101.7 is more than 101: it loses its place",
            &[
                node("a", hot(113), None),
                node("b", hot(130), None),
                node("c", hot(130), None),
                node("d", hot(101), since(Over, 0)),
            ],
            ["a", "b", "c"],
            &["d"],
        ),
        (
            "a dwell that is not over holds its place against all",
            &[
                node("a", hot(300), None),
                node("b", hot(300), None),
                node("c", hot(300), None),
                node("d", hot(10), since(High, 900)),
            ],
            ["a", "b", "d"],
            &["c"],
        ),
    ];
    for (why, nodes, want, spared) in cases {
        let (got, left) = marked(nodes, 1000);
        assert_eq!(got, want, "{why}");
        assert_eq!(left, spared, "{why}");
    }
}

#[test]
fn the_share_is_kept_even_against_dwell() {
    // Ten nodes became four, of which 1.2 may be marked: one.
    let fresh = |name, heat| node(name, heat, since(Grade::Over, 999));
    let nodes = [fresh("a", hot(110)), fresh("b", hot(120)), fresh("c", None), node("d", hot(10), None)];
    let changes = decide(&nodes, &Options::default(), t(1000));
    let told: Vec<_> = changes.iter().map(|c| (&*c.node, c.act)).collect();
    assert_eq!(
        told,
        [("a", Act::Remove), ("b", Act::Keep), ("c", Act::Remove)],
        "the unknown one goes first"
    );
    assert_eq!(
        changes[0].because.to_string(),
        "cpu_usage_avg_5m 0.55 over 0.5, but at most 1 of 4 nodes are tainted"
    );
}

#[test]
fn a_decision_is_told_in_words() {
    let told = |heat, taint: Option<LoadTaint>, now| {
        let change = alone(Heat::new("cpu_usage_avg_5m".into(), percent(heat), percent(65)), taint, now);
        change.expect("something is told").because.to_string()
    };
    let high = Some(since(Grade::High, 0));
    assert_eq!(told(71, None, 0), "cpu_usage_avg_5m 0.71 over 0.65");
    assert_eq!(told(60, None, 0), "cpu_usage_avg_5m 0.6 over 0.585 (limit 0.65)", "0.65 × 0.9");
    assert_eq!(told(55, high, 180), "cpu_usage_avg_5m 0.55 not below 0.5265 (limit 0.65)");
    assert_eq!(told(41, high, 180), "cpu_usage_avg_5m 0.41 below 0.5265 (limit 0.65)");
    assert_eq!(
        told(41, high, 60),
        "kept until 2027-01-15T08:03:00Z: cpu_usage_avg_5m 0.41 below 0.5265 (limit 0.65)"
    );
}

#[test]
fn heat_is_the_largest_of_what_is_known_and_limited() {
    let term = |metric: &str, value: Option<f64>, limit: Option<f64>| Term {
        metric: metric.into(),
        value: value.map(|v| Ratio::from_f64(v).map_or(Figure::Float(v), Figure::Exact)),
        limit: limit.map(Figure::Float),
        weight: None,
        at: None,
        age_seconds: None,
        window_seconds: None,
        source: None,
        reason: None,
        note: None,
    };
    let of = |terms: Vec<Term>| {
        Heat::of(&Terms { terms, valid_until: None })
            .map(|heat| (heat.metric().to_string(), heat.value().to_f64()))
    };
    let cases = [
        (vec![], None, "nothing at all"),
        (vec![term("a", Some(2.0), None)], None, "no limit"),
        (vec![term("a", None, Some(0.5))], None, "no value"),
        (vec![term("a", Some(f64::NAN), Some(0.5))], None, "no number"),
        (vec![term("a", Some(0.5), Some(0.0))], None, "a limit of 0 is none"),
        (
            vec![term("a", None, Some(0.1)), term("b", Some(0.1), Some(0.5))],
            Some(("b", 0.1)),
            "what is known",
        ),
        (
            vec![term("a", Some(0.6), Some(0.8)), term("b", Some(0.4), Some(0.5))],
            Some(("b", 0.4)),
            "0.75 and 0.8",
        ),
        (
            vec![term("a", Some(0.3), Some(0.6)), term("b", Some(0.25), Some(0.5))],
            Some(("a", 0.3)),
            "the first",
        ),
        (vec![term("a", Some(f64::INFINITY), Some(0.5))], Some(("a", 100_000.0)), "held at the most"),
    ];
    for (terms, want, why) in cases {
        assert_eq!(of(terms), want.map(|(metric, value): (&str, f64)| (metric.to_owned(), value)), "{why}");
    }
}

#[test]
fn heat_follows_from_what_the_load_rules_know_of_a_node() {
    let rules = Rules::new(Policy::default(), Settings::default()).expect("the default is valid").0;
    let annotations: BTreeMap<String, String> =
        [("cpu_usage_avg_5m", "0.71000"), ("mem_usage_avg_5m", "0.30000")]
            .map(|(metric, value)| (metric.to_owned(), format!("{value},2027-01-15T08:00:00Z")))
            .into();
    let (limits, _) = rules.node(&BTreeMap::new(), &annotations);
    let terms = |now| term::evaluate(&rules, &limits, &Seen::new(&rules, &annotations, None), now);
    let heat = Heat::of(&terms(t(60)));
    assert_eq!(heat, Heat::new("cpu_usage_avg_5m".into(), percent(71), percent(65)));
    assert_eq!(Heat::of(&terms(t(3600))), None, "an hour later nobody knows");
}

#[test]
fn the_taint_is_read_off_the_node_as_it_was_written() {
    let other =
        Taint { key: "dedicated".into(), value: "db".into(), effect: Effect::NoSchedule, time_added: None };
    let foreign =
        Taint { effect: Effect::NoExecute, ..LoadTaint { grade: Grade::High, since: None }.taint() };
    let there = [other.clone(), foreign.clone()];
    assert_eq!(LoadTaint::of(&there), None, "evicting is nothing we do");

    let now = t(0) + SignedDuration::from_millis(1);
    let change = Change::new(&node("a", hot(150), None), Some(Grade::Over), Because::Unknown, now);
    let written = change.apply(&there);
    let read: Vec<Taint> = serde_json::from_str(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(read[2].to_string(), "loadline.dev/load=over:NoSchedule");
    assert_eq!(LoadTaint::of(&read), change.after);
    assert_eq!(change.after, Some(since(Grade::Over, 1)), "a whole second, and none too early");

    let both = [LoadTaint { grade: Grade::High, since: Some(t(5)) }.taint(), read[2].clone(), other.clone()];
    assert_eq!(LoadTaint::of(&both), change.after, "the stronger counts");
    let gone = withdraw(&[node("a", hot(150), LoadTaint::of(&both)), node("b", hot(150), None)], now);
    assert_eq!(gone.len(), 1, "of ours there is one");
    assert_eq!(gone[0].apply(&both), [other], "and both effects go");
}

#[test]
fn everything_wrong_with_the_options_is_told_at_once() {
    assert_eq!(check(&Options::default()), []);
    let told = |options: &Options| check(options).iter().map(ToString::to_string).collect::<Vec<_>>();
    let bad = Options {
        soft: percent(120),
        hard: percent(100),
        hysteresis: percent(100),
        dwell: SignedDuration::from_secs(-1),
        share: percent(130),
    };
    assert_eq!(
        told(&bad),
        [
            "taints.soft: expected less than the hard line (1), not 1.2",
            "taints.hysteresis: expected a ratio from 0 to less than 1, not 1: at 1 no taint would ever go",
            "taints.dwell: expected 0s or more, not 1s ago",
            "taints.share: 1.3 is not a ratio 0..1",
        ]
    );
    let none = Options { soft: percent(0), hard: percent(0), ..Options::default() };
    assert_eq!(
        told(&none),
        [
            "taints.soft: expected more than 0, not 0: every node would be hot",
            "taints.soft: expected less than the hard line (0), not 0",
            "taints.hard: expected more than 0, not 0: every node would be over",
        ]
    );
}
