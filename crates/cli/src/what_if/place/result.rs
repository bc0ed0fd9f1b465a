//! The answer of `what-if place`, as programs read it. Field names are a promise.

use super::{Answer, PlacementAnswer};
use loadline_api::ocm::decision;
use loadline_core::object::Key;
use loadline_core::place::{Action, Round, Write};
use loadline_services::fleet::placement::explain::{
    ClusterResult, SourceResult, cluster_result, source_result,
};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything that was decided.
#[derive(Serialize)]
pub struct PlaceResult<'a> {
    /// By namespace and name.
    placements: Vec<PlacementResult<'a>>,
    /// What was odd about the input as a whole.
    warnings: &'a [String],
}

/// What one placement selects.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlacementResult<'a> {
    /// `namespace/name`.
    placement: String,
    /// By rank, or in the order of picking under a spread policy.
    selected: Vec<&'a str>,
    unscheduled: usize,
    /// All candidates: the selected, the others by points, then those filtered.
    clusters: Vec<ClusterResult<'a>>,
    /// As in `status.decisionGroups`.
    groups: Value,
    /// In the order of writing.
    decisions: Vec<DecisionResult>,
    conditions: Vec<Value>,
    /// What resource scores took for free; `null` if no resource is weighed.
    source: Option<SourceResult>,
    /// By how many points the last of the selected is ahead.
    margin: Option<i64>,
    warnings: &'a [String],
    requeue_at: Option<String>,
    last_score_update_time: Option<String>,
    rounds: Vec<RoundResult<'a>>,
    events: Vec<Value>,
}

/// What is done with one `PlacementDecision`.
#[derive(Serialize)]
struct DecisionResult {
    /// `create`, `patch`, `none` or `delete`.
    action: &'static str,
    /// The complete object.
    object: Value,
}

/// One round under a spread policy.
#[derive(Serialize)]
struct RoundResult<'a> {
    raw: BTreeMap<&'a str, i64>,
    normalised: BTreeMap<&'a str, i64>,
    totals: BTreeMap<&'a str, i64>,
    picked: &'a str,
}

pub fn of(answer: &Answer) -> PlaceResult<'_> {
    let placements = answer.placements.iter().map(|one| placement_result(one, answer)).collect();
    PlaceResult { placements, warnings: &answer.warnings }
}

fn placement_result<'a>(one: &'a PlacementAnswer, all: &Answer) -> PlacementResult<'a> {
    let PlacementAnswer { placement, report, warnings } = one;
    let outcome = &report.outcome;
    PlacementResult {
        placement: placement.key.to_string(),
        selected: outcome.selected.iter().map(|chosen| chosen.cluster).collect(),
        unscheduled: outcome.unscheduled,
        clusters: report.clusters.iter().map(cluster_result).collect(),
        groups: decision::groups(&outcome.groups),
        decisions: outcome.writes.iter().map(|write| decision_result(write, one, &all.published)).collect(),
        conditions: outcome.conditions.iter().map(|one| decision::condition(one, placement)).collect(),
        source: source_result(report, all.now),
        margin: outcome.margin,
        warnings,
        requeue_at: outcome.requeue_at.map(|time| time.to_string()),
        last_score_update_time: outcome.last_score_update.map(|time| time.to_string()),
        rounds: report.rounds.iter().map(round_result).collect(),
        events: decision::events(outcome),
    }
}

/// What is left alone or deleted is shown as it was written.
fn decision_result(write: &Write, of: &PlacementAnswer, published: &BTreeMap<Key, Value>) -> DecisionResult {
    let known = published.get(&write.slice.key);
    let kept = known.filter(|_| matches!(write.action, Action::None | Action::Delete)).cloned();
    let object = kept.unwrap_or_else(|| decision::render(&write.slice, &of.placement, known));
    DecisionResult { action: write.action.as_str(), object }
}

fn round_result(round: &Round) -> RoundResult<'_> {
    fn by_name(pairs: &[(Arc<str>, i64)]) -> BTreeMap<&str, i64> {
        pairs.iter().map(|(name, value)| (&**name, *value)).collect()
    }
    RoundResult {
        raw: by_name(&round.raw),
        normalised: by_name(&round.normalised),
        totals: by_name(&round.totals),
        picked: &round.picked,
    }
}
