//! Changing an object by JSON patch, merge patch or strategic merge patch.
//!
//! Three wire formats, one question each: what does the object look like afterwards? Nothing here stores,
//! validates or tracks ownership; the caller does that with the result.

use serde_json::Value;

use crate::schema::View;
use crate::status::Status;

/// Applies a JSON patch (RFC 6902) as a whole or not at all.
///
/// # Errors
/// 400 for something that is not a patch, 413 for too many operations, 422 when an operation does not fit.
pub fn json(doc: &Value, patch: &Value) -> Result<Value, Status> {
    let _ = (doc, patch);
    Err(Status::internal("not written yet"))
}

/// Applies a merge patch (RFC 7396).
///
/// # Errors
/// 400 when the patch is not an object.
pub fn merge(doc: &Value, patch: &Value) -> Result<Value, Status> {
    let _ = (doc, patch);
    Err(Status::internal("not written yet"))
}

/// Applies a strategic merge patch, guided by the schema of a built-in kind.
///
/// # Errors
/// As kube-apiserver answers: 400 for a malformed patch, 500 where upstream lets the error through.
pub fn strategic(view: Option<View<'_>>, doc: &Value, patch: &Value) -> Result<Value, Status> {
    let _ = (view, doc, patch);
    Err(Status::internal("not written yet"))
}
