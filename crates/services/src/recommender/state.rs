//! What is known of all workloads, and what should be published? Messages go in, objects come out; nothing waits here.

use super::watched::{Made, Message, Own};
use crate::cluster::{Change, Event, Informer};
use crate::sources::metrics_api::Measurements;
use jiff::Timestamp;
use loadline_api::learn::Pod;
use loadline_api::recommendation;
use loadline_core::learn::{Learned, Learner, Options};
use loadline_core::ledger::Uid;
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::load::term::AHEAD;
use loadline_core::object::{Key, Meta};
use loadline_core::view::Owner;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// How many controllers to climb.
const LEVELS: usize = 5;

/// A pod that is there: its identity, its controller, and its workload once that is known.
#[derive(Clone, Debug, Default)]
struct PodNote {
    uid: Option<Uid>,
    controller: Option<Owner>,
    workload: Option<WorkloadRef>,
}

/// An object to write, or to take away.
#[derive(Clone, Debug)]
pub(super) enum Due {
    /// There is none yet, as far as is known.
    Create(Box<Learned>, Vec<u8>),
    Patch(Meta, Box<Learned>, Vec<u8>),
    /// Nobody has seen its workload for long.
    Delete(Meta),
}

impl Due {
    pub fn key(&self) -> Key {
        match self {
            Self::Create(learned, _) | Self::Patch(_, learned, _) => recommendation::key(&learned.workload),
            Self::Delete(meta) => meta.key.clone(),
        }
    }
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    learner: Learner,
    pods: Informer<PodNote>,
    replica_sets: Informer<()>,
    jobs: Informer<()>,
    published: Informer<Option<Meta>>,
    /// Who made which replica set or job; none for those nobody made.
    made: HashMap<WorkloadRef, Option<Owner>>,
    /// Pods whose workload is not known yet.
    lost: BTreeSet<Key>,
    in_flight: BTreeSet<Key>,
    pub measured: Option<Timestamp>,
    pub problem: Option<String>,
    samples: u64,
}

impl State {
    pub fn new(options: &Options) -> Self {
        Self {
            learner: Learner::new(options),
            pods: Informer::new("pods"),
            replica_sets: Informer::new("replicasets"),
            jobs: Informer::new("jobs"),
            published: Informer::new("recommendations"),
            made: HashMap::new(),
            lost: BTreeSet::new(),
            in_flight: BTreeSet::new(),
            measured: None,
            problem: None,
            samples: 0,
        }
    }

    /// Takes one message in.
    pub fn take(&mut self, message: Message, now: Timestamp) {
        match message {
            Message::Pod(event) => self.take_pod(event, now),
            Message::ReplicaSet(event) => {
                let change = self.replica_sets.apply(event, now);
                self.take_made("apps", "ReplicaSet", change);
            }
            Message::Job(event) => {
                let change = self.jobs.apply(event, now);
                self.take_made("batch", "Job", change);
            }
            Message::Recommendation(event) => self.take_own(event, now),
            Message::Measured(measurements) => self.take_samples(measurements, now),
        }
    }

    fn take_pod(&mut self, event: Event<Pod>, now: Timestamp) {
        let change = self.pods.apply(event, now);
        for (meta, note) in change.deleted {
            self.lost.remove(&meta.key);
            if let (Some(uid), Some(workload)) = (note.uid, note.workload) {
                self.learner.gone(&workload, uid);
            }
        }
        let Some((meta, Some(pod))) = change.applied else { return };
        let workload = pod.controller.as_ref().and_then(|owner| self.climb(&meta.key.namespace, owner));
        if workload.is_none() && pod.controller.is_some() {
            self.lost.insert(meta.key.clone());
        }
        if let Some(workload) = &workload {
            for kill in &pod.kills {
                self.learner.oom(workload, &kill.container, kill.at.min(now), kill.memory_bytes);
            }
        }
        if let Some(note) = self.pods.value_mut(&meta.key) {
            *note = PodNote { uid: Some(Uid::new(&meta.uid)), controller: pod.controller, workload };
        }
    }

    fn take_made(&mut self, group: &str, kind: &str, change: Change<Made, ()>) {
        for (meta, ()) in change.deleted {
            self.made.remove(&WorkloadRef { group: group.into(), kind: kind.into(), key: meta.key });
        }
        let Some((_, Some((target, owner)))) = change.applied else { return };
        self.made.insert(target, owner);
        // Whose pods came before them are found now.
        let lost = std::mem::take(&mut self.lost);
        for key in lost {
            let note = self.pods.store().get(&key).and_then(|note| note.controller.clone());
            let found = note.as_ref().and_then(|owner| self.climb(&key.namespace, owner));
            match (found, self.pods.value_mut(&key)) {
                (Some(workload), Some(note)) => note.workload = Some(workload),
                (None, Some(_)) if note.is_some() => drop(self.lost.insert(key)),
                _ => {}
            }
        }
    }

