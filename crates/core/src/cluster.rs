//! The one notion of the cluster everybody reads: who is where, what is used, what is on its way.
//!
//! [`Cluster`] folds events in, one by one: nodes, pods, measurements, recommendations, bindings. It decides on
//! what it knows at that moment, and charges a decision before the next: [`Cluster::decide`] holds on to the account
//! until the decision is reserved or dropped, so no two decisions use the same room.
//!
//! Time comes in through [`Cluster::advance`] alone. What expires by time (annotations, samples, reservations, hot
//! values) is looked at again exactly then.

mod awaited;
mod counterfactual;
mod decided;
mod grounds;
mod least_bad;
mod loads;
mod profile;
mod report;
mod rooms;
mod tentative;
mod volumes;
mod what_if;

pub use counterfactual::{Change, Counterfactual};
pub use decided::Decided;
pub use grounds::{Grounds, Refusal};
pub use least_bad::LeastBad;
pub use loads::NodeLoad;
pub use profile::Profile;
pub use report::{NodeReport, PendingPod, Report, Resource as ResourceReport};
pub use rooms::Mark;
pub use tentative::{Keep, Question, Told, Verdict, Wait};

use crate::cycle::{Changes, Input, Memo};
use crate::ledger::{self, Assigned, Ignored, Ledger, PodMetrics, Sample, Taken, Uid};
use crate::load::Load;
use crate::load::admit::AHEAD;
use crate::load::board::Board;
use crate::load::estimate::{Estimate, estimate};
use crate::load::hot::Bindings;
use crate::load::policy::Rules;
use crate::load::recommend::{self, Recommendation, WorkloadRef};
use crate::object::Key;
use crate::select::Selector;
use crate::view::siblings::Maker;
use crate::view::{Budget, Live, NamespaceFacts, NodeFacts, NodeId, Owner, PodFacts, PodView, Snapshot};
use jiff::{SignedDuration, Timestamp};
use profile::Judge;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How often bindings that no hot value counts any more are forgotten.
const PRUNE: SignedDuration = SignedDuration::from_mins(1);

/// What a cluster is asked with.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The load policy and its settings; `None` leaves load out of every decision.
    pub rules: Option<Rules>,
    /// Are measurements of single pods to be used?
    pub pods: PodMetrics,
}

/// Everything known of a cluster. A clone goes its own way: what if?
#[derive(Clone, Debug)]
pub struct Cluster {
    /// By which rules it is asked; at least one.
    judges: Vec<Judge>,
    live: Live,
    ledger: Ledger,
    advice: recommend::Index,
    bindings: Bindings<Uid>,
    /// When they were last looked through.
    pruned: Timestamp,
    /// Were bindings told from outside? Then a hot value written on a node says nothing new.
    told_bindings: bool,
    budgets: Vec<Budget>,
    /// Pods we placed and nobody else has confirmed.
    assumed: FxHashMap<Arc<str>, NodeId>,
    /// Pods another scheduler is placing by our answers.
    tentative: tentative::Tentative,
    /// Moved pods, the successors of which are waited for.
    awaited: Vec<awaited::Awaited>,
    /// Pods on nodes by key, for measurements, which know no uid.
    uids: FxHashMap<Key, Arc<str>>,
    /// Samples from the future, one per node at most, by when they will be believed.
    ahead: BTreeMap<(Timestamp, NodeId), Sample>,
    stale: Vec<NodeId>,
    due: BTreeSet<(Timestamp, NodeId)>,
    changes: Changes,
    now: Timestamp,
    /// As of when the ages of all that is known are right.
    aged: Timestamp,
}

/// What a question rests on, and the memory it may use.
struct Asked<'a> {
    input: Input<'a>,
    memo: &'a mut Memo,
    ledger: &'a Ledger,
    budgets: &'a [Budget],
}

impl Cluster {
    /// An empty cluster at a time.
    #[must_use]
    pub fn new(options: Options, now: Timestamp) -> Self {
        let judge = Judge::new(Profile::by(options.rules));
        let ledger = Ledger::new(ledger::Options {
            settle: judge.rules.settings().settle,
            pods: options.pods,
            ..ledger::Options::default()
        });
        Self {
            judges: vec![judge],
            live: Live::new(),
            ledger,
            advice: recommend::Index::default(),
            bindings: Bindings::new(),
            pruned: now,
            told_bindings: false,
            budgets: Vec::new(),
            assumed: FxHashMap::default(),
            tentative: tentative::Tentative::default(),
            awaited: Vec::new(),
            uids: FxHashMap::default(),
            ahead: BTreeMap::new(),
            stale: Vec::new(),
            due: BTreeSet::new(),
            changes: Changes::default(),
            now,
            aged: now,
        }
    }

