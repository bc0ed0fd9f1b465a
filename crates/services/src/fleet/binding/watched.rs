//! What is looked at, and what is kept of it?

use crate::cluster::Event;
use crate::cluster::resource::{CLUSTER_RESOURCE_BINDINGS, KARMADA_CLUSTERS, RESOURCE_BINDINGS};
use crate::cluster::watch::{logged, watched};
use loadline_api as api;
use loadline_api::json::{Skip, Tree};
use loadline_api::karmada::{self, Scheduling};
use loadline_core::divide::Member;
use std::sync::Arc;

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Cluster(Event<Box<Cluster>>),
    Binding(Event<Box<Scheduling>>),
    ClusterBinding(Event<Box<Scheduling>>),
    /// The estimator of a cluster answers again.
    Recovered(Arc<str>),
}

/// A cluster of the fleet.
#[derive(Clone, Debug)]
pub(super) struct Cluster {
    pub member: Member,
    /// It fetches its work itself: the hub may not be able to reach it.
    pub pulls: bool,
}

watched!(Clusters: KARMADA_CLUSTERS, skip Skip::MANAGED_FIELDS, Box<Cluster>, cluster);
watched!(Bindings: RESOURCE_BINDINGS, skip Skip::MANAGED_FIELDS, Box<Scheduling>, scheduling);
watched!(ClusterBindings: CLUSTER_RESOURCE_BINDINGS, skip Skip::MANAGED_FIELDS, Box<Scheduling>, scheduling);

fn cluster(object: &Tree<'_>) -> Result<Box<Cluster>, api::Error> {
    let member = karmada::cluster(object).map(logged)?;
    Ok(Box::new(Cluster { member, pulls: object["spec"]["syncMode"].as_str() == Some("Pull") }))
}

/// One that cannot be divided is kept, too: that has to be told.
#[expect(clippy::unnecessary_wraps, reason = "what is watched may be unreadable elsewhere")]
fn scheduling(object: &Tree<'_>) -> Result<Box<Scheduling>, api::Error> {
    Ok(Box::new(karmada::scheduling(object, &api::Context::new())))
}
