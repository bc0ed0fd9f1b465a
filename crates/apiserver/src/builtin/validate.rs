//! Problems of objects of each kind, in the order and words of kube-apiserver.

mod batch;
pub(in crate::builtin) mod check;
mod config;
mod definition;
mod event;
mod node;
mod policy;
mod quota;
mod service;
mod workload;

use self::check::Errors;
use super::names::Rule;
use super::{GroupVersionKind, meta, pod};
use serde_json::Value;

struct Traits {
    namespaced: bool,
    /// How names are spelled, `None` if the kind has no rule of its own.
    name: Option<Rule>,
}

fn traits(kind: GroupVersionKind<'_>) -> Traits {
    let namespaced = !matches!(
        (kind.group, kind.kind),
        ("", "Node" | "Namespace" | "PersistentVolume")
            | (
                "scheduling.k8s.io"
                    | "apiextensions.k8s.io"
                    | "node.k8s.io"
                    | "certificates.k8s.io"
                    | "admissionregistration.k8s.io",
                _
            )
            | ("networking.k8s.io", "IngressClass" | "ServiceCIDR" | "IPAddress")
            | ("resource.k8s.io", "DeviceClass" | "ResourceSlice")
            | (
                "storage.k8s.io",
                "StorageClass" | "CSINode" | "CSIDriver" | "VolumeAttachment" | "VolumeAttributesClass"
            )
            | ("rbac.authorization.k8s.io", "ClusterRole" | "ClusterRoleBinding")
    );
    let name = match (kind.group, kind.kind) {
        ("", "Namespace" | "Service") | ("apps", "StatefulSet") => Some(Rule::Label),
        ("rbac.authorization.k8s.io", _) => Some(Rule::PathSegment),
        ("policy", _) | ("", "Event") => None,
        _ => Some(Rule::Subdomain),
    };
    Traits { namespaced, name }
}

/// The rules of metadata as a kind applies them to new objects.
fn named(kind: GroupVersionKind<'_>, traits: &Traits, obj: &Value, out: &mut Errors) {
    if let Some(rule) = traits.name {
        out.extend(meta::create(obj, traits.namespaced, rule));
        finalizers(kind, obj, out);
    }
}

/// The rules of metadata as a kind applies them to updates.
fn changed(kind: GroupVersionKind<'_>, new: &Value, old: &Value, out: &mut Errors) {
    out.extend(meta::update(new, old));
    finalizers(kind, new, out);
}

fn finalizers(kind: GroupVersionKind<'_>, obj: &Value, out: &mut Errors) {
    if !matches!(kind.group, "coordination.k8s.io" | "apiextensions.k8s.io") {
        meta::qualified_finalizers(obj, out);
    }
}

/// See [`super::validate_create`].
pub(super) fn create(kind: GroupVersionKind<'_>, obj: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = Errors::new();
    named(kind, &traits, obj, &mut out);
    own(kind, obj, None, &mut out);
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::validate::on_create(obj, &mut out),
        ("events.k8s.io", "Event") => event::strict_create(obj, &mut out),
        _ => {}
    }
    if out.is_empty() { meta::create(obj, traits.namespaced, Rule::PathSegment) } else { out }
}

