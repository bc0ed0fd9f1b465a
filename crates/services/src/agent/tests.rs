//! An agent against the in-memory API server, with time and load in the test's hand: the whole story, and what gets in
//! its way.

mod evicting;
mod faults;
mod gone;
mod leaving;
mod lines;
mod metric;
mod previewing;
mod reclaim;
mod time;

use super::host::{
    Ask, ContainerUsage, Error as HostError, Located, PodUsage, Reclaimed, Usage, Used, Whole, series,
};
use super::journal::ADOPTING;
use super::state::State;
use super::watched::{ACTIONS, NODE_QOS, POD_QOS};
use super::*;
use crate::cluster::resource::{BUDGETS, NODES, PODS};
use crate::cluster::write::Patch;
use crate::ctx::{Notice, Notices};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1 as core;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client};
use loadline_api::node::COOLING;
use loadline_apiserver::ApiServer;
use loadline_apiserver::fault::Faults;
use loadline_core::object::Key;
use loadline_core::qos::taint::{CONDITION, KEY};
use loadline_core::qos::{CpuQuota, Level, PERIOD_US, Reply, Victim, policy};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::Layer as _;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const NODE: &str = "n1";
/// What the node has, in thousandths of a CPU: a percent is 100.
const CAPACITY_MILLI: i64 = 10_000;
/// What runs on the node beside pods, in percent.
const DAEMONS: i64 = 1;

/// A node whose pods want what the test says, and get no more than their quotas and the node allow.
#[derive(Debug, Default)]
struct TestHost {
    pods: Mutex<HashMap<Arc<str>, Wants>>,
    /// Of which pods page cache was asked back, and how much.
    reclaimed: Mutex<Vec<(String, i64)>>,
    /// Is that impossible?
    no_reclaim: AtomicBool,
    /// Does nobody answer when a quota is to be written?
    is_mute: AtomicBool,
    /// Is another agent at work there?
    is_taken: AtomicBool,
    /// Quotas that were to be written then, and are not yet.
    on_the_way: Mutex<Vec<(Arc<str>, CpuQuota)>>,
}

/// What the one container of a pod wants, in percent of the node, and what it is held to.
#[derive(Clone, Copy, Debug)]
struct Wants {
    percent: i64,
    quota: CpuQuota,
    /// Does writing its quota fail?
    is_stuck: bool,
    /// Does it take what it wants, whatever its quota?
    is_free: bool,
}

impl TestHost {
    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, Wants>> {
        self.pods.lock().expect("nobody panicked")
    }

    /// What was on the way arrives.
    fn arrive(&self) {
        for (uid, quota) in self.on_the_way.lock().expect("nobody panicked").drain(..) {
            self.lock().get_mut(&uid).expect("it runs").quota = quota;
        }
    }

    fn asked(&self) -> Vec<(String, i64)> {
        self.reclaimed.lock().expect("nobody panicked").clone()
    }
}

/// What a quota lets through, in thousandths of a CPU.
fn milli(quota: CpuQuota) -> Option<i64> {
    quota.us().filter(|us| *us > 0).map(|us| us / (PERIOD_US / 1000))
}

#[tonic::async_trait]
impl Host for TestHost {
    async fn measure(&self, ask: &Ask<'_>) -> Usage {
        let pods = self.lock();
        let wanted = |wants: &Wants| {
            let most = milli(wants.quota).filter(|_| !wants.is_free);
            most.map_or(wants.percent * 100, |most| most.min(wants.percent * 100))
        };
        let all: i64 = pods.values().map(wanted).sum();
        let room = CAPACITY_MILLI - DAEMONS * 100;
        let used = |wants: &Wants| if all > room { wanted(wants) * room / all } else { wanted(wants) };
        let node = Used { cpu_milli: all.min(room) + DAEMONS * 100, memory_bytes: 1 << 30 };
        let has = Used { cpu_milli: CAPACITY_MILLI, memory_bytes: 64 << 30 };
        let pods = pods.iter().map(|(uid, wants)| {
            let cpu = Some(Level::whole(used(wants)));
            let container = ContainerUsage { cpu, quota: wants.quota, ..ContainerUsage::default() };
            let memory = Some(Level::whole(1 << 20));
            let containers = [("main".into(), container)].into();
            let reclaimable = Some(Level::whole(4096));
            (uid.clone(), PodUsage { memory, reclaimable, containers, ..PodUsage::default() })
        });
        Usage { nodes: [(NODE.into(), series(node, has, ask.now))].into(), pods: pods.collect() }
    }

