//! What does an agent know? Its nodes, the pods on them, the rules, and what earlier cycles left.

use super::doubt::Doubts;
use super::host::{PodUsage, Usage};
use super::watched::{Actions, Message, Node, NodeRules, Nodes, Pod, Pods, Scopes};
use crate::cluster::{Event, Informer, Watched};
use jiff::{SignedDuration, Timestamp};
use loadline_api::Error;
use loadline_api::qos::ELASTIC_CPU;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::audit::Audit;
use loadline_core::qos::metric::{Catalogue, elastic};
use loadline_core::qos::policy::{Action, NodeQos, Policy};
use loadline_core::qos::scope::Scope;
use loadline_core::qos::{self, CpuQuota, Level, NodeSnapshot, Options, Series};
use loadline_core::view::Labels;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// What is remembered of a node from one cycle to the next.
#[derive(Debug)]
pub(super) struct Memory {
    pub state: qos::State,
    /// Pods that may not go, as was told.
    pub blocked: BTreeSet<Key>,
    /// What could not be judged or done, as was told.
    pub doubts: Doubts,
    /// What was done, and what came of it.
    pub audit: Arc<Audit>,
}

/// How many acts are remembered of a node.
const ACTS: usize = 256;

impl Default for Memory {
    fn default() -> Self {
        Self {
            state: qos::State { cycles: Some(0), ..qos::State::default() },
            blocked: BTreeSet::new(),
            doubts: Doubts::default(),
            audit: Arc::new(Audit::new(ACTS)),
        }
    }
}

impl Memory {
    /// Is there anything to look after?
    fn is_idle(&self) -> bool {
        self.state.throttled.is_empty() && self.state.rules.values().all(|rule| !rule.active)
    }
}

/// A node and which object it is.
pub(super) type NodeObject = (Meta, Arc<Node>);
/// A pod and which object it is.
pub(super) type PodObject = (Meta, Arc<Pod>);

/// Everything an agent knows.
#[derive(Debug)]
pub(super) struct State {
    nodes: Informer<Option<NodeObject>>,
    pods: Informer<Option<PodObject>>,
    rules: Informer<Option<NodeQos>>,
    actions: Informer<Option<Action>>,
    scopes: Informer<Option<Scope>>,
    /// What can be measured.
    pub catalogue: Catalogue,
    /// What rules, actions and scopes come to; none after one of them changed.
    policy: Option<Arc<Policy>>,
    memory: BTreeMap<Arc<str>, Memory>,
}

fn informer<W: Watched, T>() -> Informer<T> {
    Informer::new(W::RESOURCE.plural)
}

impl State {
    pub fn new() -> Self {
        Self {
            nodes: informer::<Nodes, _>(),
            pods: informer::<Pods, _>(),
            rules: informer::<NodeRules, _>(),
            actions: informer::<Actions, _>(),
            scopes: informer::<Scopes, _>(),
            catalogue: Catalogue::default(),
            policy: None,
            memory: BTreeMap::new(),
        }
    }

    /// Takes a message in.
    pub fn take(&mut self, message: Message, now: Timestamp) {
        match message {
            Message::Node(event) => set(&mut self.nodes, event, now, |meta, node| (meta, Arc::new(node))),
            Message::Pod(event) => set(&mut self.pods, event, now, |meta, pod| (meta, Arc::from(pod))),
            Message::NodeRules(event) => {
                set(&mut self.rules, event, now, |_, rules| rules);
                self.policy = None;
            }
            Message::Action(event) => {
                set(&mut self.actions, event, now, |_, action| action);
                self.policy = None;
            }
            Message::Scope(event) => {
                set(&mut self.scopes, event, now, |_, scope| scope);
                self.policy = None;
            }
            // The agent's own: nothing is decided by them.
            Message::Targets(_) => {}
        }
    }

