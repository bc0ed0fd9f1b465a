//! Publishing how loaded members are, against in-memory API servers for the hub and for each member.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use loadline_api::json::Tree;
use loadline_api::ocm::{self, LOAD, fleet};
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::metrics::Sample;
use loadline_core::member::Rules;
use loadline_core::place::ClusterLoad;
use loadline_services::Ctx;
use loadline_services::cluster::{Access, Connection, Writer, lease};
use loadline_services::fleet::publish::{self, ByCluster, ByObject, ByOutcome, Metrics, Options};
use loadline_services::serve::probes::Status;
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(50);
/// Where half of it is short enough to be waited for, and long enough for a stamp in whole seconds.
const SHORT: SignedDuration = SignedDuration::from_secs(6);

fn ago(seconds: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_secs(seconds)
}

/// A server in memory, and the line to it.
struct Cluster {
    server: ApiServer,
    faults: Faults,
    client: Client,
}

impl Cluster {
    fn new() -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        Self { server, faults: Faults::seeded(1), client }
    }

    /// By the line that can be cut.
    fn access(&self) -> Access {
        Access::Client(Client::new(self.faults.layer(self.server.clone()), "default"))
    }
}

/// A hub that knows the kinds.
struct Hub(Cluster);

impl Hub {
    async fn new(clusters: &[&str]) -> Self {
        let cluster = Cluster::new();
        let writer = Writer::new(Connection::new(cluster.client.clone()), "test");
        for text in ocm::DEFINITIONS {
            let definition: Value = serde_saphyr::from_str(text).unwrap();
            writer.define(&definition).await.unwrap();
        }
        let hub = Self(cluster);
        for name in clusters {
            hub.register(name).await;
        }
        hub
    }

    fn api(&self, version: &str, kind: &str, namespace: Option<&str>) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk(ocm::GROUP, version, kind));
        match namespace {
            Some(namespace) => Api::namespaced_with(self.0.client.clone(), namespace, &kind),
            None => Api::all_with(self.0.client.clone(), &kind),
        }
    }

    fn clusters(&self) -> Api<DynamicObject> {
        self.api("v1", "ManagedCluster", None)
    }

    fn scores(&self, cluster: &str) -> Api<DynamicObject> {
        self.api("v1alpha1", "AddOnPlacementScore", Some(cluster))
    }

    async fn register(&self, name: &str) {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let writer = Writer::new(Connection::new(self.0.client.clone()), "test");
        let _ = writer.create(loadline_services::cluster::resource::NAMESPACES, "", &namespace).await;
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name}, "spec": {"hubAcceptsClient": true}});
        self.clusters().create(&PostParams::default(), &from_value(cluster).unwrap()).await.unwrap();
    }

    /// What the annotation of a cluster says, as our placements read it.
    async fn load(&self, cluster: &str) -> Option<ClusterLoad> {
        let object = self.clusters().get_opt(cluster).await.unwrap()?;
        let (facts, warnings) = fleet::cluster(&Tree::from(&json!(object))).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        facts.load
    }

    /// What a score object says, and until when.
    async fn scored(&self, cluster: &str) -> Option<(BTreeMap<String, i32>, Timestamp)> {
        let object = self.scores(cluster).get_opt("loadline").await.unwrap()?;
        let ((of, _, scores), warnings) = fleet::scores(&Tree::from(&json!(object))).unwrap();
        assert!(warnings.is_empty() && of == cluster, "{warnings:?}");
        Some((scores.values, scores.valid_until?))
    }
}

/// A member with nodes of 4 cores and 8 GiB.
struct Member(Cluster);

