//! How is a plan carried out? Each step with its own result, and what came of it is what is remembered.

use super::Metrics;
use super::agree::Agreement;
use super::explain::{Look, Looked};
use super::host::{self, Ask, Host, Located, Whole};
use super::journal::Journal;
use super::state::{self, PodObject, State};
use super::tell::{Teller, measured};
use super::watched::{Node, Nodes, Taint};
use crate::cluster::resource::NODES;
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Failure, Writer};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::node::COOLING;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::audit::{Audit, tuned};
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::metric::cpu::{CPU, QUOTA};
use loadline_core::qos::policy::Policy;
use loadline_core::qos::taint::{CONDITION, Closed, KEY};
use loadline_core::qos::{self, NodeSnapshot, Options, Plan, Reply, Results, Throttled, Victim};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// How often other pods are looked for in one cycle because somebody may not go.
const PLANS: usize = 3;
/// How often the node is written while others change it, too.
const MARKS: usize = 3;

/// How many of the last acts are learned from.
const SHORTFALLS: usize = 16;

/// What carrying out takes.
pub(super) struct Agent {
    /// Waits for no answer longer than a cycle can.
    pub writer: Writer,
    pub host: Arc<dyn Host>,
    pub teller: Teller,
    pub metrics: Metrics,
    pub every: Duration,
    /// How to plan.
    pub planning: Options,
    /// Without one, nothing outlives the agent.
    pub journal: Option<Journal>,
    /// For how many more cycles whatever is held to less than it was promised counts as taken by an earlier agent.
    pub adopting: u32,
    /// What the last cycle knew, for whoever asks.
    pub looked: Looked,
    /// Is what is taken beyond the gap adapted to what acts released?
    pub tune: bool,
    /// Does a scheduler fill what is emptied here?
    pub agreement: Agreement,
    /// Nodes that could not be marked when they had to be.
    pub unmarked: BTreeSet<Arc<str>>,
    /// Why the last quota that was to be written was not, if it was not.
    pub failure: Option<String>,
}

impl Agent {
    /// One look at every node, and what follows from it.
    pub async fn cycle(&mut self, state: &mut State, now: Timestamp) {
        let (policy, is_new) = state.policy();
        if is_new {
            // It is about rules: whoever looks after many nodes says it on one of them.
            let nodes = state.nodes();
            let on = nodes.first().map(|(meta, _)| meta);
            for warning in policy.warnings() {
                self.teller.warn_of_rules(warning, on, now);
            }
        }
        let below = self.agreement.look(state, &policy, &self.teller, now);
        self.metrics.lines_disagree.set(i64::try_from(below).unwrap_or(i64::MAX));
        // What is looked for may have been taken by rules that are gone.
        let due = if self.adopting > 0 { state.nodes() } else { state.due() };
        if due.is_empty() {
            self.looked.forget();
            self.metrics.rules_in_error.set(0);
            return;
        }
        self.unmarked.retain(|name| due.iter().any(|(meta, _)| meta.key.name == *name));
        let mut pods = state.pods_by_node();
        let usage = {
            let here = due.iter().filter_map(|(meta, _)| pods.get(&*meta.key.name)).flatten();
            let here: Vec<&qos::Pod> = here.map(|(_, pod)| &pod.pod).collect();
            self.host.measure(&Ask { now, metrics: &policy.metrics(), pods: &here }).await
        };
        for (meta, node) in due {
            let pods = pods.remove(&*meta.key.name).unwrap_or_default();
            let before = std::mem::take(&mut state.memory_mut(&meta.key.name).state);
            let mut snapshot = state::snapshot(&node, &pods, &usage, before, self.options(now));
            self.adopt(&mut snapshot);
            let target = Target { meta, node, pods };
            let marked = self.protect(&target, &policy, snapshot, state).await;
            if let Some((meta, read)) = marked {
                state.wrote_node(meta, read);
            }
        }
        self.metrics.rules_in_error.set(i64::try_from(state.rules_in_error()).unwrap_or(i64::MAX));
        self.metrics.cycles.inc();
    }

    fn options(&self, now: Timestamp) -> (Timestamp, Options) {
        let interval_seconds = i64::try_from(self.every.as_secs()).unwrap_or(i64::MAX).max(1);
        (now, Options { interval_seconds, ..self.planning.clone() })
    }

