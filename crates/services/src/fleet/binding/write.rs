//! How is a decision written? The clusters first, then the status, each only if it says something new.
//!
//! Both name the state they were decided from: whoever changed the object meanwhile is not overwritten, and the binding
//! is looked at again. A status is not a decision; if only that is out of date, it is read again and written on.

use super::state::{Decided, Known};
use super::watched::{Bindings, ClusterBindings};
use crate::cluster::connection::{Cause, Failure};
use crate::cluster::resource::RESOURCE_BINDINGS;
use crate::cluster::write::Patch;
use crate::cluster::{Watched, Writer};
use jiff::Timestamp;
use loadline_api::condition;
use loadline_api::karmada::{self, Scheduling};
use loadline_core::divide::due::{Applied, Due};
use loadline_core::divide::{Condition, Failure as Refused, Opinion, Target};
use loadline_core::object::Meta;
use serde_json::{Value, json};
use std::sync::Arc;

/// So often a status is written on after somebody else wrote one.
const ATTEMPTS: usize = 5;
/// So many estimators that failed are named in a condition.
const NAMED: usize = 3;
/// What a quota of the fleet says when it is used up.
const QUOTA: &str = "FederatedResourceQuota";

/// What is to be written.
#[derive(Debug)]
pub(super) struct Job {
    pub known: Arc<Known>,
    /// The clusters it gets; `None` to leave them as they are.
    pub clusters: Option<Vec<Value>>,
    pub condition: Condition,
    /// The condition there is stays, whatever it says.
    pub keep: bool,
    /// The affinity group it is in; `None` to leave it.
    pub affinity: Option<String>,
    /// Is the time of the last division renewed even if nothing else is new?
    pub renew: bool,
}

/// What came of it.
#[derive(Debug)]
pub(super) struct Written {
    /// The object as the server has it now, if it said so.
    pub latest: Option<(Meta, Box<Scheduling>)>,
    /// The clusters were written.
    pub placed: bool,
    /// Something was.
    pub changed: bool,
    /// What was told in the end: the server may have refused the clusters.
    pub condition: Condition,
    pub failure: Option<Failure>,
}

impl Job {
    /// What follows from a decision.
    pub fn of(decided: &Decided) -> Self {
        let Decided { known, due, answer, said, .. } = decided;
        let facts = &known.facts;
        let mut condition = answer.condition();
        let failed = said.iter().filter_map(|one| match &one.opinion {
            Opinion::Failed(why) => Some(format!("{}: {why}", one.cluster)),
            Opinion::Count(_) => None,
        });
        let failed: Vec<String> = failed.collect();
        if !failed.is_empty() {
            let more = failed.len().saturating_sub(NAMED);
            let more = if more > 0 { format!("; and {more} more") } else { String::new() };
            let named = failed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join("; ");
            condition.message = format!("{} Without estimates of {named}{more}", condition.message);
        }
        let targets: Vec<Value> = answer.clusters.iter().map(target).collect();
        // What fits nowhere leaves where it is; other failures leave everything as it was.
        let placed = matches!(answer.failure, None | Some(Refused::NoFit { .. }));
        let remembered = matches!((&facts.applied, &facts.binding), (Applied::Placement(applied), Ok(binding))
            if Some(&**applied) == binding.placement.as_ref());
        let same = remembered && sorted(&targets) == sorted(&facts.clusters);
        Self {
            known: known.clone(),
            clusters: (placed && !same).then_some(targets),
            condition,
            keep: false,
            affinity: answer.affinity.clone(),
            renew: *due == Due::Asked,
        }
    }

    /// Everything is as it should be; that may not have been told. Why something is nowhere was told with the decision.
    pub fn settled(known: &Arc<Known>) -> Self {
        let message = "Binding has been scheduled successfully.".into();
        let condition = Condition { status: true, reason: "Success", message };
        let keep = known.facts.clusters.is_empty() && known.facts.condition().is_some();
        Self { known: known.clone(), clusters: None, condition, keep, affinity: None, renew: false }
    }

    /// It cannot be divided.
    pub fn unreadable(known: &Arc<Known>, problem: String) -> Self {
        let condition = Condition { status: false, reason: "SchedulerError", message: problem };
        Self { known: known.clone(), clusters: None, condition, keep: false, affinity: None, renew: false }
    }

    /// Is there anything to write?
    pub fn is_needed(&self, now: Timestamp) -> bool {
        self.clusters.is_some() || self.status(&self.known.facts, now).is_some()
    }

