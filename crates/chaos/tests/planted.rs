//! Who checks the checker? Each promise is broken on purpose, and each time it is found: by a layer between the components and
//! the server that misbehaves, or in a history that is changed afterwards.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_chaos::check::{Conditions, Promise, check};
use loadline_chaos::history::Entry;
use loadline_chaos::judge;
use loadline_chaos::plan::{Arrival, Flaw, Fleet, Plan, Trouble, What};
use serde_json::{Value, json};

const ALL: Conditions = Conditions { honest: true, clocks_agree: true, hears: true };

/// Four pods that fill a node's line, and then four more, twice; nothing goes wrong.
fn plain() -> Plan {
    let pods = [2000, 35_000, 70_000]
        .into_iter()
        .flat_map(|at| (0..4).map(move |_| Arrival { at, cpu_milli: 600, memory_mib: 128 }));
    Plan {
        seed: 7,
        nodes: 2,
        pods: pods.collect(),
        troubles: Vec::new(),
        skews: Vec::new(),
        fleet: Fleet { clusters: 2, placements: vec![1], bindings: vec![(1000, 3), (2000, 3)] },
        flaws: Vec::new(),
    }
}

fn broken(plan: &Plan) -> Vec<Promise> {
    let mut all: Vec<Promise> = judge(plan).unwrap().violations.into_iter().map(|one| one.promise).collect();
    all.dedup();
    all
}

fn found(history: &[Entry]) -> Vec<Promise> {
    let mut all: Vec<Promise> = check(history, ALL).into_iter().map(|one| one.promise).collect();
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

#[test]
fn two_that_lead_are_found() {
    let plan = Plan { flaws: vec![Flaw::TwoLeaders], ..plain() };
    assert!(broken(&plan).contains(&Promise::Leader));
}

#[test]
fn nodes_that_read_as_idle_are_found_by_what_is_sent_there() {
    let plan = Plan { flaws: vec![Flaw::MeasuredIdle], ..plain() };
    assert!(broken(&plan).contains(&Promise::Line));
}

#[test]
fn marks_that_stay_are_found() {
    let hot = Trouble { at: 20_000, what: What::Hot { node: 0, percent: 300, lasts: 20_000 } };
    let trouble = Plan { troubles: vec![hot], ..plain() };
    assert_eq!(broken(&trouble), [], "without the flaw they are taken away");
    let plan = Plan { flaws: vec![Flaw::MarksStay], ..trouble };
    assert!(broken(&plan).contains(&Promise::LeftBehind));
}

#[test]
fn a_component_that_never_waits_is_found_and_started_again() {
    let plan = Plan { flaws: vec![Flaw::Restless], ..plain() };
    assert_eq!(broken(&plan), [Promise::Rest]);
}

#[test]
fn a_pod_that_waits_for_no_stated_reason_is_found() {
    let plan = Plan { flaws: vec![Flaw::WaitUnsaid], ..plain() };
    assert_eq!(broken(&plan), [Promise::BoundOnce]);
}

#[test]
fn a_placement_that_says_something_else_than_is_published_is_found() {
    let plan = Plan { flaws: vec![Flaw::PlacementUnsaid], ..plain() };
    assert_eq!(broken(&plan), [Promise::NothingLost]);
}

#[test]
fn a_pod_that_is_bound_twice_is_found() {
    let mut history = judge(&plain()).unwrap().history;
    let at = history.iter().position(|entry| entry.subresource == "binding").unwrap();
    let mut again = history[at].clone();
    again.after["spec"]["nodeName"] = json!("n9");
    history.insert(at + 1, again);
    assert!(found(&history).contains(&Promise::BoundOnce));
}

#[test]
fn a_cluster_that_is_absent_while_objects_are_rewritten_is_found() {
    let mut history = judge(&plain()).unwrap().history;
    let has = |entry: &Entry| !entry.after["status"]["decisions"].as_array().is_none_or(Vec::is_empty);
    let at = history.iter().rposition(|entry| entry.is_of("placementdecisions") && has(entry)).unwrap();
    let whole = history[at].clone();
    let whole = Entry { at: history.last().unwrap().at, ..whole };
    let mut emptied = whole.clone();
    emptied.after["status"]["decisions"] = json!([]);
    history.extend([emptied, whole]);
    assert_eq!(found(&history), [Promise::PublishedSet]);
}

#[test]
fn a_replica_too_many_is_found() {
    let mut history = judge(&plain()).unwrap().history;
    let assigns = |entry: &Entry| !entry.after["spec"]["clusters"].as_array().is_none_or(Vec::is_empty);
    let at = history.iter().rposition(|entry| entry.is_of("resourcebindings") && assigns(entry)).unwrap();
    let mut more = history[at].clone();
    more.after["spec"]["clusters"][0]["replicas"] = json!(5);
    more.after["spec"]["replicas"] = json!(5);
    history.push(more);
    assert!(found(&history).contains(&Promise::Estimate));
}

fn entry(at: u64, who: &str, path: &str, subresource: &str, (before, after): (Value, Value)) -> Entry {
    let (who, path, subresource) = (who.to_owned(), path.to_owned(), subresource.to_owned());
    Entry { at, identity: who.clone(), who, verb: "create", path, subresource, before, after }
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
    assert_eq!(found(&history(59_000)), [Promise::Cooling]);
    assert_eq!(found(&history(61_000)), []);
}
