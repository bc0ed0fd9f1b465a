//! The acts that wait to be measured, and the last that were.

use crate::object::Key;
use crate::qos::gap::Category;
use crate::qos::level::Level;
use crate::qos::metric::{Catalogue, Metric, Resource};
use crate::qos::plan::{Plan, Victim, Write};
use crate::qos::pod::{Container, CpuQuota, Pod};
use crate::qos::policy::RuleName;
use crate::qos::reclaim::Reclaim;
use crate::qos::settle::Results;
use crate::qos::snapshot::NodeSnapshot;
use crate::qos::state::Reply;
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// How long the end of a pod may take beyond its own time, and a look at a container that was slowed down.
const PATIENCE: SignedDuration = SignedDuration::from_secs(60);

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A container was slowed down.
    Throttled,
    /// A container was given something back.
    Restored,
    /// A pod was evicted.
    Evicted,
    /// The kernel was asked for page cache of a pod.
    Reclaimed,
}

impl Kind {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Throttled => "throttled",
            Self::Restored => "restored",
            Self::Evicted => "evicted",
            Self::Reclaimed => "reclaimed",
        }
    }
}

/// Something that was done to a pod. Amounts are in the unit gaps of the resource are counted in: millicores, bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Act {
    pub at: Timestamp,
    /// For which rule.
    pub rule: Arc<RuleName>,
    /// What.
    pub kind: Kind,
    pub pod: Key,
    pub uid: Arc<str>,
    /// Which of its containers; none if all of it.
    pub container: Option<Arc<str>>,
    /// What the container was held to; none if it is all of the pod.
    pub quota: Option<CpuQuota>,
    /// What it was expected to release, or when restored to add at most, by resource.
    pub predicted: BTreeMap<Resource, Level>,
    /// What it used before; who is not in here was not known.
    pub before: BTreeMap<Resource, Level>,
    /// How long the pod was given to go.
    grace: SignedDuration,
}

impl Act {
    fn is_about_the_same(&self, other: &Self) -> bool {
        // What page cache a pod gives up says nothing about what its end frees.
        let of_cache = |act: &Self| act.kind == Kind::Reclaimed;
        self.pod == other.pod
            && self.uid == other.uid
            && self.container == other.container
            && of_cache(self) == of_cache(other)
    }
}

/// An act that has been measured, or cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    pub act: Act,
    /// When it was looked at.
    pub at: Timestamp,
    /// What it released, or when restored added; what is missing could not be measured.
    pub measured: BTreeMap<Resource, Level>,
}

impl Closed {
    /// What was released beyond what was predicted; below zero if it was less. None if it could not be measured.
    #[must_use]
    pub fn error(&self, resource: Resource) -> Option<Level> {
        Some(*self.measured.get(&resource)? - *self.act.predicted.get(&resource)?)
    }

    /// The part of what was predicted that is missing, in billionths; below zero if there was more than that. None if it could not be
    /// measured, nothing was predicted, it was restored (what may be used need not be), or page cache was asked back, which counts for no
    /// gap.
    #[must_use]
    pub fn shortfall(&self, resource: Resource) -> Option<i64> {
        let predicted = *self.act.predicted.get(&resource)?;
        if matches!(self.act.kind, Kind::Restored | Kind::Reclaimed) || predicted <= Level::ZERO {
            return None;
        }
        let share = (-self.error(resource)?).times(Level::whole(1).nano(), predicted.nano());
        i64::try_from(share.nano().clamp(i64::MIN.into(), i64::MAX.into())).ok()
    }
}

/// Sums over all acts of a kind on a resource, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many were measured.
    pub measured: u64,
    /// How many could not be.
    pub unmeasured: u64,
    /// What those that were measured had been expected to release.
    pub predicted: Level,
    /// What they released.
    pub released: Level,
    /// How far each was off, whichever way.
    pub off: Level,
}

/// The record of acts: as many as it has room for.
#[derive(Clone, Debug)]
pub struct Audit {
    room: usize,
    open: VecDeque<Act>,
    closed: VecDeque<Closed>,
    tallies: BTreeMap<(Kind, Resource), Tally>,
}

