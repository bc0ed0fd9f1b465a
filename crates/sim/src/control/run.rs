//! The loops of the controllers: what changed is looked at, what is decided is written.

use super::{budget, deployment, replica_set};
use crate::cluster::{
    Cluster, Deployment, Failure, Key, ObjectMeta, Owner, Patch, Pod, ReplicaSet, resource,
};
use crate::tell::{About, Event, Teller};
use crate::world::Counts;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
use loadline_services::cluster::events::Severity;
use loadline_services::cluster::queue::{self as work, Queue};
use loadline_services::cluster::write::Written;
use loadline_services::cluster::{Cause, Resource};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// News of many pods are looked at together: a thousand pods that start are a few dozen looks, not a thousand.
const GATHER: Duration = Duration::from_millis(25);
/// Requests under way at a time for one replica set.
const AT_ONCE: usize = 8;

#[derive(Debug)]
pub struct Controllers {
    cluster: Arc<Cluster>,
    deployments: Arc<Queue>,
    sets: Arc<Queue>,
    budgets: Arc<Queue>,
    tell: Teller,
    counts: Arc<Counts>,
}

impl Controllers {
    pub fn new(cluster: Arc<Cluster>, tell: Teller, counts: Arc<Counts>) -> Arc<Self> {
        let controllers = Arc::new(Self {
            cluster,
            deployments: Arc::default(),
            sets: Arc::default(),
            budgets: Arc::default(),
            tell,
            counts,
        });
        controllers.listen();
        controllers
    }

    fn listen(self: &Arc<Self>) {
        let this = Arc::downgrade(self);
        self.cluster.deployments.listen(move |old, new| {
            let (Some(this), Some(one)) = (this.upgrade(), new.or(old)) else { return };
            this.deployments.add(one.meta.id.key.clone());
        });
        let this = Arc::downgrade(self);
        self.cluster.sets.listen(move |old, new| {
            let (Some(this), Some(one)) = (this.upgrade(), new.or(old)) else { return };
            this.sets.add(one.meta.id.key.clone());
            wake_owner(&one.meta, "Deployment", &this.deployments);
        });
        let this = Arc::downgrade(self);
        self.cluster.pods.listen(move |old, new| {
            let (Some(this), Some(pod)) = (this.upgrade(), new.or(old)) else { return };
            wake_owner(&pod.meta, "ReplicaSet", &this.sets);
            let budgets = this.cluster.budgets.within(&pod.meta.id.key.namespace);
            for budget in budgets.iter().filter(|budget| budget.selector.matches(&pod.meta.labels)) {
                this.budgets.add_after(budget.meta.id.key.clone(), GATHER);
            }
            // A Deployment that recreates waits for the last old pod.
            if new.is_none()
                && let Some(owner) = &pod.meta.owner
                && let Some(set) =
                    this.cluster.sets.get(&Key::new(pod.meta.id.key.namespace.clone(), owner.name.as_str()))
            {
                wake_owner(&set.meta, "Deployment", &this.deployments);
            }
        });
        let this = Arc::downgrade(self);
        self.cluster.budgets.listen(move |_, new| {
            let (Some(this), Some(one)) = (this.upgrade(), new) else { return };
            this.budgets.add(one.meta.id.key.clone());
        });
    }

    pub fn start(self: &Arc<Self>, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        let this = self.clone();
        work::run("deployments", &self.deployments, 2, (tasks, stop), move |key| {
            let this = this.clone();
            async move { this.deployment(&key).await }
        });
        let this = self.clone();
        work::run("replica sets", &self.sets, 4, (tasks, stop), move |key| {
            let this = this.clone();
            async move { this.set(&key).await }
        });
        let this = self.clone();
        work::run("disruption budgets", &self.budgets, 2, (tasks, stop), move |key| {
            let this = this.clone();
            async move { this.budget(&key).await }
        });
    }

