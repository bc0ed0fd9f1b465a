//! Who checks the checker? Each promise is broken on purpose, by something that misbehaves as long as a run lasts. Seeds find
//! it, it is found in the least that shows it, and nothing is found there without it.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_chaos::check::{Conditions, Promise, check};
use loadline_chaos::history::Entry;
use loadline_chaos::judge;
use loadline_chaos::plan::{Arrival, Flaw, Fleet, Placed, Plan, Trouble, What};
use loadline_chaos::shrink::shrink;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Four pods that fill a node's line, and then four more, twice; nothing goes wrong.
fn plain() -> Plan {
    let pods = [2000, 35_000, 70_000]
        .into_iter()
        .flat_map(|at| (0..4).map(move |_| Arrival { at, cpu_milli: 600, memory_mib: 128 }));
    Plan {
        seed: 7,
        nodes: 2,
        pods: pods.collect(),
        slows: true,
        troubles: Vec::new(),
        skews: Vec::new(),
        fleet: Fleet {
            clusters: 2,
            placements: vec![Placed { count: 1, per_group: 0 }],
            bindings: vec![(1000, 3), (2000, 3)],
        },
        flaws: Vec::new(),
    }
}

fn broken(plan: &Plan) -> Vec<Promise> {
    let mut all: Vec<Promise> = judge(plan).unwrap().violations.into_iter().map(|one| one.promise).collect();
    all.dedup();
    all
}

fn found(history: &[Entry]) -> Vec<Promise> {
    let mut all: Vec<Promise> =
        check(history, Conditions::ALWAYS).violations.into_iter().map(|one| one.promise).collect();
    all.dedup();
    all
}

#[test]
fn without_a_flaw_nothing_is_found() {
    let outcome = judge(&plain()).unwrap();
    assert_eq!(outcome.violations, []);
    let waits = |entry: &&Entry| {
        entry.is_of("pods") && entry.subresource == "status" && entry.who.starts_with("scheduler/")
    };
    assert!(outcome.history.iter().any(|entry| waits(&entry)), "some pods wait");
}

/// How many seeds may go by until one shows a flaw.
const SEEDS: u64 = 20;

/// How much there is in a plan.
fn size(plan: &Plan) -> usize {
    plan.pods.len() + plan.troubles.len() + plan.fleet.bindings.len() + plan.fleet.placements.len()
}

/// One of the seeds from there on shows what this flaw breaks, and so does the least that is made of it.
fn is_found(flaw: Flaw, from: u64) {
    is_found_in(flaw, (from..from + SEEDS).map(Plan::of));
}

fn is_found_in(flaw: Flaw, mut plans: impl Iterator<Item = Plan>) {
    let (_, promise) = Flaw::ALL.into_iter().find(|(one, _)| *one == flaw).unwrap();
    let shown = plans.find_map(|plan| {
        let plan = Plan { flaws: vec![flaw], ..plan };
        broken(&plan).contains(&promise).then_some(plan)
    });
    let shown = shown.unwrap_or_else(|| panic!("{flaw:?} was not found"));
    let least = shrink(&shown, promise);
    assert!(broken(&least).contains(&promise), "the least that shows {flaw:?} shows it: {least:?}");
    assert!(size(&least) < size(&shown), "something was left out: {least:?}");
    assert_eq!(broken(&Plan { flaws: Vec::new(), ..least }), [], "it is {flaw:?} that was found");
}

#[test]
fn every_promise_is_broken_by_some_flaw() {
    let broken: BTreeSet<Promise> = Flaw::ALL.into_iter().map(|(_, promise)| promise).collect();
    assert_eq!(broken, Promise::ALL.into());
}

#[test]
fn a_binding_that_the_server_takes_and_forgets_is_found() {
    is_found(Flaw::BindingForgotten, 1);
}

#[test]
fn a_pod_that_waits_for_no_stated_reason_is_found() {
    is_found(Flaw::WaitUnsaid, 1);
}

