//! What is divided over which clusters? A binding, or a workload and its policy; the fleet; what is on its way.

use super::estimate_input::{Unclear, find};
use super::world::Build;
use crate::documents::{self, Document, Kind};
use crate::out::Refused;
use anyhow::Result;
use loadline_api::json::Tree;
use loadline_api::{Context, karmada, workload};
use loadline_core::divide::{Binding, Bound, Member};
use loadline_core::estimate::Assumed;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Bindings are meant whenever they are there; workloads beside them are what they bind.
const MEANT: [&str; 2] = ["ResourceBinding", "ClusterResourceBinding"];

/// Everything an answer is made from.
pub struct Input {
    /// What is divided, such as `Deployment shop/web`.
    pub workload: String,
    pub members: Vec<Member>,
    pub binding: Binding,
    /// What is on its way, by cluster.
    pub assumed: BTreeMap<String, Vec<Assumed>>,
    /// What is odd about the input.
    pub warnings: Vec<String>,
}

/// Every kind that is read.
fn kinds() -> Vec<Kind> {
    let mut kinds = vec![karmada::CLUSTER];
    kinds.extend(karmada::BINDINGS);
    kinds.extend(karmada::POLICIES);
    kinds.push(workload::ASSUMED);
    kinds.extend(karmada::WORKLOADS);
    kinds.push(("scheduling.k8s.io/v1", "PriorityClass"));
    kinds
}

/// Reads it all.
///
/// # Errors
/// Every problem at once.
pub fn read(files: &[PathBuf]) -> Result<Input> {
    let (mut read, problems) = documents::scan(files, &kinds());
    let mut build = Build { problems, ..Build::default() };
    build.warnings.extend(read.warnings.iter().map(ToString::to_string));
    let asked = find(&read.objects, &MEANT, &divided()).cloned();
    let mut take = |kinds: &[Kind]| -> Vec<Document> {
        let of = |object: &mut Document| kinds.contains(&(object.api_version, object.kind));
        read.objects.extract_if(.., of).collect()
    };
    let mut context = Context::new();
    for document in build.once(take(&[("scheduling.k8s.io/v1", "PriorityClass")])) {
        let read = context.priority_class(&Tree::from(&document.value));
        build.must(&document, read);
    }
    let mut members = Vec::new();
    for document in build.once(take(&[karmada::CLUSTER])) {
        if let Some((member, warnings)) =
            build.must(&document, karmada::cluster(&Tree::from(&document.value)))
        {
            build.warn(&document, warnings);
            members.push(member);
        }
    }
    let policies = policies(take(&karmada::POLICIES), &mut build);
    let assumed = assumed(take(&[workload::ASSUMED]), &context, &mut build);
    let binding = asked.as_ref().ok().and_then(|asked| question(asked, &policies, &context, &mut build));
    let Build { problems, warnings } = build;
    match (asked, binding) {
        (Ok(asked), Some(binding)) if problems.is_empty() => {
            Ok(Input { workload: named(&asked.value, &binding), members, binding, assumed, warnings })
        }
        (asked, _) => {
            let mut told: Vec<String> = documents::sorted(problems).iter().map(ToString::to_string).collect();
            match asked {
                // It may be among what could not be read.
                Err(Unclear::None(_)) if !told.is_empty() => {}
                Err(unclear) => told.push(unclear.to_string()),
                Ok(_) => {}
            }
            Err(Refused::new(told).into())
        }
    }
}

/// Kinds that can be divided.
fn divided() -> Vec<Kind> {
    karmada::BINDINGS.into_iter().chain(karmada::WORKLOADS).collect()
}

/// `ResourceBinding shop/web-deployment`, `Deployment shop/web`.
fn named(object: &Value, binding: &Binding) -> String {
    let part = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    let kind = object["kind"].as_str().unwrap_or_default();
    let space = match (part("namespace"), MEANT.contains(&kind)) {
        ("", true) => "",
        ("", false) => &*binding.resource.key.namespace,
        (space, _) => space,
    };
    let slash = if space.is_empty() { "" } else { "/" };
    format!("{kind} {space}{slash}{}", part("name"))
}

