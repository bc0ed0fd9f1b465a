//! What is on its way to clusters? Decided by us, found in bindings that somebody else decided about, or written without
//! anybody knowing whether that arrived.
//!
//! A promise is made with the decision. If the write is refused it is taken back; if nobody knows what became of the write,
//! or somebody else wrote first, it stays until the binding is seen as it is now. What is found there, and is not to be seen in
//! its cluster, is promised too: the one who led before us, or we ourselves before a restart, may have assigned it a moment
//! ago.

use super::{Known, State};
use crate::cluster::connection::Cause;
use jiff::{SignedDuration, Timestamp};
use loadline_api::karmada::{Reported, Scheduling};
use loadline_core::divide::news::News;
use loadline_core::divide::promised::Before;
use loadline_core::divide::{Answer, Binding, Previous};
use loadline_core::object::Key;
use std::sync::Arc;

impl State {
    /// Keeps room for what was decided; gives what was promised before.
    pub(super) fn promise(
        &mut self,
        known: &Arc<Known>,
        binding: &Binding,
        answer: &Answer,
        now: Timestamp,
    ) -> Before<Known> {
        let key = &known.meta.key;
        if let Some(before) = self.unsure.remove(key) {
            self.promised.take_back(before);
        }
        let count = |replicas: Option<i32>| counted(binding, replicas.unwrap_or(0));
        let is: Vec<_> = answer.clusters.iter().map(|t| (t.name.clone(), count(t.replicas))).collect();
        let (was, until) = (targets(binding), self.promised_until(now));
        let meant =
            is.iter().map(|(name, replicas)| Previous { name: name.to_string(), replicas: *replicas });
        self.meant.insert(key.clone(), (known.meta.uid.clone(), meant.collect()));
        self.promised.assign(key, known, &was, &is, until)
    }

    /// The write of a decision about a binding is over, whatever came of it.
    pub fn write_ended(&mut self, known: &Known) {
        let key = &known.meta.key;
        if self.meant.get(key).is_some_and(|(uid, _)| *uid == known.meta.uid) {
            self.meant.remove(key);
        }
    }

    /// Does something as if a write of this binding that nobody knows of had not arrived: what it is kept is room for itself,
    /// and for nobody else.
    pub(super) fn as_if_not_written<R>(&mut self, key: &Key, act: impl FnOnce(&mut Self) -> R) -> R {
        let Some(before) = self.unsure.remove(key) else { return act(self) };
        let kept = self.promised.withdraw(key);
        self.promised.take_back(before);
        let done = act(self);
        let before = self.promised.withdraw(key);
        self.promised.take_back(kept);
        self.unsure.insert(key.clone(), before);
        done
    }

    /// Until when what is assigned at that time is kept room for.
    fn promised_until(&self, at: Timestamp) -> Timestamp {
        let promise = SignedDuration::try_from(self.settings.promise).unwrap_or(SignedDuration::MAX);
        at.checked_add(promise).unwrap_or(Timestamp::MAX)
    }

    /// What was decided about a binding was not written, for that reason. It may have been all the same.
    pub fn not_written(
        &mut self,
        known: &Known,
        before: Option<Before<Known>>,
        cause: Cause,
        now: Timestamp,
    ) {
        let Some(before) = before else { return };
        let key = &known.meta.key;
        match self.binding(key).cloned() {
            // It has been seen since.
            Some(is) if is.meta.revision != known.meta.revision => {
                self.promised.take_back(before);
                self.find(Some(known), &is, now);
            }
            Some(_) if cause.may_have_arrived() || cause == Cause::Conflict => {
                self.unsure.insert(key.clone(), before);
            }
            _ => self.promised.take_back(before),
        }
    }

    /// A binding is as it is now: what became of a write is known, and what somebody else assigned is promised.
    pub(super) fn discover(&mut self, was: Option<&Known>, is: &Arc<Known>, now: Timestamp) {
        let key = &is.meta.key;
        match self.unsure.remove(key) {
            Some(before) => self.promised.take_back(before),
            None if self.promised.holds(key) && self.is_as_promised(was, is) => return,
            None => {}
        }
        self.find(was, is, now);
    }

