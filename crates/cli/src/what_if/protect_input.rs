//! Which node do the objects describe, and what was asked for?

use super::schema::Schemas;
use super::world::Build;
use crate::documents::{self, Document, Kind, Problem};
use jiff::Timestamp;
use loadline_api::json::Tree;
use loadline_api::qos::{DEFINITIONS, older, pod, rules, snapshot};
use loadline_api::{cluster, qos};
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::Policy;
use loadline_core::qos::{Snapshot, scope};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Every kind that is read.
pub const KINDS: [Kind; 10] = [
    ("v1", "Node"),
    ("v1", "Pod"),
    ("policy/v1", "PodDisruptionBudget"),
    (qos::VERSION, "NodeQOS"),
    (qos::VERSION, "PodQOS"),
    (qos::VERSION, "AvoidanceAction"),
    (qos::VERSION, "NodeQOSEnsurancePolicy"),
    (qos::VERSION, "PodQOSEnsurancePolicy"),
    (qos::VERSION, "ServicePolicy"),
    snapshot::SNAPSHOT,
];

/// One moment of one node, and what was asked for.
pub struct Input {
    pub policy: Policy,
    pub snapshot: Snapshot,
    pub warnings: Vec<String>,
}

/// Reads all objects.
///
/// # Errors
/// All problems at once.
pub fn read(files: &[PathBuf], now: Option<Timestamp>) -> Result<Input, Vec<Problem>> {
    let (read, problems) = documents::scan(files, &KINDS);
    // Without any document there is a problem already, and what could not be read may have been the snapshot.
    let place = read.objects.first().map(|first| first.place.clone()).filter(|_| problems.is_empty());
    let mut build = Build { problems, ..Build::default() };
    build.warnings.extend(read.warnings.iter().map(ToString::to_string));
    let current: Vec<Document> =
        read.objects.into_iter().map(|object| up_to_date(object, &mut build)).collect();
    let catalogue = Catalogue::default();
    let unknown: Vec<Problem> =
        current.iter().flat_map(|object| unknown_metrics(object, &catalogue)).collect();
    let objects = Schemas::new(&DEFINITIONS).sift(current, &mut build);
    build.problems = build.problems.into_iter().filter_map(|problem| plainer(problem, &unknown)).collect();
    build.problems.extend(unknown);
    let mut by_kind: BTreeMap<&str, Vec<Document>> = BTreeMap::new();
    for object in objects {
        by_kind.entry(object.kind).or_default().push(object);
    }
    let mut take = |kind: &str| by_kind.remove(kind).unwrap_or_default();
    let mut known = snapshot::Known::default();
    for mut document in build.once(take("Node")) {
        let first = snapshot::node(&Tree::from(&document.value));
        if let Some((node, warnings)) = build.wanted(&mut document, first, snapshot::node) {
            build.warn(&document, warnings);
            known.nodes.insert(node.name.clone(), node);
        }
    }
    for mut document in build.once(take("Pod")) {
        let first = pod::read(&Tree::from(&document.value));
        if let Some(((pod, node), warnings)) = build.wanted(&mut document, first, pod::read) {
            build.warn(&document, warnings);
            known.pods.insert(pod.key.clone(), (pod, node));
        }
    }
    for mut document in build.once(take("PodDisruptionBudget")) {
        let first = cluster::budget(&Tree::from(&document.value));
        if let Some((budget, warnings)) = build.wanted(&mut document, first, cluster::budget) {
            build.warn(&document, warnings);
            known.budgets.push(budget);
        }
    }
    let mut all = (Vec::new(), Vec::new(), Vec::<scope::Scope>::new());
    for document in build.once(take("NodeQOS")) {
        if let Some((one, warnings)) = build.must(&document, rules::node_qos(&Tree::from(&document.value))) {
            build.warn(&document, warnings);
            all.0.push(one);
        }
    }
    for document in build.once(take("AvoidanceAction")) {
        if let Some((one, warnings)) = build.must(&document, rules::action(&Tree::from(&document.value))) {
            build.warn(&document, warnings);
            all.1.push(one);
        }
    }
    for document in build.once(take("PodQOS")) {
        if let Some((one, warnings)) = build.must(&document, rules::pod_qos(&Tree::from(&document.value))) {
            build.warn(&document, warnings);
            all.2.push(one);
        }
    }
    let snapshot = one_snapshot(build.once(take("NodeSnapshot")), known, now, place, &mut build);
    let (nodes, actions, scopes) = all;
    match snapshot {
        Some(snapshot) if build.problems.is_empty() => {
            let policy = Policy::new(catalogue, &nodes, actions, &scopes);
            Ok(Input { policy, snapshot, warnings: build.warnings })
        }
        _ => Err(documents::sorted(build.problems)),
    }
}

/// Objects in the words of older versions, in today's.
fn up_to_date(mut document: Document, build: &mut Build) -> Document {
    let Some((value, warnings)) = older::modern(&document.value) else { return document };
    let told = warnings.into_iter().map(|what| document.problem("", what).to_string());
    build.warnings.extend(told);
    let kind = value["kind"].as_str().unwrap_or_default().to_owned();
    let today = KINDS.iter().find(|(_, known)| *known == kind);
    document.kind = today.map_or(document.kind, |(_, kind)| *kind);
    document.value = value;
    document
}

/// The rules that look at something nobody collects; who asks another for figures may look at anything.
fn unknown_metrics(document: &Document, catalogue: &Catalogue) -> Vec<Problem> {
    let elsewhere = document.value["spec"]["nodeQualityProbe"].get("httpGet").is_some();
    let rules = document.value["spec"]["rules"].as_array().into_iter().flatten().enumerate();
    let of = |(i, rule): (usize, &serde_json::Value)| {
        let name = rule["metricRule"]["name"].as_str()?;
        catalogue.find(name).is_none().then(|| {
            let what =
                format!("expected a metric that is collected, such as cpu_total_usage, found {name:?}");
            document.problem(format!("spec.rules[{i}].metricRule.name"), what)
        })
    };
    if document.kind == "NodeQOS" && !elsewhere { rules.filter_map(of).collect() } else { Vec::new() }
}

/// What a schema can only say of all rules together, or by a pattern, said of the one and in words.
fn plainer(problem: Problem, unknown: &[Problem]) -> Option<Problem> {
    if problem.path == "spec.rules" && problem.what.starts_with("metricRule.name") {
        return (!unknown.iter().any(|one| one.place == problem.place)).then_some(problem);
    }
    if problem.path.ends_with(".metricRule.value") {
        let found = problem.what.rsplit(", found ").next().unwrap_or_default();
        let what = format!("expected a quantity above 0, such as 6000 or 24Gi, found {found}");
        return Some(Problem { what, ..problem });
    }
    Some(problem)
}

fn one_snapshot(
    found: Vec<Document>,
    known: snapshot::Known,
    now: Option<Timestamp>,
    place: Option<documents::Place>,
    build: &mut Build,
) -> Option<Snapshot> {
    let mut found = found.into_iter();
    let Some(document) = found.next() else {
        if let Some(place) = place {
            let place = documents::Place { number: None, item: None, ..place };
            let what = "expected one NodeSnapshot, found none".to_owned();
            build.problems.push(Problem { place, path: String::new(), what });
        }
        return None;
    };
    for another in found {
        let what = format!("expected one NodeSnapshot, found another in {}", document.place);
        build.problems.push(another.problem("kind", what));
    }
    let (snapshot, warnings) =
        build.must(&document, snapshot::read(&Tree::from(&document.value), known, now))?;
    build.warn(&document, warnings);
    Some(snapshot)
}
