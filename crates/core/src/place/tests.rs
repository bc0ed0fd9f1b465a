//! Small fleets, and what is decided for them.

mod conditions;
mod counterfactual;
mod examples;
mod filters;
mod groups;
mod incremental;
mod load;
mod properties;
mod scores;
mod sequence;
mod spread;
mod world;
mod writes;

use super::*;
use crate::object::Key;
use crate::select::LabelSelector;
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;

/// When most tests take place.
fn noon() -> Timestamp {
    at(0)
}

/// So many seconds after noon.
fn at(seconds: i64) -> Timestamp {
    let noon: Timestamp = "2025-01-01T12:00:00Z".parse().expect("a time");
    noon + SignedDuration::from_secs(seconds)
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn amounts(pairs: &[(&str, &str)]) -> Resources {
    pairs.iter().map(|(name, text)| ((*name).to_owned(), text.parse().expect("an amount"))).collect()
}

fn cluster(name: &str) -> ClusterFacts {
    ClusterFacts { name: name.into(), ..ClusterFacts::default() }
}

fn labelled(name: &str, labels: &[(&str, &str)]) -> ClusterFacts {
    ClusterFacts { labels: texts(labels), ..cluster(name) }
}

/// A cluster with so much CPU and memory, allocatable of capacity.
fn sized(name: &str, cpu: [&str; 2], memory: [&str; 2]) -> ClusterFacts {
    ClusterFacts {
        allocatable: amounts(&[("cpu", cpu[0]), ("memory", memory[0])]),
        capacity: amounts(&[("cpu", cpu[1]), ("memory", memory[1])]),
        ..cluster(name)
    }
}

fn taint(key: &str, effect: Effect, added: Option<Timestamp>) -> Taint {
    Taint { key: key.to_owned(), value: String::new(), effect, time_added: added }
}

fn labels(pairs: &[(&str, &str)]) -> LabelSelector {
    LabelSelector { match_labels: texts(pairs), ..LabelSelector::default() }
}

fn built_in(name: &str, weight: i32) -> Configuration {
    Configuration { coordinate: Some(Coordinate::BuiltIn(name.to_owned())), weight }
}

fn add_on(object: &str, score: &str, weight: i32) -> Configuration {
    let coordinate = Some(Coordinate::AddOn(Some((object.to_owned(), score.to_owned()))));
    Configuration { coordinate, weight }
}

/// A placement in the namespace every set is bound to.
fn placement(name: &str, count: Option<i32>, configurations: &[Configuration]) -> Placement {
    Placement {
        key: Key::new("ns1", name),
        count,
        configurations: configurations.to_vec(),
        ..Placement::default()
    }
}

/// These clusters, all of them in a set that `ns1` may use.
fn fleet(clusters: impl IntoIterator<Item = ClusterFacts>) -> Fleet {
    let mut fleet = Fleet::new(Options::default());
    fleet.set_set("global", Members::Labels(Some(LabelSelector::default())));
    fleet.bind("ns1", "global");
    for cluster in clusters {
        fleet.set_cluster(cluster);
    }
    fleet
}

/// A slice of a placement in `ns1`, as somebody may have published it.
fn slice(placement: &str, number: usize, clusters: &[&str]) -> Slice {
    let entry = |name: &&str| Entry { cluster: (*name).into(), ..Entry::default() };
    Slice {
        key: Key::new("ns1", format!("{placement}-decision-{number}")),
        labels: texts(&[(PLACEMENT_LABEL, placement), (GROUP_INDEX_LABEL, "0"), (GROUP_NAME_LABEL, "")]),
        entries: clusters.iter().map(entry).collect(),
        since: BTreeMap::new(),
    }
}

/// Everything about one placement, which is put into the fleet first.
fn report(fleet: &mut Fleet, placement: &Placement, now: Timestamp) -> Report {
    fleet.set_placement(placement.clone());
    fleet.report(&placement.key, &NoCel, now).expect("the placement is there")
}

fn decided(fleet: &mut Fleet, placement: &Placement) -> Outcome {
    report(fleet, placement, noon()).outcome
}

fn selected(outcome: &Outcome) -> Vec<&str> {
    outcome.selected.iter().map(|chosen| chosen.cluster).collect()
}

/// Totals by cluster, of those that have one.
fn totals(report: &Report) -> BTreeMap<&str, i64> {
    report.clusters.iter().filter_map(|found| Some((&*found.cluster, found.total?))).collect()
}

/// Why a cluster is not selected.
fn why(report: &Report, cluster: &str) -> String {
    let found = report.clusters.iter().find(|found| &*found.cluster == cluster).expect("a candidate");
    found.why.as_ref().map_or_else(|| "selected".to_owned(), ToString::to_string)
}

/// Points of one prioritizer.
fn raw(report: &Report, cluster: &str, prioritizer: &str) -> Option<i64> {
    let found = report.clusters.iter().find(|found| &*found.cluster == cluster).expect("a candidate");
    found.scores.iter().find(|score| score.name == prioritizer).expect("a score").raw
}

/// Does everything that is to be written, and says of each moment on the way what was published.
fn write(fleet: &mut Fleet, outcome: &Outcome) {
    for step in &outcome.writes {
        match step.action {
            Action::Create | Action::Patch => fleet.set_slice(step.slice.clone()),
            Action::Delete => fleet.remove_slice(&step.slice.key),
            Action::None => {}
        }
    }
}

/// Who is published in a group, once everything is written.
fn members<'a>(outcome: &'a Outcome, group: &Group) -> Vec<&'a Entry> {
    let last = |name: &std::sync::Arc<str>| {
        outcome.writes.iter().rfind(|write| write.slice.key.name == *name).expect("a slice")
    };
    group.slices.iter().flat_map(|name| &last(name).slice.entries).collect()
}

fn condition<'a>(outcome: &'a Outcome, kind: &str) -> &'a Condition {
    outcome.conditions.iter().find(|condition| condition.kind == kind).expect("a condition")
}
