//! What is known, and what follows from it? News go in, acts come out; nothing waits here.
//!
//! One [`Cluster`] of `core` has all knowledge and makes all decisions. Around it: which objects there are, whose
//! turn it is, and what is worth telling.

use super::act::{Act, Done};
use super::heat::Heat;
use super::news::{Kind, News, Object};
use super::queue::{Help, Queue};
use super::{COOLING, Pending, SCHEDULERS, Tally};
use crate::cluster::{Key, Meta};
use jiff::Timestamp;
use loadline_api::{self as api, Context};
use loadline_core::cluster::{Cluster, Decided, Options};
use loadline_core::cycle::{Decision, Parts, Rule, Weights};
use loadline_core::load::policy::Rules;
use loadline_core::load::term::AHEAD;
use loadline_core::view::{Budget, Hold, PodFacts, Texts};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::time::Instant;

/// Rules by which load keeps a pod from a node it would otherwise fit on.
const LOAD_RULES: [Rule; 4] = [Rule::Threshold, Rule::UnknownLoad, Rule::Cooling, Rule::Line];
/// Rules other pods can help with by being there.
const COMPANY_RULES: [Rule; 2] = [Rule::Affinity, Rule::Spread];
/// Looking for words about a decision takes longer than the decision; this is how often it may be done.
const WORDS_EVERY: std::time::Duration = std::time::Duration::from_millis(500);

/// The time, as objects have it and as timers have it.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    pub clock: Timestamp,
    pub at: Instant,
}

impl Now {
    pub fn read() -> Self {
        Self { clock: Timestamp::now(), at: Instant::now() }
    }
}

/// What is remembered of every object.
#[derive(Debug)]
struct Known {
    uid: String,
    revision: u64,
    note: Note,
}

/// What is remembered of some.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Note {
    /// Of a pod that takes up room on a node: its priority.
    placed: Option<i32>,
    /// Of a node: is it cordoned?
    cordoned: bool,
}

