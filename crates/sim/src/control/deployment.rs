//! Which replica sets does a Deployment make, scale or delete, and what does it say?
//!
//! One call is one step: the server's answers change what is there, and the next call goes on from that. So
//! nothing has to be remembered between steps, and a step that fails half way is simply decided anew.

mod condition;
mod rolling;
mod template;

use crate::cluster::{Deployment, DeploymentStatus, Key, ReplicaSet, Strategy};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use template::{hash, same_template};

const REVISION: &str = "deployment.kubernetes.io/revision";
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
const MAX: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a Deployment that its replica sets do not get.
const OWN: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    "deployment.kubernetes.io/revision-history",
    DESIRED,
    MAX,
    "deprecated.deployment.rollback.to",
];

/// A change to a replica set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Change {
    /// A new size.
    pub replicas: Option<i64>,
    /// Annotations to set.
    pub annotations: BTreeMap<String, String>,
    /// A new time pods must be ready.
    pub min_ready_seconds: Option<i64>,
}

/// What a Deployment needs.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// A replica set to make.
    pub create: Option<Value>,
    /// Replica sets to change.
    pub changes: BTreeMap<Key, Change>,
    /// Replica sets nobody needs any more.
    pub delete: Vec<Arc<ReplicaSet>>,
    /// The revision to note on the Deployment.
    pub revision: Option<String>,
    /// What it says now.
    pub status: DeploymentStatus,
    /// Seconds until lack of progress becomes a failure.
    pub look_again: Option<i64>,
}

/// What a step looks at.
struct World<'a> {
    deployment: &'a Deployment,
    /// The replica set with the wanted template.
    new: Option<&'a Arc<ReplicaSet>>,
    /// All others, oldest first.
    old: Vec<&'a Arc<ReplicaSet>>,
}

impl<'a> World<'a> {
    fn new(deployment: &'a Deployment, sets: &'a [Arc<ReplicaSet>]) -> Self {
        let mut sorted: Vec<_> = sets.iter().collect();
        sorted.sort_by(|a, b| (a.meta.created, &a.meta.id.key).cmp(&(b.meta.created, &b.meta.id.key)));
        let new = sorted.iter().copied().find(|set| same_template(&set.template, &deployment.template));
        sorted.retain(|set| new.is_none_or(|new| new.meta.id.uid != set.meta.id.uid));
        Self { deployment, new, old: sorted }
    }

    fn all(&self) -> impl Iterator<Item = &'a Arc<ReplicaSet>> + use<'a, '_> {
        self.old.iter().copied().chain(self.new)
    }

    /// How many pods there may be beyond the wanted, and how many may be missing.
    fn slack(&self) -> (i64, i64) {
        let wanted = self.deployment.replicas;
        match &self.deployment.strategy {
            Strategy::Recreate => (0, 0),
            Strategy::Rolling { surge, unavailable } => {
                let (surge, missing) = (surge.of_up(wanted), unavailable.of_down(wanted).min(wanted));
                // With neither, nothing could ever move.
                if surge == 0 && missing == 0 { (0, 1) } else { (surge, missing) }
            }
        }
    }

    /// The most pods there may be.
    fn most(&self) -> i64 {
        self.deployment.replicas + self.slack().0
    }

    fn revision(&self) -> i64 {
        self.old.iter().map(|set| revision(set)).max().unwrap_or(0) + 1
    }
}

fn revision(set: &ReplicaSet) -> i64 {
    set.meta.annotation(REVISION).and_then(|r| r.parse().ok()).unwrap_or(0)
}

/// Decides the next step. `old_pods` says whether pods of old replica sets are still there, for `Recreate`.
#[must_use]
pub fn plan(deployment: &Deployment, sets: &[Arc<ReplicaSet>], old_pods: bool, now: Timestamp) -> Plan {
    let world = World::new(deployment, sets);
    let mut plan = Plan::default();
    let mut created = None;
    if !deployment.meta.is_deleted() {
        if deployment.paused || rolling::is_resized(&world) {
            sync_new(&world, &mut plan);
            rolling::resize(&world, &mut plan);
        } else {
            created = step(&world, old_pods, &mut plan);
        }
    }
    let rolls = !deployment.meta.is_deleted() && !deployment.paused && !rolling::is_resized(&world);
    plan.status = condition::status(&world, created.as_deref(), rolls, now);
    plan.look_again = condition::look_again(&world, &plan.status, now);
    if rolls && condition::is_complete(&world, &plan.status) {
        plan.delete = surplus(&world);
    }
    plan
}