    async fn set_quota(&self, of: &Located<'_>, quota: CpuQuota) -> Result<(), HostError> {
        if self.is_mute.load(Relaxed) {
            self.on_the_way.lock().expect("nobody panicked").push((of.pod.uid.clone(), quota));
            return Err(HostError::Unsure("nobody answers".into()));
        }
        let mut pods = self.lock();
        match pods.get_mut(&of.pod.uid) {
            Some(wants) if !wants.is_stuck => wants.quota = quota,
            _ => return Err(HostError::Unwritten("no such container".into())),
        }
        Ok(())
    }

    fn claim(&self) -> bool {
        !self.is_taken.load(Relaxed)
    }

    async fn reclaim(&self, of: &Whole<'_>, bytes: i64) -> Result<Reclaimed, HostError> {
        if self.no_reclaim.load(Relaxed) {
            return Err(HostError::Unwritten("no such kernel".into()));
        }
        self.reclaimed.lock().expect("nobody panicked").push((of.pod.key.name.to_string(), bytes));
        Ok(Reclaimed::Less)
    }
}

/// One node and its agent, whose time passes only in [`Stage::cycle`].
struct Stage {
    client: Client,
    writer: Writer,
    /// What happens to what the agent asks of the API server.
    faults: Faults,
    /// By which it does.
    through: Client,
    host: Arc<TestHost>,
    agent: Agent,
    state: State,
    messages: mpsc::Receiver<Message>,
    notices: mpsc::Receiver<Notice>,
    now: Timestamp,
    watches: Watches<Message>,
}

