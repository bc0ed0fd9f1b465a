//! Several names with rules of their own, and what is done when every node is over its line.

use super::*;

#[tokio::test(start_paused = true)]
async fn each_name_has_rules_of_its_own_and_strangers_are_left_alone() {
    let profiles = vec![
        SchedulerProfile::new("strict", Some(line(0.6))),
        SchedulerProfile::new("lenient", Some(line(0.8))),
    ];
    let pods = [asking("a", "strict"), asking("b", "lenient"), asking("c", "another")];
    let mut state = half_used(profiles, &pods);
    assert_eq!(
        words(&mut state),
        ["a: 0/1 nodes are available: 1 node(s) would pass the load line.", "b to n1"],
        "5 + 2 is over 6 and not over 8; c is none of ours"
    );
}

#[tokio::test(start_paused = true)]
async fn another_configuration_holds_for_pods_that_wait_already() {
    let mut state = half_used(
        vec![SchedulerProfile::new("strict", Some(line(0.6)))],
        &[asking("a", "strict"), asking("b", "lenient")],
    );
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("5 + 2 is over 6")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    assert!(words(&mut state).is_empty(), "b is nobody's");
    tokio::time::advance(Duration::from_secs(1)).await;
    state.configure(&configuration(vec![SchedulerProfile::new("lenient", Some(line(0.8)))]), now(1));
    assert_eq!(words(&mut state), ["b to n1"], "now b is ours and a is not");
    state.configure(&configuration(vec![SchedulerProfile::new("strict", None)]), now(1));
    assert_eq!(words(&mut state), ["a to n1"], "and by requests alone there is room");
}

#[tokio::test(start_paused = true)]
async fn which_nodes_are_hot_is_said_by_the_targets_in_force_at_once() {
    let profile = |share: Option<f64>| configuration(vec![SchedulerProfile::new("ours", share.map(line))]);
    let mut state = half_used(profile(Some(0.4)).profiles, &[]);
    let hot = |state: &State| state.heat().map(|heat| (heat.hot(), heat.node_seconds()));
    assert_eq!(hot(&state), Some((1, 15)), "5 of 10 are over 0.4");
    state.configure(&profile(Some(0.9)), now(1));
    assert_eq!(hot(&state), Some((0, 15)), "and not over 0.9; what was is not undone");
    state.configure(&profile(None), now(2));
    assert_eq!(hot(&state), None, "nobody looks");
    state.configure(&profile(Some(0.4)), now(3));
    let measured = Measured { nodes: vec![sample("n1", 15, 5000)], ..Measured::default() };
    state.take(Message::Measured(Ok(measured)), now(15));
    assert_eq!(hot(&state), Some((1, 15)), "nodes that were known before are looked at");
}

#[tokio::test(start_paused = true)]
async fn when_every_node_is_over_its_line_the_least_bad_is_taken_after_a_while_if_that_is_wanted() {
    let after = SignedDuration::from_secs(20);
    let mut profile = SchedulerProfile::new("patient", Some(line(0.6)));
    profile.when_overloaded = WhenOverloaded::LeastBad { after };
    let mut state = half_used(vec![profile], &[asking("a", "patient")]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("5 + 2 is over 6, and it has not waited yet")
    };
    let start = Instant::now();
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    assert_eq!(state.due(now(0)).map(|due| due - start), Some(Duration::from_secs(20)), "not after 30 s");
    tokio::time::advance(Duration::from_secs(19)).await;
    assert!(words(&mut state).is_empty());
    tokio::time::advance(Duration::from_secs(1)).await;
    let Some(Action::Bind { node, remark, .. }) = state.next(now(20)) else { panic!("it goes somewhere") };
    assert_eq!(&*node, "n1");
    assert_eq!(
        remark.as_deref(),
        Some("every node was over its load limits for 20 s; this one is over by least, 10% of it"),
        "5 + 2 − 6 is one CPU of ten"
    );
}
