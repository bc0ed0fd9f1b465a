//! How is a decision written? One step after the other, in the order the decision gives: no selected cluster is absent from
//! what is published between any two of them.
//!
//! Each step names the object it means by uid and revision: where somebody else wrote meanwhile, it fails, and so does what
//! would come after it. Then the placement is decided anew from what there really is. After the slices comes the status of
//! the placement, if it says something else.

use super::watched::{Decisions, Placements, Wish};
use crate::cluster::connection::Cause;
use crate::cluster::resource::{PLACEMENT_DECISIONS, PLACEMENTS};
use crate::cluster::write::Patch;
use crate::cluster::{Failure, Writer};
use loadline_api::Error;
use loadline_api::ocm::{SELECTED_SINCE, decision};
use loadline_core::object::{Key, Meta};
use loadline_core::place::{Action, Outcome, Slice, Write};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is to be written for one placement.
#[derive(Clone, Debug)]
pub(super) struct Job {
    pub placement: Meta,
    pub outcome: Arc<Outcome>,
    steps: Vec<Step>,
    /// The new status, if it is another.
    status: Option<Value>,
}

/// One object.
#[derive(Clone, Debug)]
enum Step {
    Create {
        object: Value,
        /// What must be written once it is there.
        status: Option<Value>,
        wanted: Arc<Slice>,
    },
    Patch {
        meta: Meta,
        status: Option<Value>,
        metadata: Option<Value>,
        wanted: Arc<Slice>,
    },
    Delete(Meta),
}

/// What came of a job.
#[derive(Debug)]
pub(super) struct Done {
    pub placement: Key,
    /// Slices as they are now, by the answers to the writes.
    pub slices: Vec<(Meta, Result<Slice, Error>)>,
    pub deleted: Vec<Meta>,
    pub status: Option<(Meta, Result<Wish, Error>)>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// The slices that were written, and those written completely.
    pub written: BTreeSet<Arc<str>>,
    /// The server drops totals: it does not know them.
    pub scores_dropped: bool,
}

impl Job {
    /// What an outcome comes to, given the slices that are there; none if nothing is to be written.
    pub fn new(
        meta: &Meta,
        wish: &Wish,
        outcome: &Arc<Outcome>,
        there: impl Fn(&Key) -> Option<(Meta, Arc<Slice>)>,
    ) -> Option<Self> {
        if outcome.disabled {
            return None;
        }
        let step = |write: &Write| step(write, wish, there(&write.slice.key));
        let steps: Vec<Step> = outcome.writes.iter().filter_map(step).collect();
        let status = status(wish, outcome);
        let nothing = steps.is_empty() && status.is_none();
        (!nothing).then(|| Self { placement: meta.clone(), outcome: outcome.clone(), steps, status })
    }

    /// Writes it.
    pub async fn run(self, writer: Writer) -> (Self, Done) {
        let mut done = Done {
            placement: self.placement.key.clone(),
            slices: Vec::new(),
            deleted: Vec::new(),
            status: None,
            failure: None,
            written: BTreeSet::new(),
            scores_dropped: false,
        };
        let mut latest = BTreeMap::new();
        for step in &self.steps {
            if let Err(failure) = step.run(&writer, &mut latest, &mut done).await {
                done.failure = Some(failure);
                return (self, done);
            }
        }
        if let Some(status) = &self.status {
            let Meta { key, .. } = &self.placement;
            let patch = json!({"metadata": meant(&self.placement), "status": status});
            match writer.patch(PLACEMENTS.status(), key, Patch::Merge, &patch).await {
                Ok(answer) => done.status = answer.read::<Placements>(),
                Err(failure) => done.failure = Some(told(&failure)),
            }
            // A field the server does not keep would be written for ever.
            if let Some((_, Ok(wish))) = &done.status
                && !kept(status, &wish.status, done.scores_dropped)
            {
                done.failure = Some("the server did not keep the status as it was written".to_owned());
            }
        }
        (self, done)
    }
}

/// Is everything there that was written? Without totals, when they were published is not kept either.
fn kept(written: &Value, there: &Value, scores_dropped: bool) -> bool {
    written.as_object().into_iter().flatten().all(|(name, value)| {
        there.get(name) == Some(value)
            || value.as_array().is_some_and(Vec::is_empty)
            || (scores_dropped && name == "lastScoreUpdateTime")
    })
}

fn step(write: &Write, wish: &Wish, there: Option<(Meta, Arc<Slice>)>) -> Option<Step> {
    let wanted = write.slice.clone();
    let entries = || decision::entries(&wanted);
    match (write.action, there) {
        (Action::None, _) | (Action::Delete, None) => None,
        (Action::Delete, Some((meta, _))) => Some(Step::Delete(meta)),
        (Action::Create | Action::Patch, None) => {
            let mut object = decision::render(&wanted, &wish.placement, None);
            if let Some(fields) = object.as_object_mut() {
                fields.remove("status");
            }
            // No status and an empty one are the same.
            let status = (!wanted.entries.is_empty()).then(entries);
            Some(Step::Create { object, status, wanted })
        }
        (Action::Create | Action::Patch, Some((meta, known))) => Some(Step::Patch {
            meta,
            status: (known.entries != wanted.entries || write.status && known.since == wanted.since)
                .then(entries),
            metadata: metadata(&known, &wanted),
            wanted,
        }),
    }
}

