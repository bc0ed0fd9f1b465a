//! The whole world goes on when its API server is killed and started again underneath it: scheduler, agents, nodes and
//! controllers, by the very clients they have.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::{metered, until};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_services::agent::watched::{ACTIONS, NODE_QOS, POD_QOS};
use loadline_services::cluster::{Connection, Writer, access};
use loadline_sim::{Options, World};
use serde_json::{Value, json};
use std::time::Duration;

struct Stage {
    /// Talks to the server itself, whether anybody else can or not.
    client: Client,
    writer: Writer,
}

impl Stage {
    fn pods(&self) -> Api<Pod> {
        Api::default_namespaced(self.client.clone())
    }

    async fn scale(&self, replicas: i32) {
        let deployments: Api<Deployment> = Api::default_namespaced(self.client.clone());
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        deployments.patch("web", &PatchParams::default(), &patch).await.unwrap();
    }

    /// Waits until so many pods run, and nothing else is there; the nodes they are on.
    async fn running(&self, count: usize) -> Vec<String> {
        until("pods to run", async || {
            let pods = self.pods().list(&ListParams::default()).await.unwrap().items;
            let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone());
            let all = pods.len() == count && pods.iter().all(|pod| phase(pod).as_deref() == Some("Running"));
            all.then(|| pods.into_iter().map(|pod| pod.spec.unwrap().node_name.unwrap()).collect())
        })
        .await
    }

    /// A line nobody can stay below, so that agents show that they are there.
    async fn protect(&self) {
        let object = |kind: &str, spec: Value| json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": "low"}, "spec": spec});
        let action = object(
            "AvoidanceAction",
            json!({"coolDownSeconds": 5, "throttle": {"cpuThrottle": {"stepCPURatio": 10, "minCPURatio": 10}}}),
        );
        let scope = object(
            "PodQOS",
            json!({"labelSelector": {"matchLabels": {"app": "nobody"}}, "allowedActions": ["low"]}),
        );
        let rules = object(
            "NodeQOS",
            json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [{
                "name": "low", "actionName": "low", "avoidanceThreshold": 1, "restoreThreshold": 1,
                "metricRule": {"name": "cpu_total_usage", "value": "1"},
            }]}),
        );
        for (resource, object) in [(ACTIONS, action), (POD_QOS, scope), (NODE_QOS, rules)] {
            self.writer.create(resource, "", &object).await.unwrap();
        }
    }
}

fn web(replicas: i32) -> Deployment {
    let container = json!({"name": "web", "image": "one", "resources": {"requests": {"cpu": "100m"}}});
    serde_json::from_value(json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
        },
    }))
    .unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn everybody_goes_on_after_the_api_server_was_killed_and_started_again() {
    let server = ApiServer::default();
    let mut serving = server.listen(([127, 0, 0, 1], 0).into()).await.unwrap().start();
    let config = kube::Config::new(serving.url().parse().unwrap());
    let often = Duration::from_millis(50);
    let options =
        Options { nodes: 3, figures: often, measure: often, protect: Some(often), ..Options::default() };
    let mut world = World::start(access::client(config).unwrap(), &options, metered(&server)).await.unwrap();
    let mut notices = world.notices().unwrap();
    let client = Client::new(server.clone(), "default");
    let stage = Stage { writer: Writer::new(Connection::new(client.clone()), "test"), client };
    let deployments: Api<Deployment> = Api::default_namespaced(stage.client.clone());
    deployments.create(&PostParams::default(), &web(6)).await.unwrap();
    stage.running(6).await;

    // Killed: connections break, and nobody answers. Meanwhile the world changes.
    serving.kill().await;
    stage.scale(9).await;
    serving.start().unwrap();
    stage.running(9).await;

    // Once more, and what happened meanwhile cannot be told one by one: 410.
    serving.kill().await;
    let nodes: Api<Node> = Api::all(stage.client.clone());
    nodes.cordon("node-00").await.unwrap();
    for pod in stage.pods().list(&ListParams::default()).await.unwrap().items {
        if pod.spec.unwrap().node_name.as_deref() == Some("node-00") {
            let now = DeleteParams::default().grace_period(0);
            stage.pods().delete(&pod.metadata.name.unwrap(), &now).await.unwrap();
        }
    }
    stage.scale(7).await;
    server.restart();
    serving.start().unwrap();
    let before = stage.running(7).await;
    // Watches catch up one by one; from here on the cordon is known.
    while !notices.recv().await.unwrap().to_string().contains("node-00: cordoned") {}
    stage.scale(12).await;
    let after = stage.running(12).await;
    let there = |on: &[String]| on.iter().filter(|node| *node == "node-00").count();
    assert!(there(&after) <= there(&before), "what was missed is known: {before:?}, {after:?}");

    // The agents are there, too.
    stage.protect().await;
    until("every node to be closed", async || {
        let all = nodes.list(&ListParams::default()).await.unwrap().items;
        let closed = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone()).unwrap_or_default();
            taints.iter().any(|taint| taint.key == loadline_core::qos::taint::KEY)
        };
        all.iter().all(closed).then_some(())
    })
    .await;
    world.stop().await;
    serving.stop().await.unwrap();
}