    /// What an agent took whose journal is lost is looked for. A preview would only leave it, so the look after it is still due. An agent of
    /// many nodes keeps no journal, and has none to lose.
    fn adopt(&mut self, snapshot: &mut NodeSnapshot) {
        if self.adopting == 0 || snapshot.node.preview || snapshot.options.dry_run {
            return;
        }
        self.adopting -= 1;
        for found in qos::adopt(&snapshot.pods) {
            let is_known = |known: &Throttled| known.pod == found.pod && known.container == found.container;
            if !snapshot.state.throttled.iter().any(is_known) {
                tracing::warn!(pod = %found.pod, container = %found.container, "container is held to less than it was promised, giving it back");
                snapshot.state.throttled.push(found);
            }
        }
    }

    /// One cycle of one node; the node as it is after it was marked, if it was.
    async fn protect(
        &mut self,
        target: &Target,
        policy: &Arc<Policy>,
        snapshot: NodeSnapshot,
        state: &mut State,
    ) -> Marked {
        let memory = state.memory_mut(&target.meta.key.name);
        self.measure_acts(policy, &snapshot, &mut memory.audit);
        let mut snapshot = Arc::new(snapshot);
        let known = snapshot.clone();
        let first = qos::plan(policy, &snapshot);
        let acts = !first.steps.writes.is_empty() || !first.steps.victims.is_empty();
        let may_act = !acts || self.note(&first.settle(&Results::unknown(&first)), snapshot.now);
        let mut results = Results::default();
        if may_act {
            // First what needs nobody else: it goes on while the API server is away.
            self.write_quotas(target, &first, &snapshot, &mut results).await;
        } else {
            let writes = first.steps.writes.iter();
            results.unwritten = writes.map(|write| (write.pod.clone(), write.container.clone())).collect();
        }
        results.reclaimed = self.reclaim(target, &first, &snapshot).await;
        // Then the mark: who takes the place of a victim comes at once. Nobody is sent away while it cannot be made, or the victim would
        // come straight back.
        let marked = if first.closed.unchanged {
            Ok(None)
        } else {
            self.close(target, &first.closed, snapshot.now).await
        };
        self.note_mark(target, &marked, !first.steps.victims.is_empty());
        let may_evict = may_act && marked.is_ok();
        let (mut last, mut evicted) = (first.clone(), Vec::new());
        for attempt in 1..=PLANS {
            if !may_evict {
                break;
            }
            let answered = self.evict(target, &last, &snapshot, &mut results.replies).await;
            let granted =
                |one: &&Victim| results.replies.get(&one.pod).is_some_and(|reply| reply.is_granted());
            evicted.extend(last.steps.victims.iter().filter(granted).cloned());
            let all_go = results.replies.values().all(|reply| reply.is_granted() || reply.is_gone());
            if all_go || !answered || attempt == PLANS {
                break;
            }
            // From where this cycle began, but knowing who went and who may not.
            Arc::make_mut(&mut snapshot).state.evictions = last.settle(&results).evictions;
            let again = qos::plan(policy, &snapshot);
            // Who goes instead is written down before being asked, as who was to go at first.
            let asked = again.settle(&Results::unknown(&again));
            let mut before = first.settle(&results);
            (before.evictions, before.leaving) = (asked.evictions, asked.leaving);
            if !again.steps.victims.is_empty() && !self.note(&before, snapshot.now) {
                break;
            }
            last = again;
        }
        let mut after = first.settle(&results);
        let ended = last.settle(&results);
        (after.evictions, after.leaving) = (ended.evictions, ended.leaving);
        self.note(&after, snapshot.now);
        let memory = state.memory_mut(&target.meta.key.name);
        self.teller.events(target, (&first, &last), &results, &mut memory.blocked, snapshot.now);
        self.teller.compared(target, &first);
        memory.doubts.look(target, &first, &self.teller, snapshot.now);
        if (acts && may_act) || !results.reclaimed.is_empty() {
            // What was really done: the quotas of the first plan, and who went by any of them.
            let replies = evicted.iter().map(|one| (one.pod.clone(), Reply::Granted)).collect();
            let mut done = first;
            done.steps.victims = evicted;
            let results = Results { replies, ..results };
            Arc::make_mut(&mut memory.audit).note(policy.catalogue(), &snapshot, &done, &results);
        }
        memory.state = after;
        let audit = memory.audit.clone();
        self.looked.keep(Look { policy: policy.clone(), snapshot: known, audit });
        marked.unwrap_or_default()
    }