    /// Do the promises to a binding go by where it is now? Not if another one, or the descheduler, has moved it since.
    fn is_as_promised(&self, was: Option<&Known>, is: &Known) -> bool {
        let placed = |known: &Known| known.facts.binding.as_ref().map(targets).unwrap_or_default();
        let was = was.map(placed).unwrap_or_default();
        match self.meant.get(&is.meta.key) {
            // This is that write, or one it will fail over: it will be known when it has ended.
            Some((uid, meant)) if *uid == is.meta.uid && !same(meant, &was) => true,
            _ => same(&was, &placed(is)),
        }
    }

    /// Promises what a binding got more than it had, and what is not to be seen of it.
    fn find(&mut self, was: Option<&Known>, is: &Arc<Known>, now: Timestamp) {
        let Ok(binding) = &is.facts.binding else { return };
        let ours = self.is_ours(&is.facts) && !is.facts.deleting && binding.is_workload();
        if !ours {
            return;
        }
        if binding.clusters.is_empty() {
            self.withdraw(&is.meta.key);
            return;
        }
        // What changes before our eyes was assigned now; what is found was when it says so. Who assigned it may have ended
        // before it said so: then it may have been this moment.
        let said = binding.scheduled.filter(|_| is.facts.observed_generation == is.facts.generation);
        let assigned = if was.is_some() { now } else { said.unwrap_or(now) };
        let until = self.promised_until(assigned);
        if until <= now {
            return;
        }
        let before = was.and_then(|was| was.facts.binding.as_ref().ok()).map(targets).unwrap_or_default();
        let is_there: Vec<Previous> = targets(binding)
            .into_iter()
            .map(|target| {
                let had =
                    before.iter().find(|known| known.name == target.name).map_or(0, |known| known.replicas);
                let replicas = had.max(shown(&is.facts, &target));
                Previous { replicas, ..target }
            })
            .collect();
        let gets: Vec<(Arc<str>, i32)> = targets(binding)
            .into_iter()
            .map(|target| (target.name.as_str().into(), target.replicas))
            .collect();
        self.promised.assign(&is.meta.key, is, &is_there, &gets, until);
    }

    /// What clusters show of it need not be promised any more.
    pub(super) fn reflect(&mut self, was: Option<&Known>, is: &Known) {
        if self.promised.is_empty() {
            return;
        }
        let Ok(binding) = &is.facts.binding else { return };
        for (cluster, said) in &is.facts.reported {
            let target = binding.clusters.iter().find(|known| known.name == *cluster);
            let before = was.and_then(|was| was.facts.reported.get(cluster).copied()).unwrap_or_default();
            let missing = match said.ready {
                Some(ready) => target.map_or(0, |target| target.replicas).saturating_sub(ready),
                None if said.healthy && !before.healthy => 0,
                None => continue,
            };
            self.promised.shown(&is.meta.key, cluster, missing);
        }
    }

    /// What was promised to a binding is free again.
    pub(super) fn withdraw(&mut self, key: &Key) {
        self.unsure.remove(key);
        self.meant.remove(key);
        let before = self.promised.withdraw(key);
        self.freed(&before.clusters().cloned().collect::<Vec<_>>());
    }

    pub(super) fn freed(&mut self, clusters: &[Arc<str>]) {
        let freed: Vec<_> = clusters.iter().filter_map(|name| self.cluster(name)).collect();
        self.fresh.extend(freed.into_iter().map(|cluster| (News::Room, cluster)));
    }
}

/// Where a binding is, and how much of it.
fn targets(binding: &Binding) -> Vec<Previous> {
    let one = |known: &Previous| Previous { replicas: counted(binding, known.replicas), ..known.clone() };
    binding.clusters.iter().map(one).collect()
}

/// In any order?
fn same(one: &[Previous], other: &[Previous]) -> bool {
    one.len() == other.len() && one.iter().all(|target| other.contains(target))
}

/// Replicas, or complete sets: a cluster has one of those.
fn counted(binding: &Binding, replicas: i32) -> i32 {
    if binding.components.is_empty() { replicas } else { 1 }
}

/// How much of what a cluster got it shows.
fn shown(facts: &Scheduling, target: &Previous) -> i32 {
    match facts.reported.get(&target.name) {
        Some(Reported { ready: Some(ready), .. }) => *ready,
        Some(Reported { healthy: true, ready: None }) => target.replicas,
        _ => 0,
    }
}