    /// What is new in the status, compared with that of an object.
    fn status(&self, facts: &Scheduling, now: Timestamp) -> Option<Value> {
        let mut status = json!({});
        let Condition { status: scheduled, reason, message } = &self.condition;
        let message = condition::message(message);
        let held = facts.condition();
        let truth = if *scheduled { "True" } else { "False" };
        let same = self.keep
            || held.is_some_and(|held| {
                held["status"] == truth && held["reason"] == *reason && held["message"] == *message
            });
        if !same {
            let since =
                held.filter(|held| held["status"] == truth).map(|held| held["lastTransitionTime"].clone());
            let since = since.filter(|since| !since.is_null()).unwrap_or_else(|| time(now));
            let condition = json!({"type": Condition::TYPE, "status": truth, "reason": reason,
                "message": message, "lastTransitionTime": since});
            let mut all = facts.conditions.clone();
            match all.iter_mut().find(|one| one["type"] == Condition::TYPE) {
                Some(held) => *held = condition,
                None => all.push(condition),
            }
            status["conditions"] = all.into();
        }
        // A state that could not be decided about is not yet observed.
        if *scheduled {
            if facts.observed_generation != facts.generation {
                status["schedulerObservedGeneration"] = facts.generation.into();
            }
            if !same || self.clusters.is_some() || self.renew {
                status["lastScheduledTime"] = time(now);
            }
            let observed = facts.binding.as_ref().map_or("", |binding| binding.observed.as_str());
            if let Some(group) = self.affinity.as_ref().filter(|group| *group != observed) {
                status["schedulerObservingAffinityName"] = group.as_str().into();
            }
        }
        status.as_object().is_some_and(|fields| !fields.is_empty()).then_some(status)
    }
}

/// A cluster and what it gets, as Karmada writes it: what is 0 is left out.
fn target(target: &Target) -> Value {
    let mut out = json!({"name": &*target.name});
    if let Some(replicas) = target.replicas.filter(|replicas| *replicas != 0) {
        out["replicas"] = replicas.into();
    }
    if !target.components.is_empty() {
        let parts = target.components.iter().map(|(name, count)| json!({"name": name, "replicas": count}));
        out["components"] = parts.collect();
    }
    out
}

/// By name: Karmada writes them in any order.
fn sorted(clusters: &[Value]) -> Vec<&Value> {
    let mut out: Vec<&Value> = clusters.iter().collect();
    out.sort_by_key(|cluster| cluster["name"].as_str().unwrap_or_default().to_owned());
    out
}

fn time(at: Timestamp) -> Value {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into()
}

/// Writes.
pub(super) async fn write(writer: Writer, job: Job, now: Timestamp) -> Written {
    if job.known.of == RESOURCE_BINDINGS {
        send::<Bindings>(&writer, job, now).await
    } else {
        send::<ClusterBindings>(&writer, job, now).await
    }
}

async fn send<W: Watched<Facts = Box<Scheduling>>>(writer: &Writer, mut job: Job, now: Timestamp) -> Written {
    let known = job.known.clone();
    let mut done = Written {
        latest: None,
        placed: false,
        changed: false,
        condition: job.condition.clone(),
        failure: None,
    };
    if let Some(clusters) = &job.clusters {
        let mut change = karmada::decided(clusters, &known.facts.placement);
        identify(&mut change, &known.meta);
        match writer.patch(known.of.whole(), &known.meta.key, Patch::Merge, &change).await {
            Ok(written) => {
                (done.placed, done.changed) = (true, true);
                done.latest = written.read::<W>().and_then(|(meta, facts)| Some((meta, facts.ok()?)));
            }
            Err(failure) => {
                let refused = refused(&failure);
                done.failure = Some(failure);
                let Some(condition) = refused else { return done };
                (job.clusters, job.affinity, job.condition) = (None, None, condition.clone());
                done.condition = condition;
            }
        }
    }
    for _ in 0..ATTEMPTS {
        let (meta, facts) = match &done.latest {
            Some((meta, facts)) => (meta, &**facts),
            None => (&known.meta, &known.facts),
        };
        let Some(status) = job.status(facts, now) else { return done };
        let mut change = json!({"status": status});
        identify(&mut change, meta);
        match writer.patch(known.of.status(), &known.meta.key, Patch::Merge, &change).await {
            Ok(written) => {
                done.changed = true;
                let read = written.read::<W>().and_then(|(meta, facts)| Some((meta, facts.ok()?)));
                done.latest = read.or(done.latest);
                return done;
            }
            Err(failure) if failure.cause == Cause::Conflict => {
                match writer.get::<W>(&known.meta.key).await {
                    Ok((meta, Ok(facts))) if meta.uid == known.meta.uid => done.latest = Some((meta, facts)),
                    _ => {
                        done.failure = Some(failure);
                        return done;
                    }
                }
            }
            Err(failure) => {
                done.failure = Some(failure);
                return done;
            }
        }
    }
    done
}

/// Meant is this object, in this state.
fn identify(change: &mut Value, meta: &Meta) {
    change["metadata"]["uid"] = (&*meta.uid).into();
    if let Some(revision) = meta.revision {
        change["metadata"]["resourceVersion"] = revision.to_string().into();
    }
}

/// What to tell if the server will not have the clusters. What only did not work this time is not told.
fn refused(failure: &Failure) -> Option<Condition> {
    let reason = match failure.cause {
        Cause::Forbidden if failure.message.contains(QUOTA) => "QuotaExceeded",
        Cause::Forbidden | Cause::Invalid | Cause::Rejected { .. } => "SchedulerError",
        _ => return None,
    };
    Some(Condition { status: false, reason, message: failure.message.clone() })
}

#[cfg(test)]
mod tests;
