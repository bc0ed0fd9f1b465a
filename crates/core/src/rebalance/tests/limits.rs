//! How much is moved at most, and what never goes back.

use super::*;
use crate::select::taint::Effect;

/// A node that has far too much, in pods of one core each, and two that are idle.
fn world(pods: i64) -> World {
    let world = World::new().node("n1", 10_000).node("n2", 0).node("n3", 0);
    (0..pods).fold(world, |world, i| world.pod(&format!("{}-1", letter(i)), "n1", 1000))
}

fn letter(i: i64) -> char {
    char::from(b'a' + u8::try_from(i).expect("few pods"))
}

#[test]
fn no_more_leave_a_node_within_an_hour_than_its_budget_says() {
    let mut free = world(8);
    assert_eq!(free.moves().len(), 4, "10 − 6.5 = 3.5, a core each");
    for (limit, before, want) in [(2, 0, 2), (2, 1, 1), (4, 3, 1), (1, 0, 1), (0, 0, 0)] {
        let mut world = world(8);
        world.settings.per_node = limit;
        for i in 0..before {
            world.moved(-3599 + i, "z-1", "n1", "n9");
        }
        assert_eq!(world.moves().len(), want, "{limit} within an hour, {before} before");
    }
    let mut later = world(8);
    later.settings.per_node = 1;
    later.moved(-3600, "z-1", "n1", "n9");
    assert_eq!(later.moves().len(), 1, "an hour ago is not within the hour");
    assert_eq!(later.stay("h-1"), Some(Stay::NodeLimit { limit: 1 }));
    later.moved(-61, "y-1", "n1", "n9");
    assert_eq!(later.wait("n1"), Some(Wait::NodeLimit { limit: 1 }));
}

#[test]
fn no_more_of_a_workload_are_moved_within_an_hour_than_its_budget_says() {
    let world = World::new().node("n1", 10_000).node("n2", 0).node("n3", 0);
    let world = ["web-1", "web-2", "web-3"].iter().fold(world, |world, name| world.pod(name, "n1", 1000));
    let mut world = world.pod("db-1", "n1", 1000);
    let gone: Vec<_> = world.moves().into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(gone, ["web-1", "web-2", "db-1"]);
    assert_eq!(world.stay("web-3"), Some(Stay::WorkloadLimit { limit: 2 }));
    world.moved(-600, "web-9", "n7", "n8");
    let gone: Vec<_> = world.moves().into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(gone, ["web-1", "db-1"], "one went from another node before");
}

#[test]
fn no_more_are_moved_within_an_hour_than_the_budget_says() {
    let mut world = world(8);
    world.settings.per_hour = 2;
    assert_eq!(world.moves().len(), 2);
    world.moved(-600, "z-1", "n7", "n8");
    assert_eq!(world.moves().len(), 1);
    assert_eq!(world.stay("h-1"), Some(Stay::HourLimit { limit: 2 }));
    world.moved(-500, "y-1", "n7", "n8");
    assert_eq!(world.wait("n1"), Some(Wait::HourLimit { limit: 2 }));
}

#[test]
fn a_disruption_budget_lets_as_many_go_as_it_allows_and_then_others_go() {
    let budget = |name: &str, app: &str, allowed| Budget {
        key: Key::new("default", name),
        selector: labelled(app),
        allowed,
        disrupted: Vec::new(),
    };
    let world = World::new().node("n1", 9000).node("n2", 0).node("n3", 0);
    let mut world = world.pod("web-1", "n1", 1000).pod("web-2", "n1", 1000).pod("db-1", "n1", 900);
    world.cluster.set_budgets(vec![budget("one", "web", 1)]);
    let gone: Vec<_> = world.moves().into_iter().map(|(pod, _)| pod).collect();
    assert_eq!(gone, ["web-1", "db-1"], "the second web is one too many");
    assert_eq!(world.stay("web-2"), Some(Stay::Budget { budget: "default/one".into() }));
    world.cluster.set_budgets(vec![budget("one", "web", 5), budget("two", "web", 5)]);
    let both = Stay::Budgets { budgets: vec!["default/one".into(), "default/two".into()] };
    assert_eq!(world.stay("web-1"), Some(both));
}