impl Audit {
    /// A record of at most so many acts that wait, and so many that were measured.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { room, open: VecDeque::new(), closed: VecDeque::new(), tallies: BTreeMap::new() }
    }

    /// Notes what came of a plan, given the snapshot it was made of. What was refused, was not written or would have happened anyway is no
    /// act. Gives those that had to make room or are about the same container, not measured.
    pub fn note(
        &mut self,
        catalogue: &Catalogue,
        snapshot: &NodeSnapshot,
        plan: &Plan,
        results: &Results,
    ) -> Vec<Closed> {
        let written =
            |write: &&Write| !results.unwritten.contains(&(write.pod.clone(), write.container.clone()));
        let granted = |victim: &&Victim| results.replies.get(&victim.pod) == Some(&Reply::Granted);
        let writes = plan.steps.writes.iter().filter(written);
        let victims = plan.steps.victims.iter().filter(granted);
        let of_write = writes.filter_map(|write| slowed(catalogue, snapshot, write));
        let mut acts: Vec<Act> = of_write.collect();
        for mut act in victims.filter_map(|victim| evicted(catalogue, snapshot, victim)) {
            // What a pod was slowed down by before it was told to go counts there.
            for slowed in acts.iter().filter(|slowed| slowed.pod == act.pod && slowed.kind == Kind::Throttled)
            {
                for (resource, before) in &mut act.before {
                    *before -= slowed.predicted.get(resource).copied().unwrap_or_default();
                }
            }
            acts.push(act);
        }
        let asked = plan.steps.reclaims.iter().filter(|one| results.reclaimed.contains(&one.pod));
        acts.extend(asked.filter_map(|one| reclaimed(catalogue, snapshot, one)));
        // A later act on the same container changes what would be measured of an earlier one.
        let again = |earlier: &Act| acts.iter().any(|act| act.is_about_the_same(earlier));
        let (mut given_up, kept): (Vec<Act>, Vec<Act>) =
            std::mem::take(&mut self.open).into_iter().partition(again);
        self.open = kept.into();
        self.open.extend(acts);
        given_up.extend(self.open.drain(..self.open.len().saturating_sub(self.room)));
        let unmeasured = |act| Closed { act, at: snapshot.now, measured: BTreeMap::new() };
        given_up.into_iter().map(unmeasured).map(|closed| self.close(closed)).collect()
    }

    /// Measures what can be measured by now. Gives what was closed.
    pub fn measure(&mut self, catalogue: &Catalogue, snapshot: &NodeSnapshot) -> Vec<Closed> {
        let mut waiting = VecDeque::new();
        let mut done = Vec::new();
        for act in std::mem::take(&mut self.open) {
            match measured(catalogue, snapshot, &act) {
                Some(measured) => done.push(Closed { act, at: snapshot.now, measured }),
                None => waiting.push_back(act),
            }
        }
        self.open = waiting;
        done.into_iter().map(|closed| self.close(closed)).collect()
    }

    /// The clock was set by so much: acts that wait are as old as they were.
    pub fn shift(&mut self, by: SignedDuration) {
        for act in &mut self.open {
            act.at = act.at.checked_add(by).unwrap_or(act.at);
        }
    }

    fn close(&mut self, closed: Closed) -> Closed {
        for (resource, predicted) in &closed.act.predicted {
            let tally = self.tallies.entry((closed.act.kind, *resource)).or_default();
            let Some(released) = closed.measured.get(resource) else {
                tally.unmeasured += 1;
                continue;
            };
            tally.measured += 1;
            tally.predicted += *predicted;
            tally.released += *released;
            let off = *released - *predicted;
            tally.off += off.max(-off);
        }
        self.closed.push_back(closed.clone());
        let many = self.closed.len().saturating_sub(self.room);
        self.closed.drain(..many);
        closed
    }

    /// The acts that wait to be measured, the oldest first.
    #[must_use]
    pub fn open(&self) -> impl ExactSizeIterator<Item = &Act> {
        self.open.iter()
    }

    /// The last that were closed, the oldest first.
    #[must_use]
    pub fn closed(&self) -> impl DoubleEndedIterator<Item = &Closed> + ExactSizeIterator {
        self.closed.iter()
    }

    /// Sums since the beginning.
    #[must_use]
    pub fn tallies(&self) -> &BTreeMap<(Kind, Resource), Tally> {
        &self.tallies
    }

    /// The last shortfalls of a resource, at most so many, the oldest first: what [`tuned`](super::tuned) wants.
    #[must_use]
    pub fn shortfalls(&self, resource: Resource, most: usize) -> Vec<i64> {
        let newest = self.closed.iter().rev().filter_map(|closed| closed.shortfall(resource)).take(most);
        let mut all: Vec<i64> = newest.collect();
        all.reverse();
        all
    }
}

