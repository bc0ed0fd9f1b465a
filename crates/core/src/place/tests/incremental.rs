//! Deciding only what a change touches comes to the same as deciding everything.

use super::*;
use proptest::prelude::*;

const CLUSTERS: [&str; 5] = ["a", "b", "c", "d", "e"];
const SETS: [&str; 3] = ["blue", "gold", "global"];

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    Cluster { name: usize, set: usize, tier: usize, cpu: u8, tainted: bool, claim: usize, leaving: bool },
    NoCluster(usize),
    Set(usize, bool),
    NoSet(usize),
    Bind(usize, usize),
    Unbind(usize, usize),
    Score { cluster: usize, object: usize, value: i32, until: Option<i64> },
    NoScore(usize, usize),
    Time(i64),
}

fn event() -> impl Strategy<Value = Event> {
    let cluster =
        (0..5_usize, 0..3_usize, 0..3_usize, 0..4_u8, any::<bool>(), 0..3_usize, prop::bool::weighted(0.1));
    prop_oneof![
        8 => cluster.prop_map(|(name, set, tier, cpu, tainted, claim, leaving)| {
            Event::Cluster { name, set, tier, cpu, tainted, claim, leaving }
        }),
        1 => (0..5_usize).prop_map(Event::NoCluster),
        1 => (0..3_usize, any::<bool>()).prop_map(|(set, bad)| Event::Set(set, bad)),
        1 => (0..3_usize).prop_map(Event::NoSet),
        2 => (0..2_usize, 0..3_usize).prop_map(|(namespace, set)| Event::Bind(namespace, set)),
        1 => (0..2_usize, 0..3_usize).prop_map(|(namespace, set)| Event::Unbind(namespace, set)),
        2 => (0..5_usize, 0..2_usize, -100..=100, proptest::option::of(0..200_i64))
            .prop_map(|(cluster, object, value, until)| Event::Score { cluster, object, value, until }),
        1 => (0..5_usize, 0..2_usize).prop_map(|(cluster, object)| Event::NoScore(cluster, object)),
        2 => (1..60_i64).prop_map(Event::Time),
    ]
}

fn namespace(number: usize) -> &'static str {
    ["ns1", "ns2"][number]
}

fn set(number: usize, bad: bool) -> Members {
    match (SETS[number], bad) {
        (_, true) => Members::Unknown("Magic".into()),
        ("blue", _) => Members::Exclusive,
        ("gold", _) => Members::Labels(Some(labels(&[("tier", "gold")]))),
        _ => Members::Labels(Some(LabelSelector::default())),
    }
}

fn apply(fleet: &mut Fleet, event: &Event, now: &mut i64) {
    match event {
        Event::Cluster { name, set, tier, cpu, tainted, claim, leaving } => {
            let mut of = Cluster {
                labels: texts(&[
                    (SET_LABEL, ["blue", "red", "none"][*set]),
                    ("tier", ["gold", "tin", "none"][*tier]),
                ]),
                claims: texts(&[("zone", ["1", "2", "3"][*claim])]),
                leaving: *leaving,
                ..sized(CLUSTERS[*name], [&cpu.to_string(), "4"], ["1", "1"])
            };
            if *tainted {
                of.taints.push(taint("x", Effect::NoSelect, Some(at(*now))));
            }
            fleet.set_cluster(of);
        }
        Event::NoCluster(name) => fleet.remove_cluster(CLUSTERS[*name]),
        Event::Set(number, bad) => fleet.set_set(SETS[*number], set(*number, *bad)),
        Event::NoSet(number) => fleet.remove_set(SETS[*number]),
        Event::Bind(number, set) => fleet.bind(namespace(*number), SETS[*set]),
        Event::Unbind(number, set) => fleet.unbind(namespace(*number), SETS[*set]),
        Event::Score { cluster, object, value, until } => {
            let valid_until = until.map(at);
            let values = [("x".to_owned(), *value)].into();
            fleet.set_scores(CLUSTERS[*cluster], ["one", "two"][*object], Scores { values, valid_until });
        }
        Event::NoScore(cluster, object) => fleet.remove_scores(CLUSTERS[*cluster], ["one", "two"][*object]),
        Event::Time(more) => *now += more,
    }
}