/// Something worth telling: who, about what, what.
pub type Said = (&'static str, String, String);

#[derive(Debug)]
pub struct Desk {
    cluster: Cluster,
    rules: Rules,
    context: Context,
    texts: Texts,
    known: BTreeMap<(Kind, Key), Known>,
    /// Kinds of which the first list has not come yet.
    missing: Vec<Kind>,
    queue: Queue,
    budgets: BTreeMap<Key, Budget>,
    /// How many pods of which priority are on nodes.
    priorities: BTreeMap<i32, usize>,
    heat: Heat,
    said: Vec<Said>,
    quiet_until: Option<Instant>,
    tally: Tally,
}

impl Desk {
    /// Nothing is known yet. Load is measured against `rules` in any case and counts in decisions if `aware`.
    pub fn new(rules: Rules, aware: bool, now: Now) -> Self {
        let options = Options { rules: aware.then(|| rules.clone()), ..Options::default() };
        Self {
            cluster: Cluster::new(options, now.clock),
            rules,
            context: Context::new(),
            texts: Texts::default(),
            known: BTreeMap::new(),
            missing: Kind::ALL.to_vec(),
            queue: Queue::default(),
            budgets: BTreeMap::new(),
            priorities: BTreeMap::new(),
            heat: Heat::default(),
            said: Vec::new(),
            quiet_until: None,
            tally: Tally::default(),
        }
    }

    /// What is worth telling since this was last asked.
    pub fn said(&mut self) -> Vec<Said> {
        std::mem::take(&mut self.said)
    }

    /// The figures so far.
    pub fn tally(&self) -> Tally {
        Tally {
            pending: self.queue.refused(),
            hot: self.heat.hot(),
            node_seconds: self.heat.node_seconds(),
            peak: self.heat.peak().cloned(),
            ..self.tally.clone()
        }
    }

    /// Time has come this far.
    pub fn advance(&mut self, now: Now) {
        let due = self.cluster.next_due().is_some_and(|due| due <= now.clock);
        self.cluster.advance(now.clock);
        if due && self.queue.waits_for_load() {
            self.queue.help(Help::LOAD, now.at);
        }
    }

    /// When there is something to do by time alone.
    pub fn due(&self, now: Now) -> Option<Instant> {
        let by_load = || {
            let due = self.cluster.next_due()?;
            let left = std::time::Duration::try_from(due.duration_since(now.clock)).unwrap_or_default();
            Some(now.at + left)
        };
        let by_load = if self.queue.waits_for_load() { by_load() } else { None };
        [self.queue.due(), by_load].into_iter().flatten().min()
    }

    /// Takes in what is new.
    pub fn hear(&mut self, news: News, now: Now) {
        match news {
            News::Set(kind, object) => self.set(kind, object, now),
            News::Gone(kind, meta) => self.gone(kind, &meta.key, Some(&meta.uid), now),
            News::All(kind, objects) => {
                let same = self.known.range((kind, Key::default())..).take_while(|((k, _), _)| *k == kind);
                let mut old: BTreeSet<Key> = same.map(|((_, key), _)| key.clone()).collect();
                for object in objects {
                    old.remove(&object.meta.key);
                    self.set(kind, object, now);
                }
                for key in old {
                    self.gone(kind, &key, None, now);
                }
                self.missing.retain(|k| *k != kind);
            }
            News::Figures { nodes, pods } => self.measured(&nodes, &pods, now),
        }
    }

    fn set(&mut self, kind: Kind, object: Object, now: Now) {
        let Object { meta, value } = object;
        let entry = (kind, meta.key.clone());
        let before = self.known.get(&entry);
        // Answers to requests may overtake the watch.
        if before.is_some_and(|k| k.uid == meta.uid && k.revision > meta.revision) {
            return;
        }
        if before.is_some_and(|k| k.uid != meta.uid) {
            self.gone(kind, &meta.key, None, now);
        }
        let before = self.known.get(&entry).map(|k| k.note).unwrap_or_default();
        let (uid, revision) = (meta.uid.clone(), meta.revision);
        let note = match kind {
            Kind::Pod => Note { placed: self.set_pod(meta, &value, before.placed, now), ..before },
            Kind::Node => Note { cordoned: self.set_node(&value, before.cordoned, now), ..before },
            _ => {
                self.set_other(kind, &meta.key, &value, now);
                before
            }
        };
        self.count(before.placed, note.placed);
        self.known.insert(entry, Known { uid, revision, note });
    }

    fn gone(&mut self, kind: Kind, key: &Key, uid: Option<&str>, now: Now) {
        let entry = (kind, key.clone());
        // A successor of the same name may be known already.
        if self.known.get(&entry).is_none_or(|k| uid.is_some_and(|uid| uid != k.uid)) {
            return;
        }
        let Some(known) = self.known.remove(&entry) else { return };
        match kind {
            Kind::Pod => {
                self.cluster.remove_pod(&known.uid);
                self.queue.remove(key);
                self.count(known.note.placed, None);
                if known.note.placed.is_some() {
                    self.queue.help(Help::ANYBODY, now.at);
                }
            }
            Kind::Node => {
                self.cluster.remove_node(&key.name);
                self.heat.remove(&key.name);
                // Pods are spread over fewer nodes now, which may let some in.
                self.queue.help(Help::ANYBODY, now.at);
            }
            Kind::PriorityClass => self.context.remove_priority_class(&key.name),
            Kind::Claim => self.context.remove_claim(&key.namespace, &key.name),
            Kind::Volume => self.context.remove_volume(&key.name),
            Kind::StorageClass => self.context.remove_storage_class(&key.name),
            Kind::CsiNode => self.context.remove_csi_node(&key.name),
            Kind::Budget => {
                self.budgets.remove(key);
                self.cluster.set_budgets(self.budgets.values().cloned().collect());
            }
            Kind::Namespace => {}
        }
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

    /// Says whether the pod takes up room on a node now, and with which priority; `placed` is what was said before.
    fn set_pod(&mut self, meta: Meta, value: &Value, placed: Option<i32>, now: Now) -> Option<i32> {
        let (facts, warnings) = match api::pod::facts(value, &self.context) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "left out a pod");
                return placed;
            }
        };
        for warning in warnings {
            tracing::debug!(%warning, "a pod is odd");
        }
        self.cluster.set_pod(&facts);
        let is_placed = (facts.node.is_some() && !facts.phase.is_over()).then_some(facts.priority);
        if wants_a_node(&facts, value) {
            // Something it refers to may be missing; once that is there, the pod must be read again.
            let held = (!facts.wants.holds.is_empty()).then(|| value.clone());
            self.queue.set(Arc::new(Pending { meta, facts, told: told(value), held }));
        } else {
            self.queue.remove(&meta.key);
        }
        if placed.is_some() && is_placed.is_none() {
            self.queue.help(Help::ANYBODY, now.at);
        } else if is_placed.is_some() && placed.is_none() {
            self.queue.help(Help::COMPANY, now.at);
        }
        is_placed
    }

    /// Says whether the node is cordoned now.
    fn set_node(&mut self, value: &Value, cordoned: bool, now: Now) -> bool {
        let (mut facts, warnings) = match api::node::facts(value) {
            Ok(read) => read,
            Err(error) => {
                tracing::warn!(%error, "left out a node");
                return cordoned;
            }
        };
        for warning in warnings {
            tracing::debug!(%warning, "a node is odd");
        }
        self.context.complete(&mut facts);
        self.cluster.set_node(&facts);
        if let Some(until) = cooling(&facts.annotations).filter(|until| *until > now.clock) {
            self.cluster.cool(&facts.name, until);
        }
        self.heat.set(&facts, &self.rules);
        self.queue.help(Help::ANYBODY, now.at);
        match (cordoned, facts.unschedulable) {
            (false, true) => self.said.push(("node", facts.name, "cordoned".into())),
            (true, false) => self.said.push(("node", facts.name, "uncordoned".into())),
            _ => {}
        }
        facts.unschedulable
    }

    /// What pods and nodes refer to.
    fn set_other(&mut self, kind: Kind, key: &Key, value: &Value, now: Now) {
        let read = match kind {
            Kind::Namespace => api::cluster::namespace_facts(value, &mut self.texts)
                .map(|facts| self.cluster.set_namespace(facts)),
            Kind::PriorityClass => self.context.priority_class(value),
            Kind::Claim => self.context.claim(value),
            Kind::Volume => self.context.volume(value),
            Kind::StorageClass => self.context.storage_class(value),
            Kind::CsiNode => self.context.csi_node(value),
            Kind::Budget => api::cluster::budget(value).map(|(budget, _)| {
                self.budgets.insert(key.clone(), budget);
                self.cluster.set_budgets(self.budgets.values().cloned().collect());
            }),
            Kind::Node | Kind::Pod => Ok(()),
        };
        if let Err(error) = read {
            tracing::warn!(%error, "left out an object");
            return;
        }
        for pod in self.queue.held_back() {
            if let Some(value) = &pod.held {
                self.set_pod(pod.meta.clone(), value, None, now);
            }
        }
        self.queue.help(Help::ANYBODY, now.at);
    }

    fn measured(&mut self, nodes: &[Value], pods: &[Value], now: Now) {
        // Pods first: what they used is taken off their node once they are gone.
        for value in pods {
            match api::metrics::pod(value) {
                Ok((pod, sample)) => self.cluster.pod_sample(&pod, sample),
                Err(error) => tracing::debug!(%error, "left out a measurement"),
            }
        }
        let mut relief = false;
        for value in nodes {
            let (name, sample) = match api::metrics::node(value) {
                Ok(read) => read,
                Err(error) => {
                    tracing::debug!(%error, "left out a measurement");
                    continue;
                }
            };
            // Nothing would ever be newer than a measurement from the future.
            if sample.at.duration_since(now.clock) > AHEAD {
                tracing::debug!(node = name, at = %sample.at, "left out a measurement from the future");
                continue;
            }
            self.cluster.sample(&name, sample);
            let felt = self.heat.feel(&name, sample);
            relief |= felt.relief;
            if let Some(what) = felt.crossed {
                self.said.push(("node", name, what));
            }
        }
        if relief {
            self.queue.help(Help::LOAD, now.at);
        }
    }

    /// The next act, if there is one; its pod is charged to its node already.
    pub fn next(&mut self, now: Now) -> Option<Act> {
        if !self.missing.is_empty() {
            return None;
        }
        let pod = self.queue.next(now.at)?;
        let view = self.cluster.view(&pod.facts);
        let mut decided = self.cluster.decide(&view);
        let Some(node) = decided.node().map(|node| node.name.clone()) else {
            let help = help(decided.decision());
            let why = decided.message();
            // Not asked if nobody is less important: it would take long to find out.
            let lower = self.priorities.first_key_value().is_some_and(|(lowest, _)| *lowest < view.priority);
            let plan = if lower { decided.preempt() } else { None };
            let Some(plan) = plan else { return Some(Act::Refuse { pod, why, help }) };
            let node = self.cluster.snapshot()[plan.node].name.clone();
            // Who is on the way out already is only waited for.
            let victims = plan.victims.iter().filter(|victim| !victim.terminating);
            let victims =
                victims.map(|v| (Key::new(&*v.key.namespace, &*v.key.name), v.uid.clone())).collect();
            return Some(Act::Preempt { pod, node, victims, why, help });
        };
        let avoided = avoided(&mut decided, &mut self.quiet_until, now);
        decided.reserve();
        if let Some(words) = words(&pod, &node, avoided, now) {
            self.said.push(("scheduler", pod.meta.key.to_string(), words));
        }
        self.tally.onto_hot += u64::from(self.heat.is_hot(&node));
        Some(Act::Bind { pod, node })
    }

    /// What became of an act.
    pub fn done(&mut self, done: &Done, now: Now) {
        match done {
            // Held until the watch shows it: older news about it may be under way.
            Done::Bound { .. } => {}
            Done::Unbound { pod, now: answer } => {
                if let Some(answer) = answer {
                    self.set(Kind::Pod, Object::clone(answer), now);
                }
                // Nothing happens if it turned out to be bound.
                self.cluster.unreserve(&pod.meta.uid);
                self.fail(pod, now);
            }
            Done::Refused { pod, help, .. } => {
                if self.queue.holds(&pod.meta.key, &pod.meta.uid) {
                    self.queue.refuse(&pod.meta.key, *help, now.at);
                }
                self.tally.pending_most = self.tally.pending_most.max(self.queue.refused());
            }
            Done::Untold { pod } => self.fail(pod, now),
        }
    }

    fn fail(&mut self, pod: &Pending, now: Now) {
        if self.queue.holds(&pod.meta.key, &pod.meta.uid) {
            self.queue.fail(&pod.meta.key, now.at);
        }
    }
}