    /// Remembers whether a node could be marked, and tells when that changes.
    fn note_mark(&mut self, target: &Target, marked: &Result<Marked, Failure>, waits: bool) {
        let key = &target.meta.key;
        match marked {
            Err(error) => {
                if self.unmarked.insert(key.name.clone()) {
                    tracing::warn!(node = %key, %error, waits, "node not marked: nobody is evicted until it is");
                }
            }
            Ok(_) => {
                if self.unmarked.remove(&key.name) {
                    tracing::info!(node = %key, "node can be marked again");
                }
            }
        }
        self.metrics.unmarked_nodes.set(i64::try_from(self.unmarked.len()).unwrap_or(i64::MAX));
    }

    /// What earlier acts released is measured, told, and learned from if wanted.
    fn measure_acts(&mut self, policy: &Policy, snapshot: &NodeSnapshot, audit: &mut Arc<Audit>) {
        if audit.open().len() == 0 {
            return;
        }
        let audit = Arc::make_mut(audit);
        let closed = audit.measure(policy.catalogue(), snapshot);
        for one in &closed {
            measured(one);
        }
        self.metrics.releases(audit);
        if self.tune && !closed.is_empty() {
            let excess = tuned(self.planning.excess, &audit.shortfalls(CPU, SHORTFALLS));
            if excess != self.planning.excess {
                tracing::info!(excess, before = self.planning.excess, "excess adapted to what acts released");
                self.planning.excess = excess;
            }
        }
    }

    /// Writes down what the next agent has to know. Says whether that was possible. A preview does nothing that anybody would have to know,
    /// and leaves the journal to who comes next.
    fn note(&mut self, state: &qos::State, now: Timestamp) -> bool {
        let Some(journal) = self.journal.as_mut().filter(|_| !self.planning.dry_run) else { return true };
        match journal.keep(state, self.adopting, now) {
            Ok(()) => {
                self.metrics.journal_broken.set(0);
                true
            }
            Err(error) => {
                if self.metrics.journal_broken.set(1) == 0 {
                    tracing::error!(%error, "journal not written: nothing is done until it is");
                }
                false
            }
        }
    }

    async fn write_quotas(
        &mut self,
        target: &Target,
        plan: &Plan,
        snapshot: &NodeSnapshot,
        results: &mut Results,
    ) {
        for write in &plan.steps.writes {
            let written = match located(snapshot, &write.pod, &write.container) {
                // One that does not answer is waited for once in a cycle.
                Some(_) if !results.unsure.is_empty() => {
                    Err(host::Error::Unwritten("nobody answered before".to_owned()))
                }
                // Nothing here turns another; a quota of CPU in its place would be somebody else's.
                Some(_) if write.knob != QUOTA.knob => {
                    Err(host::Error::Unwritten(format!("there is no knob {:?} here", write.knob)))
                }
                Some((pod, container)) => {
                    let of = Located { node: &target.meta.key.name, pod, container };
                    self.host.set_quota(&of, write.quota).await
                }
                None => Err(host::Error::Unwritten("the pod is gone".to_owned())),
            };
            let key = (write.pod.clone(), write.container.clone());
            match &written {
                Ok(()) => {
                    self.failure = None;
                    self.teller.wrote(target, plan, snapshot, write);
                }
                Err(error) => {
                    // Why the first of them was not says more than that nobody was asked after it.
                    if results.unsure.is_empty() {
                        self.failure = Some(error.to_string());
                    }
                    self.metrics.failed_writes.inc();
                    tracing::warn!(pod = %write.pod, container = %write.container, %error, "quota not written");
                    match error {
                        host::Error::Unwritten(_) => results.unwritten.insert(key),
                        host::Error::Unsure(_) => results.unsure.insert(key),
                    };
                }
            }
        }
    }

