//! The answer of `what-if divide`, as programs read it. Field names are a promise.

use serde::Serialize;
use std::collections::BTreeMap;

/// Who gets how many.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DivideResult {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// What was divided, such as `ResourceBinding shop/web-deployment`.
    pub workload: String,
    /// What would be written to `spec.clusters`, by name; empty when nothing could be decided.
    pub clusters: Vec<ClusterResult>,
    /// Clusters that passed all filters, in the order in which they are chosen.
    pub feasible: Vec<FeasibleResult>,
    /// Clusters that did not, by name.
    pub filtered: Vec<FilteredResult>,
    pub condition: ConditionResult,
    /// Replicas that are wanted and not assigned.
    pub shortfall: i32,
    /// The affinity group that was taken; `null` where there are none, or none would do.
    pub affinity: Option<String>,
    pub warnings: Vec<String>,
}

/// What a cluster gets.
#[derive(Debug, Serialize)]
pub struct ClusterResult {
    pub name: String,
    /// Absent for what has no replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// A complete set of these, for workloads of several templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentResult>,
}

/// One component.
#[derive(Debug, Serialize)]
pub struct ComponentResult {
    pub name: String,
    pub replicas: i32,
}

/// A cluster that may have it.
#[derive(Debug, Serialize)]
pub struct FeasibleResult {
    pub name: String,
    /// How many tiers must be full before it gets anything; absent where there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub tier: usize,
    /// 100 where it is already, else 0.
    pub score: i64,
    /// How many more fit: replicas, or complete sets. 2147483647 for what needs no room.
    pub allocatable: i32,
    /// The same and what it has already.
    pub available: i64,
    /// What each estimator said; `null` for no opinion.
    pub estimates: BTreeMap<String, Option<i32>>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(tier: &usize) -> bool {
    *tier == 0
}

/// A cluster that may not have it.
#[derive(Debug, Serialize)]
pub struct FilteredResult {
    pub name: String,
    pub reasons: Vec<String>,
}

/// The condition that would be written.
#[derive(Debug, Serialize)]
pub struct ConditionResult {
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub status: &'static str,
    pub reason: &'static str,
    pub message: String,
}
