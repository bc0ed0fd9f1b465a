//! What a custom resource may hold: pruning, defaulting and validating against a structural schema.
//!
//! A body goes through [`coerce`] and [`default`], then [`validate`] says what is wrong with it. The schema of a
//! `CustomResourceDefinition` itself is looked at by [`check`]. Schemas of custom resources contain no
//! references, so these functions walk the schema as it was written.

#[cfg(feature = "cel")]
mod cel;
mod check;
mod fill;
mod format;
mod lists;
mod prune;
mod report;
#[cfg(test)]
mod tests;
mod validate;

use serde_json::Value;

pub(crate) use self::check::check;
use super::decode::DecodeError;
use super::{View, builtin, decode};
use crate::status::FieldError;

/// Makes a decoded body fit the schema, and returns the paths of fields that were dropped.
///
/// Unknown fields go, as do nulls where null is not allowed and nothing takes their place; metadata, also of
/// embedded resources, keeps only what `ObjectMeta` has. With `preserveUnknownFields` in the definition upstream
/// only looks at metadata; then `prune` is not for you, but [`metadata`] is.
///
/// # Errors
/// When metadata has a field of a wrong type.
pub(crate) fn coerce(view: View<'_>, value: &mut Value) -> Result<Vec<String>, DecodeError> {
    let mut dropped = metadata(value)?;
    dropped.extend(prune(view, value));
    fill::drop_nulls(&view.schema().raw, value);
    dropped.extend(prune::embedded(&view.schema().raw, value, "")?);
    Ok(dropped)
}

/// Makes the metadata of an object be an `ObjectMeta`, and returns the paths of fields that were dropped.
///
/// # Errors
/// When a field has a wrong type.
pub(crate) fn metadata(value: &mut Value) -> Result<Vec<String>, DecodeError> {
    prune::metadata(value, "")
}

/// Removes the fields the schema does not know, and returns their paths in order.
///
/// `value` is a whole object: its apiVersion, kind and metadata are kept.
pub(crate) fn prune(view: View<'_>, value: &mut Value) -> Vec<String> {
    prune::root(&view.schema().raw, value)
}

/// Fills in the defaults of the schema.
pub(crate) fn default(view: View<'_>, value: &mut Value) {
    fill::default(&view.schema().raw, value);
}

/// Checks a whole object against the schema; `old` is what it replaces, whose mistakes are forgiven where nothing
/// was changed.
///
/// Metadata and the scale subresource are not looked at here: they are the same for every kind.
#[must_use]
pub(crate) fn validate(view: View<'_>, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let raw = &view.schema().raw;
    let mut errors = validate::whole(raw, "", new, old);
    errors.extend(lists::embedded(raw, new, ""));
    if old.is_none_or(|old| lists::duplicates(raw, old, "").is_empty()) {
        errors.extend(lists::duplicates(raw, new, ""));
    }
    rules(raw, new, old, &mut errors);
    errors
}

/// Checks the status of an object, as an update of the status subresource does; `view` is the whole schema.
#[must_use]
pub(crate) fn validate_status(view: View<'_>, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let raw = &view.schema().raw;
    let mut errors = match (raw.pointer("/properties/status"), new.get("status")) {
        (Some(schema), Some(status)) => {
            validate::whole(schema, "status", status, old.and_then(|old| old.get("status")))
        }
        _ => Vec::new(),
    };
    errors.extend(lists::embedded(raw, new, ""));
    if old.is_none_or(|old| lists::duplicates(raw, old, "").is_empty()) {
        errors.extend(lists::duplicates(raw, new, ""));
    }
    rules(raw, new, old, &mut errors);
    errors
}

/// Evaluates the rules of a schema, unless the object is too broken for them to make sense.
#[cfg(feature = "cel")]
fn rules(schema: &Value, new: &Value, old: Option<&Value>, errors: &mut Vec<FieldError>) {
    use crate::status::Mistake;

    if !cel::any(schema) {
        return;
    }
    let blocks = |error: &FieldError| {
        matches!(
            error.mistake,
            Mistake::NotSupported
                | Mistake::Required
                | Mistake::TooLong
                | Mistake::TooMany
                | Mistake::TypeInvalid
        )
    };
    if errors.iter().any(blocks) {
        let detail = "some validation rules were not checked because the object was invalid; correct the existing \
                      errors to complete validation";
        errors.push(FieldError::invalid(report::NOWHERE, &Value::Null, detail));
    } else {
        errors.extend(cel::rules(schema, new, old));
    }
}

/// Without the feature `cel` rules are not evaluated.
#[cfg(not(feature = "cel"))]
fn rules(_: &Value, _: &Value, _: Option<&Value>, _: &mut Vec<FieldError>) {}

/// A boolean of a schema; false when not given.
fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// A text of a schema; empty when not given.
fn text<'a>(schema: &'a Value, key: &str) -> &'a str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The schema of a field: its property, else the value type of a map.
fn field<'a>(schema: &'a Value, name: &str) -> Option<&'a Value> {
    let property = schema.get("properties").and_then(|properties| properties.get(name));
    property.or_else(|| schema.get("additionalProperties").filter(|value| value.is_object()))
}

/// `path.name`, without a dot at the start.
fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
