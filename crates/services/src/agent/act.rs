//! How is a plan carried out? Each step with its own result, and what came of it is what is remembered.

use super::Metrics;
use super::host::{Container, Host};
use super::state::{self, PodObject, State};
use super::tell::Teller;
use super::watched::{Node, Nodes, Taint};
use crate::cluster::resource::NODES;
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Failure, Writer};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::node::COOLING;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::policy::Policy;
use loadline_core::qos::taint::{CONDITION, Closed, KEY};
use loadline_core::qos::{self, NodeSnapshot, Options, Plan, Reply, Results, Victim};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often other pods are looked for in one cycle because somebody may not go.
const PLANS: usize = 3;
/// How often the node is written while others change it, too.
const MARKS: usize = 3;

/// What carrying out takes.
pub(super) struct Agent {
    pub writer: Writer,
    pub host: Arc<dyn Host>,
    pub teller: Teller,
    pub metrics: Metrics,
    pub every: Duration,
}

impl Agent {
    /// One look at every node, and what follows from it.
    pub async fn cycle(&self, state: &mut State, now: Timestamp) {
        let (policy, is_new) = state.policy();
        if is_new {
            for warning in policy.warnings() {
                self.teller.warn_of_rules(warning);
            }
        }
        let due = state.due();
        if due.is_empty() {
            return;
        }
        let usage = self.host.measure(now).await;
        let mut pods = state.pods_by_node();
        for (meta, node) in due {
            let pods = pods.remove(&*meta.key.name).unwrap_or_default();
            let before = std::mem::take(&mut state.memory_mut(&meta.key.name).state);
            let snapshot = state::snapshot(&node, &pods, &usage, before, (now, self.every));
            let target = Target { meta, node, pods };
            let marked = self.protect(&target, &policy, snapshot, state).await;
            if let Some((meta, read)) = marked {
                state.wrote_node(meta, read);
            }
        }
    }

    /// One cycle of one node; the node as it is after it was marked, if it was.
    async fn protect(
        &self,
        target: &Target,
        policy: &Policy,
        mut snapshot: NodeSnapshot,
        state: &mut State,
    ) -> Option<(Meta, Result<Node, Error>)> {
        let mut plan = qos::plan(policy, &snapshot);
        // First the mark: who takes the place of a victim comes at once.
        let marked =
            if snapshot.node.preview { None } else { self.close(target, &plan.closed, snapshot.now).await };
        let mut results = Results::default();
        for attempt in 1..=PLANS {
            results.replies = self.evict(target, &plan, &snapshot).await;
            let all_go = results.replies.values().all(|reply| reply.is_granted() || reply.is_gone());
            if all_go || attempt == PLANS {
                break;
            }
            // From where this cycle began, but knowing who went and who may not.
            snapshot.state.evictions = plan.settle(&results).evictions;
            plan = qos::plan(policy, &snapshot);
        }
        self.write_quotas(target, &plan, &snapshot, &mut results).await;
        let memory = state.memory_mut(&target.meta.key.name);
        self.teller.events(target, &plan, &mut memory.blocked, snapshot.now);
        memory.state = plan.settle(&results);
        marked
    }

    async fn write_quotas(
        &self,
        target: &Target,
        plan: &Plan,
        snapshot: &NodeSnapshot,
        results: &mut Results,
    ) {
        for write in &plan.steps.writes {
            let written = match snapshot.pods.iter().find(|pod| pod.key == write.pod) {
                Some(pod) => {
                    let node = &target.meta.key.name;
                    let of = Container { node, pod_uid: &pod.uid, name: &write.container };
                    self.host.set_quota(&of, write.quota).await.map_err(|error| error.0)
                }
                None => Err("the pod is gone".to_owned()),
            };
            match written {
                Ok(()) => self.teller.wrote(target, plan, snapshot, write),
                Err(error) => {
                    self.metrics.failed_writes.inc();
                    tracing::warn!(pod = %write.pod, container = %write.container, error, "quota not written");
                    results.unwritten.insert((write.pod.clone(), write.container.clone()));
                }
            }
        }
    }