impl Stage {
    async fn new() -> Self {
        let (server, faults) = (ApiServer::default(), Faults::seeded(1));
        let through = Client::new(faults.layer(server.clone()), "default");
        let client = Client::new(server, "default");
        let writer = Writer::new(Connection::new(client.clone()), "test");
        for definition in definitions() {
            writer.define(&definition).await.expect("the kinds are known");
        }
        let has = json!({"cpu": "10", "memory": "64Gi", "pods": "110"});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE},
            "status": {"capacity": has, "allocatable": has}});
        writer.create(NODES, "", &node).await.expect("the node is well-formed");
        let host = Arc::<TestHost>::default();
        let (agent, notices) = agent(&through, host.clone());
        let (watches, messages) = watches(&client);
        let (now, knows) = (Timestamp::now(), State::new());
        let mut stage = Self {
            client,
            writer,
            faults,
            through,
            host,
            agent,
            state: knows,
            messages,
            notices,
            now,
            watches,
        };
        stage.until("everything is read", |state| state.is_ready(true)).await;
        stage
    }

    /// The agent ends, and another comes that remembers nothing.
    async fn restart(&mut self) {
        (self.agent, self.notices) = agent(&self.through, self.host.clone());
        (self.watches, self.messages) = watches(&self.client);
        self.state = State::new();
        self.until("everything is read", |state| state.is_ready(true)).await;
    }

    /// Takes messages in until something is known.
    async fn until(&mut self, what: &str, known: impl Fn(&State) -> bool) {
        let waiting = async {
            while !known(&self.state) {
                let message = self.messages.recv().await.expect("watches go on");
                self.state.take(message, self.now);
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect(what);
    }

    async fn ask_for(&mut self, objects: impl IntoIterator<Item = (crate::cluster::Resource, Value)>) {
        let objects: Vec<_> = objects.into_iter().collect();
        let count = |of| objects.iter().filter(|(resource, _)| *resource == of).count();
        let wanted = (count(NODE_QOS), count(ACTIONS), count(POD_QOS));
        for (resource, object) in &objects {
            self.writer.create(*resource, "", object).await.expect("the object is well-formed");
        }
        self.until("the rules are known", |state| state.rule_counts() == wanted).await;
    }

    /// A pod on the node that runs and wants this much of it, in percent.
    async fn run(&mut self, name: &str, percent: i64, is_batch: bool) {
        let share = |percent: i64| format!("{}m", percent * 100);
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": NODE, "containers": [{"name": "main", "image": "simulated"}]},
        });
        if is_batch {
            object["metadata"]["labels"]["tier"] = json!("batch");
            object["spec"]["containers"][0]["resources"] =
                json!({"requests": {"cpu": share(5)}, "limits": {"cpu": share(percent)}});
        }
        self.writer.create(PODS, "default", &object).await.expect("the pod is well-formed");
        let started = (self.now - SignedDuration::from_mins(10)).to_string();
        let status = json!({"status": {"phase": "Running", "startTime": started, "containerStatuses": [{
            "name": "main", "image": "simulated", "imageID": "", "ready": true, "restartCount": 0, "started": true,
            "state": {"running": {"startedAt": started}}}]}});
        let key = Key::new("default", name);
        self.writer.patch(PODS.status(), &key, Patch::Strategic, &status).await.expect("the pod is there");
        let read = |state: &State| state.pod(&key).is_some_and(|(_, pod)| pod.pod.started.is_some());
        self.until("the pod runs", read).await;
        let uid = self.state.pod(&key).expect("it is known").0.uid.clone();
        let quota = if is_batch {
            CpuQuota::from_us(percent * 100 * (PERIOD_US / 1000))
        } else {
            CpuQuota::Unlimited
        };
        self.host.lock().insert(uid, Wants { percent, quota, is_stuck: false, is_free: false });
    }

    fn uid(&self, name: &str) -> Arc<str> {
        self.state.pod(&Key::new("default", name)).expect("the pod is there").0.uid.clone()
    }

    /// From now on the pod wants this much of the node, in percent.
    fn wants(&self, name: &str, percent: i64) {
        let uid = self.uid(name);
        self.host.lock().get_mut(&uid).expect("the pod runs").percent = percent;
    }

    /// The next cycle; what was told in it.
    async fn cycle(&mut self) -> Vec<String> {
        self.now += SignedDuration::from_secs(2);
        while let Ok(message) = self.messages.try_recv() {
            self.state.take(message, self.now);
        }
        self.agent.cycle(&mut self.state, self.now).await;
        let told = std::iter::from_fn(|| self.notices.try_recv().ok());
        told.map(|notice| notice.to_string()).collect()
    }

    /// Ends the pods that were asked to go, as a kubelet would; what the others may take, in percent of the node.
    async fn quotas(&mut self) -> BTreeMap<String, Option<i64>> {
        let pods: Api<core::Pod> = Api::default_namespaced(self.client.clone());
        let all = pods.list(&ListParams::default()).await.expect("pods are listed").items;
        for pod in all.iter().filter(|pod| pod.metadata.deletion_timestamp.is_some()) {
            let name = pod.metadata.name.as_deref().expect("a name");
            let uid: Arc<str> = pod.metadata.uid.as_deref().expect("a uid").into();
            pods.delete(name, &DeleteParams::default().grace_period(0)).await.expect("it ends");
            self.host.lock().remove(&uid);
            let key = Key::new("default", name);
            self.until("the pod is gone", |state| state.pod(&key).is_none()).await;
        }
        let quotas = self.host.lock().clone();
        let left = self.state.pods_by_node().remove(NODE).unwrap_or_default();
        left.into_iter()
            .map(|(meta, _)| {
                (meta.key.name.to_string(), milli(quotas[&meta.uid].quota).map(|milli| milli / 100))
            })
            .collect()
    }

    /// Does the node say that it has too much: by its taint, its condition, its mark?
    async fn says(&self) -> (bool, Option<String>, bool) {
        let nodes: Api<core::Node> = Api::all(self.client.clone());
        let node = nodes.get(NODE).await.expect("the node is there");
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let condition = conditions.into_iter().find(|c| c.type_ == CONDITION).map(|c| c.status);
        let marked = node.metadata.annotations.unwrap_or_default().contains_key(COOLING);
        (taints.iter().any(|taint| taint.key == KEY), condition, marked)
    }

    /// Waits until an event of each of these reasons was told of an object of that kind.
    async fn told(&self, wanted: &[(&str, &str)]) {
        let events: Api<core::Event> = Api::default_namespaced(self.client.clone());
        let waiting = async {
            loop {
                let all = events.list(&ListParams::default()).await.expect("events are listed").items;
                let ours = |e: &&core::Event| e.reporting_component.as_deref() == Some(COMPONENT);
                let told: BTreeSet<(String, String)> = all
                    .iter()
                    .filter(ours)
                    .map(|e| {
                        (
                            e.involved_object.kind.clone().unwrap_or_default(),
                            e.reason.clone().unwrap_or_default(),
                        )
                    })
                    .collect();
                if wanted.iter().all(|(kind, reason)| told.contains(&((*kind).into(), (*reason).into()))) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.expect("the events");
    }

    /// Who was asked to go, and what was replied.
    fn asked(&mut self) -> Vec<(String, Reply)> {
        let memory = self.state.memory_mut(&NODE.into());
        memory.state.evictions.iter().map(|e| (e.pod.to_string(), e.reply)).collect()
    }
}

fn agent(client: &Client, host: Arc<TestHost>) -> (Agent, mpsc::Receiver<Notice>) {
    let writer = Writer::new(Connection::new(client.clone()), COMPONENT);
    let (listener, notices) = mpsc::channel(256);
    let (events, recording) = Recorder::new(writer.clone(), COMPONENT, NODE, CancellationToken::new());
    tokio::spawn(recording);
    let metrics = Metrics::default();
    let teller = Teller { events, notices: Notices::to(listener), metrics: metrics.clone() };
    let agent = Agent {
        writer,
        host,
        teller,
        metrics,
        every: Duration::from_secs(2),
        planning: qos::Options::default(),
        journal: None,
        adopting: 0,
        looked: Looked::default(),
        tune: false,
        agreement: Agreement::new(None),
        unmarked: BTreeSet::new(),
        failure: None,
    };
    (agent, notices)
}

fn watches(client: &Client) -> (Watches<Message>, mpsc::Receiver<Message>) {
    let (mut watches, messages) = Watches::new(Connection::new(client.clone()), WAITING);
    watches.add::<watched::Nodes>(Message::Node);
    watches.add::<NodeRules>(Message::NodeRules);
    watches.add::<Actions>(Message::Action);
    watches.add::<Scopes>(Message::Scope);
    watches.add::<Pods>(Message::Pod);
    (watches, messages)
}

/// Batch is slowed down over 70 % and evicted over 85 %.
fn rules() -> Vec<(crate::cluster::Resource, Value)> {
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let rule = |name: &str, percent: &str, after: i32, action: &str| {
        json!({
            "name": name, "actionName": action, "strategy": "None",
            "avoidanceThreshold": after, "restoreThreshold": 2,
            "metricRule": {"name": "cpu_total_utilization", "value": percent},
        })
    };
    let slow = json!({
        "coolDownSeconds": 10, "throttle": {"cpuThrottle": {"stepCPURatio": 40, "minCPURatio": 10}},
    });
    let evict = json!({"coolDownSeconds": 15, "eviction": {"terminationGracePeriodSeconds": 5}});
    let scope = json!({
        "labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": ["slow-down", "evict"],
    });
    let lines = json!({
        "nodeQualityProbe": {"nodeLocalGet": {}},
        "rules": [rule("busy", "70", 2, "slow-down"), rule("full", "85", 4, "evict")],
    });
    vec![
        (ACTIONS, object("AvoidanceAction", "slow-down", slow)),
        (ACTIONS, object("AvoidanceAction", "evict", evict)),
        (POD_QOS, object("PodQOS", "batch", scope)),
        (NODE_QOS, object("NodeQOS", "overload", lines)),
    ]
}

/// Only a line at 85 %, and batch is evicted over it at once.
fn only_evict() -> Vec<(crate::cluster::Resource, Value)> {
    let mut objects = rules();
    let rules = &mut objects[3].1["spec"]["rules"];
    rules[1]["avoidanceThreshold"] = json!(1);
    rules.as_array_mut().expect("a list").remove(0);
    objects
}

#[tokio::test]
async fn a_node_that_is_overrun_throttles_then_evicts_then_gives_everything_back() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 25, false).await;
    for name in ["a", "b", "c"] {
        stage.run(name, 10, true).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "25 % + 3 × 10 % are under both lines");
    }
    assert_eq!(stage.says().await, (false, None, false));

    stage.wants("shop", 72);
    assert!(stage.cycle().await.is_empty(), "once is not enough");
    let told = stage.cycle().await;
    assert_eq!(told.iter().filter(|line| line.contains("throttled")).count(), 3, "{told:?}");
    let mark = told.iter().position(|line| line.contains("closed: overload/busy triggered"));
    assert_eq!(mark, Some(3), "throttling needs nobody else, so it comes before the mark: {told:?}");
    assert!(told[4].contains("pods disturbed: 3, acting on all would disturb 3"), "{told:?}");
    assert_eq!(stage.says().await, (true, Some("True".into()), true));
    stage.cycle().await;
    let quotas = stage.quotas().await;
    let slow = |name: &str| quotas[name];
    assert_eq!((slow("a"), slow("b"), slow("c")), (Some(5), Some(5), Some(5)), "down to what they request");
    assert_eq!(slow("shop"), None, "nobody allowed that");
    // Four times over 85 %: 72 % + 3 × 5 % and daemons.
    let told = stage.cycle().await;
    let evicted: Vec<&String> = told.iter().filter(|line| line.contains("evicted")).collect();
    assert_eq!(evicted.len(), 1, "5 % are enough: {told:?}");
    assert!(evicted[0].contains("overload/full, cpu_total_utilization 8"), "{evicted:?}");
    assert_eq!(stage.quotas().await.len(), 3);
    for _ in 0..5 {
        assert!(stage.cycle().await.is_empty(), "under 85 %, and nothing is left to take: nobody is touched");
    }

    stage.wants("shop", 25);
    let (mut told, mut open_after) = (Vec::new(), None);
    for cycle in 1..20 {
        told.extend(stage.cycle().await);
        if open_after.is_none() && !stage.says().await.0 {
            open_after = Some(cycle);
        }
    }
    let left: BTreeSet<Option<i64>> = stage.quotas().await.into_values().collect();
    assert_eq!(left, BTreeSet::from([None, Some(10)]), "everything is back: {told:?}");
    assert!(told.iter().any(|line| line.contains("given back") && line.contains("→ ")), "{told:?}");
    assert_eq!(stage.says().await, (false, Some("False".into()), false));
    assert_eq!(open_after, Some(6), "last over its line 2 s before, 10 s to cool, and open after that");
    assert_eq!(stage.agent.metrics.evicted.get(), 1);
    stage
        .told(&[
            ("Node", "AvoidanceTriggered"),
            ("Node", "RestoreTriggered"),
            ("Pod", "Throttled"),
            ("Pod", "Evicted"),
            ("Pod", "Restored"),
        ])
        .await;
}