#[test]
fn a_pod_that_was_moved_stays_for_its_dwell_time_and_then_may_go_on() {
    let world = || {
        let mut world = World::new().node("n1", 8000).node("n2", 2000);
        let mut facts = replica("a-2").on("n1").facts();
        (facts.accepted, facts.started) = (Some(at(-1000)), Some(at(-1000)));
        world.cluster.set_pod(&facts);
        world.uses("a-2", 0, 2000);
        world
    };
    let mut moved = world();
    moved.moved(-1001, "a-1", "n3", "n1");
    assert_eq!(moved.stay("a-2"), Some(Stay::Dwells { until: at(-1001 + 7200) }));
    let mut earlier = world();
    earlier.moved(-999, "a-1", "n3", "n1");
    assert_eq!(earlier.stay("a-2"), None, "it was there before, so it is another one");
    let mut elsewhere = world();
    elsewhere.moved(-1001, "a-1", "n3", "n2");
    assert_eq!(
        elsewhere.stay("a-2"),
        Some(Stay::Dwells { until: at(-1001 + 7200) }),
        "it was expected on another node, and came to this one"
    );
    let mut other = world();
    other.moved(-1001, "b-1", "n3", "n1");
    assert_eq!(other.stay("a-2"), None, "another workload's");
    let mut shorter = world();
    shorter.settings.dwell = SignedDuration::from_secs(1001);
    shorter.moved(-1001, "a-1", "n3", "n1");
    assert_eq!(shorter.stay("a-2"), None);
}

/// The successor of a pod of workload `a` that is on a node since a second, and uses so much.
fn heir(world: &mut World, (name, node): (&str, &str), since: i64, cpu: i64) {
    let mut facts = replica(name).on(node).facts();
    (facts.created, facts.accepted, facts.started) = (Some(at(since)), Some(at(since)), Some(at(since)));
    world.cluster.set_pod(&facts);
    world.uses(name, 0, cpu);
}

#[test]
fn a_successor_made_within_the_same_second_stays_as_well_since_objects_know_whole_seconds() {
    for (late, stays) in [(0, true), (300, true), (999, true), (1000, false)] {
        let mut world = World::new().node("n1", 8000).node("n2", 2000);
        heir(&mut world, ("a-2", "n1"), -1000, 2000);
        world.moved(-1000, "a-1", "n3", "n1");
        let mut sent = world.moves.iter().next().expect("it was noted").clone();
        sent.at += SignedDuration::from_millis(late);
        world.moves = Moves::default();
        world.moves.note(sent.clone());
        let until = sent.at + SignedDuration::from_hours(2);
        assert_eq!(
            world.stay("a-2"),
            stays.then_some(Stay::Dwells { until }),
            "sent {late} ms into the second"
        );
    }
}

#[test]
fn each_move_is_followed_by_one_successor_and_others_of_the_workload_may_go() {
    let mut world = World::new().node("n1", 8000).node("n2", 2000);
    heir(&mut world, ("a-2", "n1"), -1000, 100);
    heir(&mut world, ("a-3", "n1"), -900, 2000);
    world.moved(-1000, "a-1", "n3", "n1");
    assert!(matches!(world.stay("a-2"), Some(Stay::Dwells { .. })), "made when the move was");
    assert_eq!(
        world.moves(),
        pairs(&[("a-3", "n2")]),
        "there is one more of them now, and nobody moved that"
    );
    // Moved in turn: what is made then is of the later move.
    world.moves.follow(world.cluster.snapshot());
    world.cluster.remove_pod("uid-a-2");
    world.moved(-800, "a-2", "n1", "n2");
    let mut sent = world.moves.iter().next_back().expect("it was noted").clone();
    world.moves.forget(&sent.uid.clone());
    sent.uid = "uid-a-2".into();
    world.moves.note(sent);
    heir(&mut world, ("a-4", "n1"), -800, 100);
    let until = at(-800 + 7200);
    assert_eq!(world.stay("a-4"), Some(Stay::Dwells { until }), "though it came back");
}

#[test]
fn where_a_successor_landed_is_remembered_when_it_is_gone_and_closes_the_way_back() {
    // Sent from n2 to n3, landed on n1: the way from n1 to n2 is closed, that from n3 to n2 is not.
    let mut world = World::new().node("n1", 8000).node("n2", 2000).pod("b-1", "n1", 2000);
    world.moved(-1000, "a-1", "n2", "n3");
    assert_eq!(world.moves(), pairs(&[("b-1", "n2")]), "expected on n3");
    heir(&mut world, ("a-2", "n1"), -1000, 100);
    let swap = Stay::Swap { node: "n2".into(), pod: "default/a-1".into() };
    assert_eq!(world.stay("b-1"), Some(swap.clone()), "found on n1");
    world.moves.follow(world.cluster.snapshot());
    world.cluster.remove_pod("uid-a-2");
    assert_eq!(world.stay("b-1"), Some(swap), "it was there");
    let mut other = World::new().node("n3", 8000).node("n2", 2000).pod("b-1", "n3", 2000);
    other.cluster.set_node(&node("n1").cpu("10").memory("32Gi").taint("gpu", "", Effect::NoSchedule).facts());
    other.moved(-1000, "a-1", "n2", "n3");
    assert!(matches!(other.stay("b-1"), Some(Stay::Swap { .. })), "as far as is known");
    heir(&mut other, ("a-2", "n1"), -1000, 100);
    assert_eq!(other.stay("b-1"), None, "nothing came to n3");
}