fn slowed(catalogue: &Catalogue, snapshot: &NodeSnapshot, write: &Write) -> Option<Act> {
    let kind = match write.category {
        Category::ThrottleDown => Kind::Throttled,
        Category::ThrottleUp => Kind::Restored,
        Category::Evict | Category::Reclaim => return None,
    };
    let pod = snapshot.pods.iter().find(|pod| pod.key == write.pod)?;
    // Without figures pods are slowed down for any metric, and what is moved is of the one that can be.
    let named = catalogue.find(write.metric).filter(|metric| metric.throttle.is_some());
    let resource = named.or_else(|| catalogue.iter().find(|metric| metric.throttle.is_some()))?.resource;
    let container = pod.containers.iter().find(|container| container.name == write.container)?;
    Some(Act {
        at: snapshot.now,
        rule: write.rule.clone(),
        kind,
        pod: write.pod.clone(),
        uid: pod.uid.clone(),
        container: Some(write.container.clone()),
        quota: Some(write.quota),
        predicted: BTreeMap::from([(resource, write.moved)]),
        before: container.usage.map(|used| (resource, used)).into_iter().collect(),
        grace: SignedDuration::ZERO,
    })
}

fn evicted(catalogue: &Catalogue, snapshot: &NodeSnapshot, victim: &Victim) -> Option<Act> {
    let pod = snapshot.pods.iter().find(|pod| pod.key == victim.pod)?;
    let resource = |name: &&'static str| catalogue.find(name).map(|metric| metric.resource);
    let predicted: BTreeMap<Resource, Level> =
        victim.release.iter().filter_map(|(name, level)| Some((resource(name)?, *level))).collect();
    let before = predicted.keys().filter_map(|resource| Some((*resource, used(catalogue, *resource, pod)?)));
    Some(Act {
        at: snapshot.now,
        rule: victim.rule.clone(),
        kind: Kind::Evicted,
        pod: victim.pod.clone(),
        uid: victim.uid.clone(),
        container: None,
        quota: None,
        before: before.collect(),
        predicted,
        grace: SignedDuration::from_secs(victim.grace_seconds.max(0)),
    })
}

fn reclaimed(catalogue: &Catalogue, snapshot: &NodeSnapshot, one: &Reclaim) -> Option<Act> {
    let pod = snapshot.pods.iter().find(|pod| pod.key == one.pod)?;
    let resource = catalogue.find(one.metric)?.resource;
    Some(Act {
        at: snapshot.now,
        rule: one.rule.clone(),
        kind: Kind::Reclaimed,
        pod: one.pod.clone(),
        uid: pod.uid.clone(),
        container: None,
        quota: None,
        predicted: BTreeMap::from([(resource, Level::whole(one.bytes))]),
        before: charged(pod).map(|bytes| (resource, bytes)).into_iter().collect(),
        grace: SignedDuration::ZERO,
    })
}

/// All memory a pod is charged for: its working set leaves out the very page cache that is asked back.
fn charged(pod: &Pod) -> Option<Level> {
    Some(pod.memory? + pod.reclaimable?)
}

/// What a pod uses of a resource, as far as its end would free it.
fn used(catalogue: &Catalogue, resource: Resource, pod: &Pod) -> Option<Level> {
    let of_it = |metric: &&Arc<Metric>| metric.resource == resource && metric.release.is_some();
    (catalogue.iter().find(of_it)?.release?)(pod)
}

/// What an act has released; none if that is not over yet.
fn measured(catalogue: &Catalogue, snapshot: &NodeSnapshot, act: &Act) -> Option<BTreeMap<Resource, Level>> {
    if snapshot.now <= act.at {
        return None;
    }
    let late = snapshot.now.duration_since(act.at) > act.grace.saturating_add(PATIENCE);
    let is_it = |pod: &&Pod| pod.key == act.pod && (act.uid.is_empty() || pod.uid == act.uid) && !pod.ended;
    let pod = snapshot.pods.iter().find(is_it);
    if act.kind == Kind::Reclaimed {
        // What went took all of it along, whoever asked.
        let Some(pod) = pod else { return Some(BTreeMap::new()) };
        let Some(now) = charged(pod) else { return late.then(BTreeMap::new) };
        return Some(act.before.iter().map(|(resource, before)| (*resource, *before - now)).collect());
    }
    let Some(name) = &act.container else {
        let Some(pod) = pod else { return Some(act.before.clone()) };
        // It does not go. What it gave up so far is all that came of it.
        let given_up = |(resource, before): (&Resource, &Level)| {
            Some((*resource, *before - used(catalogue, *resource, pod)?))
        };
        return late.then(|| act.before.iter().filter_map(given_up).collect());
    };
    let container: Option<&Container> = pod.and_then(|pod| pod.containers.iter().find(|c| c.name == *name));
    // What went for another reason says nothing about the quota.
    let Some(container) = container else { return Some(BTreeMap::new()) };
    let Some(now) = container.usage else { return late.then(BTreeMap::new) };
    let change = |before: Level| if act.kind == Kind::Restored { now - before } else { before - now };
    Some(act.before.iter().map(|(resource, before)| (*resource, change(*before))).collect())
}