/// What is different about labels and annotations; those of others stay only where they are annotations.
fn metadata(known: &Slice, wanted: &Slice) -> Option<Value> {
    let mut change = Map::new();
    if known.labels != wanted.labels {
        let mut labels: Map<String, Value> =
            known.labels.keys().map(|key| (key.clone(), Value::Null)).collect();
        labels.extend(wanted.labels.iter().map(|(key, value)| (key.clone(), json!(value))));
        change.insert("labels".to_owned(), Value::Object(labels));
    }
    if known.since != wanted.since {
        change.insert("annotations".to_owned(), json!({SELECTED_SINCE: decision::since_text(&wanted.since)}));
    }
    (!change.is_empty()).then_some(Value::Object(change))
}

/// What the status should say on top of what it says, if that is something else.
fn status(wish: &Wish, outcome: &Outcome) -> Option<Value> {
    let known = &wish.status;
    let mut conditions: Vec<Value> = known["conditions"].as_array().cloned().unwrap_or_default();
    for condition in &outcome.conditions {
        let new = decision::condition(condition, &wish.placement);
        match conditions.iter_mut().find(|known| known["type"] == new["type"]) {
            Some(known) => *known = new,
            None => conditions.push(new),
        }
    }
    let mut wanted = json!({
        "numberOfSelectedClusters": outcome.number_selected(),
        "decisionGroups": decision::groups(&outcome.groups),
        "conditions": conditions,
    });
    if let Some(at) = outcome.last_score_update {
        wanted["lastScoreUpdateTime"] = json!(loadline_api::time::text(at));
    }
    let same = |(name, value): (&String, &Value)| known.get(name) == Some(value);
    let differs = wanted.as_object().is_some_and(|all| !all.iter().all(same));
    differs.then_some(wanted)
}

impl Step {
    async fn run(
        &self,
        writer: &Writer,
        latest: &mut BTreeMap<Key, Meta>,
        done: &mut Done,
    ) -> Result<(), String> {
        match self {
            Self::Create { object, status, wanted } => {
                let key = &wanted.key;
                let answer = writer.create(PLACEMENT_DECISIONS, &key.namespace, object).await;
                let made = done.keep(answer, status.is_none().then_some(wanted))?;
                done.written.insert(key.name.clone());
                if let Some(status) = status {
                    let made = patched(writer, &made, status).await;
                    latest.insert(key.clone(), done.keep(made, Some(wanted))?);
                }
            }
            Self::Patch { meta, status, metadata, wanted } => {
                let key = &wanted.key;
                let mut meta = latest.get(key).unwrap_or(meta).clone();
                if let Some(status) = status {
                    let last = metadata.is_none().then_some(wanted);
                    meta = done.keep(patched(writer, &meta, status).await, last)?;
                }
                if let Some(change) = metadata {
                    let mut all = meant(&meta);
                    if let (Some(all), Some(change)) = (all.as_object_mut(), change.as_object()) {
                        all.extend(change.clone());
                    }
                    let patch = json!({"metadata": all});
                    let answer = writer.patch(PLACEMENT_DECISIONS.whole(), key, Patch::Merge, &patch).await;
                    meta = done.keep(answer, Some(wanted))?;
                }
                latest.insert(key.clone(), meta);
                done.written.insert(key.name.clone());
            }
            Self::Delete(meta) => {
                let meta = latest.get(&meta.key).unwrap_or(meta);
                match writer.delete(PLACEMENT_DECISIONS, meta, None).await {
                    Err(failure) if failure.cause != Cause::NotFound => return Err(told(&failure)),
                    _ => {}
                }
                done.deleted.push(meta.clone());
                done.written.insert(meta.key.name.clone());
            }
        }
        Ok(())
    }
}

impl Done {
    /// Keeps the answer to a write. Once that was the last one of a slice, it must be what was wanted.
    fn keep(
        &mut self,
        answer: Result<crate::cluster::write::Written, Failure>,
        wanted: Option<&Arc<Slice>>,
    ) -> Result<Meta, String> {
        let answer = answer.map_err(|failure| told(&failure))?;
        let Some((meta, read)) = answer.read::<Decisions>() else {
            return Err("the server answered with something that is no PlacementDecision".to_owned());
        };
        let mut problem = None;
        if let (Ok(is), Some(wanted)) = (&read, wanted)
            && is.entries != wanted.entries
        {
            let bare =
                |slice: &Slice| slice.entries.iter().map(|one| one.cluster.clone()).collect::<Vec<_>>();
            if bare(is) == bare(wanted) && is.entries.iter().all(|entry| entry.score == 0) {
                self.scores_dropped = true;
            } else {
                problem = Some("the server did not keep the decision as it was written".to_owned());
            }
        }
        // What it was on the way is nobody's business: it would look as if somebody else had changed it.
        self.slices.retain(|(known, _)| known.key != meta.key);
        self.slices.push((meta.clone(), read));
        problem.map_or(Ok(meta), Err)
    }
}

async fn patched(
    writer: &Writer,
    meta: &Meta,
    status: &Value,
) -> Result<crate::cluster::write::Written, Failure> {
    let patch = json!({"metadata": meant(meta), "status": {"decisions": status}});
    writer.patch(PLACEMENT_DECISIONS.status(), &meta.key, Patch::Merge, &patch).await
}

/// The object a patch means.
fn meant(meta: &Meta) -> Value {
    let mut out = json!({"uid": &*meta.uid});
    if let Some(revision) = meta.revision {
        out["resourceVersion"] = json!(revision.to_string());
    }
    out
}

fn told(failure: &Failure) -> String {
    failure.to_string()
}
