//! The closed loop: a node that got too much gives up a pod, its controller makes it again, and it goes where there is room.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::{metered, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_services::rebalance::Mode;
use loadline_sim::{Options, World};
use serde_json::json;
use std::time::Duration;

const REPLICAS: usize = 4;

/// Where the pods that run are.
async fn placed(pods: &Api<Pod>) -> Vec<String> {
    let all = pods.list(&ListParams::default()).await.unwrap().items;
    let running = all.into_iter().filter(|pod| {
        pod.metadata.deletion_timestamp.is_none()
            && pod.status.as_ref().and_then(|status| status.phase.as_deref()) == Some("Running")
    });
    running.filter_map(|pod| pod.spec?.node_name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_got_too_much_gives_up_a_pod_and_its_successor_goes_elsewhere() {
    let server = ApiServer::default();
    let second = Duration::from_secs(1);
    let options = Options {
        nodes: 3,
        figures: second,
        measure: second,
        rebalance: Some(Mode::Act),
        ..Options::default()
    };
    let client = Client::new(server.clone(), "default");
    let world = World::start(client.clone(), &options, metered(&server)).await.unwrap();
    let nodes: Api<Node> = Api::all(client.clone());
    let names: Vec<String> = nodes
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .into_iter()
        .filter_map(|n| n.metadata.name)
        .collect();
    let hot = names[0].clone();
    let cordon = async |closed: bool| {
        for name in &names[1..] {
            let change = Patch::Merge(json!({"spec": {"unschedulable": closed}}));
            nodes.patch(name, &PatchParams::default(), &change).await.unwrap();
        }
    };
    cordon(true).await;
    let status = nodes.get(&hot).await.unwrap().status.unwrap();
    let cpu: loadline_core::quantity::Quantity = status.allocatable.unwrap()["cpu"].0.parse().unwrap();
    // Four of a fifth each are 0.8 of the node, and 0.65 may be used; three are 0.6.
    let uses = cpu.milli_value() / 5;
    let container =
        json!({"name": "app", "image": "i", "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}}});
    let object = json!({
        "metadata": {"name": "web"},
        "spec": {"replicas": REPLICAS, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": {"loadline.dev/usage-cpu": format!("{uses}m")}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [container]}}},
    });
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    until("all to be on one node", async || {
        let placed = placed(&pods).await;
        (placed.len() == REPLICAS && placed.iter().all(|node| *node == hot)).then_some(())
    })
    .await;
    cordon(false).await;

    let here = |placed: &[String]| placed.iter().filter(|node| **node == hot).count();
    until("one to have gone elsewhere", async || {
        let placed = placed(&pods).await;
        (placed.len() == REPLICAS && here(&placed) == REPLICAS - 1).then_some(())
    })
    .await;
    let moved = || {
        let of = loadline_services::rebalance::Because { resource: "cpu" };
        world.counts().rebalance.moves.get_or_create(&of).get()
    };
    assert_eq!(moved(), 1);
    let plans = world.counts().rebalance.plans.get();
    until("more looks", async || (world.counts().rebalance.plans.get() > plans + 10).then_some(())).await;
    assert_eq!((moved(), here(&placed(&pods).await)), (1, REPLICAS - 1), "one was enough");
    world.stop().await;
}
