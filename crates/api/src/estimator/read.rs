//! What does a request say?

use super::generated::kubernetes as k8s;
use super::{MOST_COMPONENTS, pb};
use crate::read::{Error, Problem, group};
use jiff::SignedDuration;
use loadline_core::estimate::{Ask, Assumed, Component};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::label::Expression;
use loadline_core::select::node::{NodeSelector, NodeTerm, Required};
use prost::Message;
use std::collections::BTreeMap;

/// What a request for replicas says: what one replica asks for, and what is on its way to the cluster.
///
/// # Errors
/// When something in it is malformed.
pub fn replicas(request: &pb::MaxAvailableReplicasRequest) -> Result<(Ask, Vec<Assumed>), Error> {
    let mut notes = Notes::default();
    let (mut ask, mut assumed) = (Ask::default(), Vec::new());
    if notes.affordable(0, &request.assumed_workloads) {
        if let Some(given) = &request.replica_requirements {
            ask = notes.within(|| "replicaRequirements".into(), |notes| whole(given, notes));
        }
        assumed = notes.assumed(&request.assumed_workloads);
    }
    notes.end("MaxAvailableReplicasRequest", (ask, assumed))
}

/// What a request for sets says: what one set consists of, and what is on its way to the cluster.
///
/// # Errors
/// When something in it is malformed.
pub fn sets(request: &pb::MaxAvailableComponentSetsRequest) -> Result<(Vec<Component>, Vec<Assumed>), Error> {
    let mut notes = Notes::default();
    let (mut components, mut assumed) = (Vec::new(), Vec::new());
    if notes.affordable(request.components.len(), &request.assumed_workloads) {
        components = notes.components(&request.components, &request.namespace);
        assumed = notes.assumed(&request.assumed_workloads);
    }
    if request.enough.is_some_and(|enough| enough < 0) {
        notes.add("enough", "must not be negative");
    }
    notes.end("MaxAvailableComponentSetsRequest", (components, assumed))
}

/// Which workload's replicas are asked about, and for how long they must have waited.
///
/// # Errors
/// When the workload is missing or without a name.
pub fn unschedulable(
    request: &pb::UnschedulableReplicasRequest,
) -> Result<(WorkloadRef, SignedDuration), Error> {
    let mut notes = Notes::default();
    let mut target = WorkloadRef::default();
    match &request.resource {
        Some(given) => target = notes.within(|| "resource".into(), |notes| named(given, "", notes)),
        None => notes.add("resource", "must be set"),
    }
    let waited = SignedDuration::from_nanos(request.unschedulable_threshold.max(0));
    notes.end("UnschedulableReplicasRequest", (target, waited))
}

/// So many problems are told, and the others counted: the text must fit into a header.
const MOST_TOLD: usize = 10;
/// So much of a problem and its path is told, in bytes.
const LONGEST: usize = 200;

/// What is wrong so far. Paths are relative to where we are: nothing is spent on them while all is well.
#[derive(Default)]
struct Notes {
    problems: Vec<Problem>,
    more: usize,
}

impl Notes {
    fn add(&mut self, path: &str, problem: impl Into<String>) {
        if self.problems.len() < MOST_TOLD {
            self.problems.push(Problem { path: cut(path.into()), problem: cut(problem.into()) });
        } else {
            self.more += 1;
        }
    }

    /// Reads something in here; problems with it are below that name.
    fn within<T>(&mut self, name: impl FnOnce() -> String, read: impl FnOnce(&mut Self) -> T) -> T {
        let before = self.problems.len();
        let out = read(self);
        if let Some(new) = self.problems.get_mut(before..).filter(|new| !new.is_empty()) {
            let name = cut(name());
            for problem in new {
                let dot = if problem.path.is_empty() { "" } else { "." };
                problem.path = format!("{name}{dot}{}", problem.path);
            }
        }
        out
    }

