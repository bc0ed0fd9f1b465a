//! Server-side apply: who owns which field, and what happens when two managers disagree.

use serde_json::Value;

use crate::schema::View;
use crate::status::Status;

/// Who writes, to what, and when.
#[derive(Debug, Clone)]
pub struct Write<'a> {
    /// Name of the field manager.
    pub manager: &'a str,
    /// Group and version the request is in, for example `apps/v1`.
    pub api_version: &'a str,
    /// Subresource written to; empty for the object itself.
    pub subresource: &'a str,
    /// Now, as RFC 3339 in whole seconds: `2026-01-02T03:04:05Z`.
    pub time: String,
    /// Fields this endpoint never changes, as dotted paths such as `status` or `metadata.labels`: they are never owned
    /// through it.
    pub reset: &'a [&'a str],
    /// Whether the kind is built in. Upstream keeps those in structs whose mandatory fields are always present, which
    /// shows in what a creator owns.
    pub builtin: bool,
}

/// Brings `metadata.managedFields` up to date for a create, update or patch that turned `live` into `new`.
///
/// Call it after decoding and defaulting, before the strategy of the kind prepares the object. Never fails: like
/// upstream, an object whose ownership cannot be told loses its `managedFields`.
pub fn update(view: Option<View<'_>>, live: Option<&Value>, new: &mut Value, write: &Write<'_>) {
    let _ = (view, live, new, write);
}

/// Merges an applied configuration into the live object and returns the result, `managedFields` included.
///
/// # Errors
/// 409 when another manager owns a field that would change, unless forced; 400 for a configuration of the wrong version
/// or with `managedFields`; 500 when it does not fit the schema.
pub fn apply(
    view: Option<View<'_>>,
    live: Option<&Value>,
    config: &Value,
    write: &Write<'_>,
    force: bool,
) -> Result<Value, Status> {
    let _ = (view, live, config, write, force);
    Err(Status::internal("not written yet"))
}

/// Whether two states of an object differ in nothing but the times in `metadata.managedFields`: then nothing is stored.
#[must_use]
pub fn same_but_times(old: &Value, new: &Value) -> bool {
    old == new
}
