//! The answer of `what-if place` for people: who is selected, with how many points from where, and who is not.

use super::place_result::{ClusterResult, PlaceResult, PlacementResult};
use crate::out::bold;
use crate::table::{Align, Table};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Of more clusters than this, only so many are shown, unless everything is asked for.
const SHOWN: usize = 20;

/// All placements.
pub fn render(result: &PlaceResult, wide: bool) -> String {
    if result.placements.is_empty() {
        return "There is no Placement in the input: nothing to decide.\n".to_owned();
    }
    let placements: Vec<String> = result.placements.iter().map(|one| placement_text(one, wide)).collect();
    placements.join("\n")
}

fn placement_text(one: &PlacementResult, wide: bool) -> String {
    let name = bold(&one.placement);
    if one.disabled {
        return format!("{name} is left alone: somebody else decides it\n");
    }
    let satisfied = condition(one, "PlacementSatisfied");
    let misconfigured = condition(one, "PlacementMisconfigured").filter(|found| found["status"] == "True");
    let mut text = if let Some(found) = misconfigured {
        format!("{name} {} {}\n", bold("is misconfigured:"), found["message"].as_str().unwrap_or_default())
    } else if one.selected.is_empty() {
        let why = satisfied.and_then(|found| found["message"].as_str()).unwrap_or_default();
        format!("{name} → {} {why}\n", bold("nothing:"))
    } else {
        format!("{name} → {}\n", bold(&names(&one.selected)))
    };
    if one.unscheduled > 0 && !one.selected.is_empty() {
        let _ = writeln!(text, "  {} more wanted", one.unscheduled);
    }
    let (scored, filtered): (Vec<&ClusterResult>, Vec<_>) =
        one.clusters.iter().partition(|found| found.total.is_some());
    let shown = if wide { usize::MAX } else { SHOWN };
    if !scored.is_empty() {
        text.push_str(&points(&scored, shown));
    }
    if !filtered.is_empty() {
        text.push_str("  filtered:\n");
        let mut table = Table::new([("CLUSTER", Align::Left), ("BY", Align::Left), ("WHY", Align::Left)]);
        for found in filtered.iter().take(shown) {
            let cells = [Some(found.cluster.as_str()), found.filtered_by, found.reason.as_deref()];
            table.row(cells.map(|cell| cell.unwrap_or_default().to_owned()));
        }
        text.push_str(&table.render(2));
        more(&mut text, filtered.len(), shown);
    }
    if misconfigured.is_some() {
        let kept = one.decisions.iter().filter(|decision| decision.action == "none");
        let kept: Vec<String> = kept.flat_map(|decision| clusters(&decision.object)).collect();
        if !kept.is_empty() {
            let _ = writeln!(text, "  kept: {}", names(&kept));
        }
    }
    text.push_str(&writes(one));
    if let (Some(source), true) = (&one.source, one.live) {
        let age = source.age_seconds.map_or_else(String::new, |age| format!(", the oldest {age} s old"));
        let _ = writeln!(text, "  load: {}{age}", source.source);
    }
    if let Some(time) = &one.requeue_at {
        let _ = writeln!(text, "  looked at again at {time}");
    }
    for warning in &one.warnings {
        let _ = writeln!(text, "  note: {warning}");
    }
    if wide {
        for event in &one.events {
            let part = |key: &str| event[key].as_str().unwrap_or_default();
            let _ =
                writeln!(text, "  event: {} {}: {}", part("type"), part("reason"), part("note").trim_end());
        }
    }
    text
}

fn condition<'a>(one: &'a PlacementResult, kind: &str) -> Option<&'a Value> {
    one.conditions.iter().find(|found| found["type"] == kind)
}

/// The names, or how many there are.
fn names(all: &[String]) -> String {
    if all.len() > SHOWN {
        return format!("{} clusters: {}, …", all.len(), all[..SHOWN].join(", "));
    }
    all.join(", ")
}

/// A column per prioritizer, with what it comes to.
fn points(scored: &[&ClusterResult], shown: usize) -> String {
    let mut heads: BTreeSet<(&str, i64)> = BTreeSet::new();
    for found in scored {
        heads.extend(found.scores.iter().map(|(name, score)| (name.as_str(), score.weight)));
    }
    let mut columns = vec![("CLUSTER".to_owned(), Align::Left), ("TOTAL".to_owned(), Align::Right)];
    let head = |(name, weight): &(&str, i64)| match weight {
        1 => ((*name).to_owned(), Align::Right),
        weight => (format!("{name} ×{weight}"), Align::Right),
    };
    columns.extend(heads.iter().map(head));
    columns.push(("WHY NOT".to_owned(), Align::Left));
    let columns: Vec<(&str, Align)> = columns.iter().map(|(name, align)| (name.as_str(), *align)).collect();
    let mut table = Table::of(&columns);
    for found in scored.iter().take(shown) {
        let mut cells =
            vec![found.cluster.clone(), found.total.map_or_else(String::new, |total| total.to_string())];
        for (name, _) in &heads {
            let score = found.scores.get(*name);
            cells.push(match score.map(|score| (score.raw, score.weighted)) {
                Some((Some(_), weighted)) => weighted.to_string(),
                Some((None, 0)) | None => "-".to_owned(),
                Some((None, unknown)) => format!("unknown {unknown}"),
            });
        }
        cells.push(match (&found.reason, found.held) {
            (Some(reason), _) => reason.clone(),
            (None, true) => "(held: selected a moment ago)".to_owned(),
            (None, false) => String::new(),
        });
        table.row(cells);
    }
    let mut text = table.render(2);
    more(&mut text, scored.len(), shown);
    text
}

fn more(text: &mut String, count: usize, shown: usize) {
    if count > shown {
        let _ = writeln!(text, "  and {} more clusters; -o wide shows all", count - shown);
    }
}

/// What would be written, in its order.
fn writes(one: &PlacementResult) -> String {
    let mut text = String::new();
    for decision in one.decisions.iter().filter(|decision| decision.action != "none") {
        let object = &decision.object;
        let clusters = clusters(object);
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let list = if clusters.is_empty() { "no cluster".to_owned() } else { names(&clusters) };
        let _ = writeln!(text, "  {} {name}: {list}", decision.action);
    }
    text
}

/// The clusters in a `PlacementDecision`.
fn clusters(object: &Value) -> Vec<String> {
    let decisions = object["status"]["decisions"].as_array().into_iter().flatten();
    decisions.filter_map(|entry| entry["clusterName"].as_str().map(str::to_owned)).collect()
}