#[tokio::test]
async fn a_quota_that_could_not_be_written_is_not_remembered_and_is_tried_again() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    let uid = stage.uid("a");
    stage.host.lock().get_mut(&uid).expect("it runs").is_stuck = true;
    for _ in 0..6 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("throttled")), "nothing is pretended: {told:?}");
    }
    assert!(stage.state.memory_mut(&NODE.into()).state.throttled.is_empty());
    assert!(stage.agent.metrics.failed_writes.get() > 0);
    assert_eq!(stage.agent.failure.as_deref(), Some("no such container"), "why is said");
    stage.host.lock().get_mut(&uid).expect("it runs").is_stuck = false;
    let told = stage.cycle().await;
    assert!(told.iter().any(|line| line.contains("default/a: throttled")), "{told:?}");
    assert_eq!(stage.agent.failure, None);
}

#[tokio::test]
async fn a_budget_keeps_its_pod_and_the_next_one_goes() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    stage.writer.create(BUDGETS, "default", &budget).await.expect("the budget is well-formed");
    stage.run("shop", 29, false).await;
    for (name, percent) in [("a", 12), ("b", 11), ("c", 10)] {
        stage.run(name, percent, true).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "62 %; the agent has just started");
    }
    // 92 % and daemons: a uses the most, but its budget has nothing left; b is enough.
    stage.wants("shop", 59);
    let told = stage.cycle().await;
    let asked = [("default/a".to_owned(), Reply::Refused), ("default/b".to_owned(), Reply::Granted)];
    assert_eq!(stage.asked(), asked, "{told:?}");
    assert!(told.iter().any(|line| line.contains("default/a: stays")), "{told:?}");
    assert_eq!(stage.quotas().await.into_keys().collect::<Vec<_>>(), ["a", "c", "shop"]);
    assert!(stage.cycle().await.is_empty(), "81 %");
    stage.told(&[("Pod", "EvictionBlocked"), ("Pod", "Evicted")]).await;
}

