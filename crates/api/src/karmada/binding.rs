//! What is bound, how much of it, and where is it now?

use super::placement::{Written, placement};
use crate::context::{Context, namespace};
use crate::json::{Skip, Tree};
use crate::read::{At, Error, Warning, tolerant};
use crate::workload::{self, Of, Question, components, requirements};
use loadline_core::divide::due::Applied;
use loadline_core::divide::{Binding, Bound, Previous};
use loadline_core::estimate::Ask;
use loadline_core::object::Key;

/// Where Karmada's scheduler remembers the placement it last went by.
pub(super) const APPLIED: &str = "policy.karmada.io/applied-placement";

/// Reads a `ResourceBinding` or `ClusterResourceBinding`.
///
/// # Errors
/// When the object is not what it should be.
pub fn binding(value: &Tree<'_>, context: &Context) -> Result<(Binding, Vec<Warning>), Error> {
    let kind = value["kind"].as_str().unwrap_or("ResourceBinding");
    tolerant(kind, value, |root| {
        root.get("metadata").get("name").needed();
        let (spec, status) = (root.get("spec"), root.get("status"));
        let (resource, wanted) = (spec.get("resource"), spec.get("replicaRequirements"));
        let own = root.get("metadata").get("namespace").string();
        let space =
            wanted.get("namespace").text().or(resource.get("namespace").text()).unwrap_or(&own).to_owned();
        for (key, what) in [
            ("workloadAffinityGroups", "nearness to other workloads is not looked at"),
            ("suspension", "is overlooked: Karmada's scheduler may wait until it is gone"),
        ] {
            if spec.get(key).is_set() {
                spec.get(key).warn(what);
            }
        }
        Binding {
            resource: Bound {
                api_version: resource.get("apiVersion").needed(),
                kind: resource.get("kind").needed(),
                key: Key::new(resource.get("namespace").string(), resource.get("name").needed()),
                uid: resource.get("uid").string(),
            },
            replicas: spec.get("replicas").int32().unwrap_or_default(),
            ask: wanted.some().map(|at| requirements(&at, &space, context)),
            components: components(&spec.get("components"), &space, context),
            clusters: spec.get("clusters").items().map(|at| previous(&at)).collect(),
            evicting: spec
                .get("gracefulEvictionTasks")
                .items()
                .map(|at| at.get("fromCluster").string())
                .collect(),
            rescheduled: spec.get("rescheduleTriggeredAt").time(),
            scheduled: status.get("lastScheduledTime").time(),
            observed: status.get("schedulerObservingAffinityName").string(),
            changed: false,
            placement: spec.get("placement").some().map(|at| placement(&at, Written::AsIs)),
        }
    })
}

fn previous(at: &At<'_, '_>) -> Previous {
    Previous { name: at.get("name").needed(), replicas: at.get("replicas").int32().unwrap_or_default() }
}

/// The placement of the last division, as the binding remembers it.
#[must_use]
pub fn applied(value: &Tree<'_>) -> Applied {
    let text = value["metadata"]["annotations"][APPLIED].as_str().unwrap_or_default();
    if text.is_empty() {
        return Applied::Never;
    }
    let read = Tree::parse(text.as_bytes(), Skip::NOTHING)
        .ok()
        .filter(Tree::is_object)
        .and_then(|value| tolerant("Placement", &value, |root| placement(root, Written::AsIs)).ok());
    read.map_or(Applied::Unreadable, |(placement, _)| Applied::Placement(Box::new(placement)))
}

/// Reads a plain workload, as Karmada would bind it: nowhere yet, its requirements from its template.
///
/// # Errors
/// When the object is not what it should be.
pub fn workload(value: &Tree<'_>, context: &Context) -> Result<(Binding, Vec<Warning>), Error> {
    let (Question { of, .. }, mut warnings) = workload::read(value, context)?;
    let kind = value["kind"].as_str().unwrap_or_default();
    let (binding, more) = tolerant(kind, value, |root| {
        let (metadata, spec) = (root.get("metadata"), root.get("spec"));
        let count = |key: &str| spec.get(key).int32();
        let replicas = if kind == "Job" {
            // No more run at once than are to be completed.
            let parallel = count("parallelism").unwrap_or(1);
            count("completions").map_or(parallel, |completions| parallel.min(completions))
        } else {
            count("replicas").unwrap_or(1)
        };
        Binding {
            resource: Bound {
                api_version: root.get("apiVersion").string(),
                kind: kind.to_owned(),
                key: Key::new(namespace(metadata.get("namespace").text()), metadata.get("name").string()),
                uid: metadata.get("uid").string(),
            },
            replicas,
            ask: match of {
                Of::Replicas(ask) => Some(*ask).filter(|ask| demands(ask, &spec.get("template").get("spec"))),
                Of::Sets(_) => None,
            },
            ..Binding::default()
        }
    })?;
    warnings.extend(more);
    Ok((binding, warnings))
}

/// Does a template ask for anything, of resources or of nodes? Else it counts as having no requirements.
fn demands(ask: &Ask, spec: &At<'_, '_>) -> bool {
    ask.requests.values().any(|amount| !amount.is_zero())
        || !ask.required.is_empty()
        || spec.get("tolerations").items().next().is_some()
}