/// What to say of a decision; nothing of most.
fn words(pod: &Pending, node: &str, avoided: Option<(i64, String)>, now: Now) -> Option<String> {
    let waited = pod.told.is_some().then(|| match pod.facts.created {
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

/// The load score of the node taken, and which node would be better by requests but for its load, or which one cools.
fn avoided(decided: &mut Decided<'_>, quiet_until: &mut Option<Instant>, now: Now) -> Option<(i64, String)> {
    let by_load = LOAD_RULES.iter().any(|rule| decided.decision().refused[rule.index()] > 0);
    if !by_load || quiet_until.is_some_and(|until| now.at < until) {
        return None;
    }
    *quiet_until = Some(now.at + WORDS_EVERY);
    let report = decided.report();
    let by_requests = |parts: &Parts| Parts { load: None, ..*parts }.total(&Weights::default());
    let taken = report.nodes.iter().find(|n| Some(n.node) == report.decision.node)?;
    let better = report
        .nodes
        .iter()
        .filter(|n| n.rule.is_some_and(|rule| LOAD_RULES.contains(&rule)))
        .max_by_key(|n| by_requests(&n.parts))
        .filter(|n| by_requests(&n.parts) > by_requests(&taken.parts));
    // It may be a victim's successor.
    let better = better.or_else(|| report.nodes.iter().find(|n| n.rule == Some(Rule::Cooling)))?;
    let why = better.reasons.first()?;
    Some((taken.load_score?.r#final, format!("{} avoided: {why}", better.name)))
}

/// What could help a pod that was refused like this.
fn help(decision: &Decision) -> Help {
    let any = |rules: &[Rule]| rules.iter().any(|rule| decision.refused[rule.index()] > 0);
    Help { load: any(&LOAD_RULES), company: any(&COMPANY_RULES) }
}

fn wants_a_node(facts: &PodFacts, value: &Value) -> bool {
    let gated = facts.wants.holds.iter().any(|hold| matches!(hold, Hold::Gate(_)));
    let ours = value["spec"]["schedulerName"].as_str().is_some_and(|name| SCHEDULERS.contains(&name));
    facts.node.is_none() && !facts.phase.is_over() && !facts.terminating && !gated && ours
}

/// Until when a node is to be left alone, as it says; what is no time is nothing.
fn cooling(annotations: &BTreeMap<String, String>) -> Option<Timestamp> {
    annotations.get(COOLING)?.parse().ok()
}

/// Why it has no node, as it was told last.
fn told(value: &Value) -> Option<String> {
    let conditions = value["status"]["conditions"].as_array()?;
    let refused = conditions.iter().find(|c| c["type"] == "PodScheduled" && c["status"] == "False")?;
    refused["message"].as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests;
