//! What kube-apiserver does to built-in kinds on the way in: defaults, preparation and validation.
//!
//! All functions are pure over JSON. A create runs [`default`], [`normalize`], [`admission`], then
//! [`prepare_create`] and [`validate_create`], and stores `normalize(default(obj))`; an update does the same with
//! [`prepare_update`] and [`validate_update`]. Kinds that are not known here pass through unchanged, apart from
//! their metadata.

pub mod admission;
mod convert;
mod defaults;
mod json;
pub mod meta;
pub(crate) mod names;
pub mod pod;
mod prepare;
mod shape;
#[cfg(test)]
mod tests;
mod validate;
mod warn;

use crate::status::FieldError;
use serde_json::Value;

pub use warn::warnings;

/// Which built-in kind an object is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kind<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Version in the group.
    pub version: &'a str,
    /// Kind.
    pub kind: &'a str,
}

/// Fills what a client may leave out. Idempotent.
pub fn default(kind: Kind<'_>, obj: &mut Value) {
    shape::normalize(kind, obj);
    shape::visit(kind, obj, &mut defaults::apply);
}

/// Brings an object into the form it has after a round trip through the server's types: unknown fields and empty
/// optional ones gone, required ones present, quantities and times in canonical form. Idempotent.
pub fn normalize(kind: Kind<'_>, obj: &mut Value) {
    shape::normalize(kind, obj);
    shape::visit(kind, obj, &mut convert::apply);
}

/// Resets what a client may not choose when it creates an object: status, generation and the like.
pub fn prepare_create(kind: Kind<'_>, obj: &mut Value) {
    prepare::create(kind, obj);
}

/// Carries over what a client may not change with an update, and counts the generation up if the spec changed.
pub fn prepare_update(kind: Kind<'_>, new: &mut Value, old: &Value) {
    prepare::update(kind, new, old);
}

/// Carries over everything a write to the `status` subresource may not change.
pub fn prepare_status_update(kind: Kind<'_>, new: &mut Value, old: &Value) {
    prepare::status(kind, new, old);
}

/// Problems of an object about to be created, metadata included.
#[must_use]
pub fn validate_create(kind: Kind<'_>, obj: &Value) -> Vec<FieldError> {
    validate::create(kind, obj)
}

/// Problems of an update, metadata included.
#[must_use]
pub fn validate_update(kind: Kind<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    validate::update(kind, new, old)
}

/// Problems of a write to the `status` subresource, metadata included.
#[must_use]
pub fn validate_status_update(kind: Kind<'_>, new: &Value, old: &Value) -> Vec<FieldError> {
    validate::status(kind, new, old)
}
