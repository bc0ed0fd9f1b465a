//! Where we decide differently from Open Cluster Management's controller on purpose, as
//! `docs/placement-differences.md` lists it: what of that random placements meet, recognised.

use super::ours::Ours;
use super::{Result, Said};
use loadline_core::place::{Code, GroupSize, Placement, Why};

/// What everybody says when nobody is selected.
const NONE: &str = "No ManagedCluster matches any of the cluster predicate";

/// What theirs should be for these of ours, and the rows of the document that say so.
pub fn theirs_for(ours: &Ours, placement: &Placement, theirs: &Result) -> (Result, Vec<&'static str>) {
    let key = (placement.key.namespace.to_string(), placement.key.name.to_string());
    let mut expected = ours.result(&key);
    let mut rows = Vec::new();
    if overshoots(placement, expected.selected) {
        let mut other = ours.clone();
        let share = share(&placement.group_size, expected.selected).expect("it overshoots");
        other.set(Placement { group_size: GroupSize::Count(share.1), ..placement.clone() });
        other.settle();
        expected = other.result(&key);
        rows.push("percent");
    }
    if expected.satisfied.reason == "NoManagedClusterMatched" && expected.satisfied.message != NONE {
        NONE.clone_into(&mut expected.satisfied.message);
        rows.push("why-none");
    }
    let Code::Misconfigured(problems) = &ours.outcome(&key).code else { return (expected, rows) };
    let group = |message: &str| message.starts_with("decisionGroups[");
    if theirs.misconfigured.status {
        let said = &theirs.misconfigured.message;
        let (plugin, _) = said.split_once(':').unwrap_or_default();
        let words = |message: &str| {
            message.starts_with("predicates[") || message.starts_with("compilation failed") || group(message)
        };
        // Ours tells the first mistake, theirs one of a later step where the first was not reached.
        let told = problems.iter().find(|one| one.to_string() == *said);
        let worded = problems.iter().find(|one| one.plugin == plugin && words(&one.message));
        match (told, worded) {
            (Some(_), _) => {}
            (None, Some(_)) => rows.push("words"),
            (None, None) => return (expected, rows),
        }
        if told.is_some() && *said != expected.misconfigured.message {
            rows.push("at-once");
        }
        // Of what they say only the words are theirs: status and reason must be ours.
        expected.misconfigured.message.clone_from(said);
    } else if unreached(ours, placement) {
        expected.misconfigured = fine();
        rows.push("at-once");
    }
    if problems.iter().all(|one| group(&one.message)) {
        let mut other = ours.clone();
        other.set(Placement { groups: Vec::new(), ..placement.clone() });
        other.settle();
        let without = other.result(&key);
        expected.satisfied = without.satisfied;
        if expected.satisfied.reason == "NoManagedClusterMatched" {
            NONE.clone_into(&mut expected.satisfied.message);
        }
        expected.selected = without.selected;
        // All clusters are counted, and of them only those in groups before the malformed one are published.
        let number = |message: &str| message.strip_prefix("decisionGroups[")?.split(']').next()?.parse().ok();
        let before: usize = problems.iter().filter_map(|one| number(&one.message)).min().unwrap_or(0);
        let groups = placement.groups[..before].to_vec();
        let named: Vec<String> = groups.iter().map(|group| group.name.clone()).collect();
        let mut other = ours.clone();
        other.set(Placement { groups, ..placement.clone() });
        other.settle();
        let published = other.result(&key);
        expected.groups = published.groups;
        expected.groups.retain(|group| named.contains(&group.name));
        let kept: Vec<&String> = expected.groups.iter().flat_map(|group| &group.slices).collect();
        expected.slices = published.slices.into_iter().filter(|slice| kept.contains(&&slice.name)).collect();
        rows.push("bad-group");
    }
    (expected, rows)
}

/// What is said of a placement that makes sense.
fn fine() -> Said {
    let message = "Placement configurations check pass".to_owned();
    Said { status: false, reason: "Succeedconfigured".to_owned(), message }
}

/// Does no cluster come as far as the mistake?
fn unreached(ours: &Ours, placement: &Placement) -> bool {
    let mut other = ours.clone();
    let fine = |placement: Placement| Placement { tolerations: Vec::new(), ..placement };
    let key = (placement.key.namespace.to_string(), placement.key.name.to_string());
    let Code::Misconfigured(problems) = &ours.outcome(&key).code else { return false };
    if problems.iter().any(|one| one.plugin.is_empty()) {
        return false;
    }
    let of_taints = problems.iter().all(|one| one.plugin == "TaintToleration");
    let mut clean = fine(placement.clone());
    if !of_taints {
        clean.predicates.clear();
    }
    other.set(clean);
    let report = other.report(&key);
    let mismatch = |why: &Option<Why>| matches!(why, Some(Why::Mismatch { .. }));
    report.clusters.is_empty() || (of_taints && report.clusters.iter().all(|one| mismatch(&one.why)))
}

/// The share of a percentage: exactly, and as floating-point numbers have it.
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "that is how they count")]
fn share(size: &GroupSize, selected: i64) -> Option<(i64, i64)> {
    let GroupSize::Text(text) = size else { return None };
    let percent: i64 = text.strip_suffix('%')?.parse().ok()?;
    let exact = (percent * selected + 99) / 100;
    Some((exact, (percent as f64 / 100.0 * selected as f64).ceil() as i64))
}

fn overshoots(placement: &Placement, selected: i64) -> bool {
    share(&placement.group_size, selected).is_some_and(|(exact, float)| exact != float)
}