    /// Asks for page cache back. Nothing of it has to be remembered: what is read again is there again.
    /// Says of whom.
    async fn reclaim(&self, target: &Target, plan: &Plan, snapshot: &NodeSnapshot) -> BTreeSet<Key> {
        let mut asked = BTreeSet::new();
        for one in &plan.steps.reclaims {
            let Some(pod) = snapshot.pods.iter().find(|pod| pod.key == one.pod) else { continue };
            let of = Whole { node: &target.meta.key.name, pod };
            match self.host.reclaim(&of, one.bytes).await {
                Ok(came) => {
                    asked.insert(one.pod.clone());
                    self.teller.reclaimed(target, plan, snapshot, (one, came));
                }
                Err(error) => {
                    self.metrics.failed_reclaims.inc();
                    tracing::warn!(pod = %one.pod, bytes = one.bytes, %error, "page cache not asked back");
                }
            }
        }
        asked
    }

    /// Asks the victims of a plan to go, and notes what was replied. Says whether the API server answered: who was not
    /// asked, or nobody knows about, is asked in the next cycle.
    async fn evict(
        &self,
        target: &Target,
        plan: &Plan,
        snapshot: &NodeSnapshot,
        replies: &mut BTreeMap<Key, Reply>,
    ) -> bool {
        replies.clear();
        for victim in &plan.steps.victims {
            let Some(reply) = self.ask(victim).await else { return false };
            if reply.is_granted() {
                self.metrics.evicted.inc();
                self.teller.evicted(target, plan, victim, snapshot);
            }
            replies.insert(victim.pod.clone(), reply);
        }
        true
    }

    /// What is replied when a pod is to go; none if nothing is.
    pub(super) async fn ask(&self, victim: &Victim) -> Option<Reply> {
        let pod = Meta { key: victim.pod.clone(), uid: victim.uid.clone(), revision: None };
        match self.writer.evict(&pod, Some(victim.grace_seconds)).await {
            Ok(()) => Some(Reply::Granted),
            Err(error) => {
                tracing::info!(pod = %victim.pod, %error, "pod not evicted");
                reply(&error)
            }
        }
    }

    /// Gives everything back, at once, and takes the marks off the nodes: this agent ends, and none may come after it. It is given back as
    /// rules that are gone would give it back, so what somebody else has changed stays. While pods are not known, whatever was
    /// taken stays with its journal: the next agent finds both.
    pub async fn restore(&mut self, state: &mut State, now: Timestamp) {
        if !state.knows_pods() && (state.remembers() || self.adopting > 0) {
            tracing::warn!("pods are not known yet: what was taken from them is left to the next agent");
            return;
        }
        let mut pods = state.pods_by_node();
        // A preview changes nothing, not even back.
        let nodes: Vec<_> = state.nodes().into_iter().filter(|(_, node)| !node.view.preview).collect();
        let usage = {
            let here = nodes.iter().filter_map(|(meta, _)| pods.get(&*meta.key.name)).flatten();
            let here: Vec<&qos::Pod> = here.map(|(_, pod)| &pod.pod).collect();
            self.host.measure(&Ask { now, metrics: &[], pods: &here }).await
        };
        let no_rules = Policy::new(Catalogue::default(), &[], Vec::new(), &[]);
        for (meta, node) in nodes {
            let target = Target { pods: pods.remove(&*meta.key.name).unwrap_or_default(), meta, node };
            let mut before = std::mem::take(&mut state.memory_mut(&target.meta.key.name).state);
            before.rules.clear();
            let mut snapshot = state::snapshot(&target.node, &target.pods, &usage, before, self.options(now));
            self.adopt(&mut snapshot);
            let plan = qos::plan(&no_rules, &snapshot);
            for warning in &plan.warnings {
                tracing::warn!(warning, "not given back");
            }
            let mut results = Results::default();
            self.write_quotas(&target, &plan, &snapshot, &mut results).await;
            let after = plan.settle(&results);
            self.note(&after, now);
            state.memory_mut(&target.meta.key.name).state = after;
            if target.node.is_marked() {
                let open = Closed {
                    present: false,
                    taints: Vec::new(),
                    message: "the agent ended".to_owned(),
                    until: None,
                    cools_until: None,
                    unchanged: false,
                };
                if let Err(error) = self.close(&target, &open, now).await {
                    tracing::warn!(node = %target.meta.key, %error, "node not opened");
                }
            }
        }
    }

