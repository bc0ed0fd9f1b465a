//! Agents against the in-memory API server, with time in the test's hand: the whole story, and what gets in its way.

use super::*;
use crate::bind::COOLING;
use crate::cluster::{Key, Pod};
use crate::node::{Shape, Sink, USAGE_CPU};
use crate::scenario;
use crate::tell::Notice;
use jiff::SignedDuration;
use k8s_openapi::api::core::v1 as core;
use kube::api::ListParams;
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_core::view::Phase;
use serde_json::{Value, json};
use std::future::Future;
use tokio::sync::mpsc;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

/// Asks again until there is an answer; watches are what it waits for.
async fn until<T, F: Future<Output = Option<T>>>(what: &str, ask: impl Fn() -> F) -> T {
    let asking = async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect(what)
}

/// One node and its agent, whose time passes only in [`Stage::cycle`].
struct Stage {
    client: Client,
    cluster: Arc<Cluster>,
    kubelets: Arc<Kubelets>,
    agents: Agents,
    tell: Teller,
    counts: Arc<Counts>,
    notices: mpsc::Receiver<Notice>,
    shape: Shape,
    now: Timestamp,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Stage {
    async fn new() -> Self {
        let client = Client::new(ApiServer::default(), "default");
        let (mut tasks, stop) = (JoinSet::new(), CancellationToken::new());
        let cluster = Arc::new(Cluster::new(client.clone()));
        let counts = Arc::<Counts>::default();
        let (tell, notices) = Teller::start(cluster.write.clone(), &mut tasks, &stop);
        let options = crate::Options { nodes: 1, ..crate::Options::default() };
        let kubelets = Kubelets::new(cluster.clone(), &options, Sink::none(), tell.clone(), counts.clone());
        cluster.follow_pods(&mut tasks, &stop);
        cluster.nodes.ready().await;
        cluster.pods.ready().await;
        kubelets.start(&mut tasks, &stop).await.expect("the node is registered");
        asked::define(&cluster.write).await.expect("the kinds are known");
        let shape = Shape::new(0, options.nodes, options.seed);
        let agents =
            Agents::new(cluster.clone(), kubelets.clone(), &Options::default(), tell.clone(), counts.clone());
        // By now everything that starts has warmed up.
        let now = Timestamp::now() + SignedDuration::from_secs(60);
        let mut stage =
            Self { client, cluster, kubelets, agents, tell, counts, notices, shape, now, tasks, stop };
        stage.listen().await;
        stage
    }

    async fn listen(&mut self) {
        self.agents.asked.follow(&self.cluster, &mut self.tasks, &self.stop);
        self.cluster.follow(&self.agents.guests, &mut self.tasks, &self.stop);
        self.agents.asked.ready().await;
        self.agents.guests.ready().await;
    }

    /// The agent ends, and another comes that remembers nothing.
    async fn restart(&mut self) {
        let (cluster, kubelets) = (self.cluster.clone(), self.kubelets.clone());
        self.agents =
            Agents::new(cluster, kubelets, &Options::default(), self.tell.clone(), self.counts.clone());
        self.listen().await;
    }

    async fn ask_for(&self, objects: impl IntoIterator<Item = (&'static str, Value)>) {
        for (plural, object) in objects {
            let path = format!("/apis/ensurance.crane.io/v1alpha1/{plural}");
            self.cluster.write.create_at(&path, &object).await.expect("the object is well-formed");
        }
        let rules = &self.agents.asked;
        until("the rules to be known", async || {
            let policy = rules.policy();
            (rules.anything() && policy.warnings().is_empty()).then_some(())
        })
        .await;
    }

    /// A pod on the node that runs and uses this much of it, in percent.
    async fn run(&self, name: &str, percent: i64, more: Value) {
        let share = |percent: i64| format!("{}m", self.shape.cpus * 10 * percent);
        let mut object = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}, "annotations": {USAGE_CPU: share(percent)}},
            "spec": {"nodeName": self.shape.name, "containers": [{"name": "main", "image": "simulated"}]},
        });
        if more["batch"] == json!(true) {
            object["metadata"]["labels"]["tier"] = json!("batch");
            object["spec"]["containers"][0]["resources"] =
                json!({"requests": {"cpu": share(5)}, "limits": {"cpu": share(percent)}});
        }
        self.cluster.write.create::<Pod>("default", &object).await.expect("the pod is well-formed");
        let key = Key::new("default", name);
        until("the pod to run", async || {
            let guest = self.agents.guests.get(&key)?;
            (self.cluster.pods.get(&key)?.phase == Phase::Running && guest.pod.started.is_some())
                .then_some(())
        })
        .await;
    }

    /// From now on the pod uses this much of the node, in percent.
    async fn uses(&self, name: &str, percent: i64) {
        let (key, share) = (Key::new("default", name), format!("{}m", self.shape.cpus * 10 * percent));
        let patch = json!({"metadata": {"annotations": {USAGE_CPU: share}}});
        self.cluster.write.patch::<Pod>(&key, "", &patch).await.expect("the pod is there");
        until("the load to change", async || {
            (self.cluster.pods.get(&key)?.meta.annotation(USAGE_CPU) == Some(&share)).then_some(())
        })
        .await;
    }

    /// The next cycle; what was told in it, without what nodes have to say.
    async fn cycle(&mut self) -> Vec<String> {
        self.now += SignedDuration::from_secs(2);
        self.agents.cycle(self.now).await;
        let told = std::iter::from_fn(|| self.notices.try_recv().ok());
        told.filter(|notice| notice.from == "agent").map(|notice| notice.to_string()).collect()
    }

    /// What every pod may take, in percent of the node, by name, once there are no more pods than that.
    async fn quotas(&self, count: usize) -> BTreeMap<String, Option<i64>> {
        until("pods to go", async || {
            let (pods, guests) = (self.cluster.pods.count(|_| true), self.agents.guests.count(|_| true));
            ((pods, guests) == (count, count)).then_some(())
        })
        .await;
        let quota = |pod: &Arc<Pod>| {
            let quota = self.kubelets.quotas().get(&pod.meta.uid, &pod.containers[0]);
            let percent = crate::node::milli(quota).map(|milli| milli / (self.shape.cpus * 10));
            (pod.meta.key.name.clone(), percent)
        };
        self.cluster.pods.all().iter().map(quota).collect()
    }

    /// Does the node say that it has too much: by its taint, its condition, its mark?
    async fn says(&self) -> (bool, Option<String>, bool) {
        let nodes: Api<core::Node> = Api::all(self.client.clone());
        let node = nodes.get(&self.shape.name).await.expect("the node is there");
        let taints = node.spec.and_then(|spec| spec.taints).unwrap_or_default();
        let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
        let condition = conditions.into_iter().find(|c| c.type_ == qos::taint::CONDITION).map(|c| c.status);
        let marked = node.metadata.annotations.unwrap_or_default().contains_key(COOLING);
        (taints.iter().any(|taint| taint.key == qos::taint::KEY), condition, marked)
    }

    /// Waits until an event of each of these reasons was told of an object of that kind.
    async fn told(&self, wanted: &[(&str, &str)]) {
        let events: Api<core::Event> = Api::default_namespaced(self.client.clone());
        until("the events", async || {
            let all = events.list(&ListParams::default()).await.expect("events are listed").items;
            let ours = |e: &&core::Event| {
                e.source.as_ref().and_then(|s| s.component.as_deref()) == Some(say::COMPONENT)
            };
            let told: BTreeSet<(String, String)> = all
                .iter()
                .filter(ours)
                .map(|e| {
                    (e.involved_object.kind.clone().unwrap_or_default(), e.reason.clone().unwrap_or_default())
                })
                .collect();
            let there = |(kind, reason): &(&str, &str)| told.contains(&((*kind).into(), (*reason).into()));
            wanted.iter().all(there).then_some(())
        })
        .await;
    }
}

