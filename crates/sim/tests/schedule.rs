//! Scheduling against the in-memory API server: measured load counts, and no fault loses a pod or leaves a charge.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::{metered, until};
use k8s_openapi::api::core::v1::{Event, Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_sim::world::Scheduler;
use loadline_sim::{Options, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tower::Layer;

struct Stage {
    world: World,
    pods: Api<Pod>,
    nodes: Api<Node>,
    /// Talks to the server past all faults.
    client: Client,
}

impl Stage {
    async fn new(nodes: usize, aware: bool, faults: &Faults) -> Self {
        let server = ApiServer::default();
        let sink = metered(&server);
        let often = Duration::from_millis(50);
        let scheduler = if aware { Scheduler::LoadAware } else { Scheduler::RequestsOnly };
        let options = Options { nodes, figures: often, measure: often, scheduler, ..Options::default() };
        let rough = Client::new(faults.layer(server.clone()), "default");
        let world = World::start(rough, &options, sink).await.unwrap();
        let client = Client::new(server, "default");
        let (pods, nodes) = (Api::default_namespaced(client.clone()), Api::all(client.clone()));
        Self { world, pods, nodes, client }
    }

    async fn create(&self, name: &str, cpu: &str, more: Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        });
        for (part, value) in more.as_object().into_iter().flatten() {
            pod[part].as_object_mut().unwrap().extend(value.as_object().cloned().unwrap_or_default());
        }
        self.pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    }

    /// Waits until this many pods run and no others are there; the nodes they are on.
    async fn running(&self, count: usize) -> Vec<String> {
        until("pods to run", async || {
            let pods = self.pods.list(&ListParams::default()).await.unwrap().items;
            let phase = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone());
            let all = pods.len() == count && pods.iter().all(|pod| phase(pod).as_deref() == Some("Running"));
            let node = |pod: &Pod| pod.spec.clone().unwrap().node_name.unwrap();
            all.then(|| pods.iter().map(node).collect())
        })
        .await
    }
}

fn cpus(node: &Node) -> i64 {
    node.status.as_ref().unwrap().capacity.as_ref().unwrap()["cpu"].0.parse().unwrap()
}

#[tokio::test]
async fn a_hot_node_is_avoided_though_it_has_the_most_free_requests() {
    let mut stage = Stage::new(4, true, &Faults::seeded(1)).await;
    let mut notices = stage.world.notices().unwrap();
    let nodes = stage.nodes.list(&ListParams::default()).await.unwrap().items;
    let largest = nodes.iter().max_by_key(|node| cpus(node)).unwrap().metadata.name.clone().unwrap();
    // A tenth of 2000 CPUs is more than any node has, so the end of the warm-up need not be waited for.
    let burns = json!({
        "metadata": {"annotations": {"loadline.dev/usage-cpu": "2000"}},
        "spec": {"nodeSelector": {"kubernetes.io/hostname": largest}},
    });
    stage.create("burner", "1m", burns).await;
    assert_eq!(stage.running(1).await, std::slice::from_ref(&largest));
    let hot = format!("node {largest}: hot");
    while !notices.recv().await.unwrap().to_string().starts_with(&hot) {}
    until("the node to be measured hot", async || (stage.world.tally().hot == 1).then_some(())).await;
    for i in 0..6 {
        stage.create(&format!("web-{i}"), "100m", json!({})).await;
    }
    let on: Vec<String> = stage.running(7).await;
    assert_eq!(on.iter().filter(|node| **node == largest).count(), 1, "{on:?}");
    assert_eq!(stage.world.tally().onto_hot, 0);

    // Who must go there waits, and is told why.
    let there = json!({"spec": {"nodeSelector": {"kubernetes.io/hostname": largest}}});
    stage.create("stubborn", "100m", there).await;
    let events: Api<Event> = Api::default_namespaced(stage.client.clone());
    let told = until("the pod to be told why it waits", async || {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        all.into_iter().find(|event| event.reason.as_deref() == Some("FailedScheduling"))?.message
    })
    .await;
    assert!(told.contains("3 node(s) didn't match Pod's node affinity/selector"), "{told}");
    assert!(told.contains("load"), "{told}");
    stage.world.stop().await;
}

/// Ten pods fill a node; then they go and one pod wants all of it. It gets it only if nothing was lost and
/// nothing of the old ones is still charged.
async fn fill_and_fill_again(stage: &Stage, faults: &Faults) {
    let node = stage.nodes.list(&ListParams::default()).await.unwrap().items.remove(0);
    let room = node.status.unwrap().allocatable.unwrap()["cpu"].0.clone();
    let milli: i64 = room.strip_suffix('m').unwrap().parse().unwrap();
    for i in 0..10 {
        stage.create(&format!("part-{i}"), &format!("{}m", milli / 10), json!({})).await;
    }
    stage.running(10).await;
    let parts: BTreeSet<String> = (0..10).map(|i| format!("part-{i}")).collect();
    for part in &parts {
        stage.pods.delete(part, &DeleteParams::default().grace_period(0)).await.unwrap();
    }
    stage.create("whole", &room, json!({})).await;
    stage.running(1).await;
    assert!(!faults.log().is_empty(), "the fault was there");
}

#[tokio::test]
async fn no_fault_loses_a_pod_or_leaves_a_charge() {
    let binding = || ("create", "/api/v1/namespaces/*/pods/*/binding");
    let writes = |action| Rule::new(action).verb(binding().0).path(binding().1);
    let watches = |action| Rule::new(action).verb("watch").path("/api/v1/pods");
    let table = [
        ("requests get lost", writes(Action::DropRequest).every(3)),
        ("answers get lost", writes(Action::DropAnswer).every(2)),
        ("the server is in trouble", writes(Action::Answer(Answer::Internal)).first(5)),
        ("the server reports a conflict", writes(Action::Answer(Answer::Conflict)).every(2)),
        ("watches end", watches(Action::CutWatch { after: 3 }).first(6)),
        ("watches fall too far behind", watches(Action::ExpireWatch { after: 5 }).first(4)),
    ];
    for (what, rule) in table {
        println!("{what}");
        let faults = Faults::seeded(1).with(rule);
        let stage = Stage::new(1, false, &faults).await;
        fill_and_fill_again(&stage, &faults).await;
        stage.world.stop().await;
    }
}

#[tokio::test]
async fn a_more_important_pod_takes_the_place_of_a_lesser_one() {
    let stage = Stage::new(1, false, &Faults::seeded(1)).await;
    let node = stage.nodes.list(&ListParams::default()).await.unwrap().items.remove(0);
    let room = node.status.unwrap().allocatable.unwrap()["cpu"].0.clone();
    stage.create("lesser", &room, json!({})).await;
    stage.running(1).await;
    let important = json!({"spec": {"priorityClassName": "system-cluster-critical"}});
    stage.create("important", &room, important).await;
    until("the important pod to run alone", async || {
        let pods = stage.pods.list(&ListParams::default()).await.unwrap().items;
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone());
        let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        (names == ["important"] && phase(&pods[0]).as_deref() == Some("Running")).then_some(())
    })
    .await;
    assert_eq!(stage.world.counts().scheduler.preempted.get(), 1);
    stage.world.stop().await;
}
