//! `loadline what-if place`: which clusters would these placements select, and why these?

use super::place_input::{self, Input};
use super::place_result::{
    ClusterResult, DecisionResult, LoadResult, PlaceResult, PlacementResult, RoundResult, ScoreResult,
    SourceResult,
};
use super::{now, place_table, warn};
use crate::args::{Kept, Place};
use crate::out::{self, Output, Refused};
use anyhow::Result;
use loadline_api::ocm::decision;
use loadline_core::place::{
    Action, ClusterReport, OnMisconfigured, Options, Placement, Report, Round, Source, Write,
};
use serde_json::Value;
use std::sync::Arc;

/// Reads, decides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Place) -> Result<()> {
    let options = Options {
        on_misconfigured: match args.on_misconfigured {
            Kept::Retain => OnMisconfigured::Retain,
            Kept::Clear => OnMisconfigured::Clear,
        },
        publish_scores: args.publish_scores,
    };
    let input = place_input::read(&args.input.files, options).map_err(Refused::new)?;
    let result = decide(input, now(args.input.now));
    warn(&result.warnings);
    match args.output {
        Output::Table | Output::Wide => {
            out::print(&place_table::render(&result, args.output == Output::Wide));
            Ok(())
        }
        format => out::document(format, &result),
    }
}

/// Decides every placement as if it were alone: what one selects, the others do not see before it is published.
fn decide(input: Input, now: jiff::Timestamp) -> PlaceResult {
    let Input { mut fleet, judge, slices, noted, warnings } = input;
    let placements: Vec<Arc<Placement>> = fleet.placements().cloned().collect();
    let mut results = Vec::with_capacity(placements.len());
    for placement in placements {
        let Some(report) = fleet.report(&placement.key, &judge, now) else { continue };
        let noted = noted.get(&placement.key).cloned().unwrap_or_default();
        let there = |write: &Write| slices.get(&write.slice.key);
        results.push(result(report, &placement, &there, noted, now));
    }
    PlaceResult::new(results, warnings)
}

fn result<'a>(
    report: Report,
    placement: &Placement,
    there: &impl Fn(&Write) -> Option<&'a Value>,
    mut warnings: Vec<String>,
    now: jiff::Timestamp,
) -> PlacementResult {
    let Report { outcome, clusters, rounds, source, weighs_resources, oldest_load, .. } = report;
    warnings.extend(outcome.warnings.iter().cloned());
    let decision = |write: &Write| {
        let known = there(write);
        let kept = matches!(write.action, Action::None | Action::Delete);
        let fresh = || decision::render(&write.slice, placement, known);
        DecisionResult {
            action: write.action.as_str(),
            object: known.filter(|_| kept).cloned().unwrap_or_else(fresh),
        }
    };
    PlacementResult {
        placement: placement.key.to_string(),
        disabled: outcome.disabled,
        selected: outcome.selected.iter().map(|chosen| chosen.cluster.to_string()).collect(),
        unscheduled: outcome.unscheduled,
        clusters: clusters.into_iter().map(cluster_result).collect(),
        groups: decision::groups(&outcome.groups),
        decisions: outcome.writes.iter().map(decision).collect(),
        conditions: outcome.conditions.iter().map(|one| decision::condition(one, placement)).collect(),
        source: weighs_resources.then(|| SourceResult {
            source: source.as_str(),
            oldest: oldest_load.map(|time| time.to_string()),
            age_seconds: oldest_load.map(|time| now.duration_since(time).as_secs()),
        }),
        live: weighs_resources && source != Source::Static,
        margin: outcome.margin,
        warnings,
        requeue_at: outcome.requeue_at.map(|time| time.to_string()),
        last_score_update_time: outcome.last_score_update.map(|time| time.to_string()),
        rounds: rounds.into_iter().map(round_result).collect(),
        events: decision::events(&outcome),
    }
}

fn cluster_result(found: ClusterReport) -> ClusterResult {
    let score = |score: loadline_core::place::Score| {
        let loadline_core::place::Score { name, raw, weight, weighted } = score;
        (name, ScoreResult { raw, weight, weighted })
    };
    ClusterResult {
        cluster: found.cluster.to_string(),
        filtered_by: found.why.as_ref().and_then(loadline_core::place::Why::filter),
        reason: found.why.as_ref().map(ToString::to_string),
        scores: found.scores.into_iter().map(score).collect(),
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

fn round_result(round: Round) -> RoundResult {
    let by_name = |pairs: Vec<(Arc<str>, i64)>| {
        pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
    };
    RoundResult {
        raw: by_name(round.raw),
        normalised: by_name(round.normalised),
        totals: by_name(round.totals),
        picked: round.picked.to_string(),
    }
}