/// A policy, and where it is.
type Policies = Vec<(Document, karmada::Policy)>;

fn policies(documents: Vec<Document>, build: &mut Build) -> Policies {
    let (cluster, own): (Vec<_>, Vec<_>) =
        documents.into_iter().partition(|document| document.kind == "ClusterPropagationPolicy");
    let mut out = Vec::new();
    for document in build.once(own).into_iter().chain(build.once(cluster)) {
        if let Some((policy, warnings)) = build.must(&document, karmada::policy(&Tree::from(&document.value)))
        {
            build.warn(&document, warnings);
            out.push((document, policy));
        }
    }
    // Those of a namespace go before those of all, then by name.
    out.sort_by(|(_, a), (_, b)| (a.namespace.is_none(), &a.name).cmp(&(b.namespace.is_none(), &b.name)));
    out
}

fn assumed(documents: Vec<Document>, context: &Context, build: &mut Build) -> BTreeMap<String, Vec<Assumed>> {
    let mut out: BTreeMap<String, Vec<Assumed>> = BTreeMap::new();
    for document in documents {
        let Some((assumed, warnings)) =
            build.must(&document, workload::assumed(&Tree::from(&document.value), context))
        else {
            continue;
        };
        build.warn(&document, warnings);
        match &document.value["spec"]["cluster"] {
            Value::String(cluster) => out.entry(cluster.clone()).or_default().push(assumed),
            Value::Null => {
                let odd = document.problem("spec.cluster", "not said, so it is not counted anywhere");
                build.warnings.push(odd.to_string());
            }
            _ => build.problems.push(document.problem("spec.cluster", "expected the name of a cluster")),
        }
    }
    out
}

/// Reads what is divided, with the placement it has or a policy gives it.
fn question(asked: &Document, policies: &Policies, context: &Context, build: &mut Build) -> Option<Binding> {
    let bound = MEANT.contains(&asked.kind);
    let read = if bound { karmada::binding } else { karmada::workload };
    let (mut binding, warnings) = build.must(asked, read(&Tree::from(&asked.value), context))?;
    build.warn(asked, warnings);
    if binding.placement.is_some() {
        for (document, policy) in policies {
            let what =
                format!("{} has a placement of its own, so {} is not looked at", asked.kind, policy.name);
            build.warnings.push(document.problem("spec.placement", what).to_string());
        }
        return Some(binding);
    }
    let Bound { kind, key, .. } = &binding.resource;
    let labels: BTreeMap<String, String> = labels(&asked.value);
    let about: Vec<_> =
        policies.iter().filter(|(_, policy)| bound || policy.is_about(&binding.resource, &labels)).collect();
    let mut odd = |document: &Document, what: String| {
        build.warnings.push(document.problem("spec.resourceSelectors", what).to_string());
    };
    let chosen = match (about.as_slice(), policies.as_slice()) {
        ([], []) => None,
        ([], [(document, policy), ..]) => {
            odd(document, format!("{} does not select {kind} {key}; it is used all the same", policy.name));
            Some(policy)
        }
        ([(_, policy)], _) => Some(policy),
        ([(document, policy), more @ ..], _) => {
            odd(
                document,
                format!("{} more policies select {kind} {key}; {} is used", more.len(), policy.name),
            );
            Some(policy)
        }
    };
    if chosen.is_none() && !bound {
        let what = format!("expected a PropagationPolicy for {kind} {key}, found none");
        build.problems.push(asked.problem("", what));
    }
    binding.placement = chosen.map(|policy| policy.placement.clone());
    Some(binding)
}

fn labels(value: &Value) -> BTreeMap<String, String> {
    let labels = value["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned()))).collect()
}
