//! Which of the differences told in `docs/division-differences.md` is this one?

use crate::ours::{Question, upstream};
use loadline_core::divide::due::Applied;
use loadline_core::divide::{Binding, By, Division, Mode, Opinion, Placement, Spread};
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

/// The names that [`always`] gives.
const ALWAYS: [&str; 4] = ["first-reason", "tiers-text", "overflow", "stranded"];

/// Strategies that remember, and everything that can happen to the number of replicas.
pub const COURSES: [(&str, &str); 12] = [
    ("aggregated", "first"),
    ("aggregated", "more"),
    ("aggregated", "fewer"),
    ("aggregated", "same"),
    ("aggregated", "anew"),
    ("aggregated", "left"),
    ("by room", "first"),
    ("by room", "more"),
    ("by room", "fewer"),
    ("by room", "same"),
    ("by room", "anew"),
    ("by room", "left"),
];

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
    let nowhere = !question.binding.components.is_empty() && question.binding.clusters.is_empty();
    if nowhere
        && question.applied != Applied::Never
        && theirs.reason == "Success"
        && theirs.clusters.is_empty()
    {
        return Some("stranded");
    }
    let wraps = question.binding.is_fresh() && question.binding.replicas == 0;
    (wraps && theirs.message.contains("available replicas -")).then_some("overflow")
}

/// A difference that we want, and how to take its cause out of a question.
type Wanted = (&'static str, fn(&mut Question));

/// All of them.
const WANTED: [Wanted; 10] = [
    ("accurate-first", |q| q.mode = Mode::Min),
    ("one-dead", |q| {
        for opinion in q.estimators.iter_mut().flat_map(|one| one.opinions.values_mut()) {
            if matches!(opinion, Opinion::Failed(_)) {
                *opinion = Opinion::Count(-1);
            }
        }
    }),
    ("unlisted", |q| {
        if let Some(ask) = &mut q.binding.ask {
            ask.requests.retain(|name, _| name == "cpu" || name == "memory");
        }
    }),
    ("no-maximum", |q| {
        let spread = spread(q);
        if !spread.is_empty() && !spread.iter().any(|one| one.by == By::Cluster) {
            spread.push(Spread { by: By::Cluster, min: 0, max: 0 });
        }
        for one in spread.iter_mut().filter(|one| one.max == 0) {
            one.max = 100;
        }
    }),
    ("too-many-groups", |q| {
        let spread = spread(q);
        let most = spread.iter().map(|one| one.max.max(one.min)).max();
        for one in spread.iter_mut().filter(|one| one.by == By::Cluster && one.max > 0) {
            one.max = most.unwrap_or(0);
        }
    }),
    ("every-field", |q| spread(q).retain(|one| matches!(one.by, By::Cluster | By::Region))),
    ("regions-room", |q| {
        if spread(q).iter().any(|one| one.by == By::Region) {
            q.replaced = q.members.iter().map(|member| (member.name.to_string(), 1000)).collect();
        }
    }),
    ("spread-room", |q| q.spread_is_error = true),
    ("anew", |q| q.binding.observed.clear()),
    ("components", |q| q.binding.components.clear()),
];

/// The names of all rows.
pub fn names() -> impl Iterator<Item = &'static str> {
    WANTED.iter().map(|(name, _)| *name).chain(ALWAYS)
}

/// How often a row must come up at least.
pub fn least(row: &str) -> usize {
    match row {
        "accurate-first" | "spread-room" => 30,
        "no-maximum" | "every-field" => 15,
        _ => 2,
    }
}

fn spread(question: &mut Question) -> &mut Vec<Spread> {
    &mut question.binding.placement.as_mut().expect("every binding has one").spread
}

/// The fewest of [`WANTED`] without whose causes ours is what it is when it does as Karmada does.
pub fn causes(question: &Question) -> Option<Vec<&'static str>> {
    let rows = WANTED.len();
    let mut subsets: Vec<u32> = (1..1 << rows).filter(|subset: &u32| subset.count_ones() <= 4).collect();
    subsets.sort_by_key(|subset| subset.count_ones());
    let taken = |subset: &u32| {
        let subset = *subset;
        WANTED.iter().enumerate().filter(move |(at, _)| subset & (1 << at) != 0).map(|(_, row)| row)
    };
    let explains = |subset: &u32| {
        let mut without = question.clone();
        taken(subset).for_each(|(_, take_out)| take_out(&mut without));
        without.decision(without.own()) == without.decision(upstream())
    };
    subsets
        .iter()
        .find(|subset| explains(subset))
        .map(|subset| taken(subset).map(|(name, _)| *name).collect())
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