    /// Takes in a node as the answer to a write of ours shows it.
    pub fn wrote_node(&mut self, meta: Meta, read: Result<Node, Error>) {
        let change = self.nodes.wrote(meta, read);
        if let Some((meta, Some(node))) = change.applied
            && let Some(value) = self.nodes.value_mut(&meta.key.clone())
        {
            *value = Some((meta, Arc::new(node)));
        }
    }

    /// Why something cannot be read, if it is so.
    pub fn trouble(&self) -> Option<&str> {
        let all = [
            self.nodes.trouble(),
            self.pods.trouble(),
            self.rules.trouble(),
            self.actions.trouble(),
            self.scopes.trouble(),
        ];
        all.into_iter().flatten().next().map(|(why, _)| why.as_str())
    }

    /// Is there any rule?
    pub fn has_rules(&self) -> bool {
        !self.rules.store().is_empty()
    }

    /// Is everything known that decisions need? A rule without its action would only close nodes.
    pub fn is_ready(&self, with_pods: bool) -> bool {
        let rules = self.rules.is_listed() && self.actions.is_listed() && self.scopes.is_listed();
        self.nodes.is_listed() && rules && (!with_pods || self.pods.is_listed())
    }

    /// Is it known which pods there are?
    pub fn knows_pods(&self) -> bool {
        self.pods.is_listed()
    }

    /// What the rules come to; says whether they are other rules than before.
    pub fn policy(&mut self) -> (Arc<Policy>, bool) {
        if let Some(policy) = &self.policy {
            return (policy.clone(), false);
        }
        let rules = all(&self.rules);
        let policy = Policy::new(self.catalogue.clone(), &rules, all(&self.actions), &all(&self.scopes));
        let policy = Arc::new(policy);
        self.policy = Some(policy.clone());
        (policy, true)
    }

    /// Nodes there is something to look after on. What was remembered of nodes that are gone is forgotten, unless something
    /// was taken there: a node that is registered anew still runs its pods, and their containers are held to what we wrote.
    pub fn due(&mut self) -> Vec<NodeObject> {
        let nodes = all(&self.nodes);
        let names: BTreeSet<&str> = nodes.iter().map(|(meta, _)| &*meta.key.name).collect();
        self.memory.retain(|name, memory| names.contains(&**name) || !memory.state.throttled.is_empty());
        let has_rules = self.has_rules();
        let is_due = |(meta, node): &NodeObject| {
            let is_idle = self.memory.get(&meta.key.name).is_none_or(Memory::is_idle);
            has_rules || !is_idle || node.is_marked()
        };
        nodes.iter().filter(|node| is_due(node)).cloned().collect()
    }

    /// All nodes that are looked after.
    pub fn nodes(&self) -> Vec<NodeObject> {
        all(&self.nodes)
    }

    /// Goes on from what an earlier agent left of a node. It may have just ended, so nobody is evicted in a hurry.
    pub fn remember(&mut self, node: &str, mut left: qos::State, now: Timestamp) {
        left.cap(now);
        self.memory_mut(&node.into()).state = qos::State { cycles: Some(0), ..left };
    }

    /// How many containers are slowed down.
    pub fn throttled(&self) -> usize {
        let all = self.memory.values().flat_map(|memory| &memory.state.throttled);
        all.filter(|entry| entry.is_slowed()).count()
    }

    /// How many rules have no usable sample, on all nodes.
    pub fn rules_in_error(&self) -> usize {
        self.memory.values().map(|memory| memory.doubts.in_error()).sum()
    }

    /// Is there anything that was taken, or may have been?
    pub fn remembers(&self) -> bool {
        self.memory.values().any(|memory| !memory.state.throttled.is_empty())
    }

    /// The clock was set by so much. How long others' times are ago can no longer be told, so nobody is evicted in a hurry.
    pub fn clock_set(&mut self, by: SignedDuration) {
        for memory in self.memory.values_mut() {
            memory.state.shift(by);
            memory.state.cycles = Some(0);
            Arc::make_mut(&mut memory.audit).shift(by);
        }
    }

