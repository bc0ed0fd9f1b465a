//! The answer of `what-if place` for people: who is selected, with how many points from where, and who is not.

use super::{Answer, PlacementAnswer};
use crate::out::{Detail, bold};
use crate::table::{Align, Table};
use jiff::Timestamp;
use loadline_core::place::{
    Action, ClusterReport, Condition, MISCONFIGURED, Outcome, SATISFIED, Score, Slice, Why,
};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Of more clusters than this, only so many are shown, unless everything is asked for.
const SHOWN: usize = 20;

/// All placements.
pub fn render(answer: &Answer, detail: Detail) -> String {
    if answer.placements.is_empty() {
        return "There is no Placement in the input: nothing to decide.\n".to_owned();
    }
    let text = |one: &PlacementAnswer| placement_text(one, answer.now, detail);
    answer.placements.iter().map(text).collect::<Vec<_>>().join("\n")
}

fn placement_text(one: &PlacementAnswer, now: Timestamp, detail: Detail) -> String {
    let outcome = &one.report.outcome;
    let name = bold(&one.placement.key.to_string());
    if outcome.disabled {
        return format!("{name} is left alone: somebody else decides it\n");
    }
    let mut text = format!("{name} {}\n", headline(outcome));
    if outcome.unscheduled > 0 && !outcome.selected.is_empty() {
        let _ = writeln!(text, "  {} more wanted", outcome.unscheduled);
    }
    let shown = detail.rows(SHOWN);
    let (scored, filtered): (Vec<&ClusterReport>, Vec<_>) =
        one.report.clusters.iter().partition(|found| found.total.is_some());
    text.push_str(&points(&scored, shown));
    text.push_str(&refused(&filtered, shown));
    text.push_str(&writes(outcome));
    text.push_str(&notes(one, now));
    if detail == Detail::Wide {
        for event in &outcome.events {
            let kind = if event.warning { "Warning" } else { "Normal" };
            let _ = writeln!(text, "  event: {kind} {}: {}", event.reason, event.note.to_string().trim_end());
        }
    }
    text
}

/// Who is selected, or why nobody is.
fn headline(outcome: &Outcome) -> String {
    if let Some(found) = misconfigured(outcome) {
        return format!("{} {}", bold("is misconfigured:"), found.message);
    }
    if outcome.selected.is_empty() {
        let why = condition(outcome, SATISFIED).map_or("", |found| &found.message);
        return format!("→ {} {why}", bold("nothing:"));
    }
    format!("→ {}", bold(&names(outcome.selected.iter().map(|chosen| chosen.cluster))))
}

fn condition<'a>(outcome: &'a Outcome, kind: &str) -> Option<&'a Condition> {
    outcome.conditions.iter().find(|found| found.kind == kind)
}

fn misconfigured(outcome: &Outcome) -> Option<&Condition> {
    condition(outcome, MISCONFIGURED).filter(|found| found.status)
}

/// The names, or how many there are.
fn names<'a>(all: impl IntoIterator<Item = &'a str>) -> String {
    let all: Vec<&str> = all.into_iter().collect();
    if all.len() > SHOWN {
        return format!("{} clusters: {}, …", all.len(), all[..SHOWN].join(", "));
    }
    all.join(", ")
}

/// A column per prioritizer, with what it comes to.
fn points(scored: &[&ClusterReport], shown: usize) -> String {
    if scored.is_empty() {
        return String::new();
    }
    let points = scored.iter().flat_map(|found| &found.scores);
    let heads: BTreeSet<(&str, i64)> = points.map(|score| (score.name.as_str(), score.weight)).collect();
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
        let by_name: BTreeMap<&str, &Score> =
            found.scores.iter().map(|score| (score.name.as_str(), score)).collect();
        let mut cells =
            vec![found.cluster.to_string(), found.total.map_or_else(String::new, |total| total.to_string())];
        cells.extend(heads.iter().map(|(name, _)| worth(by_name.get(name).copied())));
        cells.push(match (&found.why, found.held) {
            (Some(why), _) => why.to_string(),
            (None, true) => "(held: selected a moment ago)".to_owned(),
            (None, false) => String::new(),
        });
        table.row(cells);
    }
    table.render(2) + &more(scored.len(), shown)
}

/// What a prioritizer's points come to.
fn worth(score: Option<&Score>) -> String {
    match score.map(|score| (score.raw, score.weighted)) {
        Some((Some(_), weighted)) => weighted.to_string(),
        Some((None, 0)) | None => "-".to_owned(),
        Some((None, unknown)) => format!("unknown {unknown}"),
    }
}

/// Who was filtered, and by what.
fn refused(filtered: &[&ClusterReport], shown: usize) -> String {
    if filtered.is_empty() {
        return String::new();
    }
    let mut table = Table::new([("CLUSTER", Align::Left), ("BY", Align::Left), ("WHY", Align::Left)]);
    for found in filtered.iter().take(shown) {
        let by = found.why.as_ref().and_then(Why::filter).unwrap_or_default();
        let why = found.why.as_ref().map(ToString::to_string).unwrap_or_default();
        table.row([found.cluster.to_string(), by.to_owned(), why]);
    }
    format!("  filtered:\n{}{}", table.render(2), more(filtered.len(), shown))
}

fn more(count: usize, shown: usize) -> String {
    match count.saturating_sub(shown) {
        0 => String::new(),
        hidden => format!("  and {hidden} more clusters; -o wide shows all\n"),
    }
}

/// What stays in spite of a mistake, and what would be written, in its order.
fn writes(outcome: &Outcome) -> String {
    fn clusters(slice: &Slice) -> impl Iterator<Item = &str> {
        slice.entries.iter().map(|entry| &*entry.cluster)
    }
    let mut text = String::new();
    let (stays, written): (Vec<_>, Vec<_>) =
        outcome.writes.iter().partition(|write| write.action == Action::None);
    let kept = names(stays.iter().flat_map(|write| clusters(&write.slice)));
    if misconfigured(outcome).is_some() && !kept.is_empty() {
        let _ = writeln!(text, "  kept: {kept}");
    }
    for write in written {
        let list = names(clusters(&write.slice));
        let list = if list.is_empty() { "no cluster" } else { &list };
        let _ = writeln!(text, "  {} {}: {list}", write.action.as_str(), write.slice.key.name);
    }
    text
}

/// What else is worth knowing.
fn notes(one: &PlacementAnswer, now: Timestamp) -> String {
    let mut text = String::new();
    if one.goes_by_load() {
        let age = one.load_age(now).map_or_else(String::new, |age| format!(", the oldest {age} s old"));
        let _ = writeln!(text, "  load: {}{age}", one.report.source.as_str());
    }
    if let Some(time) = one.report.outcome.requeue_at {
        let _ = writeln!(text, "  looked at again at {time}");
    }
    for warning in &one.warnings {
        let _ = writeln!(text, "  note: {warning}");
    }
    text
}
