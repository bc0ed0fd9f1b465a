//! Which fleet do the objects describe, and which placements are asked about?

use super::schema::Schemas;
use super::world::Build;
use crate::documents::{self, Document, Kind, Problem};
use loadline_api::json::Tree;
use loadline_api::ocm::cel::CelJudge;
use loadline_api::ocm::{DEFINITIONS, decision, fleet, placement};
use loadline_core::object::Key;
use loadline_core::place::{Fleet, Options};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every kind that is read.
pub const KINDS: [Kind; 10] = [
    ("cluster.open-cluster-management.io/v1beta1", "Placement"),
    ("cluster.open-cluster-management.io/v1alpha1", "Placement"),
    ("cluster.open-cluster-management.io/v1", "ManagedCluster"),
    ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSet"),
    ("cluster.open-cluster-management.io/v1beta1", "ManagedClusterSet"),
    ("cluster.open-cluster-management.io/v1beta2", "ManagedClusterSetBinding"),
    ("cluster.open-cluster-management.io/v1beta1", "ManagedClusterSetBinding"),
    ("cluster.open-cluster-management.io/v1beta1", "PlacementDecision"),
    ("cluster.open-cluster-management.io/v1alpha1", "PlacementDecision"),
    ("cluster.open-cluster-management.io/v1alpha1", "AddOnPlacementScore"),
];

/// A fleet and what is worth knowing about it.
pub struct Input {
    pub fleet: Fleet,
    /// Who knows what expressions about its clusters come to.
    pub judge: CelJudge,
    /// What is published, as it was written, by namespace and name.
    pub slices: BTreeMap<Key, Value>,
    /// What was odd about each placement.
    pub noted: BTreeMap<Key, Vec<String>>,
    /// What was odd about everything else.
    pub warnings: Vec<String>,
}

/// Reads all objects.
///
/// # Errors
/// All problems at once.
pub fn read(files: &[PathBuf], options: Options) -> Result<Input, Vec<Problem>> {
    let (read, problems) = documents::scan(files, &KINDS);
    let mut build = Build { problems, ..Build::default() };
    build.warnings.extend(read.warnings.iter().map(ToString::to_string));
    let objects = Schemas::new(&DEFINITIONS).sift(read.objects, &mut build);
    let mut by_kind: BTreeMap<&str, Vec<Document>> = BTreeMap::new();
    for object in objects {
        by_kind.entry(object.kind).or_default().push(object);
    }
    let mut take = |kind: &str| by_kind.remove(kind).unwrap_or_default();
    let mut input = Input {
        fleet: Fleet::new(options),
        judge: CelJudge::new(),
        slices: BTreeMap::new(),
        noted: BTreeMap::new(),
        warnings: Vec::new(),
    };
    for mut document in build.once(take("ManagedCluster")) {
        let first = fleet::cluster(&Tree::from(&document.value));
        if let Some((cluster, warnings)) = build.wanted(&mut document, first, fleet::cluster) {
            build.warn(&document, warnings);
            input.judge.set_cluster(&cluster, &Tree::from(&document.value));
            input.fleet.set_cluster(cluster);
        }
    }
    for document in build.once(take("ManagedClusterSet")) {
        if let Some((name, members)) = build.must(&document, fleet::set(&Tree::from(&document.value))) {
            input.fleet.set_set(&name, members);
        }
    }
    for document in build.once(take("ManagedClusterSetBinding")) {
        if let Some(((namespace, set), warnings)) =
            build.must(&document, fleet::binding(&Tree::from(&document.value)))
        {
            build.warn(&document, warnings);
            input.fleet.bind(&namespace, &set);
        }
    }
    for document in build.once(take("AddOnPlacementScore")) {
        if let Some((cluster, object, scores)) =
            build.may(&document, fleet::scores(&Tree::from(&document.value)))
        {
            input.fleet.set_scores(&cluster, &object, scores);
        }
    }
    for mut document in build.once(take("PlacementDecision")) {
        let first = decision::read(&Tree::from(&document.value));
        if let Some((slice, warnings)) = build.wanted(&mut document, first, decision::read) {
            build.warn(&document, warnings);
            input.slices.insert(slice.key.clone(), document.value);
            input.fleet.set_slice(slice);
        }
    }
    for document in build.once(take("Placement")) {
        if let Some((placement, warnings)) =
            build.must(&document, placement::read(&Tree::from(&document.value)))
        {
            let told = warnings.into_iter().map(|one| one.problem.to_string()).collect();
            input.noted.insert(placement.key.clone(), told);
            input.fleet.set_placement(placement);
        }
    }
    if !build.problems.is_empty() {
        return Err(documents::sorted(build.problems));
    }
    input.warnings = build.warnings;
    Ok(input)
}