impl Member {
    async fn new(nodes: &[&str]) -> Self {
        let cluster = Cluster::new();
        let api: Api<Node> = Api::all(cluster.client.clone());
        for name in nodes {
            let has = json!({"cpu": "4", "memory": "8Gi", "pods": "110", "nvidia.com/gpu": "2"});
            let ready = json!([{"type": "Ready", "status": "True"}]);
            let node = json!({"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has, "conditions": ready}});
            api.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
        }
        Self(cluster)
    }

    /// A pod that has been running for long.
    async fn pod(&self, name: &str, node: &str, requests: Value) {
        let pods: Api<Pod> = Api::default_namespaced(self.0.client.clone());
        let limits = json!({"nvidia.com/gpu": requests["nvidia.com/gpu"]});
        let limits = if requests["nvidia.com/gpu"].is_null() { json!({}) } else { limits };
        let pod = json!({"metadata": {"name": name}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests, "limits": limits}}]}});
        pods.create(&PostParams::default(), &from_value(pod).unwrap()).await.unwrap();
        let running = json!({"running": {"startedAt": ago(3600).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()}});
        let status = json!({"status": {"phase": "Running", "containerStatuses": [{"name": "c", "image": "i",
            "imageID": "i", "ready": true, "restartCount": 0, "state": running}]}});
        pods.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    }

    fn uses(&self, node: &str, cpu: &str, memory: &str, at: Timestamp) {
        let usage =
            [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.to_owned(), amount.to_owned()));
        let sample = Sample { at, window: Duration::from_secs(15) };
        self.0.server.set_node_metrics(node, &usage.into(), sample);
    }
}

/// A node that is measured all the time, until this is dropped.
struct Measured(JoinHandle<()>);

impl Measured {
    fn of(member: &Member, cpu: &'static str) -> Self {
        let member = Member(Cluster { server: member.0.server.clone(), ..Cluster::new() });
        Self(tokio::spawn(async move {
            loop {
                member.uses("n1", cpu, "1Gi", Timestamp::now());
                tokio::time::sleep(OFTEN).await;
            }
        }))
    }
}

impl Drop for Measured {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A publisher that runs.
struct Running {
    stop: CancellationToken,
    task: JoinHandle<()>,
    status: Status,
    metrics: Metrics,
    all: loadline_services::ctx::Metrics,
}

impl Running {
    fn start(hub: &Hub, members: &[(&str, &Member)], adjust: impl FnOnce(&mut Options)) -> Self {
        let members = members.iter().map(|(name, member)| ((*name).to_owned(), member.0.access())).collect();
        let mut options = Options { every: OFTEN, rate: 1000.0, ..Options::new(hub.0.access(), members) };
        adjust(&mut options);
        let (status, metrics) = (options.status.clone(), options.metrics.clone());
        let stop = CancellationToken::new();
        let ctx = Ctx::new("test", stop.clone());
        let all = ctx.metrics.clone();
        let task = tokio::spawn(async move { publish::run(ctx, options).await.unwrap() });
        Self { stop, task, status, metrics, all }
    }

    /// Waits until something is so; says what it is.
    async fn until<T, F: Future<Output = Option<T>>>(&self, what: &str, ask: impl Fn() -> F) -> T {
        let came = async {
            loop {
                if let Some(answer) = ask().await {
                    return answer;
                }
                tokio::time::sleep(OFTEN / 4).await;
            }
        };
        timeout(PATIENCE, came)
            .await
            .unwrap_or_else(|_| panic!("{what}: never so; {}", self.status.readiness().progress))
    }

    async fn says(&self, what: &str) {
        self.until(what, || async { self.status.readiness().progress.contains(what).then_some(()) }).await;
    }

    /// Waits until so many more summaries were not worth a write.
    async fn spared(&self, more: u64) {
        let goal = self.metrics.spared.get() + more;
        self.until("summaries that change nothing", || async {
            (self.metrics.spared.get() >= goal).then_some(())
        })
        .await;
    }

    /// Waits until a score has these points; says until when they hold.
    async fn scores(&self, hub: &Hub, cluster: &str, score: &str, points: i32) -> Timestamp {
        self.until(&format!("{cluster}: {score} {points}"), || async {
            let (scores, until) = hub.scored(cluster).await?;
            (scores.get(score) == Some(&points)).then_some(until)
        })
        .await
    }

    /// Waits until the annotation says that so many cores are used.
    async fn loaded(&self, hub: &Hub, cluster: &str, cores: f64) -> ClusterLoad {
        self.until(&format!("{cluster}: {cores} cores"), || async {
            hub.load(cluster).await.filter(|load| amount(&load.measured, "cpu") == Some(cores))
        })
        .await
    }

    fn failed(&self, object: &'static str, reason: &'static str) -> u64 {
        self.metrics.failures.get_or_create(&ByOutcome { object, reason }).get()
    }

