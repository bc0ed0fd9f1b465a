//! Pods like each other are spread, and images and services count, by what may be read.

use super::*;

/// Two nodes; by what is free a pod would go to n1, where another one like it is already.
fn uneven() -> (State, Value) {
    let named = |name: &str, cpu: &str| {
        let mut node = node(name, cpu);
        merge(&mut node, json!({"metadata": {"labels": {"kubernetes.io/hostname": name}}}));
        node
    };
    let web = json!({"metadata": {"labels": {"app": "web"}}});
    let mut there = pod("there", 1, web.clone());
    merge(&mut there, on("n1"));
    (state_that(None, &[named("n1", "32"), named("n2", "16")], &[there]), web)
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_service_are_spread_while_it_is_there() {
    let (mut state, web) = uneven();
    let service = json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "s", "resourceVersion": "5"},
        "spec": {"selector": {"app": "web"}},
    });
    let set = Message::Service(Event::Applied(meta(&service), Services::read(&Tree::from(&service))));
    state.take(set, now(0));
    state.take(set_pod(&pod("a", 6, web.clone())), now(0));
    assert_eq!(words(&mut state), ["a to n2"]);
    let (mut state, web) = uneven();
    state.take(
        Message::Service(Event::Applied(meta(&service), Services::read(&Tree::from(&service)))),
        now(0),
    );
    state.take(Message::Service(Event::Deleted(meta(&service))), now(0));
    state.take(set_pod(&pod("a", 6, web)), now(0));
    assert_eq!(words(&mut state), ["a to n1"]);
}

#[tokio::test(start_paused = true)]
async fn pods_of_a_replica_set_are_spread_while_it_is_there() {
    let set = json!({
        "metadata": {"name": "web-1", "namespace": "default", "uid": "r", "resourceVersion": "5"},
        "spec": {"selector": {"matchLabels": {"app": "web"}}},
    });
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-1", "uid": "r", "controller": true});
    for (gone, want, why) in [(false, "a to n2", "spread"), (true, "a to n1", "by what is free")] {
        let (mut state, web) = uneven();
        state.take(replica_sets(Event::Applied(meta(&set), ReplicaSets::read(&Tree::from(&set)))), now(0));
        if gone {
            state.take(replica_sets(Event::Deleted(meta(&set))), now(0));
        }
        let mut pod = pod("a", 6, web);
        pod["metadata"]["ownerReferences"] = json!([owner]);
        state.take(set_pod(&pod), now(0));
        assert_eq!(words(&mut state), [want], "{why}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_node_that_has_the_image_is_preferred() {
    let (mut state, _) = uneven();
    let mut second = node("n2", "16");
    merge(
        &mut second,
        json!({"metadata": {"resourceVersion": "2"},
            "status": {"images": [{"names": ["db:2"], "sizeBytes": 3_000_000_000i64}]}}),
    );
    state.take(set_node(&second), now(0));
    let image = json!({"spec": {"containers": [{"name": "c", "image": "db:2"}]}});
    state.take(set_pod(&pod("a", 3, image)), now(0));
    assert_eq!(words(&mut state), ["a to n2"]);
}

#[tokio::test(start_paused = true)]
async fn who_may_not_read_services_and_workloads_schedules_without() {
    let mut state = empty(None);
    let [services, workloads] = ["services", "replicationcontrollers"];
    let needed =
        others().into_iter().filter(|message| !matches!(message, Message::Service(_) | Message::Advice(_)));
    state.take_all(needed.collect());
    state.take_all(list(Message::Node, vec![set_node(&node("n1", "8"))]));
    state.take_all(list(Message::Pod, vec![set_pod(&pod("a", 1, json!({})))]));
    state.take(Message::Service(Event::Failed(services.into())), now(0));
    for kind in [controllers, replica_sets, stateful_sets] {
        assert!(words(&mut state).is_empty(), "they may come yet");
        state.take(kind(Event::Forbidden(workloads.into())), now(0));
    }
    assert!(words(&mut state).is_empty(), "services may come yet");
    state.take(Message::Service(Event::Forbidden(services.into())), now(0));
    assert_eq!(words(&mut state), ["a to n1"]);
}
