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

#[tokio::test(start_paused = true)]
async fn only_while_load_kept_it_from_a_node_has_a_pod_waited_for_the_least_bad_one() {
    let mut profile = SchedulerProfile::new("patient", Some(line(0.6)));
    profile.when_overloaded = WhenOverloaded::LeastBad { after: SignedDuration::from_secs(20) };
    // Five of ten CPUs are used, and nine are asked for.
    let asks = json!([{"name": "c", "resources": {"requests": {"cpu": "9"}}}]);
    let full = pod("full", 1, json!({"spec": {"nodeName": "n1", "containers": asks}}));
    let mut state = half_used(vec![profile], &[full.clone(), asking("a", "patient")]);
    let turn = |state: &mut State| {
        let mut all = actions(state);
        assert_eq!(all.len(), 1, "{all:?}");
        match all.remove(0) {
            (words, Action::Refuse { pod, helps, .. }) => {
                state.done(Outcome::Refused { pod, helps }, now(0));
                words.rsplit_once("1 ").unwrap_or_default().1.to_owned()
            }
            (words, _) => words,
        }
    };
    assert_eq!(turn(&mut state), "Insufficient cpu.");
    tokio::time::advance(Duration::from_mins(10)).await;
    assert_eq!(turn(&mut state), "Insufficient cpu.", "it is looked at now and then");
    state.take(delete_pod(&full), now(0));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(turn(&mut state), "node(s) would pass the load line.", "that is new");
    tokio::time::advance(Duration::from_secs(10)).await;
    // It is full again for a moment: what was waited for is over.
    let mut again = full.clone();
    again["metadata"]["uid"] = json!("again");
    again["metadata"]["resourceVersion"] = json!("2");
    state.take(set_pod(&again), now(0));
    state.take(
        set_node(&{
            let mut node = node("n1", "10");
            node["metadata"]["resourceVersion"] = json!("2");
            node["metadata"]["labels"] = json!({"news": "some"});
            node
        }),
        now(0),
    );
    assert_eq!(turn(&mut state), "Insufficient cpu.");
    state.take(delete_pod(&again), now(0));
    tokio::time::advance(Duration::from_secs(10)).await;
    assert_eq!(
        turn(&mut state),
        "node(s) would pass the load line.",
        "20 s after it was first refused for load"
    );
    tokio::time::advance(Duration::from_secs(20)).await;
    assert_eq!(turn(&mut state), "a to n1", "and now for 20 s on end");
}
