//! What is slowed down, as it changes within a cycle.

use super::pod::{Container, CpuQuota, Pod};
use super::policy::RuleName;
use super::state::Throttled;
use crate::object::Key;
use jiff::Timestamp;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// So many writes without an answer are remembered of a container.
const MOST_UNSURE: usize = 8;

/// A container that is slowed down.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    throttled: Throttled,
    /// As it was, where this cycle changes it; none if it was not slowed down before.
    before: Option<Throttled>,
    /// Lowered in this cycle, so that it is not raised in the same.
    fresh: bool,
    /// Has everything back, is gone, or is somebody else's now.
    over: bool,
}

impl Entry {
    pub(super) fn throttled(&self) -> &Throttled {
        &self.throttled
    }

    /// What is remembered of it where its quota could not be changed.
    pub(super) fn before(&self) -> Option<&Throttled> {
        self.before.as_ref()
    }

    /// What is remembered of it where nobody knows whether its quota was changed.
    pub(super) fn either(&self) -> Throttled {
        // With everything given back, what was written is what it had.
        let after = if self.over { self.throttled.original_us } else { self.throttled.written_us };
        let before = self.before.as_ref();
        let written_us = before.map_or(self.throttled.original_us, |before| before.written_us);
        // One that did not arrive the last time may do so after this one.
        let mut unsure_us = before.map_or_else(Vec::new, |before| before.unsure_us.clone());
        unsure_us.retain(|us| *us != after);
        unsure_us.push(after);
        let oldest = unsure_us.len().saturating_sub(MOST_UNSURE);
        unsure_us.drain(..oldest);
        Throttled { written_us, unsure_us, back_since: None, ..self.throttled.clone() }
    }

    /// What is remembered of it after this cycle.
    pub(super) fn after(&self) -> Option<&Throttled> {
        (!self.over).then_some(&self.throttled)
    }
}

/// Everything that is slowed down, found by pod and container.
pub(super) struct Held<'s> {
    entries: Vec<Entry>,
    places: FxHashMap<(&'s Key, &'s str), usize>,
    now: Timestamp,
}

impl<'s> Held<'s> {
    /// What earlier cycles left, on the pods there are now.
    pub(super) fn new(from: &'s [Throttled], pods: &[Pod], now: Timestamp) -> Self {
        let entry =
            |one: &Throttled| Entry { throttled: one.clone(), before: None, fresh: false, over: false };
        let place = |(at, one): (usize, &'s Throttled)| ((&one.pod, &*one.container), at);
        let mut held = Self {
            entries: from.iter().map(entry).collect(),
            places: from.iter().enumerate().map(place).collect(),
            now,
        };
        held.look(pods);
        held
    }

    /// What is not certain is looked up in the quotas there are; pods that only have the name of one are not it.
    fn look(&mut self, pods: &[Pod]) {
        if self.entries.is_empty() {
            return;
        }
        for pod in pods {
            for container in &pod.containers {
                let Some(at) = self.places.get(&(&pod.key, &*container.name)) else { continue };
                let entry = &mut self.entries[*at];
                if !entry.throttled.is_of(pod) || entry.throttled.is_settled(self.now) {
                    entry.over = true;
                } else if let Some(us) = container.quota.us()
                    && entry.throttled.unsure_us.contains(&us)
                {
                    entry.throttled.written_us = us;
                    entry.throttled.unsure_us.retain(|unsure| *unsure != us);
                    entry.throttled.back_since = None;
                    // It turned out to have everything back, and nothing is on its way.
                    entry.over = us == entry.throttled.original_us && entry.throttled.unsure_us.is_empty();
                }
            }
        }
    }

    /// Expects so many more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.entries.reserve(more);
        self.places.reserve(more);
    }

    /// Notes that a container is lowered.
    pub(super) fn lower(&mut self, pod: &'s Pod, container: &'s Container, us: i64, rules: &[Arc<RuleName>]) {
        let live = container.quota.us().unwrap_or(-1);
        let key = (&pod.key, &*container.name);
        let Some(at) = self.places.get(&key).copied() else {
            self.places.insert(key, self.entries.len());
            let throttled = Throttled {
                pod: pod.key.clone(),
                uid: pod.uid.clone(),
                container: container.name.clone(),
                original_us: live,
                written_us: us,
                unsure_us: Vec::new(),
                rules: rules.to_vec(),
                back_since: None,
            };
            self.entries.push(Entry { throttled, before: None, fresh: true, over: false });
            return;
        };
        let Entry { throttled: known, before, fresh, over } = &mut self.entries[at];
        *before = (!*over).then(|| known.clone());
        if known.written_us != live || *over {
            // Somebody else changed it since, or it is another pod: what is there now is what it had.
            known.original_us = live;
            known.rules.clear();
            known.unsure_us.clear();
        }
        (*fresh, *over, known.back_since) = (true, false, None);
        known.uid = pod.uid.clone();
        // What was not answered stays in mind: it may arrive after one that is.
        known.written_us = us;
        known.rules.extend(rules.iter().cloned());
        known.rules.sort();
        known.rules.dedup();
    }

    /// Is there anything that could be raised?
    pub(super) fn any_to_raise(&self) -> bool {
        self.entries.iter().any(|entry| !entry.fresh && !entry.over)
    }

    /// The container, if it could be raised.
    pub(super) fn to_raise(&self, pod: &Pod, container: &Container) -> Option<&Throttled> {
        let entry = &self.entries[*self.places.get(&(&pod.key, &*container.name))?];
        (!entry.fresh && !entry.over && entry.throttled.is_slowed()).then_some(&entry.throttled)
    }

    /// Notes that a container is raised; with nothing left to write, that it has everything back. It is forgotten then, unless writes
    /// may still arrive that take something away again.
    pub(super) fn raise(&mut self, pod: &Pod, container: &Container, quota: Option<CpuQuota>) {
        let Some(at) = self.places.get(&(&pod.key, &*container.name)) else { return };
        let entry = &mut self.entries[*at];
        entry.before = Some(entry.throttled.clone());
        let throttled = &mut entry.throttled;
        if let Some(us) = quota.and_then(CpuQuota::us) {
            throttled.written_us = us;
            return;
        }
        throttled.written_us = throttled.original_us;
        throttled.unsure_us.retain(|us| *us != throttled.original_us);
        throttled.back_since = Some(self.now);
        entry.over = throttled.unsure_us.is_empty();
    }

    /// Forgets containers that are gone, and those that somebody else has changed, which is told.
    pub(super) fn forget<'p>(&mut self, pods: impl Iterator<Item = &'p Pod>, mut tell: impl FnMut(String)) {
        if !self.any_to_raise() {
            return;
        }
        let pods: FxHashMap<&Key, &Pod> = pods.map(|pod| (&pod.key, pod)).collect();
        for entry in self.entries.iter_mut().filter(|entry| !entry.fresh && !entry.over) {
            let Throttled { pod, container, written_us, .. } = &entry.throttled;
            let containers = pods.get(pod).map(|pod| pod.containers.iter()).into_iter().flatten();
            let Some(found) = containers.into_iter().find(|one| one.name == *container) else {
                entry.over = true;
                continue;
            };
            if let Some(live) = found.quota.us().filter(|live| live != written_us) {
                tell(format!(
                    "the quota of {pod}/{container} is {live}, not {written_us} as written: \
                     somebody else has changed it, it stays"
                ));
                entry.over = true;
            }
        }
    }

    /// All of it, for the next cycle to know.
    pub(super) fn left(self) -> Vec<Entry> {
        self.entries
    }
}
