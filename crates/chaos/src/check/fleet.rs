//! What was published and assigned in the fleet?

use super::{Findings, Promise, condition, is_of, is_told, rested};
use crate::history::Entry;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const PLACEMENT: &str = "cluster.open-cluster-management.io/placement";

type Sets<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Who is selected, by placement.
fn sets<'a>(slices: &BTreeMap<&'a str, &'a Value>) -> Sets<'a> {
    let mut sets: Sets<'a> = BTreeMap::new();
    for slice in slices.values() {
        let placement = slice["metadata"]["labels"][PLACEMENT].as_str().unwrap_or_default();
        let clusters = slice["status"]["decisions"].as_array().into_iter().flatten();
        let set = sets.entry(placement).or_default();
        set.extend(clusters.filter_map(|one| one["clusterName"].as_str()));
    }
    sets
}

/// A cluster changes in several writes; what was decided between two of them is written at most so much later, in milliseconds.
const SETTLED: u64 = 2000;

/// A cluster that leaves a set and comes back, though nothing happened in between, was absent for no reason.
pub(super) fn published(history: &[Entry], found: &mut Findings) {
    let mut slices: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut before: Sets<'_> = BTreeMap::new();
    // Placement and cluster, when it left.
    let mut left: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    // When a cluster last changed itself.
    let mut changed: BTreeMap<&str, u64> = BTreeMap::new();
    // When anything of the fleet did.
    let mut news = None;
    for entry in history {
        if entry.who == "fleet" && (entry.is_of("managedclusters") || entry.is_of("placements")) {
            left.clear();
            news = Some(entry.at);
            if entry.is_of("managedclusters") {
                changed.insert(entry.name(), entry.at);
            }
        }
        if !entry.is_of("placementdecisions") {
            continue;
        }
        // Clusters that are published could be lost by it.
        if entry.before["status"]["decisions"].as_array().is_some_and(|all| !all.is_empty()) {
            found.occasion(Promise::PublishedSet);
        }
        if entry.after.is_null() {
            slices.remove(entry.path.as_str());
        } else {
            slices.insert(&entry.path, &entry.after);
        }
        let now = sets(&slices);
        let nobody = BTreeSet::new();
        let placements: BTreeSet<&str> = before.keys().chain(now.keys()).copied().collect();
        for placement in placements {
            let (old, new) =
                (before.get(placement).unwrap_or(&nobody), now.get(placement).unwrap_or(&nobody));
            let settled = |cluster: &&&str| changed.get(**cluster).is_none_or(|at| entry.at > at + SETTLED);
            // What was on its way for long was decided about another fleet.
            let outrun = entry.sent < entry.at && news.is_some_and(|at| entry.sent <= at + SETTLED);
            for cluster in old.difference(new).filter(settled).filter(|_| !outrun) {
                left.insert((placement, cluster), entry.at);
            }
            for cluster in new.difference(old) {
                if let Some(since) = left.remove(&(placement, *cluster)) {
                    let what = format!(
                        "{cluster} was absent from what {placement} selects from {since} to {} ms, and nothing had changed",
                        entry.at
                    );
                    let about = slices.keys().map(|path| (*path).to_owned()).collect();
                    found.broken(Promise::PublishedSet, what, about);
                }
            }
        }
        before = now;
    }
}

fn assigned(binding: &Value) -> impl Iterator<Item = (&str, u64)> {
    let clusters = binding["spec"]["clusters"].as_array().into_iter().flatten();
    clusters.filter_map(|one| Some((one["name"].as_str()?, one["replicas"].as_u64().unwrap_or(0))))
}