    fn end<T>(mut self, object: &str, out: T) -> Result<T, Error> {
        if self.problems.is_empty() {
            return Ok(out);
        }
        if self.more > 0 {
            self.problems.push(Problem { path: String::new(), problem: format!("and {} more", self.more) });
        }
        Err(Error { object: object.into(), problems: self.problems })
    }

    /// Is there no more to do than is reasonable?
    fn affordable(&mut self, components: usize, assumed: &[pb::AssumedWorkload]) -> bool {
        let count = assumed.iter().fold(components, |sum, workload| sum + 1 + workload.components.len());
        if count > MOST_COMPONENTS {
            let problem =
                format!("expected at most {MOST_COMPONENTS} components and assumed workloads, found {count}");
            self.add("", problem);
        }
        count <= MOST_COMPONENTS
    }

    fn assumed(&mut self, given: &[pb::AssumedWorkload]) -> Vec<Assumed> {
        let one = |(i, workload): (usize, &pb::AssumedWorkload)| {
            let read = |notes: &mut Self| Assumed {
                namespace: workload.namespace.clone(),
                workload: workload.workload.as_ref().map(|given| {
                    notes.within(|| "workload".into(), |notes| named(given, &workload.namespace, notes))
                }),
                components: notes.components(&workload.components, &workload.namespace),
            };
            self.within(|| format!("assumedWorkloads[{i}]"), read)
        };
        given.iter().enumerate().map(one).collect()
    }

    fn components(&mut self, given: &[pb::Component], namespace: &str) -> Vec<Component> {
        let one = |(i, component): (usize, &pb::Component)| {
            let read = |notes: &mut Self| {
                if component.replicas < 0 {
                    let problem = format!("must not be negative, found {}", component.replicas);
                    notes.add("replicas", problem);
                }
                let required = component.replica_requirements.as_deref();
                let mut ask = required
                    .map(|given| notes.within(|| "replicaRequirements".into(), |notes| part(given, notes)))
                    .unwrap_or_default();
                namespace.clone_into(&mut ask.namespace);
                Component { name: component.name.clone(), replicas: component.replicas, ask }
            };
            self.within(|| format!("components[{i}]"), read)
        };
        given.iter().enumerate().map(one).collect()
    }
}

/// A workload must have a kind and a name. Without a namespace it is in that one.
fn named(given: &pb::ObjectReference, namespace: &str, notes: &mut Notes) -> WorkloadRef {
    for (field, text) in [("kind", &given.kind), ("name", &given.name)] {
        if text.is_empty() {
            notes.add(field, "must not be empty");
        }
    }
    WorkloadRef {
        group: group(&given.api_version).into(),
        kind: given.kind.as_str().into(),
        key: Key::new(
            if given.namespace.is_empty() { namespace } else { &given.namespace },
            given.name.as_str(),
        ),
    }
}

fn whole(given: &pb::ReplicaRequirements, notes: &mut Notes) -> Ask {
    Ask {
        namespace: given.namespace.clone(),
        priority_class: given.priority_class_name.clone(),
        priority: given.priority,
        requests: requests(&given.resource_request_bytes, &given.resource_request, notes),
        limits: limits(&given.limits_bytes, notes),
        ..claimed(given.node_claim.as_ref(), notes)
    }
}

fn part(given: &pb::ComponentReplicaRequirements, notes: &mut Notes) -> Ask {
    Ask {
        priority_class: given.priority_class_name.clone(),
        priority: given.priority,
        requests: requests(&given.resource_request_bytes, &given.resource_request, notes),
        limits: limits(&given.limits_bytes, notes),
        ..claimed(given.node_claim.as_ref(), notes)
    }
}

type Given = BTreeMap<String, Vec<u8>>;

/// The form of today if it carries anything, else that of old.
fn requests(new: &Given, old: &Given, notes: &mut Notes) -> List {
    if new.is_empty() {
        amounts("resourceRequest", old, notes)
    } else {
        amounts("resourceRequestBytes", new, notes)
    }
}

