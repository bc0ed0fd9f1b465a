//! The whole simulation against the in-memory API server, without sockets, and against a real one where
//! there is one: the same test for both.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::until;
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use kube::api::{Api, DeleteParams, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::core::NamespaceResourceScope;
use kube::{Client, Resource};
use loadline_apiserver::ApiServer;
use loadline_sim::node::{Figures, Sink};
use loadline_sim::world::Scheduler;
use loadline_sim::{Options, World};
use loadline_testkit::{ControlPlane, WORKLOADS};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::Duration;

struct Stage {
    client: Client,
    world: World,
    figures: Arc<Mutex<Option<Figures>>>,
}

impl Stage {
    async fn new(client: Client, options: Options) -> Self {
        let figures = Arc::<Mutex<Option<Figures>>>::default();
        let seen = figures.clone();
        let sink = Sink::new(move |figures| *seen.lock().unwrap() = Some(figures.clone()));
        let world = World::start(client.clone(), &options, sink).await.unwrap();
        Self { client, world, figures }
    }

    async fn ours(nodes: usize) -> Self {
        let client = Client::new(ApiServer::default(), "default");
        Self::new(client, Options { nodes, figures: Duration::from_millis(50), ..Options::default() }).await
    }

    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::default_namespaced(self.client.clone())
    }

    async fn create<K>(&self, object: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + serde::Serialize
            + std::fmt::Debug,
    {
        let object: K = serde_json::from_value(object).unwrap();
        self.api::<K>().create(&PostParams::default(), &object).await.unwrap();
    }

    async fn pods(&self) -> Vec<Pod> {
        self.api::<Pod>().list(&ListParams::default()).await.unwrap().items
    }

    async fn patch_web(&self, patch: Value) {
        let params = PatchParams::default();
        self.api::<Deployment>().patch("web", &params, &Patch::Merge(&patch)).await.unwrap();
    }

    /// Waits until the Deployment says it is through, with this image.
    async fn rolled_out(&self, replicas: i32) -> Deployment {
        let api = self.api::<Deployment>();
        until("the rollout to end", async || {
            let web = api.get("web").await.unwrap();
            let status = web.status.clone().unwrap_or_default();
            let done = status.observed_generation == web.metadata.generation
                && [status.replicas, status.updated_replicas, status.available_replicas]
                    .iter()
                    .all(|n| n.unwrap_or(0) == replicas);
            done.then_some(web)
        })
        .await
    }
}

fn web(replicas: i32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "web", "image": "one", "resources": {"requests": {"cpu": "100m"}},
                }]},
            },
        },
    })
}

fn image(name: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{
        "name": "web", "image": name, "resources": {"requests": {"cpu": "100m"}},
    }]}}}})
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().unwrap().node_name.as_deref().unwrap_or_default()
}

fn name_of(pod: &Pod) -> &str {
    pod.metadata.name.as_deref().unwrap()
}

/// Rolls out, scales, goes back and drains: what both servers must bring about.
async fn live_a_little(stage: &Stage) {
    stage.create::<Deployment>(web(6)).await;
    stage.rolled_out(6).await;
    stage.patch_web(image("two")).await;
    let web = stage.rolled_out(6).await;
    assert_eq!(web.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "2");
    stage.patch_web(json!({"spec": {"replicas": 9}})).await;
    stage.rolled_out(9).await;
    stage.patch_web(image("one")).await;
    let web = stage.rolled_out(9).await;
    assert_eq!(web.metadata.annotations.unwrap()["deployment.kubernetes.io/revision"], "3");
    let sets = stage.api::<ReplicaSet>().list(&ListParams::default()).await.unwrap();
    assert_eq!(sets.items.len(), 2, "going back uses the old replica set");

    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    });
    stage.create::<PodDisruptionBudget>(budget).await;
    let pods = stage.api::<Pod>();
    let victim = stage.pods().await.into_iter().next().unwrap();
    let node = node_of(&victim).to_owned();
    Api::<Node>::all(stage.client.clone()).cordon(&node).await.unwrap();
    for pod in stage.pods().await.iter().filter(|pod| node_of(pod) == node) {
        // Refused while the budget is spent; granted again when the replacement runs.
        until("an eviction to be granted", async || {
            pods.evict(name_of(pod), &EvictParams::default()).await.ok()
        })
        .await;
    }
    until("the pods to have moved", async || {
        let pods = stage.pods().await;
        let settled =
            pods.len() == 9 && pods.iter().all(|pod| node_of(pod) != node && !node_of(pod).is_empty());
        settled.then_some(())
    })
    .await;
    stage.rolled_out(9).await;
    stage.api::<Deployment>().delete("web", &DeleteParams::background()).await.unwrap();
    until("everything to be gone", async || stage.pods().await.is_empty().then_some(())).await;
}

