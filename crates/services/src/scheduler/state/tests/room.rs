//! Room that was kept for a pod and is free again is told to who waits for it.

use super::*;

/// A node with room for one pod, and two that want it: `a` has it, `b` was refused a second ago.
fn kept() -> (State, Arc<Pending>) {
    kept_by(pod("a", 1, json!({})))
}

fn kept_by(a: Value) -> (State, Arc<Pending>) {
    let mut state = state_that(None, &[node("n1", "1")], &[a, pod("b", 2, json!({}))]);
    let mut all = actions(&mut state);
    let Some((_, Action::Refuse { pod: b, helps, .. })) = all.pop() else { panic!("one has room: {all:?}") };
    state.done(Outcome::Refused { pod: b, helps }, now(0));
    let Some((_, Action::Bind { pod: a, .. })) = all.pop() else { panic!("the first has it") };
    (state, a)
}

/// Long enough for who was refused once, and not for who is looked at whatever happens.
async fn a_second_passes() {
    tokio::time::advance(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_has_it_as_soon_as_a_bind_fails() {
    let (mut state, a) = kept();
    a_second_passes().await;
    state.done(Outcome::Unbound { pod: a, now: None }, now(1));
    assert_eq!(words(&mut state), ["b to n1"], "and the pod that failed has a pause first");
    a_second_passes().await;
    assert_eq!(words(&mut state), ["a: 0/1 nodes are available: 1 Insufficient cpu."]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_has_it_as_soon_as_the_pod_goes_for_which_it_was_kept() {
    let (mut state, a) = kept();
    a_second_passes().await;
    state.take(delete_pod(&pod("a", 3, json!({}))), now(1));
    assert_eq!(words(&mut state), ["b to n1"]);
    state.done(Outcome::Unbound { pod: a, now: None }, now(1));
    assert!(words(&mut state).is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_has_it_as_soon_as_the_pod_is_seen_elsewhere() {
    let (mut state, _) = kept();
    a_second_passes().await;
    state.take(set_pod(&pod("a", 3, on("n2"))), now(1));
    assert_eq!(words(&mut state), ["b to n1"]);
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_room_has_it_as_soon_as_no_pod_is_nominated_for_it() {
    let missing = json!([{"name": "v", "persistentVolumeClaim": {"claimName": "missing"}}]);
    let stranger = json!({"spec": {"schedulerName": "other"}});
    let (gone, bound) = (None, Some(on("n2")));
    let elsewhere = Some(json!({"status": {"nominatedNodeName": "n2"}}));
    for (of, more) in [("ours", json!({"spec": {"volumes": missing}})), ("a stranger's", stranger)] {
        for (then, why) in
            [(&gone, "it is gone"), (&bound, "it is elsewhere"), (&elsewhere, "it is meant for elsewhere")]
        {
            let nominated = |revision, then: Option<&Value>| {
                let base = json!({"spec": {"priority": 1000}, "status": {"nominatedNodeName": "n1"}});
                let mut nominated = pod("nominated", revision, base);
                merge(&mut nominated, more.clone());
                if let Some(then) = then {
                    merge(&mut nominated, then.clone());
                }
                nominated
            };
            let pods = [nominated(1, None), pod("b", 2, json!({}))];
            let mut state = state_that(None, &[node("n1", "1")], &pods);
            for (_, action) in actions(&mut state) {
                let Action::Refuse { pod, helps, .. } = action else { panic!("{of}: {action:?}") };
                state.done(Outcome::Refused { pod, helps }, now(0));
            }
            a_second_passes().await;
            match then {
                None => state.take(delete_pod(&nominated(3, None)), now(1)),
                then => state.take(set_pod(&nominated(3, then.as_ref())), now(1)),
            }
            let words = words(&mut state);
            assert!(words.contains(&"b to n1".to_owned()), "{of}: {why}: {words:?}");
        }
    }
}
