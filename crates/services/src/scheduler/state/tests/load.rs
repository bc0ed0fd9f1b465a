//! Load in decisions: hot nodes, cooling marks, annotations, and who is woken by them.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_hot_node_is_avoided_though_it_has_the_most_free_requests() {
    let mut state = state(&[node("large", "32"), node("small", "8")], &[]);
    state.take(measured(0, &[("large", "24"), ("small", "100m")]), now(0));
    state.take(set_pod(&pod("a", 1, json!({}))), now(0));
    assert_eq!(words(&mut state), ["a to small"], "24 of 32 CPUs are over 65 %");
    let notices = state.notices();
    let told = |from: &str| notices.iter().find(|(who, ..)| *who == from).map(|(.., what)| what.clone());
    assert_eq!(told("node").as_deref(), Some("hot, 75% cpu over its target 65%"));
    let words = told("scheduler").unwrap();
    assert!(words.starts_with("to small, load score ") && words.contains("large avoided: "), "{words}");

    let mut blind = state_that(None, &[node("large", "32"), node("small", "8")], &[pod("b", 2, json!({}))]);
    blind.take(measured(0, &[("large", "24"), ("small", "100m")]), now(0));
    assert_eq!(self::words(&mut blind), ["b to large"], "by requests alone it would be taken");
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_not_sent_back_while_its_node_cools_and_may_be_after() {
    let cools = |revision: u64, until: Value| {
        let mut value = node("n1", "32");
        value["metadata"]["annotations"] = json!({COOLING: until});
        value["metadata"]["resourceVersion"] = json!(revision.to_string());
        value
    };
    let mut state = state(&[node("n1", "32"), node("n2", "4")], &[pod("victim", 1, on("n1"))]);
    // The mark is there before the victim goes, and its successor comes at once.
    state.take(set_node(&cools(2, json!(stamp(60)))), now(0));
    state.take(delete_pod(&pod("victim", 3, json!({}))), now(0));
    state.take(set_pod(&pod("successor", 4, json!({}))), now(0));
    assert_eq!(words(&mut state), ["successor to n2"], "n1 has more room, but cools");
    let (.., told) = state.notices().remove(0);
    assert!(told.starts_with("to n2, ") && told.contains("n1 avoided: "), "{told}");

    let only = json!({"spec": {"nodeSelector": {"only": "n1"}}});
    let mut marked = cools(5, json!(stamp(60)));
    marked["metadata"]["labels"] = json!({"only": "n1"});
    state.take(set_node(&marked), now(0));
    state.take(set_pod(&pod("stubborn", 6, only)), now(0));
    let (words, Action::Refuse { pod: held, helps, .. }) = actions(&mut state).remove(0) else {
        panic!("refused")
    };
    assert!(words.contains("1 node(s) were cooling down"), "{words}");
    state.done(Outcome::Refused { pod: held, helps }, now(0));

    tokio::time::advance(std::time::Duration::from_secs(59)).await;
    state.advance(now(59));
    let Some(Action::Refuse { pod: held, helps, .. }) = state.next(now(59)) else { panic!("it still cools") };
    state.done(Outcome::Refused { pod: held, helps }, now(59));
    assert!(helps.load, "time alone will help");
    tokio::time::advance(std::time::Duration::from_secs(2)).await;
    state.advance(now(61));
    let Some(Action::Bind { pod: bound, node, .. }) = state.next(now(61)) else { panic!("bound") };
    assert_eq!((&*bound.meta.key.name, &*node), ("stubborn", "n1"), "it has cooled");
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_no_time_or_is_over_keeps_nobody_away() {
    for mark in [json!("soon"), json!(""), json!(stamp(-1))] {
        let mut marked = node("n1", "8");
        marked["metadata"]["annotations"] = json!({COOLING: mark});
        let mut state = state(&[marked], &[pod("a", 1, json!({}))]);
        assert_eq!(words(&mut state), ["a to n1"], "{mark}");
    }
}

#[test]
fn annotations_of_another_policy_are_noticed() {
    let mut state = empty(Some(&Rules::default()));
    let ours = publish::fingerprint(&Rules::default());
    let annotated = |name: &str, revision: u64, policy: Option<&str>| {
        let mut node = node(name, "4");
        node["metadata"]["resourceVersion"] = json!(revision.to_string());
        node["metadata"]["annotations"] = json!(policy.map(|text| json!({publish::POLICY: text})));
        node
    };
    for (step, (value, foreign)) in [
        (annotated("a", 1, None), 0),
        (annotated("a", 2, Some(&ours)), 0),
        (annotated("a", 3, Some("another")), 1),
        (annotated("b", 4, Some("another")), 2),
        (annotated("b", 5, Some("another")), 2),
        (annotated("a", 6, Some(&ours)), 1),
    ]
    .into_iter()
    .enumerate()
    {
        state.take(set_node(&value), now(1));
        assert_eq!(state.foreign(), foreign, "step {step}");
    }
    state.take(Message::Node(Event::Deleted(meta(&annotated("b", 7, None)))), now(2));
    assert_eq!(state.foreign(), 0, "it is gone");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_is_only_annotated_wakes_nobody_but_those_who_wait_for_load() {
    // Too large for the node, whatever its load.
    let large = json!({"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "4"}}}]}});
    let mut state = state(&[node("n", "1")], &[pod("large", 5, large)]);
    let Some((_, Action::Refuse { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("refused")
    };
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let mut annotated = node("n", "1");
    annotated["metadata"]["resourceVersion"] = json!("6");
    annotated["metadata"]["annotations"] = json!({"cpu_usage_avg_5m": "0.10000,2023-11-14T22:13:20Z"});
    state.take(set_node(&annotated), now(1));
    assert!(words(&mut state).is_empty(), "an annotation makes no room");
    let mut larger = node("n", "8");
    larger["metadata"]["resourceVersion"] = json!("7");
    state.take(set_node(&larger), now(2));
    assert_eq!(words(&mut state), ["large to n"], "more CPUs do");
}

#[tokio::test(start_paused = true)]
async fn load_that_fell_as_an_annotation_says_wakes_who_waits_for_it() {
    let annotated = |revision: u64, used: &str| {
        let mut node = node("n", "8");
        node["metadata"]["resourceVersion"] = json!(revision.to_string());
        node["metadata"]["annotations"] = json!({"cpu_usage_avg_5m": format!("{used},{}", stamp(0))});
        node
    };
    for (used, expected, why) in
        [("0.10000", true, "it fell"), ("0.80000", false, "it is over its limit still")]
    {
        let mut state = state(&[annotated(1, "0.90000")], &[pod("a", 5, json!({}))]);
        let (held, helps) = refused(&mut state);
        assert!(helps.load);
        state.done(Outcome::Refused { pod: held, helps }, now(0));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(words(&mut state).is_empty(), "nothing has happened");
        state.take(set_node(&annotated(6, used)), now(1));
        assert_eq!(words(&mut state).contains(&"a to n".to_owned()), expected, "{why}");
    }
}
