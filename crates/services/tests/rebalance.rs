//! Moving pods away from nodes over their line, on the in-memory API server, with its faults.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::{Namespace, Node, Pod};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use loadline_api::json::{Skip, Tree};
use loadline_api::node::COOLING;
use loadline_api::rebalance::{MOVED, moved, settings};
use loadline_api::scheduler::Configuration;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::{Action, Answer, Faults, Rule};
use loadline_apiserver::metrics::Sample;
use loadline_core::load::policy::{Policy, Rules};
use loadline_core::load::ratio::Ratio;
use loadline_core::load::{self, Both};
use loadline_core::rebalance::{Closing, SWITCH, Settings};
use loadline_services::Ctx;
use loadline_services::cluster::{Access, lease};
use loadline_services::rebalance::{self, Because, KEY, Last, Metrics, Mode, Options};
use loadline_services::reload::Source;
use loadline_services::serve::probes::Status;
use loadline_services::sources::metrics_api;
use serde_json::{Value, from_value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(3);
const OFTEN: Duration = Duration::from_millis(100);
const EVICTIONS: &str = "/api/v1/namespaces/*/pods/*/eviction";

/// A cluster in memory: nodes of ten cores, 6.5 of which may be used, and pods that use what their label says.
struct World {
    server: ApiServer,
    client: Client,
    faults: Faults,
    meter: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.meter.abort();
    }
}

impl World {
    /// With nodes, and pods on them that use so many thousandths of a core; a pod's name begins with its workload's.
    async fn new(nodes: &[&str], pods: &[(&str, &str, i64)], faults: Faults) -> Self {
        let server = ApiServer::default();
        let client = Client::new(server.clone(), "default");
        let has = json!({"cpu": "10", "memory": "32Gi", "pods": "110"});
        for name in nodes {
            let node = json!({"metadata": {"name": name}, "status": {"capacity": has, "allocatable": has}});
            let all: Api<Node> = Api::all(client.clone());
            all.create(&PostParams::default(), &from_value(node).unwrap()).await.unwrap();
        }
        let mut sets: BTreeMap<String, String> = BTreeMap::new();
        for (name, node, cpu) in pods {
            let app = name.split('-').next().unwrap_or(name).to_owned();
            if !sets.contains_key(&app) {
                sets.insert(app.clone(), set(&client, &app).await);
            }
            pod(&client, name, node, *cpu, &app, &sets[&app]).await;
        }
        let meter = tokio::spawn(meter(
            server.clone(),
            client.clone(),
            nodes.iter().map(ToString::to_string).collect(),
        ));
        Self { server, client, faults, meter }
    }

    fn start(&self, mode: Mode) -> Running {
        self.start_with(mode, Closing::Mark, Duration::from_mins(10))
    }

    /// Marks or taints nodes that gave up pods, for so long.
    fn start_with(&self, mode: Mode, closing: Closing, cooling: Duration) -> Running {
        let settings = Settings {
            over_for: SignedDuration::from_secs(2),
            warm_up: SignedDuration::ZERO,
            slack: Ratio::ZERO,
            closing,
            ..Settings::default()
        };
        self.start_by(mode, Source::Fixed(Box::new(settings)), |options| options.cooling = cooling)
    }

    /// By these settings, and with options as they are changed.
    fn start_by(&self, mode: Mode, settings: Source<Settings>, change: impl FnOnce(&mut Options)) -> Running {
        let rough = Client::new(self.faults.layer(self.server.clone()), "default");
        let mut options = Options {
            settings,
            mode,
            measure: metrics_api::Options { every: OFTEN, ..metrics_api::Options::default() },
            ..Options::new(Access::Client(rough))
        };
        change(&mut options);
        let (last, metrics, stop) = (options.last.clone(), options.metrics.clone(), CancellationToken::new());
        let status = options.status.clone();
        let ctx = Ctx::new("test", stop.clone());
        let task = tokio::spawn(async move { rebalance::run(ctx, options).await.unwrap() });
        Running { last, metrics, status, stop, task }
    }

    /// One more pod of a workload that is there.
    async fn more(&self, name: &str, node: &str, cpu: i64) {
        let app = name.split('-').next().unwrap_or(name);
        let sets: Api<ReplicaSet> = Api::default_namespaced(self.client.clone());
        let set = sets.get(app).await.unwrap().metadata.uid.unwrap();
        pod(&self.client, name, node, cpu, app, &set).await;
    }