/// One step of a rollout; the name of a replica set that is made.
fn step(world: &World<'_>, old_pods: bool, plan: &mut Plan) -> Option<String> {
    match world.deployment.strategy {
        Strategy::Recreate => {
            let up: Vec<_> = world.old.iter().filter(|set| set.replicas > 0).collect();
            if !up.is_empty() {
                sync_new(world, plan);
                for set in up {
                    rolling::scale(world, plan, set, 0);
                }
                return None;
            }
            if old_pods {
                return None;
            }
        }
        Strategy::Rolling { .. } => {}
    }
    let Some(new) = world.new else {
        let (name, object) = make_new(world);
        plan.create = Some(object);
        plan.revision = Some(world.revision().to_string());
        return Some(name);
    };
    sync_new(world, plan);
    if rolling::grow_new(world, new, plan) || matches!(world.deployment.strategy, Strategy::Recreate) {
        return None;
    }
    rolling::shrink_old(world, plan);
    None
}

/// Brings the annotations of the new replica set up to date, and the revision of the Deployment.
fn sync_new(world: &World<'_>, plan: &mut Plan) {
    let Some(new) = world.new else { return };
    let wanted = world.revision().max(revision(new));
    let mut annotations = inherited(world.deployment);
    annotations.insert(REVISION.to_owned(), wanted.to_string());
    annotations.retain(|name, value| new.meta.annotation(name) != Some(value.as_str()));
    let ready = world.deployment.min_ready_seconds;
    let min_ready_seconds = (new.min_ready_seconds != ready).then_some(ready);
    if !annotations.is_empty() || min_ready_seconds.is_some() {
        let change = plan.changes.entry(new.meta.id.key.clone()).or_default();
        change.annotations.extend(annotations);
        change.min_ready_seconds = min_ready_seconds;
    }
    let text = wanted.to_string();
    if world.deployment.meta.annotation(REVISION) != Some(text.as_str()) {
        plan.revision = Some(text);
    }
}

fn inherited(deployment: &Deployment) -> BTreeMap<String, String> {
    let own = |name: &String| OWN.contains(&name.as_str());
    let given = deployment.meta.annotations.iter();
    given.filter(|(name, _)| !own(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The replica set for the wanted template.
fn make_new(world: &World<'_>) -> (String, Value) {
    let d = world.deployment;
    let hash = hash(&d.template, d.status.collision_count);
    let name = format!("{}-{hash}", d.meta.id.key.name);
    let mut template = d.template.clone();
    template["metadata"]["labels"]["pod-template-hash"] = json!(hash);
    let mut selector = d.selector.clone();
    selector["matchLabels"]["pod-template-hash"] = json!(hash);
    let mut annotations = inherited(d);
    annotations.insert(REVISION.to_owned(), world.revision().to_string());
    annotations.insert(DESIRED.to_owned(), d.replicas.to_string());
    annotations.insert(MAX.to_owned(), world.most().to_string());
    let object = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet",
        "metadata": {
            "name": name, "namespace": &*d.meta.id.key.namespace,
            "labels": template["metadata"]["labels"], "annotations": annotations,
            "ownerReferences": [{
                "apiVersion": "apps/v1", "kind": "Deployment", "name": &*d.meta.id.key.name, "uid": &*d.meta.id.uid,
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "replicas": rolling::first_size(world), "minReadySeconds": d.min_ready_seconds,
            "selector": selector, "template": template,
        },
    });
    (name, object)
}

/// Old replica sets beyond the history that is kept, oldest revision first.
fn surplus(world: &World<'_>) -> Vec<Arc<ReplicaSet>> {
    let idle = |set: &&&Arc<ReplicaSet>| {
        let seen = set.status.observed_generation >= set.meta.generation;
        set.replicas == 0 && set.status.replicas == 0 && seen && !set.meta.is_deleted()
    };
    let keep = usize::try_from(world.deployment.history).unwrap_or(0);
    let mut idle: Vec<_> = world.old.iter().filter(idle).map(|set| Arc::clone(set)).collect();
    idle.sort_by_key(|set| revision(set));
    let drop = world.old.len().saturating_sub(keep).min(idle.len());
    idle.truncate(drop);
    idle
}

#[cfg(test)]
mod tests;
