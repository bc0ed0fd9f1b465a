//! Deciding only what a change touches comes to the same as deciding everything.

use super::world::*;
use super::*;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::cell::Cell;
use std::sync::Arc;

/// Without what only says when it was decided.
fn timeless(outcome: &Outcome) -> Outcome {
    let mut outcome = outcome.clone();
    outcome.last_score_update = None;
    outcome.conditions.iter_mut().for_each(|condition| condition.since = noon());
    // As long as nobody has written since when clusters are selected, that counts from when it was decided.
    if outcome.writes.iter().any(|step| step.status && !step.slice.since.is_empty()) {
        outcome.requeue_at = None;
    }
    outcome.writes.iter_mut().for_each(|step| Arc::make_mut(&mut step.slice).since.clear());
    outcome
}

proptest! {
    #[test]
    fn deciding_what_is_touched_is_deciding_everything(
        events in proptest::collection::vec(event(), 1..40),
        published in any::<bool>(),
    ) {
        let mut world = World::new();
        for event in events {
            world.apply(&event);
            let now = at(world.now);
            let outcomes = world.fleet.decide(&world.judge, now);
            for outcome in &outcomes {
                let fresh = world.fleet.report(&outcome.placement, &world.judge, now).unwrap().outcome;
                prop_assert_eq!(&**outcome, &fresh, "{} after {:?}", outcome.placement, event);
            }
            if published {
                for outcome in &outcomes {
                    world.write(outcome);
                }
            }
            // What was written comes back and is looked at once more.
            world.fleet.decide(&world.judge, now);
            prop_assert_eq!(world.fleet.due(now).count(), 0);
            let known: Vec<Key> = world.fleet.placements().map(|placement| placement.key.clone()).collect();
            // What others have is no reason to decide anew.
            for key in known.into_iter().filter(|key| &*key.name != BALANCED) {
                let fresh = world.fleet.report(&key, &world.judge, now).unwrap().outcome;
                let kept = world.fleet.outcome(&key).unwrap();
                prop_assert_eq!(timeless(kept), timeless(&fresh), "{} after {:?}", key, event);
            }
        }
    }
}

// Above, the same fleet answers twice, from the same columns and postings. Here another one does, which has seen nothing
// but the end.
#[test]
fn a_fleet_told_event_by_event_is_one_told_the_end_alone() {
    let (compared, selected) = (Cell::new(0_usize), Cell::new(0_usize));
    let histories = (proptest::collection::vec(event(), 1..40), any::<bool>());
    let mut runner = TestRunner::new(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let lived = runner.run(&histories, |(events, published)| {
        let mut world = World::new();
        for event in events {
            world.apply(&event);
            let now = at(world.now);
            let outcomes = world.fleet.decide(&world.judge, now);
            if published {
                for outcome in &outcomes {
                    world.write(outcome);
                }
            }
            let mut fresh = world.rebuilt();
            let known: Vec<Key> = world.fleet.placements().map(|placement| placement.key.clone()).collect();
            for key in known {
                let ours = world.fleet.report(&key, &world.judge, now).unwrap().outcome;
                let theirs = fresh.report(&key, &world.judge, now).unwrap().outcome;
                prop_assert_eq!(&ours, &theirs, "{} after {:?}", key, event);
                compared.set(compared.get() + 1);
                selected.set(selected.get() + ours.selected.len());
            }
        }
        Ok(())
    });
    lived.unwrap_or_else(|why| panic!("{why}"));
    let (compared, selected) = (compared.get(), selected.get());
    println!("{compared} placements compared, {selected} clusters selected");
    assert!(compared > 10_000 && selected > 10_000, "{compared} compared, {selected} selected only");
}

#[test]
fn a_judge_is_asked_once_per_cluster_and_change() {
    let gold = |name: &str| labelled(name, &[("tier", "gold")]);
    let mut fleet = fleet([gold("a"), gold("b"), gold("c")]);
    for name in ["one", "two"] {
        let wish = placement(name, None, &[built_in("Balance", 0)]);
        fleet.set_placement(Placement { predicates: vec![cel(&["scored"])], ..wish });
    }
    let judge = Words::default();
    let asked = |fleet: &mut Fleet, now: i64| {
        judge.asked.set(0);
        let selected = fleet.decide(&judge, at(now)).iter().map(|outcome| outcome.selected.len()).max();
        (judge.asked.get(), selected)
    };
    assert_eq!(asked(&mut fleet, 0), (3, Some(0)), "for both placements together");
    let score =
        |value, until| Scores { values: [("x".to_owned(), value)].into(), valid_until: Some(at(until)) };
    fleet.set_scores("a", "one", score(1, 10));
    assert_eq!(asked(&mut fleet, 1), (1, Some(1)), "only that cluster has other scores");
    fleet.set_cluster(ClusterFacts { claims: texts(&[("zone", "1")]), ..gold("b") });
    assert_eq!(asked(&mut fleet, 1), (0, None), "nobody reads claims");
    fleet.set_cluster(ClusterFacts { taints: vec![taint("x", Effect::NoSelect, None)], ..gold("c") });
    assert_eq!(asked(&mut fleet, 2), (2, Some(1)), "the two clusters that are others");
    assert_eq!(asked(&mut fleet, 10), (0, Some(1)), "the score still holds");
    assert_eq!(asked(&mut fleet, 11), (1, Some(0)), "and no longer");
    assert_eq!(asked(&mut fleet, 12), (0, None));
}

#[test]
fn a_cluster_no_predicate_matches_touches_nobody() {
    let sized = |name: &str, tier: &str, cpu: &str| ClusterFacts {
        labels: texts(&[("tier", tier)]),
        ..sized(name, [cpu, "4"], ["1", "1"])
    };
    let mut fleet = fleet([sized("a", "gold", "4"), sized("b", "tin", "4")]);
    let gold = Predicate { labels: labels(&[("tier", "gold")]), ..Predicate::default() };
    let wish = placement("p", Some(1), &[built_in("ResourceAllocatableCPU", 1)]);
    fleet.set_placement(Placement { predicates: vec![gold], ..wish });
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "tin", "3"))), [""; 0]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("a", "gold", "3"))), ["p"]);
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "gold", "3"))), ["p"], "it comes");
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(sized("b", "tin", "3"))), ["p"], "it goes");
}

