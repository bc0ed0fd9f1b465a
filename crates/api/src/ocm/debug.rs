//! How was a placement decided? The document of OCM's debug endpoint, and what it leaves out.
//!
//! | key | whose | what |
//! |---|---|---|
//! | `placement` | OCM's | its name |
//! | `filteredPipelineResults` | OCM's | who is left after each filter |
//! | `prioritizeResults` | OCM's | the points of each prioritizer, and its weight |
//! | `aggregatedScores` | OCM's | the totals, the best first |
//! | `error` | OCM's | why nothing could be decided |
//! | `clusters` | ours | everybody: selected or why not, total, margin to the cut |
//! | `decisionGroups`, `conditions`, `margin`, `warnings`, `requeueAt` | ours | what is published and said, and when to look again |

use super::decision;
use loadline_core::object::Key;
use loadline_core::place::{ClusterReport, Code, Placement, Report, Why};
use serde_json::{Map, Value, json};
use std::cmp::Reverse;

/// The document.
#[must_use]
pub fn document(key: &Key, report: &Report) -> Value {
    let Report { outcome, clusters, .. } = report;
    let names = |passed: &dyn Fn(&&ClusterReport) -> bool| -> Vec<&str> {
        clusters.iter().filter(passed).map(|one| &*one.cluster).collect()
    };
    let matching = |one: &&ClusterReport| !matches!(one.why, Some(Why::Mismatch { .. }));
    let tolerated = |one: &&ClusterReport| matching(one) && !matches!(one.why, Some(Why::Untolerated { .. }));
    let mut totals: Vec<(&str, i64)> =
        clusters.iter().filter_map(|one| Some((&*one.cluster, one.total?))).collect();
    totals.sort_by_key(|(name, total)| (Reverse(*total), *name));
    let error = match &outcome.code {
        Code::Error(why) => why.clone(),
        Code::Misconfigured(problems) => {
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        }
        Code::Success | Code::Warning { .. } => String::new(),
    };
    let bare = Placement::default();
    json!({
        "placement": {"metadata": {"name": &*key.name, "namespace": &*key.namespace}},
        "filteredPipelineResults": [
            {"name": "Predicate", "filteredClusters": names(&matching)},
            {"name": "Predicate,TaintToleration", "filteredClusters": names(&tolerated)},
        ],
        "prioritizeResults": prioritized(clusters),
        "aggregatedScores": totals.iter().map(|(name, total)| json!({"clusterName": name, "score": total})).collect::<Vec<_>>(),
        "error": error,
        "clusters": clusters.iter().map(cluster).collect::<Vec<_>>(),
        "decisionGroups": decision::groups(&outcome.groups),
        "conditions": outcome.conditions.iter().map(|one| decision::condition(one, &bare)).collect::<Vec<_>>(),
        "margin": outcome.margin,
        "warnings": outcome.warnings,
        "requeueAt": outcome.requeue_at.map(|at| at.to_string()),
    })
}

/// One table for each prioritizer, in the order of the first cluster that has points.
fn prioritized(clusters: &[ClusterReport]) -> Vec<Value> {
    let Some(first) = clusters.iter().find(|one| !one.scores.is_empty()) else { return Vec::new() };
    let table = |(at, score): (usize, &loadline_core::place::Score)| {
        let points = clusters.iter().filter_map(|one| {
            // Nothing known is told as 0 of the scores of others, and not told of resources.
            let score = one.scores.get(at)?;
            let known = score.raw.or_else(|| score.name.starts_with("AddOn/").then_some(0))?;
            Some((one.cluster.to_string(), json!(known)))
        });
        json!({"name": score.name, "weight": score.weight, "scores": points.collect::<Map<_, _>>()})
    };
    first.scores.iter().enumerate().map(table).collect()
}

fn cluster(one: &ClusterReport) -> Value {
    json!({
        "clusterName": &*one.cluster, "selected": one.selected, "why": one.why.as_ref().map(ToString::to_string),
        "score": one.total, "margin": one.margin,
    })
}