#[tokio::test]
async fn who_was_not_asked_is_not_remembered_as_gone() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    let names = ["a", "b", "c", "d", "e"];
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"minAvailable": 5, "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": names}]}},
    });
    stage.writer.create(BUDGETS, "default", &budget).await.expect("the budget is well-formed");
    stage.run("shop", 15, false).await;
    for (name, percent) in names.into_iter().zip([12, 11, 10, 9, 9]) {
        stage.run(name, percent, true).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "66 %; the agent has just started");
    }
    // One would be enough, but none of the five may go; after a few the agent leaves it at that.
    stage.wants("shop", 41);
    stage.cycle().await;
    let asked = stage.asked();
    assert!(!asked.is_empty() && asked.iter().all(|(_, reply)| *reply == Reply::Refused), "{asked:?}");
    assert_eq!(stage.quotas().await.len(), 6, "everybody is there");
}

#[tokio::test]
async fn an_agent_that_remembers_nothing_takes_back_what_its_node_says() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict()).await;
    let taint =
        json!({"key": "team", "value": "x", "effect": "NoExecute", "timeAdded": "2025-01-01T00:00:00Z"});
    let others = json!({"spec": {"taints": [taint]}});
    let key = Key::new("", NODE);
    stage.writer.patch(NODES.whole(), &key, Patch::Merge, &others).await.expect("the node is there");
    stage.run("shop", 95, false).await;
    while !stage.says().await.0 {
        stage.cycle().await;
    }
    stage.wants("shop", 20);
    stage.restart().await;
    let mut cycles = 0;
    while stage.says().await.0 {
        stage.cycle().await;
        cycles += 1;
        assert!(cycles < 200, "the taint stays for ever");
    }
    assert_eq!(stage.says().await, (false, Some("False".into()), false));
    let nodes: Api<core::Node> = Api::all(stage.client.clone());
    let left = nodes.get(NODE).await.expect("the node is there").spec.and_then(|spec| spec.taints);
    assert_eq!(
        serde_json::to_value(left).expect("it is JSON"),
        json!([taint]),
        "those of others stay as they are"
    );
}

