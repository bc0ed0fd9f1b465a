//! What does the scheduler tell of what it did, and the shadow of what it would have done? On the in-memory API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, ObjectReference, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use loadline_api::json::Tree;
use loadline_api::scheduler::{Configuration, SchedulerProfile, WhenOverloaded, read};
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_core::load::policy::Rules;
use loadline_core::object::{Key, Meta};
use loadline_services::Ctx;
use loadline_services::cluster::{Access, Connection, Writer};
use loadline_services::reload::Source;
use loadline_services::scheduler::shadow::{self, Report, Reported};
use loadline_services::scheduler::{self, Options};
use loadline_services::sources::metrics_api;
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const OFTEN: Duration = Duration::from_millis(50);

/// Nodes of ten CPUs, of which 6.5 may be used.
struct Cluster {
    server: ApiServer,
    client: Client,
}

impl Cluster {
    async fn of(nodes: &[&str]) -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let has = json!({"cpu": "10", "memory": "64Gi", "pods": "110"});
        let all: Api<Node> = Api::all(client.clone());
        for name in nodes {
            let node = json!({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}});
            all.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
        }
        Self { server, client }
    }

    fn options(&self) -> Options {
        let measure = metrics_api::Options { every: OFTEN, ..metrics_api::Options::default() };
        Options { measure, ..Options::new(Access::Client(self.client.clone())) }
    }

    /// Nodes use this, in the last fifteen seconds.
    fn nodes_use(&self, at: Timestamp, used: &[(&str, &str)]) {
        for (node, cpu) in used {
            self.server.set_node_metrics(node, &usage(cpu), sample(at));
        }
    }

    /// A pod that asks for one CPU.
    async fn pod(&self, name: &str) -> Meta {
        let requests = json!({"cpu": "1", "memory": "1Gi"});
        let pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "loadline",
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}});
        let pods: Api<Pod> = Api::default_namespaced(self.client.clone());
        let made = pods.create(&PostParams::default(), &from_value(pod).unwrap()).await.unwrap();
        Meta {
            key: Key::new("default", name),
            uid: made.metadata.uid.unwrap().as_str().into(),
            revision: None,
        }
    }

    /// The first Event with that reason, once there is one.
    async fn event(&self, reason: &str) -> Event {
        let events: Api<Event> = Api::all(self.client.clone());
        let waiting = async {
            loop {
                let all = events.list(&ListParams::default()).await.unwrap().items;
                if let Some(event) = all.into_iter().find(|event| event.reason.as_deref() == Some(reason)) {
                    return event;
                }
                tokio::time::sleep(OFTEN).await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("no Event {reason}"))
    }

    /// Somebody else sends a pod there.
    async fn bind(&self, pod: &Meta, node: &str) {
        Writer::new(Connection::new(self.client.clone()), "test").bind(pod, node).await.unwrap();
    }
}

fn usage(cpu: &str) -> BTreeMap<String, String> {
    [("cpu", cpu), ("memory", "1Gi")].map(|(name, text)| (name.to_owned(), text.to_owned())).into()
}

fn sample(at: Timestamp) -> Sample {
    Sample { at, window: Duration::from_secs(15) }
}

