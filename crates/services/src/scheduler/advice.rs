//! What is recommended for pods, and who made them? Recommendations are found through who made a pod, in all forms they
//! ever had; pods of one maker are spread.
//!
//! None of this is needed: without the kind, or without leave to read it, pods count with what they request, and are not
//! spread by who made them. A kind that is not there is asked for again, so one that comes later is noticed.

use super::watched::AdviceMessage;
use crate::cluster::{Change, Event, Freshness, Informer};
use jiff::Timestamp;
use loadline_api::owners::Workload;
use loadline_core::cluster::Cluster;
use loadline_core::load::recommend::{Recommendation, WorkloadRef};
use loadline_core::view::siblings::Maker;
use std::sync::Arc;

/// What is remembered of a workload: which one it is, and whether it had a recommendation of its own.
type Note = Option<WorkloadRef>;

/// The kinds that are watched.
#[derive(Debug)]
pub(super) struct Advice {
    /// With the name each is known by in the account.
    recommendations: Informer<Option<Arc<str>>>,
    controllers: Informer<Note>,
    replica_sets: Informer<Note>,
    deployments: Informer<Note>,
    stateful_sets: Informer<Note>,
    jobs: Informer<Note>,
    /// Kinds that could not be read have been told of.
    told: Vec<&'static str>,
}

impl Advice {
    pub fn new() -> Self {
        Self {
            recommendations: Informer::new("recommendations"),
            controllers: Informer::new("replicationcontrollers"),
            replica_sets: Informer::new("replicasets"),
            deployments: Informer::new("deployments"),
            stateful_sets: Informer::new("statefulsets"),
            jobs: Informer::new("jobs"),
            told: Vec::new(),
        }
    }

    /// How current is what is known of each kind? Where there is no such kind as recommendations there is nothing to say.
    pub fn freshness(&self) -> Vec<Freshness<'_>> {
        let advice = Some(self.recommendations.freshness());
        let advice = advice.filter(|of| of.heard.is_some() || self.recommendations.is_denied());
        let makers = [
            self.controllers.freshness(),
            self.replica_sets.freshness(),
            self.deployments.freshness(),
            self.stateful_sets.freshness(),
            self.jobs.freshness(),
        ];
        advice.into_iter().chain(makers).collect()
    }

    /// Is everything known that pods are spread by, or not to be known?
    pub fn is_complete(&self) -> bool {
        [&self.controllers, &self.replica_sets, &self.stateful_sets].into_iter().all(answered)
    }

    /// Takes a message in; says whether what pods are expected to use may be another.
    pub fn take(&mut self, message: AdviceMessage, cluster: &mut Cluster, now: Timestamp) -> bool {
        match message {
            AdviceMessage::Recommendation(event) => {
                let event = self.told("recommendations", event);
                let change = self.recommendations.apply(event, now);
                self.recommended(change, cluster)
            }
            AdviceMessage::ReplicationController(event) => {
                let event = self.told("replicationcontrollers", event);
                controlled(&mut self.controllers, event, cluster, now)
            }
            AdviceMessage::ReplicaSet(event) => {
                let event = self.told("replicasets", event);
                controlled(&mut self.replica_sets, event, cluster, now)
            }
            AdviceMessage::Deployment(event) => {
                let event = self.told("deployments", event);
                controlled(&mut self.deployments, event, cluster, now)
            }
            AdviceMessage::StatefulSet(event) => {
                let event = self.told("statefulsets", event);
                controlled(&mut self.stateful_sets, event, cluster, now)
            }
            AdviceMessage::Job(event) => {
                let event = self.told("jobs", event);
                controlled(&mut self.jobs, event, cluster, now)
            }
        }
    }

    fn recommended(
        &mut self,
        change: Change<Option<Recommendation>, Option<Arc<str>>>,
        cluster: &mut Cluster,
    ) -> bool {
        let mut changed = false;
        for name in change.deleted.iter().filter_map(|(_, name)| name.as_ref()) {
            cluster.forget_recommendation(name);
            changed = true;
        }
        let Some((meta, read)) = change.applied else { return changed };
        let Some(held) = self.recommendations.value_mut(&meta.key) else { return changed };
        match read.flatten() {
            Some(recommendation) => {
                *held = Some(recommendation.name.clone());
                cluster.recommend(recommendation);
                true
            }
            // What cannot be read any more recommends nothing.
            None => held.take().inspect(|name| cluster.forget_recommendation(name)).is_some() || changed,
        }
    }

    /// That something cannot be read is told once.
    fn told<T>(&mut self, resource: &'static str, event: Event<T>) -> Event<T> {
        match &event {
            Event::Failed(problem) | Event::Forbidden(problem) if !self.told.contains(&resource) => {
                self.told.push(resource);
                tracing::info!(resource, problem, "not there or not readable; decisions are made without");
            }
            Event::Listed(_) => self.told.retain(|told| *told != resource),
            _ => {}
        }
        event
    }
}

/// Has everything been read, or can it not be?
pub(super) fn answered<T>(informer: &Informer<T>) -> bool {
    informer.is_denied() || (informer.is_listed() && !informer.is_replacing())
}

/// Who made a workload, what an annotation of its own recommends, and which pods it selects.
fn controlled(
    informer: &mut Informer<Note>,
    event: Event<Workload>,
    cluster: &mut Cluster,
    now: Timestamp,
) -> bool {
    let change = informer.apply(event, now);
    let mut changed = false;
    for target in change.deleted.into_iter().filter_map(|(_, note)| note) {
        cluster.forget_recommendation(&target.to_string());
        if let Some(maker) = Maker::named(&target.group, &target.kind) {
            cluster.remove_workload(maker, &target.key);
        }
        cluster.controlled(target, None);
        changed = true;
    }
    let Some((meta, Some(Workload { target, controller, advice, selects, .. }))) = change.applied else {
        return changed;
    };
    if let Some(note) = informer.value_mut(&meta.key) {
        *note = Some(target.clone());
    }
    if let Some((maker, selector)) = selects {
        cluster.set_workload(maker, &target.key, selector);
    }
    match advice {
        Some(advice) => cluster.recommend(advice),
        None => cluster.forget_recommendation(&target.to_string()),
    }
    cluster.controlled(target, controller);
    true
}