    /// Who of these is not there any more.
    async fn gone(&self, all: &[(&str, &str, i64)]) -> Vec<String> {
        let left = self.pods().await;
        let names = all.iter().map(|(name, ..)| (*name).to_owned());
        names.filter(|name| !left.contains(name)).collect()
    }

    async fn pods(&self) -> Vec<String> {
        let all: Api<Pod> = Api::default_namespaced(self.client.clone());
        let all = all.list(&ListParams::default()).await.unwrap();
        all.items.into_iter().map(|pod| pod.metadata.name.unwrap()).collect()
    }

    /// The taints of a node, as `key=value:effect`.
    async fn taints(&self, node: &str) -> Vec<String> {
        let all: Api<Node> = Api::all(self.client.clone());
        let taints = all.get(node).await.unwrap().spec.and_then(|spec| spec.taints).unwrap_or_default();
        let said = |taint: k8s_openapi::api::core::v1::Taint| {
            format!("{}={}:{}", taint.key, taint.value.unwrap_or_default(), taint.effect)
        };
        taints.into_iter().map(said).collect()
    }

    /// Somebody puts a taint on a node.
    async fn taint(&self, node: &str, key: &str) {
        let all: Api<Node> = Api::all(self.client.clone());
        let taints = json!({"spec": {"taints": [{"key": key, "value": "x", "effect": "PreferNoSchedule"}]}});
        all.patch(node, &PatchParams::default(), &Patch::Merge(&taints)).await.unwrap();
    }

    async fn annotation(&self, node: &str, name: &str) -> Option<String> {
        let all: Api<Node> = Api::all(self.client.clone());
        all.get(node).await.unwrap().metadata.annotations?.remove(name)
    }

    /// How many requests to evict arrived, or were hit on the way.
    fn injected(&self) -> usize {
        self.faults.log().len()
    }

    async fn until<F: Future<Output = bool>>(&self, what: &str, holds: impl Fn() -> F) {
        let look = async {
            while !holds().await {
                tokio::time::sleep(OFTEN).await;
            }
        };
        timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("never: {what}"));
    }
}

/// One that runs.
struct Running {
    last: Last,
    metrics: Metrics,
    status: Status,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Running {
    async fn end(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends").unwrap();
    }

    /// Killed, in the middle of whatever it does.
    async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }

    /// Waits until the last plan is like that.
    async fn planned(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        let look = async {
            loop {
                if let Some(plan) = self.last.get().filter(|plan| is(plan)) {
                    return Value::clone(&plan);
                }
                tokio::time::sleep(OFTEN).await;
            }
        };
        timeout(PATIENCE, look).await.unwrap_or_else(|_| panic!("never: {what}; {:?}", self.last.get()))
    }

    /// Waits for so many more plans.
    async fn plans(&self, more: u64) {
        let from = self.metrics.plans.get();
        let look = async {
            while self.metrics.plans.get() < from + more {
                tokio::time::sleep(OFTEN).await;
            }
        };
        timeout(PATIENCE, look).await.expect("it goes on planning");
    }
}

