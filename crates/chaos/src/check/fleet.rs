//! What was published and assigned in the fleet?

use super::{Promise, Violation, condition, is_of, is_told};
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
pub(super) fn published(history: &[Entry], found: &mut Vec<Violation>) {
    let mut slices: BTreeMap<&str, &Value> = BTreeMap::new();
    let mut before: Sets<'_> = BTreeMap::new();
    // Placement and cluster, when it left.
    let mut left: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    // When a cluster last changed itself.
    let mut changed: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in history {
        if entry.who == "fleet" {
            left.clear();
            if entry.is_of("managedclusters") {
                changed.insert(entry.name(), entry.at);
            }
        }
        if !entry.is_of("placementdecisions") {
            continue;
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
            for cluster in old.difference(new).filter(settled) {
                left.insert((placement, cluster), entry.at);
            }
            for cluster in new.difference(old) {
                if let Some(since) = left.remove(&(placement, *cluster)) {
                    found.push(Violation {
                        promise: Promise::PublishedSet,
                        what: format!(
                            "{cluster} was absent from what {placement} selects from {since} to {} ms, and nothing had changed",
                            entry.at
                        ),
                        about: slices.keys().map(|path| (*path).to_owned()).collect(),
                    });
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
pub(super) fn estimate(history: &[Entry], found: &mut Vec<Violation>) {
    let mut has: BTreeMap<&str, u64> = BTreeMap::new();
    let mut bindings: BTreeMap<&str, &Value> = BTreeMap::new();
    for entry in history {
        if entry.is_of("clusters") {
            let cores = &entry.after["status"]["resourceSummary"]["allocatable"]["cpu"];
            has.insert(entry.name(), cores.as_str().and_then(|text| text.parse().ok()).unwrap_or(0));
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
        let grew: BTreeSet<&str> = assigned(&entry.after).map(|(cluster, _)| cluster).collect();
        for (cluster, sum) in sums.into_iter().filter(|(cluster, _)| grew.contains(cluster)) {
            let room = has.get(cluster).copied().unwrap_or(0);
            if sum > room {
                found.push(Violation {
                    promise: Promise::Estimate,
                    what: format!(
                        "{} makes it {sum} replicas in {cluster}, which has room for {room}",
                        entry.path
                    ),
                    about: bindings.keys().map(|path| (*path).to_owned()).collect(),
                });
            }
        }
    }
}

/// At rest everything is decided about, or says why not.
pub(super) fn lost(end: &BTreeMap<&str, &Value>, found: &mut Vec<Violation>) {
    let mut lost = |path: &str, what: String| {
        found.push(Violation { promise: Promise::NothingLost, what, about: vec![path.to_owned()] });
    };
    for (path, binding) in end.iter().filter(|(path, _)| is_of(path, "resourcebindings")) {
        let wants = binding["spec"]["replicas"].as_u64().unwrap_or(0);
        let gets: u64 = assigned(binding).map(|(_, replicas)| replicas).sum();
        if gets != wants && !is_told(condition(binding, "Scheduled")) {
            lost(path, format!("{path} has {gets} of {wants} replicas, and nobody says why"));
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