/// Placements that read different things; none looks at what others have.
fn wishes() -> Vec<Placement> {
    let no_balance = || built_in("Balance", 0);
    let gold = Predicate { labels: labels(&[("tier", "gold")]), ..Predicate::default() };
    let tolerant =
        Toleration { key: "x".into(), operator: "Exists".into(), seconds: Some(60), ..Default::default() };
    let in_second = |wish: Placement| Placement { key: Key::new("ns2", wish.key.name.clone()), ..wish };
    let term = Constraint { key: "zone".into(), kind: TopologyKind::Claim, max_skew: 1, required: true };
    vec![
        placement("all", None, &[no_balance()]),
        Placement { predicates: vec![gold], ..placement("gold", Some(2), &[no_balance()]) },
        placement("cpu", Some(2), &[no_balance(), built_in("ResourceAllocatableCPU", 2)]),
        Placement { tolerations: vec![tolerant], ..placement("tolerant", Some(3), &[no_balance()]) },
        in_second(placement("scored", Some(1), &[no_balance(), add_on("one", "x", 2)])),
        in_second(Placement { spread: vec![term], ..placement("spread", Some(3), &[no_balance()]) }),
        in_second(Placement {
            cluster_sets: vec!["blue".into()],
            ..placement("blue", None, &[no_balance()])
        }),
    ]
}

/// Without what only says when it was decided.
fn timeless(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.last_score_update = None;
    outcome.conditions.iter_mut().for_each(|condition| condition.since = noon());
    outcome
}

proptest! {
    #[test]
    fn deciding_what_is_touched_is_deciding_everything(
        events in proptest::collection::vec(event(), 1..40),
        published in any::<bool>(),
    ) {
        let mut fleet = Fleet::new(Options { publish_scores: false, ..Options::default() });
        for wish in wishes() {
            fleet.set_placement(wish);
        }
        for (number, name) in SETS.iter().enumerate() {
            fleet.set_set(name, set(number, false));
        }
        fleet.bind("ns1", "global");
        fleet.bind("ns2", "gold");
        let mut now = 0;
        for event in events {
            apply(&mut fleet, &event, &mut now);
            for outcome in fleet.decide(&NoCel, at(now)) {
                if published {
                    write(&mut fleet, &outcome);
                }
            }
            // What was written comes back and is looked at once more.
            fleet.decide(&NoCel, at(now));
            prop_assert_eq!(fleet.due(at(now)).count(), 0);
            for wish in wishes() {
                let fresh = fleet.report(&wish.key, &NoCel, at(now)).unwrap().outcome;
                let kept = fleet.outcome(&wish.key).unwrap();
                prop_assert_eq!(timeless(kept), timeless(&fresh), "{} after {:?}", wish.key, event);
            }
        }
    }
}

/// The placements a change touches.
fn touched(fleet: &mut Fleet, change: impl FnOnce(&mut Fleet)) -> Vec<String> {
    fleet.decide(&NoCel, noon());
    change(fleet);
    fleet.due(noon()).map(|key| key.name.clone()).collect()
}

#[test]
fn a_change_touches_only_who_reads_it() {
    let full = || Cluster { claims: texts(&[("zone", "1")]), ..sized("a", ["4", "4"], ["1", "1"]) };
    let mut fleet = fleet([Cluster { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() }]);
    for wish in wishes() {
        fleet.set_placement(wish);
    }
    for (number, name) in SETS.iter().enumerate() {
        fleet.set_set(name, set(number, false));
    }
    fleet.bind("ns2", "gold");
    let known = || Cluster { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(known())),
        [""; 0],
        "a heartbeat touches nobody"
    );
    // Row A24: exactly the resources that are weighed.
    let more = |resource: &str, amount: &str| {
        let mut of = known();
        of.allocatable.extend(amounts(&[(resource, amount)]));
        of
    };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("cpu", "3"))), ["cpu"]);
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "3"))),
        ["cpu"],
        "cpu is back to 4"
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "2"))), [""; 0]);
    let zone = Cluster { claims: texts(&[("zone", "2")]), ..more("nvidia.com/gpu", "2") };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(zone)), ["spread"]);
    let scores = Scores { values: [("x".to_owned(), 1)].into(), valid_until: None };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_scores("a", "one", scores.clone())), ["scored"]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_scores("a", "two", scores.clone())), [""; 0]);
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_slice(slice("cpu", 1, &["a"]))),
        ["cpu"],
        "its own only"
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.bind("ns2", "blue")), ["blue", "scored", "spread"]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.remove_set("gold")), ["blue", "scored", "spread"]);
}

#[test]
fn time_alone_is_a_reason_once() {
    let mut fleet = fleet([cluster("a")]);
    fleet.set_scores("a", "demo", Scores { valid_until: Some(at(10)), ..Scores::default() });
    fleet.set_placement(placement("p", None, &[add_on("demo", "x", 1)]));
    assert_eq!(fleet.decide(&NoCel, noon()).len(), 1);
    assert_eq!((fleet.wake(), fleet.due(at(9)).count()), (Some(at(10)), 0));
    assert_eq!(fleet.decide(&NoCel, at(10)).len(), 1, "still valid, and looked at");
    assert_eq!(fleet.decide(&NoCel, at(10)).len(), 0, "but not again in the same moment");
    assert_eq!(fleet.decide(&NoCel, at(11)).len(), 1, "now it is over");
    assert_eq!(fleet.decide(&NoCel, at(12)).len(), 0);
}
