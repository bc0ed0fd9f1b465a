//! Who never goes, and which nodes wait.

use super::*;
use crate::load::recommend::{Advice, Recommendation, WorkloadRef};
use crate::load::settings::Exempt;
use crate::select::taint::Effect;
use crate::view::Phase;

/// A node with 1.5 cores too much, and one with room.
fn world() -> World {
    World::new().node("n1", 8000).node("n2", 2000)
}

#[test]
fn some_pods_never_go() {
    let table: [(&str, Pod, Stay); 7] = [
        (
            "of a daemon set",
            {
                let mut p = replica("x-1").facts();
                p.daemon = true;
                from(p)
            },
            Stay::Daemon,
        ),
        ("a file of its node", pod("x-1").owner("Node", "n1"), Stay::Mirror),
        ("made by nobody", pod("x-1"), Stay::Bare),
        ("critical", replica("x-1").priority(2_000_000_000), Stay::Critical { priority: 2_000_000_000 }),
        ("in a namespace that is exempt", replica("x-1").namespace("kube-system"), Stay::Exempt),
        ("on its way out", replica("x-1").terminating(), Stay::Leaving),
        (
            "not known since when",
            {
                let mut p = replica("x-1").facts();
                p.accepted = None;
                from(p)
            },
            Stay::AgeUnknown,
        ),
    ];
    for (why, pod, want) in table {
        let mut world = world();
        let mut facts = pod.on("n1").facts();
        if want != Stay::AgeUnknown {
            facts.accepted = Some(at(-3600));
        }
        facts.started = Some(at(-3600));
        world.cluster.set_pod(&facts);
        // What is on its way out is still used, and its end alone would do.
        let uses = if want == Stay::Leaving { 1000 } else { 2000 };
        world.recent.pod(Uid::new("uid-x-1"), sample(0, 60, milli(uses)));
        let plan = world.plan();
        assert_eq!(plan.moves, [], "{why}");
        let stays: Vec<_> = plan.nodes[0].stays.iter().map(|(_, stay)| stay.clone()).collect();
        assert_eq!(stays, [want], "{why}");
    }
}

fn from(facts: crate::view::PodFacts) -> Pod {
    Pod::of(facts)
}

#[test]
fn a_pod_that_does_not_run_or_came_just_now_stays() {
    let mut world = world().pod("a-1", "n1", 2000);
    let mut facts = replica("a-1").on("n1").facts();
    (facts.accepted, facts.started) = (Some(at(-3600)), None);
    world.cluster.set_pod(&facts);
    assert_eq!(world.stay("a-1"), Some(Stay::NotRunning), "a container has never started");
    (facts.started, facts.phase) = (Some(at(-3600)), Phase::Pending);
    world.cluster.set_pod(&facts);
    assert_eq!(world.stay("a-1"), Some(Stay::NotRunning));
    (facts.accepted, facts.phase) = (Some(at(-599)), Phase::Running);
    world.cluster.set_pod(&facts);
    assert_eq!(world.stay("a-1"), Some(Stay::WarmUp { until: at(1) }), "ten minutes after it came");
    facts.accepted = Some(at(-600));
    world.cluster.set_pod(&facts);
    assert_eq!(world.stay("a-1"), None, "it goes");
}

type Switch = fn(&mut World);

#[test]
fn who_is_switched_off_stays() {
    let switches: [(&str, Switch); 4] = [
        ("the namespace", |w| w.off.namespaces.extend(["default".into()])),
        ("the pod", |w| w.off.pods.extend(["uid-a-1".into()])),
        ("by its labels", |w| {
            let selector = labelled("a");
            w.settings.exempt = Exempt { namespaces: Vec::new(), pod_selector: Some(selector) };
        }),
        ("by its namespace's name", |w| w.settings.exempt.namespaces.push("default".to_owned())),
    ];
    for (why, switch) in switches {
        let mut world = world().pod("a-1", "n1", 2000);
        assert_eq!(world.moves().len(), 1);
        switch(&mut world);
        assert_eq!(world.stay("a-1"), Some(Stay::Exempt), "{why}");
    }
    let mut world = world().pod_as(replica("a-1").label(SWITCH, "off"), "n1", 2000);
    assert_eq!(world.stay("a-1"), Some(Stay::Exempt), "by a label of its own");
}