fn batch() -> Value {
    json!({"batch": true})
}

#[tokio::test]
async fn a_node_that_is_overrun_throttles_then_evicts_then_gives_everything_back() {
    let mut stage = Stage::new().await;
    stage.ask_for(scenario::rules(&stage.shape)).await;
    stage.run("shop", 25, json!({})).await;
    for name in ["a", "b", "c"] {
        stage.run(name, 10, batch()).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "25 % + 3 × 10 % are under both lines");
    }
    assert_eq!(stage.says().await, (false, None, false));

    stage.uses("shop", 72).await;
    assert!(stage.cycle().await.is_empty(), "once is not enough");
    let told = stage.cycle().await;
    assert_eq!(told.iter().filter(|line| line.contains("throttled")).count(), 3, "{told:?}");
    assert!(told[0].contains("closed: overload/busy triggered"), "the mark comes first: {told:?}");
    assert_eq!(stage.says().await, (true, Some("True".into()), true));
    stage.cycle().await;
    let quotas = stage.quotas(4).await;
    let slow = |name: &str| quotas[name];
    assert_eq!((slow("a"), slow("b"), slow("c")), (Some(5), Some(5), Some(5)), "down to what they request");
    assert_eq!(slow("shop"), None, "nobody allowed that");
    // Four times over 85 %: 72 % + 3 × 5 % and daemons.
    let told = stage.cycle().await;
    let evicted: Vec<&String> = told.iter().filter(|line| line.contains("evicted")).collect();
    assert_eq!(evicted.len(), 1, "5 % are enough: {told:?}");
    assert!(evicted[0].contains("overload/full, cpu_total_utilization 8"), "{evicted:?}");
    stage.quotas(3).await;
    for _ in 0..5 {
        assert!(stage.cycle().await.is_empty(), "under 85 %, and nothing is left to take: nobody is touched");
    }

    stage.uses("shop", 25).await;
    let (mut told, mut open_after) = (Vec::new(), None);
    for cycle in 1..20 {
        told.extend(stage.cycle().await);
        if open_after.is_none() && !stage.says().await.0 {
            open_after = Some(cycle);
        }
    }
    let left: BTreeSet<Option<i64>> = stage.quotas(3).await.into_values().collect();
    assert_eq!(left, BTreeSet::from([None, Some(10)]), "everything is back: {told:?}");
    assert!(told.iter().any(|line| line.contains("given back") && line.contains("→ ")), "{told:?}");
    assert_eq!(stage.says().await, (false, Some("False".into()), false));
    assert_eq!(open_after, Some(6), "last over its line 2 s before, 10 s to cool, and open after that");
    assert_eq!(stage.counts.relieved.get(), 1);
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

