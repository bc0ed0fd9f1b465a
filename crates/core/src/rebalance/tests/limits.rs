//! How much is moved at most, and what never goes back.

use super::*;

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
    assert_eq!(elsewhere.stay("a-2"), None, "that one went elsewhere");
    let mut shorter = world();
    shorter.settings.dwell = SignedDuration::from_secs(1001);
    shorter.moved(-1001, "a-1", "n3", "n1");
    assert_eq!(shorter.stay("a-2"), None);
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