    /// Asks the victims of a plan to go; says what was replied.
    async fn evict(&self, target: &Target, plan: &Plan, snapshot: &NodeSnapshot) -> BTreeMap<Key, Reply> {
        let mut replies = BTreeMap::new();
        for victim in &plan.steps.victims {
            let reply = self.ask(victim).await;
            if reply.is_granted() {
                self.metrics.evicted.inc();
                self.teller.evicted(target, plan, victim, snapshot);
            }
            replies.insert(victim.pod.clone(), reply);
        }
        replies
    }

    /// What is replied when a pod is to go.
    pub(super) async fn ask(&self, victim: &Victim) -> Reply {
        let pod = Meta { key: victim.pod.clone(), uid: victim.uid.clone(), revision: None };
        match self.writer.evict(&pod, Some(victim.grace_seconds)).await {
            Ok(()) => Reply::Granted,
            Err(error) => {
                tracing::info!(pod = %victim.pod, %error, "pod not evicted");
                reply(&error)
            }
        }
    }

    /// Makes the node say that it has too much, or not any more.
    async fn close(
        &self,
        target: &Target,
        closed: &Closed,
        now: Timestamp,
    ) -> Option<(Meta, Result<Node, Error>)> {
        let changed = target.node.is_tainted() != closed.present;
        let mark = closed.cools_until.map(whole);
        if !changed && target.node.cooling == mark {
            return None;
        }
        match self.mark(target, closed, changed, mark.as_deref(), now).await {
            Ok(marked) => {
                if changed {
                    self.teller.closed(target, closed);
                }
                marked
            }
            Err(error) => {
                tracing::warn!(node = %target.meta.key, %error, "node not marked");
                None
            }
        }
    }

    async fn mark(
        &self,
        target: &Target,
        closed: &Closed,
        changed: bool,
        mark: Option<&str>,
        now: Timestamp,
    ) -> Result<Option<(Meta, Result<Node, Error>)>, Failure> {
        let key = &target.meta.key;
        if changed {
            // The taint comes last: while it is not as it should be, all of this is done again.
            let condition = json!({
                "type": CONDITION, "status": if closed.present { "True" } else { "False" },
                "reason": closed.reason(), "message": closed.message,
                "lastHeartbeatTime": whole(now), "lastTransitionTime": whole(now),
            });
            let patch = json!({"status": {"conditions": [condition]}});
            self.writer.patch(NODES.status(), key, Patch::Strategic, &patch).await?;
        }
        // Others' taints stay as they are, also those that come meanwhile.
        for attempt in 1.. {
            let (meta, read) = self.writer.get::<Nodes>(key).await?;
            let Ok(node) = read else { return Ok(Some((meta, read))) };
            let revision = meta.revision.map(|revision| revision.to_string());
            let mut patch =
                json!({"metadata": {"resourceVersion": revision, "annotations": {COOLING: mark}}});
            if node.is_tainted() != closed.present {
                patch["spec"] = json!({"taints": taints(node.taints, closed.present)});
            }
            match self.writer.patch(NODES.whole(), key, Patch::Merge, &patch).await {
                Ok(written) => return Ok(written.read::<Nodes>()),
                Err(error) if error.is_conflict() && attempt < MARKS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }
}

/// A node that is looked after, and the pods on it.
pub(super) struct Target {
    pub meta: Meta,
    pub node: Arc<Node>,
    pub pods: Vec<PodObject>,
}

fn taints(mut taints: Vec<Taint>, present: bool) -> Vec<Taint> {
    taints.retain(|taint| taint.key != KEY);
    if present {
        let effect = Options::default().taint;
        taints.push(Taint { key: KEY.into(), effect: effect.to_string(), value: None, time_added: None });
    }
    taints
}

/// What the answer to an eviction means.
fn reply(failure: &Failure) -> Reply {
    match failure.cause {
        Cause::NotFound => Reply::Gone,
        // The uid is another one.
        Cause::Conflict | Cause::AlreadyExists => Reply::Replaced,
        Cause::TooManyRequests { .. } => Reply::Refused,
        Cause::Forbidden | Cause::Unauthorized => Reply::Failed(403),
        Cause::Server { code, .. } | Cause::Rejected { code } => Reply::Failed(code),
        _ => Reply::Failed(500),
    }
}

/// In whole seconds, as the API server keeps times.
fn whole(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}
