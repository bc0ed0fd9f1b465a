//! What does the placement controller look at, and what is kept of it?

use crate::cluster::Event;
use crate::cluster::resource::{
    ADD_ON_PLACEMENT_SCORES, MANAGED_CLUSTER_SET_BINDINGS, MANAGED_CLUSTER_SETS, MANAGED_CLUSTERS,
    PLACEMENT_DECISIONS, PLACEMENTS,
};
use crate::cluster::watch::{logged, watched};
use loadline_api as api;
use loadline_api::json::{Skip, Tree};
use loadline_api::ocm::cel::View;
use loadline_api::ocm::fleet::Scored;
use loadline_api::ocm::{decision, fleet, placement};
use loadline_core::place::{ClusterFacts, Members, Placement, Slice};
use serde_json::Value;

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Cluster(Event<Cluster>),
    Set(Event<Members>),
    Binding(Event<()>),
    Scores(Event<Scored>),
    Placement(Event<Wish>),
    Decision(Event<Slice>),
}

/// A cluster, and what expressions can read of it.
pub(super) type Cluster = (ClusterFacts, View);

/// A placement as it was written, and what was said about it.
#[derive(Clone, Debug)]
pub(super) struct Wish {
    pub placement: Placement,
    /// It is on its way out, and needs nothing any more.
    pub leaving: bool,
    /// Its status, with what others wrote into it.
    pub status: Value,
}

watched!(Clusters: MANAGED_CLUSTERS, skip Skip::MANAGED_FIELDS, Cluster, cluster);
watched!(Sets: MANAGED_CLUSTER_SETS, skip Skip::MANAGED_FIELDS, Members, |o| fleet::set(o).map(|(_, set)| set));
watched!(Bindings: MANAGED_CLUSTER_SET_BINDINGS, skip Skip::MANAGED_FIELDS, (), |o| fleet::binding(o).map(logged).map(drop));
watched!(Scores: ADD_ON_PLACEMENT_SCORES, skip Skip::MANAGED_FIELDS, Scored, |o| fleet::scores(o).map(logged));
watched!(Placements: PLACEMENTS, skip Skip::MANAGED_FIELDS, Wish, wish);
watched!(Decisions: PLACEMENT_DECISIONS, skip Skip::MANAGED_FIELDS, Slice, |o| decision::read(o).map(logged));

fn cluster(object: &Tree<'_>) -> Result<Cluster, api::Error> {
    Ok((fleet::cluster(object).map(logged)?, View::of(object)))
}

fn wish(object: &Tree<'_>) -> Result<Wish, api::Error> {
    Ok(Wish {
        placement: placement::read(object).map(logged)?,
        leaving: object["metadata"]["deletionTimestamp"].as_str().is_some(),
        status: Value::from(&object["status"]),
    })
}
