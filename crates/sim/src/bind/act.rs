//! How is a decision carried out? One write each, and an answer to whether it arrived.

use super::Pending;
use super::news::Object;
use super::queue::Help;
use crate::cluster::{Key, Patch, Pod, Writer};
use serde_json::json;
use std::sync::Arc;

/// What to do about a pod.
#[derive(Debug)]
pub enum Act {
    /// It goes to this node.
    Bind { pod: Arc<Pending>, node: Arc<str> },
    /// It goes nowhere now.
    Refuse { pod: Arc<Pending>, why: String, help: Help },
    /// It goes nowhere now; once these are gone, it goes to this node.
    Preempt { pod: Arc<Pending>, node: Arc<str>, victims: Vec<(Key, Arc<str>)>, why: String, help: Help },
}

impl Act {
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
pub enum Done {
    /// It is bound; the watch will say so.
    Bound { pod: Arc<Pending>, node: Arc<str> },
    /// It is not bound, as far as one can know; if the server said what the pod looks like, it is here.
    Unbound { pod: Arc<Pending>, now: Option<Box<Object>> },
    /// It has been told why it waits, or it knew.
    Refused { pod: Arc<Pending>, help: Help, evicted: u64 },
    /// It could not be told.
    Untold { pod: Arc<Pending> },
}

pub async fn carry_out(act: Act, write: &Writer) -> Done {
    match act {
        Act::Bind { pod, node } => bind(pod, node, write).await,
        Act::Refuse { pod, why, help } => refuse(pod, &why, help, write).await,
        Act::Preempt { pod, node, victims, why, help } => {
            let evicted = preempt(&pod, &node, &victims, write).await;
            match refuse(pod, &why, help, write).await {
                Done::Refused { pod, help, .. } => Done::Refused { pod, help, evicted },
                other => other,
            }
        }
    }
}

async fn bind(pod: Arc<Pending>, node: Arc<str>, write: &Writer) -> Done {
    let key = &pod.meta.key;
    match write.bind(key, &pod.meta.uid, &node).await {
        Ok(()) => return Done::Bound { pod, node },
        Err(error) => {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(pod = %key, %node, error, "not bound");
        }
    }
    // The request may have arrived although the answer did not: the server knows.
    let now = write.get::<Pod>(key).await.ok().and_then(Object::read).map(Box::new);
    let ours = |now: &Object| now.meta.uid == pod.meta.uid && now.value["spec"]["nodeName"] == *node;
    if now.as_deref().is_some_and(ours) { Done::Bound { pod, node } } else { Done::Unbound { pod, now } }
}

/// Asks the victims to go, and keeps their place for the pod. Says how many were granted: what is refused, by a
/// disruption budget for example, is planned anew at the pod's next turn.
async fn preempt(pod: &Pending, node: &str, victims: &[(Key, Arc<str>)], write: &Writer) -> u64 {
    let key = &pod.meta.key;
    // First the claim, or the place might be given to somebody else the moment it is free.
    let patch = json!({"metadata": {"uid": pod.meta.uid}, "status": {"nominatedNodeName": node}});
    if let Err(error) = write.patch::<Pod>(key, "/status", &patch).await {
        let error = &error as &dyn std::error::Error;
        tracing::debug!(pod = %key, node, error, "could not claim a node");
        return 0;
    }
    let mut evicted = 0;
    for (victim, uid) in victims {
        match write.evict(victim, uid).await {
            Ok(()) => evicted += 1,
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(pod = %victim, error, "not evicted");
            }
        }
    }
    evicted
}

async fn refuse(pod: Arc<Pending>, why: &str, help: Help, write: &Writer) -> Done {
    if pod.told.as_deref() == Some(why) {
        return Done::Refused { pod, help, evicted: 0 };
    }
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({"metadata": {"uid": pod.meta.uid}, "status": {"conditions": [{
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastProbeTime": null, "lastTransitionTime": now, "observedGeneration": pod.meta.generation,
    }]}});
    match write.patch_as::<Pod>(&pod.meta.key, "/status", Patch::Strategic, &patch).await {
        Err(error) if !error.is_gone() && !error.is_conflict() => {
            let error = &error as &dyn std::error::Error;
            tracing::debug!(pod = %pod.meta.key, error, "could not say why it waits");
            Done::Untold { pod }
        }
        // Gone, or another one of the same name: the watch will say so.
        _ => Done::Refused { pod, help, evicted: 0 },
    }
}
