//! What seeds have found, as the least that showed it, so that it stays found whatever plans seeds come to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_chaos::check::{Conditions, check};
use loadline_chaos::history::Entry;
use loadline_chaos::judge;
use loadline_chaos::plan::{Arrival, Fault, Fleet, Placed, Plan, Trouble, What, Who};

fn plan(pods: &[(u64, u64)], troubles: Vec<Trouble>) -> Plan {
    let pods = pods.iter().map(|(at, cpu_milli)| Arrival { at: *at, cpu_milli: *cpu_milli, memory_mib: 128 });
    Plan {
        seed: 3,
        nodes: 2,
        pods: pods.collect(),
        slows: true,
        troubles,
        skews: Vec::new(),
        fleet: Fleet::default(),
        flaws: Vec::new(),
    }
}

/// A placement that is published in one group.
fn whole(count: u64) -> Placed {
    Placed { count, per_group: 0 }
}

/// Nothing is broken, whatever the clocks: what the plans of seeds must meet to be held to a promise is not asked for.
fn kept(plan: &Plan) -> Vec<Entry> {
    let history = judge(plan).unwrap().history;
    let given = Conditions { honest: 0, ..Conditions::ALWAYS };
    assert_eq!(check(&history, given).violations, []);
    history
}

#[test]
fn a_node_that_is_registered_anew_gives_back_what_was_taken_there() {
    let hot = Trouble { at: 26_000, what: What::Hot { node: 0, percent: 389, lasts: 61_000 } };
    let gone = Trouble { at: 73_000, what: What::NodeGone { node: 0, back_after: 8000 } };
    let history = kept(&plan(&[(21_000, 800); 4], vec![hot, gone]));
    let taken = history.iter().filter(|entry| entry.verb == "quota" && !entry.after.is_null());
    assert!(taken.count() > 0, "somebody was slowed down");
    let nodes = history.iter().filter(|entry| entry.path == "/api/v1/nodes/n0" && entry.verb == "create");
    assert_eq!(nodes.count(), 2, "the node came back as another one");
}

#[test]
fn a_clock_that_is_set_ends_no_promise_to_a_cluster() {
    let set = Trouble { at: 33_000, what: What::ClockSet { who: Who::Binding(0), by_ms: 3_600_000 } };
    let fleet = Fleet { clusters: 4, placements: vec![whole(2)], bindings: vec![(37_000, 12), (7000, 12)] };
    let history = kept(&Plan { fleet, ..plan(&[], vec![set]) });
    let assigned = |entry: &&Entry| entry.is_of("resourcebindings") && entry.who.starts_with("binding/");
    assert!(history.iter().any(|entry| assigned(&entry)), "one of them got clusters");
}

#[test]
fn who_takes_over_writes_at_once_what_changed_while_nobody_led() {
    let away = Trouble { at: 53_000, what: What::ClusterAway { cluster: 0, lasts: 80_000 } };
    let cut = Trouble { at: 53_000, what: What::CutOff { who: Who::Placement(0), lasts: 30_000 } };
    let fleet = Fleet { clusters: 3, placements: vec![whole(3)], bindings: Vec::new() };
    let history = kept(&Plan { fleet, ..plan(&[], vec![away, cut]) });
    let leads = |entry: &&Entry| {
        entry.path.ends_with("/leases/loadline-placement")
            && entry.after["spec"]["holderIdentity"].as_str() == Some("placement-1-1")
    };
    let took = history.iter().find(leads).unwrap().at;
    let writes = |entry: &&Entry| entry.is_of("placementdecisions") && entry.identity == "placement-1-1";
    let wrote = history.iter().find(writes).unwrap().at;
    assert!(wrote >= took && wrote <= took + 1000, "it leads from {took} ms on, and wrote at {wrote}");
}

#[test]
fn a_leader_whose_clock_is_set_waits_until_it_leads_again() {
    // The clock of the one that has taken over is set right at the end, when much else happens.
    let set = Trouble { at: 29_000, what: What::ClockSet { who: Who::Scheduler(1), by_ms: -3_600_000 } };
    let kill = Trouble { at: 67_000, what: What::Kill { who: Who::Scheduler(0), back_after: 4000 } };
    let fleet = Fleet { clusters: 3, placements: vec![whole(3)], bindings: Vec::new() };
    kept(&Plan { nodes: 3, fleet, ..plan(&[], vec![set, kill]) });
}

#[test]
fn a_leader_that_reads_anew_waits_for_what_it_needs_to_know() {
    let who = Who::Scheduler(0);
    let slow = What::Requests { who, fault: Fault::Delay(1800), percent: 60, lasts: 33_000 };
    let troubles = [
        (22_538, What::Kill { who: Who::Agent(1), back_after: 2500 }),
        (43_706, What::MetricsLie { percent: 10, lasts: 7000 }),
        (52_000, slow),
        (72_054, What::ServerRestarts),
    ];
    let pods = [
        (26_364, 1000, 384),
        (27_127, 1200, 768),
        (27_134, 1200, 768),
        (27_136, 1200, 768),
        (29_049, 1000, 640),
        (29_322, 1000, 640),
        (55_371, 400, 128),
    ];
    let pods = pods.map(|(at, cpu_milli, memory_mib)| Arrival { at, cpu_milli, memory_mib });
    let troubles = troubles.map(|(at, what)| Trouble { at, what }).to_vec();
    let skews = vec![-420, -1870, -1549, -482];
    kept(&Plan { seed: 117, pods: pods.to_vec(), skews, ..plan(&[], troubles) });
}

#[test]
fn a_condition_whose_taint_never_came_is_taken_back() {
    let hot = Trouble { at: 28_000, what: What::Hot { node: 0, percent: 177, lasts: 40_000 } };
    let what = What::Requests { who: Who::Agent(0), fault: Fault::DropAnswer, percent: 100, lasts: 38_000 };
    let deaf = Trouble { at: 48_000, what };
    let gone = Trouble { at: 8000, what: What::NodeGone { node: 0, back_after: 33_000 } };
    let history = kept(&plan(&[(4000, 1000); 4], vec![gone, hot, deaf]));
    let told = |entry: &&Entry| entry.path == "/api/v1/nodes/n0" && entry.subresource == "status";
    assert!(history.iter().filter(told).count() > 1, "it was told, and told otherwise later");
    let taints = |entry: &&Entry| entry.after["spec"]["taints"].as_array().is_some_and(|all| !all.is_empty());
    assert_eq!(history.iter().filter(taints).count(), 0, "its taint never came");
}

#[test]
fn what_was_assigned_by_one_who_ended_before_it_said_so_is_promised() {
    let what = What::KillAtAct { who: Who::Binding(0), after: true, back_after: 2000 };
    let bindings = vec![(32_000, 9), (39_000, 6), (17_000, 12)];
    let fleet = Fleet { clusters: 7, placements: Vec::new(), bindings };
    let plan = Plan { seed: 782, fleet, ..plan(&[], vec![Trouble { at: 9892, what }]) };
    let history = kept(&plan);
    let of = |entry: &&Entry| entry.identity == "binding-0-1" && entry.is_of("resourcebindings");
    assert_eq!(history.iter().filter(of).count(), 1, "it assigned, and said nothing");
}