#[test]
fn a_pod_that_is_sent_away_again_is_remembered_as_it_was_sent_last() {
    let mut world = World::new();
    let send = |world: &mut World, seconds, to: &str| {
        world.moved(seconds, "a-1", "n1", to);
        let mut sent = world.moves.iter().find(|one| one.at == at(seconds)).expect("it was noted").clone();
        world.moves.forget(&sent.uid.clone());
        sent.uid = "uid-a-1".into();
        world.moves.note(sent);
    };
    send(&mut world, 10, "n2");
    send(&mut world, 5, "n3");
    let known =
        |world: &World| world.moves.iter().map(|one| (one.at, one.to.to_string())).collect::<Vec<_>>();
    assert_eq!(known(&world), [(at(10), "n2".to_owned())], "what an old text says is not newer");
    // To the second when what is moved is forgotten.
    send(&mut world, 7210, "n3");
    assert_eq!(known(&world), [(at(7210), "n3".to_owned())]);
    world.moves.expire(at(7211), SignedDuration::from_hours(2));
    assert_eq!(known(&world).len(), 1);
}

#[test]
fn two_nodes_do_not_swap_pods() {
    let mut world = World::new().node("n1", 8000).node("n2", 2000).pod("a-1", "n1", 2000);
    world.moved(-7199, "b-1", "n2", "n1");
    assert_eq!(world.stay("a-1"), Some(Stay::Swap { node: "n2".into(), pod: "default/b-1".into() }));
    let mut later = World::new().node("n1", 8000).node("n2", 2000).pod("a-1", "n1", 2000);
    later.moved(-7200, "b-1", "n2", "n1");
    assert_eq!(later.moves(), pairs(&[("a-1", "n2")]), "that was long ago");
}

#[test]
fn what_is_on_its_way_to_a_node_counts_there_until_it_is_measured() {
    // 3.5 + 2 ≤ 6, and with 1 on its way it is more.
    let mut world = World::new().node("n1", 8000).node("n2", 3500).pod("a-1", "n1", 2000);
    assert_eq!(world.moves().len(), 1);
    world.moved(-59, "b-1", "n3", "n2");
    assert!(matches!(world.stay("a-1"), Some(Stay::OverThere { expected: 4_500_000_000, .. })));
    let mut seen = World::new().node("n1", 8000).node("n2", 3500).pod("a-1", "n1", 2000);
    seen.moved(-60, "b-1", "n3", "n2");
    assert_eq!(seen.moves().len(), 1, "the whole window is after the move");
}

#[test]
fn a_move_is_remembered_once_and_as_long_as_it_matters() {
    let mut world = World::new();
    world.moved(10, "a-1", "n1", "n2");
    world.moved(10, "a-1", "n1", "n2");
    world.moved(5, "b-1", "n1", "n2");
    let names = |moves: &Moves| moves.iter().map(|one| one.pod.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&world.moves), ["b-1", "a-1"], "by time, each once");
    world.moves.expire(at(7205), SignedDuration::from_hours(2));
    assert_eq!(names(&world.moves), ["b-1", "a-1"]);
    world.moves.expire(at(7206), SignedDuration::from_hours(2));
    assert_eq!(names(&world.moves), ["a-1"]);
    world.moves.expire(at(3611), SignedDuration::from_secs(1));
    assert_eq!(names(&world.moves), [""; 0], "an hour is the least");
}

#[test]
fn a_node_a_little_over_the_line_up_to_which_pods_are_placed_gives_up_nothing() {
    // 6.5 of ten cores by the rules, and a core of slack.
    for (used, gap) in [(6400, None), (7000, None), (7500, None), (7600, Some(100)), (9000, Some(1500))] {
        let mut world = World::new().node("n1", used).node("n2", 0).pod("a-1", "n1", 2000);
        world.settings.slack = Settings::default().slack;
        let plan = world.plan();
        assert_eq!(plan.moves.first().map(|one| one.gap.cpu_nano / 1_000_000), gap, "{used}");
    }
    let mut memory = World::new().node("n1", 1000).node("n2", 0).pod("a-1", "n1", 1000);
    memory.settings.slack = Settings::default().slack;
    let (id, settings) = (memory.id("n1"), memory.settings.clone());
    let lines = super::super::over::Lines::of(&mut memory.cluster, &settings, id);
    assert_eq!(lines.targets.memory, Ratio::from_f64(0.9), "memory has no slack");
}

#[test]
fn slack_never_takes_a_line_past_all_a_node_has() {
    let settings = Settings { slack: Ratio::from_nano(300_000_000), ..Settings::default() };
    let of = |percent: i64| settings.line(Metered::Cpu, Ratio::from_nano(percent * 10_000_000));
    assert_eq!([of(65), of(80), of(100)].map(|line| line.nano() / 10_000_000), [95, 100, 100]);
    // Where rules let nodes be filled further, it is as they say.
    assert_eq!(of(120).nano(), 1_200_000_000);
}
