//! What is a cluster of the fleet like?

use super::CLUSTER;
use crate::json::Tree;
use crate::read::{At, Error, Warning, tolerant};
use loadline_core::divide::{Member, Model, Summary};
use loadline_core::resources::List;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Reads a `Cluster`.
///
/// # Errors
/// When the object is not what it should be. Its status may be anything.
pub fn cluster(value: &Tree<'_>) -> Result<(Member, Vec<Warning>), Error> {
    tolerant(CLUSTER.1, value, |root| {
        let metadata = root.get("metadata");
        let spec = root.get("spec");
        let mut zones = spec.get("zones").strings();
        // The older field is what the newer one began as.
        if zones.is_empty() {
            zones.extend(spec.get("zone").text().map(str::to_owned));
        }
        let status = root.get("status");
        let apis = status.get("apiEnablements");
        Member {
            name: metadata.get("name").needed().into(),
            labels: metadata.get("labels").texts(),
            provider: spec.get("provider").string(),
            region: spec.get("region").string(),
            zones,
            taints: spec.get("taints").list(),
            deleting: metadata.get("deletionTimestamp").is_set(),
            apis: Arc::new(apis.attempt(apis.value(), served).unwrap_or_default()),
            summary: summary(&status),
            models: spec.get("resourceModels").items().map(model).collect(),
        }
    })
}

fn served(at: &At<'_, '_>) -> BTreeMap<String, BTreeSet<String>> {
    let mut out: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for api in at.items() {
        let kinds =
            api.get("resources").items().map(|resource| resource.get("kind").string()).collect::<Vec<_>>();
        out.entry(api.get("groupVersion").string()).or_default().extend(kinds);
    }
    out
}

fn summary(status: &At<'_, '_>) -> Option<Summary> {
    let at = status.get("resourceSummary").some()?;
    let amounts = |key: &str| -> List {
        let at = at.get(key);
        if at.value().is_object() { at.known_amounts() } else { List::new() }
    };
    let grades = at.get("allocatableModelings");
    let nodes = status.get("nodeSummary");
    let counts = nodes.attempt(nodes.value(), |at| (at.get("totalNum").int(), at.get("readyNum").int()));
    if let Some((Some(total), Some(ready))) = counts
        && ready < total
    {
        nodes.warn(format!("{} of {total} nodes are not ready, and the totals count them", total - ready));
    }
    let count = |at: At<'_, '_>| Some((at.get("grade").int()?, at.get("count").int()?));
    Some(Summary {
        grades: grades
            .attempt(grades.value(), |at| at.items().filter_map(count).collect())
            .unwrap_or_default(),
        ..Summary::new(&amounts("allocatable"), &amounts("allocated"), &amounts("allocating"))
    })
}

fn model(at: At<'_, '_>) -> Model {
    let mut least = List::new();
    for range in at.get("ranges").items() {
        match range.get("min").amount() {
            Ok(min) => drop(least.insert(range.get("name").needed(), min)),
            Err(problem) => range.get("min").fail(problem.problem),
        }
    }
    let grade = at.get("grade");
    let number = grade.int();
    if number.is_none_or(|number| number < 0) {
        grade.fail("expected a whole number, 0 or more");
    }
    Model::new(number.unwrap_or_default(), &least)
}
