//! Less important pods in the way of a more important one, and the node that is cleared for it.

use super::*;

fn important(revision: u64, more: Value) -> Value {
    let mut important = json!({"spec": {"priority": 1000}});
    merge(&mut important, more);
    pod("important", revision, important)
}

/// A pod that has begun to run there, and asks for so much.
fn runs(name: &str, node: &str, cpu: &str) -> Value {
    let asks = json!([{"name": "c", "resources": {"requests": {"cpu": cpu}}}]);
    pod(name, 1, json!({"spec": {"nodeName": node, "containers": asks}, "status": {"phase": "Running"}}))
}

/// A budget for all pods that lets so many go.
fn budget(revision: u64, allowed: u32) -> Value {
    json!({"metadata": {"name": "keep", "namespace": "default", "uid": "keep", "resourceVersion": revision.to_string()},
        "spec": {"selector": {}}, "status": {"disruptionsAllowed": allowed}})
}

fn set_budget(budget: &Value) -> Message {
    Message::Budget(Event::Applied(meta(budget), Budgets::read(&Tree::from(budget))))
}

/// The only action there is: a pod goes nowhere. Does it lose its node?
fn refused(state: &mut State) -> (String, bool) {
    let mut all = actions(state);
    assert_eq!(all.len(), 1, "{all:?}");
    let (words, Action::Refuse { pod, helps, forfeits, .. }) = all.remove(0) else { panic!("refused") };
    state.done(Outcome::Refused { pod, helps }, now(0));
    (words, forfeits)
}

#[tokio::test(start_paused = true)]
async fn a_more_important_pod_takes_the_place_of_a_lesser_one_if_nothing_else_helps() {
    // Requests fill the node; nothing measured says that its load would not fit.
    let pods = vec![pod("lesser", 1, on("n1")), important(2, json!({}))];
    let mut state = state_that(None, &[node("n1", "1")], &pods);
    let Some((words, Action::Preempt { pod: held, helps, .. })) = actions(&mut state).pop() else {
        panic!("preempts")
    };
    assert_eq!(words, "important in place of lesser on n1");
    state.done(Outcome::Refused { pod: held, helps }, now(0));
    let nominated = important(3, json!({"status": {"nominatedNodeName": "n1"}}));
    state.take(set_pod(&nominated), now(0));
    state.take(delete_pod(&pod("lesser", 4, json!({}))), now(0));
    state.take(set_pod(&pod("late", 5, json!({}))), now(0));
    tokio::time::advance(std::time::Duration::from_secs(1)).await;
    let words = self::words(&mut state);
    assert!(words[0] == "important to n1" && words[1].starts_with("late: "), "{words:?}");
}

