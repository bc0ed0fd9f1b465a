//! How is a decision carried out? Its writes, and an answer to whether they arrived.

use super::Metrics;
use super::queue::{Helps, Pending};
use super::watched::Pods;
use crate::cluster::resource::PODS;
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Writer};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_api::pod::Pod;
use loadline_core::object::Meta;
use serde_json::json;
use std::sync::Arc;

/// What to do about a pod.
#[derive(Debug)]
pub(super) enum Action {
    /// It goes to this node.
    Bind { pod: Arc<Pending>, node: Arc<str> },
    /// It goes nowhere now.
    Refuse { pod: Arc<Pending>, why: String, helps: Helps },
    /// It goes nowhere now; once these are gone, it goes to this node.
    Preempt { pod: Arc<Pending>, node: Arc<str>, victims: Vec<Meta>, why: String, helps: Helps },
}

impl Action {
    /// Of a pod that goes nowhere now: why.
    pub fn refusal(&self) -> Option<(&Pending, &str)> {
        match self {
            Self::Bind { .. } => None,
            Self::Refuse { pod, why, .. } | Self::Preempt { pod, why, .. } => Some((pod, why)),
        }
    }
}

/// What became of it.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It is bound; the watch will say so.
    Bound { pod: Arc<Pending>, node: Arc<str> },
    /// It is not bound, as far as one can know; if the server said what the pod looks like, it is here.
    Unbound { pod: Arc<Pending>, now: Option<Box<Read>> },
    /// It has been told why it waits, or it knew.
    Refused { pod: Arc<Pending>, helps: Helps },
    /// It could not be told.
    Untold { pod: Arc<Pending> },
}

/// A pod as the server has it now.
pub(super) type Read = (Meta, Result<Box<Pod>, Error>);

/// What carrying out takes.
#[derive(Clone, Debug)]
pub(super) struct Executor {
    pub writer: Writer,
    pub metrics: Metrics,
}

impl Executor {
    /// Carries an action out that was decided at that time.
    pub async fn run(self, action: Action, at: Timestamp) -> Outcome {
        match action {
            Action::Bind { pod, node } => self.bind(pod, node).await,
            Action::Refuse { pod, why, helps } => self.refuse(pod, &why, helps, at).await,
            Action::Preempt { pod, node, victims, why, helps } => {
                self.preempt(&pod, &node, &victims).await;
                self.refuse(pod, &why, helps, at).await
            }
        }
    }

    async fn bind(&self, pod: Arc<Pending>, node: Arc<str>) -> Outcome {
        let Err(error) = self.writer.bind(&pod.meta, &node).await else {
            return Outcome::Bound { pod, node };
        };
        self.metrics.bind_failures.inc();
        tracing::warn!(pod = %pod.meta.key, %node, %error, "pod not bound");
        if error.cause == Cause::NotLeading {
            return Outcome::Unbound { pod, now: None };
        }
        // The request may have arrived although the answer did not: the server knows.
        let now = self.writer.get::<Pods>(&pod.meta.key).await.ok().map(Box::new);
        let is_bound = now.as_deref().is_some_and(|(meta, read)| {
            let on = read.as_ref().ok().and_then(|read| read.facts.node.as_deref());
            meta.uid == pod.meta.uid && on == Some(&*node)
        });
        if is_bound { Outcome::Bound { pod, node } } else { Outcome::Unbound { pod, now } }
    }

    /// Nominates the node for the pod and asks the victims to go. What is refused, by a disruption budget for example,
    /// is planned anew at the pod's next turn.
    async fn preempt(&self, pod: &Pending, node: &str, victims: &[Meta]) {
        // First the nomination, or the place might be given to somebody else the moment it is free.
        let patch = json!({"metadata": {"uid": &*pod.meta.uid}, "status": {"nominatedNodeName": node}});
        if let Err(error) = self.writer.patch(PODS.status(), &pod.meta.key, Patch::Merge, &patch).await {
            tracing::warn!(pod = %pod.meta.key, node, %error, "node not nominated");
            return;
        }
        for victim in victims {
            match self.writer.evict(victim, None).await {
                Ok(()) => drop(self.metrics.preempted.inc()),
                Err(error) => {
                    tracing::info!(victim = %victim.key, pod = %pod.meta.key, %error, "victim not evicted");
                }
            }
        }
    }

    async fn refuse(&self, pod: Arc<Pending>, why: &str, helps: Helps, at: Timestamp) -> Outcome {
        if pod.pod.unschedulable.as_deref() == Some(why) {
            return Outcome::Refused { pod, helps };
        }
        let at = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let patch = json!({"metadata": {"uid": &*pod.meta.uid}, "status": {"conditions": [{
            "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
            "lastProbeTime": null, "lastTransitionTime": at, "observedGeneration": pod.pod.generation,
        }]}});
        match self.writer.patch(PODS.status(), &pod.meta.key, Patch::Strategic, &patch).await {
            Err(error) if !error.is_not_found() && !error.is_conflict() => {
                tracing::warn!(pod = %pod.meta.key, %error, "pod not told why it waits");
                Outcome::Untold { pod }
            }
            // Gone, or another one of the same name: the watch will say so.
            _ => Outcome::Refused { pod, helps },
        }
    }
}