#[test]
fn nodes_that_read_as_idle_are_found_by_what_is_sent_there() {
    is_found(Flaw::MeasuredIdle, 1);
}

#[test]
fn a_victim_that_comes_back_is_found() {
    is_found(Flaw::CoolingUnseen, 27);
}

#[test]
fn marks_that_stay_are_found() {
    is_found(Flaw::MarksStay, 1);
}

#[test]
fn pods_that_are_slowed_down_for_ever_are_found() {
    is_found(Flaw::SlowStays, 7);
}

#[test]
fn a_slice_that_is_emptied_before_it_is_written_is_found() {
    is_found(Flaw::SliceEmptied, 3);
}

#[test]
fn room_that_is_given_twice_is_found() {
    is_found(Flaw::RoomUnpromised, 0);
}

#[test]
fn two_that_lead_are_found() {
    is_found(Flaw::TwoLeaders, 4);
}

#[test]
fn a_pod_that_is_told_why_it_waits_and_forgotten_is_found() {
    is_found(Flaw::PodForgotten, 1);
}

#[test]
fn a_binding_that_is_told_why_it_waits_and_forgotten_is_found() {
    // Seeds rarely have a cluster come back for which a binding waits.
    let away = Trouble { at: 1000, what: What::ClusterAway { cluster: 0, lasts: 40_000 } };
    let fleet = Fleet { clusters: 2, placements: Vec::new(), bindings: vec![(10_000, 6)] };
    is_found_in(Flaw::BindingUnserved, [Plan { fleet, troubles: vec![away], ..plain() }].into_iter());
}

#[test]
fn a_placement_that_says_something_else_than_is_published_is_found() {
    is_found(Flaw::PlacementUnsaid, 0);
}

#[test]
fn a_component_that_never_waits_is_found() {
    is_found(Flaw::Restless, 0);
}

#[test]
fn a_component_that_ends_by_itself_is_found() {
    is_found(Flaw::Ends, 0);
}

#[test]
fn a_component_in_which_something_panics_is_found() {
    is_found(Flaw::Panics, 0);
}

fn entry(at: u64, who: &str, path: &str, subresource: &str, (before, after): (Value, Value)) -> Entry {
    let (who, path, subresource) = (who.to_owned(), path.to_owned(), subresource.to_owned());
    Entry { at, sent: at, identity: who.clone(), who, verb: "create", path, subresource, before, after }
}

#[test]
fn a_victim_that_comes_back_is_found_while_its_node_cools_and_not_later() {
    let pod = |name: &str, node: Option<&str>| json!({"metadata": {"name": name, "uid": name, "ownerReferences": [{"uid": "set"}]}, "spec": {"nodeName": node}});
    let lease = json!({"spec": {"holderIdentity": "scheduler/0"}});
    let cools = json!({"metadata": {"annotations": {"loadline.dev/cooling-until": "2026-01-05T08:01:00Z"}}, "spec": {}});
    let path = |name: &str| format!("/api/v1/namespaces/default/pods/{name}");
    let history = |back: u64| {
        [
            entry(
                0,
                "scheduler/0",
                "/apis/coordination.k8s.io/v1/leases/loadline-scheduler",
                "",
                (Value::Null, lease.clone()),
            ),
            entry(1000, "scheduler/0", &path("a"), "binding", (pod("a", None), pod("a", Some("n1")))),
            entry(9000, "agent/n1", "/api/v1/nodes/n1", "", (json!({}), cools.clone())),
            entry(9001, "agent/n1", &path("a"), "eviction", (pod("a", Some("n1")), Value::Null)),
            entry(back, "scheduler/0", &path("b"), "binding", (pod("b", None), pod("b", Some("n1")))),
            entry(
                90_000,
                "agent/n1",
                "/api/v1/nodes/n1",
                "",
                (cools.clone(), json!({"metadata": {}, "spec": {}})),
            ),
        ]
    };
    assert_eq!(found(&history(57_000)), [Promise::Cooling]);
    assert_eq!(found(&history(61_000)), []);
}
