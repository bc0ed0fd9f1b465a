//! What differs between kinds of resources when an object is written: built-in or from a definition, whole or status.

use super::{definitions, scale};
use crate::builtin::{self, GroupVersionKind, meta};
use crate::registry::Resource;
use crate::schema::structural;
use crate::status::{FieldError, Subject};
use serde_json::{Value, json};

/// How errors about an invalid object name its kind. Events are of the core group, whatever group they came through.
pub(super) fn invalid_subject(resource: &Resource) -> Subject<'_> {
    let subject = resource.subject();
    if resource.table.as_ref() == "/events" { Subject { group: "", ..subject } } else { subject }
}

/// Kinds whose updates must name a revision.
pub(super) fn unconditional_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && !matches!(
            resource.plural.as_str(),
            "leases"
                | "runtimeclasses"
                | "poddisruptionbudgets"
                | "csidrivers"
                | "csinodes"
                | "csistoragecapacities"
                | "volumeattachments"
                | "customresourcedefinitions"
                | "validatingadmissionpolicies"
                | "validatingadmissionpolicybindings"
        )
}

/// Kinds that an update creates when they are not there.
pub(super) fn created_on_update(resource: &Resource) -> bool {
    resource.custom.is_none()
        && matches!(
            resource.plural.as_str(),
            "leases"
                | "runtimeclasses"
                | "roles"
                | "rolebindings"
                | "clusterroles"
                | "clusterrolebindings"
                | "limitranges"
                | "events"
                | "services"
                | "endpoints"
        )
}

/// Fields an endpoint never writes, so nobody owns them through it.
pub(super) fn reset_fields(resource: &Resource, subresource: &str) -> &'static [&'static str] {
    let has_status = resource.subresource("status").is_some();
    match (subresource, resource.plural.as_str()) {
        ("status", _) if resource.custom.is_some() => &["metadata", "spec"],
        ("status", "pods") => &["spec", "metadata.deletionTimestamp", "metadata.ownerReferences"],
        ("status", "deployments" | "daemonsets") => &["spec", "metadata.labels"],
        ("status", "customresourcedefinitions") => &["spec", "metadata"],
        ("", "certificatesigningrequests") => &["spec", "status"],
        ("status", "certificatesigningrequests") => &["spec", "status.conditions"],
        ("approval", "certificatesigningrequests") => &["spec", "status.certificate"],
        ("status", _) => &["spec"],
        ("", _) if has_status => &["status"],
        _ => &[],
    }
}

pub(super) fn kind_of(resource: &Resource) -> GroupVersionKind<'_> {
    GroupVersionKind { group: &resource.group, version: &resource.version, kind: &resource.kind }
}

pub(super) fn structural_default(resource: &Resource, object: &mut Value) {
    if let Some(view) = resource.custom.as_ref().and_then(|c| c.schema()) {
        structural::default(view, object);
    }
}

pub(super) fn prepare_create(resource: &Resource, object: &mut Value) {
    match &resource.custom {
        None => builtin::prepare_create(kind_of(resource), object),
        Some(custom) => {
            if let Some(object) = object.as_object_mut().filter(|_| custom.status) {
                object.remove("status");
            }
            object["metadata"]["generation"] = json!(1);
        }
    }
}

pub(super) fn prepare_update(resource: &Resource, subresource: &str, new: &mut Value, old: &Value) {
    match (&resource.custom, subresource) {
        (None, "status") => builtin::prepare_status_update(kind_of(resource), new, old),
        (None, "resize") => builtin::pod::resize::prepare(new, old),
        (None, "approval") => builtin::prepare_approval(new, old),
        (None, "finalize") => {
            let finalizers = new["spec"]["finalizers"].take();
            let managed = new["metadata"]["managedFields"].take();
            *new = old.clone();
            new["spec"]["finalizers"] = finalizers;
            new["metadata"]["managedFields"] = managed;
        }
        (None, _) => builtin::prepare_update(kind_of(resource), new, old),
        (Some(_), "status") => {
            // Only the status may change; everything else is what it was.
            let status = new.as_object_mut().and_then(|o| o.remove("status"));
            let managed = new["metadata"]["managedFields"].take();
            *new = old.clone();
            new["metadata"]["managedFields"] = managed;
            match (status, new.as_object_mut()) {
                (Some(status), Some(object)) => {
                    object.insert("status".to_owned(), status);
                }
                (None, Some(object)) => {
                    object.remove("status");
                }
                _ => {}
            }
        }
        (Some(custom), _) => {
            if custom.status
                && let Some(object) = new.as_object_mut()
            {
                match old.get("status") {
                    Some(status) => object.insert("status".to_owned(), status.clone()),
                    None => object.remove("status"),
                };
            }
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0);
            let changed = differs_beside_metadata(new, old, custom.status);
            new["metadata"]["generation"] = json!(if changed { generation + 1 } else { generation });
        }
    }
}

/// Whether anything but metadata (and status, where that is a subresource) differs.
fn differs_beside_metadata(new: &Value, old: &Value, skip_status: bool) -> bool {
    let body = |value: &Value| {
        let mut value = value.clone();
        if let Some(object) = value.as_object_mut() {
            object.remove("metadata");
            if skip_status {
                object.remove("status");
            }
        }
        value
    };
    body(new) != body(old)
}

pub(super) fn validate_create(resource: &Resource, object: &Value) -> Vec<FieldError> {
    let Some(custom) = &resource.custom else {
        let mut errors = builtin::validate_create(kind_of(resource), object);
        if definitions::defines(resource) {
            errors.extend(definitions::schema_errors(object));
        }
        return errors;
    };
    let mut errors = meta::validate_create(object, resource.namespaced);
    if let Some(view) = custom.schema() {
        errors.extend(structural::validate(view, object, None));
    }
    if let Some(paths) = &custom.scale {
        errors.extend(scale::negative(paths, object));
    }
    errors
}

pub(super) fn validate_update(
    resource: &Resource,
    subresource: &str,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    let kind = kind_of(resource);
    match (&resource.custom, subresource) {
        (None, "status") => builtin::validate_status_update(kind, new, old),
        (None, "finalize" | "approval") => Vec::new(),
        (None, "resize") => builtin::pod::resize::validate(new, old),
        (None, _) => {
            let mut errors = builtin::validate_update(kind, new, old);
            // What was accepted once is not looked at again.
            if definitions::defines(resource) && new["spec"]["versions"] != old["spec"]["versions"] {
                errors.extend(definitions::schema_errors(new));
            }
            errors
        }
        (Some(custom), subresource) => {
            let mut errors = meta::validate_update(new, old, resource.namespaced);
            // Upstream looks at the metadata of these once more.
            errors.extend(meta::validate_create(new, resource.namespaced));
            if let Some(view) = custom.schema() {
                errors.extend(if subresource == "status" {
                    structural::validate_status(view, new, Some(old))
                } else {
                    structural::validate(view, new, Some(old))
                });
            }
            if let Some(paths) = &custom.scale {
                errors.extend(scale::negative(paths, new));
            }
            errors
        }
    }
}
