//! Who is decided about, when, and what is written of it?

use crate::world::{PATIENCE, World, aggregated, decided, deployment, duplicated, weighted};
use kube::api::{DeleteParams, Patch, PatchParams};
use loadline_core::object::Key;
use loadline_services::cluster::Access;
use loadline_services::fleet::binding;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tokio::time::timeout;

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_is_divided_written_and_told() {
    let world = World::new().await;
    world.cluster("a", 80).await;
    world.cluster("b", 32).await;
    let running = world.start(|_| {});
    // ⌊80/3⌋ = 26 and ⌊32/3⌋ = 10: 12 × 26/36 = 8.7 and 12 × 10/36 = 3.3, and the one left over goes to the heavier.
    let made = world.bind(&deployment("web", 12, "3", &weighted())).await;
    assert_eq!(made.pairs(), [("a", 9), ("b", 3)]);
    assert_eq!((made.status.as_str(), made.reason.as_str()), ("True", "Success"));
    assert_eq!(made.message, "Binding has been scheduled successfully.");
    let object = &made.object;
    let remembered =
        object["metadata"]["annotations"]["policy.karmada.io/applied-placement"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(remembered).unwrap(), weighted());
    assert_eq!(object["status"]["schedulerObservedGeneration"], object["metadata"]["generation"]);
    assert!(object["status"]["lastScheduledTime"].is_string());
    let told = "ScheduleBindingSucceed: Binding has been scheduled successfully. Result: {a:9, b:3}";
    assert_eq!(world.events("ResourceBinding", "web", 1).await, [told]);
    assert_eq!(world.events("Deployment", "web", 1).await, [told]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_request_it_is_divided_and_told_as_karmada_does_it() {
    for (upstream, reason) in [(false, "Unschedulable"), (true, "SchedulerError")] {
        let world = World::new().await;
        world.cluster("a", 8).await;
        let running = world.start(|options| options.divide.upstream = upstream);
        let mut placement = weighted();
        placement["spreadConstraints"] =
            json!([{"spreadByField": "cluster", "minGroups": 2, "maxGroups": 2}]);
        let made = world.bind(&deployment("web", 2, "1", &placement)).await;
        assert_eq!((made.reason.as_str(), made.pairs()), (reason, vec![]), "{}", made.message);
        running.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_no_namespace_is_decided_about_too() {
    let world = World::new().await;
    world.cluster("a", 8).await;
    world.cluster("b", 8).await;
    let running = world.start(|_| {});
    let binding = json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ClusterResourceBinding",
        "metadata": {"name": "reader", "labels": {"clusterpropagationpolicy.karmada.io/permanent-id": "some"}},
        "spec": {"schedulerName": "loadline", "placement": {"clusterAffinity": {"clusterNames": ["b"]}},
            "resource": {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "reader"}}});
    world.create(&world.cluster_bindings(), &binding).await;
    let made = decided(&world.cluster_bindings(), "reader", |_| true).await;
    assert_eq!(made.pairs(), [("b", 0)]);
    assert!(made.object["spec"]["clusters"][0].get("replicas").is_none(), "it has no replicas");
    let told = "ScheduleBindingSucceed: Binding has been scheduled successfully. Result {b:0}";
    assert_eq!(world.events("ClusterResourceBinding", "reader", 1).await, [told]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_ours_is_never_touched() {
    let world = World::new().await;
    world.cluster("a", 80).await;
    world.count("patch", "/apis/work.karmada.io/**");
    world.count("update", "/apis/work.karmada.io/**");
    let others = [
        ("other", json!({"spec": {"schedulerName": "default-scheduler"}})),
        ("unnamed", json!({"spec": {"schedulerName": null}})),
        ("suspended", json!({"spec": {"suspension": {"scheduling": true}}})),
        ("nobodys", json!({"metadata": {"labels": null}})),
    ];
    for (name, change) in &others {
        let mut binding = deployment(name, 1, "1", &aggregated());
        merge(&mut binding, change);
        world.create(&world.bindings(), &binding).await;
    }
    let running = world.start(|_| {});
    // It came last, and clusters changed before: everybody has been looked at.
    world.cluster("b", 1).await;
    world.bind(&deployment("ours", 1, "1", &aggregated())).await;
    for (name, _) in &others {
        assert_eq!(world.about(name), [], "{name}");
    }
    assert!(!world.about("ours").is_empty(), "or nothing was counted");
    let untouched = world.all().await.into_iter().filter(|object| object["status"].is_null()).count();
    assert_eq!(untouched, others.len());
    // What is suspended is decided about as soon as it is not any more, and so is what is taken on.
    world.change("suspended", &json!({"spec": {"suspension": null}})).await;
    world.decided("suspended", |made| made.reason == "Success").await;
    world.change("nobodys", &json!({"metadata": {"labels": {"binding.karmada.io/managed-by": "x"}}})).await;
    world.decided("nobodys", |made| made.reason == "Success").await;
    running.end().await;
}

/// Changes an object as a merge patch would.
fn merge(object: &mut Value, change: &Value) {
    for (key, value) in change.as_object().unwrap() {
        match value {
            Value::Null => drop(object.as_object_mut().unwrap().remove(key)),
            Value::Object(_) => merge(&mut object[key.as_str()], value),
            other => object[key.as_str()] = other.clone(),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_cluster_gets_what_goes_everywhere_and_heartbeats_change_nothing() {
    let world = World::new().await;
    world.cluster("a", 80).await;
    let running = world.start(|_| {});
    let made = world.bind(&deployment("web", 2, "1", &duplicated())).await;
    assert_eq!(made.pairs(), [("a", 2)]);
    world.cluster("b", 80).await;
    world.decided("web", |made| made.pairs() == [("a", 2), ("b", 2)] && made.is_whole()).await;
    let before = world.about("web").len();
    world.count("patch", "/apis/work.karmada.io/**");
    for beat in 0..20 {
        let ready = json!([{"type": "Ready", "status": "True", "lastHeartbeatTime": beat.to_string()}]);
        world.status(&world.clusters(), "a", &json!({"conditions": ready})).await;
        // Less room is no reason to look again, either.
        world.free("b", 79 - beat).await;
    }
    world.bind(&deployment("last", 1, "1", &aggregated())).await;
    assert_eq!(world.about("web").len(), before, "nobody asked for anything");
    // What suits a cluster no more leaves it.
    let taint = json!({"spec": {"taints": [{"key": "gone", "effect": "NoExecute"}]}});
    world.clusters().patch("b", &PatchParams::default(), &Patch::Merge(&taint)).await.unwrap();
    let affinity = json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["a"]}}}});
    world.change("web", &affinity).await;
    world.decided("web", |made| made.pairs() == [("a", 2)]).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_lacks_room_is_told_so_and_placed_when_there_is_some() {
    let world = World::new().await;
    world.cluster("a", 2).await;
    let running = world.start(|_| {});
    let made = world.bind(&deployment("web", 3, "1", &aggregated())).await;
    assert_eq!((made.status.as_str(), made.reason.as_str()), ("False", "Unschedulable"));
    assert_eq!(made.message, "Clusters available replicas 2 are not enough to schedule.");
    assert_eq!(made.pairs(), []);
    assert!(made.object["status"].get("schedulerObservedGeneration").is_none(), "it is not done with");
    world.free("a", 3).await;
    let made = world.decided("web", |made| made.reason == "Success").await;
    assert_eq!(made.pairs(), [("a", 3)]);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_room_goes_to_the_highest_priority_and_is_not_promised_twice() {
    let world = World::new().await;
    world.cluster("a", 1).await;
    for (name, priority) in [("low", 1), ("high", 9), ("middle", 5)] {
        let mut binding = deployment(name, 1, "1", &aggregated());
        binding["spec"]["schedulePriority"] = json!({"priority": priority});
        world.create(&world.bindings(), &binding).await;
    }
    let running = world.start(|_| {});
    for (name, reason) in [("high", "Success"), ("middle", "Unschedulable"), ("low", "Unschedulable")] {
        assert_eq!(world.decided(name, |_| true).await.reason, reason, "{name}");
    }
    // It is gone before its pods came: the room is there again, for the only one left to want it.
    for name in ["low", "high"] {
        world.bindings().delete(name, &DeleteParams::default()).await.unwrap();
    }
    world.decided("middle", |made| made.reason == "Success").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_ends_when_the_cluster_shows_the_replicas() {
    let world = World::new().await;
    world.cluster("a", 4).await;
    let running = world.start(|_| {});
    world.bind(&deployment("web", 2, "1", &aggregated())).await;
    world.bind(&deployment("more", 2, "1", &aggregated())).await;
    let full = world.bind(&deployment("third", 1, "1", &aggregated())).await;
    assert_eq!(full.reason, "Unschedulable", "four are promised: {full:?}");
    // One of them runs: two are still promised. Somebody else left, so that four are free again.
    let there = json!([{"clusterName": "a", "status": {"readyReplicas": 2}}]);
    world.status(&world.bindings(), "web", &json!({"aggregatedStatus": there})).await;
    world.free("a", 3).await;
    world.free("a", 4).await;
    let made = world.decided("third", |made| made.reason == "Success").await;
    assert_eq!(made.pairs(), [("a", 1)]);
    let full = world.bind(&deployment("fourth", 2, "1", &aggregated())).await;
    assert_eq!(
        full.message, "Clusters available replicas 1 are not enough to schedule.",
        "the others are not forgotten"
    );
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_changes_about_a_binding_is_decided_about() {
    let world = World::new().await;
    world.cluster("a", 10).await;
    world.cluster("b", 4).await;
    let running = world.start(|_| {});
    let made = world.bind(&deployment("web", 4, "1", &aggregated())).await;
    assert_eq!(made.pairs(), [("a", 4)]);
    // More of it: where it is first.
    world.change("web", &json!({"spec": {"replicas": 6}})).await;
    world.decided("web", |made| made.pairs() == [("a", 6)]).await;
    // Away from a cluster it is moved from.
    let task = json!({"spec": {"replicas": 4, "gracefulEvictionTasks": [{"fromCluster": "a", "reason": "r", "producer": "p"}],
        "clusters": null}});
    world.change("web", &task).await;
    world.decided("web", |made| made.pairs() == [("b", 4)]).await;
    // Somebody asks for a fresh division, and sees that it was made.
    let ask =
        json!({"spec": {"gracefulEvictionTasks": null, "rescheduleTriggeredAt": "2100-01-01T00:00:00Z"}});
    world.change("web", &ask).await;
    world.decided("web", |made| made.pairs() == [("a", 4)]).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_no_cluster_fits_it_leaves_where_it_is() {
    let world = World::new().await;
    world.cluster("a", 10).await;
    let running = world.start(|_| {});
    world.bind(&deployment("web", 1, "1", &aggregated())).await;
    let nowhere = json!({"spec": {"placement": {"clusterAffinity": {"clusterNames": ["z"]}}}});
    world.change("web", &nowhere).await;
    let made = world.decided("web", |made| made.status == "False").await;
    assert_eq!((made.reason.as_str(), made.pairs()), ("NoClusterFit", vec![]));
    let why =
        "0/1 clusters are available: 1 cluster(s) did not match the placement cluster affinity constraint.";
    assert_eq!(made.message, why);
    world.cluster("z", 10).await;
    world.decided("web", |made| made.pairs() == [("z", 1)]).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_group_that_won_is_told() {
    let world = World::new().await;
    world.cluster("a", 1).await;
    world.cluster("b", 10).await;
    let running = world.start(|_| {});
    let mut placement = aggregated();
    placement["clusterAffinities"] = json!([
        {"affinityName": "near", "clusterNames": ["a"]}, {"affinityName": "far", "clusterNames": ["b"]}]);
    let made = world.bind(&deployment("web", 2, "1", &placement)).await;
    assert_eq!(made.pairs(), [("b", 2)]);
    assert_eq!(made.object["status"]["schedulerObservingAffinityName"], "far");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_hundred_at_once_are_all_decided_about_and_no_room_is_given_twice() {
    let world = World::new().await;
    world.cluster("a", 80).await;
    world.cluster("b", 32).await;
    let running = world.start(|_| {});
    for index in 0..500 {
        world.create(&world.bindings(), &deployment(&format!("w-{index}"), 1, "1", &aggregated())).await;
    }
    let all: BTreeSet<String> = (0..500).map(|index| format!("w-{index}")).collect();
    let mut placed = 0;
    let deciding = async {
        for name in &all {
            placed +=
                world.decided(name, |_| true).await.clusters.iter().map(|(_, count)| count).sum::<i64>();
        }
    };
    timeout(PATIENCE, deciding).await.expect("all are decided about");
    assert_eq!(placed, 112, "80 and 32 fit, and no more");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_cannot_ask_a_controller_reads_the_hub_and_is_told_what_would_be_decided() {
    let world = World::new().await;
    world.cluster("a", 80).await;
    world.cluster("b", 32).await;
    let made = world.create(&world.bindings(), &deployment("web", 12, "3", &weighted())).await;
    let namespace = made.metadata.namespace.unwrap();
    let hub = Access::Client(world.client.clone());
    let about = Key::new(namespace.as_str(), "web");
    let told = binding::once(&hub, &about, PATIENCE).await.unwrap().unwrap();
    let targets = &told["now"]["targets"];
    assert_eq!(
        [&targets[0]["name"], &targets[0]["replicas"], &targets[1]["name"], &targets[1]["replicas"]],
        [&json!("a"), &json!(9), &json!("b"), &json!(3)],
        "as a controller would: {told}"
    );
    assert_eq!(told["decision"], Value::Null, "nobody remembers one");
    let nobody = binding::once(&hub, &Key::new(namespace.as_str(), "none"), PATIENCE).await;
    assert_eq!(nobody.unwrap(), None);
    // Not a hub at all: said, and not waited for for ever.
    let plain = Access::Client(kube::Client::new(loadline_apiserver::ApiServer::default(), "default"));
    let told = binding::once(&plain, &about, PATIENCE).await.unwrap_err();
    assert!(told.starts_with("the hub could not be read"), "{told}");
}
