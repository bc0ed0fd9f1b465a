//! The recommender against the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use loadline_api::recommendation;
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_services::Ctx;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::recommender::{self, Options};
use loadline_services::serve::probes::Status;
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(100);

/// A recommender that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    status: Status,
}

impl Running {
    fn start(client: &Client, define: bool) -> Self {
        let options = Options { every: OFTEN, define, ..Options::new(Access::Client(client.clone())) };
        let (status, stop) = (options.status.clone(), CancellationToken::new());
        let ctx = Ctx::new("test", stop.clone());
        let task = tokio::spawn(async move { recommender::run(ctx, options).await.unwrap() });
        Self { stop, task, status }
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }
}

/// A cluster in memory with a Deployment `web` that has a replica set.
struct World {
    server: ApiServer,
    client: Client,
    recommendations: Api<DynamicObject>,
    /// Who makes its pods.
    set: Value,
}

fn owned(kind: &str, name: &str, uid: &str) -> Value {
    json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": uid, "controller": true}])
}

impl World {
    async fn new(defined: bool) -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        if defined {
            let definition: Value = serde_saphyr::from_str(recommendation::DEFINITION).unwrap();
            Writer::new(Connection::new(client.clone()), "test").define(&definition).await.unwrap();
        }
        let template = json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "i"}]}});
        let spec = json!({"selector": {"matchLabels": {"app": "web"}}, "template": template});
        let deployment = json!({"metadata": {"name": "web"}, "spec": spec});
        let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
        let made =
            deployments.create(&PostParams::default(), &from_value(deployment).unwrap()).await.unwrap();
        let owner = owned("Deployment", "web", &made.metadata.uid.unwrap());
        let set = json!({"metadata": {"name": "web-1", "ownerReferences": owner}, "spec": spec});
        let sets: Api<ReplicaSet> = Api::default_namespaced(client.clone());
        let made = sets.create(&PostParams::default(), &from_value(set).unwrap()).await.unwrap();
        let set = owned("ReplicaSet", "web-1", &made.metadata.uid.unwrap());
        let kind = GroupVersionKind::gvk("analysis.crane.io", "v1alpha1", "Recommendation");
        let recommendations = Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind));
        Self { server, client, recommendations, set }
    }

    async fn pod(&self, name: &str) {
        let pod = json!({"metadata": {"name": name, "labels": {"app": "web"}, "ownerReferences": &self.set},
            "spec": {"containers": [{"name": "app", "image": "i", "resources": {"limits": {"memory": "512Mi"}}}]}});
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        pods.create(&PostParams::default(), &from_value(pod).unwrap()).await.unwrap();
    }

    fn uses(&self, pod: &str, cpu: &str, memory: &str, at: Timestamp) {
        self.used(pod, cpu, memory, Sample { at, window: Duration::from_secs(15) });
    }

    fn used(&self, pod: &str, cpu: &str, memory: &str, sample: Sample) {
        let usage =
            BTreeMap::from([("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), memory.to_owned())]);
        let containers = BTreeMap::from([("app".to_owned(), usage)]);
        self.server.set_pod_metrics("default", pod, &containers, sample);
    }

    /// Waits until what is recommended for `app` is as wanted: CPU in millicores, memory in MiB.
    async fn recommended(&self, running: &Running, wanted: impl Fn(i64, i64) -> bool) -> DynamicObject {
        let found = async {
            loop {
                let all = self.recommendations.list(&ListParams::default()).await;
                for object in all.map(|all| all.items).unwrap_or_default() {
                    let text = object.data["status"]["recommendedValue"].as_str().unwrap().to_owned();
                    let value: Value = serde_json::from_str(&text).unwrap();
                    let target = &value["resourceRequest"]["containers"][0]["target"];
                    let cpu = target["cpu"]
                        .as_str()
                        .and_then(|text| text.strip_suffix('m'))
                        .map_or(0, |n| n.parse().unwrap());
                    let memory: i64 = target["memory"].as_str().map_or(0, |text| text.parse().unwrap());
                    if wanted(cpu, memory >> 20) {
                        return object;
                    }
                }
                tokio::time::sleep(OFTEN / 4).await;
            }
        };
        timeout(PATIENCE, found)
            .await
            .unwrap_or_else(|_| panic!("never so: {:?}", running.status.readiness()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_recommended_what_its_sibling_uses_and_a_restart_forgets_nothing() {
    let world = World::new(true).await;
    let running = Running::start(&world.client, false);
    world.pod("web-1-a").await;
    let now = Timestamp::now();
    world.uses("web-1-a", "200m", "300Mi", now);
    // The edges above 200m and 300 MiB are 205.9m and 304.3 MiB; 30 % more is 267.7m and 395.5 MiB, rounded up.
    let object = world.recommended(&running, |cpu, memory| (cpu, memory) == (268, 396)).await;
    assert_eq!(object.data["spec"]["targetRef"]["kind"], "Deployment", "the replica set's maker");
    assert_eq!(object.data["spec"]["targetRef"]["name"], "web");
    assert_eq!(object.data["spec"]["adoptionType"], "Status", "no workload is changed");
    let first = object.metadata.resource_version.clone();
    running.end().await;

    // Another process, and a pod that uses next to nothing: what was learned before still counts.
    let running = Running::start(&world.client, false);
    world.pod("web-1-b").await;
    let later = now + SignedDuration::from_secs(15);
    world.uses("web-1-b", "10m", "400Mi", later);
    let object = world.recommended(&running, |_, memory| memory > 500).await;
    assert_ne!(object.metadata.resource_version, first);
    let text = object.data["status"]["recommendedValue"].as_str().unwrap();
    assert!(text.contains("\"cpu\":\"268m\""), "half of all time it was 200m: {text}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_in_the_day_it_is_busy_is_told_with_what_is_recommended() {
    let world = World::new(true).await;
    let running = Running::start(&world.client, false);
    world.pod("web-1-a").await;
    let now = Timestamp::now();
    // Over five minutes it is a mean by itself.
    world.used("web-1-a", "200m", "300Mi", Sample { at: now, window: Duration::from_mins(5) });
    let object = world.recommended(&running, |cpu, _| cpu == 268).await;
    let text = object.metadata.annotations.unwrap_or_default()["loadline.dev/day"].clone();
    let day: Value = serde_json::from_str(&text).unwrap();
    let hours = day["app"].as_array().unwrap();
    let hour = usize::try_from(now.as_second() / 3600 % 24).unwrap();
    assert_eq!((hours.len(), &hours[hour]), (24, &json!(200)), "{text}");
    assert_eq!(hours.iter().filter(|hour| hour.is_null()).count(), 23, "the others were not seen: {text}");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_for_lack_of_memory_raises_what_is_recommended() {
    let world = World::new(true).await;
    let running = Running::start(&world.client, false);
    world.pod("web-1-a").await;
    world.uses("web-1-a", "200m", "300Mi", Timestamp::now());
    world.recommended(&running, |_, memory| memory == 396).await;
    let ended = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": Timestamp::now().to_string()}});
    let status = json!({"status": {"containerStatuses": [{"name": "app", "image": "i", "imageID": "i", "ready": true,
        "restartCount": 1, "state": {"running": {}}, "lastState": ended}]}});
    let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
    pods.patch_status("web-1-a", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    // It had 512 MiB: max(512 × 1.2, 512 + 100) = 614.4 MiB, and a margin of 30 % at least beside rounding.
    world.recommended(&running, |_, memory| memory >= 798).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_is_not_there_is_told_and_noticed_when_it_comes() {
    let world = World::new(false).await;
    let running = Running::start(&world.client, false);
    world.pod("web-1-a").await;
    world.uses("web-1-a", "200m", "300Mi", Timestamp::now());
    let told = async {
        while !running.status.readiness().progress.contains("recommendations: listing recommendations") {
            tokio::time::sleep(OFTEN / 4).await;
        }
    };
    timeout(PATIENCE, told).await.unwrap_or_else(|_| panic!("{:?}", running.status.readiness()));
    assert!(!running.status.readiness().ready);
    running.end().await;

    let running = Running::start(&world.client, true);
    world.recommended(&running, |cpu, _| cpu == 268).await;
    running.end().await;
}
