//! How many replicas of a Deployment wait in vain for a node?
//!
//! Counted are pods of its newest replica set that the cluster's scheduler found no node for, and has not for some
//! time. The newest replica set is the oldest of those the Deployment controls whose template is the Deployment's own
//! (`pod-template-hash` aside): a rollout leaves others behind, and they are not what is wanted now.
//!
//! Little is kept: of templates a fingerprint, of pods only those without a node. A clone shares everything, so that
//! readers have one that never changes.

use crate::object::Key;
use crate::select::Selector;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A Deployment, as far as its pods are found through it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deployment {
    pub key: Key,
    pub uid: Arc<str>,
    /// Which pods are its own.
    pub selector: Selector,
    /// The fingerprint of its template.
    pub template: u64,
}

/// A `ReplicaSet`, as far as it stands between a Deployment and its pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaSet {
    pub key: Key,
    pub uid: Arc<str>,
    /// The identity of its controller.
    pub owner: Option<Arc<str>>,
    /// Since when it exists; one that does not say is the oldest.
    pub created: Option<Timestamp>,
    /// The fingerprint of its template, taken without the label `pod-template-hash`.
    pub template: u64,
}

/// A pod no node was found for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unplaced {
    pub namespace: Arc<str>,
    pub uid: Arc<str>,
    /// The identity of its controller.
    pub owner: Arc<str>,
    pub labels: BTreeMap<String, String>,
    /// Since when; one that does not say has been waiting forever.
    pub since: Option<Timestamp>,
}

/// Everything in one namespace.
#[derive(Clone, Debug, Default)]
struct Space {
    deployments: BTreeMap<Arc<str>, Deployment>,
    sets: BTreeMap<Arc<str>, ReplicaSet>,
    pods: BTreeMap<Arc<str>, Unplaced>,
}

impl Space {
    fn is_empty(&self) -> bool {
        self.deployments.is_empty() && self.sets.is_empty() && self.pods.is_empty()
    }
}

/// Deployments, their replica sets and the pods of these that wait.
///
/// Applying the same event twice changes nothing; the order of events about different objects does not matter.
#[derive(Clone, Debug, Default)]
pub struct Waiting {
    /// Shared with clones down to the namespace: an event copies one namespace, and the list of them.
    spaces: Arc<BTreeMap<Arc<str>, Arc<Space>>>,
}

impl Waiting {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A Deployment is there, as its object says now.
    pub fn set_deployment(&mut self, deployment: Deployment) {
        let Key { namespace, name } = deployment.key.clone();
        if self.space(&namespace).and_then(|s| s.deployments.get(&name)) != Some(&deployment) {
            self.make(&namespace).deployments.insert(name, deployment);
        }
    }

    /// A Deployment is gone.
    pub fn remove_deployment(&mut self, key: &Key) {
        if self.space(&key.namespace).is_some_and(|s| s.deployments.contains_key(&key.name)) {
            self.change(&key.namespace, |space| space.deployments.remove(&key.name));
        }
    }

    /// A `ReplicaSet` is there, as its object says now.
    pub fn set_replica_set(&mut self, set: ReplicaSet) {
        let Key { namespace, name } = set.key.clone();
        if self.space(&namespace).and_then(|s| s.sets.get(&name)) != Some(&set) {
            self.make(&namespace).sets.insert(name, set);
        }
    }

    /// A `ReplicaSet` is gone.
    pub fn remove_replica_set(&mut self, key: &Key) {
        if self.space(&key.namespace).is_some_and(|s| s.sets.contains_key(&key.name)) {
            self.change(&key.namespace, |space| space.sets.remove(&key.name));
        }
    }

    /// A pod is there that no node was found for.
    pub fn set_pod(&mut self, pod: Unplaced) {
        if self.space(&pod.namespace).and_then(|s| s.pods.get(&pod.uid)) != Some(&pod) {
            let space = self.make(&pod.namespace);
            space.pods.insert(pod.uid.clone(), pod);
        }
    }

    /// A pod is gone, has a node, or does not wait for one, by uid. Most never were here: that costs a look.
    pub fn remove_pod(&mut self, namespace: &str, uid: &str) {
        if self.space(namespace).is_some_and(|s| s.pods.contains_key(uid)) {
            self.change(namespace, |space| space.pods.remove(uid));
        }
    }

    /// How many pods wait that no node was found for.
    #[must_use]
    pub fn pod_count(&self) -> usize {
        self.spaces.values().map(|space| space.pods.len()).sum()
    }

    /// How many pods of a Deployment have been waiting in vain for longer than `threshold`; `None` if there is no such
    /// Deployment. A negative threshold is none.
    #[must_use]
    pub fn unschedulable(&self, key: &Key, threshold: SignedDuration, now: Timestamp) -> Option<i32> {
        let space = self.space(&key.namespace)?;
        let deployment = space.deployments.get(&key.name)?;
        let own = |set: &&ReplicaSet| {
            set.owner.as_ref() == Some(&deployment.uid) && set.template == deployment.template
        };
        let Some(newest) = space.sets.values().filter(own).min_by_key(|set| (set.created, &set.key.name))
        else {
            return Some(0);
        };
        let threshold = threshold.max(SignedDuration::ZERO);
        // A moment beyond the end of time has not passed.
        let passed = |since: Option<Timestamp>| {
            since.is_none_or(|since| since.checked_add(threshold).is_ok_and(|at| at < now))
        };
        let waits = |pod: &&Unplaced| {
            pod.owner == newest.uid && deployment.selector.matches(&pod.labels) && passed(pod.since)
        };
        Some(i32::try_from(space.pods.values().filter(waits).count()).unwrap_or(i32::MAX))
    }

    fn space(&self, namespace: &str) -> Option<&Space> {
        self.spaces.get(namespace).map(|space| &**space)
    }

    /// A namespace to add to.
    fn make(&mut self, namespace: &Arc<str>) -> &mut Space {
        Arc::make_mut(Arc::make_mut(&mut self.spaces).entry(namespace.clone()).or_default())
    }

    /// Takes something out of a namespace, and the namespace when it was the last.
    fn change<T>(&mut self, namespace: &str, change: impl FnOnce(&mut Space) -> T) {
        let spaces = Arc::make_mut(&mut self.spaces);
        if let Some(space) = spaces.get_mut(namespace) {
            change(Arc::make_mut(space));
            if space.is_empty() {
                spaces.remove(namespace);
            }
        }
    }
}

#[cfg(test)]
mod tests;
