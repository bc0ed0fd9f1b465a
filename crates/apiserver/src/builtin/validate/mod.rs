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

use serde_json::Value;

use self::check::Errors;
use super::names::Rule;
use super::{Kind, meta, pod};

struct Traits {
    namespaced: bool,
    /// How names are spelled, `None` if the kind has no rule of its own.
    name: Option<Rule>,
}

fn traits(kind: Kind<'_>) -> Traits {
    let namespaced = !matches!(
        (kind.group, kind.kind),
        ("", "Node" | "Namespace" | "PersistentVolume")
            | ("scheduling.k8s.io" | "apiextensions.k8s.io" | "node.k8s.io", _)
            | ("storage.k8s.io", "StorageClass" | "CSINode" | "CSIDriver" | "VolumeAttachment")
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

/// See [`super::validate_create`].
pub(super) fn create(kind: Kind<'_>, obj: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = Errors::new();
    if let Some(rule) = traits.name {
        out.extend(meta::create(obj, traits.namespaced, rule));
    }
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
pub(super) fn update(kind: Kind<'_>, new: &Value, old: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = meta::create(new, traits.namespaced, Rule::PathSegment);
    out.extend(meta::update(new, old));
    let named = |out: &mut Errors| {
        if let Some(rule) = traits.name {
            out.extend(meta::create(new, traits.namespaced, rule));
        }
    };
    match (kind.group, kind.kind) {
        ("policy", _) | ("", "Event") => own(kind, new, Some(old), &mut out),
        ("events.k8s.io", "Event") => {
            own(kind, new, Some(old), &mut out);
            out.extend(meta::update(new, old));
            event::strict_update(new, old, &mut out);
        }
        ("batch", "Job") => {
            named(&mut out);
            own(kind, new, Some(old), &mut out);
            out.extend(meta::update(new, old));
            own(kind, new, Some(old), &mut out);
            batch::job_changes(new, old, &mut out);
        }
        ("", "ConfigMap" | "Secret") => {
            out.extend(meta::update(new, old));
            config::changes(kind.kind, new, old, &mut out);
            named(&mut out);
            own(kind, new, Some(old), &mut out);
        }
        ("", "Pod") => {
            out.extend(meta::update(new, old));
            named(&mut out);
            own(kind, new, Some(old), &mut out);
            pod::update::changes(new, old, &mut out);
        }
        ("apps", "DaemonSet") => {
            out.extend(meta::update(new, old));
            workload::changes(kind.kind, new, old, &mut out);
            own(kind, new, Some(old), &mut out);
        }
        ("scheduling.k8s.io", "PriorityClass") => {
            out.extend(meta::update(new, old));
            policy::priority_class_changes(new, old, &mut out);
        }
        ("", "Namespace") => out.extend(meta::update(new, old)),
        _ => {
            out.extend(meta::update(new, old));
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
pub(super) fn status(kind: Kind<'_>, new: &Value, old: &Value) -> Errors {
    let traits = traits(kind);
    let mut out = meta::create(new, traits.namespaced, Rule::PathSegment);
    out.extend(meta::update(new, old));
    if kind.group != "policy" {
        out.extend(meta::update(new, old));
    }
    match (kind.group, kind.kind) {
        ("", "Pod") => pod::update::status(new, old, &mut out),
        ("", "Node") => own(kind, new, Some(old), &mut out),
        ("apps", "Deployment" | "ReplicaSet") => workload::status(kind.kind, new, &mut out),
        ("policy", _) => policy::budget_status(new, &mut out),
        _ => {}
    }
    out
}

/// The rules of the kind itself, without metadata.
fn own(kind: Kind<'_>, obj: &Value, old: Option<&Value>, out: &mut Errors) {
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
        ("", "Event") | ("events.k8s.io", "Event") => event::event(obj, kind.group, out),
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
