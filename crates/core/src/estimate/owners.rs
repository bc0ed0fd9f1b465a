//! How many pods of a workload are on nodes already? What is assumed of it is less by so many.

use crate::load::recommend::WorkloadRef;
use crate::resources::Amounts;
use rustc_hash::{FxHashMap, FxHasher};
use std::hash::{Hash as _, Hasher as _};
use std::sync::Arc;

/// Parts of the map that are copied on their own.
const SHARDS: usize = 64;
/// A workload's pods are its own, its children's and theirs: a `CronJob` has Jobs has pods.
const DEPTH: usize = 4;

#[derive(Clone, Debug, Default)]
struct Entry {
    /// Its own pods on nodes, by what they request.
    pods: Vec<(Amounts, u32)>,
    /// What it controls.
    children: Vec<Arc<WorkloadRef>>,
}

impl Entry {
    fn is_empty(&self) -> bool {
        self.pods.is_empty() && self.children.is_empty()
    }
}

type Shard = FxHashMap<Arc<WorkloadRef>, Entry>;

/// Pods on nodes by who controls them. A clone shares everything and never changes.
#[derive(Clone, Debug)]
pub(super) struct Owners {
    shards: Vec<Arc<Shard>>,
}

impl Default for Owners {
    fn default() -> Self {
        Self { shards: vec![Arc::default(); SHARDS] }
    }
}

fn shard(target: &WorkloadRef) -> usize {
    let mut hasher = FxHasher::default();
    target.hash(&mut hasher);
    usize::try_from(hasher.finish() >> 32).unwrap_or(0) % SHARDS
}

impl Owners {
    fn entry(&mut self, target: &Arc<WorkloadRef>) -> &mut Entry {
        Arc::make_mut(&mut self.shards[shard(target)]).entry(target.clone()).or_default()
    }

    fn tidy(&mut self, target: &WorkloadRef) {
        let entries = Arc::make_mut(&mut self.shards[shard(target)]);
        if entries.get(target).is_some_and(Entry::is_empty) {
            entries.remove(target);
        }
    }

    /// One more pod of that controller.
    pub fn add(&mut self, owner: &Arc<WorkloadRef>, requests: &Amounts) {
        let pods = &mut self.entry(owner).pods;
        match pods.iter_mut().find(|(asked, _)| asked == requests) {
            Some((_, count)) => *count += 1,
            None => pods.push((requests.clone(), 1)),
        }
    }

    /// One pod less.
    pub fn remove(&mut self, owner: &Arc<WorkloadRef>, requests: &Amounts) {
        let pods = &mut self.entry(owner).pods;
        if let Some((_, count)) = pods.iter_mut().find(|(asked, _)| asked == requests) {
            *count -= 1;
        }
        pods.retain(|(_, count)| *count > 0);
        self.tidy(owner);
    }

    /// `child` is controlled by `parent`.
    pub fn adopt(&mut self, parent: &Arc<WorkloadRef>, child: &Arc<WorkloadRef>) {
        let children = &mut self.entry(parent).children;
        if !children.contains(child) {
            children.push(child.clone());
        }
    }

    /// It is not any more.
    pub fn disown(&mut self, parent: &Arc<WorkloadRef>, child: &WorkloadRef) {
        self.entry(parent).children.retain(|known| **known != *child);
        self.tidy(parent);
    }

    /// The pods of a workload that are on nodes, by what they request.
    pub fn pods(&self, workload: &WorkloadRef) -> Vec<(Amounts, u32)> {
        let mut out = Vec::new();
        self.collect(workload, DEPTH, &mut out);
        out
    }

    fn collect(&self, workload: &WorkloadRef, depth: usize, out: &mut Vec<(Amounts, u32)>) {
        let Some(entry) = self.shards[shard(workload)].get(workload) else { return };
        for (requests, count) in &entry.pods {
            match out.iter_mut().find(|(asked, _)| asked == requests) {
                Some((_, sum)) => *sum += count,
                None => out.push((requests.clone(), *count)),
            }
        }
        if depth > 0 {
            for child in &entry.children {
                self.collect(child, depth - 1, out);
            }
        }
    }
}
