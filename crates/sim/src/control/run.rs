//! The loops of the controllers: what changed is looked at, what is decided is written.

use super::{budget, deployment, replica_set};
use crate::cluster::{Budget, Cluster, Deployment, Error, Key, Meta, Owner, Pod, ReplicaSet};
use crate::tell::{About, Event, Teller};
use crate::work::{self, Queue};
use crate::world::Counts;
use futures::{StreamExt, TryStreamExt};
use jiff::Timestamp;
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
            this.deployments.add(one.meta.key.clone());
        });
        let this = Arc::downgrade(self);
        self.cluster.sets.listen(move |old, new| {
            let (Some(this), Some(one)) = (this.upgrade(), new.or(old)) else { return };
            this.sets.add(one.meta.key.clone());
            wake_owner(&one.meta, "Deployment", &this.deployments);
        });
        let this = Arc::downgrade(self);
        self.cluster.pods.listen(move |old, new| {
            let (Some(this), Some(pod)) = (this.upgrade(), new.or(old)) else { return };
            wake_owner(&pod.meta, "ReplicaSet", &this.sets);
            let budgets = this.cluster.budgets.within(&pod.meta.key.namespace);
            for budget in budgets.iter().filter(|budget| budget.selector.matches(&pod.meta.labels)) {
                this.budgets.add_after(budget.meta.key.clone(), GATHER);
            }
            // A Deployment that recreates waits for the last old pod.
            if new.is_none()
                && let Some(owner) = &pod.meta.owner
                && let Some(set) = this.cluster.sets.get(&Key::new(&pod.meta.key.namespace, &owner.name))
            {
                wake_owner(&set.meta, "Deployment", &this.deployments);
            }
        });
        let this = Arc::downgrade(self);
        self.cluster.budgets.listen(move |_, new| {
            let (Some(this), Some(one)) = (this.upgrade(), new) else { return };
            this.budgets.add(one.meta.key.clone());
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

    async fn set(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(set) = self.cluster.sets.get(key) else { return Ok(None) };
        let pods = self.cluster.pods.owned_by(&set.meta.uid);
        // Where pods crowd only matters when some have to go.
        let too_many =
            pods.iter().filter(|pod| pod.is_active()).count() > usize::try_from(set.replicas).unwrap_or(0);
        let crowds = if too_many { self.crowds(&set) } else { BTreeMap::new() };
        let plan = replica_set::plan(&set, &pods, &crowds, Timestamp::now());
        // The status first: it speaks of the pods that were seen.
        if plan.status != set.status {
            let patch = json!({"metadata": {"uid": set.meta.uid}, "status": plan.status});
            match self.cluster.write.patch::<ReplicaSet>(key, "/status", &patch).await {
                Ok(answer) => self.cluster.sets.wrote(answer),
                Err(error) if error.is_gone() || error.is_conflict() => return Ok(None),
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

    async fn make(&self, set: &ReplicaSet, count: usize) -> Result<(), Error> {
        if count == 0 {
            return Ok(());
        }
        let object = replica_set::pod(set);
        let made = futures::stream::iter(0..count).map(Ok).try_for_each_concurrent(AT_ONCE, async |_| {
            let answer = self.cluster.write.create::<Pod>(&set.meta.key.namespace, &object).await?;
            let name = answer["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            self.cluster.pods.wrote(answer);
            self.counts.made.add();
            self.event(
                "replicaset-controller",
                ("ReplicaSet", &set.meta),
                "SuccessfulCreate",
                format!("Created pod: {name}"),
            );
            Ok::<_, Error>(())
        });
        made.await.inspect_err(|error: &Error| {
            if matches!(error.code(), Some(403 | 422)) {
                let about = About { api_version: "apps/v1", kind: "ReplicaSet", meta: &set.meta };
                let message = format!("Error creating: {}", root(error));
                self.tell.event(
                    &about,
                    &Event {
                        component: "replicaset-controller",
                        host: None,
                        warning: true,
                        reason: "FailedCreate",
                        message,
                    },
                );
            }
        })
    }

    async fn unmake(&self, set: &ReplicaSet, pod: Arc<Pod>) -> Result<(), Error> {
        let key = &pod.meta.key;
        match self.cluster.write.delete::<Pod>(key, &pod.meta.uid, None).await {
            Ok(mut answer) => {
                // A pod that went at once answers as it was; what matters here is that it goes.
                if answer["kind"] == "Pod" {
                    if answer["metadata"]["deletionTimestamp"].is_null() {
                        let now = Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
                        answer["metadata"]["deletionTimestamp"] = json!(now);
                    }
                    self.cluster.pods.wrote(answer);
                }
                let message = format!("Deleted pod: {}", key.name);
                self.event("replicaset-controller", ("ReplicaSet", &set.meta), "SuccessfulDelete", message);
                Ok(())
            }
            Err(error) if error.is_gone() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Pods per node over all replica sets of the same Deployment.
    fn crowds(&self, set: &ReplicaSet) -> BTreeMap<String, usize> {
        let siblings = match &set.meta.owner {
            Some(owner) => {
                self.cluster.sets.owned_by(&owner.uid).iter().map(|s| s.meta.uid.clone()).collect()
            }
            None => vec![set.meta.uid.clone()],
        };
        let mut crowds = BTreeMap::new();
        for pod in
            siblings.iter().flat_map(|uid| self.cluster.pods.owned_by(uid)).filter(|pod| pod.is_active())
        {
            if let Some(node) = &pod.node {
                *crowds.entry(node.clone()).or_default() += 1;
            }
        }
        crowds
    }

    async fn deployment(&self, key: &Key) -> Result<Option<Duration>, Error> {
        let Some(d) = self.cluster.deployments.get(key) else { return Ok(None) };
        let sets = self.cluster.sets.owned_by(&d.meta.uid);
        let plan = deployment::plan(&d, &sets, self.has_old_pods(&d, &sets), Timestamp::now());
        for (name, change) in &plan.changes {
            self.change(&d, &sets, name, change).await?;
        }
        if let Some(object) = &plan.create {
            self.create_set(&d, object).await?;
        }
        for set in &plan.delete {
            match self.cluster.write.delete::<ReplicaSet>(&set.meta.key, &set.meta.uid, None).await {
                Err(error) if !error.is_gone() && !error.is_conflict() => return Err(error),
                _ => {}
            }
        }
        if let Some(revision) = &plan.revision {
            let patch = json!({"metadata": {"uid": d.meta.uid, "annotations": {"deployment.kubernetes.io/revision": revision}}});
            self.wrote_deployment(&d, self.cluster.write.patch::<Deployment>(key, "", &patch).await)?;
        }
        if plan.status != d.status {
            let patch = json!({"metadata": {"uid": d.meta.uid}, "status": plan.status});
            self.wrote_deployment(&d, self.cluster.write.patch::<Deployment>(key, "/status", &patch).await)?;
            self.tell_progress(&d, &plan.status);
        }
        Ok(plan.look_again.map(|seconds| Duration::from_secs(seconds.unsigned_abs())))
    }

    fn has_old_pods(&self, d: &Deployment, sets: &[Arc<ReplicaSet>]) -> bool {
        let old = sets.iter().filter(|set| !deployment::same_template(&set.template, &d.template));
        let mut pods = old.flat_map(|set| self.cluster.pods.owned_by(&set.meta.uid));
        pods.any(|pod| !pod.phase.is_over())
    }

    async fn change(
        &self,
        d: &Deployment,
        sets: &[Arc<ReplicaSet>],
        key: &Key,
        change: &deployment::Change,
    ) -> Result<(), Error> {
        let Some(set) = sets.iter().find(|set| set.meta.key == *key) else { return Ok(()) };
        // With the revision that was looked at: a size decided on old news must not be written.
        let mut patch = json!({"metadata": {
            "uid": set.meta.uid, "resourceVersion": set.meta.revision.to_string(),
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
        let answer = self.cluster.write.patch::<ReplicaSet>(key, "", &patch).await?;
        self.cluster.sets.wrote(answer);
        if let Some(replicas) = change.replicas {
            self.tell_scaled(d, &key.name, set.replicas, replicas);
        }
        Ok(())
    }

    async fn create_set(&self, d: &Deployment, object: &Value) -> Result<(), Error> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self.cluster.write.create::<ReplicaSet>(&d.meta.key.namespace, object).await {
            Ok(answer) => {
                self.cluster.sets.wrote(answer);
                let replicas = object["spec"]["replicas"].as_i64().unwrap_or(0);
                self.tell_scaled(d, name, 0, replicas);
                Ok(())
            }
            Err(error) if error.is_conflict() => {
                let key = Key::new(&d.meta.key.namespace, name);
                let ours = self.cluster.sets.get(&key);
                if ours.is_some_and(|set| set.meta.is_owned_by(&d.meta.uid)) {
                    return Ok(());
                }
                // Somebody else has the name: the next try takes another.
                let count = d.status.collision_count.unwrap_or(0) + 1;
                let patch = json!({"status": {"collisionCount": count}});
                let answer = self.cluster.write.patch::<Deployment>(&d.meta.key, "/status", &patch).await?;
                self.cluster.deployments.wrote(answer);
                Err(error)
            }
            Err(error) => Err(error),
        }
    }

    fn wrote_deployment(&self, d: &Deployment, answer: Result<Value, Error>) -> Result<(), Error> {
        match answer {
            Ok(answer) => self.cluster.deployments.wrote(answer),
            Err(error) if error.is_gone() => tracing::debug!(deployment = %d.meta.key, "gone meanwhile"),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    fn tell_scaled(&self, d: &Deployment, set: &str, from: i64, to: i64) {
        let way = if to > from { "up" } else { "down" };
        let message = format!("Scaled {way} replica set {set} from {from} to {to}");
        self.tell.notice("deployment", &d.meta.key, format!("scaled {way} {set} from {from} to {to}"));
        self.event("deployment-controller", ("Deployment", &d.meta), "ScalingReplicaSet", message);
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
                &d.meta.key,
                format!("{} of {} available", d.replicas, d.replicas),
            );
        }
    }

    async fn budget(&self, key: &Key) -> Result<Option<Duration>, Error> {
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
                "metadata": {"uid": budget.meta.uid, "resourceVersion": budget.meta.revision.to_string()},
                "status": status,
            });
            match self.cluster.write.patch::<Budget>(key, "/status", &patch).await {
                Ok(answer) => self.cluster.budgets.wrote(answer),
                Err(error) if error.is_gone() => return Ok(None),
                Err(error) => return Err(error),
            }
        }
        Ok(plan.look_again.and_then(|time| Duration::try_from(time).ok()))
    }

    /// What the workload of a pod wants: that of its Deployment, if it has one.
    fn wanted(&self, pod: &Pod) -> Result<Option<(String, i64)>, String> {
        let namespace = &pod.meta.key.namespace;
        let Some(Owner { kind, name, uid }) = &pod.meta.owner else { return Ok(None) };
        if kind != "ReplicaSet" {
            return Err(format!("{kind}s are not simulated, so the size of {name} is not known"));
        }
        let set = self.cluster.sets.get(&Key::new(namespace, name)).filter(|set| set.meta.uid == *uid);
        let Some(set) = set else { return Err(format!("replica set {name} is gone")) };
        let owner = set.meta.owner.as_ref().filter(|owner| owner.kind == "Deployment");
        let deployment =
            owner.and_then(|owner| self.cluster.deployments.get(&Key::new(namespace, &owner.name)));
        Ok(Some(match deployment {
            Some(d) => (d.meta.uid.clone(), d.replicas),
            None => (set.meta.uid.clone(), set.replicas),
        }))
    }

    fn event(
        &self,
        component: &'static str,
        (kind, meta): (&'static str, &Meta),
        reason: &'static str,
        message: String,
    ) {
        let about = About { api_version: "apps/v1", kind, meta };
        self.tell.event(&about, &Event { component, host: None, warning: false, reason, message });
    }
}

/// Has the controller an object belongs to looked at.
fn wake_owner(meta: &Meta, kind: &str, queue: &Queue) {
    if let Some(owner) = meta.owner.as_ref().filter(|owner| owner.kind == kind) {
        queue.add_after(Key::new(&meta.key.namespace, &owner.name), GATHER);
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

fn root(error: &Error) -> String {
    let mut at: &dyn std::error::Error = error;
    while let Some(source) = at.source() {
        at = source;
    }
    at.to_string()
}