    /// What time it is taken to be.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// Time has come this far; it never goes back.
    pub fn advance(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        let expires = self.ledger.next_expiry().is_some_and(|at| at <= self.now);
        self.ledger.advance(self.now);
        if expires {
            self.expire();
        }
        self.expire_tentative();
        self.advance_awaited();
        if self.now.duration_since(self.pruned) >= PRUNE {
            self.pruned = self.now;
            let buckets: Vec<_> = self.judges.iter().flat_map(|judge| &judge.rules.policy().hot).collect();
            self.bindings.prune(self.now, buckets);
        }
        while let Some((at, node)) = self.due.first().copied().filter(|(at, _)| *at <= self.now) {
            self.due.remove(&(at, node));
            self.stale.push(node);
        }
        while let Some((at, node)) = self.ahead.keys().next().copied().filter(|(at, _)| *at <= self.now) {
            if let Some(sample) = self.ahead.remove(&(at, node)) {
                self.ledger.sample(node, sample);
            }
        }
    }

    /// Takes back what we placed and nobody confirmed in time.
    fn expire(&mut self) {
        let lost: Vec<Arc<str>> =
            self.assumed.keys().filter(|uid| self.ledger.place(Uid::new(uid)).is_none()).cloned().collect();
        for uid in lost {
            self.unreserve(&uid);
        }
    }

    /// A node is there, and this is what it is like.
    pub fn set_node(&mut self, facts: &NodeFacts) {
        let is_new = self.live.id(&facts.name).is_none();
        let id = self.live.set_node(facts);
        if is_new {
            // Its number may have been another's.
            self.bindings.clear(id);
        }
        self.ledger.node(id);
        self.reread(id);
        self.touch(id);
    }