#[tokio::test(start_paused = true)]
async fn nobody_goes_before_the_budget_lets_all_of_them_go_and_no_node_is_kept_meanwhile() {
    let pods = vec![runs("left", "n1", "450m"), runs("right", "n1", "450m"), important(2, json!({}))];
    let mut state = state_that(None, &[node("n1", "1")], &pods);
    let mut nominated = json!({"status": {"nominatedNodeName": "n1"}});
    for (revision, allowed, kept) in [(1, 0, 2), (2, 1, 1)] {
        state.take(set_budget(&budget(revision, allowed)), now(0));
        tokio::time::advance(Duration::from_secs(1)).await;
        let (words, forfeits) = refused(&mut state);
        let expected =
            "important: 0/1 nodes are available: 1 Insufficient cpu. preemption: disruption budgets";
        assert_eq!(words, format!("{expected} keep {kept} of 2 pod(s) that would have to go from n1."));
        assert!(forfeits, "{allowed} may go: of what is free now others may have their part");
        state.take(set_pod(&important(2 + revision, nominated.take())), now(0));
    }
    state.take(set_budget(&budget(2, 1)), now(1));
    tokio::time::advance(Duration::from_secs(1)).await;
    assert_eq!(words(&mut state), Vec::<String>::new(), "the same again is no news");
    state.take(set_budget(&budget(3, 2)), now(1));
    assert_eq!(words(&mut state), ["important in place of right, left on n1"]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_goes_lets_those_try_again_who_wait_for_a_victim() {
    let mut state =
        state_that(None, &[node("n1", "1")], &[runs("lesser", "n1", "1"), important(2, json!({}))]);
    state.take(set_budget(&budget(1, 0)), now(0));
    refused(&mut state);
    tokio::time::advance(Duration::from_secs(1)).await;
    state.take(Message::Budget(Event::Deleted(meta(&budget(1, 0)))), now(1));
    assert_eq!(words(&mut state), ["important in place of lesser on n1"]);
}

#[tokio::test(start_paused = true)]
async fn the_api_asks_no_budget_about_who_has_not_begun_to_run_or_is_leaving() {
    let leaving = json!({"metadata": {"deletionTimestamp": stamp(0)}, "status": {"phase": "Running"}});
    for (more, why) in [(json!({}), "its image is not there, say"), (leaving, "it is only waited for")] {
        let mut lesser = pod("lesser", 1, on("n1"));
        merge(&mut lesser, more);
        let mut state = state_that(None, &[node("n1", "1")], &[lesser, important(2, json!({}))]);
        state.take(set_budget(&budget(1, 0)), now(0));
        let found = actions(&mut state);
        assert!(matches!(found[..], [(_, Action::Preempt { .. })]), "{why}: {found:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_keeps_its_node_while_there_is_something_to_wait_for_there() {
    let nominated = || important(2, json!({"status": {"nominatedNodeName": "n1"}}));
    let leaving = json!({"metadata": {"deletionTimestamp": stamp(0)}});
    let mut lesser = pod("lesser", 1, on("n1"));
    merge(&mut lesser, leaving);
    let mut state = state_that(None, &[node("n1", "1")], &[lesser, nominated()]);
    assert!(!refused(&mut state).1, "who goes for it is still leaving");

    let equal = json!({"spec": {"priority": 1000, "nodeName": "n1"}});
    let mut state = state_that(None, &[node("n1", "1")], &[pod("equal", 1, equal), nominated()]);
    assert!(refused(&mut state).1, "somebody else has its place");

    let mut state = super::state(&[node("n1", "8")], &[nominated()]);
    state.take(measured(0, &[("n1", "7")]), now(0));
    assert!(!refused(&mut state).1, "what was measured before they went is still there");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_was_cleared_for_a_pod_is_taken_though_another_one_is_better() {
    let nominated = important(2, json!({"status": {"nominatedNodeName": "n1"}}));
    let mut state = state_that(None, &[node("n1", "2"), node("n2", "64")], &[nominated]);
    assert_eq!(words(&mut state), ["important to n1"]);
    let nominated = important(2, json!({"status": {"nominatedNodeName": "n1"}}));
    let mut state = state_that(None, &[node("n1", "500m"), node("n2", "64")], &[nominated]);
    assert_eq!(words(&mut state), ["important to n2"], "it does not do any more");
}

#[tokio::test(start_paused = true)]
async fn who_was_promised_a_node_is_outdone_by_who_is_more_important_and_by_nobody_else() {
    let promised = |name: &str, priority: i32| {
        let more = json!({"spec": {"priority": priority, "schedulerName": "another"},
            "status": {"nominatedNodeName": "n1"}});
        pod(name, 1, more)
    };
    let pods =
        [pod("lesser", 1, on("n1")), promised("less", 10), promised("equal", 1000), important(2, json!({}))];
    let mut state = state_that(None, &[node("n1", "2")], &pods);
    let Some((words, Action::Preempt { outdone, .. })) = actions(&mut state).pop() else {
        panic!("preempts")
    };
    assert_eq!(words, "important in place of lesser on n1", "1 of 2 CPUs is promised to its equal");
    assert_eq!(outdone.iter().map(|pod| &*pod.key.name).collect::<Vec<_>>(), ["less"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_is_told_why_nobody_can_go_for_it() {
    let nobody = "0/1 nodes are available: 1 No preemption victims found for incoming pod.";
    let nominated = json!({"status": {"nominatedNodeName": "n1"}});
    let never = json!({"spec": {"preemptionPolicy": "Never"}});
    let leaving = json!({"metadata": {"deletionTimestamp": stamp(0)}});
    for (there, more, said, why) in [
        (json!({"spec": {"priority": 1000}}), json!({}), nobody, "nobody is less important"),
        (json!({}), never, "not eligible due to preemptionPolicy=Never.", "it says so"),
        (
            leaving,
            nominated,
            "not eligible due to a terminating pod on the nominated node.",
            "it is waited for",
        ),
    ] {
        let mut other = pod("other", 1, on("n1"));
        merge(&mut other, there);
        let mut state = state_that(None, &[node("n1", "1")], &[other, important(2, more)]);
        let (_, action) = actions(&mut state).remove(0);
        let told = action.refusal().map(|(_, told)| told.to_owned()).unwrap_or_default();
        let expected = format!("0/1 nodes are available: 1 Insufficient cpu. preemption: {said}");
        assert_eq!(told, expected, "{why}");
    }
}
