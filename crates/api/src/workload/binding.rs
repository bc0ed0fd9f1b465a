//! What does a binding ask for? Requirements as Karmada writes them, and workloads said to be on their way.

use super::{Of, Question};
use crate::context::{Context, namespace};
use crate::json::Tree;
use crate::karmada::Asks;
use crate::read::{At, Error, Warning, group, tolerant};
use loadline_core::estimate::{Ask, Assumed, Component};
use loadline_core::load::recommend::WorkloadRef;
use loadline_core::object::Key;
use loadline_core::resources::List;
use loadline_core::select::node::{NodeSelector, Required};

/// Bindings, with and without a namespace.
pub(super) const KINDS: [&str; 2] = ["ResourceBinding", "ClusterResourceBinding"];

/// What the spec of an `AssumedWorkload` may say; which cluster it goes to matters to the division of replicas.
const FIELDS: [&str; 3] = ["cluster", "components", "resource"];

/// Reads a binding. Components win over requirements, as in the division of replicas.
pub(super) fn read(root: &At<'_, '_>, target: WorkloadRef, context: &Context) -> Question {
    let spec = root.get("spec");
    let (resource, wanted, parts) =
        (spec.get("resource"), spec.get("replicaRequirements"), spec.get("components"));
    let (replicas, own) = (spec.get("replicas").int32().unwrap_or_default(), wanted.get("namespace"));
    let written = own.text().or(resource.get("namespace").text());
    let space = written.unwrap_or(&target.key.namespace).to_owned();
    let components = components(&parts, &space, context);
    let of = if components.is_empty() {
        if replicas <= 0 && !wanted.is_set() {
            let what = "expected replicas, replicaRequirements or components, found none of them: what is bound runs no pods";
            spec.fail(what);
        }
        Of::Replicas(Box::new(ask(&wanted, &space, context)))
    } else {
        Of::Sets(components)
    };
    Question { target, namespace: space, of, pod: None, asks: Asks::default() }
}

/// Reads an `AssumedWorkload`.
///
/// # Errors
/// When the object is not what it should be.
pub fn assumed(value: &Tree<'_>, context: &Context) -> Result<(Assumed, Vec<Warning>), Error> {
    tolerant(super::ASSUMED.1, value, |root| {
        let spec = root.get("spec");
        for (name, at) in spec.entries() {
            if !FIELDS.contains(&name) {
                at.fail(format!("unknown field, expected {}", FIELDS.join(", ")));
            }
        }
        let space = namespace(root.get("metadata").get("namespace").text());
        let parts = spec.get("components");
        let components = components(&parts, &space, context);
        if parts.items().next().is_none() {
            parts.fail("expected at least one component, found none");
        }
        let resource = spec.get("resource");
        let workload = resource.is_set().then(|| WorkloadRef {
            group: group(resource.get("apiVersion").text().unwrap_or_default()).into(),
            kind: resource.get("kind").needed().into(),
            key: Key::new(resource.get("namespace").text().unwrap_or(&space), resource.get("name").needed()),
        });
        Assumed { namespace: space, workload, components }
    })
}

/// The components in a list.
pub(crate) fn components(list: &At<'_, '_>, space: &str, context: &Context) -> Vec<Component> {
    let component = |at: At<'_, '_>| {
        let count = at.get("replicas");
        let replicas = count.int32().unwrap_or_default();
        if replicas < 0 {
            count.fail(format!("expected 0 or more, found {replicas}"));
        }
        let name = at.get("name").string();
        Component { name, replicas, ask: ask(&at.get("replicaRequirements"), space, context) }
    };
    list.items().map(component).collect()
}

/// What one replica asks for. Nothing written is nothing asked: then it is places for pods that count.
pub(crate) fn ask(at: &At<'_, '_>, space: &str, context: &Context) -> Ask {
    let claim = at.get("nodeClaim");
    let selector = claim.get("nodeSelector").texts();
    let affinity: Option<NodeSelector> = claim.get("hardNodeAffinity").parse();
    let request = at.get("resourceRequest");
    let mut requests = List::new();
    for (name, amount) in request.entries() {
        match amount.amount() {
            Ok(amount) => drop(requests.insert(name.to_owned(), amount)),
            Err(problem) => amount.fail(problem.problem),
        }
    }
    let class = at.get("priorityClassName");
    Ask {
        required: Required::new(&selector, affinity.as_ref()),
        tolerations: claim.get("tolerations").list(),
        requests,
        limits: None,
        namespace: space.to_owned(),
        priority: context.priority(class.text()),
        priority_class: class.string(),
        load: None,
    }
}
