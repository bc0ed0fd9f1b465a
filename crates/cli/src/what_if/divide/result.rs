//! The answer of `what-if divide`, as programs read it. Field names are a promise.

use super::Answer;
use loadline_core::divide::{self, Condition, Feasible, Filtered, Target};
use serde::Serialize;
use std::collections::BTreeMap;

/// Who gets how many.
#[derive(Serialize)]
pub struct DivideResult<'a> {
    /// What was divided, such as `ResourceBinding shop/web-deployment`.
    workload: &'a str,
    /// What would be written to `spec.clusters`, by name; empty when nothing could be decided.
    clusters: Vec<ClusterResult<'a>>,
    /// Clusters that passed all filters, in the order in which they are chosen.
    feasible: Vec<FeasibleResult<'a>>,
    /// Clusters that did not, by name.
    filtered: Vec<FilteredResult<'a>>,
    condition: ConditionResult,
    /// Replicas that are wanted and not assigned.
    shortfall: i32,
    /// The affinity group that was taken; `null` where there are none, or none would do.
    affinity: Option<&'a str>,
    warnings: &'a [String],
}

/// What a cluster gets.
#[derive(Serialize)]
struct ClusterResult<'a> {
    name: &'a str,
    /// Absent for what has no replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<i32>,
    /// A complete set of these, for workloads of several templates.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    components: Vec<ComponentResult<'a>>,
}

/// One component.
#[derive(Serialize)]
struct ComponentResult<'a> {
    name: &'a str,
    replicas: i32,
}

/// A cluster that may have it.
#[derive(Serialize)]
struct FeasibleResult<'a> {
    name: &'a str,
    /// How many tiers must be full before it gets anything; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    tier: Option<usize>,
    /// 100 where it is already, else 0.
    score: i64,
    /// How many more fit: replicas, or complete sets. 2147483647 for what needs no room.
    allocatable: i32,
    /// The same and what it has already.
    available: i64,
    /// What each estimator said; `null` for no opinion.
    estimates: BTreeMap<&'a str, Option<i32>>,
}

/// A cluster that may not have it.
#[derive(Serialize)]
struct FilteredResult<'a> {
    name: &'a str,
    reasons: [String; 1],
}

/// The condition that would be written.
#[derive(Serialize)]
struct ConditionResult {
    r#type: &'static str,
    status: &'static str,
    reason: &'static str,
    message: String,
}

pub fn of(answer: &Answer) -> DivideResult<'_> {
    let Answer { workload, divided, warnings } = answer;
    let Condition { status, reason, message } = divided.condition();
    DivideResult {
        workload,
        clusters: divided.clusters.iter().map(cluster_result).collect(),
        feasible: divided.feasible.iter().map(|cluster| feasible_result(divided, cluster)).collect(),
        filtered: divided.filtered.iter().map(filtered_result).collect(),
        condition: ConditionResult {
            r#type: Condition::TYPE,
            status: if status { "True" } else { "False" },
            reason,
            message,
        },
        shortfall: divided.shortfall,
        affinity: divided.affinity.as_deref(),
        warnings,
    }
}

fn cluster_result(target: &Target) -> ClusterResult<'_> {
    let components = target.components.iter();
    ClusterResult {
        name: &target.name,
        replicas: target.replicas,
        components: components
            .map(|(name, replicas)| ComponentResult { name, replicas: *replicas })
            .collect(),
    }
}

fn feasible_result<'a>(answer: &'a divide::Answer, cluster: &'a Feasible) -> FeasibleResult<'a> {
    FeasibleResult {
        name: &cluster.name,
        tier: (cluster.tier > 0).then_some(cluster.tier),
        score: cluster.score,
        allocatable: cluster.allocatable,
        available: cluster.available,
        estimates: answer.estimates(cluster).map(|(name, count)| (&**name, count)).collect(),
    }
}

fn filtered_result(cluster: &Filtered) -> FilteredResult<'_> {
    FilteredResult { name: &cluster.name, reasons: [cluster.reason.to_string()] }
}