async fn set(client: &Client, app: &str) -> String {
    let labels = json!({"app": app});
    let template =
        json!({"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "i"}]}});
    let object = json!({"metadata": {"name": app}, "spec": {"selector": {"matchLabels": labels}, "template": template}});
    let all: Api<ReplicaSet> = Api::default_namespaced(client.clone());
    all.create(&PostParams::default(), &from_value(object).unwrap()).await.unwrap().metadata.uid.unwrap()
}

/// A pod that has run for an hour, and is gone as soon as it is asked to.
async fn pod(client: &Client, name: &str, node: &str, cpu: i64, app: &str, set: &str) {
    let all: Api<Pod> = Api::default_namespaced(client.clone());
    let owner =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": app, "uid": set, "controller": true}]);
    let object = json!({
        "metadata": {"name": name, "labels": {"app": app, "uses": cpu.to_string()}, "ownerReferences": owner},
        "spec": {"nodeName": node, "terminationGracePeriodSeconds": 0, "containers": [{"name": "main", "image": "i",
            "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]},
    });
    all.create(&PostParams::default(), &from_value(object).unwrap()).await.unwrap();
    let since = text(Timestamp::now() - SignedDuration::from_hours(1));
    let status = json!({"status": {"phase": "Running", "startTime": since,
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{"name": "main", "image": "i", "imageID": "", "ready": true, "restartCount": 0,
            "state": {"running": {"startedAt": since}}}]}});
    all.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
}

fn text(at: Timestamp) -> String {
    loadline_api::time::text(at)
}

/// Nodes use what their pods use, all the time.
async fn meter(server: ApiServer, client: Client, nodes: Vec<String>) {
    let all: Api<Pod> = Api::default_namespaced(client);
    loop {
        let pods = all.list(&ListParams::default()).await.unwrap();
        let sample = Sample { at: Timestamp::now(), window: Duration::from_secs(1) };
        let mut sums: BTreeMap<String, i64> = nodes.iter().map(|node| (node.clone(), 0)).collect();
        for pod in pods.items {
            let (name, labels) = (pod.metadata.name.unwrap(), pod.metadata.labels.unwrap_or_default());
            let Some(cpu) = labels.get("uses").and_then(|uses| uses.parse::<i64>().ok()) else { continue };
            let usage = BTreeMap::from([("cpu".into(), format!("{cpu}m")), ("memory".into(), "64Mi".into())]);
            server.set_pod_metrics("default", &name, &[("main".to_owned(), usage)].into(), sample);
            if let Some(sum) = pod.spec.and_then(|spec| spec.node_name).and_then(|node| sums.get_mut(&node)) {
                *sum += cpu;
            }
        }
        for (node, cpu) in sums {
            let usage = BTreeMap::from([("cpu".into(), format!("{cpu}m")), ("memory".into(), "1Gi".into())]);
            server.set_node_metrics(&node, &usage, sample);
        }
        tokio::time::sleep(OFTEN * 3).await;
    }
}

/// 8 cores on n1, of which 6.5 may be used: 1.6 closes the gap alone.
const HOT: &[(&str, &str, i64)] =
    &[("a-1", "n1", 1600), ("b-1", "n1", 2400), ("c-1", "n1", 4000), ("d-1", "n2", 2000)];

#[tokio::test(flavor = "multi_thread")]
async fn in_preview_it_says_what_it_would_do_and_writes_nothing() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let running = world.start(Mode::Preview);
    let plan = running.planned("a move", |plan| plan["moves"][0]["pod"] == "default/a-1").await;
    assert_eq!(plan["moves"][0]["to"], "n2");
    assert_eq!(plan["moves"][0]["gap"]["cpu"], "1500m", "8 − 10 × 0.65");
    running.plans(3).await;
    assert_eq!(world.pods().await.len(), HOT.len());
    assert_eq!(world.annotation("n1", MOVED).await, None);
    let events: Api<Event> = Api::all(world.client.clone());
    assert!(events.list(&ListParams::default()).await.unwrap().items.is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_measures_it_says_so_and_begins_when_somebody_does() {
    let away = Rule::new(Action::Answer(Answer::Unavailable)).verb("list").path("/apis/metrics.k8s.io/**");
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1).with(away)).await;
    let running = world.start(Mode::Act);
    let waits = |plan: &Value| plan["pause"]["reason"] == "noHistory";
    let plan = running.planned("a plan that says why nothing is moved", waits).await;
    assert_eq!(plan["pause"]["message"], "no node has been measured yet");
    assert_eq!(plan["moves"], json!([]));
    let said = || running.status.readiness().progress;
    let both = || async {
        said().contains("nothing is moved: no node has been measured yet\n")
            && said().contains("metrics API: ")
    };
    world.until("it says so, and what is wrong", both).await;
    assert_eq!(world.pods().await.len(), HOT.len());
    world.faults.clear();
    world.until("a pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    world.until("it says nothing of that any more", || async { !said().contains("nothing is moved") }).await;
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_over_its_line_gives_up_one_pod_and_is_left_alone_for_a_while() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let running = world.start(Mode::Act);
    world.until("the pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    running.planned("the node has cooled", |plan| plan["nodes"].as_array().is_some_and(Vec::is_empty)).await;
    running.plans(5).await;
    assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"], "one was enough");

    let said = world.annotation("n1", MOVED).await.expect("the node says what was moved");
    let said = moved("n1", &said);
    assert_eq!(said.len(), 1);
    assert_eq!((said[0].pod.to_string(), &*said[0].to), ("default/a-1".to_owned(), "n2"));
    let until: Timestamp = world.annotation("n1", COOLING).await.expect("a mark").parse().unwrap();
    assert!(until > Timestamp::now() + SignedDuration::from_mins(5));

    let events: Api<Event> = Api::all(world.client.clone());
    let told = || async {
        let all = events.list(&ListParams::default()).await.unwrap().items;
        let ours = all.iter().filter(|event| event.reason.as_deref() == Some("Rebalanced"));
        let kinds: Vec<_> = ours.filter_map(|event| event.regarding.clone()?.kind).collect();
        kinds.contains(&"Pod".to_owned()) && kinds.contains(&"Node".to_owned())
    };
    world.until("both are told", told).await;
    let relief = async || {
        let of = Because { resource: "cpu" };
        running.metrics.measured.get_or_create(&of).get()
    };
    world.until("what that took off was measured", || async { (relief().await - 1.6).abs() < 1e-6 }).await;
    running.end().await;
}

/// Events of that name, about anything.
async fn told(world: &World, reason: &str) -> usize {
    let events: Api<Event> = Api::all(world.client.clone());
    let all = events.list(&ListParams::default()).await.unwrap().items;
    all.iter().filter(|event| event.reason.as_deref() == Some(reason)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_the_server_does_not_let_go_stays_and_the_next_one_goes() {
    let refuse = Rule::new(Action::Answer(Answer::Forbidden));
    let faults = Faults::seeded(1).with(refuse.verb("create").path(EVICTIONS).first(1));
    let world = World::new(&["n1", "n2"], HOT, faults).await;
    let running = world.start(Mode::Act);
    world.until("the next one goes", || async { !world.pods().await.contains(&"b-1".to_owned()) }).await;
    running.planned("the node has cooled", |plan| plan["nodes"].as_array().is_some_and(Vec::is_empty)).await;
    running.plans(3).await;
    assert_eq!(world.pods().await, ["a-1", "c-1", "d-1"], "2.4 is the next that closes a gap of 1.5 alone");
    let counted = (running.metrics.refused.get(), running.metrics.failures.get());
    assert_eq!(counted, (0, 1), "that was no budget");
    assert_eq!(told(&world, "RebalanceBlocked").await, 0, "nor is it told to be one");
    let said = moved("n1", &world.annotation("n1", MOVED).await.unwrap());
    let pods: Vec<_> = said.iter().map(|one| one.pod.to_string()).collect();
    assert_eq!(pods, ["default/b-1"], "only what happened is said");
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_a_budget_keeps_that_was_changed_since_it_was_counted_is_told_to_be_blocked() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.client.clone());
    let budget = json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "a"}}}});
    budgets.create(&PostParams::default(), &from_value(budget).unwrap()).await.unwrap();
    let status = json!({"status": {"disruptionsAllowed": 1, "currentHealthy": 1, "desiredHealthy": 0, "expectedPods": 1,
        "observedGeneration": 1}});
    budgets.patch_status("a", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let more = json!({"spec": {"minAvailable": 1}});
    budgets.patch("a", &PatchParams::default(), &Patch::Merge(&more)).await.unwrap();
    let running = world.start(Mode::Act);
    world.until("the next one goes", || async { !world.pods().await.contains(&"b-1".to_owned()) }).await;
    world.until("both are told", || async { told(&world, "RebalanceBlocked").await == 2 }).await;
    assert_eq!((running.metrics.refused.get(), running.metrics.failures.get()), (1, 0));
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_has_too_much_to_do_is_asked_again_later_for_the_same_pod() {
    let busy = Rule::new(Action::Answer(Answer::TooManyRequests { retry_after: 1 }));
    let faults = Faults::seeded(1).with(busy.verb("create").path(EVICTIONS).first(1));
    let world = World::new(&["n1", "n2"], HOT, faults).await;
    let running = world.start(Mode::Act);
    world.until("the pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    running.planned("the node has cooled", |plan| plan["nodes"].as_array().is_some_and(Vec::is_empty)).await;
    assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"], "nobody else went in its place");
    assert_eq!((running.metrics.refused.get(), running.metrics.failures.get()), (0, 1));
    running.end().await;
}

/// Who is said to have been moved from a node.
async fn said(world: &World, node: &str) -> Option<Vec<String>> {
    let text = world.annotation(node, MOVED).await?;
    Some(moved(node, &text).iter().map(|one| one.pod.name.to_string()).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_was_never_asked_to_go_is_not_said_to_have_gone() {
    // Two are to go. What becomes of the first nobody knows, so the second is not asked.
    let lost = Rule::new(Action::DropRequest).verb("create").path(EVICTIONS);
    let world = World::new(&["n1", "n2"], VERY_HOT, Faults::seeded(1).with(lost)).await;
    let running = world.start(Mode::Act);
    world.until("the first is asked", || async { world.injected() > 0 }).await;
    world
        .until("the node says no more than may be so", || async {
            said(&world, "n1").await.is_some_and(|said| said.len() == 1)
        })
        .await;
    assert!(world.gone(VERY_HOT).await.is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_seen_to_have_stayed_is_not_said_to_have_gone() {
    let lost = Rule::new(Action::DropRequest).verb("create").path(EVICTIONS);
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1).with(lost)).await;
    let running = world.start(Mode::Act);
    world.until("each was asked", || async { world.injected() == 3 }).await;
    world.until("all are seen there", || async { said(&world, "n1").await == Some(Vec::new()) }).await;
    assert!(world.gone(HOT).await.is_empty());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disruption_budget_is_kept_and_another_pod_goes() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let budgets: Api<PodDisruptionBudget> = Api::default_namespaced(world.client.clone());
    let budget = json!({"metadata": {"name": "a"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}}});
    budgets.create(&PostParams::default(), &from_value(budget).unwrap()).await.unwrap();
    let status = json!({"status": {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}});
    budgets.patch_status("a", &PatchParams::default(), &Patch::Merge(&status)).await.unwrap();
    let running = world.start(Mode::Act);
    world.until("another one goes", || async { !world.pods().await.contains(&"b-1".to_owned()) }).await;
    running.plans(5).await;
    assert_eq!(world.pods().await, ["a-1", "c-1", "d-1"]);
    running.end().await;
}

/// Killed at any step, and another one starts: whatever was under way, one pod goes and no more.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_evicted_twice_whenever_it_is_killed() {
    let nodes = "/api/v1/nodes/*";
    let steps: [(&str, Rule); 4] = [
        ("before the mark arrives", Rule::new(Action::DropRequest).verb("patch").path(nodes).first(1)),
        (
            "after the mark, before it is answered",
            Rule::new(Action::DropAnswer).verb("patch").path(nodes).first(1),
        ),
        (
            "before the eviction arrives",
            Rule::new(Action::DropRequest).verb("create").path(EVICTIONS).first(1),
        ),
        (
            "after the eviction, before it is answered",
            Rule::new(Action::DropAnswer).verb("create").path(EVICTIONS).first(1),
        ),
    ];
    for (when, rule) in steps {
        let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1).with(rule)).await;
        let first = world.start(Mode::Act);
        world.until(when, || async { world.injected() == 1 }).await;
        first.kill().await;
        world.faults.clear();
        let second = world.start(Mode::Act);
        world.until("it is done in the end", || async { world.pods().await.len() == HOT.len() - 1 }).await;
        second
            .planned("the node has cooled", |plan| plan["nodes"].as_array().is_some_and(Vec::is_empty))
            .await;
        second.plans(5).await;
        assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"], "{when}: one, and once");
        second.end().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_switched_off_is_left_alone_and_switched_on_again_is_not() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let (nodes, namespaces): (Api<Node>, Api<Namespace>) =
        (Api::all(world.client.clone()), Api::all(world.client.clone()));
    let switch = |value: Option<&str>| json!({"metadata": {"annotations": {SWITCH: value}}});
    let params = PatchParams::default();
    nodes.patch("n1", &params, &Patch::Merge(&switch(Some("off")))).await.unwrap();
    let running = world.start(Mode::Act);
    running.planned("the node is off", |plan| plan["nodes"][0]["wait"]["reason"]["kind"] == "off").await;

    namespaces.patch("default", &params, &Patch::Merge(&switch(Some("off")))).await.unwrap();
    running.plans(5).await;
    nodes.patch("n1", &params, &Patch::Merge(&switch(None))).await.unwrap();
    let exempt = |plan: &Value| {
        let stays = plan["nodes"][0]["stays"].as_array();
        stays.is_some_and(|all| all.len() == 3 && all.iter().all(|one| one["reason"]["kind"] == "exempt"))
    };
    running.planned("its pods are off", exempt).await;
    assert_eq!(world.pods().await.len(), HOT.len());

    namespaces.patch("default", &params, &Patch::Merge(&switch(None))).await.unwrap();
    world.until("the pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    running.end().await;
}

const OURS: &str = "loadline.dev/cooling=:NoSchedule";
const THEIRS: &str = "theirs=x:PreferNoSchedule";

#[tokio::test(flavor = "multi_thread")]
async fn a_taint_closes_the_node_for_everybody_until_it_has_cooled() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    world.taint("n1", "theirs").await;
    let running = world.start_with(Mode::Act, Closing::Taint, Duration::from_secs(4));
    world.until("the pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    // The mark comes before the eviction, so it was there when the pod went.
    let until: Timestamp = world.annotation("n1", COOLING).await.expect("a mark").parse().unwrap();
    world.until("the node is open again", || async { world.taints("n1").await == [THEIRS] }).await;
    assert!(Timestamp::now() >= until, "not before its time");
    assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"], "one was enough");
    assert_eq!(world.taints("n2").await, Vec::<String>::new());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn taints_are_taken_off_at_the_end_and_after_a_crash_by_the_next_one() {
    assert!(OURS.starts_with(KEY));
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    world.taint("n1", "theirs").await;
    let long = Duration::from_hours(1);
    let first = world.start_with(Mode::Act, Closing::Taint, long);
    world.until("the pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    assert_eq!(world.taints("n1").await, [THEIRS, OURS], "others stay");
    first.kill().await;
    assert_eq!(world.taints("n1").await, [THEIRS, OURS], "nobody could take it off");
    let second = world.start_with(Mode::Act, Closing::Taint, long);
    second.plans(3).await;
    assert_eq!(world.taints("n1").await, [THEIRS, OURS], "its time is not over");
    second.end().await;
    assert_eq!(world.taints("n1").await, [THEIRS], "whoever ends takes it off");
    // Another one that died with its mark in the past.
    let past = text(Timestamp::now() - SignedDuration::from_mins(1));
    let left = json!({"metadata": {"annotations": {COOLING: past}},
        "spec": {"taints": [{"key": "theirs", "value": "x", "effect": "PreferNoSchedule"}, {"key": KEY, "effect": "NoSchedule"}]}});
    let nodes: Api<Node> = Api::all(world.client.clone());
    nodes.patch("n1", &PatchParams::default(), &Patch::Merge(&left)).await.unwrap();
    let preview = world.start_with(Mode::Preview, Closing::Taint, long);
    preview.plans(3).await;
    assert_eq!(world.taints("n1").await, [THEIRS, OURS], "in preview nothing is written");
    preview.end().await;
    let third = world.start_with(Mode::Act, Closing::Taint, long);
    world.until("the next one takes it off", || async { world.taints("n1").await == [THEIRS] }).await;
    third.end().await;
    assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_the_taints_of_which_cannot_be_read_cannot_be_closed_and_gives_up_nothing() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let anything =
        json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let definition = json!({"metadata": {"name": "odds.test.dev"}, "spec": {"group": "test.dev", "scope": "Cluster",
        "names": {"plural": "odds", "singular": "odd", "kind": "Odd", "listKind": "OddList"},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": anything}]}});
    definitions.create(&PostParams::default(), &from_value(definition).unwrap()).await.unwrap();
    let odd = json!({"apiVersion": "test.dev/v1", "kind": "Odd", "metadata": {"name": "n1"}, "spec": {"taints": "many"}});
    let request = http::Request::post("/apis/test.dev/v1/odds").body(odd.to_string().into_bytes()).unwrap();
    world.client.request::<Value>(request).await.unwrap();
    // Who asks for the node, or writes it, gets that in its place.
    let server = world.server.clone();
    let other = tower::util::MapRequestLayer::new(|mut request: http::Request<kube::client::Body>| {
        if request.uri().path() == "/api/v1/nodes/n1" {
            *request.uri_mut() = http::Uri::from_static("/apis/test.dev/v1/odds/n1");
        }
        request
    });
    let settings = Settings {
        over_for: SignedDuration::from_secs(2),
        warm_up: SignedDuration::ZERO,
        slack: Ratio::ZERO,
        closing: Closing::Taint,
        ..Settings::default()
    };
    let running = world.start_by(Mode::Act, Source::Fixed(Box::new(settings)), |options| {
        options.cluster = Access::Client(Client::new(other.layer(server), "default"));
    });
    world.until("it was tried", || async { running.metrics.failures.get() > 1 }).await;
    assert!(world.gone(HOT).await.is_empty(), "who goes could come straight back");
    assert_eq!(world.taints("n1").await, Vec::<String>::new());
    running.end().await;
}

/// 9.5 cores on n1, of which 6.5 may be used. What closes a gap of 3 alone does not fit on n2, so two have to go: 1.6 first, the
/// largest, then 1.5, which closes the 1.4 that are left.
const VERY_HOT: &[(&str, &str, i64)] =
    &[("a-1", "n1", 1500), ("b-1", "n1", 1600), ("c-1", "n1", 6400), ("d-1", "n2", 2000)];

#[tokio::test(flavor = "multi_thread")]
async fn killed_between_two_evictions_of_one_plan_the_next_one_does_what_is_left_and_no_more() {
    let steps = [
        ("before the second arrives", Action::DropRequest),
        ("after the second, before it is answered", Action::DropAnswer),
    ];
    for (when, action) in steps {
        let rule = Rule::new(action).verb("create").path(EVICTIONS).nth(2);
        let world = World::new(&["n1", "n2"], VERY_HOT, Faults::seeded(1).with(rule)).await;
        let first = world.start(Mode::Act);
        world.until(when, || async { world.injected() == 1 }).await;
        first.kill().await;
        let gone = world.gone(VERY_HOT).await;
        assert!(gone.contains(&"b-1".to_owned()), "{when}: the first of two had gone: {gone:?}");
        world.faults.clear();
        let second = world.start(Mode::Act);
        let cooled = |plan: &Value| plan["nodes"].as_array().is_some_and(Vec::is_empty);
        world.until("it is done in the end", || async { world.gone(VERY_HOT).await.len() == 2 }).await;
        second.planned("the node has cooled", cooled).await;
        second.plans(5).await;
        assert_eq!(world.gone(VERY_HOT).await, ["a-1", "b-1"], "{when}: both, each once, and nobody else");
        second.end().await;
    }
}

/// Settings of a file, as the program reads them but for YAML.
fn parse(text: &str) -> Result<Settings, String> {
    let tree = Tree::parse(text.as_bytes(), Skip::NOTHING).map_err(|error| error.to_string())?;
    settings(&tree).map_err(|problems| format!("{problems:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kill_switch_in_the_file_of_settings_works_while_it_runs() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("settings.json");
    let write = |enabled: bool| {
        let spec = json!({"enabled": enabled, "slack": 0, "overFor": "2s", "warmUp": "0s"});
        let text = json!({"apiVersion": "loadline.dev/v1alpha1", "kind": "RebalanceSettings", "spec": spec});
        // In one go, so that nobody reads half of it.
        let aside = folder.path().join("next");
        std::fs::write(&aside, text.to_string()).unwrap();
        std::fs::rename(aside, &path).unwrap();
    };
    write(false);
    let running = world.start_by(Mode::Act, Source::file(path.clone(), parse), |_| {});
    let is_off = |plan: &Value| plan["pause"]["reason"] == "off";
    running.planned("it is off from the beginning", is_off).await;
    running.plans(5).await;
    assert_eq!(world.pods().await.len(), HOT.len());

    write(true);
    world
        .until("switched on, a pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) })
        .await;

    write(false);
    running.planned("it is off again", is_off).await;
    world.more("b-2", "n1", 2500).await;
    // Longer than a node has to be over its line.
    running.plans(20).await;
    assert!(running.last.get().is_some_and(|plan| is_off(&plan)));
    assert_eq!(world.pods().await, ["b-1", "b-2", "c-1", "d-1"], "8.9 of 10 cores, and nobody is moved");
    running.end().await;
}

/// The share of its cores up to which a node may be used, and nothing else.
fn target(text: &str) -> Result<Configuration, String> {
    let cpu = text.parse().map_err(|_| format!("expected a share, not {text}"))?;
    let targets = Both { cpu: Ratio::from_f64(cpu), memory: None };
    let settings = load::settings::Settings { targets, ..load::settings::Settings::default() };
    let rules = Rules::new(Policy::default(), settings).map_err(|_| "refused".to_owned())?;
    Ok(rebalance::configuration(Some(rules.0)))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policy_is_followed_as_it_changes_and_the_last_good_one_stays() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("policy");
    let write = |text: &str| {
        let aside = folder.path().join("next");
        std::fs::write(&aside, text).unwrap();
        std::fs::rename(aside, &path).unwrap();
    };
    let settings = Settings {
        over_for: SignedDuration::from_secs(2),
        warm_up: SignedDuration::ZERO,
        slack: Ratio::ZERO,
        ..Settings::default()
    };
    write("0.9");
    let running = world.start_by(Mode::Act, Source::Fixed(Box::new(settings)), |options| {
        options.rules = Source::file(path.clone(), target);
    });
    running.plans(20).await;
    assert_eq!(world.pods().await.len(), HOT.len(), "8 of 10 cores are below 0.9");

    write("rubbish");
    let progress = || running.status.readiness().progress;
    world
        .until("it is told", || async { progress().contains("policy: expected a share, not rubbish") })
        .await;
    assert!(running.status.readiness().ready, "the last good one stays");

    write("0.65");
    world
        .until("they are above 0.65, and a pod goes", || async { world.pods().await.len() < HOT.len() })
        .await;
    assert!(!progress().contains("policy:"), "{}", progress());
    running.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_one_leads_and_moves_and_the_other_takes_over_where_it_ends() {
    let world = World::new(&["n1", "n2"], HOT, Faults::seeded(1)).await;
    let start = |name: &str| {
        let mut lease = lease::Options::new("default", "loadline-rebalance");
        lease.settings.lease_duration = Duration::from_secs(3);
        lease.settings.renew_deadline = Duration::from_secs(2);
        lease.settings.retry_period = Duration::from_millis(300);
        let checked = lease.check(&lease.lock(name)).unwrap();
        let settings = Settings {
            over_for: SignedDuration::from_secs(2),
            warm_up: SignedDuration::ZERO,
            slack: Ratio::ZERO,
            ..Settings::default()
        };
        world.start_by(Mode::Act, Source::Fixed(Box::new(settings)), |options| options.lease = Some(checked))
    };
    let said = |one: &Running| one.status.readiness().progress.lines().next().unwrap_or_default().to_owned();
    let first = start("first");
    world.until("the first leads", || async { said(&first) == "active" }).await;
    let second = start("second");
    world.until("the second stands by", || async { said(&second) == "standing by: another one leads" }).await;
    world.until("a pod goes", || async { !world.pods().await.contains(&"a-1".to_owned()) }).await;
    let calm = |plan: &Value| plan["nodes"].as_array().is_some_and(Vec::is_empty);
    first.planned("the node has cooled", calm).await;
    second.planned("which both see", calm).await;
    assert_eq!(world.pods().await, ["b-1", "c-1", "d-1"], "one was enough, and one asked for it");
    let moved = |one: &Running| one.metrics.moves.get_or_create(&Because { resource: "cpu" }).get();
    assert_eq!((moved(&first), moved(&second)), (1, 0), "who stands by moves nothing");

    first.end().await;
    world.until("the second takes over", || async { said(&second) == "active" }).await;
    world.more("b-2", "n1", 1700).await;
    world.until("it moves pods", || async { world.pods().await.len() == 3 }).await;
    second.planned("the node has cooled again", calm).await;
    second.plans(3).await;
    assert_eq!(
        world.pods().await,
        ["b-1", "c-1", "d-1"],
        "8.1 of 10 cores: 1.7 is nearest to the gap of 1.6"
    );
    second.end().await;
}
