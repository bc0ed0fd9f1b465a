//! Which replicas would be better off elsewhere? Every now and then clusters that run fewer than they were given are asked
//! how many have waited there in vain; those are taken away, and the next division places them anew.

use super::state::{Known, State};
use crate::cluster::Writer;
use crate::cluster::connection::Cause;
use crate::cluster::pace::Pace;
use crate::cluster::resource::RESOURCE_BINDINGS;
use crate::cluster::write::Patch;
use crate::ctx::Now;
use crate::fleet::estimators::Estimators;
use loadline_core::divide::deschedule::{behind, is_about, lowered};
use loadline_core::divide::{Binding, Previous};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bindings looked at at a time.
const AT_ONCE: usize = 4;

/// How replicas are taken from clusters that have no node for them.
#[derive(Clone, Debug, PartialEq)]
pub struct Deschedule {
    /// Are they, or is it only told what would be?
    pub apply: bool,
    /// Time between two passes.
    pub every: Duration,
    /// How long replicas must have waited.
    pub threshold: Duration,
    /// Bindings looked at per second, on average.
    pub rate: f64,
}

impl Default for Deschedule {
    fn default() -> Self {
        Self { apply: false, every: Duration::from_mins(2), threshold: Duration::from_mins(5), rate: 5.0 }
    }
}

/// What came of one binding.
#[derive(Debug)]
pub(super) struct Lowered {
    pub known: Arc<Known>,
    pub replicas: i64,
    /// What was done, or would have been, or why it could not be.
    pub outcome: Result<String, String>,
    pub applied: bool,
}

/// Passes over all bindings.
#[derive(Debug)]
pub(super) struct Passes {
    options: Deschedule,
    next: Instant,
    pace: Pace,
    waiting: VecDeque<Arc<Known>>,
    under_way: JoinSet<Option<Lowered>>,
}

impl Passes {
    pub fn new(options: Deschedule, now: Instant) -> Self {
        let (pace, next) = (Pace::new(options.rate, now), now + options.every);
        Self { options, next, pace, waiting: VecDeque::new(), under_way: JoinSet::new() }
    }

    /// Begins a pass when it is time, and goes on with it as fast as allowed; says when there is more to do.
    pub fn go_on(&mut self, state: &State, estimators: &Estimators, writer: &Writer, now: Now) -> Instant {
        if now.at >= self.next {
            self.next = now.at + self.options.every;
            // One that is not over is not begun again: nobody is asked twice in a row.
            if self.waiting.is_empty() {
                self.waiting = state.ours().filter(|known| is_candidate(known)).cloned().collect();
            }
        }
        while self.under_way.len() < AT_ONCE && !self.waiting.is_empty() {
            if let Err(later) = self.pace.take(now.at) {
                return later.min(self.next);
            }
            let Some(known) = self.waiting.pop_front() else { break };
            // As it is now: it may have been decided about meanwhile.
            let current = state.binding(&known.meta.key).filter(|known| is_candidate(known)).cloned();
            if let Some(known) = current {
                let (estimators, writer) = (estimators.clone(), writer.clone());
                self.under_way.spawn(lower(self.options.clone(), estimators, writer, known));
            }
        }
        self.next
    }

    /// The next result; waits for ever if none is under way.
    pub async fn ended(&mut self) -> Option<Lowered> {
        match self.under_way.join_next().await {
            Some(ended) => ended.ok().flatten(),
            None => std::future::pending().await,
        }
    }
}

fn is_candidate(known: &Known) -> bool {
    let facts = &known.facts;
    known.of == RESOURCE_BINDINGS
        && !facts.deleting
        && facts.binding.as_ref().is_ok_and(|binding| {
            is_about(binding, &facts.applied) && behind(&binding.clusters, &facts.ready()).next().is_some()
        })
}

async fn lower(
    options: Deschedule,
    estimators: Estimators,
    writer: Writer,
    known: Arc<Known>,
) -> Option<Lowered> {
    let Ok(binding) = &known.facts.binding else { return None };
    let ready = known.facts.ready();
    let waiting = waiting(&estimators, binding, &ready, options.threshold).await;
    let (clusters, told) = lowered(&binding.clusters, &ready, &waiting)?;
    let sum = |clusters: &[Previous]| clusters.iter().map(|c| i64::from(c.replicas)).sum::<i64>();
    let replicas = sum(&binding.clusters) - sum(&clusters);
    let outcome =
        if options.apply { write(&writer, &known, &clusters).await.map(|()| told) } else { Ok(told) };
    Some(Lowered { known: known.clone(), replicas, outcome, applied: options.apply })
}

/// How many wait, by cluster; who does not say does not count.
async fn waiting(
    estimators: &Estimators,
    binding: &Binding,
    ready: &BTreeMap<String, i32>,
    threshold: Duration,
) -> BTreeMap<String, i32> {
    let ask = |known: &Previous| {
        let cluster: Arc<str> = known.name.as_str().into();
        async move {
            let answer = estimators.waiting(&cluster, &binding.resource, threshold).await;
            let answer = answer.inspect_err(|problem| {
                tracing::debug!(%cluster, problem, "it is not known how many replicas wait");
            });
            Some((cluster.to_string(), answer.ok().filter(|count| *count > 0)?))
        }
    };
    let all = futures::future::join_all(behind(&binding.clusters, ready).map(ask)).await;
    all.into_iter().flatten().collect()
}

async fn write(writer: &Writer, known: &Known, clusters: &[Previous]) -> Result<(), String> {
    let mut written = known.facts.clusters.clone();
    for cluster in &mut written {
        let lowered = clusters.iter().find(|lowered| cluster["name"] == *lowered.name);
        if let Some(lowered) = lowered {
            cluster["replicas"] = lowered.replicas.into();
        }
    }
    let mut change =
        json!({"metadata": {"uid": &*known.meta.uid}, "spec": {"clusters": Value::from(written)}});
    if let Some(revision) = known.meta.revision {
        change["metadata"]["resourceVersion"] = revision.to_string().into();
    }
    match writer.patch(known.of.whole(), &known.meta.key, Patch::Merge, &change).await {
        Ok(_) => Ok(()),
        Err(failure) if matches!(failure.cause, Cause::Conflict | Cause::NotFound) => {
            Err("it changed meanwhile".to_owned())
        }
        Err(failure) => Err(failure.message),
    }
}

#[cfg(test)]
mod tests;