/// The report, once it is so.
async fn report(reported: &Reported, what: &str, is_so: impl Fn(&Report) -> bool) -> Report {
    let waiting = async {
        loop {
            let report = reported.get();
            if is_so(&report) {
                return report;
            }
            tokio::time::sleep(OFTEN).await;
        }
    };
    timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{what}: {:?}", reported.get()))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shadow_tells_of_both_worlds_what_each_is_like() {
    let cluster = Cluster::of(&["busy", "idle"]).await;
    let there = cluster.pod("there").await;
    cluster.bind(&there, "busy").await;
    let began = Timestamp::now();
    cluster.nodes_use(began, &[("busy", "6"), ("idle", "500m")]);

    let ctx = Ctx::new("test", CancellationToken::new());
    let reported = Reported::default();
    let running = tokio::spawn(shadow::run(ctx.clone(), cluster.options(), reported.clone()));
    report(&reported, "measurements", |report| report.actual.peak_percent == Some(60)).await;

    // 6 + 1 is over 6.5: we would not have sent it there.
    let web = cluster.pod("web").await;
    cluster.bind(&web, "busy").await;
    let seen = report(&reported, "the pod", |report| report.pods_elsewhere == 1).await;
    let [one] = seen.differences.iter().collect::<Vec<_>>()[..] else { panic!("{seen:?}") };
    assert_eq!((&*one.pod, &*one.actual, &*one.shadow), ("default/web", "busy", "idle"));

    // It uses 2 of the 8: in our world these are on the other node, and nobody is over 6.5.
    let later = began + SignedDuration::from_secs(1);
    let containers = BTreeMap::from([("c".to_owned(), usage("2"))]);
    cluster.server.set_pod_metrics("default", "web", &containers, sample(later));
    cluster.nodes_use(later, &[("busy", "8"), ("idle", "500m")]);
    let told = report(&reported, "heat", |report| report.actual.hot_nodes == 1).await;
    let figures = |of: &shadow::World| (of.node_seconds_over_target, of.hot_nodes, of.pods_on_hot_nodes);
    assert_eq!(figures(&told.actual), (15, 1, 2), "fifteen seconds of one node with both pods");
    assert_eq!(figures(&told.shadow), (0, 0, 0), "8 − 2 and 0.5 + 2 are under 6.5");
    assert_eq!((told.actual.peak_percent, told.shadow.peak_percent), (Some(80), Some(60)));
    assert_eq!((told.pods_same, told.pods_elsewhere, told.pods_waiting), (0, 1, 0));

    // The report is what is served as metrics.
    let text = ctx.metrics.text().unwrap();
    for line in [
        "loadline_shadow_node_seconds_over_target{world=\"actual\"} 15",
        "loadline_shadow_node_seconds_over_target{world=\"shadow\"} 0",
        "loadline_shadow_hot_nodes{world=\"actual\"} 1",
        "loadline_shadow_hot_nodes{world=\"shadow\"} 0",
        "loadline_shadow_pods_on_hot_nodes{world=\"actual\"} 2",
        "loadline_shadow_pods_on_hot_nodes{world=\"shadow\"} 0",
        "loadline_shadow_pods{decision=\"elsewhere\"} 1",
        "loadline_shadow_pods{decision=\"same\"} 0",
        "loadline_shadow_pods{decision=\"wait\"} 0",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    ctx.stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shadow_judges_both_worlds_by_the_rules_of_its_file() {
    let cluster = Cluster::of(&["busy"]).await;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("scheduler.json");
    let document = json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "SchedulerConfiguration",
        "profiles": [{"schedulerName": "loadline", "settings": {"targets": {"cpu": 0.9}}}]});
    std::fs::write(&file, document.to_string()).unwrap();
    let parse = |text: &str| {
        let document: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        read(&Tree::from(&document)).map(|(read, _)| read).map_err(|problems| format!("{problems:?}"))
    };
    let options = Options { configuration: Source::file(file, parse), ..cluster.options() };
    let ctx = Ctx::new("test", CancellationToken::new());
    let reported = Reported::default();
    let running = tokio::spawn(shadow::run(ctx.clone(), options, reported.clone()));
    let began = Timestamp::now();
    for (second, used, percent, hot, why) in
        [(0, "8", 80, 0, "8 of 10 are over 0.65 and not over 0.9"), (1, "9500m", 95, 1, "9.5 are over it")]
    {
        cluster.nodes_use(began + SignedDuration::from_secs(second), &[("busy", used)]);
        let told = report(&reported, why, |report| report.shadow.peak_percent == Some(percent)).await;
        for (world, of) in [("actual", &told.actual), ("shadow", &told.shadow)] {
            let figures = (of.peak_percent, of.hot_nodes, of.node_seconds_over_target);
            assert_eq!(figures, (Some(percent), hot, 15 * hot as u64), "{world}: {why}");
        }
    }
    ctx.stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_has_to_go_for_another_is_told_for_whom() {
    let cluster = Cluster::of(&["n1"]).await;
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let class = json!({"metadata": {"name": "high"}, "value": 1000});
    let classes: Api<PriorityClass> = Api::all(cluster.client.clone());
    classes.create(&PostParams::default(), &from_value(class).unwrap()).await.unwrap();
    let make = async |name: &str, class: Option<&str>, node: Option<&str>| {
        let requests = json!({"cpu": "8", "memory": "1Gi"});
        let pod = json!({"metadata": {"name": name}, "spec": {"schedulerName": "loadline", "priorityClassName": class,
            "nodeName": node, "terminationGracePeriodSeconds": 0,
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}});
        let made = pods.create(&PostParams::default(), &from_value(pod).unwrap()).await.unwrap();
        made.metadata.uid.unwrap()
    };
    let lesser = make("lesser", None, Some("n1")).await;
    let important = make("important", Some("high"), None).await;
    let profiles = vec![SchedulerProfile::new("loadline", None)];
    let configuration = Configuration { profiles, ..Configuration::default() };
    let options = Options { configuration: Source::Fixed(Box::new(configuration)), ..cluster.options() };
    let stop = CancellationToken::new();
    let running = tokio::spawn(scheduler::run(Ctx::new("test", stop.clone()), options));

    let event = cluster.event("Preempted").await;
    assert_eq!(event.note, Some(format!("Preempted by pod {important} on node n1")));
    assert_eq!((event.type_.as_deref(), event.action.as_deref()), (Some("Normal"), Some("Preempting")));
    assert_eq!(event.reporting_controller.as_deref(), Some("loadline-scheduler"));
    let about = |object: Option<ObjectReference>| object.map(|object| (object.kind, object.name, object.uid));
    let pod = |name: &str, uid: String| Some((Some("Pod".to_owned()), Some(name.to_owned()), Some(uid)));
    assert_eq!(about(event.regarding), pod("lesser", lesser));
    assert_eq!(about(event.related), pod("important", important));
    assert_eq!(
        cluster.event("Scheduled").await.regarding.and_then(|pod| pod.name).as_deref(),
        Some("important")
    );
    stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn that_a_pod_went_to_the_least_bad_node_is_told_in_its_event_and_counted() {
    let cluster = Cluster::of(&["n1"]).await;
    // On the node itself, so that it is known as soon as the node is.
    let nodes: Api<Node> = Api::all(cluster.client.clone());
    let loaded =
        json!({"metadata": {"annotations": {"cpu_usage_avg_5m": format!("0.9,{}", Timestamp::now())}}});
    nodes.patch("n1", &PatchParams::default(), &Patch::Merge(loaded)).await.unwrap();
    let mut profile = SchedulerProfile::new("loadline", Some(Rules::default()));
    profile.when_overloaded = WhenOverloaded::LeastBad { after: SignedDuration::from_secs(1) };
    let configuration = Configuration { profiles: vec![profile], ..Configuration::default() };
    let options = Options { configuration: Source::Fixed(Box::new(configuration)), ..cluster.options() };
    let metrics = options.metrics.clone();
    cluster.pod("web").await;
    let stop = CancellationToken::new();
    let running = tokio::spawn(scheduler::run(Ctx::new("test", stop.clone()), options));

    let told = async |reason: &str| cluster.event(reason).await.note.unwrap_or_default();
    assert_eq!(
        told("Scheduled").await,
        "Successfully assigned default/web to n1: every node was over its load \
        limits for 1 s; this one is over by least, 35% of it",
        "9 + 1 − 6.5 are 3.5 CPUs of ten"
    );
    let refused = told("FailedScheduling").await;
    assert_eq!(
        refused,
        "0/1 nodes are available: 1 node(s) had a load over its threshold. preemption: 0/1 nodes are available: \
        1 Preemption is not helpful for scheduling.",
        "it was refused at first"
    );
    assert_eq!((metrics.least_bad.get(), metrics.bound.get()), (1, 1));
    let pods: Api<Pod> = Api::default_namespaced(cluster.client.clone());
    let pod: Value = serde_json::to_value(pods.get("web").await.unwrap()).unwrap();
    assert_eq!(pod["spec"]["nodeName"], "n1");
    stop.cancel();
    timeout(PATIENCE, running).await.expect("it ends").unwrap().unwrap();
}