    /// The workload at the top. A replica set or job that is not known yet may be anybody's: that is waited for. Jobs of
    /// nobody run once, and nodes make the pods that stand in for files on them; nothing is learned from either.
    fn climb(&self, namespace: &Arc<str>, owner: &Owner) -> Option<WorkloadRef> {
        let mut at = WorkloadRef::of(namespace, owner);
        for _ in 0..LEVELS {
            match (&*at.group, &*at.kind) {
                ("apps" | "extensions", "ReplicaSet") | ("batch", "Job") => match self.made.get(&at)? {
                    Some(owner) => at = WorkloadRef::of(namespace, owner),
                    None if &*at.kind == "Job" => return None,
                    None => return Some(at),
                },
                ("", "Node") => return None,
                _ => return Some(at),
            }
        }
        None
    }

    fn take_own(&mut self, event: Event<Option<Own>>, now: Timestamp) {
        let change = self.published.apply(event, now);
        let Some((meta, read)) = change.applied else { return };
        if let Some(held) = self.published.value_mut(&meta.key) {
            *held = Some(meta.clone());
        }
        let Some(Some(own)) = read else { return };
        let target = own.recommendation.target;
        // What was learned here since is worth more than what was written.
        if self.learner.recommend(&target, now).is_none()
            && let Err(problem) = self.learner.restore(&target, &own.checkpoint)
        {
            tracing::warn!(workload = %target, %problem, "what was learned cannot be read; learning anew");
        }
        // Whoever wrote it: one that takes over from another leader has nothing to write for that alone.
        self.learner.published(&target, &own.recommendation.containers);
    }

    fn take_samples(&mut self, measurements: Measurements, now: Timestamp) {
        let measured = match measurements {
            Ok(measured) => measured,
            Err(problem) => {
                if self.problem.as_ref() != Some(&problem) {
                    tracing::warn!(problem, "source has no answer");
                }
                self.problem = Some(problem);
                return;
            }
        };
        (self.measured, self.problem) = (Some(now), None);
        for (key, containers) in measured.containers {
            let Some(PodNote { uid: Some(uid), workload: Some(workload), .. }) = self.pods.store().get(&key)
            else {
                continue;
            };
            for (container, sample) in containers {
                if sample.at.duration_since(now) <= AHEAD {
                    self.samples += u64::from(self.learner.observe(workload, *uid, &container, sample));
                }
            }
        }
    }

    /// Has everything been read? Where there is no such kind, nothing was published.
    pub fn is_ready(&self) -> bool {
        let owners = self.replica_sets.is_listed() && (self.jobs.is_listed() || self.jobs.is_denied());
        self.pods.is_listed() && owners && self.published.is_listed()
    }

    /// What keeps recommendations from being read, such as that there is no such kind.
    pub fn trouble(&self) -> Option<&str> {
        self.published.trouble().map(|(what, _)| &**what)
    }

    /// What should be written now.
    pub fn due(&mut self, now: Timestamp) -> Vec<Due> {
        let mut due = Vec::new();
        for workload in self.learner.expire(now) {
            if let Some(meta) = self.object(&recommendation::key(&workload)) {
                due.push(Due::Delete(meta));
            }
        }
        for learned in self.learner.changed(now) {
            let Some(checkpoint) = self.learner.checkpoint(&learned.workload) else { continue };
            let known = self.object(&recommendation::key(&learned.workload));
            let learned = Box::new(learned);
            due.push(match known {
                Some(meta) => Due::Patch(meta, learned, checkpoint),
                None => Due::Create(learned, checkpoint),
            });
        }
        due.retain(|due| !self.in_flight.contains(&due.key()));
        due
    }

    fn object(&self, key: &Key) -> Option<Meta> {
        self.published.store().get(key)?.clone()
    }

    pub fn sent(&mut self, key: Key) {
        self.in_flight.insert(key);
    }

    /// What came of it: what was written is published.
    pub fn done(&mut self, key: &Key, written: Option<&Learned>) {
        self.in_flight.remove(key);
        if let Some(learned) = written {
            self.learner.published(&learned.workload, &learned.advice());
        }
    }

    /// Workloads known, pods whose workload is not, samples taken, bytes used.
    pub fn counts(&self) -> [(&'static str, usize); 4] {
        [
            ("workloads", self.learner.workloads().len()),
            ("pods without workload", self.lost.len()),
            ("samples", usize::try_from(self.samples).unwrap_or(usize::MAX)),
            ("bytes", self.learner.bytes()),
        ]
    }
}

#[cfg(test)]
mod tests;
