//! Why does a placement get whom it gets? A decision with its reasons, as programs read it. Field names are a promise.

use jiff::Timestamp;
use loadline_core::place::{ClusterReport, Report, Score, Why};
use serde::Serialize;
use std::collections::BTreeMap;

/// What one placement would select now.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explanation<'a> {
    api_version: &'static str,
    kind: &'static str,
    /// `namespace/name`.
    placement: String,
    at: Timestamp,
    /// By rank, or in the order of picking under a spread policy.
    selected: Vec<&'a str>,
    /// What is published.
    published: Vec<&'a str>,
    unscheduled: usize,
    clusters: Vec<ClusterResult<'a>>,
    source: Option<SourceResult>,
    margin: Option<i64>,
    warnings: &'a [String],
}

impl<'a> Explanation<'a> {
    pub fn of(placement: String, report: &'a Report, published: Vec<&'a str>, now: Timestamp) -> Self {
        Self {
            api_version: "loadline.dev/v1alpha1",
            kind: "PlacementExplanation",
            placement,
            at: now,
            selected: report.outcome.selected.iter().map(|chosen| chosen.cluster).collect(),
            published,
            unscheduled: report.outcome.unscheduled,
            clusters: report.clusters.iter().map(cluster_result).collect(),
            source: source_result(report, now),
            margin: report.outcome.margin,
            warnings: &report.outcome.warnings,
        }
    }
}

/// What was found about one candidate.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResult<'a> {
    cluster: &'a str,
    /// `Predicate`, `TaintToleration`, or `null`.
    filtered_by: Option<&'static str>,
    /// Why it is not selected.
    reason: Option<String>,
    scores: BTreeMap<&'a str, ScoreResult>,
    /// `null` if it was filtered.
    total: Option<i64>,
    /// By how many points it is ahead of the first that is not selected.
    margin: Option<i64>,
    /// Is it too fresh to be given up?
    held: bool,
    /// The published load it was judged by.
    load: Option<LoadResult>,
}

/// Points of one prioritizer.
#[derive(Debug, Serialize)]
struct ScoreResult {
    /// `null`: nothing is known.
    raw: Option<i64>,
    weight: i64,
    weighted: i64,
}

/// A published load.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LoadResult {
    timestamp: String,
    age_seconds: i64,
    /// Was it young enough?
    used: bool,
}

/// Where resource scores have their figures from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceResult {
    /// `static`, `requested` or `measured`.
    source: &'static str,
    /// The oldest load that was used.
    oldest: Option<String>,
    age_seconds: Option<i64>,
}

/// What is told of one candidate.
#[must_use]
pub fn cluster_result(found: &ClusterReport) -> ClusterResult<'_> {
    let score =
        |score: &'_ Score| ScoreResult { raw: score.raw, weight: score.weight, weighted: score.weighted };
    ClusterResult {
        cluster: &found.cluster,
        filtered_by: found.why.as_ref().and_then(Why::filter),
        reason: found.why.as_ref().map(ToString::to_string),
        scores: found.scores.iter().map(|one| (one.name.as_str(), score(one))).collect(),
        total: found.total,
        margin: found.margin,
        held: found.held,
        load: found.load.map(|load| LoadResult {
            timestamp: load.at.to_string(),
            age_seconds: load.age_seconds,
            used: load.fresh,
        }),
    }
}

/// What resource scores took for free; none if no resource is weighed.
#[must_use]
pub fn source_result(report: &Report, now: Timestamp) -> Option<SourceResult> {
    report.weighs_resources.then(|| SourceResult {
        source: report.source.as_str(),
        oldest: report.oldest_load.map(|time| time.to_string()),
        age_seconds: report.oldest_load.map(|time| now.duration_since(time).as_secs()),
    })
}