#[test]
fn what_nobody_measured_of_late_stays() {
    let mut world = world().pod("a-1", "n1", 2000);
    world.cluster.advance(at(240));
    for name in ["n1", "n2"] {
        world.measure(name, 240, if name == "n1" { 8000 } else { 2000 });
    }
    assert_eq!(world.moves().len(), 1, "measured five minutes ago");
    world.cluster.advance(at(241));
    assert_eq!(world.stay("a-1"), Some(Stay::UseUnknown), "a second more is too long");
}

#[test]
fn a_pod_that_uses_little_is_not_worth_it() {
    let mut world = world().pod("a-1", "n1", 74);
    let little = Stay::UsesLittle { resource: Metered::Cpu, uses: 74_000_000, worth: 75_000_000 };
    assert_eq!(world.stay("a-1"), Some(little), "1.5 × 0.05 = 75m");
    let mut world = World::new().node("n1", 8000).node("n2", 2000).pod("a-1", "n1", 75);
    assert_eq!(world.moves(), pairs(&[("a-1", "n2")]));
}

#[test]
fn the_most_a_pod_used_of_late_must_fit_under_the_line() {
    // n2 uses 2; with the margin 6 may be used: 4 are left.
    for (why, high, stays) in [("4 fit", 4000, false), ("a thousandth more does not", 4001, true)] {
        let mut world = world();
        world.recent.pod(Uid::new("uid-a-1"), sample(-5000, 60, milli(high)));
        world = world.pod("a-1", "n1", 2000);
        assert_eq!(world.stay("a-1").is_some(), stays, "measured an hour and a half ago: {why}");
        if stays {
            let want = Stay::OverThere {
                node: "n2".into(),
                resource: Metered::Cpu,
                expected: 2_000_000_000,
                high: high * 1_000_000,
                limit: 6_000_000_000,
            };
            assert_eq!(world.stay("a-1"), Some(want));
        }
    }
}

/// A pod that asks for nothing, uses 2 cores and is measured since then; its workload was learned to use 4.5.
fn learned(since: i64) -> World {
    let mut world = world();
    let mut facts = replica("a-1").on("n1").facts();
    (facts.accepted, facts.started) = (Some(at(-7200)), Some(at(-7200)));
    let ask = crate::load::estimate::ContainerAsk { name: "main".into(), cpu_nano: None, memory_bytes: None };
    std::sync::Arc::make_mut(&mut facts.asks).containers.push(ask);
    world.cluster.set_pod(&facts);
    world.uses("a-1", since + 60, 2000);
    world.uses("a-1", 0, 2000);
    assert_eq!(world.moves().len(), 1, "2 + 2 is less than 6");
    let advice = Advice { cpu_nano: Some(4_500_000_000), memory_bytes: None };
    world.cluster.recommend(Recommendation {
        target: WorkloadRef {
            group: "apps".into(),
            kind: "ReplicaSet".into(),
            key: Key::new("default", "a"),
        },
        containers: [("main".into(), advice)].into(),
        success: true,
        name: "a".into(),
        ..Recommendation::default()
    });
    world.cluster.reestimate();
    world
}

#[test]
fn what_was_learned_counts_for_a_pod_until_it_is_known_for_an_hour() {
    let young = learned(-3599).stay("a-1");
    assert!(matches!(young, Some(Stay::NoNode { .. } | Stay::OverThere { .. })), "2 + 4.5 > 6: {young:?}");
    let known = learned(-3600).plan();
    let highs: Vec<_> = known.moves.iter().map(|one| one.high.cpu_nano / 1_000_000).collect();
    assert_eq!(highs, [2000], "what it was measured to use at most");
}

#[test]
fn a_pod_no_other_node_takes_stays_with_the_rules_that_refuse_it() {
    let mut world = World::new()
        .node("n1", 8000)
        .node("n2", 2000)
        .node_as(node("n3").cpu("10").memory("32Gi").taint("gpu", "", Effect::NoSchedule), 0)
        .pod_as(replica("a-1").selects(&[("disk", "fast")]), "n1", 2000);
    let refused = |rule, nodes| Refused { rule, nodes };
    let want = Stay::NoNode { refused: vec![refused(Filter::Taints, 1), refused(Filter::NodeAffinity, 2)] };
    assert_eq!(world.stay("a-1"), Some(want.clone()));
    assert_eq!(
        want.to_string(),
        "no other node takes it: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector"
    );
}