#[tokio::test]
async fn a_node_in_preview_is_left_as_it_is() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    let patch = json!({"metadata": {"annotations": {loadline_api::qos::PREVIEW: "true"}}});
    let key = Key::new("", NODE);
    stage.writer.patch(NODES.whole(), &key, Patch::Merge, &patch).await.expect("the node is there");
    stage
        .until("the node is in preview", |state| state.node(&key).is_some_and(|(_, node)| node.view.preview))
        .await;
    stage.run("shop", 80, false).await;
    stage.run("a", 20, true).await;
    for _ in 0..8 {
        assert!(stage.cycle().await.is_empty());
    }
    assert_eq!(stage.quotas().await["a"], Some(20));
    assert_eq!(stage.says().await, (false, None, false));
    stage.told(&[("Node", "AvoidanceTriggered")]).await;
}

#[tokio::test]
async fn a_pod_that_is_gone_already_was_not_evicted() {
    let mut stage = Stage::new().await;
    let name = policy::RuleName { object: "o".into(), rule: "r".into() };
    let victim = Victim {
        pod: Key::new("default", "gone"),
        uid: "u".into(),
        metric: "cpu_total_usage",
        rule: Arc::new(name),
        before: None,
        after: None,
        release: BTreeMap::new(),
        grace_seconds: 1,
    };
    assert_eq!(stage.agent.ask(&victim).await, Some(Reply::Gone));
    stage.run("gone", 1, false).await;
    assert_eq!(stage.agent.ask(&victim).await, Some(Reply::Replaced), "another one of that name");
}

