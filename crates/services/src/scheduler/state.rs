//! What is known, and what follows from it? Messages go in, actions come out; nothing waits here.
//!
//! One [`Cluster`] of `core` has all knowledge and makes all decisions. Around it: which objects there are, whose turn it
//! is, and what is worth telling.

mod extend;
mod moved;

use super::advice::{Advice, answered};
use super::agree::Agreement;
use super::execute::{Action, Outcome};
use super::explain::{About, Decisions, gone};
use super::heat::{About as HeatOf, Heat};
use super::metrics::Attempt;
use super::profiles::Profiles;
use super::queue::{Helps, Pending, Queue};
use super::retell::Retellings;
use super::watched::Message;
use crate::cluster::{Change, Event, Informer};
use crate::ctx::Now;
use crate::sources::metrics_api::Measurements;
use jiff::{SignedDuration, Timestamp};
use loadline_api::explain::recommendation;
use loadline_api::node::cooling_until;
use loadline_api::pod::Pod;
use loadline_api::scheduler::{Configuration, WhenOverloaded};
use loadline_api::{Context, cluster as api_cluster};
use loadline_core::cluster::{Cluster, Decided, LeastBad, Options};
use loadline_core::cycle::{Decision, Filter, Parts, Weights};
use loadline_core::load::Metered;
use loadline_core::load::estimate::Estimate;
use loadline_core::load::policy::Rules;
use loadline_core::load::publish;
use loadline_core::load::term::AHEAD;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::agree::About as LinesOf;
use loadline_core::rebalance::workload;
use loadline_core::view::{Budget, NodeFacts, Texts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Rules by which load keeps a pod from a node it would otherwise fit on.
const LOAD_RULES: [Filter; 4] = [Filter::Threshold, Filter::UnknownLoad, Filter::Cooling, Filter::Line];
/// Rules other pods can help with by being there.
const POD_RULES: [Filter; 2] = [Filter::Affinity, Filter::Spread];
/// How often pods on nodes may be estimated anew.
const REESTIMATE: Duration = Duration::from_secs(1);
/// Looking for words about a decision takes longer than the decision; this is how often it may be done.
const WORDS_EVERY: Duration = Duration::from_millis(500);

/// What is remembered of a node.
#[derive(Clone, Debug, Default)]
struct NodeNote {
    cordoned: bool,
    /// A hash of everything but its annotations.
    looks: Option<u64>,
    /// Was it annotated by another policy than ours?
    foreign: bool,
    /// What it used when it was last measured.
    used: Option<(Timestamp, [i64; 2])>,
}

/// What is remembered of a pod.
#[derive(Clone, Copy, Debug, Default)]
struct PodNote {
    /// Its priority, if it takes up room on a node.
    placed: Option<i32>,
    /// Which scheduler it asks for, by its place among [`State::schedulers`].
    scheduler: u8,
}

/// Something worth telling: who, about what, what.
pub(crate) type Notice = (&'static str, String, String);

/// The kinds that are watched.
#[derive(Debug)]
struct Informers {
    nodes: Informer<NodeNote>,
    pods: Informer<PodNote>,
    namespaces: Informer<()>,
    priority_classes: Informer<()>,
    /// With the write each is as of.
    claims: Informer<Option<u64>>,
    volumes: Informer<Option<u64>>,
    storage_classes: Informer<()>,
    csi_nodes: Informer<()>,
    csi_drivers: Informer<()>,
    capacities: Informer<()>,
    budgets: Informer<()>,
    services: Informer<()>,
}

impl Informers {
    fn new() -> Self {
        Self {
            nodes: Informer::new("nodes"),
            pods: Informer::new("pods"),
            namespaces: Informer::new("namespaces"),
            priority_classes: Informer::new("priorityclasses"),
            claims: Informer::new("persistentvolumeclaims"),
            volumes: Informer::new("persistentvolumes"),
            storage_classes: Informer::new("storageclasses"),
            csi_nodes: Informer::new("csinodes"),
            csi_drivers: Informer::new("csidrivers"),
            capacities: Informer::new("csistoragecapacities"),
            budgets: Informer::new("poddisruptionbudgets"),
            services: Informer::new("services"),
        }
    }

    /// Has everything been read, and is nothing being replaced?
    fn are_complete(&self) -> bool {
        fn is<T>(informer: &Informer<T>) -> bool {
            informer.is_listed() && !informer.is_replacing()
        }
        let others =
            [&self.namespaces, &self.priority_classes, &self.storage_classes, &self.csi_nodes, &self.budgets];
        // Who may not read these goes without.
        let optional = [&self.services, &self.csi_drivers, &self.capacities];
        let volumes = is(&self.claims) && is(&self.volumes);
        is(&self.nodes)
            && is(&self.pods)
            && volumes
            && others.into_iter().all(is)
            && optional.into_iter().all(answered)
    }

    /// The same for somebody who only looks on: whoever may not read something goes without, but for nodes and pods.
    fn are_settled(&self) -> bool {
        fn is<T>(informer: &Informer<T>) -> bool {
            informer.is_listed() && !informer.is_replacing()
        }
        let volumes = answered(&self.claims) && answered(&self.volumes);
        is(&self.nodes) && is(&self.pods) && volumes && self.others().into_iter().all(answered)
    }

    fn others(&self) -> [&Informer<()>; 8] {
        [
            &self.namespaces,
            &self.priority_classes,
            &self.storage_classes,
            &self.csi_nodes,
            &self.csi_drivers,
            &self.capacities,
            &self.budgets,
            &self.services,
        ]
    }

    /// Which kinds cannot be read, and why.
    fn troubles(&self) -> Vec<(&'static str, &str)> {
        fn of<T>(informer: &Informer<T>) -> Option<(&'static str, &str)> {
            Some((informer.name(), informer.trouble()?.0.as_str()))
        }
        let first = [of(&self.nodes), of(&self.pods), of(&self.claims), of(&self.volumes)];
        first.into_iter().chain(self.others().map(of)).flatten().collect()
    }
}

/// A hash of what pods look for on a node, its annotations aside.
fn looks(facts: &NodeFacts) -> u64 {
    let NodeFacts {
        name: _,
        labels,
        annotations: _,
        taints,
        unschedulable,
        allocatable,
        capacity,
        attach_limits,
        // No pod waits for an image.
        images: _,
    } = facts;
    BuildHasherDefault::<DefaultHasher>::default().hash_one((
        labels,
        taints,
        unschedulable,
        allocatable,
        capacity,
        attach_limits,
    ))
}

/// Everything the scheduler knows.
#[derive(Debug)]
pub(crate) struct State {
    profiles: Profiles,
    cluster: Cluster,
    context: Context,
    texts: Texts,
    informers: Informers,
    queue: Queue,
    budgets: BTreeMap<Key, Budget>,
    /// Does the account not know of the newest yet?
    budgets_changed: bool,
    /// How many pods of which priority are on nodes.
    priorities: BTreeMap<i32, usize>,
    /// Which nodes are over their targets, for people; none without rules.
    heat: Option<(Heat, Rules)>,
    /// Do agents take load off nodes that are filled here?
    agreement: Agreement,
    /// Pods without a node that ask for other schedulers: one may become ours.
    others: BTreeMap<Key, (Meta, Box<Pod>)>,
    /// Names that pods ask for.
    schedulers: Vec<String>,
    /// Pods that are not to be placed yet, by the scheduler they ask for.
    gated: BTreeMap<String, BTreeSet<Key>>,
    notices: Vec<Notice>,
    quiet_until: Option<Instant>,
    foreign: usize,
    advice: Advice,
    decisions: Decisions,
    retellings: Retellings,
    /// Is there a recommendation that pods on nodes have not been estimated by, and when were they last?
    advised: bool,
    reestimated: Option<Instant>,
    /// Pods whose volumes are on their way.
    waits: Waits,
    /// Pods on nodes by the claims they use, to be looked at again when these change.
    claimants: Claimants,
}

impl State {
    /// Nothing is known yet.
    pub fn new(configuration: &Configuration, now: Now) -> Self {
        let profiles = Profiles::new(configuration);
        let mut cluster = Cluster::new(Options::default(), now.clock);
        cluster.set_profiles(profiles.engine());
        Self {
            heat: profiles.rules().cloned().map(|rules| (Heat::default(), rules)),
            profiles,
            cluster,
            others: BTreeMap::new(),
            schedulers: Vec::new(),
            gated: BTreeMap::new(),
            agreement: Agreement::new(),
            context: Context::new(),
            texts: Texts::default(),
            informers: Informers::new(),
            queue: Queue::default(),
            budgets: BTreeMap::new(),
            budgets_changed: false,
            priorities: BTreeMap::new(),
            notices: Vec::new(),
            quiet_until: None,
            foreign: 0,
            advice: Advice::new(),
            decisions: Decisions::default(),
            retellings: Retellings::default(),
            advised: false,
            reestimated: None,
            waits: Waits::default(),
            claimants: Claimants::default(),
        }
    }

    /// Goes by another configuration from now on. What is known stays; pods that wait are looked at by the new rules.
    pub fn configure(&mut self, configuration: &Configuration, now: Now) {
        self.profiles = Profiles::new(configuration);
        self.cluster.set_profiles(self.profiles.engine());
        let heat = self.heat.take().map(|(heat, _)| heat).unwrap_or_default();
        self.heat = self.profiles.rules().map(|rules| (heat, rules.clone()));
        self.agreement.targets_changed();
        let waiting = self.queue.waiting().into_iter().map(|held| {
            let Pending { meta, pod, .. } = Pending::clone(&held);
            (meta, pod)
        });
        let others = std::mem::take(&mut self.others).into_values().map(|(meta, pod)| (meta, *pod));
        for (meta, pod) in waiting.chain(others).collect::<Vec<_>>() {
            self.set_pod(meta, pod, now);
        }
        self.queue.requeue(Helps::ANY, now.at);
    }

    /// Everything that is known of the cluster.
    pub fn cluster(&mut self) -> &mut Cluster {
        self.tell_budgets();
        &mut self.cluster
    }

    /// Lets the account know of budgets. Their status changes with every pod, so not before somebody asks for them.
    fn tell_budgets(&mut self) {
        if std::mem::take(&mut self.budgets_changed) {
            self.cluster.set_budgets(self.budgets.values().cloned().collect());
        }
    }

    /// What is worth telling since this was last asked.
    pub fn notices(&mut self) -> Vec<Notice> {
        std::mem::take(&mut self.notices)
    }

    /// How many nodes are annotated by another policy than ours.
    pub fn foreign(&self) -> usize {
        self.foreign
    }

    /// On how many nodes our targets are above the lines of agents.
    pub fn disagreeing(&self) -> usize {
        self.agreement.count()
    }

    /// What is to be told of lines that are below our targets, of which `NodeQOS`.
    pub fn disagreements(&mut self) -> Vec<(Meta, String)> {
        self.agreement.news()
    }

    /// How many pods have no node because they fitted nowhere.
    pub fn unschedulable(&self) -> usize {
        self.queue.unschedulable_count()
    }

    /// How many pods are active, in backoff, unschedulable, and gated.
    pub fn queues(&self) -> [usize; 4] {
        let [active, backoff, unschedulable] = self.queue.counts();
        let ours = self.gated.iter().filter(|(scheduler, _)| self.serves(scheduler));
        [active, backoff, unschedulable, ours.map(|(_, pods)| pods.len()).sum()]
    }

    /// How many nodes, pods and reservations are held.
    pub fn held(&self) -> [usize; 3] {
        [self.informers.nodes.count(), self.informers.pods.count(), self.cluster.assumed()]
    }

    /// What there is to say about a pod, with so many nodes; nothing if there is no such pod.
    pub fn explain(&mut self, key: &Key, most: usize, now: Now) -> Option<Value> {
        self.tell_budgets();
        let placed = self.cluster.placed(key);
        let waiting = self.queue.get(key);
        let other = self.others.get(key).map(|(_, pod)| &**pod);
        let facts = waiting.as_ref().map(|held| &held.pod).or(other);
        let held = self.informers.pods.store().get(key);
        let scheduler = held.and_then(|held| self.schedulers.get(usize::from(held.scheduler)));
        let profile = scheduler.and_then(|name| self.profiles.find(name)).unwrap_or(0);
        let (view, estimate, on) = match (placed, facts) {
            (Some((view, node)), _) => {
                let estimate = Estimate { load: view.estimate, sources: Vec::new() };
                (view, estimate, Some(node))
            }
            (None, Some(pod)) => {
                let facts = pod.facts.clone();
                let view = self.cluster.view(&facts);
                (self.cluster.succeeding(&view), self.cluster.estimate(&facts), None)
            }
            (None, None) => {
                let moves = self.moves_of(|one| one.pod == *key);
                return (!moves.is_empty()).then(|| gone(key, self.decisions.of(key), &moves));
            }
        };
        let workload = workload(&view);
        let made = |at: Timestamp| view.created.is_some_and(|made| made.as_second() >= at.as_second());
        let moves = self.moves_of(|one| {
            one.pod == *key
                || (Some(&one.workload) == workload.as_ref() && one.uid != view.uid && made(one.at))
        });
        let mut decided = self.cluster.decide_by(profile, &view);
        let node = decided.node().map(|node| node.name.clone());
        let message = node.is_none().then(|| decided.message());
        let nodes = decided.report().nodes;
        let advice = self.cluster.recommendation(&view);
        let recommendation = advice.map(|advice| recommendation(advice, now.clock));
        let about = About { key: key.clone(), on, estimate, recommendation, node, message, nodes, moves };
        Some(about.document(self.decisions.of(key), most, now.clock))
    }

    /// Are pods that ask for that name placed?
    pub fn serves(&self, name: &str) -> bool {
        self.profiles.find(name).is_some()
    }

    /// The rules by which nodes are called hot.
    pub fn rules(&self) -> Option<&Rules> {
        self.profiles.rules()
    }

    /// Which nodes are over their targets.
    pub fn heat(&self) -> Option<&Heat> {
        self.heat.as_ref().map(|(heat, _)| heat)
    }

    /// How many pods are on each node.
    pub fn pods_by_node(&mut self) -> BTreeMap<Arc<str>, usize> {
        self.cluster.snapshot().nodes().map(|node| (node.name.clone(), node.pods.len())).collect()
    }

    /// A pod that was decided on is on its node at once.
    pub(super) fn placed(&mut self, pod: &Pending, node: &str, now: Now) {
        let Pending { meta, mut pod, .. } = pod.clone();
        pod.facts.node = Some(node.to_owned());
        self.set_pod(meta, pod, now);
    }

    /// An action, with the try that it is.
    pub(super) fn attempt(&self, action: Action, now: Now) -> (Action, Attempt) {
        let pod = action.pod();
        let (queued, number) = self.queue.tried(&pod.meta.key).unwrap_or((now.at, 1));
        let profile = self.profiles.find(&pod.pod.scheduler).map_or("", |at| self.profiles.name(at));
        let attempt = Attempt { profile: profile.to_owned(), began: now.at, queued, number };
        (action, attempt)
    }

    /// Has everything been read, and is nothing being replaced?
    pub fn is_ready(&self) -> bool {
        self.informers.are_complete() && self.advice.is_complete()
    }

    /// Has everything been read that somebody who only looks on may read?
    pub fn is_settled(&self) -> bool {
        self.informers.are_settled() && self.advice.is_complete()
    }

    /// Which kinds cannot be read, and why. What pods are learned to use, and who made them, may be missing without harm.
    pub fn troubles(&self) -> Vec<(&'static str, &str)> {
        self.informers.troubles()
    }

    /// Time has come this far.
    pub fn advance(&mut self, now: Now) {
        let due = self.cluster.next_due().is_some_and(|due| due <= now.clock);
        self.cluster.advance(now.clock);
        self.look_at_lines();
        self.look_after_volumes(now);
        // All pods are looked at for it, and recommendations come in bursts.
        if self.advised && self.reestimated.is_none_or(|at| now.at.duration_since(at) >= REESTIMATE) {
            self.cluster.reestimate();
            (self.advised, self.reestimated) = (false, Some(now.at));
            self.queue.requeue(Helps::LOAD, now.at);
        }
        if due && self.queue.waits_for_load() {
            self.queue.requeue(Helps::LOAD, now.at);
        }
    }

    /// Holds all nodes' targets against the lines of agents, if either changed.
    fn look_at_lines(&mut self) {
        if !self.informers.nodes.is_listed() || !self.agreement.begin() {
            return;
        }
        for node in self.cluster.snapshot().nodes().filter(|node| node.present) {
            self.agreement.set(&node.name, &LinesOf::from(node), self.profiles.all_rules());
        }
    }

    /// When there is something to do by time alone.
    pub fn due(&self, now: Now) -> Option<Instant> {
        let by_load = || {
            let due = self.cluster.next_due()?;
            let left = Duration::try_from(due.duration_since(now.clock)).unwrap_or_default();
            Some(now.at + left)
        };
        let by_load = if self.queue.waits_for_load() { by_load() } else { None };
        let by_advice = self.reestimated.filter(|_| self.advised).map(|at| at + REESTIMATE);
        [self.queue.due(), by_load, by_advice, self.waits.due()].into_iter().flatten().min()
    }

    /// Takes a message in.
    pub fn take(&mut self, message: Message, now: Now) {
        match message {
            Message::Node(event) => {
                let change = self.informers.nodes.apply(logged("nodes", event), now.clock);
                self.take_node(change, now);
            }
            Message::Pod(event) => {
                let change = self.informers.pods.apply(logged("pods", event), now.clock);
                self.take_pod(change, now);
            }
            Message::Measured(measurements) => self.take_measurements(measurements, now),
            Message::Advice(message) => {
                let changed = self.advice.take(message, &mut self.cluster, now.clock);
                self.advised |= changed && self.cluster.is_load_aware();
            }
            Message::Lines(message) => self.agreement.take(message, now.clock),
            Message::Storage(message) => {
                if self.take_storage(message, now) {
                    self.references_changed(now);
                }
            }
            other => {
                if self.take_reference(other, now) {
                    self.references_changed(now);
                }
            }
        }
    }

    fn take_node(&mut self, change: Change<NodeFacts, NodeNote>, now: Now) {
        // Pods are spread over fewer nodes when one goes, which may let some in.
        let mut helps = (!change.is_empty()).then_some(Helps::ANY);
        for (meta, note) in &change.deleted {
            self.foreign -= usize::from(note.foreign);
            self.cluster.remove_node(&meta.key.name);
            self.agreement.remove(&meta.key.name);
            if let Some((heat, _)) = &mut self.heat {
                heat.remove(&meta.key.name);
            }
        }
        let gone = !change.deleted.is_empty();
        self.waits.changed |= gone;
        if let Some((meta, Some(facts))) = change.applied {
            let same = self.set_node(&meta, facts, now);
            // Annotators write on every node all the time: that changes load at most.
            if same && !gone {
                helps = Some(Helps::LOAD);
            }
        }
        if let Some(helps) = helps {
            self.queue.requeue(helps, now.at);
        }
    }

    /// Says whether only its annotations are others than before.
    fn set_node(&mut self, meta: &Meta, mut facts: NodeFacts, now: Now) -> bool {
        self.context.complete(&mut facts);
        self.cluster.set_node(&facts);
        if let Some((heat, rules)) = &mut self.heat {
            let NodeFacts { name, allocatable, labels, annotations, .. } = &facts;
            heat.set(&HeatOf { name, allocatable, labels, annotations }, rules);
        }
        self.agreement.set(&facts.name, &LinesOf::from(&facts), self.profiles.all_rules());
        if let Some(until) = cooling_until(&facts).filter(|until| *until > now.clock) {
            self.cluster.cool(&facts.name, until);
        }
        self.await_moved(&facts);
        let Some(note) = self.informers.nodes.value_mut(&meta.key) else { return false };
        let looks = looks(&facts);
        let same = note.looks.replace(looks) == Some(looks);
        let theirs = facts.annotations.get(publish::POLICY);
        let foreign = theirs.is_some_and(|theirs| self.profiles.is_foreign(theirs));
        let known = std::mem::replace(&mut note.foreign, foreign);
        if foreign && self.foreign == 0 {
            tracing::warn!(
                node = facts.name,
                theirs,
                "annotations of nodes were written by another policy than ours"
            );
        }
        self.foreign = self.foreign + usize::from(foreign) - usize::from(known);
        let before = std::mem::replace(&mut note.cordoned, facts.unschedulable);
        match (before, facts.unschedulable) {
            (false, true) => self.notices.push(("node", facts.name, "cordoned".into())),
            (true, false) => self.notices.push(("node", facts.name, "uncordoned".into())),
            _ => {}
        }
        same
    }

    fn take_pod(&mut self, change: Change<Box<Pod>, PodNote>, now: Now) {
        for (meta, PodNote { placed, .. }) in &change.deleted {
            self.cluster.remove_pod(&meta.uid);
            self.claimants.remove(&meta.key);
            self.queue.remove(&meta.key);
            self.others.remove(&meta.key);
            self.ungate(&meta.key);
            self.count(*placed, None);
            if placed.is_some() {
                self.queue.requeue(Helps::ANY, now.at);
            }
        }
        if let Some((meta, Some(pod))) = change.applied {
            self.set_pod(meta, *pod, now);
        }
    }

    fn set_pod(&mut self, meta: Meta, mut pod: Pod, now: Now) {
        pod.resolve(&self.context);
        let view = self.cluster.set_pod(&pod.facts);
        let placed = (pod.facts.node.is_some() && !pod.facts.phase.is_over()).then_some(pod.facts.priority);
        let note = PodNote { placed, scheduler: self.scheduler(&pod.scheduler) };
        let before = self.informers.pods.value_mut(&meta.key);
        let before = before.and_then(|held| std::mem::replace(held, note).placed);
        self.count(before, placed);
        self.claimants.set(&meta, placed.is_some().then_some(&pod));
        self.others.remove(&meta.key);
        self.ungate(&meta.key);
        if is_free(&pod) && pod.is_gated() {
            self.gated.entry(pod.scheduler.clone()).or_default().insert(meta.key.clone());
        }
        match wants_a_node(&pod).then(|| self.profiles.find(&pod.scheduler)) {
            Some(Some(_)) => self.queue.set(Arc::new(Pending { meta, pod, view })),
            Some(None) => {
                self.queue.remove(&meta.key);
                self.others.insert(meta.key.clone(), (meta, Box::new(pod)));
            }
            None => drop(self.queue.remove(&meta.key)),
        }
        if before.is_some() && placed.is_none() {
            self.queue.requeue(Helps::ANY, now.at);
        } else if placed.is_some() && before.is_none() {
            self.queue.requeue(Helps::POD_ADDED, now.at);
        }
    }

    /// The place of a name among those that pods ask for; the last is for all there is no place left for.
    fn scheduler(&mut self, name: &str) -> u8 {
        let known = self.schedulers.iter().position(|known| known == name);
        let at = known.unwrap_or_else(|| {
            if self.schedulers.len() < usize::from(u8::MAX) {
                self.schedulers.push(name.to_owned());
            }
            self.schedulers.len() - 1
        });
        u8::try_from(at).unwrap_or(u8::MAX)
    }

    /// A pod is gone, or gated no more as far as is known.
    fn ungate(&mut self, pod: &Key) {
        self.gated.retain(|_, pods| !pods.remove(pod) || !pods.is_empty());
    }

    /// A pod's place in the count of priorities on nodes.
    fn count(&mut self, before: Option<i32>, after: Option<i32>) {
        if let Some(priority) = after {
            *self.priorities.entry(priority).or_default() += 1;
        }
        if let Some(priority) = before
            && let Some(count) = self.priorities.get_mut(&priority)
        {
            *count -= 1;
            if *count == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    /// What pods and nodes refer to. Says whether something is there that was not so before.
    fn take_reference(&mut self, message: Message, now: Now) -> bool {
        let Self { informers: i, context, cluster, texts, budgets, budgets_changed, .. } = self;
        match message {
            Message::Namespace(event) => {
                let change = i.namespaces.apply(logged("namespaces", event), now.clock);
                let facts = change.facts();
                facts
                    .map(|namespace: api_cluster::Namespace| cluster.set_namespace(namespace.facts(texts)))
                    .is_some()
            }
            Message::PriorityClass(event) => {
                let change = i.priority_classes.apply(logged("priorityclasses", event), now.clock);
                change.deleted.iter().for_each(|(meta, ())| context.remove_priority_class(&meta.key.name));
                change.facts().map(|class| context.set_priority_class(class)).is_some()
            }
            Message::CsiNode(event) => {
                let change = i.csi_nodes.apply(logged("csinodes", event), now.clock);
                for (meta, ()) in &change.deleted {
                    context.remove_csi_node(&meta.key.name);
                    cluster.set_attach_limits(&meta.key.name, BTreeMap::new());
                }
                let Some(node) = change.facts() else { return false };
                cluster.set_attach_limits(&node.name, node.limits.clone());
                context.set_csi_node(node);
                true
            }
            Message::Budget(event) => {
                let change = i.budgets.apply(logged("poddisruptionbudgets", event), now.clock);
                let mut changed = !change.deleted.is_empty();
                change.deleted.iter().for_each(|(meta, ())| drop(budgets.remove(&meta.key)));
                if let Some((meta, Some(budget))) = change.applied {
                    let before = budgets.insert(meta.key, budget.clone());
                    changed |= before.as_ref() != Some(&budget);
                }
                *budgets_changed |= changed;
                // One that goes or lets more pods go may help whoever waits for room.
                changed
            }
            // Nobody is refused for what services select.
            Message::Service(event) => {
                let change = i.services.apply(logged("services", event), now.clock);
                change.deleted.iter().for_each(|(meta, ())| cluster.remove_service(&meta.key));
                if let Some(service) = change.facts() {
                    cluster.set_service(&service.key, &service.selector);
                }
                false
            }
            _ => false,
        }
    }

    /// Pods that were held may not be any more.
    fn references_changed(&mut self, now: Now) {
        for held in self.queue.held_back() {
            let Pending { meta, pod, .. } = Pending::clone(&held);
            self.set_pod(meta, pod, now);
        }
        self.queue.requeue(Helps::ANY, now.at);
    }

    fn take_measurements(&mut self, measurements: Measurements, now: Now) {
        let measured = match measurements {
            Ok(measured) => measured,
            Err(problem) => {
                tracing::warn!(problem, "no measurements");
                return;
            }
        };
        // Pods first: what they used is taken off their node once they are gone.
        for (key, sample) in measured.pods {
            self.cluster.pod_sample(&key, sample);
        }
        let mut relief = false;
        for (node, sample) in measured.nodes {
            // Nothing would ever be newer than a measurement from the future.
            if sample.at.duration_since(now.clock) > AHEAD {
                tracing::debug!(node, at = %sample.at, "measurement from the future ignored");
                continue;
            }
            self.cluster.sample(&node, sample);
            let crossed = self.heat.as_mut().and_then(|(heat, _)| heat.feel(&node, sample));
            self.notices.extend(crossed.map(|what| ("node", node.clone(), what)));
            let Some(note) = self.informers.nodes.value_mut(&Key::new("", node)) else { continue };
            let used = Metered::ALL.map(|resource| sample.usage.get(resource));
            if note.used.is_some_and(|(at, _)| at >= sample.at) {
                continue;
            }
            let less =
                |(_, before): (Timestamp, [i64; 2])| used.iter().zip(before).any(|(now, then)| *now < then);
            relief |= note.used.is_none_or(less);
            note.used = Some((sample.at, used));
        }
        if relief {
            self.queue.requeue(Helps::LOAD, now.at);
        }
    }

    /// The next action, if there is one; its pod is reserved on its node already.
    pub(super) fn next(&mut self, now: Now) -> Option<Action> {
        if !self.is_ready() {
            return None;
        }
        if let Some(action) = self.volumes_done(now) {
            return Some(action);
        }
        let pod = self.queue.pop(now.at)?;
        let pod = self.resolved(pod);
        // What is recommended may be known since it came.
        let view = self.cluster.advised(&pod.view);
        let view = self.cluster.succeeding(&view);
        let profile = self.profiles.find(&pod.pod.scheduler).unwrap_or(0);
        // Not asked if nobody is less important: it would take long to find out.
        let lowest = self.priorities.first_key_value().map(|(priority, _)| *priority);
        let may_preempt = lowest.is_some_and(|lowest| lowest < pod.view.priority);
        if may_preempt {
            self.tell_budgets();
        }
        let mut decided = self.cluster.decide_by(profile, &view);
        let Some(node) = decided.node().map(|node| node.name.clone()) else {
            let helps = helps(decided.decision());
            if let WhenOverloaded::LeastBad { after } = self.profiles.when_overloaded(profile)
                && helps.load
            {
                // Preemption would be of no use: what is measured does not go with a pod at once.
                let waited = self.queue.waited(&pod.meta.key, now.at);
                if waited.is_some_and(|waited| SignedDuration::try_from(waited).is_ok_and(|w| w >= after))
                    && let Some(found) = decided.least_bad()
                {
                    let decision = decided.decision().clone();
                    let planned = decided.volumes_on(found.node);
                    decided.reserve_anyway(found);
                    let node = self.cluster.snapshot()[found.node].name.clone();
                    self.decisions.keep(
                        &pod.meta.key,
                        &pod.pod.scheduler,
                        &decision,
                        Ok(node.clone()),
                        now.clock,
                    );
                    let remark = Some(least_bad(found, after));
                    if !planned.is_empty() {
                        return Some(self.provide(pod, (node, remark), planned, now));
                    }
                    return Some(Action::Bind { pod, node, remark });
                }
            }
            let text = decided.message();
            let decision = decided.decision().clone();
            self.decisions.keep(&pod.meta.key, &pod.pod.scheduler, &decision, Err(text.clone()), now.clock);
            let plan = if may_preempt { decided.preempt() } else { None };
            let why = self.retellings.why(&pod, text, now);
            let Some(plan) = plan else { return Some(Action::Refuse { pod, why, helps }) };
            let node = self.cluster.snapshot()[plan.node].name.clone();
            // Who is on the way out already is only waited for.
            let victims = plan.victims.iter().filter(|victim| !victim.terminating);
            let victims = victims.map(|v| Meta { key: v.key.clone(), uid: v.uid.clone(), revision: None });
            return Some(Action::Preempt { pod, node, victims: victims.collect(), why, helps });
        };
        let avoided = avoided(&mut decided, &mut self.quiet_until, now);
        let planned = decided.volumes();
        let decision = decided.reserve();
        self.decisions.keep(&pod.meta.key, &pod.pod.scheduler, &decision, Ok(node.clone()), now.clock);
        if let Some(words) = words(&pod, &node, avoided, now) {
            self.notices.push(("scheduler", pod.meta.key.to_string(), words));
        }
        if !planned.is_empty() {
            return Some(self.provide(pod, (node, None), planned, now));
        }
        Some(Action::Bind { pod, node, remark: None })
    }

    /// What became of an action.
    pub(super) fn done(&mut self, outcome: Outcome, now: Now) {
        match outcome {
            // Kept until the watch shows it: older events about it may be under way.
            Outcome::Bound { .. } => {}
            Outcome::Provided { pod, written, failed } => self.provided(&pod, written, failed, now),
            Outcome::Unbound { pod, now: answer } => {
                if let Some(answer) = answer {
                    let (meta, read) = *answer;
                    let change = self.informers.pods.wrote(meta, read);
                    self.take_pod(change, now);
                }
                // Nothing happens if it turned out to be bound.
                self.cluster.unreserve(&pod.meta.uid);
                self.backoff(&pod, now);
            }
            Outcome::Refused { pod, helps } => {
                if self.queue.is_in_flight(&pod.meta.key, &pod.meta.uid) {
                    let profile = self.profiles.find(&pod.pod.scheduler).unwrap_or(0);
                    let patience = match self.profiles.when_overloaded(profile) {
                        WhenOverloaded::LeastBad { after } if helps.load => Duration::try_from(after).ok(),
                        _ => None,
                    };
                    self.queue.unschedulable(&pod.meta.key, helps, patience, now.at);
                }
            }
            Outcome::Untold { pod } => self.backoff(&pod, now),
        }
    }

    fn backoff(&mut self, pod: &Pending, now: Now) {
        if self.queue.is_in_flight(&pod.meta.key, &pod.meta.uid) {
            self.queue.backoff(&pod.meta.key, now.at);
        }
    }
}

fn wants_a_node(pod: &Pod) -> bool {
    is_free(pod) && !pod.is_gated()
}

fn is_free(pod: &Pod) -> bool {
    let facts = &pod.facts;
    facts.node.is_none() && !facts.phase.is_over() && !facts.terminating
}

/// What to say of a decision; nothing of most.
fn words(pod: &Pending, node: &str, avoided: Option<(i64, String)>, now: Now) -> Option<String> {
    let waited = pod.pod.unschedulable.is_some().then(|| match pod.pod.facts.created {
        Some(created) => format!("to {node} after {} s", now.clock.duration_since(created).as_secs()),
        None => format!("to {node} at last"),
    });
    match (waited, avoided) {
        (None, None) => None,
        (Some(waited), None) => Some(waited),
        (None, Some((score, why))) => Some(format!("to {node}, load score {score}; {why}")),
        (Some(waited), Some((score, why))) => Some(format!("{waited}, load score {score}; {why}")),
    }
}

/// What to add to the news that a pod was bound although no node had room.
fn least_bad(found: LeastBad, after: SignedDuration) -> String {
    let by = match found.excess {
        Some(excess) => format!("by least, {}% of it", (excess.nano() + 9_999_999).div_euclid(10_000_000)),
        None => "by how much is not known".to_owned(),
    };
    format!("every node was over its load limits for {} s; this one is over {by}", after.as_secs())
}

/// The load score of the node taken, and which node would be better by requests but for its load, or which one cools.
fn avoided(decided: &mut Decided<'_>, quiet_until: &mut Option<Instant>, now: Now) -> Option<(i64, String)> {
    let by_load = LOAD_RULES.iter().any(|rule| decided.decision().refused[rule.index()] > 0);
    if !by_load || quiet_until.is_some_and(|until| now.at < until) {
        return None;
    }
    *quiet_until = Some(now.at + WORDS_EVERY);
    let report = decided.report();
    let by_requests = |parts: &Parts| Parts { load: None, need: None, ..*parts }.total(&Weights::default());
    let taken = report.nodes.iter().find(|n| Some(n.node) == report.decision.node)?;
    let better = report
        .nodes
        .iter()
        .filter(|n| n.rule.is_some_and(|rule| LOAD_RULES.contains(&rule)))
        .max_by_key(|n| by_requests(&n.parts))
        .filter(|n| by_requests(&n.parts) > by_requests(&taken.parts));
    // It may be a victim's successor.
    let better = better.or_else(|| report.nodes.iter().find(|n| n.rule == Some(Filter::Cooling)))?;
    let why = better.reasons.first()?;
    Some((taken.load_score?.r#final, format!("{} avoided: {why}", better.name)))
}

/// What could help a pod that was refused like this.
fn helps(decision: &Decision) -> Helps {
    let any = |rules: &[Filter]| rules.iter().any(|rule| decision.refused[rule.index()] > 0);
    Helps { load: any(&LOAD_RULES), pods: any(&POD_RULES) }
}

/// The same event; one that tells of trouble goes to the log, too.
fn logged<T>(resource: &'static str, event: Event<T>) -> Event<T> {
    if let Event::Failed(problem) | Event::Forbidden(problem) = &event {
        tracing::warn!(resource, problem, "watch failed, trying again");
    }
    event
}

mod volumes;

use volumes::{Claimants, Waits};

#[cfg(test)]
mod tests;
