//! What does the recommender look at, and what is kept of it?

use crate::cluster::Event;
use crate::cluster::resource::{JOBS, PODS, RECOMMENDATIONS, REPLICA_SETS};
use crate::cluster::watch::{logged, watched};
use crate::sources::metrics_api::Measurements;
use loadline_api as api;
use loadline_api::json::{Skip, Tree};
use loadline_api::recommendation;
use loadline_core::load::recommend::{Recommendation, WorkloadRef};
use loadline_core::view::Owner;

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Pod(Event<api::learn::Pod>),
    ReplicaSet(Event<Made>),
    Job(Event<Made>),
    Recommendation(Event<Option<Own>>),
    Measured(Measurements),
}

/// A workload and who made it.
pub(super) type Made = (WorkloadRef, Option<Owner>);

/// A recommendation of ours, and what it was made from.
#[derive(Clone, Debug)]
pub(super) struct Own {
    pub recommendation: Recommendation,
    pub checkpoint: Vec<u8>,
}

/// Of workloads only who made them is read.
const METADATA: Skip = Skip::fields(&["spec", "status"])
    .within(&[("metadata", Skip::fields(&["annotations", "labels", "managedFields"]))]);

watched!(Pods: PODS, skip api::learn::SKIP, api::learn::Pod, api::learn::pod);
watched!(ReplicaSets: REPLICA_SETS, skip METADATA, Made, |o| api::owners::made_by("apps", "ReplicaSet", o));
watched!(Jobs: JOBS, skip METADATA, Made, |o| api::owners::made_by("batch", "Job", o));
watched!(Recommendations: RECOMMENDATIONS, skip Skip::MANAGED_FIELDS, Option<Own>, own);

/// Others' are none of our business.
fn own(object: &Tree<'_>) -> Result<Option<Own>, api::Error> {
    let Some(checkpoint) = recommendation::checkpoint(object) else { return Ok(None) };
    let read = recommendation::read(object).map(logged)?;
    Ok(read.map(|recommendation| Own { recommendation, checkpoint }))
}