    /// Pods by the node they are on.
    pub fn pods_by_node(&self) -> HashMap<String, Vec<PodObject>> {
        let mut by_node: HashMap<String, Vec<PodObject>> = HashMap::new();
        for object in all(&self.pods) {
            if let Some(node) = &object.1.node {
                by_node.entry(node.clone()).or_default().push(object);
            }
        }
        by_node
    }

    pub fn memory_mut(&mut self, node: &Arc<str>) -> &mut Memory {
        self.memory.entry(node.clone()).or_default()
    }
}

/// Brings an informer up to date that remembers what `keep` makes of each object.
fn set<F, T>(
    informer: &mut Informer<Option<T>>,
    event: Event<F>,
    now: Timestamp,
    keep: impl FnOnce(Meta, F) -> T,
) {
    if let Event::Failed(problem) | Event::Forbidden(problem) = &event {
        tracing::warn!(resource = informer.name(), problem, "watch failed, trying again");
    }
    if let Some((meta, Some(facts))) = informer.apply(event, now).applied
        && let Some(value) = informer.value_mut(&meta.key.clone())
    {
        *value = Some(keep(meta, facts));
    }
}

fn all<T: Clone>(informer: &Informer<Option<T>>) -> Vec<T> {
    informer.store().iter().filter_map(|(.., value)| value.clone()).collect()
}

/// What there is to know about a node at one time.
pub(super) fn snapshot(
    node: &Node,
    pods: &[PodObject],
    usage: &Usage,
    state: qos::State,
    (now, options): (Timestamp, Options),
) -> NodeSnapshot {
    let mut series = usage.nodes.get(&node.view.name).cloned().unwrap_or_default();
    series.extend(handed_out(node, pods, now));
    NodeSnapshot {
        now,
        node: node.view.clone(),
        series,
        // Everything was measured in this cycle, just before it is planned.
        latest: Vec::new(),
        pods: pods.iter().map(|(meta, pod)| measured(&pod.pod, usage.pods.get(&meta.uid))).collect(),
        // The API server knows them, and is asked before anybody goes.
        budgets: Vec::new(),
        state,
        options,
    }
}

/// How much of the elastic CPU of a node is handed out. The host does not know, the API server does.
fn handed_out(node: &Node, pods: &[PodObject], at: Timestamp) -> Option<Series> {
    let allocatable = Level::whole(node.facts.allocatable.get(ELASTIC_CPU)?.milli_value());
    let value = elastic::handed_out(pods.iter().map(|(_, pod)| &pod.pod), allocatable);
    Some(Series { name: "ext_cpu_total_distribute".into(), labels: Labels::default(), value, at })
}

/// A pod with what it uses and what it is held to; what nobody measured stays unknown.
fn measured(pod: &qos::Pod, usage: Option<&PodUsage>) -> qos::Pod {
    let mut pod = pod.clone();
    for container in &mut pod.containers {
        let known = usage.and_then(|usage| usage.containers.get(&container.name));
        container.quota = known.map_or(CpuQuota::Unknown, |known| known.quota);
        container.period_us = known.map_or(container.period_us, |known| known.period_us);
        container.usage = known.and_then(|known| known.cpu);
    }
    pod.cpu = usage.and_then(PodUsage::cpu);
    pod.memory = usage.and_then(|usage| usage.memory);
    pod.unreclaimable = usage.and_then(|usage| usage.unreclaimable);
    pod.reclaimable = usage.and_then(|usage| usage.reclaimable);
    pod.usage = usage.map(|usage| usage.other.clone()).unwrap_or_default();
    pod
}

#[cfg(test)]
impl State {
    pub fn node(&self, key: &Key) -> Option<&NodeObject> {
        self.nodes.store().get(key)?.as_ref()
    }

    pub fn pod(&self, key: &Key) -> Option<&PodObject> {
        self.pods.store().get(key)?.as_ref()
    }

    /// How many rules, actions and scopes there are.
    pub fn rule_counts(&self) -> (usize, usize, usize) {
        (self.rules.store().len(), self.actions.store().len(), self.scopes.store().len())
    }
}
