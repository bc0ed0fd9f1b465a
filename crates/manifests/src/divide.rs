//! What is divided over which clusters? A binding, or a workload and its policy; the fleet; what is on its way.

use crate::kind::{self, Kind};
use crate::manifest::{Manifest, Manifests};
use crate::problem::{Problem, Problems};
use loadline_api::json::Tree;
use loadline_api::{Context, karmada, workload};
use loadline_core::divide::{Binding, Bound, Member};
use loadline_core::estimate::Assumed;
use serde_json::Value;
use std::collections::BTreeMap;

/// Bindings are meant whenever they are there; workloads beside them are what they bind.
const BINDINGS: [Kind; 2] = [Kind::RESOURCE_BINDING, Kind::CLUSTER_RESOURCE_BINDING];
const WORKLOADS: [Kind; 4] = [Kind::DEPLOYMENT, Kind::STATEFUL_SET, Kind::REPLICA_SET, Kind::JOB];
/// Kinds that can be divided.
const DIVIDED: [Kind; 6] = kind::concat(&[&BINDINGS, &WORKLOADS]);

/// A workload, and the fleet it is divided over.
#[derive(Debug)]
pub struct DivideInput {
    /// What is divided, such as `Deployment shop/web`.
    pub workload: String,
    pub members: Vec<Member>,
    pub binding: Binding,
    /// What is on its way, by cluster.
    pub assumed: BTreeMap<String, Vec<Assumed>>,
    /// What is odd and bears on the answer.
    pub warnings: Vec<Problem>,
}

impl DivideInput {
    /// Every kind that is read.
    pub const KINDS: &[Kind] = &kind::concat::<11>(&[
        &[Kind::CLUSTER],
        &BINDINGS,
        &[Kind::PROPAGATION_POLICY, Kind::CLUSTER_PROPAGATION_POLICY, Kind::ASSUMED_WORKLOAD],
        &WORKLOADS,
        &[Kind::PRIORITY_CLASS],
    ]);

    /// Finds what is divided among the objects, with the placement it has or a policy gives it.
    ///
    /// # Errors
    /// All problems at once.
    pub fn read(mut manifests: Manifests) -> Result<Self, Problems> {
        let asked = manifests.workload(&BINDINGS, &DIVIDED);
        let context = context(&mut manifests);
        let members = manifests.required_all(Kind::CLUSTER, karmada::cluster);
        let policies = policies(&mut manifests);
        let assumed = assumed(&mut manifests, &context);
        let question = asked.and_then(|asked| {
            let binding = binding(&asked, &policies, &context, &mut manifests)?;
            Some((named(&asked, &binding), binding))
        });
        let ((workload, binding), warnings) = manifests.finish(question)?;
        Ok(Self { workload, members, binding, assumed, warnings })
    }
}

/// What pods refer to.
fn context(manifests: &mut Manifests) -> Context {
    let mut context = Context::new();
    for object in manifests.take(Kind::PRIORITY_CLASS) {
        manifests.must(&object, |tree| context.priority_class(tree));
    }
    context
}

/// A policy, and the object it was read from.
type Policies = Vec<(Manifest, karmada::Policy)>;

fn policies(manifests: &mut Manifests) -> Policies {
    let mut out = Vec::new();
    for kind in [Kind::PROPAGATION_POLICY, Kind::CLUSTER_PROPAGATION_POLICY] {
        for object in manifests.take(kind) {
            if let Some(policy) = manifests.required(&object, karmada::policy) {
                out.push((object, policy));
            }
        }
    }
    // Those of a namespace go before those of all, then by name.
    out.sort_by(|(_, a), (_, b)| (a.namespace.is_none(), &a.name).cmp(&(b.namespace.is_none(), &b.name)));
    out
}

/// What is on its way, by cluster.
fn assumed(manifests: &mut Manifests, context: &Context) -> BTreeMap<String, Vec<Assumed>> {
    let mut out: BTreeMap<String, Vec<Assumed>> = BTreeMap::new();
    for object in manifests.take_all(Kind::ASSUMED_WORKLOAD) {
        let read = |tree: &Tree<'_>| workload::assumed(tree, context);
        let Some(assumed) = manifests.required(&object, read) else { continue };
        match &object.value["spec"]["cluster"] {
            Value::String(cluster) => out.entry(cluster.clone()).or_default().push(assumed),
            Value::Null => {
                manifests.warn(object.problem("spec.cluster", "not said, so it is not counted anywhere"));
            }
            _ => manifests.problems.push(object.problem("spec.cluster", "expected the name of a cluster")),
        }
    }
    out
}

/// Reads what is divided, with the placement it has or a policy gives it.
fn binding(
    asked: &Manifest,
    policies: &Policies,
    context: &Context,
    manifests: &mut Manifests,
) -> Option<Binding> {
    let read = if BINDINGS.contains(&asked.kind) { karmada::binding } else { karmada::workload };
    let mut binding = manifests.required(asked, |tree| read(tree, context))?;
    if binding.placement.is_none() {
        let chosen = choose(asked, &binding, policies, manifests);
        binding.placement = chosen.map(|policy| policy.placement.clone());
        return Some(binding);
    }
    for (object, policy) in policies {
        let (kind, name) = (asked.kind.name, &policy.name);
        let message = format!("{kind} has a placement of its own, so {name} is not looked at");
        manifests.warn(object.problem("spec.placement", message));
    }
    Some(binding)
}

/// The policy that holds for what is divided. A workload without one is a problem.
fn choose<'p>(
    asked: &Manifest,
    binding: &Binding,
    policies: &'p Policies,
    manifests: &mut Manifests,
) -> Option<&'p karmada::Policy> {
    let bound = BINDINGS.contains(&asked.kind);
    let Bound { kind, key, .. } = &binding.resource;
    let labels = labels(&asked.value);
    let is_about = |policy: &karmada::Policy| bound || policy.is_about(&binding.resource, &labels);
    let about: Vec<_> = policies.iter().filter(|(_, policy)| is_about(policy)).collect();
    let odd = |object: &Manifest, message| object.problem("spec.resourceSelectors", message);
    match (about.as_slice(), policies.as_slice()) {
        ([], []) if bound => None,
        ([], []) => {
            let message = format!("expected a PropagationPolicy for {kind} {key}, found none");
            manifests.problems.push(asked.problem("", message));
            None
        }
        ([], [(object, policy), ..]) => {
            let message = format!("{} does not select {kind} {key}; it is used all the same", policy.name);
            manifests.warn(odd(object, message));
            Some(policy)
        }
        ([(_, policy)], _) => Some(policy),
        ([(object, policy), more @ ..], _) => {
            let message =
                format!("{} more policies select {kind} {key}; {} is used", more.len(), policy.name);
            manifests.warn(odd(object, message));
            Some(policy)
        }
    }
}

/// `ResourceBinding shop/web-deployment`, `Deployment shop/web`.
fn named(asked: &Manifest, binding: &Binding) -> String {
    let mut key = asked.key();
    if key.namespace.is_empty() && !BINDINGS.contains(&asked.kind) {
        key.namespace = binding.resource.key.namespace.clone();
    }
    format!("{} {key}", asked.kind.name)
}

fn labels(object: &Value) -> BTreeMap<String, String> {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
