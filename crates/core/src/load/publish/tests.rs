use super::*;
use crate::load::Both;
use crate::load::policy::{Policy, Predicate, Sync};
use crate::load::settings::Settings;
use jiff::tz::TimeZone;
use proptest::prelude::*;

const SHORT: &str = "cpu_usage_avg_5m";
const DAY: &str = "cpu_usage_max_avg_1d";
const DAY_SECONDS: i64 = 86_400;

/// Seconds after noon.
fn at(second: i64) -> Timestamp {
    "2026-01-31T12:00:00Z".parse::<Timestamp>().expect("a time") + SignedDuration::from_secs(second)
}

/// One metric every 3 min (so good for 8 min) with a limit of 65 %, one every 3 h without; hot after two in a minute.
fn rules() -> Rules {
    let sync = |name: &str, minutes| Sync { name: name.into(), period: SignedDuration::from_mins(minutes) };
    let hot = Policy::default().hot;
    let policy = Policy {
        sync: vec![sync(SHORT, 3), sync(DAY, 180)],
        predicates: vec![Predicate { name: SHORT.into(), limit: 0.65 }],
        priorities: Vec::new(),
        hot,
    };
    Rules::new(policy, Settings::default()).expect("nothing is wrong with it").0
}

type Annotations = BTreeMap<String, String>;

/// Shares in thousandths of the short metric and of the long one, and when they were measured.
fn ask(
    rules: &Rules,
    annotations: &Annotations,
    known: [Option<(i64, i64)>; 2],
    hot: i64,
    now: i64,
) -> Option<Update> {
    let (of_node, _) = rules.node(&Annotations::new(), annotations);
    let known = known.map(|known| {
        known.map(|(milli, second)| Known {
            value: Value { share: Ratio::from_nano(milli * 1_000_000), at: at(second) },
            warming_up: false,
        })
    });
    let written = Written::read(rules, "n1", annotations);
    let node = Node { rules: &of_node, annotations, written: &written, known: &known, hot };
    update(rules, &node, Options::default(), at(now))
}

fn apply(annotations: &mut Annotations, update: &Update) {
    for (key, text) in &update.annotations {
        match text {
            Some(text) => annotations.insert(key.clone(), text.clone()),
            None => annotations.remove(key),
        };
    }
}

#[test]
fn a_node_without_annotations_gets_all_of_them_in_one_patch_stamped_when_measured() {
    let rules = rules();
    let mut node = Annotations::new();
    let update = ask(&rules, &node, [Some((430, -7)), Some((800, -60))], 0, 0).expect("nothing is there");
    assert_eq!(update.urgency, Urgency::Now);
    apply(&mut node, &update);
    let want = [
        (SHORT, "0.43000,2026-01-31T11:59:53Z"),
        (DAY, "0.80000,2026-01-31T11:59:00Z"),
        (KEYS, "cpu_usage_avg_5m,cpu_usage_max_avg_1d"),
        (POLICY, &fingerprint(&rules)),
    ];
    assert_eq!(node, want.map(|(key, text)| (key.to_owned(), text.to_owned())).into());
    assert_eq!(
        ask(&rules, &node, [Some((430, -7)), Some((800, -60))], 0, 1),
        None,
        "the same again is nothing"
    );
}

#[test]
fn a_value_is_written_when_a_reader_would_decide_otherwise_or_could_not_use_it_soon() {
    let rules = rules();
    // Good for 8 min = 480 s. This node writes anew after half of that and its own share of a sixth.
    let own = i64::try_from(Uid::new("n1").0 % 1000).expect("small");
    let refresh = 240 + 480 * own / 6000;
    for (held, new, now, want, why) in [
        ((640, 0), (645, 15), 15, None, "half a point on the same side of the limit"),
        ((640, 0), (650, 15), 15, Some(Urgency::Changed), "a point; the limit itself is not over"),
        ((649, 0), (651, 15), 15, Some(Urgency::Now), "over the limit"),
        ((651, 0), (650, 15), 15, Some(Urgency::Now), "back under it"),
        ((300, 0), (310, 0), 15, None, "another value of the same moment is not newer"),
        ((300, 0), (900, -15), 15, None, "an older one even less"),
        ((300, 0), (300, refresh - 5), refresh - 1, None, "there is time yet"),
        (
            (300, 0),
            (300, refresh - 5),
            refresh + 1,
            Some(Urgency::Expires),
            "half its life and a bit are over",
        ),
        ((300, 0), (300, 475), 480, Some(Urgency::Now), "nobody can use it any more"),
        ((300, 0), (300, 5), 485, None, "what is measured is as useless itself"),
        ((300, 0), (300, 5), 484, Some(Urgency::Now), "a second earlier it is not"),
    ] {
        let mut node = Annotations::new();
        let first = ask(&rules, &node, [Some(held), None], 0, held.1).expect("nothing is there");
        apply(&mut node, &first);
        let update = ask(&rules, &node, [Some(new), None], 0, now);
        assert_eq!(update.map(|update| update.urgency), want, "{held:?} → {new:?} at {now}: {why}");
    }
}

