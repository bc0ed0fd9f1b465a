//! What a custom resource may hold: pruning, defaulting and validating against a structural schema.

use serde_json::Value;

use super::View;
use crate::status::FieldError;

/// What is wrong with the schema of a `CustomResourceDefinition` itself; `path` is where the schema is.
#[must_use]
pub fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let _ = (schema, path);
    Vec::new()
}

/// Removes the fields the schema does not know, and returns their paths in order.
///
/// `value` is a whole object: its apiVersion, kind and metadata are kept.
pub fn prune(view: View<'_>, value: &mut Value) -> Vec<String> {
    let _ = (view, value);
    Vec::new()
}

/// Fills in the defaults of the schema.
pub fn default(view: View<'_>, value: &mut Value) {
    let _ = (view, value);
}

/// Checks a whole object against the schema; `old` is what it replaces.
#[must_use]
pub fn validate(view: View<'_>, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let _ = (view, new, old);
    Vec::new()
}