/// See [`super::validate_update`].
///
/// The common rules run first; most kinds run some of them again, and upstream reports what they find twice.
pub(super) fn update(kind: GroupVersionKind<'_>, new: &Value, old: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = meta::create(new, traits.namespaced, Rule::PathSegment);
    out.extend(meta::update(new, old));
    let named = |out: &mut Errors| named(kind, &traits, new, out);
    let changed = |out: &mut Errors| changed(kind, new, old, out);
    match (kind.group, kind.kind) {
        ("policy", _) | ("", "Event") => own(kind, new, Some(old), &mut out),
        ("events.k8s.io", "Event") => {
            own(kind, new, Some(old), &mut out);
            changed(&mut out);
            event::strict_update(new, old, &mut out);
        }
        ("batch", "Job") => {
            named(&mut out);
            own(kind, new, Some(old), &mut out);
            changed(&mut out);
            own(kind, new, Some(old), &mut out);
            batch::job_changes(new, old, &mut out);
        }
        ("", "ConfigMap" | "Secret") => {
            changed(&mut out);
            config::changes(kind.kind, new, old, &mut out);
            named(&mut out);
            own(kind, new, Some(old), &mut out);
        }
        ("", "Pod") => {
            changed(&mut out);
            named(&mut out);
            own(kind, new, Some(old), &mut out);
            pod::update::changes(new, old, &mut out);
        }
        ("apps", "DaemonSet") => {
            changed(&mut out);
            workload::changes(kind.kind, new, old, &mut out);
            own(kind, new, Some(old), &mut out);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            changed(&mut out);
            policy::priority_class_changes(new, old, &mut out);
        }
        ("", "Namespace" | "Node" | "PersistentVolume")
        | ("node.k8s.io", _)
        | ("storage.k8s.io", "StorageClass" | "CSIStorageCapacity") => {
            named(&mut out);
            own(kind, new, None, &mut out);
            changed(&mut out);
            if kind.kind == "Node" {
                own(kind, new, Some(old), &mut out);
            }
        }
        ("", "LimitRange") => {
            named(&mut out);
            own(kind, new, Some(old), &mut out);
        }
        _ => {
            changed(&mut out);
            own(kind, new, Some(old), &mut out);
            match (kind.group, kind.kind) {
                ("apps", _) => workload::changes(kind.kind, new, old, &mut out),
                ("", "Service") => service::changes(new, old, &mut out),
                ("apiextensions.k8s.io", _) => definition::changes(new, old, &mut out),
                _ => {}
            }
        }
    }
    out
}

/// See [`super::validate_status_update`].
pub(super) fn status(kind: GroupVersionKind<'_>, new: &Value, old: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = meta::create(new, traits.namespaced, Rule::PathSegment);
    out.extend(meta::update(new, old));
    if kind.group != "policy" && (kind.group, kind.kind) != ("batch", "CronJob") {
        changed(kind, new, old, &mut out);
    }
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::update::status(new, old, &mut out),
        ("", "Node") => own(kind, new, Some(old), &mut out),
        ("", "Namespace") => node::namespace_status(new, &mut out),
        ("apps", "Deployment" | "ReplicaSet") => workload::status(kind.kind, new, &mut out),
        ("policy", _) => policy::budget_status(new, &mut out),
        _ => {}
    }
    out
}

/// The rules of the kind itself, without metadata.
fn own(kind: GroupVersionKind<'_>, obj: &Value, old: Option<&Value>, out: &mut Errors) {
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::validate::pod(obj, out),
        ("", "PodTemplate") => pod::validate::template(super::json::get(obj, "template"), "template", out),
        ("", "Node") => node::node(obj, old, out),
        ("", "Namespace") => node::namespace(obj, out),
        ("", "ConfigMap") => config::config_map(obj, out),
        ("", "Secret") => config::secret(obj, out),
        ("", "Service") => service::service(obj, out),
        ("", "ResourceQuota") => quota::resource_quota(obj, out),
        ("", "LimitRange") => quota::limit_range(obj, out),
        ("", "PersistentVolumeClaim") => quota::claim(obj, out),
        ("", "ReplicationController") => workload::replication_controller(obj, out),
        ("" | "events.k8s.io", "Event") => event::event(obj, kind.group, out),
        ("apps", "Deployment") => workload::deployment(obj, out),
        ("apps", "ReplicaSet") => workload::replica_set(obj, out),
        ("apps", "StatefulSet") => workload::stateful_set(obj, old.is_some(), out),
        ("apps", "DaemonSet") => workload::daemon_set(obj, out),
        ("batch", "Job") => batch::job(obj, out),
        ("batch", "CronJob") => batch::cron_job(obj, out),
        ("policy", "PodDisruptionBudget") => policy::budget(obj, out),
        ("scheduling.k8s.io", "PriorityClass") => policy::priority_class(obj, out),
        ("coordination.k8s.io", "Lease") => policy::lease(obj, out),
        ("apiextensions.k8s.io", "CustomResourceDefinition") => definition::definition(obj, old, out),
        _ => {}
    }
}