#[test]
fn what_is_not_known_is_left_to_expire_and_nobody_elses_annotation_is_touched() {
    let rules = rules();
    let mut node: Annotations =
        [("theirs", "1"), (SHORT, "rubbish"), ("mem_usage_avg_5m", "0.1,2026-01-31T11:59:53Z")]
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
    assert_eq!(ask(&rules, &node, [None, None], 0, 0), None);
    let update = ask(&rules, &node, [Some((100, 0)), None], 0, 0).expect("rubbish is nothing");
    assert_eq!(update.annotations.keys().collect::<Vec<_>>(), [SHORT, KEYS, POLICY]);
    apply(&mut node, &update);
    assert_eq!(node[KEYS], SHORT, "the one of another is not ours for being like ours");
}

#[test]
fn the_hot_value_is_written_as_it_changes_and_taken_for_zero_when_it_expires() {
    let rules = rules();
    let mut node = Annotations::new();
    let hot = |node: &Annotations, hot, now| ask(&rules, node, [None, None], hot, now);
    assert_eq!(hot(&node, 0, 0), None, "none is as good as 0");
    let update = hot(&node, 3, 0).expect("it rose");
    assert_eq!(
        (update.urgency, update.annotations[HOT_VALUE].as_deref()),
        (Urgency::Now, Some("3,2026-01-31T12:00:00Z"))
    );
    apply(&mut node, &update);
    assert_eq!(hot(&node, 3, 60), None);
    // Good for 300 s: anew by 200 s at the latest.
    assert_eq!(hot(&node, 3, 200).map(|update| update.urgency), Some(Urgency::Expires));
    assert_eq!(hot(&node, 0, 60).map(|update| update.urgency), Some(Urgency::Now), "it fell");
    assert_eq!(hot(&node, 0, 300), None, "it expired");
    assert_eq!(
        hot(&node, 3, 300).map(|update| update.urgency),
        Some(Urgency::Now),
        "it expired and is still so"
    );
}

#[test]
fn keys_that_left_the_policy_are_taken_away_even_after_a_restart() {
    let (rules, mut node) = (rules(), Annotations::new());
    let first = ask(&rules, &node, [Some((100, 0)), Some((200, 0))], 2, 0).expect("nothing is there");
    apply(&mut node, &first);
    let mut policy = rules.policy().clone();
    policy.sync.remove(1);
    policy.hot.clear();
    let (fewer, _) = Rules::new(policy, Settings::default()).expect("nothing is wrong with it");
    let update = ask(&fewer, &node, [Some((100, 0)), None], 0, 1).expect("two keys are too many");
    assert_eq!(update.urgency, Urgency::Now);
    apply(&mut node, &update);
    assert_eq!(node.keys().collect::<Vec<_>>(), [SHORT, KEYS, POLICY]);
    assert_eq!((&*node[KEYS], &node[POLICY]), (SHORT, &fingerprint(&fewer)));
    assert_ne!(fingerprint(&rules), fingerprint(&fewer));

    let gone = Update { urgency: Urgency::Now, annotations: retire(&node) };
    apply(&mut node, &gone);
    assert_eq!(node, Annotations::new());
    assert_eq!(retire(&node), BTreeMap::new());
}

#[test]
fn a_range_that_is_not_filled_is_marked_until_it_is() {
    let rules = rules();
    let mut node = Annotations::new();
    let (of_node, _) = rules.node(&node, &node);
    for (second, warming_up, mark) in [(0, true, Some(DAY)), (6000, false, None)] {
        let known = |milli: i64, warming_up| {
            Some(Known {
                value: Value { share: Ratio::from_nano(milli * 1_000_000), at: at(second) },
                warming_up,
            })
        };
        let known = [known(100, false), known(200, warming_up)];
        let written = Written::read(&rules, "n1", &node);
        let asked = Node { rules: &of_node, annotations: &node, written: &written, known: &known, hot: 0 };
        let update =
            update(&rules, &asked, Options::default(), at(second)).expect("first nothing, then expired");
        apply(&mut node, &update);
        assert_eq!(node.get(WARMING_UP).map(String::as_str), mark, "at {second}");
    }
}