/// Only a line at 85 %, and batch is evicted over it at once.
fn only_evict(shape: &Shape) -> Vec<(&'static str, Value)> {
    let mut objects = Vec::from(scenario::rules(shape));
    let rules = &mut objects[3].1["spec"]["rules"];
    rules[1]["avoidanceThreshold"] = json!(1);
    rules.as_array_mut().expect("a list").remove(0);
    objects
}

#[tokio::test]
async fn a_budget_keeps_its_pod_and_the_next_one_goes() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict(&stage.shape)).await;
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "a"}}},
    });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    stage.cluster.write.create_at(budgets, &budget).await.unwrap();
    stage.run("shop", 29, json!({})).await;
    for (name, percent) in [("a", 12), ("b", 11), ("c", 10)] {
        stage.run(name, percent, batch()).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "62 %; the agent has just started");
    }
    // 92 % and daemons: a uses the most, but its budget has nothing left; b is enough.
    stage.uses("shop", 59).await;
    let told = stage.cycle().await;
    let memory = &stage.agents.memory[&stage.shape.name];
    let asked: Vec<(&str, Reply)> = memory.state.evictions.iter().map(|e| (&*e.pod.name, e.reply)).collect();
    assert_eq!(asked, [("a", Reply::Refused), ("b", Reply::Granted)], "{told:?}");
    assert!(told.iter().any(|line| line.contains("default/a: stays")), "{told:?}");
    assert_eq!(stage.quotas(3).await.into_keys().collect::<Vec<_>>(), ["a", "c", "shop"]);
    assert!(stage.cycle().await.is_empty(), "81 %");
    stage.told(&[("Pod", "EvictionBlocked"), ("Pod", "Evicted")]).await;
}

