//! Which node do the objects describe, and what was asked for?

mod measured;

use crate::definition::Definitions;
use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests};
use crate::problem::{Problem, Problems};
use jiff::Timestamp;
use loadline_api::qos::{DEFINITIONS, older, pod, rules, snapshot};
use loadline_api::{Context, cluster};
use loadline_core::qos::NodeSnapshot;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::policy::Policy;
use serde_json::Value;

/// One moment of one node, and what was asked for.
#[derive(Debug)]
pub struct ProtectInput {
    pub policy: Policy,
    pub snapshot: NodeSnapshot,
    /// What is odd and bears on the answer.
    pub warnings: Vec<Problem>,
}

impl ProtectInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &[
        Kind::NODE,
        Kind::POD,
        Kind::PRIORITY_CLASS,
        Kind::NODE_METRICS,
        Kind::POD_METRICS,
        Kind::POD_DISRUPTION_BUDGET,
        Kind::NODE_QOS,
        Kind::POD_QOS,
        Kind::AVOIDANCE_ACTION,
        Kind::NODE_QOS_ENSURANCE_POLICY,
        Kind::POD_QOS_ENSURANCE_POLICY,
        Kind::SERVICE_POLICY,
        Kind::NODE_SNAPSHOT,
    ];

    /// Makes of the objects the moment they describe: that of the snapshot, or the one that is given. Without a snapshot
    /// the measurements of a node stand in: of the one that is named, or of the only one.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(
        mut manifests: Manifests,
        node: Option<&str>,
        now: Option<Timestamp>,
    ) -> Result<Self, Problems> {
        let catalogue = Catalogue::default();
        bring_up_to_date(&mut manifests);
        validate(&mut manifests, &catalogue);
        measured::stand_in(&mut manifests, node);
        let known = known(&mut manifests);
        let policy = asked_for(&mut manifests, catalogue);
        let snapshot = one_snapshot(&mut manifests, known, now);
        let (snapshot, warnings) = manifests.finish(snapshot)?;
        Ok(Self { policy, snapshot, warnings })
    }
}

/// Puts objects in the words of older versions into today's.
pub(crate) fn bring_up_to_date(manifests: &mut Manifests) {
    for object in &mut manifests.objects {
        let Some((value, warnings)) = older::modern(&object.value) else { continue };
        manifests.warnings.extend(warnings.into_iter().map(|message| object.problem("", message)));
        let name = value["kind"].as_str().unwrap_or_default();
        object.kind = *ProtectInput::KINDS.iter().find(|kind| kind.name == name).unwrap_or(&object.kind);
        object.value = value;
    }
}

/// Holds everything to its definition; where a definition cannot say what is wrong in plain words, it is said here.
pub(crate) fn validate(manifests: &mut Manifests, catalogue: &Catalogue) {
    let unknown: Vec<Problem> =
        manifests.objects.iter().flat_map(|object| unknown_metrics(object, catalogue)).collect();
    manifests.validate(&Definitions::new(&DEFINITIONS));
    let problems = std::mem::take(&mut manifests.problems).into_iter();
    manifests.problems = problems.filter_map(|problem| plainer(problem, &unknown)).collect();
    manifests.problems.extend(unknown);
}

/// The rules that look at something nobody collects; who asks another for figures may look at anything.
fn unknown_metrics(object: &Manifest, catalogue: &Catalogue) -> Vec<Problem> {
    let elsewhere = object.value["spec"]["nodeQualityProbe"].get("httpGet").is_some();
    let rules = object.value["spec"]["rules"].as_array().into_iter().flatten().enumerate();
    let of = |(i, rule): (usize, &Value)| {
        let name = rule["metricRule"]["name"].as_str()?;
        catalogue.find(name).is_none().then(|| {
            let what =
                format!("expected a metric that is collected, such as cpu_total_usage, found {name:?}");
            object.problem(format!("spec.rules[{i}].metricRule.name"), what)
        })
    };
    if object.kind == Kind::NODE_QOS && !elsewhere { rules.filter_map(of).collect() } else { Vec::new() }
}

/// What a schema can only say of all rules together, or by a pattern, said of the one and in words.
fn plainer(problem: Problem, unknown: &[Problem]) -> Option<Problem> {
    if problem.path == "spec.rules" && problem.message.starts_with("metricRule.name") {
        return (!unknown.iter().any(|one| one.location == problem.location)).then_some(problem);
    }
    if problem.path.ends_with(".metricRule.value") {
        let found = problem.message.rsplit(", found ").next().unwrap_or_default();
        let message = format!("expected a quantity above 0, such as 6000 or 24Gi, found {found}");
        return Some(Problem { message, ..problem });
    }
    Some(problem)
}

/// What is known beside the snapshot: the node's labels, the pods and who may be disturbed.
fn known(manifests: &mut Manifests) -> snapshot::Known {
    let mut context = Context::new();
    for class in manifests.take(Kind::PRIORITY_CLASS) {
        manifests.must(&class, |tree| context.priority_class(tree));
    }
    let nodes = manifests.tolerant_all(Kind::NODE, snapshot::node);
    let pods = manifests.tolerant_all(Kind::POD, |tree| pod::read_with(tree, &context));
    snapshot::Known {
        nodes: nodes.into_iter().map(|node| (node.name.clone(), node)).collect(),
        pods: pods.into_iter().map(|(pod, node)| (pod.key.clone(), (pod, node))).collect(),
        budgets: manifests.tolerant_all(Kind::POD_DISRUPTION_BUDGET, cluster::budget),
    }
}

/// What was asked for.
pub(crate) fn asked_for(manifests: &mut Manifests, catalogue: Catalogue) -> Policy {
    let nodes = manifests.required_all(Kind::NODE_QOS, rules::node_qos);
    let actions = manifests.required_all(Kind::AVOIDANCE_ACTION, rules::action);
    let scopes = manifests.required_all(Kind::POD_QOS, rules::pod_qos);
    Policy::new(catalogue, &nodes, actions, &scopes)
}

/// The one snapshot; more than one is a problem.
fn one_snapshot(
    manifests: &mut Manifests,
    known: snapshot::Known,
    now: Option<Timestamp>,
) -> Option<NodeSnapshot> {
    let mut all = manifests.take(Kind::NODE_SNAPSHOT).into_iter();
    let object = all.next()?;
    for another in all {
        let message = format!("expected one NodeSnapshot, found another in {}", object.location);
        manifests.problems.push(another.problem("kind", message));
    }
    manifests.required(&object, |tree| snapshot::read(tree, known, now))
}