#[test]
fn short_ranges_are_our_samples_and_long_ones_are_monitorings_while_they_can_be_used() {
    let rules = rules();
    let [short, day] = [&rules.metrics()[0], &rules.metrics()[1]];
    let value = |milli: i64, second| Value { share: Ratio::from_nano(milli * 1_000_000), at: at(second) };
    let derived = |second, since| {
        let share = |milli: i64| Both { cpu: Some(Ratio::from_nano(milli * 1_000_000)), memory: None };
        Derived {
            at: at(second),
            since: at(since),
            avg_5m: share(100),
            max_1h: share(200),
            max_1d: share(300),
        }
    };
    for (metric, own, theirs, want, why) in [
        (short, Some(derived(0, -600)), Some(value(400, 0)), Some((100, false)), "our own mean"),
        (
            short,
            Some(derived(-300, -600)),
            Some(value(400, 0)),
            Some((100, false)),
            "until it is five minutes old",
        ),
        (short, Some(derived(-301, -600)), Some(value(400, 0)), Some((400, false)), "then monitoring's"),
        (short, Some(derived(-301, -600)), None, None, "or none"),
        (short, None, Some(value(400, -480)), None, "which is good for eight minutes"),
        (short, None, Some(value(400, 31)), None, "and not from the future"),
        (short, None, Some(value(400, 30)), Some((400, false)), "but for a clock that differs"),
        (
            day,
            Some(derived(0, -600)),
            Some(value(400, 0)),
            Some((400, false)),
            "monitoring looks back further",
        ),
        (
            day,
            Some(derived(0, -600)),
            Some(value(400, -11_100)),
            Some((300, true)),
            "185 min old is no more good",
        ),
        (day, Some(derived(0, 1 - DAY_SECONDS)), None, Some((300, true)), "a second is missing"),
        (day, Some(derived(0, -DAY_SECONDS)), None, Some((300, false)), "a day is full"),
    ] {
        let known = choose(metric, own.as_ref(), theirs, at(0));
        let known = known.map(|known| (known.value.share.nano() / 1_000_000, known.warming_up));
        assert_eq!(known, want, "{}: {why}", metric.name);
    }
}

#[test]
fn a_reader_in_another_zone_is_written_the_clock_of_that_zone() {
    let zone = TimeZone::get("Asia/Shanghai").expect("a zone");
    let settings = Settings { time_zone: Some(zone), ..Settings::default() };
    let (rules, _) = Rules::new(rules().policy().clone(), settings).expect("nothing is wrong with it");
    let mut node = Annotations::new();
    let first = ask(&rules, &node, [Some((100, 0)), None], 0, 0).expect("nothing is there");
    apply(&mut node, &first);
    assert_eq!(node[SHORT], "0.10000,2026-01-31T20:00:00Z");
    assert_eq!(ask(&rules, &node, [Some((100, 1)), None], 0, 1), None, "and read back in it");
}

proptest! {
    /// A node that is measured every 15 s and asked each time: no value a reader could use is ever lost, and what a reader
    /// sees is never more than the tolerance off, nor on the other side of the limit.
    #[test]
    fn a_reader_is_never_left_without_and_never_far_off(shares in prop::collection::vec(0_i64..1000, 1..200)) {
        let rules = rules();
        let mut node = Annotations::new();
        let mut patches = 0;
        for (turn, milli) in shares.iter().enumerate() {
            let second = i64::try_from(turn).expect("small") * 15;
            if let Some(update) = ask(&rules, &node, [Some((*milli, second)), None], 0, second) {
                patches += 1;
                apply(&mut node, &update);
            }
            let held = held(&rules, &node, SHORT).expect("written with the first");
            let age = at(second).duration_since(held.at);
            prop_assert!(age < SignedDuration::from_mins(8));
            prop_assert!((held.share.nano() - milli * 1_000_000).abs() < 10_000_000);
            prop_assert_eq!(held.share.nano() > 650_000_000, *milli > 650);
        }
        let steady = shares.iter().all(|milli| *milli == shares[0]);
        // At least four minutes apart, if nothing changes: one every 16 turns.
        prop_assert!(!steady || patches <= 1 + shares.len() / 16);
    }
}
