//! What is known of the fleet, and what is to be written next? Messages go in, jobs come out; nothing waits here.
//!
//! While a job of a placement is under way, its slices count as if they were written already, so that others see it when they
//! are decided; what the watch tells of them meanwhile is only kept. When it is over, what there really is counts again:
//! where that is not what was meant, the placement is decided anew, after a pause if a write failed.

use super::Subject;
use super::job::{Done, Job};
use super::metrics::{Metrics, Timed};
use super::watched::{Message, Wish};
use crate::cluster::{Change, Informer};
use jiff::Timestamp;
use loadline_api::ocm::cel::CelJudge;
use loadline_core::object::{Key, Meta};
use loadline_core::place::{Fleet, Options, Report, Slice};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const FIRST_RETRY: Duration = Duration::from_millis(20);
const LAST_RETRY: Duration = Duration::from_mins(2);
/// Placements decided at a time.
const AT_ONCE: usize = 32;

/// A slice that is there.
#[derive(Debug)]
struct Published {
    meta: Meta,
    slice: Arc<Slice>,
}

/// A job that failed, and when it may be tried again.
#[derive(Clone, Copy, Debug)]
struct Retry {
    failures: u32,
    at: Instant,
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    fleet: Fleet,
    judge: CelJudge,
    clusters: Informer<()>,
    sets: Informer<()>,
    bindings: Informer<()>,
    scores: Informer<()>,
    placements: Informer<Option<(Meta, Wish)>>,
    slices: Informer<Option<Published>>,
    /// Placements with a job under way, and the slices it is about.
    held: BTreeMap<Key, BTreeSet<Key>>,
    retries: BTreeMap<Key, Retry>,
    /// The placement that was decided last: the others come first.
    last: Option<Key>,
    /// What was wrong with the last attempt, by placement.
    problems: BTreeMap<Key, String>,
    metrics: Metrics,
}

impl State {
    pub fn new(options: Options, metrics: Metrics) -> Self {
        Self {
            fleet: Fleet::new(options),
            judge: CelJudge::new(),
            clusters: Informer::new("managedclusters"),
            sets: Informer::new("managedclustersets"),
            bindings: Informer::new("managedclustersetbindings"),
            scores: Informer::new("addonplacementscores"),
            placements: Informer::new("placements"),
            slices: Informer::new("placementdecisions"),
            held: BTreeMap::new(),
            retries: BTreeMap::new(),
            last: None,
            problems: BTreeMap::new(),
            metrics,
        }
    }

    /// Has everything been read once? Before, a cluster that is not known would be taken for one that is not there.
    pub fn is_ready(&self) -> bool {
        self.clusters.is_listed()
            && self.sets.is_listed()
            && self.bindings.is_listed()
            && self.scores.is_listed()
            && self.placements.is_listed()
            && self.slices.is_listed()
    }

