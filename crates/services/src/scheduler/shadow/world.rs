//! What would the cluster be like if our decisions had been carried out?
//!
//! Two worlds are kept: the real one, in which another scheduler places pods, and ours, in which each new pod is where we
//! would have put it. Pods that were there at the beginning are the same in both. What a node uses in our world is what
//! was measured on it, moved with the pods:
//!
//! > use of a node = measured − Σ what pods use that are there in reality alone + Σ what pods use that are there in ours
//! > alone
//!
//! What a pod uses is what was measured of it; one that is not measured yet moves nothing, and is on its way in ours.

use super::super::heat::Heat;
use super::super::watched::Message;
use crate::cluster::Event;
use crate::sources::metrics_api::Measured;
use loadline_api::pod::Pod;
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use loadline_core::load::policy::Rules;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::agree::About;
use loadline_core::view::Snapshot;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// One pod in both worlds.
#[derive(Clone, Debug)]
struct Pair {
    key: Key,
    real: Option<Arc<str>>,
    ours: Option<Arc<str>>,
    /// What it uses, as it was last measured. It goes with the pod: what is measured of pods that nobody has to place, or
    /// that are gone and still in a list of measurements, is not kept.
    used: Option<Load>,
    /// Was it compared? Once is enough.
    compared: bool,
    /// The list in which it was last seen, or after which.
    list: u64,
}

/// How often we would have done the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Agreement {
    /// Pods both sent to the same node.
    pub same: u64,
    /// Pods sent elsewhere.
    pub elsewhere: u64,
    /// Pods that run in reality and wait in our world now.
    pub waiting: usize,
}

/// Both worlds.
#[derive(Debug)]
pub(super) struct Worlds {
    rules: Rules,
    /// The pods of which we have to say something, by uid.
    pairs: HashMap<Arc<str>, Pair>,
    /// Has the first list of pods been read? Those in it stay where they are.
    begun: bool,
    /// Pods that were there before, by uid, and the list in which each was last seen, or after which.
    before: HashMap<Arc<str>, u64>,
    list: u64,
    pub real: Heat,
    agreement: Agreement,
    /// Pods that went elsewhere, and were not told.
    differences: Vec<Difference>,
}

/// A pod that we would have sent elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Difference {
    pub pod: Key,
    pub real: Arc<str>,
    pub ours: Arc<str>,
}

impl Worlds {
    pub fn new(rules: Rules) -> Self {
        Self {
            rules,
            pairs: HashMap::new(),
            begun: false,
            before: HashMap::new(),
            list: 0,
            real: Heat::default(),
            agreement: Agreement::default(),
            differences: Vec::new(),
        }
    }

    /// Both are judged by these rules from now on.
    pub fn configure(&mut self, rules: Rules, nodes: &Snapshot) {
        self.real.judge_by(&rules, nodes);
        self.rules = rules;
    }

    pub fn agreement(&self) -> Agreement {
        let waits = |pair: &&Pair| pair.real.is_some() && pair.ours.is_none();
        Agreement { waiting: self.pairs.values().filter(waits).count(), ..self.agreement }
    }

    pub fn differences(&mut self) -> Vec<Difference> {
        std::mem::take(&mut self.differences)
    }

    /// How many pods are on nodes that are hot, in reality and in ours: pods of either world by node are needed.
    pub fn on_hot(&self, pods_of_ours: &BTreeMap<Arc<str>, usize>, ours: &Heat) -> (usize, usize) {
        let mut real: BTreeMap<&str, usize> = BTreeMap::new();
        for (node, count) in pods_of_ours {
            *real.entry(node).or_default() += count;
        }
        for pair in self.pairs.values() {
            if let Some(node) = &pair.ours {
                let count = real.entry(node).or_default();
                *count = count.saturating_sub(1);
            }
            if let Some(node) = &pair.real {
                *real.entry(node).or_default() += 1;
            }
        }
        let in_real = real.iter().filter(|(node, _)| self.real.is_hot(node)).map(|(_, count)| count).sum();
        let in_ours = pods_of_ours.iter().filter(|(node, _)| ours.is_hot(node)).map(|(_, count)| count).sum();
        (in_real, in_ours)
    }