fn limits(given: &Given, notes: &mut Notes) -> Option<List> {
    (!given.is_empty()).then(|| amounts("limitsBytes", given, notes))
}

fn amounts(field: &str, given: &Given, notes: &mut Notes) -> List {
    let mut out = List::new();
    for (name, bytes) in given {
        match amount(bytes) {
            Ok(amount) => drop(out.insert(name.clone(), amount)),
            Err(problem) => notes.add(&format!("{field}[{name}]"), problem),
        }
    }
    out
}

fn amount(bytes: &[u8]) -> Result<Quantity, String> {
    let Some(text) = message::<k8s::Quantity>(bytes, "Quantity")?.string else {
        return Ok(Quantity::ZERO);
    };
    let amount: Quantity = text.parse().map_err(|error: loadline_core::quantity::Error| error.to_string())?;
    if amount.is_negative() {
        return Err(format!("quantity {text} must not be negative"));
    }
    Ok(amount)
}

fn claimed(given: Option<&pb::NodeClaim>, notes: &mut Notes) -> Ask {
    let read = |notes: &mut Notes| {
        given.map_or_else(Ask::default, |claim| Ask {
            required: Required::new(&claim.node_selector, affinity(claim, notes).as_ref()),
            tolerations: tolerations(claim, notes),
            ..Ask::default()
        })
    };
    notes.within(|| "nodeClaim".into(), read)
}

/// One that is there and empty matches no node. Writers that cannot write an empty one leave it out.
fn affinity(claim: &pb::NodeClaim, notes: &mut Notes) -> Option<NodeSelector> {
    let new = claim.node_affinity_bytes.as_deref().map(|bytes| ("nodeAffinityBytes", bytes));
    let old = claim.node_affinity.as_deref().map(|bytes| ("nodeAffinity", bytes));
    let (field, bytes) = new.filter(|(_, bytes)| !bytes.is_empty()).or(old).or(new)?;
    match message::<k8s::NodeSelector>(bytes, "NodeSelector") {
        Ok(selector) => Some(NodeSelector {
            node_selector_terms: selector.node_selector_terms.into_iter().map(term).collect(),
        }),
        Err(problem) => {
            notes.add(field, problem);
            None
        }
    }
}

fn term(given: k8s::NodeSelectorTerm) -> NodeTerm {
    let expression =
        |e: k8s::NodeSelectorRequirement| Expression { key: e.key, operator: e.operator, values: e.values };
    NodeTerm {
        match_expressions: given.match_expressions.into_iter().map(expression).collect(),
        match_fields: given.match_fields.into_iter().map(expression).collect(),
    }
}

fn tolerations(claim: &pb::NodeClaim, notes: &mut Notes) -> Vec<Toleration> {
    let (field, given) = if claim.tolerations_bytes.is_empty() {
        ("tolerations", &claim.tolerations)
    } else {
        ("tolerationsBytes", &claim.tolerations_bytes)
    };
    let mut out = Vec::with_capacity(given.len());
    for (i, bytes) in given.iter().enumerate() {
        match message::<k8s::Toleration>(bytes, "Toleration") {
            Ok(read) => out.push(Toleration {
                key: read.key.unwrap_or_default(),
                operator: read.operator.unwrap_or_default().into(),
                value: read.value.unwrap_or_default(),
                effect: read.effect.filter(|effect| !effect.is_empty()).map(Into::into),
                toleration_seconds: read.toleration_seconds,
            }),
            Err(problem) => notes.add(&format!("{field}[{i}]"), problem),
        }
    }
    out
}

fn message<M: Message + Default>(bytes: &[u8], kind: &str) -> Result<M, String> {
    M::decode(bytes).map_err(|error| format!("expected a serialized {kind}: {error}"))
}

/// The beginning of a text that may be of any length.
fn cut(mut text: String) -> String {
    if text.len() > LONGEST {
        text.truncate(text.floor_char_boundary(LONGEST));
        text.push('…');
    }
    text
}
