//! How is one object of the hub written, and what came of it?
//!
//! A patch each. The score object is looked for before it is written for the first time and made if it is not there; one
//! that is there and not ours is left alone. From then on patches name it by its identity, so that none hits a successor.

use super::books::{Job, Object};
use crate::cluster::resource::{ADD_ON_PLACEMENT_SCORES, MANAGED_CLUSTERS};
use crate::cluster::watch::watched;
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Failure, Writer};
use loadline_api::json::Skip;
use loadline_api::ocm::published;
use loadline_api::recommendation::MANAGED_BY;
use loadline_core::member::Rules;
use loadline_core::object::{Key, Meta};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

// Whether a score object is one of ours.
watched!(Scores: ADD_ON_PLACEMENT_SCORES, skip Skip::fields(&["status"]), bool, |object| Ok(published::is_ours(object)));

/// Why the hub could not be told.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Problem {
    #[error("the hub has no ManagedCluster {0}: waiting for it to be registered")]
    Missing(Arc<str>),
    #[error(
        "AddOnPlacementScore {0} is somebody else's, for it has no label {label}={value}: delete it, or give another --score-name",
        label = MANAGED_BY.0, value = MANAGED_BY.1
    )]
    Foreign(Key),
    #[error("{0}")]
    Failed(#[from] Failure),
}

impl Problem {
    /// Is there no such cluster?
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Missing(_))
    }

    /// How long the hub asks to be left alone.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Failed(failure) => failure.cause.retry_after(),
            Self::Missing(_) | Self::Foreign(_) => None,
        }
    }

    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Missing(_) => "missing",
            Self::Foreign(_) => "foreign",
            Self::Failed(failure) => match failure.cause {
                Cause::Conflict | Cause::AlreadyExists | Cause::NotFound => "conflict",
                Cause::Unauthorized | Cause::Forbidden => "forbidden",
                Cause::Unreachable | Cause::Timeout => "unreachable",
                Cause::NotLeading => "not_leading",
                _ => "refused",
            },
        }
    }
}

/// A write, and what came of it: the identity of the score object, or why not.
#[derive(Debug)]
pub(super) struct Written {
    pub job: Job,
    pub outcome: Result<Option<Arc<str>>, Problem>,
}

impl Written {
    /// Since when the hub refuses our credentials (401), if it still does.
    pub fn refused(&self, since: Option<Instant>, now: Instant) -> Option<Instant> {
        match &self.outcome {
            Err(Problem::Failed(failure)) if failure.cause == Cause::Unauthorized => since.or(Some(now)),
            // Nobody was asked.
            Err(Problem::Failed(failure)) if failure.cause.may_have_arrived() => since,
            _ => None,
        }
    }
}

pub(super) async fn write(writer: Writer, score_name: String, rules: Rules, job: Job) -> Written {
    let outcome = match job.object {
        Object::Annotation => annotation(&writer, &job).await.map(|()| None),
        Object::Scores => {
            scores(&writer, &Key::new(job.cluster.clone(), score_name), &rules, &job).await.map(Some)
        }
    };
    Written { job, outcome }
}

async fn annotation(writer: &Writer, job: &Job) -> Result<(), Problem> {
    let key = Key::new("", job.cluster.clone());
    let change = published::annotation(&job.summary);
    match writer.patch(MANAGED_CLUSTERS.whole(), &key, Patch::Merge, &change).await {
        Ok(_) => Ok(()),
        Err(failure) if failure.is_not_found() => Err(Problem::Missing(job.cluster.clone())),
        Err(failure) => Err(failure.into()),
    }
}

async fn scores(writer: &Writer, key: &Key, rules: &Rules, job: &Job) -> Result<Arc<str>, Problem> {
    let uid = match &job.uid {
        Some(uid) => uid.clone(),
        None => object(writer, key).await?,
    };
    let change = published::scores(&uid, &job.summary, rules.validity);
    let answer = writer.patch(ADD_ON_PLACEMENT_SCORES.status(), key, Patch::Merge, &change).await?;
    // Somebody may have made it theirs since.
    match answer.read::<Scores>() {
        Some((_, Ok(false))) => Err(Problem::Foreign(key.clone())),
        _ => Ok(uid),
    }
}

/// The identity of our score object, which is made if there is none.
async fn object(writer: &Writer, key: &Key) -> Result<Arc<str>, Problem> {
    let ours =
        |(meta, ours): (Meta, bool)| ours.then_some(meta.uid).ok_or_else(|| Problem::Foreign(key.clone()));
    match writer.get::<Scores>(key).await {
        Ok((meta, read)) => return ours((meta, read.unwrap_or(false))),
        Err(failure) if failure.is_not_found() => {}
        Err(failure) => return Err(failure.into()),
    }
    let made = writer.create(ADD_ON_PLACEMENT_SCORES, &key.namespace, &published::score_object(key)).await?;
    let (meta, read) = match made.read::<Scores>() {
        Some(made) => made,
        None => writer.get::<Scores>(key).await?,
    };
    ours((meta, read.unwrap_or(false)))
}