    fn wrote(&self, object: &'static str) -> u64 {
        let of = |reason| self.metrics.writes.get_or_create(&ByObject { object, reason }).get();
        ["first", "changed", "renewal"].into_iter().map(of).sum()
    }

    /// How often the hub was asked for anything.
    fn asked(&self) -> Vec<String> {
        let text = self.all.text().unwrap();
        let hub = text.lines().filter(|line| line.starts_with("loadline_publish_api_requests_total"));
        hub.map(str::to_owned).collect()
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }
}

fn amount(load: &BTreeMap<String, loadline_core::place::Amount>, resource: &str) -> Option<f64> {
    load.get(resource).map(|amount| amount.float())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_requested_and_used_reaches_the_hub_and_follows_the_member() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1", "n2"]).await;
    member.pod("web", "n1", json!({"cpu": "1500m", "memory": "2Gi"})).await;
    member.pod("train", "n2", json!({"cpu": "500m", "memory": "2Gi", "nvidia.com/gpu": "1"})).await;
    let measured = ago(60);
    member.uses("n1", "1", "1Gi", measured);
    member.uses("n2", "600m", "1Gi", measured);
    let running = Running::start(&hub, &[("m1", &member)], |_| {});

    let until = running.scores(&hub, "m1", "cpuFreeMeasured", 60).await;
    let (scores, _) = hub.scored("m1").await.unwrap();
    let want = [
        ("cpuAvailable", -88),               // 6 of 100 cores: 12 − 100
        ("cpuFreeMeasured", 60),             // 200 × 6.4 ÷ 8 − 100
        ("cpuFreeRequested", 50),            // 200 × 6 ÷ 8 − 100
        ("memAvailable", -97),               // 12 of 1024 GiB: 2.34 − 100, toward zero
        ("memoryFreeMeasured", 75),          // 200 × 14 ÷ 16 − 100
        ("memoryFreeRequested", 50),         // 200 × 12 ÷ 16 − 100
        ("nvidia.com/gpuFreeRequested", 50), // 200 × 3 ÷ 4 − 100
        ("podsFreeRequested", 98),           // 200 × 218 ÷ 220 − 100 is 98.2
    ];
    assert_eq!(scores, want.map(|(name, points)| (name.to_owned(), points)).into());
    let stamp: Timestamp = measured.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().parse().unwrap();
    assert_eq!(until, stamp + SignedDuration::from_mins(5), "from when it was measured");
    let load = running.loaded(&hub, "m1", 1.6).await;
    assert_eq!((load.at, amount(&load.requested, "cpu")), (stamp, Some(2.0)));
    assert_eq!(amount(&load.requested, "nvidia.com/gpu"), Some(1.0));
    assert_eq!(amount(&load.measured, "nvidia.com/gpu"), None, "nobody measures it");

    // More is used; more is asked for; a node goes down.
    member.uses("n1", "3400m", "1Gi", ago(40));
    running.scores(&hub, "m1", "cpuFreeMeasured", 0).await;
    member.pod("more", "n1", json!({"cpu": "1"})).await;
    running.scores(&hub, "m1", "cpuFreeRequested", 25).await;
    let nodes: Api<Node> = Api::all(member.0.client.clone());
    let down = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
    nodes.patch_status("n2", &PatchParams::default(), &Patch::Merge(&down)).await.unwrap();
    // 2.5 on n1, and all 4 of n2: 200 × 1.5 ÷ 8 − 100.
    running.scores(&hub, "m1", "cpuFreeRequested", -63).await;
    running.says("m1: 2 nodes, 3 pods, measured").await;
    assert!(running.status.readiness().ready);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_is_not_written_and_drift_is() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.loaded(&hub, "m1", 1.0).await;
    running.spared(3).await;
    let (before, asked) = (hub.0.server.revision(), running.asked());
    assert_eq!(asked.len(), 4, "looked for, made, and a patch of each: {asked:?}");
    assert!(asked.iter().all(|line| line.ends_with(" 1")), "once: {asked:?}");
    // Up and down by less than a hundredth of 4 cores.
    for (seconds, cpu) in [(50, "1030m"), (45, "970m"), (40, "1020m")] {
        member.uses("n1", cpu, "1Gi", ago(seconds));
        running.spared(3).await;
    }
    assert_eq!(
        (hub.0.server.revision(), running.asked()),
        (before, asked),
        "nothing was asked of the hub at all"
    );
    member.uses("n1", "1041m", "1Gi", ago(30));
    // 200 × 2.959 ÷ 4 is 147.95.
    running.scores(&hub, "m1", "cpuFreeMeasured", 47).await;
    running.loaded(&hub, "m1", 1.041).await;
    running.spared(3).await;
    assert_eq!(hub.0.server.revision(), before + 2, "one patch for each of the two objects");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_change_is_renewed() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1"]).await;
    let _measured = Measured::of(&member, "1");
    let short = |options: &mut Options| options.rules.validity = SHORT;
    let running = Running::start(&hub, &[("m1", &member)], short);
    let first = running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    let stamp = running.loaded(&hub, "m1", 1.0).await.at;
    for object in ["scores", "annotation"] {
        let renewals = ByObject { object, reason: "renewal" };
        running
            .until(object, || async {
                (running.metrics.writes.get_or_create(&renewals).get() > 0).then_some(())
            })
            .await;
    }
    let (renewed, until) = hub.scored("m1").await.unwrap();
    assert!(until > first && hub.load("m1").await.unwrap().at > stamp);
    assert_eq!(renewed["cpuFreeMeasured"], 50);
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_that_is_away_is_not_told_of_until_it_is_back() {
    let hub = Hub::new(&["m1", "m2"]).await;
    let (m1, m2) = (Member::new(&["n1"]).await, Member::new(&["n1"]).await);
    let (measured, _also) = (Measured::of(&m1, "1"), Measured::of(&m2, "3"));
    let short = |options: &mut Options| options.rules.validity = SHORT;
    let running = Running::start(&hub, &[("m1", &m1), ("m2", &m2)], short);
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.scores(&hub, "m2", "cpuFreeMeasured", -50).await;

    let of_m1 = ByCluster { cluster: "m1".to_owned() };
    let expired = || running.metrics.expired.get_or_create(&of_m1).get();
    running.until("it holds", || async { (expired() == 0).then_some(()) }).await;

    m1.0.faults.disconnect();
    running.says("m1: away: ").await;
    let last = hub.scored("m1").await.unwrap();
    running.until("it has expired", || async { (expired() == 1).then_some(()) }).await;
    assert_eq!(hub.scored("m1").await.unwrap(), last, "nothing was made up");
    assert!(last.1 < Timestamp::now(), "and what was told does not hold any more");
    let other = hub.scored("m2").await.unwrap();
    assert!(other.1 > last.1, "the other member is told of all the time");
    assert!(running.status.readiness().ready, "one that is away does not make it unready");

    drop(measured);
    let _measured = Measured::of(&m1, "2");
    m1.0.faults.reconnect();
    running.scores(&hub, "m1", "cpuFreeMeasured", 0).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_while_a_member_was_away_is_gone() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1", "n2"]).await;
    member.pod("stays", "n1", json!({"cpu": "1"})).await;
    member.pod("goes", "n1", json!({"cpu": "3"})).await;
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.scores(&hub, "m1", "cpuFreeRequested", 0).await;
    member.0.faults.disconnect();
    running.says("m1: away: ").await;
    let pods: Api<Pod> = Api::default_namespaced(member.0.client.clone());
    let at_once = DeleteParams { grace_period_seconds: Some(0), ..DeleteParams::default() };
    pods.delete("goes", &at_once).await.unwrap();
    let nodes: Api<Node> = Api::all(member.0.client.clone());
    nodes.delete("n2", &DeleteParams::default()).await.unwrap();
    // Nobody tells what happened meanwhile: everything is listed again.
    member.0.server.restart();
    member.0.faults.reconnect();
    // One of 4 cores: 200 × 3 ÷ 4 − 100.
    running.scores(&hub, "m1", "cpuFreeRequested", 50).await;
    assert_eq!(hub.scored("m1").await.unwrap().0["podsFreeRequested"], 98, "200 × 109 ÷ 110 − 100 is 98.2");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn use_that_is_not_measured_any_more_is_not_known_and_requests_still_are() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1"]).await;
    member.pod("web", "n1", json!({"cpu": "1"})).await;
    let measured = Measured::of(&member, "2");
    let short = |options: &mut Options| options.rules.validity = SHORT;
    let running = Running::start(&hub, &[("m1", &member)], short);
    running.scores(&hub, "m1", "cpuFreeMeasured", 0).await;
    drop(measured);
    member.0.server.clear_node_metrics("n1");
    running
        .until("measured no more", || async {
            let (scores, _) = hub.scored("m1").await?;
            (!scores.contains_key("cpuFreeMeasured")).then_some(())
        })
        .await;
    assert_eq!(hub.scored("m1").await.unwrap().0["cpuFreeRequested"], 50, "200 × 3 ÷ 4 − 100");
    let load = running
        .until("the annotation, too", || async {
            hub.load("m1").await.filter(|load| load.measured.is_empty())
        })
        .await;
    assert_eq!(amount(&load.requested, "cpu"), Some(1.0));
    running.says("use not known (0 of 1 nodes measured)").await;
    let _measured = Measured::of(&member, "1");
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_away_gets_what_is_known_when_it_is_back() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    let last = running.loaded(&hub, "m1", 1.0).await;
    hub.0.faults.disconnect();
    member.uses("n1", "2", "1Gi", ago(50));
    running
        .until("failures", || async { (running.failed("annotation", "unreachable") >= 2).then_some(()) })
        .await;
    running.says("annotation: cannot patch").await;
    // What is known by then, not what was known when it went away.
    member.uses("n1", "3", "1Gi", ago(40));
    assert_eq!(hub.load("m1").await, Some(last));
    hub.0.faults.reconnect();
    running.scores(&hub, "m1", "cpuFreeMeasured", -50).await;
    running.loaded(&hub, "m1", 3.0).await;
    running.says("annotation: told").await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_is_not_registered_is_told_and_waited_for() {
    let hub = Hub::new(&[]).await;
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.says("the hub has no ManagedCluster m1: waiting for it to be registered").await;
    running.until("again", || async { (running.failed("annotation", "missing") >= 2).then_some(()) }).await;
    assert!(!running.status.readiness().ready);
    assert!(hub.clusters().get_opt("m1").await.unwrap().is_none(), "it is not ours to create");
    let scores = hub.scores("m1").get_opt("loadline").await.unwrap();
    assert!(scores.is_none(), "scores of nobody");
    hub.register("m1").await;
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.loaded(&hub, "m1", 1.0).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scores_of_somebody_else_are_left_alone() {
    let hub = Hub::new(&["m1"]).await;
    let foreign = json!({"apiVersion": "cluster.open-cluster-management.io/v1alpha1", "kind": "AddOnPlacementScore",
        "metadata": {"name": "loadline", "namespace": "m1"}});
    let api = hub.scores("m1");
    api.create(&PostParams::default(), &from_value(foreign).unwrap()).await.unwrap();
    let theirs = json!({"status": {"scores": [{"name": "cpuFreeMeasured", "value": 7}]}});
    api.patch_status("loadline", &PatchParams::default(), &Patch::Merge(&theirs)).await.unwrap();
    let before = api.get("loadline").await.unwrap();

    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.says("AddOnPlacementScore m1/loadline is somebody else's").await;
    running.until("told of the load", || async { hub.load("m1").await }).await;
    running.until("again", || async { (running.failed("scores", "foreign") >= 2).then_some(()) }).await;
    let after = api.get("loadline").await.unwrap();
    assert_eq!(after.metadata.resource_version, before.metadata.resource_version, "untouched");
    api.delete("loadline", &DeleteParams::default()).await.unwrap();
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_conflict_or_whose_answer_is_lost_come_right() {
    let hub = Hub::new(&["m1"]).await;
    let scores = "/apis/cluster.open-cluster-management.io/v1alpha1/namespaces/m1/addonplacementscores/loadline/status";
    let clusters = "/apis/cluster.open-cluster-management.io/v1/managedclusters/m1";
    for rule in [
        Rule::new(Action::Answer(Answer::Conflict)).verb("patch").path(scores).nth(1),
        Rule::new(Action::DropAnswer).verb("patch").path(scores).nth(2),
        Rule::new(Action::DropAnswer).verb("patch").path(clusters).nth(1),
        Rule::new(Action::Answer(Answer::TooManyRequests { retry_after: 1 }))
            .verb("patch")
            .path(clusters)
            .nth(2),
    ] {
        hub.0.faults.add(rule);
    }
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let running = Running::start(&hub, &[("m1", &member)], |_| {});
    running.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    running.says("annotation: told").await;
    running.says("scores: told").await;
    assert_eq!(hub.0.faults.log().len(), 4, "all of it happened");
    // One that is deleted is made again, and nobody's patch of before hits it.
    hub.scores("m1").delete("loadline", &DeleteParams::default()).await.unwrap();
    member.uses("n1", "3", "1Gi", ago(40));
    running.scores(&hub, "m1", "cpuFreeMeasured", -50).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_of_two_leads_and_the_other_takes_over() {
    let hub = Hub::new(&["m1"]).await;
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let led = |identity: &'static str| {
        move |options: &mut Options| {
            let mut election = lease::Options::new("kube-system", "loadline-publish-m1");
            election.settings.retry_period = Duration::from_millis(200);
            options.lease = Some(election.check(&election.lock(identity)).unwrap());
        }
    };
    let first = Running::start(&hub, &[("m1", &member)], led("a"));
    first.scores(&hub, "m1", "cpuFreeMeasured", 50).await;
    let second = Running::start(&hub, &[("m1", &member)], led("b"));
    second.says("standing by: another one leads").await;
    member.uses("n1", "2", "1Gi", ago(50));
    first.scores(&hub, "m1", "cpuFreeMeasured", 0).await;
    assert_eq!(second.wrote("scores") + second.wrote("annotation"), 0);
    first.end().await;
    member.uses("n1", "3", "1Gi", ago(40));
    second.scores(&hub, "m1", "cpuFreeMeasured", -50).await;
    assert!(second.wrote("scores") > 0);
    second.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_written_a_second_than_allowed_and_everybody_gets_a_turn() {
    let names: Vec<String> = (0..20).map(|i| format!("m{i}")).collect();
    let hub = Hub::new(&names.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let member = Member::new(&["n1"]).await;
    member.uses("n1", "1", "1Gi", ago(60));
    let members: Vec<(&str, &Member)> = names.iter().map(|name| (name.as_str(), &member)).collect();
    let (rate, begun) = (10.0, std::time::Instant::now());
    let running = Running::start(&hub, &members, |options| options.rate = rate);
    let wrote = || running.wrote("annotation") + running.wrote("scores");
    for goal in [13, 40] {
        let (written, elapsed) = running
            .until("written", || async {
                // Counted first: the time it took is then never too short.
                let written = wrote();
                (written >= goal).then(|| (written, begun.elapsed()))
            })
            .await;
        // A second's worth at once, and then one after the other.
        let most = rate * (elapsed.as_secs_f64() + 1.0) + 1.0;
        assert!(f64::from(u32::try_from(written).unwrap()) <= most, "{written} in {elapsed:?}");
    }
    for name in &names {
        assert!(hub.load(name).await.is_some() && hub.scored(name).await.is_some(), "{name}");
    }
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_are_not_accepted_for_long_end_it() {
    let token = Some("another".to_owned());
    let server =
        ApiServer::new(loadline_apiserver::Config { token, ..loadline_apiserver::Config::default() });
    let member = Member::new(&["n1"]).await;
    let members = BTreeMap::from([("m1".to_owned(), member.0.access())]);
    let mut options = Options::new(Access::Client(Client::new(server, "default")), members);
    (options.every, options.rules.validity) = (OFTEN, SignedDuration::from_secs(1));
    let ended = publish::run(Ctx::new("test", CancellationToken::new()), options);
    let error = timeout(PATIENCE, ended).await.expect("it ends").unwrap_err();
    assert!(error.to_string().contains("has not accepted our credentials"), "{error}");
}

#[test]
fn what_is_published_holds_as_long_as_placements_look_at_it() {
    // A summary is renewed halfway; until then our placements must not take it for too old.
    let most = loadline_core::place::Extra::default().max_age;
    assert!(Rules::default().validity <= most, "{most:?}");
    assert_eq!(LOAD, "loadline.dev/load");
}