/// The placements a change touches.
fn touched(fleet: &mut Fleet, change: impl FnOnce(&mut Fleet)) -> Vec<String> {
    fleet.decide(&NoCel, noon());
    change(fleet);
    fleet.due(noon()).map(|key| key.name.to_string()).collect()
}

#[test]
fn a_change_touches_only_who_reads_it() {
    let full = || ClusterFacts { claims: texts(&[("zone", "1")]), ..sized("a", ["4", "4"], ["1", "1"]) };
    let mut fleet =
        fleet([ClusterFacts { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() }]);
    for wish in wishes() {
        fleet.set_placement(wish);
    }
    for (number, name) in SETS.iter().enumerate() {
        fleet.set_set(name, set(number, false));
    }
    fleet.bind("ns2", "gold");
    let known = || ClusterFacts { labels: texts(&[("tier", "gold"), (SET_LABEL, "blue")]), ..full() };
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
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("cpu", "3"))), ["cpu", "live"]);
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "3"))),
        ["cpu", "live"],
        "cpu is back to 4"
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(more("nvidia.com/gpu", "2"))), [""; 0]);
    let zone = ClusterFacts { claims: texts(&[("zone", "2")]), ..more("nvidia.com/gpu", "2") };
    assert_eq!(touched(&mut fleet, |fleet| fleet.set_cluster(zone.clone())), ["spread"]);
    let written = ClusterFacts { fingerprint: 1, ..zone };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_cluster(written)),
        ["agreed", "judged", "either"],
        "who may read anything of the object"
    );
    let scores = Scores { values: [("x".to_owned(), 1)].into(), valid_until: None };
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_scores("a", "one", scores.clone())),
        ["agreed", "judged", "either", "scored"]
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_scores("a", "two", scores.clone())),
        ["agreed", "judged", "either"]
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.set_slice(slice("cpu", 1, &["a"]))),
        ["cpu"],
        "its own only"
    );
    assert_eq!(
        touched(&mut fleet, |fleet| fleet.bind("ns2", "blue")),
        ["blue", "either", "scored", "spread"]
    );
    assert_eq!(touched(&mut fleet, |fleet| fleet.remove_set("gold")), ["blue", "either", "scored", "spread"]);
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

#[test]
fn who_is_decided_next_sees_what_is_being_written() {
    let balance = || [built_in("Balance", 1)];
    let exact = |name: &str| Placement { mode: "Exact".into(), ..placement(name, Some(1), &balance()) };
    let mut fleet = fleet(["a", "b", "c"].map(cluster));
    let mut chosen = Vec::new();
    for name in ["p", "q", "r"] {
        fleet.set_placement(exact(name));
        let outcome = fleet.decide_one(&exact(name).key, &NoCel, noon()).unwrap();
        fleet.assume(&outcome);
        chosen.push(selected(&outcome).concat());
    }
    assert_eq!(chosen, ["a", "b", "c"], "each takes one nobody has");
    assert_eq!(fleet.due(noon()).count(), 0, "what is one's own is no reason to decide");
    // What was meant arrives as it was meant; then it does not.
    let meant = fleet.outcome(&exact("q").key).unwrap().writes[0].slice.clone();
    fleet.set_slice((*meant).clone());
    assert_eq!(fleet.due(noon()).count(), 0);
    fleet.remove_slice(&meant.key);
    assert_eq!(fleet.due(noon()).map(|key| &*key.name).collect::<Vec<_>>(), ["q"]);
    // Nobody has it now: whoever comes may.
    let outcome = fleet.decide_one(&exact("q").key, &NoCel, noon()).unwrap();
    assert_eq!(selected(&outcome), ["b"]);
    // A write that failed is a reason, though nothing is different.
    assert_eq!(fleet.due(noon()).count(), 0);
    fleet.again(&exact("q").key);
    assert_eq!(fleet.due(noon()).count(), 1);
}
