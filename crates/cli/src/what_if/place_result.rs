//! The answer of `what-if place`, as programs read it. Field names are a promise.

use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Everything that was decided.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlaceResult {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// By namespace and name.
    pub placements: Vec<PlacementResult>,
    /// What was odd about the input as a whole.
    pub warnings: Vec<String>,
}

impl PlaceResult {
    pub fn new(placements: Vec<PlacementResult>, warnings: Vec<String>) -> Self {
        Self { api_version: "loadline.dev/v1alpha1", kind: "PlaceResult", placements, warnings }
    }
}

/// What one placement selects.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlacementResult {
    /// `namespace/name`.
    pub placement: String,
    #[serde(skip)]
    pub disabled: bool,
    /// By rank, or in the order of picking under a spread policy.
    pub selected: Vec<String>,
    pub unscheduled: usize,
    /// All candidates: the selected, the others by points, then those filtered.
    pub clusters: Vec<ClusterResult>,
    /// As in `status.decisionGroups`.
    pub groups: Value,
    /// In the order of writing.
    pub decisions: Vec<DecisionResult>,
    pub conditions: Vec<Value>,
    /// What resource scores took for free; `null` if no resource is weighed.
    pub source: Option<SourceResult>,
    #[serde(skip)]
    pub live: bool,
    /// By how many points the last of the selected is ahead.
    pub margin: Option<i64>,
    pub warnings: Vec<String>,
    pub requeue_at: Option<String>,
    pub last_score_update_time: Option<String>,
    pub rounds: Vec<RoundResult>,
    pub events: Vec<Value>,
}

/// What was found about one candidate.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ClusterResult {
    pub cluster: String,
    /// `Predicate`, `TaintToleration`, or `null`.
    pub filtered_by: Option<&'static str>,
    /// Why it is not selected.
    pub reason: Option<String>,
    pub scores: BTreeMap<String, ScoreResult>,
    /// `null` if it was filtered.
    pub total: Option<i64>,
    /// By how many points it is ahead of the first that is not selected.
    pub margin: Option<i64>,
    /// Is it too fresh to be given up?
    pub held: bool,
    /// The published load it was judged by.
    pub load: Option<LoadResult>,
}

/// Points of one prioritizer.
#[derive(Debug, Serialize)]
pub struct ScoreResult {
    /// `null`: nothing is known.
    pub raw: Option<i64>,
    pub weight: i64,
    pub weighted: i64,
}

/// A published load.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    pub timestamp: String,
    pub age_seconds: i64,
    /// Was it young enough?
    pub used: bool,
}

/// Where resource scores have their figures from.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SourceResult {
    /// `static`, `requested` or `measured`.
    pub source: &'static str,
    /// The oldest load that was used.
    pub oldest: Option<String>,
    pub age_seconds: Option<i64>,
}

/// What is done with one `PlacementDecision`.
#[derive(Debug, Serialize)]
pub struct DecisionResult {
    /// `create`, `patch`, `none` or `delete`.
    pub action: &'static str,
    /// The complete object.
    pub object: Value,
}

/// One round under a spread policy.
#[derive(Debug, Serialize)]
pub struct RoundResult {
    pub raw: BTreeMap<String, i64>,
    pub normalised: BTreeMap<String, i64>,
    pub totals: BTreeMap<String, i64>,
    pub picked: String,
}
