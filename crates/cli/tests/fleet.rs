//! `loadline up --clusters`, end to end: the real binary, a gRPC client as a fleet scheduler is one, kubectl's view.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_api::estimator::{Replica, replicas_request};
use serde_json::json;
use std::time::Duration;
use tonic::Code;
use tonic::transport::Channel;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// Pods of one core and 2 GiB.
fn replica() -> Replica {
    Replica {
        requests: [("cpu", "1"), ("memory", "2Gi")].map(|(n, q)| (n.to_owned(), q.parse().unwrap())).into(),
        ..Replica::default()
    }
}

async fn ask(client: &EstimatorClient<Channel>, cluster: &str) -> Result<i32, tonic::Status> {
    let request = replicas_request(cluster, Some(&replica()), &[]);
    client.clone().max_available_replicas(request).await.map(|answer| answer.into_inner().max_replicas)
}

/// The value of a line of the greeting, such as `estimator   127.0.0.1:10352, gRPC`.
fn told<'a>(up: &'a Up, name: &str) -> &'a str {
    let line = up.greeting.lines().find_map(|line| line.trim().strip_prefix(name)).unwrap();
    line.trim().split([',', ' ']).next().unwrap()
}

#[tokio::test]
async fn one_estimator_answers_for_every_cluster_and_follows_each() {
    let up = Up::start(&["--clusters", "3", "--nodes", "4", "--for", "10m"]);
    let address = format!("http://{}", told(&up, "estimator"));
    let channel = Channel::from_shared(address).unwrap().connect().await.unwrap();
    let client = EstimatorClient::new(channel);
    let mut before = Vec::new();
    for cluster in ["member1", "member2", "member3"] {
        before.push(ask(&client, cluster).await.unwrap());
    }
    assert!(before.iter().all(|room| *room > 3), "{before:?}");
    let unknown = ask(&client, "member4").await.unwrap_err();
    assert_eq!(unknown.code(), Code::InvalidArgument);
    assert!(unknown.message().contains("member4"), "{}", unknown.message());

    // Three pods in the second cluster: it has room for three fewer, the others for as many as before.
    let api: Api<Deployment> = Api::default_namespaced(common::client_for(&up.kubeconfig(), "member2").await);
    let web = json!({"metadata": {"name": "web"}, "spec": {
        "replicas": 3, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [
            {"name": "web", "image": "nginx", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}]}}}});
    api.create(&PostParams::default(), &serde_json::from_value(web).unwrap()).await.unwrap();
    let follows = async {
        // Nobody tells a client that an answer would be another now, so it asks again, as schedulers do.
        while ask(&client, "member2").await.unwrap() != before[1] - 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, follows).await.expect("the answer never followed the pods");
    assert_eq!(ask(&client, "member1").await.unwrap(), before[0]);
    assert_eq!(ask(&client, "member3").await.unwrap(), before[2]);
}

/// The cluster each of the four stories has selected, once all have.
async fn stories(hub: &kube::Client) -> [String; 4] {
    let kind = GroupVersionKind::gvk("cluster.open-cluster-management.io", "v1beta1", "PlacementDecision");
    let api: Api<DynamicObject> = Api::default_namespaced_with(hub.clone(), &ApiResource::from_gvk(&kind));
    let mut out = [const { String::new() }; 4];
    for (number, out) in (1..).zip(&mut out) {
        let decided = async {
            loop {
                let decision = api.get_opt(&format!("story-{number}-decision-1")).await.unwrap();
                let name = decision.and_then(|decision| {
                    decision.data["status"]["decisions"][0]["clusterName"].as_str().map(str::to_owned)
                });
                if let Some(name) = name {
                    return name;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        *out = tokio::time::timeout(PATIENCE, decided).await.expect("a story that is decided");
    }
    out
}

#[tokio::test]
async fn placements_of_the_hub_move_with_load_and_the_pinned_one_stays() {
    let up = Up::start(&["--clusters", "3", "--nodes", "4", "--for", "10m"]);
    let hub = common::client_for(&up.kubeconfig(), "hub").await;
    let before = stories(&hub).await;
    // Every cluster that the first three have selected gets hot, one after the other; they always find another.
    let mut hot: Vec<String> = Vec::new();
    for _ in 0..2 {
        let now = stories(&hub).await;
        let next = now[..3].iter().find(|name| !hot.contains(name)).expect("one that is not hot").clone();
        let api: Api<Deployment> = Api::default_namespaced(common::client_for(&up.kubeconfig(), &next).await);
        let uses = json!({"loadline.dev/usage-cpu": "3", "loadline.dev/usage-memory": "12Gi"});
        let burner = json!({"metadata": {"name": "burner"}, "spec": {
            "replicas": 30, "selector": {"matchLabels": {"app": "burner"}},
            "template": {"metadata": {"labels": {"app": "burner"}, "annotations": uses}, "spec": {"containers": [
                {"name": "burner", "image": "i", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]}}}});
        api.create(&PostParams::default(), &serde_json::from_value(burner).unwrap()).await.unwrap();
        hot.push(next);
        let moved = async {
            while stories(&hub).await[..3].iter().any(|name| hot.contains(name)) {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        };
        let told = tokio::time::timeout(PATIENCE, moved).await;
        assert!(told.is_ok(), "{hot:?} are hot, and still it is {:?}", stories(&hub).await);
    }
    assert_eq!(stories(&hub).await[3], before[3], "the fourth is pinned, hot or not");
}
