//! What was recommended for this pod?
//!
//! Recommendations are made for workloads, not for pods. From a pod one climbs from controller to controller; the
//! nearest one something was recommended for counts. Everything is answered from memory.

use super::Metered;
use super::need::Day;
use crate::object::Key;
use crate::select::Lookup;
use crate::view::Owner;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// How many controllers to climb, the pod's own included.
const LEVELS: usize = 5;

/// The workload a recommendation is for. Versions of its API do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadRef {
    /// The API group, such as `apps`.
    pub group: Arc<str>,
    /// `Deployment`, `StatefulSet`, …
    pub kind: Arc<str>,
    pub key: Key,
}

impl WorkloadRef {
    /// The workload that owns something in that namespace.
    #[must_use]
    pub fn of(namespace: &Arc<str>, owner: &Owner) -> Self {
        Self {
            group: owner.group.clone(),
            kind: owner.kind.clone(),
            key: Key::new(namespace.clone(), owner.name.clone()),
        }
    }

    /// The same under the group all its spellings share: workloads moved from `extensions` to `apps`.
    fn canonical(mut self) -> Self {
        let moved = matches!(&*self.kind, "Deployment" | "DaemonSet" | "ReplicaSet");
        if moved && &*self.group == "extensions" {
            self.group = "apps".into();
        }
        self
    }
}

impl fmt::Display for WorkloadRef {
    /// `Deployment shop/web`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.key)
    }
}

/// What was recommended for one container; `None` where nothing was, or nothing readable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Advice {
    /// CPU in billionths of a core.
    pub cpu_nano: Option<i64>,
    pub memory_bytes: Option<i64>,
}

impl Advice {
    /// One of the two.
    #[must_use]
    pub fn get(&self, resource: Metered) -> Option<i64> {
        match resource {
            Metered::Cpu => self.cpu_nano,
            Metered::Memory => self.memory_bytes,
        }
    }
}

/// Where in its object a recommendation was written; this changed over the years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Form {
    /// YAML in the text `status.recommendedValue`.
    #[default]
    Value,
    /// A patch in the text `status.recommendedInfo`.
    Patch,
    /// Fields of `status.resourceRequest`.
    Typed,
    /// YAML in an annotation of the workload itself.
    Annotation,
}

/// What was recommended for the containers of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recommendation {
    /// For which workload.
    pub target: WorkloadRef,
    /// For which container what.
    pub containers: BTreeMap<Arc<str>, Advice>,
    /// Which container uses how much CPU at which hour of the day, as far as that is known.
    pub days: BTreeMap<Arc<str>, Day>,
    /// Does it say that the last attempt to renew it succeeded? If not, the figures may be those of an earlier one.
    pub success: bool,
    /// What it says about that, if anything.
    pub message: Option<Arc<str>>,
    /// When it was last renewed, or that was last attempted.
    pub updated: Option<Timestamp>,
    /// Where it was read from: `namespace/name` of its object, or the workload as it displays.
    pub name: Arc<str>,
    pub shape: Form,
}

impl Recommendation {
    /// Larger is better: objects before annotations, which are copies of them; what succeeded; what is newest;
    /// then the first by name.
    fn rank(&self) -> (bool, bool, Option<Timestamp>, Reverse<&str>) {
        (self.shape != Form::Annotation, self.success, self.updated, Reverse(&self.name))
    }
}

/// All recommendations and who controls whom.
#[derive(Clone, Debug, Default)]
pub struct Index {
    /// By workload, the best first.
    advice: BTreeMap<WorkloadRef, Vec<Recommendation>>,
    /// For which workload, by name.
    names: BTreeMap<Arc<str>, WorkloadRef>,
    /// Of workloads that have a controller: which one.
    controllers: BTreeMap<WorkloadRef, Owner>,
}

impl Index {
    /// Adds a recommendation. One of the same name replaces the earlier one, even if it was for another workload.
    pub fn add(&mut self, new: Recommendation) {
        self.remove(&new.name);
        let target = new.target.clone().canonical();
        self.names.insert(new.name.clone(), target.clone());
        let all = self.advice.entry(target).or_default();
        let at = all.partition_point(|have| have.rank() > new.rank());
        all.insert(at, new);
    }

    /// Forgets the recommendation of that name; a workload's own has the name the workload displays as.
    pub fn remove(&mut self, name: &str) {
        let Some(target) = self.names.remove(name) else { return };
        if let Some(all) = self.advice.get_mut(&target) {
            all.retain(|have| &*have.name != name);
            if all.is_empty() {
                self.advice.remove(&target);
            }
        }
    }

    /// Notes who controls a workload, or that nobody does.
    pub fn controlled(&mut self, workload: WorkloadRef, by: Option<Owner>) {
        let workload = workload.canonical();
        match by {
            Some(owner) => drop(self.controllers.insert(workload, owner)),
            None => drop(self.controllers.remove(&workload)),
        }
    }

    /// The best recommendation for exactly that workload.
    #[must_use]
    pub fn get(&self, target: &WorkloadRef) -> Option<&Recommendation> {
        self.advice.get(&target.clone().canonical())?.first()
    }

    /// The recommendation for a pod of that namespace and controller, with those labels.
    pub fn find<L: Lookup + ?Sized>(
        &self,
        namespace: &Arc<str>,
        controller: Option<&Owner>,
        labels: &L,
    ) -> Option<&Recommendation> {
        if self.advice.is_empty() {
            return None;
        }
        let mut at = WorkloadRef::of(namespace, controller?).canonical();
        for _ in 0..LEVELS {
            if let Some(found) = self.get(&at) {
                return Some(found);
            }
            at = match self.controllers.get(&at) {
                Some(owner) => WorkloadRef::of(namespace, owner).canonical(),
                None => self.by_hash(&at, labels)?,
            };
        }
        None
    }

    /// Without the `ReplicaSet` at hand: a pod template's hash ends the name of the set, and what comes before it
    /// is the name of whoever made the set. Only such that are known of.
    fn by_hash<L: Lookup + ?Sized>(&self, set: &WorkloadRef, labels: &L) -> Option<WorkloadRef> {
        if (&*set.group, &*set.kind) != ("apps", "ReplicaSet") {
            return None;
        }
        let name = set.key.name.strip_suffix(labels.value("pod-template-hash")?)?.strip_suffix('-')?;
        let maker = |(group, kind): (&str, &str)| WorkloadRef {
            group: group.into(),
            kind: kind.into(),
            key: Key::new(set.key.namespace.clone(), name),
        };
        let known = |t: &WorkloadRef| self.advice.contains_key(t) || self.controllers.contains_key(t);
        [("apps", "Deployment"), ("argoproj.io", "Rollout")].into_iter().map(maker).find(known)
    }
}

#[cfg(test)]
mod tests;
