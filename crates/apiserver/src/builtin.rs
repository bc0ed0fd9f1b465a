//! What kube-apiserver does to built-in kinds on the way in: defaults, preparation and validation.
//!
//! All functions are pure over JSON. A create runs [`default`], [`normalize`], [`admission`], then
//! [`prepare_create`] and [`validate_create`], and stores `normalize(default(obj))`; an update does the same with
//! [`prepare_update`] and [`validate_update`]. Kinds that are not known here pass through unchanged, apart from
//! their metadata.

pub(crate) mod admission;
mod certificate;
mod convert;
mod defaults;
mod json;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod pod;
mod prepare;
mod shape;
#[cfg(test)]
mod tests;
mod validate;
mod warn;

use crate::status::FieldError;
use serde_json::Value;

pub(crate) use warn::warnings;

/// Which built-in kind an object is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GroupVersionKind<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Version in the group.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// Fills what a client may leave out. Idempotent.
pub(crate) fn default(kind: GroupVersionKind<'_>, obj: &mut Value) {
    shape::normalize(kind, obj);
    shape::visit(kind, obj, &mut defaults::apply);
}

/// Brings an object into the form it has after a round trip through the server's types: unknown fields and empty
/// optional ones gone, required ones present, quantities and times in canonical form. Idempotent.
pub(crate) fn normalize(kind: GroupVersionKind<'_>, obj: &mut Value) {
    shape::normalize(kind, obj);
    shape::visit(kind, obj, &mut convert::apply);
}

/// Resets what a client may not choose when it creates an object: status, generation and the like.
pub(crate) fn prepare_create(kind: GroupVersionKind<'_>, obj: &mut Value) {
    prepare::create(kind, obj);
}

/// Carries over what a client may not change with an update, and counts the generation up if the spec changed.
pub(crate) fn prepare_update(kind: GroupVersionKind<'_>, new: &mut Value, old: &Value) {
    prepare::update(kind, new, old);
}

/// Carries over everything a write to the `status` subresource may not change.
pub(crate) fn prepare_status_update(kind: GroupVersionKind<'_>, new: &mut Value, old: &Value) {
    prepare::status(kind, new, old);
}

/// Carries over everything but the conditions of a certificate signing request.
pub(crate) fn prepare_approval(new: &mut Value, old: &Value) {
    certificate::approval(new, old);
}

/// Problems of an object about to be created, metadata included.
#[must_use]
pub(crate) fn validate_create(kind: GroupVersionKind<'_>, obj: &Value) -> Vec<FieldError> {
    validate::create(kind, obj)
}

/// Problems of an update, metadata included.
#[must_use]
pub(crate) fn validate_update(kind: GroupVersionKind<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    validate::update(kind, new, old)
}

/// Problems of a write to the `status` subresource, metadata included.
#[must_use]
pub(crate) fn validate_status_update(
    kind: GroupVersionKind<'_>,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    validate::status(kind, new, old)
}
