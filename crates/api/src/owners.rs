//! Who made whom? Workloads, as far as recommendations are found through them or pods belong together by them.

use crate::context::key;
use crate::json::{Skip, Tree};
use crate::read::{At, Error, Warning, controller, group, object, tolerant};
use crate::recommendation;
use loadline_core::load::recommend::{Recommendation, WorkloadRef};
use loadline_core::select::label::Requirement;
use loadline_core::select::{LabelSelector, Selector};
use loadline_core::view::Owner;
use loadline_core::view::siblings::Maker;

/// What [`read`] and [`read_as`] do not read of a workload whose selector counts.
pub const SKIP: Skip = Skip::fields(&["status"]).within(&[
    ("metadata", Skip::fields(&["finalizers", "labels", "managedFields"])),
    ("spec", Skip::fields(&["template", "updateStrategy", "volumeClaimTemplates"])),
]);

/// The same for one whose selector does not.
pub const SKIP_SELECTOR: Skip =
    Skip::fields(&["spec", "status"]).within(&[("metadata", Skip::fields(&["labels", "managedFields"]))]);

/// A `ReplicaSet`, Deployment, `StatefulSet`, `DaemonSet`, Job, `CronJob`, or anything else that makes pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Which one.
    pub target: WorkloadRef,
    pub uid: String,
    /// Who made it.
    pub controller: Option<Owner>,
    /// What is recommended for it in an annotation of its own.
    pub advice: Option<Recommendation>,
    /// Which pods are its own, where pods are spread by that.
    pub selects: Option<(Maker, Selector)>,
}

/// Reads a workload that says itself of which kind it is.
///
/// # Errors
/// When the object is not what it should be.
pub fn read(value: &Tree<'_>) -> Result<(Workload, Vec<Warning>), Error> {
    let text = |key: &str| value[key].as_str().unwrap_or_default();
    read_as(group(text("apiVersion")), text("kind"), value)
}

/// Reads a workload of a known kind: items of lists and mere metadata do not say theirs.
///
/// # Errors
/// When the object is not what it should be.
pub fn read_as(group: &str, kind: &str, value: &Tree<'_>) -> Result<(Workload, Vec<Warning>), Error> {
    tolerant(if kind.is_empty() { "Object" } else { kind }, value, |root| {
        if kind.is_empty() {
            root.get("kind").needed();
        }
        let metadata = root.get("metadata");
        let target = target(group, kind, &metadata);
        Workload {
            advice: recommendation::annotated(&metadata, &target),
            target,
            uid: metadata.get("uid").string(),
            controller: controller(&metadata),
            selects: Maker::named(group, kind).map(|maker| (maker, selects(maker, &root.get("spec")))),
        }
    })
}

/// What it says of its pods. A selector that is not there, or not valid, selects none.
fn selects(maker: Maker, spec: &At<'_, '_>) -> Selector {
    let at = spec.get("selector");
    if maker == Maker::ReplicationController {
        return Selector::all(at.texts().into_iter().map(|(k, v)| Requirement::equals(k, v)).collect());
    }
    let given: Option<LabelSelector> = at.parse();
    LabelSelector::prepare(given.as_ref()).unwrap_or_else(|e| {
        at.warn(e.to_string());
        Selector::nothing()
    })
}

/// Which workload it is and who made it, whatever is recommended for it.
///
/// # Errors
/// When the object is not what it should be.
pub fn made_by(group: &str, kind: &str, value: &Tree<'_>) -> Result<(WorkloadRef, Option<Owner>), Error> {
    object(kind, value, |root| {
        let metadata = root.get("metadata");
        (target(group, kind, &metadata), controller(&metadata))
    })
}

fn target(group: &str, kind: &str, metadata: &At<'_, '_>) -> WorkloadRef {
    WorkloadRef { group: group.into(), kind: kind.into(), key: key(metadata) }
}
