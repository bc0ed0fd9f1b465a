//! What does a pod ask for? Its containers and their resources, with what the API server fills in.
//!
//! A request that is missing is the limit, if there is one; the pod as a whole asks for what its containers do,
//! if it has limits as a whole. Filling in what is filled in already changes nothing.

use super::is_sidecar;
use crate::read::At;
use loadline_core::quantity::Quantity;
use loadline_core::requests::{self, Container, Options, Overhead, PodLevel, Requirements, Source};
use loadline_core::resources::List;
use loadline_core::view::Hold;

/// The part of a pod [`requests::requests`] needs. An amount less than nothing is left out and holds the pod.
pub(super) fn read(spec: &At<'_, '_>, status: &At<'_, '_>, holds: &mut Vec<Hold>) -> requests::Pod {
    let mut pod = requests::Pod {
        spec: requests::Spec {
            containers: containers(&spec.get("containers"), holds),
            init_containers: containers(&spec.get("initContainers"), holds),
            resources: spec.get("resources").some().map(|at| requirements(&at, holds)),
            overhead: amounts(&spec.get("overhead"), holds),
        },
        status: status.parse().unwrap_or_default(),
    };
    fill_whole(&mut pod);
    pod
}

fn containers(list: &At<'_, '_>, holds: &mut Vec<Hold>) -> Vec<Container> {
    let container = |at: At<'_, '_>| {
        let mut resources = requirements(&at.get("resources"), holds);
        fill(&mut resources, |_| true);
        let restart_policy = is_sidecar(&at).then(|| "Always".to_owned());
        Container { name: at.get("name").string(), resources, restart_policy }
    };
    list.items().map(container).collect()
}

fn requirements(at: &At<'_, '_>, holds: &mut Vec<Hold>) -> Requirements {
    Requirements { requests: amounts(&at.get("requests"), holds), limits: amounts(&at.get("limits"), holds) }
}

fn amounts(at: &At<'_, '_>, holds: &mut Vec<Hold>) -> List {
    let mut out = List::new();
    for (name, at) in at.entries() {
        // `null` is no amount, but mentions the resource, as in Kubernetes.
        let amount: Quantity = at.parse().unwrap_or_default();
        if amount.is_negative() {
            let problem = at.problem(format!("quantity {amount} must not be negative"));
            holds.push(Hold::Invalid(problem.to_string()));
        } else {
            out.insert(name.to_owned(), amount);
        }
    }
    out
}

/// Limits stand in for requests that are missing.
fn fill(resources: &mut Requirements, wanted: impl Fn(&str) -> bool) {
    for (name, limit) in resources.limits.iter().filter(|(name, _)| wanted(name)) {
        resources.requests.entry(name.clone()).or_insert(*limit);
    }
}

/// Fills in what the pod as a whole asks for, if it says anything as a whole.
fn fill_whole(pod: &mut requests::Pod) {
    let written =
        Options { source: Source::Spec, pod_level: PodLevel::Ignored, overhead: Overhead::Excluded };
    let Some(whole) = &pod.spec.resources else { return };
    if whole.limits.is_empty() && whole.requests.is_empty() {
        return;
    }
    let (asked, limits) = (requests::requests(pod, written), requests::limits(pod, written));
    let Some(whole) = &mut pod.spec.resources else { return };
    for (name, limit) in limits.into_iter().filter(|(name, _)| name.starts_with("hugepages-")) {
        if !whole.requests.contains_key(&name) {
            whole.limits.entry(name).or_insert(limit);
        }
    }
    if whole.limits.is_empty() {
        return;
    }
    for (name, amount) in asked.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")) {
        whole.requests.entry(name).or_insert(amount);
    }
    fill(whole, |name| matches!(name, "cpu" | "memory") || name.starts_with("hugepages-"));
}