    /// A node is gone.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(id) = self.live.remove_node(name) {
            self.ledger.remove_node(id);
            self.tentative.forget_node(id);
            self.ahead.retain(|(_, node), _| *node != id);
            self.touch(id);
        }
    }

    /// What a pod looks like to decisions; it is not counted anywhere.
    pub fn view(&mut self, facts: &PodFacts) -> Arc<PodView> {
        let expected = self.estimate(facts).load;
        Arc::new(self.live.view(facts, expected))
    }

    /// What a pod is expected to use, and why.
    #[must_use]
    pub fn estimate(&self, facts: &PodFacts) -> Estimate {
        let found = self.advice.find(&facts.key.namespace, facts.owner.as_ref(), &facts.labels);
        estimate(&facts.asks, found, Load::ZERO)
    }

    /// A pod is there, as its object says now; gives what it looks like to decisions. Repeating it changes nothing.
    pub fn set_pod(&mut self, facts: &PodFacts) -> Arc<PodView> {
        let expected = self.estimate(facts).load;
        let view = self.live.view(facts, expected);
        let node = facts.node.as_deref().filter(|n| !n.is_empty());
        // We placed it, and this news is older than that.
        if node.is_none() && !view.phase.is_over() && self.assumed.contains_key(&view.uid) {
            return Arc::new(view);
        }
        self.assumed.remove(&view.uid);
        self.forget_volumes(&view.uid);
        let moved = self.live.set_pod(view, node);
        match moved.to {
            Some(node) => {
                self.name(&moved.pod);
                self.arrived(&moved.pod.uid, node);
                self.claim(&moved.pod);
            }
            None => self.unname(&moved.pod),
        }
        if node.is_some() || moved.pod.phase.is_over() {
            self.release(&moved.pod.uid);
        }
        let uid = Uid::new(&moved.pod.uid);
        // One that is deleted before it ever ran will not bring load any more.
        let will_load = !(moved.pod.terminating && moved.pod.started.is_none());
        match moved.to.filter(|_| will_load) {
            Some(node) => {
                let pod = Assigned { node, estimate: moved.pod.estimate, started: moved.pod.started };
                self.ledger.assign(uid, pod);
            }
            None => self.ledger.remove(uid, self.now),
        }
        for node in [moved.from, moved.to].into_iter().flatten() {
            self.touch(node);
        }
        moved.pod
    }

    /// A pod is gone, by uid.
    pub fn remove_pod(&mut self, uid: &str) {
        if let Some(pod) = self.live.place(uid).map(|(_, pod)| pod.clone()) {
            self.unname(&pod);
        }
        self.assumed.remove(uid);
        self.release(uid);
        self.forget_volumes(uid);
        self.ledger.remove(Uid::new(uid), self.now);
        if let Some(node) = self.live.remove_pod(uid) {
            self.touch(node);
        }
    }

    /// What a node used. `None` if there is no such node.
    ///
    /// A sample stamped too far ahead is set aside until its time has come: taken at once, it would make every
    /// right one after it look old.
    pub fn sample(&mut self, node: &str, sample: Sample) -> Option<Taken> {
        let id = self.live.id(node)?;
        self.touch(id);
        if sample.at.duration_since(self.now) > AHEAD {
            // One per node is enough: the first to be believed.
            let known = self.ahead.keys().find(|(_, node)| *node == id).copied();
            if let Ok(believed) = sample.at.checked_sub(AHEAD)
                && known.is_none_or(|(at, _)| believed < at)
            {
                known.map(|key| self.ahead.remove(&key));
                self.ahead.insert((believed, id), sample);
            }
            return Some(Taken::Ignored(Ignored::Ahead));
        }
        Some(self.ledger.sample(id, sample))
    }

    /// What a pod used.
    pub fn pod_sample(&mut self, pod: &Key, sample: Sample) {
        if let Some(uid) = self.uids.get(pod) {
            self.ledger.pod_sample(Uid::new(uid), sample);
        }
    }

    /// A pod was bound to a node, as somebody tells.
    pub fn bound(&mut self, uid: &str, node: &str, at: Timestamp) {
        let first = !std::mem::replace(&mut self.told_bindings, true);
        if let Some(id) = self.live.id(node) {
            self.bindings.bind(id, Uid::new(uid), at, self.now);
            self.touch(id);
        }
        if first {
            self.touch_all();
        }
    }

    /// The uid of a pod that is on a node.
    #[must_use]
    pub fn uid(&self, pod: &Key) -> Option<&Arc<str>> {
        self.uids.get(pod)
    }

    /// A pod that is on a node, and the name of that.
    #[must_use]
    pub fn placed(&self, pod: &Key) -> Option<(Arc<PodView>, Arc<str>)> {
        let (node, view) = self.live.place(self.uids.get(pod)?)?;
        Some((view.clone(), self.live.node(node).name.clone()))
    }

    /// Nothing new goes to a node until then: it was relieved and is to stay so.
    pub fn cool(&mut self, node: &str, until: Timestamp) {
        if let Some(id) = self.live.id(node) {
            self.ledger.cool(id, until);
            self.touch(id);
        }
    }

    /// A recommendation for a workload. Takes effect for pods that are told of afterwards and, once
    /// [`Cluster::reestimate`] is called, for all.
    pub fn recommend(&mut self, recommendation: Recommendation) {
        self.advice.add(recommendation);
    }

    /// A recommendation is gone, by its name; takes effect like a new one.
    pub fn forget_recommendation(&mut self, name: &str) {
        self.advice.remove(name);
    }

    /// Who controls a workload; recommendations are found up that chain.
    pub fn controlled(&mut self, workload: WorkloadRef, by: Option<Owner>) {
        self.advice.controlled(workload, by);
    }

    /// A namespace has these labels.
    pub fn set_namespace(&mut self, facts: NamespaceFacts) {
        self.live.set_namespace(facts);
        self.judges.iter_mut().for_each(|judge| judge.memo.clear());
    }

    /// A service selects pods with all these labels; one without any selects none.
    pub fn set_service(&mut self, key: &Key, labels: &BTreeMap<String, String>) {
        self.live.set_service(key, labels);
    }

    /// A service is gone.
    pub fn remove_service(&mut self, key: &Key) {
        self.live.remove_service(key);
    }

    /// A workload selects its pods like this.
    pub fn set_workload(&mut self, maker: Maker, key: &Key, selector: Selector) {
        self.live.set_workload(maker, key, selector);
    }

    /// A workload is gone.
    pub fn remove_workload(&mut self, maker: Maker, key: &Key) {
        self.live.remove_workload(maker, key);
    }

    /// How many pods may be disrupted; replaces what was said before.
    pub fn set_budgets(&mut self, budgets: Vec<Budget>) {
        self.budgets = budgets;
    }

    /// Works out anew what pods are expected to use, after recommendations changed: those on nodes, and those that others were
    /// evicted for.
    pub fn reestimate(&mut self) {
        let mut changed: Vec<(NodeId, PodView)> = Vec::new();
        for (node, pod) in self.live.placed() {
            let found = self.advice.find(&pod.key.namespace, pod.owner.as_ref(), &pod.labels);
            let new = estimate(&pod.asks, found, Load::ZERO).load;
            if new != pod.estimate {
                changed.push((node, PodView { estimate: new, ..PodView::clone(pod) }));
            }
        }
        changed.sort_by(|(_, a), (_, b)| a.uid.cmp(&b.uid));
        for (node, pod) in changed {
            let uid = Uid::new(&pod.uid);
            let assigned = Assigned { node, estimate: pod.estimate, started: pod.started };
            if self.assumed.contains_key(&pod.uid) {
                self.ledger.unreserve(uid);
                self.ledger.reserve(uid, assigned, self.now);
            } else if self.ledger.place(uid).is_some() {
                self.ledger.assign(uid, assigned);
            }
            let name = self.live.snapshot()[node].name.clone();
            self.live.set_pod(pod, Some(&name));
            self.touch(node);
        }
        // Those that others were evicted for have no place yet, and count where they will go.
        let mut waiting = Vec::new();
        for (_, pod) in self.live.snapshot().nominated() {
            let found = self.advice.find(&pod.key.namespace, pod.owner.as_ref(), &pod.labels);
            let new = estimate(&pod.asks, found, Load::ZERO).load;
            if new != pod.estimate {
                waiting.push(PodView { estimate: new, ..PodView::clone(pod) });
            }
        }
        for pod in waiting {
            self.live.set_pod(pod, None);
        }
    }

    /// The cluster now; a clone of it stays as it is.
    pub fn snapshot(&mut self) -> &Snapshot {
        self.live.snapshot()
    }

    /// What the load rules of the first profile say of every node now.
    pub fn board(&mut self) -> &Board {
        self.refresh();
        &self.judges[0].board
    }

    /// Everything a question about a pod rests on, up to date.
    fn ask(&mut self, profile: usize, pod: &PodView) -> Asked<'_> {
        self.refresh();
        let Self { judges, live, changes, ledger, budgets, .. } = self;
        let judge = &mut judges[profile];
        let exempt = judge.is_exempt(pod);
        let input = Input {
            cluster: live.snapshot(),
            board: judge.profile.rules.is_some().then_some(&judge.board),
            exempt,
            weights: judge.profile.weights,
            changes: Some(&*changes),
        };
        Asked { input, memo: &mut judge.memo, ledger, budgets }
    }

    /// Charges a pod to a node; for [`Decided::reserve`] and [what-if](what_if) only.
    fn reserve(&mut self, pod: &Arc<PodView>, node: NodeId) {
        self.assume_volumes(pod, node);
        self.live.assume(pod, node);
        self.assumed.insert(pod.uid.clone(), node);
        self.name(pod);
        let uid = Uid::new(&pod.uid);
        self.ledger.reserve(uid, Assigned { node, estimate: pod.estimate, started: None }, self.now);
        self.bindings.bind(node, uid, self.now, self.now);
        self.touch(node);
    }

    /// A pod we placed did not get there: the charge is taken back at once. Says whether there was one.
    pub fn unreserve(&mut self, uid: &str) -> bool {
        if self.assumed.remove(uid).is_none() {
            return false;
        }
        self.forget_volumes(uid);
        let id = Uid::new(uid);
        self.ledger.unreserve(id);
        self.bindings.forget(id);
        if let Some(pod) = self.live.place(uid).map(|(_, pod)| pod.clone()) {
            self.unname(&pod);
        }
        if let Some(node) = self.live.remove_pod(uid) {
            self.touch(node);
        }
        true
    }

    /// The node a pod was placed on by a decision nobody has confirmed yet.
    #[must_use]
    pub fn reserved_on(&self, uid: &str) -> Option<&Arc<str>> {
        self.assumed.get(uid).map(|node| &self.live.node(*node).name)
    }

    /// How many pods were placed by decisions nobody has confirmed yet.
    #[must_use]
    pub fn assumed(&self) -> usize {
        self.assumed.len()
    }

    /// When something will change by time alone, such as a reservation that expires.
    #[must_use]
    pub fn next_due(&self) -> Option<Timestamp> {
        let due = self.due.first().map(|(at, _)| *at);
        let ahead = self.ahead.keys().next().map(|(at, _)| *at);
        [due, ahead, self.ledger.next_expiry(), self.tentative.next_end()].into_iter().flatten().min()
    }

    /// A pod that is somewhere can be found by its key.
    fn name(&mut self, pod: &PodView) {
        self.uids.insert(pod.key.clone(), pod.uid.clone());
    }

    /// It cannot any more, unless the key is another pod's by now.
    fn unname(&mut self, pod: &PodView) {
        if self.uids.get(&pod.key) == Some(&pod.uid) {
            self.uids.remove(&pod.key);
        }
    }

    fn touch(&mut self, id: NodeId) {
        self.stale.push(id);
    }

    fn touch_all(&mut self) {
        let width = self.live.snapshot().width();
        self.stale.extend((0..width).map(NodeId::at));
    }
}

#[cfg(test)]
mod tests;