    async fn set(&self, key: &Key) -> Result<Option<Duration>, Failure> {
        let Some(set) = self.cluster.sets.get(key) else { return Ok(None) };
        let pods = self.cluster.pods.under(&set.meta.id.uid);
        // Where pods crowd only matters when some have to go.
        let too_many =
            pods.iter().filter(|pod| pod.is_active()).count() > usize::try_from(set.replicas).unwrap_or(0);
        let crowds = if too_many { self.crowds(&set) } else { BTreeMap::new() };
        let plan = replica_set::plan(&set, &pods, &crowds, Timestamp::now());
        // The status first: it speaks of the pods that were seen.
        if plan.status != set.status {
            let patch = json!({"metadata": {"uid": &*set.meta.id.uid}, "status": plan.status});
            match self.cluster.write.patch(resource::REPLICA_SETS.status(), key, Patch::Merge, &patch).await {
                Ok(answer) => self.cluster.sets.wrote(&answer),
                Err(error) if error.is_not_found() || error.is_conflict() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        self.make(&set, plan.create).await?;
        futures::stream::iter(plan.delete)
            .map(Ok)
            .try_for_each_concurrent(AT_ONCE, |pod| self.unmake(&set, pod))
            .await?;
        Ok(plan.look_again.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }

    async fn make(&self, set: &ReplicaSet, count: usize) -> Result<(), Failure> {
        if count == 0 {
            return Ok(());
        }
        let object = replica_set::pod(set);
        let made = futures::stream::iter(0..count).map(Ok).try_for_each_concurrent(AT_ONCE, async |_| {
            let answer =
                self.cluster.write.create(resource::PODS, &set.meta.id.key.namespace, &object).await?;
            let name = answer.read::<Pod>().map(|(meta, _)| meta.key.name).unwrap_or_default();
            self.cluster.pods.wrote(&answer);
            self.counts.made.add();
            self.event(
                "replicaset-controller",
                (resource::REPLICA_SETS, &set.meta),
                "SuccessfulCreate",
                format!("Created pod: {name}"),
            );
            Ok::<_, Failure>(())
        });
        made.await.inspect_err(|error: &Failure| {
            if matches!(error.cause, Cause::Forbidden | Cause::Invalid) {
                let about = About { resource: resource::REPLICA_SETS, meta: &set.meta };
                let event = Event {
                    component: "replicaset-controller",
                    host: None,
                    severity: Severity::Warning,
                    reason: "FailedCreate",
                    note: format!("Error creating: {}", error.message),
                };
                self.tell.event(&about, event);
            }
        })
    }

    async fn unmake(&self, set: &ReplicaSet, pod: Arc<Pod>) -> Result<(), Failure> {
        let key = &pod.meta.id.key;
        match self.cluster.write.delete(resource::PODS, &pod.meta.id, None).await {
            Ok(answer) => {
                // A pod that went at once answers as it was; what matters here is that it goes.
                if let Some((meta, Ok(mut gone))) =
                    answer.read::<Pod>().filter(|(meta, _)| meta.uid == pod.meta.id.uid)
                {
                    gone.meta.deleted = gone.meta.deleted.or(Some(Timestamp::now()));
                    self.cluster.pods.put(meta, gone);
                }
                let message = format!("Deleted pod: {}", key.name);
                self.event(
                    "replicaset-controller",
                    (resource::REPLICA_SETS, &set.meta),
                    "SuccessfulDelete",
                    message,
                );
                Ok(())
            }
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Pods per node over all replica sets of the same Deployment.
    fn crowds(&self, set: &ReplicaSet) -> BTreeMap<String, usize> {
        let siblings = match &set.meta.owner {
            Some(owner) => {
                self.cluster.sets.under(&owner.uid).iter().map(|s| s.meta.id.uid.clone()).collect()
            }
            None => vec![set.meta.id.uid.clone()],
        };
        let mut crowds = BTreeMap::new();
        for pod in siblings.iter().flat_map(|uid| self.cluster.pods.under(uid)).filter(|pod| pod.is_active())
        {
            if let Some(node) = &pod.node {
                *crowds.entry(node.clone()).or_default() += 1;
            }
        }
        crowds
    }

    async fn deployment(&self, key: &Key) -> Result<Option<Duration>, Failure> {
        let Some(d) = self.cluster.deployments.get(key) else { return Ok(None) };
        let sets = self.cluster.sets.under(&d.meta.id.uid);
        let plan = deployment::plan(&d, &sets, self.has_old_pods(&d, &sets), Timestamp::now());
        for (name, change) in &plan.changes {
            self.change(&d, &sets, name, change).await?;
        }
        if let Some(object) = &plan.create {
            self.create_set(&d, object).await?;
        }
        for set in &plan.delete {
            match self.cluster.write.delete(resource::REPLICA_SETS, &set.meta.id, None).await {
                Err(error) if !error.is_not_found() && !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
        if let Some(revision) = &plan.revision {
            let patch = json!({"metadata": {"uid": &*d.meta.id.uid, "annotations": {"deployment.kubernetes.io/revision": revision}}});
            self.wrote_deployment(
                &d,
                self.cluster.write.patch(resource::DEPLOYMENTS.whole(), key, Patch::Merge, &patch).await,
            )?;
        }
        if plan.status != d.status {
            let patch = json!({"metadata": {"uid": &*d.meta.id.uid}, "status": plan.status});
            self.wrote_deployment(
                &d,
                self.cluster.write.patch(resource::DEPLOYMENTS.status(), key, Patch::Merge, &patch).await,
            )?;
            self.tell_progress(&d, &plan.status);
        }
        Ok(plan.look_again.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }

    fn has_old_pods(&self, d: &Deployment, sets: &[Arc<ReplicaSet>]) -> bool {
        let old = sets.iter().filter(|set| !deployment::same_template(&set.template, &d.template));
        let mut pods = old.flat_map(|set| self.cluster.pods.under(&set.meta.id.uid));
        pods.any(|pod| !pod.phase.is_over())
    }

    async fn change(
        &self,
        d: &Deployment,
        sets: &[Arc<ReplicaSet>],
        key: &Key,
        change: &deployment::Change,
    ) -> Result<(), Failure> {
        let Some(set) = sets.iter().find(|set| set.meta.id.key == *key) else { return Ok(()) };
        // With the revision that was looked at: a size decided on old news must not be written.
        let mut patch = json!({"metadata": {
            "uid": &*set.meta.id.uid, "resourceVersion": set.meta.id.revision.map(|revision| revision.to_string()),
        }});
        if !change.annotations.is_empty() {
            patch["metadata"]["annotations"] = json!(change.annotations);
        }
        if let Some(replicas) = change.replicas {
            patch["spec"]["replicas"] = json!(replicas);
        }
        if let Some(seconds) = change.min_ready_seconds {
            patch["spec"]["minReadySeconds"] = json!(seconds);
        }
        let answer =
            self.cluster.write.patch(resource::REPLICA_SETS.whole(), key, Patch::Merge, &patch).await?;
        self.cluster.sets.wrote(&answer);
        if let Some(replicas) = change.replicas {
            self.tell_scaled(d, &key.name, set.replicas, replicas);
        }
        Ok(())
    }

    async fn create_set(&self, d: &Deployment, object: &Value) -> Result<(), Failure> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self.cluster.write.create(resource::REPLICA_SETS, &d.meta.id.key.namespace, object).await {
            Ok(answer) => {
                self.cluster.sets.wrote(&answer);
                let replicas = object["spec"]["replicas"].as_i64().unwrap_or(0);
                self.tell_scaled(d, name, 0, replicas);
                Ok(())
            }
            Err(error) if error.is_conflict() => {
                let key = Key::new(d.meta.id.key.namespace.clone(), name);
                let ours = self.cluster.sets.get(&key);
                if ours.is_some_and(|set| set.meta.is_owned_by(&d.meta.id.uid)) {
                    return Ok(());
                }
                // Somebody else has the name: the next try takes another.
                let count = d.status.collision_count.unwrap_or(0) + 1;
                let patch = json!({"status": {"collisionCount": count}});
                let answer = self
                    .cluster
                    .write
                    .patch(resource::DEPLOYMENTS.status(), &d.meta.id.key, Patch::Merge, &patch)
                    .await?;
                self.cluster.deployments.wrote(&answer);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn wrote_deployment(&self, d: &Deployment, answer: Result<Written, Failure>) -> Result<(), Failure> {
        match answer {
            Ok(answer) => self.cluster.deployments.wrote(&answer),
            Err(error) if error.is_not_found() => {
                tracing::debug!(deployment = %d.meta.id.key, "gone meanwhile");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn tell_scaled(&self, d: &Deployment, set: &str, from: i64, to: i64) {
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {set} from {from} to {to}");
        self.tell.notice("deployment", &d.meta.id.key, format!("scaled {way} {set} from {from} to {to}"));
        self.event("deployment-controller", (resource::DEPLOYMENTS, &d.meta), "ScalingReplicaSet", message);
    }

    fn tell_progress(&self, d: &Deployment, status: &crate::cluster::DeploymentStatus) {
        let complete = |s: &crate::cluster::DeploymentStatus| {
            let wanted = d.replicas;
            s.observed_generation == d.meta.generation
                && s.updated_replicas == wanted
                && s.available_replicas == wanted
                && s.replicas == wanted
        };
        if complete(status) && !complete(&d.status) {
            self.tell.notice(
                "deployment",
                &d.meta.id.key,
                format!("{} of {} available", d.replicas, d.replicas),
            );
        }
    }

    async fn budget(&self, key: &Key) -> Result<Option<Duration>, Failure> {
        let Some(budget) = self.cluster.budgets.get(key) else { return Ok(None) };
        let mut pods = self.cluster.pods.within(&key.namespace);
        pods.retain(|pod| budget.selector.matches(&pod.meta.labels) && !pod.phase.is_over());
        let plan = budget::plan(&budget, &pods, &|pod| self.wanted(pod), Timestamp::now());
        if !same_status(&plan.status, &budget.status) {
            // With the revision that was looked at: an eviction granted meanwhile must not be forgotten.
            let mut status = plan.status.clone();
            if status.get("disruptedPods").is_none() {
                status["disruptedPods"] = Value::Null;
            } else if let Some(map) = status["disruptedPods"].as_object_mut() {
                for name in budget.disrupted.keys() {
                    map.entry(name).or_insert(Value::Null);
                }
            }
            let patch = json!({
                "metadata": {"uid": &*budget.meta.id.uid, "resourceVersion": budget.meta.id.revision.map(|revision| revision.to_string())},
                "status": status,
            });
            match self.cluster.write.patch(resource::BUDGETS.status(), key, Patch::Merge, &patch).await {
                Ok(answer) => self.cluster.budgets.wrote(&answer),
                Err(error) if error.is_not_found() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(plan.look_again.and_then(|time| Duration::try_from(time).ok()))
    }

    /// What the workload of a pod wants: that of its Deployment, if it has one.
    fn wanted(&self, pod: &Pod) -> Result<Option<(String, i64)>, String> {
        let namespace = &pod.meta.id.key.namespace;
        let Some(Owner { kind, name, uid }) = &pod.meta.owner else { return Ok(None) };
        if kind != "ReplicaSet" {
            return Err(format!("{kind}s are not simulated, so the size of {name} is not known"));
        }
        let set = self
            .cluster
            .sets
            .get(&Key::new(namespace.clone(), name.as_str()))
            .filter(|set| set.meta.id.uid == *uid);
        let Some(set) = set else { return Err(format!("replica set {name} is gone")) };
        let owner = set.meta.owner.as_ref().filter(|owner| owner.kind == "Deployment");
        let deployment = owner.and_then(|owner| {
            self.cluster.deployments.get(&Key::new(namespace.clone(), owner.name.as_str()))
        });
        Ok(Some(match deployment {
            Some(d) => (d.meta.id.uid.to_string(), d.replicas),
            None => (set.meta.id.uid.to_string(), set.replicas),
        }))
    }

    fn event(
        &self,
        component: &'static str,
        (resource, meta): (Resource, &ObjectMeta),
        reason: &'static str,
        note: String,
    ) {
        let about = About { resource, meta };
        self.tell.event(&about, Event { component, host: None, severity: Severity::Normal, reason, note });
    }
}

/// Has the controller an object belongs to looked at.
fn wake_owner(meta: &ObjectMeta, kind: &str, queue: &Queue) {
    if let Some(owner) = meta.owner.as_ref().filter(|owner| owner.kind == kind) {
        queue.add_after(Key::new(meta.id.key.namespace.clone(), owner.name.as_str()), GATHER);
    }
}

/// Are two statuses of a budget the same, with what is left out counted as nothing?
fn same_status(a: &Value, b: &Value) -> bool {
    let plain = |status: &Value| {
        let mut status = status.clone();
        if let Some(map) = status.as_object_mut() {
            map.retain(|_, v| !v.is_null() && v.as_object().is_none_or(|o| !o.is_empty()));
        }
        status
    };
    plain(a) == plain(b)
}