#[test]
fn without_load_rules_a_pod_may_come_straight_back_and_therefore_stays() {
    let world = World::by(None).node("n1", 8000).node("n2", 2000);
    // By requests n2 is fuller, so a scheduler that knows nothing else takes n1.
    let world = world.pod("a-1", "n1", 2000);
    let mut world = world.pod_as(pod("b-1").cpu("5").memory("8Gi").owner("ReplicaSet", "b"), "n2", 100);
    assert_eq!(world.stay("a-1"), Some(Stay::Returns));
    world.settings.closing = Closing::Taint;
    assert_eq!(world.moves(), pairs(&[("a-1", "n2")]), "a taint keeps it away");
}

#[test]
fn where_nothing_is_measured_nothing_goes() {
    let mut world = World::new().node("n1", 8000).pod("a-1", "n1", 2000);
    world.cluster.set_node(&node("n2").cpu("10").memory("32Gi").facts());
    assert_eq!(world.stay("a-1"), Some(Stay::UnknownThere { node: "n2".into() }));
}

#[test]
fn a_node_that_is_over_its_line_may_have_reasons_to_wait() {
    let fresh = || world().pod("a-1", "n1", 2000);
    assert_eq!(fresh().wait("n1"), None);

    let mut off = fresh();
    off.cluster.set_node(&node("n1").cpu("10").memory("32Gi").annotation(SWITCH, "off").facts());
    assert_eq!(off.wait("n1"), Some(Wait::Off));

    let mut settling = fresh();
    settling.moved(-59, "b-1", "n1", "n2");
    assert_eq!(settling.wait("n1"), Some(Wait::Settling { since: at(-59) }), "its window began 60 s ago");
    let mut settled = fresh();
    settled.moved(-60, "b-1", "n1", "n2");
    assert_eq!(settled.wait("n1"), None);

    let mut leaving = fresh().pod_as(replica("b-1").terminating(), "n1", 1500);
    assert_eq!(leaving.wait("n1"), Some(Wait::Leaving), "8 − 1.5 = 6.5");

    let mut passing = fresh();
    let World { cluster, recent, moves, off, settings } = &mut passing;
    let soon = |_: &PodView| Some(milli(400));
    let plan = plan(cluster, &Input { settings, recent, moves, off, soon: Some(&soon) });
    let want = Wait::Passing { resource: Metered::Cpu, soon: 6_400_000_000 };
    assert_eq!(plan.nodes[0].wait, Some(want), "8 − (2 − 0.4)");
}

#[test]
fn a_moment_over_the_line_is_not_enough() {
    let mut world = World::new().node("n1", 6000).node("n2", 2000).pod("a-1", "n1", 2000);
    for (seconds, goes) in [(60, false), (120, false), (180, false), (240, false), (300, true)] {
        world.cluster.advance(at(seconds));
        world.measure("n1", seconds, 8000);
        world.measure("n2", seconds, 2000);
        world.uses("a-1", seconds, 2000);
        assert_eq!(!world.moves().is_empty(), goes, "over its line for {seconds} s");
    }
    world.cluster.advance(at(330));
    world.measure("n1", 330, 6500);
    world.cluster.advance(at(360));
    world.measure("n1", 360, 8000);
    let wait = world.wait("n1");
    assert!(matches!(wait, Some(Wait::Brief { .. })), "at its line in between: {wait:?}");
}

#[test]
fn one_long_sample_is_still_one() {
    let mut world = World::new().node("n2", 1000);
    world.cluster.set_node(&node("n1").cpu("10").memory("32Gi").facts());
    world = world.pod("a-1", "n1", 2000);
    let one = sample(0, 600, milli(8000));
    world.cluster.sample("n1", one);
    world.recent.node(world.id("n1"), one);
    let want = Wait::Brief { since: at(-600), samples: 1, needed_seconds: 300 };
    assert_eq!(world.wait("n1"), Some(want));
}
