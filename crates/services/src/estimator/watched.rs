//! Which objects count, and what is kept of them?

use crate::cluster::resource::{DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS, Resource};
use crate::cluster::watch::{Watched, logged};
use loadline_api::json::{Skip, Tree};
use loadline_api::{self as api, Context, Error};
use loadline_core::estimate::Quota;
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::view::{NodeFacts, Owner, PodFacts};

/// Nodes.
#[derive(Debug)]
pub struct Nodes;

impl Watched for Nodes {
    const RESOURCE: Resource = NODES;
    const SKIP: Skip = api::node::SKIP;
    type Facts = NodeFacts;

    fn read(value: &Tree<'_>) -> Result<Self::Facts, Error> {
        api::node::facts(value).map(logged)
    }
}

/// Pods that are not over. Volumes are left out: a pod that waits will need its room wherever they are.
#[derive(Debug)]
pub struct Pods;

impl Watched for Pods {
    const RESOURCE: Resource = PODS;
    const FIELDS: Option<&'static str> = Some("status.phase!=Succeeded,status.phase!=Failed");
    const SKIP: Skip = api::pod::SKIP_VOLUMES;
    type Facts = Box<(PodFacts, Option<Unplaced>)>;

    fn read(value: &Tree<'_>) -> Result<Self::Facts, Error> {
        // The API server has written the priority into the pod: no class is looked up.
        let (facts, _) = api::pod::facts(value, &Context::new())?;
        Ok(Box::new((facts, api::waiting::unplaced(value)?)))
    }
}

/// Replica sets, for their template and their owner.
#[derive(Debug)]
pub struct ReplicaSets;

impl Watched for ReplicaSets {
    const RESOURCE: Resource = REPLICA_SETS;
    const SKIP: Skip = api::waiting::SKIP;
    type Facts = (ReplicaSet, WorkloadRef, Option<Owner>);

    fn read(value: &Tree<'_>) -> Result<Self::Facts, Error> {
        let (target, owner) = api::owners::made_by("apps", "ReplicaSet", value)?;
        Ok((api::waiting::replica_set(value)?, target, owner))
    }
}

/// Deployments, for their template.
#[derive(Debug)]
pub struct Deployments;

impl Watched for Deployments {
    const RESOURCE: Resource = DEPLOYMENTS;
    const SKIP: Skip = api::waiting::SKIP;
    type Facts = Deployment;

    fn read(value: &Tree<'_>) -> Result<Self::Facts, Error> {
        api::waiting::deployment(value)
    }
}

/// Quotas.
#[derive(Debug)]
pub struct Quotas;

impl Watched for Quotas {
    const RESOURCE: Resource = QUOTAS;
    const SKIP: Skip = api::quota::SKIP;
    type Facts = Quota;

    fn read(value: &Tree<'_>) -> Result<Self::Facts, Error> {
        api::quota::quota(value)
    }
}
