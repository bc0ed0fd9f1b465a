//! Which of the differences told in `docs/division-differences.md` is this one?

use crate::ours::{Question, upstream};
use loadline_core::divide::{Binding, By, Division, Mode, Opinion, Options, Placement};
use loadline_testkit::karmada::Decision;
use std::collections::BTreeMap;

/// What Karmada puts before a text that we give as it is.
const PREFIXES: [&str; 6] = [
    "",
    "failed to select clusters: ",
    "failed to assign replicas: ",
    "failed to assign replicas: failed to scale up: ",
    "failed to assign replicas: failed to scale down: ",
    "failed to assign replicas: failed to do fresh scale: ",
];

/// Do the two say the same?
pub fn agree(ours: &Decision, theirs: &Decision) -> bool {
    (&ours.clusters, &ours.reason) == (&theirs.clusters, &theirs.reason)
        && same_text(&ours.message, &theirs.message)
}

fn same_text(ours: &str, theirs: &str) -> bool {
    theirs.strip_suffix(ours).is_some_and(|prefix| PREFIXES.contains(&prefix))
}

/// Differences that stay even where ours does as Karmada does: there is nothing in it to be like.
pub fn always(question: &Question, ours: &Decision, theirs: &Decision) -> Option<&'static str> {
    let same = (&ours.clusters, &ours.reason) == (&theirs.clusters, &theirs.reason);
    if same && ours.reason == "NoClusterFit" && reasons_hold(question, &theirs.message) {
        return Some("first-reason");
    }
    let bare = "Clusters available replicas are not enough to schedule.";
    if same && ours.message.starts_with("Clusters available replicas ") && same_text(bare, &theirs.message) {
        return Some("tiers-text");
    }
    let wraps = question.binding.is_fresh() && question.binding.replicas == 0;
    (wraps && theirs.message.contains("available replicas -")).then_some("overflow")
}

/// Differences that we want.
pub fn wanted(question: &Question, ours: &Decision, theirs: &Decision) -> Vec<&'static str> {
    let Question { binding, members, estimators, .. } = question;
    let placement = binding.placement.as_ref().expect("every binding has one");
    let by = |wanted: fn(&By) -> bool| placement.spread.iter().any(|spread| wanted(&spread.by));
    let spreads = spreads(placement);
    let mut rows = Vec::new();
    let mut row = |name, holds: bool| rows.extend(holds.then_some(name));
    let same = ours.clusters == theirs.clusters && same_text(&ours.message, &theirs.message);
    if same && (ours.reason.as_str(), theirs.reason.as_str()) == ("Unschedulable", "SchedulerError") {
        return vec!["spread-room"];
    }
    if agree(&question.decision(Options { mode: Mode::Min, ..Options::default() }), theirs) {
        return vec!["accurate-first"];
    }
    let failed = |opinion: &Opinion| matches!(opinion, Opinion::Failed(_));
    row("one-dead", estimators.iter().any(|one| one.opinions.values().any(failed)));
    row("accurate-first", !estimators.is_empty() && binding.replicas > 0);
    let asked = binding.ask.iter().flat_map(|ask| ask.requests.keys());
    let modelled = members.iter().any(|member| !member.models.is_empty());
    row("unlisted", modelled && asked.into_iter().any(|name| name != "cpu" && name != "memory"));
    let unsaid = !by(|by| *by == By::Cluster) || placement.spread.iter().any(|spread| spread.max == 0);
    row("no-maximum", spreads && unsaid);
    let least = |spread: &loadline_core::divide::Spread| {
        spread.by != By::Cluster && spreads && {
            let most =
                placement.spread.iter().find(|other| other.by == By::Cluster).map_or(0, |other| other.max);
            most > 0 && spread.min > most
        }
    };
    row("too-many-groups", placement.spread.iter().any(least));
    row("every-field", by(|by| matches!(by, By::Zone | By::Provider | By::Label(_))));
    row("regions-room", spreads && by(|by| *by == By::Region) && placement.division != Division::Duplicated);
    row("anew", binding.is_fresh() && !binding.observed.is_empty() && !placement.groups.is_empty());
    row("components", !binding.components.is_empty());
    rows
}

/// Does it look at spread constraints?
fn spreads(placement: &Placement) -> bool {
    let ignored = match &placement.division {
        Division::Weighted(None) => true,
        Division::Weighted(Some(weights)) => !weights.dynamic && !weights.fixed.is_empty(),
        _ => false,
    };
    !placement.spread.is_empty() && !ignored
}

/// Could every cluster have been refused for one of the reasons counted there? Which of several is told depends on the
/// order in which Karmada happens to run its filters.
fn reasons_hold(question: &Question, message: &str) -> bool {
    let refusals: Vec<Vec<String>> = question.refusals().into_values().collect();
    let Some((_, list)) = message.split_once(" clusters are available: ") else { return false };
    let mut counts = BTreeMap::new();
    for counted in list.trim_end_matches('.').split(", ") {
        let Some((count, reason)) = counted.split_once(' ') else { return false };
        counts.insert(reason.to_owned(), count.parse().unwrap_or(0));
    }
    counts.values().sum::<usize>() == refusals.len() && shared_out(&refusals, &mut counts)
}

fn shared_out(clusters: &[Vec<String>], counts: &mut BTreeMap<String, usize>) -> bool {
    let Some((first, rest)) = clusters.split_first() else { return true };
    first.iter().any(|reason| {
        match counts.get_mut(reason) {
            Some(count) if *count > 0 => *count -= 1,
            _ => return false,
        }
        let found = shared_out(rest, counts);
        *counts.get_mut(reason).expect("it was there") += 1;
        found
    })
}

/// What kind of case it is, to see that all kinds come up.
pub fn kinds(question: &Question, decision: &Decision) -> Vec<String> {
    let Binding { clusters, replicas, .. } = &question.binding;
    let placement = question.binding.placement.as_ref().expect("every binding has one");
    let strategy = match &placement.division {
        Division::Duplicated => "duplicated",
        Division::Aggregated => "aggregated",
        Division::Weighted(Some(weights)) if weights.dynamic => "by room",
        Division::Weighted(_) => "by weights",
        Division::Unknown { .. } => "unknown",
    };
    let assigned: i64 = clusters.iter().map(|known| i64::from(known.replicas)).sum();
    let course = match assigned {
        _ if question.answer(upstream()).is_none() => "left",
        _ if question.binding.is_fresh() => "anew",
        0 => "first",
        _ if assigned < i64::from(*replicas) => "more",
        _ if assigned > i64::from(*replicas) => "fewer",
        _ => "same",
    };
    let spread = if spreads(placement) { "spread" } else { "free" };
    let tiers = placement.groups.iter().any(|group| !group.overflow.is_empty());
    let groups = if tiers {
        "tiers"
    } else if placement.groups.is_empty() {
        "one group"
    } else {
        "groups"
    };
    vec![
        format!("{} {strategy}", decision.reason),
        format!("{strategy} {course}"),
        format!("{strategy} {spread}"),
        format!("{} {groups}", decision.reason),
    ]
}