    /// How many there are of each kind, and what is wrong with reading it.
    pub fn kinds(&self) -> [(&'static str, usize, Option<&str>); 6] {
        fn row<T>(of: &Informer<T>) -> (&'static str, usize, Option<&str>) {
            (of.name(), of.count(), of.trouble().map(|(what, _)| what.as_str()))
        }
        [
            row(&self.clusters),
            row(&self.sets),
            row(&self.bindings),
            row(&self.scores),
            row(&self.placements),
            row(&self.slices),
        ]
    }

    /// Placements whose last job failed, and why.
    pub fn problems(&self) -> &BTreeMap<Key, String> {
        &self.problems
    }

    pub fn take(&mut self, message: Message, now: Timestamp) {
        match message {
            Message::Cluster(event) => {
                let Change { deleted, applied } = self.clusters.apply(event, now);
                for (meta, ()) in deleted {
                    self.judge.remove_cluster(&meta.key.name);
                    self.fleet.remove_cluster(&meta.key.name);
                }
                if let Some((cluster, view)) = applied.and_then(|(_, facts)| facts) {
                    self.judge.set_view(&cluster, view);
                    self.fleet.set_cluster(cluster);
                }
            }
            Message::Set(event) => {
                let Change { deleted, applied } = self.sets.apply(event, now);
                for (meta, ()) in deleted {
                    self.fleet.remove_set(&meta.key.name);
                }
                if let Some((meta, Some(members))) = applied {
                    self.fleet.set_set(&meta.key.name, members);
                }
            }
            Message::Binding(event) => {
                let Change { deleted, applied } = self.bindings.apply(event, now);
                for (meta, ()) in deleted {
                    self.fleet.unbind(&meta.key.namespace, &meta.key.name);
                }
                if let Some((meta, Some(()))) = applied {
                    self.fleet.bind(&meta.key.namespace, &meta.key.name);
                }
            }
            Message::Scores(event) => {
                let Change { deleted, applied } = self.scores.apply(event, now);
                for (meta, ()) in deleted {
                    self.fleet.remove_scores(&meta.key.namespace, &meta.key.name);
                }
                if let Some((cluster, object, scores)) = applied.and_then(|(_, facts)| facts) {
                    self.fleet.set_scores(&cluster, &object, scores);
                }
            }
            Message::Placement(event) => {
                let change = self.placements.apply(event, now);
                self.placement_changed(change);
            }
            Message::Decision(event) => {
                let change = self.slices.apply(event, now);
                self.slice_changed(change);
            }
        }
    }

    fn placement_changed(&mut self, change: Change<Wish, Option<(Meta, Wish)>>) {
        for (meta, _) in change.deleted {
            self.forget(&meta.key);
        }
        let Some((meta, Some(wish))) = change.applied else { return };
        let Some(known) = self.placements.value_mut(&meta.key) else { return };
        let generation = |wish: &Wish| wish.placement.generation;
        let other = known.as_ref().is_none_or(|(_, known)| generation(known) != generation(&wish));
        *known = Some((meta.clone(), wish.clone()));
        if wish.leaving {
            self.forget(&meta.key);
            return;
        }
        if other {
            // Whoever mended it does not wait for what was wrong before.
            self.retries.remove(&meta.key);
        }
        self.fleet.set_placement(wish.placement);
    }

    fn forget(&mut self, key: &Key) {
        self.fleet.remove_placement(key);
        self.retries.remove(key);
        self.problems.remove(key);
    }

    fn slice_changed(&mut self, change: Change<Slice, Option<Published>>) {
        for (meta, known) in change.deleted {
            let owner = known.as_ref().and_then(|known| owner(&known.slice));
            self.slice_is(&meta.key, owner.as_ref(), None);
        }
        let Some((meta, Some(slice))) = change.applied else { return };
        let (key, slice) = (meta.key.clone(), Arc::new(slice));
        let Some(known) = self.slices.value_mut(&key) else { return };
        let before = known.as_ref().and_then(|known| owner(&known.slice));
        *known = Some(Published { meta, slice: slice.clone() });
        let owner = owner(&slice).or(before);
        self.slice_is(&key, owner.as_ref(), Some(&slice));
    }

    /// A slice is so, or is not there. Those of a job under way are looked at when it is over.
    fn slice_is(&mut self, key: &Key, owner: Option<&Key>, slice: Option<&Arc<Slice>>) {
        if let Some(about) = owner.and_then(|owner| self.held.get_mut(owner)) {
            about.insert(key.clone());
            return;
        }
        if self.held.values().any(|about| about.contains(key)) {
            return;
        }
        match slice {
            Some(slice) => self.fleet.set_slice(slice.clone()),
            None => self.fleet.remove_slice(key),
        }
    }

    /// What was decided and must be written, for so many placements at most; and is there more to decide at once? A few are
    /// decided at a time, so that the first are written while the others are.
    pub fn jobs(&mut self, room: usize, now: Timestamp, at: Instant) -> (Vec<Job>, bool) {
        let may = |key: &&Key| {
            !self.held.contains_key(*key) && self.retries.get(*key).is_none_or(|retry| retry.at <= at)
        };
        let due = self.fleet.due_after(self.last.as_ref(), now).filter(may);
        let mut due: Vec<Key> = due.take(AT_ONCE + 1).cloned().collect();
        let more = room > 0 && due.len() > AT_ONCE;
        due.truncate(AT_ONCE);
        let timed = Timed::new(&self.judge, &self.metrics);
        let mut jobs = Vec::new();
        for key in due {
            if jobs.len() == room {
                break;
            }
            let begun = Instant::now();
            let Some(outcome) = self.fleet.decide_one(&key, &timed, now) else { continue };
            self.metrics.decided(begun.elapsed());
            self.last = Some(key.clone());
            let Some(Some((meta, wish))) = self.placements.store().get(&key) else { continue };
            let there = |key: &Key| {
                let known = self.slices.store().get(key)?.as_ref()?;
                Some((known.meta.clone(), known.slice.clone()))
            };
            let Some(job) = Job::new(meta, wish, &outcome, there) else {
                self.retries.remove(&key);
                self.problems.remove(&key);
                continue;
            };
            self.fleet.assume(&outcome);
            self.held.insert(key, outcome.writes.iter().map(|write| write.slice.key.clone()).collect());
            jobs.push(job);
        }
        (jobs, more)
    }

    /// A job is over, well or not.
    pub fn done(&mut self, done: Done, at: Instant) {
        let Done { placement: key, slices, deleted, status, failure, .. } = done;
        if let Some((meta, facts)) = status {
            let change = self.placements.wrote(meta, facts);
            self.placement_changed(change);
        }
        let about = self.held.remove(&key).unwrap_or_default();
        for (meta, facts) in slices {
            let change = self.slices.wrote(meta, facts);
            self.slice_changed(change);
        }
        let still = |meta: &Meta| deleted.iter().all(|gone| gone.uid != meta.uid);
        for slice in about {
            let known = self.slices.store().get(&slice).and_then(Option::as_ref);
            match known.filter(|known| still(&known.meta)) {
                Some(known) => self.fleet.set_slice(known.slice.clone()),
                None => self.fleet.remove_slice(&slice),
            }
        }
        let Some(problem) = failure else {
            self.retries.remove(&key);
            self.problems.remove(&key);
            return;
        };
        self.metrics.failures.inc();
        if !self.fleet.has_placement(&key) {
            return;
        }
        self.fleet.again(&key);
        let failures = self.retries.get(&key).map_or(0, |retry| retry.failures) + 1;
        let pause = FIRST_RETRY.saturating_mul(1 << (failures - 1).min(16)).min(LAST_RETRY);
        self.retries.insert(key.clone(), Retry { failures, at: at + pause });
        self.problems.insert(key, problem);
    }

    /// Totals cannot be published: the server does not know them.
    pub fn without_scores(&mut self) {
        self.fleet.publish_scores(false);
    }

    /// When something is due by itself.
    pub fn wake(&self, now: Timestamp, at: Instant) -> Option<Instant> {
        let later = |wake: Timestamp| {
            let left = now.duration_until(wake);
            // What holds until and including a moment is over a moment later.
            at + Duration::try_from(left).unwrap_or_default() + Duration::from_millis(1)
        };
        let retries = self.retries.iter().filter(|(key, _)| !self.held.contains_key(*key));
        retries.map(|(_, retry)| retry.at).chain(self.fleet.wake().map(later)).min()
    }

    /// Placements that are there, in order.
    pub fn placements(&self) -> impl Iterator<Item = &Wish> {
        self.placements.store().iter().filter_map(|(.., known)| known.as_ref().map(|(_, wish)| wish))
    }

    /// Which clusters are published as selected, by placement.
    pub fn selected(&self) -> BTreeMap<Key, Vec<&str>> {
        let mut selected = BTreeMap::<Key, Vec<&str>>::new();
        let slices = self.slices.store().iter().filter_map(|(.., known)| known.as_ref());
        for (owner, slice) in slices.filter_map(|known| Some((owner(&known.slice)?, &known.slice))) {
            selected.entry(owner).or_default().extend(slice.entries.iter().map(|entry| &*entry.cluster));
        }
        selected
    }

    /// What would be decided now, and why.
    pub fn report(&mut self, about: &Subject, now: Timestamp) -> Option<Report> {
        match about {
            Subject::There(key) => self.fleet.report(key, &self.judge, now),
            Subject::Wished(wish) => Some(self.fleet.report_wish((**wish).clone(), &self.judge, now)),
        }
    }
}

fn owner(slice: &Slice) -> Option<Key> {
    Some(Key::new(slice.key.namespace.clone(), slice.placement()?))
}

#[cfg(test)]
mod tests;
