//! Changing an object by JSON patch, merge patch or strategic merge patch.
//!
//! Three wire formats, one question each: what does the object look like afterwards? Nothing here stores,
//! validates or tracks ownership; the caller does that with the result.

mod operations;
mod strategic;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use crate::schema::View;
use crate::status::Status;
use serde_json::Value;

/// Applies a JSON patch (RFC 6902) as a whole or not at all.
///
/// # Errors
/// 400 for something that is not a patch, 413 for too many operations, 422 when an operation does not fit.
pub(crate) fn json(doc: &Value, patch: &Value) -> Result<Value, Status> {
    operations::apply(doc, patch)
}

/// Applies a merge patch (RFC 7396). As upstream, nulls inside new lists of objects vanish, too.
///
/// # Errors
/// 400 when the patch is not an object.
pub(crate) fn merge(doc: &Value, patch: &Value) -> Result<Value, Status> {
    match patch {
        Value::Object(_) => {}
        Value::Null => return Err(Status::bad_request("Invalid JSON Patch")),
        other => {
            let name = words::json_name(other);
            return Err(Status::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {name} into Go value of type map[string]interface {{}}"
            )));
        }
    }
    let mut patch = patch.clone();
    prune(&mut patch, false);
    let mut out = doc.clone();
    json_patch::merge(&mut out, &patch);
    Ok(out)
}

/// Applies a strategic merge patch, guided by the schema of a built-in kind.
///
/// Custom resources know no strategies: for them the caller answers 415 before coming here.
///
/// # Errors
/// As kube-apiserver answers: 400 for a malformed directive, 422 for lists of lists, 500 without a reason for the rest.
pub(crate) fn strategic(view: Option<View<'_>>, doc: &Value, patch: &Value) -> Result<Value, Status> {
    strategic::apply(view, doc, patch)
}

/// Removes null fields of objects inside lists; outside of lists they still mean deletion.
fn prune(value: &mut Value, in_list: bool) {
    match value {
        Value::Object(map) => {
            if in_list {
                map.retain(|_, v| !v.is_null());
            }
            map.values_mut().for_each(|v| prune(v, in_list));
        }
        Value::Array(list) => list.iter_mut().for_each(|v| prune(v, true)),
        _ => {}
    }
}
