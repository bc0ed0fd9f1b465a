//! What is known, and what follows from it? Messages go in, actions come out; nothing waits here.
//!
//! One [`Cluster`] of `core` has all knowledge and makes all decisions. Around it: which objects there are, whose turn it
//! is, and what is worth telling.

mod decide;
mod extend;
mod informers;
mod moved;
mod take;
mod volumes;

use self::decide::with_room;
use self::informers::Informers;
use self::volumes::{Claimants, Waits};
use super::advice::Advice;
use super::agree::Agreement;
use super::counted::{Counted, Event, GATES};
use super::execute::Action;
use super::explain::{About, Decisions, gone};
use super::heat::Heat;
use super::metrics::Attempt;
use super::profiles::Profiles;
use super::queue::{Helps, Pending, Queue};
use super::retell::Retellings;
use crate::cluster::Freshness;
use crate::ctx::Now;
use jiff::Timestamp;
use loadline_api::Context;
use loadline_api::explain::recommendation;
use loadline_api::pod::Pod;
use loadline_api::scheduler::Configuration;
use loadline_core::cluster::{Cluster, Options};
use loadline_core::load::estimate::Estimate;
use loadline_core::load::policy::Rules;
use loadline_core::load::term::Read;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::agree::About as LinesOf;
use loadline_core::rebalance::workload;
use loadline_core::view::{Budget, Texts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often pods on nodes may be estimated anew.
const REESTIMATE: Duration = Duration::from_secs(1);
/// Something worth telling: who, about what, what.
pub(crate) type Notice = (&'static str, String, String);

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
        self.count_gated(-1);
        self.profiles = Profiles::new(configuration);
        self.count_gated(1);
        self.cluster.set_profiles(self.profiles.engine());
        let heat = self.heat.take().map(|(heat, _)| heat).unwrap_or_default();
        self.heat = self.profiles.rules().map(|rules| (heat, rules.clone()));
        if let Some((heat, rules)) = &mut self.heat {
            heat.judge_by(rules, self.cluster.snapshot());
        }
        self.agreement.targets_changed();
        let waiting = self.queue.waiting().into_iter().map(|held| {
            let Pending { meta, pod, .. } = Pending::clone(&held);
            (meta, pod)
        });
        let others = std::mem::take(&mut self.others).into_values().map(|(meta, pod)| (meta, *pod));
        for (meta, pod) in waiting.chain(others).collect::<Vec<_>>() {
            self.set_pod(&meta, pod, now);
        }
        self.queue.requeue_by(Event::Configuration, Helps::ANY, now.at);
    }

    /// Counts all pods that are gated and ours, once more or once less.
    fn count_gated(&mut self, by: i64) {
        let Self { gated, queue, profiles, .. } = self;
        for (scheduler, pods) in gated.iter().filter(|(name, _)| profiles.find(name).is_some()) {
            queue.keep(GATES, scheduler, by * i64::try_from(pods.len()).unwrap_or(i64::MAX));
        }
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

    /// What was counted of pods that wait since this was last asked.
    pub(super) fn counted(&mut self) -> Counted {
        self.queue.counted()
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

    /// So many of the newest decisions.
    pub fn decisions(&self, most: usize) -> Value {
        self.decisions.newest(most)
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
                let decisions = self.decisions.of(key);
                let is_known = !moves.is_empty() || !decisions.is_empty();
                return is_known.then(|| gone(key, decisions, &moves));
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
        let nodes = decided.report().nodes;
        let message = node.is_none().then(|| (decided.message(), decided.make_room(true)));
        let message = message.map(|(text, room)| with_room(text, &room, self.cluster.snapshot()));
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
        self.set_pod(&meta, pod, now);
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

    /// Of when the newest metric is that an annotator wrote on a node; `None` where nobody wrote one.
    pub fn annotated(&mut self) -> Option<Timestamp> {
        let ids: Vec<_> =
            self.cluster.snapshot().nodes().filter(|node| node.present).map(|node| node.id).collect();
        let written = |read: &Read| match read {
            Read::At(at, Ok(_)) => Some(*at),
            _ => None,
        };
        let newest = ids.into_iter().filter_map(|id| {
            let load = self.cluster.load(id)?;
            load.seen.readings.iter().filter_map(written).max()
        });
        newest.max()
    }

    /// How current is what is known of every kind that is watched?
    pub fn freshness(&self) -> Vec<Freshness<'_>> {
        let mut all = self.informers.freshness();
        all.extend(self.advice.freshness());
        all.extend(self.agreement.freshness());
        all
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
}

#[cfg(test)]
mod tests;