    /// A message as it would be in our world.
    pub fn translate(&mut self, message: Message, is_ours: impl Fn(&str) -> bool) -> Message {
        match message {
            Message::Pod(Event::Applied(meta, Ok(mut pod))) => {
                self.pod(&meta, &mut pod, is_ours);
                Message::Pod(Event::Applied(meta, Ok(pod)))
            }
            Message::Pod(event) => {
                match &event {
                    Event::ListStarted => self.list += 1,
                    Event::Listed(_) => {
                        self.begun = true;
                        // What the list did not name is gone.
                        self.pairs.retain(|_, pair| pair.list == self.list);
                        self.before.retain(|_, list| *list == self.list);
                    }
                    Event::Deleted(meta) => self.gone(meta),
                    _ => {}
                }
                Message::Pod(event)
            }
            Message::Node(event) => {
                match &event {
                    Event::Applied(_, Ok(facts)) => {
                        self.real.set(&facts.name, &About::from(facts), &self.rules);
                    }
                    Event::Deleted(meta) => self.real.remove(&meta.key.name),
                    _ => {}
                }
                Message::Node(event)
            }
            Message::Measured(Ok(measured)) => Message::Measured(Ok(self.measured(measured))),
            other => other,
        }
    }

    fn pod(&mut self, meta: &Meta, pod: &mut Pod, is_ours: impl Fn(&str) -> bool) {
        let real: Option<Arc<str>> = pod.facts.node.as_deref().filter(|node| !node.is_empty()).map(Arc::from);
        if pod.facts.phase.is_over() {
            self.gone(meta);
            return;
        }
        if real.is_some() && (!self.begun || self.before.contains_key(&meta.uid)) {
            // It was there before we began: the same in both worlds.
            self.before.insert(meta.uid.clone(), self.list);
            return;
        }
        if !is_ours(&pod.scheduler) {
            return;
        }
        let new =
            || Pair { key: meta.key.clone(), real: None, ours: None, used: None, compared: false, list: 0 };
        let pair = self.pairs.entry(meta.uid.clone()).or_insert_with(new);
        (pair.real, pair.list) = (real, self.list);
        // As long as we have not decided it is nowhere, wherever it is in reality.
        pod.facts.node = pair.ours.as_deref().map(str::to_owned);
        self.compare(&meta.uid.clone());
    }

    fn gone(&mut self, meta: &Meta) {
        self.pairs.remove(&meta.uid);
        self.before.remove(&meta.uid);
    }

    /// We would have sent a pod there.
    pub fn decided(&mut self, uid: &Arc<str>, node: &Arc<str>) {
        if let Some(pair) = self.pairs.get_mut(uid) {
            pair.ours = Some(node.clone());
            self.compare(uid);
        }
    }

    fn compare(&mut self, uid: &Arc<str>) {
        let Some(pair) = self.pairs.get_mut(uid).filter(|pair| !pair.compared) else { return };
        let (Some(real), Some(ours)) = (&pair.real, &pair.ours) else { return };
        pair.compared = true;
        if real == ours {
            self.agreement.same += 1;
        } else {
            self.agreement.elsewhere += 1;
            self.differences.push(Difference {
                pod: pair.key.clone(),
                real: real.clone(),
                ours: ours.clone(),
            });
        }
    }

    /// What is measured, moved with the pods.
    fn measured(&mut self, measured: Measured) -> Measured {
        let used: HashMap<&Key, Load> =
            measured.pods.iter().map(|(pod, sample)| (pod, sample.usage)).collect();
        // One that is nowhere in reality uses nothing: what bears its name is somebody before it.
        for pair in self.pairs.values_mut().filter(|pair| pair.real.is_some()) {
            pair.used = used.get(&pair.key).copied().or(pair.used);
        }
        let mut moved: HashMap<&str, Load> = HashMap::new();
        for pair in self.pairs.values().filter(|pair| pair.real != pair.ours) {
            // One that is nowhere in ours stays to be placed.
            let (Some(real), Some(used)) = (&pair.real, pair.used) else { continue };
            let from = moved.entry(real).or_insert(Load::ZERO);
            *from = from.minus(used);
            if let Some(ours) = &pair.ours {
                let to = moved.entry(ours).or_insert(Load::ZERO);
                *to = to.plus(used);
            }
        }
        let mut nodes = Vec::with_capacity(measured.nodes.len());
        for (name, sample) in measured.nodes {
            self.real.feel(&name, sample);
            let usage = match moved.get(&*name) {
                Some(more) => sample.usage.plus(*more).max(Load::ZERO),
                None => sample.usage,
            };
            nodes.push((name, Sample { usage, ..sample }));
        }
        Measured { nodes, ..measured }
    }
}

#[cfg(test)]
mod tests;