    /// Makes the node say that it has too much, or not any more. The node as it is then, if it was written.
    async fn close(&self, target: &Target, closed: &Closed, now: Timestamp) -> Result<Marked, Failure> {
        // A taint that never came may have left its condition behind, which is written before it.
        let left = !closed.present && target.node.overloaded;
        let changed = !self.is_as_it_says(&target.node, closed) || left;
        let mark = closed.cools_until.map(whole);
        if !changed && target.node.cooling == mark {
            return Ok(None);
        }
        let marked = self.mark(target, closed, changed, mark.as_deref(), now).await?;
        if changed {
            self.teller.closed(target, closed);
        }
        Ok(marked)
    }

    /// Is our taint there if it is to be, with the effect it is to have, and not otherwise?
    fn is_as_it_says(&self, node: &Node, closed: &Closed) -> bool {
        if closed.present {
            node.is_tainted_with(&self.planning.taint.to_string())
        } else {
            !node.is_tainted()
        }
    }

    async fn mark(
        &self,
        target: &Target,
        closed: &Closed,
        changed: bool,
        mark: Option<&str>,
        now: Timestamp,
    ) -> Result<Marked, Failure> {
        let key = &target.meta.key;
        if changed {
            // The taint comes last: while it is not as it should be, all of this is done again.
            let condition = json!({
                "type": CONDITION, "status": if closed.present { "True" } else { "False" },
                "reason": closed.reason(), "message": closed.message,
                "lastHeartbeatTime": whole(now), "lastTransitionTime": whole(now),
            });
            let patch = json!({"status": {"conditions": [condition]}});
            self.writer.patch(NODES.status(), key, Patch::Strategic, &patch).await?;
        }
        // Others' taints stay as they are, also those that come meanwhile.
        for attempt in 1.. {
            let (meta, read) = self.writer.get::<Nodes>(key).await?;
            let Ok(node) = read else { return Ok(Some((meta, read))) };
            let revision = meta.revision.map(|revision| revision.to_string());
            let mut patch =
                json!({"metadata": {"resourceVersion": revision, "annotations": {COOLING: mark}}});
            if !self.is_as_it_says(&node, closed) {
                let effect = closed.present.then(|| self.planning.taint.to_string());
                patch["spec"] = json!({"taints": taints(node.taints, effect)});
            }
            match self.writer.patch(NODES.whole(), key, Patch::Merge, &patch).await {
                Ok(written) => return Ok(written.read::<Nodes>()),
                Err(error) if error.is_conflict() && attempt < MARKS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A node as the answer to a write of ours shows it; none if there was none.
type Marked = Option<(Meta, Result<Node, Error>)>;

/// A node that is looked after, and the pods on it.
pub(super) struct Target {
    pub meta: Meta,
    pub node: Arc<Node>,
    pub pods: Vec<PodObject>,
}

/// The taints of a node, with ours of that effect or without it.
fn taints(mut taints: Vec<Taint>, effect: Option<String>) -> Vec<Taint> {
    taints.retain(|taint| taint.key != KEY);
    taints.extend(effect.map(|effect| Taint { key: KEY.into(), effect, value: None, time_added: None }));
    taints
}

/// The container of a pod.
fn located<'s>(
    snapshot: &'s NodeSnapshot,
    pod: &Key,
    container: &str,
) -> Option<(&'s qos::Pod, &'s qos::Container)> {
    let pod = snapshot.pods.iter().find(|one| one.key == *pod)?;
    Some((pod, pod.containers.iter().find(|one| &*one.name == container)?))
}

/// What the answer to an eviction means; none if there was none.
fn reply(failure: &Failure) -> Option<Reply> {
    Some(match failure.cause {
        Cause::NotFound => Reply::Gone,
        // The uid is another one.
        Cause::Conflict | Cause::AlreadyExists => Reply::Replaced,
        Cause::Budget => Reply::Refused,
        Cause::Forbidden | Cause::Unauthorized => Reply::Failed(403),
        Cause::Server { code, .. } | Cause::Rejected { code } => Reply::Failed(code),
        // A server that has too much to do says nothing about the pod.
        Cause::Unreachable | Cause::Timeout | Cause::NotLeading | Cause::TooManyRequests { .. } => {
            return None;
        }
        _ => Reply::Failed(500),
    })
}

/// In whole seconds, as the API server keeps times.
fn whole(at: Timestamp) -> String {
    loadline_api::time::text(at)
}
