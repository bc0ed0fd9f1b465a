//! Pods that use far more than they ask for, and come faster than they can be measured.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::{metered, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::settings::Settings;
use loadline_sim::{Options, World};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

const NODES: usize = 4;
const REPLICAS: usize = 6 * NODES;
/// What a replica uses, in thousandths of a CPU; it asks for a hundred.
const USES: i64 = 1500;

/// Brings one replica, waits until it is warm and known, then all at once. How much of its CPU each node's replicas will
/// use once they are warm, as a share of what it has for pods; and how many found a node.
async fn burst(learn: bool) -> (Vec<f64>, usize) {
    let server = ApiServer::default();
    let often = Duration::from_millis(200);
    // Programs take 20 s to warm up here, and are not believed to be idle meanwhile.
    let settings = Settings { settle: jiff::SignedDuration::from_secs(60), ..Settings::default() };
    let (rules, _) = Rules::new(Policy::default(), settings).unwrap();
    let options = Options {
        nodes: NODES,
        figures: often,
        measure: often,
        learn: learn.then_some(often),
        rules,
        ..Options::default()
    };
    let client = Client::new(server.clone(), "default");
    let world = World::start(client.clone(), &options, metered(&server)).await.unwrap();
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    let container =
        json!({"name": "app", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}});
    let object = json!({
        "metadata": {"name": "greedy"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "greedy"}}, "template": {
            "metadata": {"labels": {"app": "greedy"}, "annotations": {"loadline.dev/usage-cpu": format!("{USES}m")}},
            "spec": {"containers": [container]}}},
    });
    deployments.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let metrics = "/apis/metrics.k8s.io/v1beta1/namespaces/default/pods";
    until("the first to be warm", async || {
        let request = http::Request::get(metrics).body(Vec::new()).unwrap();
        let list: serde_json::Value = client.request(request).await.unwrap();
        let cpu = list["items"][0]["containers"][0]["usage"]["cpu"].as_str()?.to_owned();
        (cpu == format!("{USES}m") || cpu == "1500000000n").then_some(())
    })
    .await;
    if learn {
        until("what it uses to be recommended", async || {
            let request = http::Request::get("/apis/analysis.crane.io/v1alpha1/recommendations")
                .body(Vec::new())
                .unwrap();
            let list: serde_json::Value = client.request(request).await.unwrap();
            let text = list["items"][0]["status"]["recommendedValue"].as_str()?.to_owned();
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            let cpu = value["resourceRequest"]["containers"][0]["target"]["cpu"].as_str()?.to_owned();
            (cpu.trim_end_matches('m').parse::<i64>().unwrap() >= USES).then_some(())
        })
        .await;
    }
    let change = Patch::Merge(json!({"spec": {"replicas": REPLICAS}}));
    deployments.patch("greedy", &PatchParams::default(), &change).await.unwrap();
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let placed = until("every pod to be placed or told why not", async || {
        let all = pods.list(&ListParams::default()).await.unwrap().items;
        let told = |pod: &Pod| {
            let conditions =
                pod.status.as_ref().and_then(|status| status.conditions.clone()).unwrap_or_default();
            conditions.iter().any(|condition| condition.type_ == "PodScheduled")
        };
        (all.len() == REPLICAS && all.iter().all(told)).then_some(all)
    })
    .await;
    let mut by_node: BTreeMap<String, i64> = BTreeMap::new();
    for node in placed.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.clone()) {
        *by_node.entry(node).or_default() += USES;
    }
    let nodes: Api<Node> = Api::all(client.clone());
    let mut shares = Vec::new();
    for node in nodes.list(&ListParams::default()).await.unwrap().items {
        let has: loadline_core::quantity::Quantity =
            node.status.unwrap().allocatable.unwrap()["cpu"].0.parse().unwrap();
        let used = by_node.get(&node.metadata.name.unwrap()).copied().unwrap_or(0);
        #[expect(clippy::cast_precision_loss, reason = "small numbers")]
        shares.push(used as f64 / has.milli_value() as f64);
    }
    world.stop().await;
    let count = placed.iter().filter(|pod| pod.spec.as_ref().unwrap().node_name.is_some()).count();
    (shares, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_second_pod_on_replicas_count_with_what_the_first_one_uses() {
    let ((learned, placed), (unlearned, all)) = tokio::join!(burst(true), burst(false));
    assert!(
        learned.iter().all(|share| *share <= 0.65),
        "no node will be driven past its target: {learned:?}"
    );
    assert!(placed > NODES, "and none is left empty for fear: {placed}");
    assert_eq!(all, REPLICAS, "by what they ask for they all fit");
    assert!(unlearned.iter().any(|share| *share > 0.65), "which drives nodes past it: {unlearned:?}");
}
