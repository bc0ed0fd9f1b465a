//! `loadline up --clusters`, end to end: the real binary, a gRPC client as a fleet scheduler is one, kubectl's view.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use common::Up;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
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