/// A core for each replica: all that is assigned to a cluster is within what it says it has.
pub(super) fn estimate(history: &[Entry], found: &mut Findings) {
    let mut has: BTreeMap<&str, u64> = BTreeMap::new();
    let mut bindings: BTreeMap<&str, &Value> = BTreeMap::new();
    for entry in history {
        if entry.is_of("clusters") {
            let cores = &entry.after["status"]["resourceSummary"]["allocatable"]["cpu"];
            has.insert(entry.name(), number(cores));
        }
        if !entry.is_of("resourcebindings") {
            continue;
        }
        bindings.insert(&entry.path, &entry.after);
        if entry.before["spec"]["clusters"] == entry.after["spec"]["clusters"] {
            continue;
        }
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for (cluster, replicas) in bindings.values().flat_map(|binding| assigned(binding)) {
            *sums.entry(cluster).or_default() += replicas;
        }
        found.occasion(Promise::Estimate);
        let grew: BTreeSet<&str> = assigned(&entry.after).map(|(cluster, _)| cluster).collect();
        for (cluster, sum) in sums.into_iter().filter(|(cluster, _)| grew.contains(cluster)) {
            let room = has.get(cluster).copied().unwrap_or(0);
            if sum > room {
                let what =
                    format!("{} makes it {sum} replicas in {cluster}, which has room for {room}", entry.path);
                found.broken(
                    Promise::Estimate,
                    what,
                    bindings.keys().map(|path| (*path).to_owned()).collect(),
                );
            }
        }
    }
}

fn number(text: &Value) -> u64 {
    text.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// Replicas for which there is room in the clusters that are there, beside all that is assigned.
fn room(end: &BTreeMap<&str, &Value>) -> u64 {
    let mut taken: BTreeMap<&str, u64> = BTreeMap::new();
    let bindings = end.iter().filter(|(path, _)| is_of(path, "resourcebindings"));
    for (cluster, replicas) in bindings.flat_map(|(_, binding)| assigned(binding)) {
        *taken.entry(cluster).or_default() += replicas;
    }
    let ready = |cluster: &Value| {
        condition(cluster, "Ready").is_some_and(|one| one["status"].as_str() == Some("True"))
    };
    let clusters = end.iter().filter(|(path, cluster)| is_of(path, "clusters") && ready(cluster));
    let free = clusters.map(|(path, cluster)| {
        let name = path.rsplit('/').next().unwrap_or_default();
        let has = number(&cluster["status"]["resourceSummary"]["allocatable"]["cpu"]);
        has.saturating_sub(taken.get(name).copied().unwrap_or(0))
    });
    free.sum()
}

/// At rest everything is decided about. A binding may say that it lacks room, if that is so.
pub(super) fn lost(history: &[Entry], end: &BTreeMap<&str, &Value>, found: &mut Findings) {
    // When somebody last said something new about clusters and bindings.
    let said = history.iter().rev().find(|entry| entry.who == "fleet").map_or(0, |entry| entry.at);
    let room = room(end);
    let judged = end.keys().filter(|path| is_of(path, "resourcebindings") || is_of(path, "placements"));
    judged.for_each(|_| found.occasion(Promise::NothingLost));
    let mut lost = |path: &str, what: String| {
        found.broken(Promise::NothingLost, what, vec![path.to_owned()]);
    };
    for (path, binding) in end.iter().filter(|(path, _)| is_of(path, "resourcebindings")) {
        let wants = binding["spec"]["replicas"].as_u64().unwrap_or(0);
        let gets: u64 = assigned(binding).map(|(_, replicas)| replicas).sum();
        if gets != wants && !is_told(condition(binding, "Scheduled")) {
            lost(path, format!("{path} has {gets} of {wants} replicas, and nobody says why"));
        } else if gets != wants && wants <= gets + room && rested(said, history) {
            lost(
                path,
                format!(
                    "{path} has {gets} of {wants} replicas, though there has been room for {room} more for minutes"
                ),
            );
        }
    }
    let slices: BTreeMap<&str, &Value> = end
        .iter()
        .filter(|(path, _)| is_of(path, "placementdecisions"))
        .map(|(path, one)| (*path, *one))
        .collect();
    let sets = sets(&slices);
    for (path, placement) in end.iter().filter(|(path, _)| is_of(path, "placements")) {
        let name = placement["metadata"]["name"].as_str().unwrap_or_default();
        let selected = sets.get(name).map_or(0, BTreeSet::len) as u64;
        let said = placement["status"]["numberOfSelectedClusters"].as_u64();
        if said != Some(selected) {
            lost(path, format!("{path} says it selects {said:?} clusters, and {selected} are published"));
        }
    }
}
