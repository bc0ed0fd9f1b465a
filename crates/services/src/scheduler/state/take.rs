//! What does a message change? Objects that came, changed or went, and what was measured.

use super::State;
use super::informers::{NodeNote, PodNote, looks};
use crate::cluster::{Change, Event};
use crate::ctx::Now;
use crate::scheduler::counted::{Event as Counts, GATES};
use crate::scheduler::queue::{Helps, Pending};
use crate::scheduler::watched::Message;
use crate::sources::metrics_api::Measurements;
use jiff::Timestamp;
use loadline_api::cluster as api_cluster;
use loadline_api::node::cooling_until;
use loadline_api::pod::Pod;
use loadline_core::load::Metered;
use loadline_core::load::publish;
use loadline_core::load::term::AHEAD;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::agree::About as LinesOf;
use loadline_core::view::NodeFacts;
use std::collections::BTreeMap;
use std::sync::Arc;

impl State {
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
                    self.references_changed(Counts::Storage, now);
                }
            }
            other => {
                if self.take_reference(other, now) {
                    self.references_changed(Counts::Reference, now);
                }
            }
        }
    }

    fn take_node(&mut self, change: Change<NodeFacts, NodeNote>, now: Now) {
        // Pods are spread over fewer nodes when one goes, which may let some in.
        let mut helps = (!change.is_empty()).then_some(Helps::ANY);
        let mut event = if change.deleted.is_empty() { Counts::NodeUpdate } else { Counts::NodeDelete };
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
            if self.cluster.find_node(&facts.name).is_none() {
                event = Counts::NodeAdd;
            }
            let same = self.set_node(&meta, facts, now);
            // Annotators write on every node all the time: that changes load at most.
            if same && !gone {
                helps = Some(Helps::LOAD);
            }
        }
        if let Some(helps) = helps {
            self.queue.requeue_by(event, helps, now.at);
        }
    }

    /// Says whether only its annotations are others than before.
    fn set_node(&mut self, meta: &Meta, mut facts: NodeFacts, now: Now) -> bool {
        self.context.complete(&mut facts);
        self.cluster.set_node(&facts);
        if let Some((heat, rules)) = &mut self.heat {
            heat.set(&facts.name, &LinesOf::from(&facts), rules);
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

    pub(super) fn take_pod(&mut self, change: Change<Box<Pod>, PodNote>, now: Now) {
        for (meta, PodNote { placed, .. }) in &change.deleted {
            let had_room = placed.is_some() || self.room(meta).next().is_some();
            self.cluster.remove_pod(&meta.uid);
            self.claimants.remove(&meta.key);
            self.queue.remove(&meta.key);
            self.others.remove(&meta.key);
            self.ungate(&meta.key);
            self.count(*placed, None);
            if had_room {
                self.queue.requeue(Helps::ANY, now.at);
            }
        }
        if let Some((meta, Some(pod))) = change.applied {
            self.set_pod(&meta, *pod, now);
        }
    }

    pub(super) fn set_pod(&mut self, meta: &Meta, mut pod: Pod, now: Now) {
        pod.resolve(&self.context);
        let kept: Vec<Arc<str>> = self.room(meta).collect();
        let view = self.cluster.set_pod(&pod.facts);
        if pod.facts.node.is_none() {
            self.cluster.waits(&meta.uid, pod.unschedulable.as_deref());
        }
        let on = pod.facts.node.clone();
        let placed = (pod.facts.node.is_some() && !pod.facts.phase.is_over()).then_some(pod.facts.priority);
        let note = PodNote { placed, scheduler: self.scheduler(&pod.scheduler) };
        let before = self.informers.pods.value_mut(&meta.key);
        let before = before.and_then(|held| std::mem::replace(held, note).placed);
        self.count(before, placed);
        self.claimants.set(meta, placed.is_some().then_some(&pod));
        self.others.remove(&meta.key);
        self.ungate(&meta.key);
        if is_free(&pod) && pod.is_gated() {
            self.gated.entry(pod.scheduler.clone()).or_default().insert(meta.key.clone());
            if self.serves(&pod.scheduler) {
                self.queue.keep(GATES, &pod.scheduler, 1);
            }
        }
        match wants_a_node(&pod).then(|| self.profiles.find(&pod.scheduler)) {
            Some(Some(_)) => self.queue.set(Arc::new(Pending { meta: meta.clone(), pod, view })),
            Some(None) => {
                self.queue.remove(&meta.key);
                self.others.insert(meta.key.clone(), (meta.clone(), Box::new(pod)));
            }
            None => drop(self.queue.remove(&meta.key)),
        }
        let is_kept = |node: &Arc<str>| on.as_deref() == Some(&**node) || self.room(meta).any(|n| n == *node);
        if (before.is_some() && placed.is_none()) || !kept.iter().all(is_kept) {
            self.queue.requeue(Helps::ANY, now.at);
        } else if placed.is_some() && before.is_none() {
            self.queue.requeue(Helps::POD_ADDED, now.at);
        }
    }

    /// The nodes on which there is room for a pod without a node: it was reserved there, or is nominated.
    fn room(&self, pod: &Meta) -> impl Iterator<Item = Arc<str>> + use<> {
        let reserved = self.cluster.reserved_on(&pod.uid).cloned();
        let waiting = self.queue.get(&pod.key);
        let other = || self.others.get(&pod.key).map(|(_, pod)| &pod.facts);
        let facts = waiting.as_ref().map(|waiting| &waiting.pod.facts).or_else(other);
        let nominated = facts.and_then(|facts| facts.nominated.as_deref()).map(Arc::from);
        [reserved, nominated].into_iter().flatten()
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
        let Self { gated, queue, profiles, .. } = self;
        gated.retain(|scheduler, pods| {
            if pods.remove(pod) && profiles.find(scheduler).is_some() {
                queue.keep(GATES, scheduler, -1);
            }
            !pods.is_empty()
        });
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
    pub(super) fn references_changed(&mut self, event: Counts, now: Now) {
        for held in self.queue.held_back() {
            let Pending { meta, pod, .. } = Pending::clone(&held);
            self.set_pod(&meta, pod, now);
        }
        self.queue.requeue_by(event, Helps::ANY, now.at);
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
}

fn wants_a_node(pod: &Pod) -> bool {
    is_free(pod) && !pod.is_gated()
}

fn is_free(pod: &Pod) -> bool {
    let facts = &pod.facts;
    facts.node.is_none() && !facts.phase.is_over() && !facts.terminating
}

/// The same event; one that tells of trouble goes to the log, too.
pub(super) fn logged<T>(resource: &'static str, event: Event<T>) -> Event<T> {
    if let Event::Failed(problem) | Event::Forbidden(problem) = &event {
        tracing::warn!(resource, problem, "watch failed, trying again");
    }
    event
}