#[tokio::test]
async fn workloads_live_on_the_in_memory_server() {
    let stage = Stage::ours(5).await;
    live_a_little(&stage).await;
    assert!(stage.world.counts().scheduler.bound.get() >= 9);
    stage.world.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn workloads_live_on_a_real_server_with_our_nodes_and_controllers() {
    // Without its own workload controllers: ours do their work.
    let names: Vec<_> = WORKLOADS
        .iter()
        .copied()
        .filter(|name| name.contains("garbage") || name.contains("namespace"))
        .collect();
    let Some(plane) = ControlPlane::setup().controllers(&names).start_or_skip() else { return };
    let read = kube::config::Kubeconfig::read_from(plane.kubeconfig()).unwrap();
    let mut config = kube::Config::from_custom_kubeconfig(read, &kube::config::KubeConfigOptions::default())
        .await
        .unwrap();
    config.default_retry = false;
    let stage =
        Stage::new(Client::try_from(config).unwrap(), Options { nodes: 5, ..Options::default() }).await;
    live_a_little(&stage).await;
    stage.world.stop().await;
}

#[tokio::test]
async fn pods_wait_until_a_node_has_room() {
    // By requests alone: load would keep a pod off that wants a whole node.
    let scheduler = Scheduler::RequestsOnly;
    let client = Client::new(ApiServer::default(), "default");
    let stage = Stage::new(client, Options { nodes: 1, scheduler, ..Options::default() }).await;
    let pod = |name: &str, cpu: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}]},
        })
    };
    let nodes = Api::<Node>::all(stage.client.clone()).list(&ListParams::default()).await.unwrap();
    let room = nodes.items[0].status.as_ref().unwrap().allocatable.as_ref().unwrap()["cpu"].0.clone();
    stage.create::<Pod>(pod("large", &room)).await;
    let pods = stage.api::<Pod>();
    until("the first pod to be bound", async || {
        let pod = pods.get("large").await.unwrap();
        (!node_of(&pod).is_empty()).then_some(())
    })
    .await;
    stage.create::<Pod>(pod("small", "1m")).await;
    let told = until("the second pod to be refused", async || {
        let status = pods.get("small").await.unwrap().status?;
        status.conditions?.into_iter().find(|c| c.type_ == "PodScheduled")
    })
    .await;
    assert_eq!(told.reason.as_deref(), Some("Unschedulable"));
    assert_eq!(
        told.message.as_deref(),
        Some(
            "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 No preemption victims found \
            for incoming pod."
        )
    );
    pods.delete("large", &DeleteParams::default()).await.unwrap();
    until("the second pod to run", async || {
        let status = pods.get("small").await.unwrap().status?;
        (status.phase.as_deref() == Some("Running")).then_some(())
    })
    .await;
    stage.world.stop().await;
}

#[tokio::test]
async fn a_deleted_node_takes_its_pods_with_it() {
    let stage = Stage::ours(2).await;
    stage.create::<Deployment>(web(4)).await;
    stage.rolled_out(4).await;
    Api::<Node>::all(stage.client.clone()).delete("node-00", &DeleteParams::default()).await.unwrap();
    until("all pods to be on the other node", async || {
        let pods = stage.pods().await;
        (pods.len() == 4 && pods.iter().all(|pod| node_of(pod) == "node-01")).then_some(())
    })
    .await;
    stage.world.stop().await;
}

#[tokio::test]
async fn what_pods_use_is_reported() {
    let stage = Stage::ours(2).await;
    stage.create::<Deployment>(web(3)).await;
    stage.rolled_out(3).await;
    let figures = until("figures of all pods", async || {
        stage.figures.lock().unwrap().clone().filter(|figures| figures.pods.len() == 3)
    })
    .await;
    assert_eq!(figures.nodes.len(), 2);
    assert!(figures.pods.iter().all(|pod| pod.containers["web"].memory_bytes > 0));
    stage.world.stop().await;
}

#[tokio::test]
async fn a_pod_burns_what_its_annotation_says_up_to_what_its_node_has() {
    let mut stage = Stage::ours(1).await;
    let mut notices = stage.world.notices().unwrap();
    // A tenth of 2000 CPUs is more than any node has, so the end of the warm-up need not be waited for.
    for name in ["greedy", "hungry"] {
        stage
            .create::<Pod>(json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": name, "annotations": {
                    "loadline.dev/usage-cpu": "2000", "loadline.dev/usage-memory": "lots",
                }},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}]},
            }))
            .await;
    }
    let nodes = Api::<Node>::all(stage.client.clone()).list(&ListParams::default()).await.unwrap();
    let cpus = nodes.items[0].status.as_ref().unwrap().capacity.as_ref().unwrap()["cpu"].0.clone();
    until("the node to be full", async || {
        let figures = stage.figures.lock().unwrap().clone()?;
        (figures.pods.len() == 2 && figures.nodes[0].used.cpu_milli == cpus.parse::<i64>().unwrap() * 1000)
            .then_some(())
    })
    .await;
    stage.world.stop().await;
    let mut told = Vec::new();
    while let Some(notice) = notices.recv().await {
        told.extend(notice.what.contains("usage-memory").then_some(notice.what));
    }
    let expected = "an amount of memory such as 1Gi expected, found \"lots\"";
    assert_eq!(told, [format!("ignores annotation loadline.dev/usage-memory: {expected}")]);
}
