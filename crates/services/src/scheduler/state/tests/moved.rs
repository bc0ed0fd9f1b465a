//! What nodes say was moved from them: room is kept for it, and it is explained.

use super::*;
use loadline_api::rebalance::MOVED;

/// A pod of a replica set, made at that second.
fn replica(name: &str, of: &str, made: i64, revision: u64) -> Value {
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": of, "uid": of, "controller": true}]);
    pod(name, revision, json!({"metadata": {"ownerReferences": owner, "creationTimestamp": stamp(made)}}))
}

/// n1, from which web-1 was moved to n2 at second 10, or not.
fn hot(revision: u64, moved: bool) -> Value {
    let said = json!([{"at": stamp(10), "pod": "default/web-1", "uid": "u1", "workload": "default/ReplicaSet/web",
        "to": "n2", "cpuNano": 8_000_000_000_i64, "memoryBytes": 0, "because": "cpu of n1 is 1500m over its line"}]);
    let mut node = node("n1", "4");
    node["metadata"]["resourceVersion"] = json!(revision.to_string());
    node["metadata"]["annotations"] =
        json!({COOLING: stamp(600), MOVED: if moved { said.to_string() } else { "[]".into() }});
    node
}

/// 10.4 of the 16 cores of n2 may be used, and 2 are; 2.6 of the 4 of n3, and 1 is.
fn world(moved: bool) -> State {
    let mut state = state(&[hot(1, moved), node("n2", "16"), node("n3", "4")], &[]);
    state.take(measured(11, &[("n1", "3"), ("n2", "2"), ("n3", "1")]), now(11));
    state.advance(now(12));
    state
}

fn next(state: &mut State, second: i64) -> String {
    match state.next(now(second)) {
        Some(Action::Bind { pod, node, .. }) => format!("{} to {node}", pod.meta.key.name),
        other => panic!("bound, not {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_the_room_of_a_moved_pod_but_its_successor() {
    let other = replica("other", "other", 12, 2);
    let mut without = world(false);
    without.take(set_pod(&other), now(12));
    assert_eq!(next(&mut without, 12), "other to n2", "which is emptier");

    let mut state = world(true);
    state.take(set_pod(&other), now(12));
    assert_eq!(next(&mut state, 12), "other to n3", "2 + 8 leave 0.4 on n2");
    state.take(set_pod(&replica("web-2", "web", 12, 3)), now(12));
    assert_eq!(next(&mut state, 12), "web-2 to n2");
    assert_eq!(state.cluster().awaited_count(), 0);

    // It could not go after all, or nobody came in time.
    for (change, second) in [(true, 13), (false, 131)] {
        let mut state = world(true);
        assert_eq!(state.cluster().awaited_count(), 1);
        if change {
            state.take(set_node(&hot(2, false)), now(second));
        }
        state.advance(now(second));
        assert_eq!(state.cluster().awaited_count(), 0, "at {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_moved_pod_and_its_successor_are_explained_in_the_words_of_the_event() {
    let mut state = world(true);
    let words = "goes to n2: cpu of n1 is 1500m over its line";
    let gone = state.explain(&Key::new("default", "web-1"), 10, now(12)).expect("it was moved");
    assert_eq!((&gone["moves"][0]["message"], &gone["moves"][0]["from"]), (&json!(words), &json!("n1")));
    assert_eq!((&gone["node"], &gone["now"]), (&json!(null), &json!(null)));
    assert_eq!(state.explain(&Key::new("default", "web-9"), 10, now(12)), None, "nobody knows that one");

    state.take(set_pod(&replica("web-2", "web", 12, 3)), now(12));
    state.take(set_pod(&replica("web-0", "web", 1, 4)), now(12));
    let successor = state.explain(&Key::new("default", "web-2"), 10, now(12)).expect("it waits");
    assert_eq!(
        (&successor["moves"][0]["pod"], &successor["now"]["node"]),
        (&json!("default/web-1"), &json!("n2"))
    );
    let older = state.explain(&Key::new("default", "web-0"), 10, now(12)).expect("it waits");
    assert_eq!(older["moves"], json!(null), "it was there before");
}