#[tokio::test]
async fn without_rules_nodes_are_left_alone() {
    let mut stage = Stage::new().await;
    stage.run("shop", 100, false).await;
    for _ in 0..5 {
        assert!(stage.cycle().await.is_empty());
    }
    assert_eq!(stage.says().await, (false, None, false));
    assert_eq!(stage.state.due().len(), 0);
    assert_eq!(stage.agent.writer.connection().calls().record().len(), 0, "not even a request");
}

#[tokio::test]
async fn nothing_is_done_that_cannot_be_written_down() {
    let mut stage = Stage::new().await;
    let folder = tempfile::tempdir().expect("a folder");
    stage.agent.journal = Journal::open(folder.path(), NODE);
    // What is in the place of the new file cannot be written over, as nothing can on a full disk.
    let in_the_way = folder.path().join("journal.json.new");
    std::fs::create_dir(&in_the_way).expect("a folder");
    stage.ask_for(rules()).await;
    stage.run("shop", 72, false).await;
    stage.run("a", 10, true).await;
    for _ in 0..6 {
        let told = stage.cycle().await;
        assert!(!told.iter().any(|line| line.contains("throttled") || line.contains("evicted")), "{told:?}");
    }
    assert_eq!(stage.quotas().await["a"], Some(10), "as it was");
    assert_eq!(stage.agent.metrics.journal_broken.get(), 1);
    std::fs::remove_dir(&in_the_way).expect("it is there");
    stage.cycle().await;
    assert_eq!(stage.quotas().await["a"], Some(6), "40 % less");
    assert_eq!(stage.agent.metrics.journal_broken.get(), 0);
}

#[tokio::test]
async fn what_an_agent_took_whose_journal_is_damaged_is_given_back() {
    let mut stage = Stage::new().await;
    stage.ask_for(rules()).await;
    stage.run("a", 10, true).await;
    let uid = stage.uid("a");
    stage.host.lock().get_mut(&uid).expect("it runs").quota = CpuQuota::Us(30_000);
    stage.cycle().await;
    assert_eq!(stage.quotas().await["a"], Some(3), "others lower quotas, too: without a reason it stays");
    stage.agent.adopting = ADOPTING;
    stage.cycle().await;
    assert_eq!(stage.quotas().await["a"], Some(10), "its limit");
}

#[tokio::test]
async fn what_was_taken_is_looked_for_though_no_rule_is_left() {
    let mut stage = Stage::new().await;
    stage.run("a", 10, true).await;
    let uid = stage.uid("a");
    stage.host.lock().get_mut(&uid).expect("it runs").quota = CpuQuota::Us(30_000);
    stage.agent.adopting = ADOPTING;
    stage.cycle().await;
    assert_eq!(stage.quotas().await["a"], Some(10), "its limit");
    for _ in 0..ADOPTING {
        stage.cycle().await;
    }
    assert_eq!(stage.agent.adopting, 0, "others lower quotas, too: not for ever");
}
