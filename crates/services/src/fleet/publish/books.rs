//! What was the hub told of each member, and what should it be told next? Nothing waits here.
//!
//! Each member has two objects in the hub, and each of these is written for itself: a score object that somebody else owns
//! does not keep the annotation from being renewed. What fails is tried again after a pause that doubles, with what is known
//! by then.

use super::state::Report;
use super::write::{Problem, Written};
use crate::ctx::Now;
use jiff::Timestamp;
use loadline_core::member::{Due, Rules, Summary, due};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Pauses after failures: the first is no longer than this, and none is longer than that.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(1));

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Object {
    /// The annotation of the `ManagedCluster`.
    Annotation,
    /// The `AddOnPlacementScore`.
    Scores,
}

impl Object {
    pub const ALL: [Self; 2] = [Self::Annotation, Self::Scores];

    pub fn name(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Scores => "scores",
        }
    }
}

/// A write to be made.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub cluster: Arc<str>,
    pub object: Object,
    pub why: Due,
    pub summary: Summary,
    /// Of the score object, if it is known.
    pub uid: Option<Arc<str>>,
}

/// What the hub was told in one object.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub summary: Option<Summary>,
    pub problem: Option<Problem>,
    uid: Option<Arc<str>>,
    /// Is it queued, or under way?
    is_busy: bool,
    failures: u32,
    /// Not before then.
    retry: Option<Instant>,
}

/// One member.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub report: Option<Report>,
    pub annotation: Told,
    pub scores: Told,
}

impl Book {
    pub fn of(&self, object: Object) -> &Told {
        match object {
            Object::Annotation => &self.annotation,
            Object::Scores => &self.scores,
        }
    }

    fn of_mut(&mut self, object: Object) -> &mut Told {
        match object {
            Object::Annotation => &mut self.annotation,
            Object::Scores => &mut self.scores,
        }
    }

    /// The newest summary, unless it is not known.
    pub fn summary(&self) -> Option<&Summary> {
        self.report.as_ref()?.summary.as_ref().ok()
    }

    /// Should this object be written now?
    fn due(&self, object: Object, now: Timestamp, rules: &Rules) -> Option<Due> {
        // Scores of a cluster that is not there would be of nobody.
        if object == Object::Scores && self.annotation.problem.as_ref().is_some_and(Problem::is_missing) {
            return None;
        }
        due(self.of(object).summary.as_ref(), self.summary()?, now, rules)
    }
}

/// What a report was worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Worth {
    /// At least one write.
    Write,
    /// It is not known what there would be to tell.
    Unknown,
    /// Nothing that the hub does not know.
    Nothing,
}

/// All members.
#[derive(Debug)]
pub(super) struct Books {
    members: BTreeMap<Arc<str>, Book>,
    waiting: VecDeque<(Arc<str>, Object)>,
    later: BTreeSet<(Instant, Arc<str>, Object)>,
    rules: Rules,
    first_pause: Duration,
}

impl Books {
    pub fn new<'a>(members: impl Iterator<Item = &'a str>, rules: Rules, every: Duration) -> Self {
        Self {
            members: members.map(|name| (name.into(), Book::default())).collect(),
            waiting: VecDeque::new(),
            later: BTreeSet::new(),
            rules,
            first_pause: every.min(PAUSES.0),
        }
    }

    pub fn members(&self) -> impl Iterator<Item = (&Arc<str>, &Book)> {
        self.members.iter()
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    /// Takes a report in, and queues what it is worth.
    pub fn take(&mut self, report: Report, leads: bool, now: Now) -> Worth {
        let Some((name, _)) = self.members.get_key_value(&*report.cluster) else { return Worth::Unknown };
        let name = name.clone();
        let known = report.summary.is_ok();
        if let Some(book) = self.members.get_mut(&name) {
            book.report = Some(report);
        }
        let queued = leads && self.consider(&name, now);
        match (known, queued) {
            (_, true) => Worth::Write,
            (true, false) if leads => Worth::Nothing,
            _ => Worth::Unknown,
        }
    }

    /// Queues what is to be tried again by now.
    pub fn look(&mut self, leads: bool, now: Now) {
        while let Some(first) = self.later.first().filter(|(at, ..)| *at <= now.at).cloned() {
            self.later.remove(&first);
            let (_, name, object) = first;
            if let Some(book) = self.members.get_mut(&name) {
                book.of_mut(object).retry = None;
            }
            if leads {
                self.consider(&name, now);
            }
        }
    }

    /// When something is to be tried again.
    pub fn next_retry(&self) -> Option<Instant> {
        self.later.first().map(|(at, ..)| *at)
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn consider(&mut self, name: &Arc<str>, now: Now) -> bool {
        let Some(book) = self.members.get_mut(name) else { return false };
        let mut queued = false;
        for object in Object::ALL {
            let told = book.of(object);
            if told.is_busy || told.retry.is_some() || book.due(object, now.clock, &self.rules).is_none() {
                continue;
            }
            book.of_mut(object).is_busy = true;
            self.waiting.push_back((name.clone(), object));
            queued = true;
        }
        queued
    }

    /// The next write, with what is known by now. What is not worth one any more is passed over.
    pub fn next(&mut self, now: Now) -> Option<Job> {
        while let Some((cluster, object)) = self.waiting.pop_front() {
            let Some(book) = self.members.get_mut(&cluster) else { continue };
            let why = book.due(object, now.clock, &self.rules);
            if let (Some(why), Some(summary)) = (why, book.summary().cloned()) {
                let uid = book.of(object).uid.clone();
                return Some(Job { cluster, object, why, summary, uid });
            }
            book.of_mut(object).is_busy = false;
        }
        None
    }

    /// What came of a write.
    pub fn done(&mut self, written: Written, now: Now) {
        let Written { job, outcome } = written;
        let Some(book) = self.members.get_mut(&job.cluster) else { return };
        let told = book.of_mut(job.object);
        told.is_busy = false;
        match outcome {
            Ok(uid) => {
                if told.problem.take().is_some() {
                    tracing::info!(cluster = %job.cluster, object = job.object.name(), "the hub is told again");
                } else if job.why == Due::First {
                    tracing::info!(cluster = %job.cluster, object = job.object.name(), "the hub is told");
                }
                (told.summary, told.uid, told.failures) = (Some(job.summary), uid, 0);
                // Something else may be known by now.
                self.consider(&job.cluster, now);
            }
            Err(problem) => {
                if told.problem.as_ref().map(Problem::to_string) != Some(problem.to_string()) {
                    let object = job.object.name();
                    tracing::warn!(cluster = %job.cluster, object, %problem, "the hub cannot be told");
                }
                let doubled = self.first_pause.saturating_mul(1 << told.failures.min(16));
                let pause = doubled.max(problem.retry_after().unwrap_or_default()).min(PAUSES.1);
                told.failures = told.failures.saturating_add(1);
                // Whatever was there may be another, or be gone.
                (told.uid, told.problem) = (None, Some(problem));
                let at = now.at + pause;
                told.retry = Some(at);
                self.later.insert((at, job.cluster.clone(), job.object));
            }
        }
    }

    /// Somebody else tells the hub: what it knows is not known here.
    pub fn forget(&mut self) {
        for (name, object) in std::mem::take(&mut self.waiting) {
            if let Some(book) = self.members.get_mut(&name) {
                book.of_mut(object).is_busy = false;
            }
        }
        for book in self.members.values_mut() {
            for object in Object::ALL {
                let told = book.of_mut(object);
                (told.summary, told.uid) = (None, None);
            }
        }
    }
}

#[cfg(test)]
mod tests;
