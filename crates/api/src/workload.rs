//! How many of what? The workload a question is about, and workloads that are on their way.
//!
//! | object | what is read |
//! |---|---|
//! | Deployment, `StatefulSet`, `ReplicaSet`, Job | the pod template, `spec.template` |
//! | `PodTemplate` | `template` |
//! | `ResourceBinding`, `ClusterResourceBinding` | `spec.components`, else `spec.replicaRequirements` |
//! | `AssumedWorkload` | `spec.components`, and `spec.resource` for what it is |
//!
//! What a pod made from a template asks for is what a pod asks for: a limit stands in for a request that is missing,
//! sidecars and resources of the pod as a whole count.

mod binding;

pub use binding::assumed;
pub(crate) use binding::{ask as requirements, components};

use crate::context::{Context, namespace};
use crate::estimator::Replica;
use crate::json::Tree;
use crate::karmada::{self, Asks};
use crate::pod::{self, Template};
use crate::read::{At, Error, Warning, group, tolerant};
use loadline_core::estimate::{Ask, Component};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::select::node::NodeAffinity;
use loadline_core::view::{Hold, Owner, PodFacts, Wants};

/// Kinds a question can be about, with their API versions.
pub const KINDS: [(&str, &str); 7] = [
    ("apps/v1", "Deployment"),
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("v1", "PodTemplate"),
    ("work.karmada.io/v1alpha2", "ResourceBinding"),
    ("work.karmada.io/v1alpha2", "ClusterResourceBinding"),
];

/// What [`assumed`] reads.
pub const ASSUMED: (&str, &str) = ("loadline.dev/v1alpha1", "AssumedWorkload");

/// What is asked about.
#[derive(Clone, Debug)]
pub struct Question {
    /// The object the question was read from.
    pub target: WorkloadRef,
    /// Whose quotas bind it; empty for none.
    pub namespace: String,
    /// How many of what.
    pub of: Of,
    /// A pod as the template makes it, as far as load is foretold from it; bindings do not say.
    pub pod: Option<PodFacts>,
    /// The same in the words of Kubernetes, for estimators.
    pub asks: Asks,
}

/// What is to be counted.
#[derive(Clone, Debug)]
pub enum Of {
    /// Replicas that are all alike.
    Replicas(Box<Ask>),
    /// Complete sets of these.
    Sets(Vec<Component>),
}

/// Reads a workload.
///
/// # Errors
/// When the object is not what it should be, or its template asks for what no pod can have.
pub fn read(value: &Tree<'_>, context: &Context) -> Result<(Question, Vec<Warning>), Error> {
    let kind = value["kind"].as_str().unwrap_or_default();
    let (mut question, warnings) = tolerant(if kind.is_empty() { "Object" } else { kind }, value, |root| {
        let metadata = root.get("metadata");
        let mut target = WorkloadRef {
            group: group(value["apiVersion"].as_str().unwrap_or_default()).into(),
            kind: kind.into(),
            key: Key::new(metadata.get("namespace").string(), metadata.get("name").needed()),
        };
        if binding::KINDS.contains(&kind) {
            return binding::read(root, target, context);
        }
        target.key.namespace = namespace(metadata.get("namespace").text()).into();
        let spec = root.get("spec");
        let at = if kind == "PodTemplate" { root.get("template") } else { spec.get("template") };
        if !at.is_set() {
            at.fail("expected a pod template, found nothing");
        }
        of_template(root, &at, target, context)
    })?;
    question.asks = asks(value, kind, &question);
    Ok((question, warnings))
}

/// What an estimator is asked. Nothing is wrong with it any more: that has been told.
fn asks(value: &Tree<'_>, kind: &str, question: &Question) -> Asks {
    let Of::Replicas(ask) = &question.of else { return karmada::asks(value) };
    if binding::KINDS.contains(&kind) {
        return karmada::asks(value);
    }
    let read = tolerant("", value, |root| {
        let spec = root.get("spec");
        let template = if kind == "PodTemplate" { root.get("template") } else { spec.get("template") };
        let pod = template.get("spec");
        let affinity: NodeAffinity = pod.get("affinity").get("nodeAffinity").parse().unwrap_or_default();
        (pod.get("nodeSelector").texts(), affinity.required)
    });
    let (selector, affinity) = read.map(|(claim, _)| claim).unwrap_or_default();
    let replica = Replica {
        selector,
        affinity,
        tolerations: ask.tolerations.clone(),
        requests: ask.requests.clone(),
        limits: ask.limits.clone(),
        namespace: ask.namespace.clone(),
        priority_class: ask.priority_class.clone(),
        priority: ask.priority,
    };
    Asks { namespace: question.namespace.clone(), replica: Some(replica), components: Vec::new() }
}

fn of_template(root: &At<'_, '_>, at: &At<'_, '_>, target: WorkloadRef, context: &Context) -> Question {
    let space = target.key.namespace.to_string();
    let Template { mut facts, limits, priority, priority_class, holds } = pod::template(at, &space, context);
    facts.owner = Some(Owner {
        group: target.group.clone(),
        kind: target.kind.clone(),
        name: target.key.name.clone(),
        uid: "".into(),
    });
    for hold in &holds {
        match hold {
            // It says where.
            Hold::Invalid(problem) | Hold::Claim(problem) => root.fail(problem.as_str()),
            Hold::Gate(gate) => at.warn(format!("the scheduling gate {gate} is not looked at")),
            Hold::Unsupported(what) => at.warn(format!("{what} is not looked at")),
        }
    }
    let spec = at.get("spec");
    let left_out = left_out(&spec, &facts.wants);
    if !left_out.is_empty() {
        spec.warn(format!("not counted: {}; fewer may fit", left_out.join(", ")));
    }
    let ask = Ask {
        required: facts.wants.required.clone(),
        tolerations: facts.wants.tolerations.clone(),
        requests: facts.requests.clone(),
        limits: Some(limits),
        namespace: space.clone(),
        priority_class,
        priority,
        load: None,
    };
    Question {
        target,
        namespace: space,
        of: Of::Replicas(Box::new(ask)),
        pod: Some(facts),
        asks: Asks::default(),
    }
}

/// What bears on where pods may go and is not part of an estimate.
fn left_out(spec: &At<'_, '_>, wants: &Wants) -> Vec<&'static str> {
    let volumes = spec.get("volumes");
    [
        ("ports of the node", !wants.ports.is_empty()),
        ("nearness to other pods", !wants.affinity.required.is_empty()),
        ("distance from other pods", !wants.anti_affinity.required.is_empty()),
        ("even spreading", wants.spread.iter().any(|spread| spread.hard)),
        ("claimed volumes", volumes.items().any(|volume| volume.get("persistentVolumeClaim").is_set())),
    ]
    .into_iter()
    .filter_map(|(what, there)| there.then_some(what))
    .collect()
}