#[tokio::test]
async fn who_was_not_asked_is_not_remembered_as_gone() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict(&stage.shape)).await;
    let names = ["a", "b", "c", "d", "e"];
    let budget = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "keep"},
        "spec": {"minAvailable": 5, "selector": {"matchExpressions": [{"key": "app", "operator": "In", "values": names}]}},
    });
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    stage.cluster.write.create_at(budgets, &budget).await.unwrap();
    stage.run("shop", 15, json!({})).await;
    for (name, percent) in names.into_iter().zip([12, 11, 10, 9, 9]) {
        stage.run(name, percent, batch()).await;
    }
    for _ in 0..4 {
        assert!(stage.cycle().await.is_empty(), "66 %; the agent has just started");
    }
    // One would be enough, but none of the five may go; after a few the agent leaves it at that.
    stage.uses("shop", 41).await;
    stage.cycle().await;
    let memory = &stage.agents.memory[&stage.shape.name];
    let asked: Vec<(&str, Reply)> = memory.state.evictions.iter().map(|e| (&*e.pod.name, e.reply)).collect();
    assert!(!asked.is_empty() && asked.iter().all(|(_, reply)| *reply == Reply::Refused), "{asked:?}");
    assert_eq!(stage.quotas(6).await.len(), 6, "everybody is there");
}

#[tokio::test]
async fn an_agent_that_remembers_nothing_takes_back_what_its_node_says() {
    let mut stage = Stage::new().await;
    stage.ask_for(only_evict(&stage.shape)).await;
    let others = json!({"spec": {"taints": [{"key": "team", "value": "x", "effect": "NoSchedule"}]}});
    let key = Key::new("", &stage.shape.name);
    stage.cluster.write.patch::<Node>(&key, "", &others).await.unwrap();
    stage.run("shop", 95, json!({})).await;
    while !stage.says().await.0 {
        stage.cycle().await;
    }
    stage.uses("shop", 20).await;
    stage.restart().await;
    let mut cycles = 0;
    while stage.says().await.0 {
        stage.cycle().await;
        cycles += 1;
        assert!(cycles < 200, "the taint stays for ever");
    }
    assert_eq!(stage.says().await, (false, Some("False".into()), false));
    let node = stage.cluster.write.get::<Node>(&key).await.unwrap();
    assert_eq!(node["spec"]["taints"], others["spec"]["taints"], "those of others stay");
}

#[tokio::test]
async fn a_node_in_preview_is_left_as_it_is() {
    let mut stage = Stage::new().await;
    stage.ask_for(scenario::rules(&stage.shape)).await;
    let (key, preview) = (Key::new("", &stage.shape.name), json!({loadline_api::qos::PREVIEW: "true"}));
    let patch = json!({"metadata": {"annotations": preview}});
    let answer = stage.cluster.write.patch::<Node>(&key, "", &patch).await.unwrap();
    stage.cluster.nodes.wrote(answer);
    stage.run("shop", 80, json!({})).await;
    stage.run("a", 20, batch()).await;
    for _ in 0..8 {
        assert!(stage.cycle().await.is_empty());
    }
    assert_eq!(stage.quotas(2).await["a"], Some(20));
    assert_eq!(stage.says().await, (false, None, false));
    stage.told(&[("Node", "AvoidanceTriggered")]).await;
}

#[tokio::test]
async fn a_pod_that_is_gone_already_was_not_evicted() {
    let stage = Stage::new().await;
    let name = qos::policy::RuleName { object: "o".into(), rule: "r".into() };
    let victim = Victim {
        pod: loadline_core::object::Key::new("default", "gone"),
        uid: "u".into(),
        metric: "cpu_total_usage",
        rule: Arc::new(name),
        before: None,
        after: None,
        release: BTreeMap::new(),
        grace_seconds: 1,
    };
    assert_eq!(stage.agents.ask(&victim).await, Reply::Gone);
    stage.run("gone", 1, json!({})).await;
    assert_eq!(stage.agents.ask(&victim).await, Reply::Replaced, "another one of that name");
}

#[tokio::test]
async fn without_rules_nodes_are_left_alone() {
    let mut stage = Stage::new().await;
    stage.run("shop", 100, json!({})).await;
    for _ in 0..5 {
        assert!(stage.cycle().await.is_empty());
    }
    assert_eq!(stage.says().await, (false, None, false));
    assert!(stage.agents.memory.is_empty());
}
