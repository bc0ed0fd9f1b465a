//! How is a piece of an object written into a cell?
//!
//! Readers here never fail: a field that is missing or of another type reads as Go's zero value, which is what a
//! typed server would see.

use super::age;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

/// Shown where there is nothing to show.
pub(super) const NONE: &str = "<none>";
/// Shown where a field was not set.
pub(super) const UNSET: &str = "<unset>";
/// Shown where nothing is known.
pub(super) const UNKNOWN: &str = "<unknown>";

/// A string field by JSON pointer, empty when missing.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A string field, or `other` when it is missing or empty.
pub(super) fn text_or<'a>(object: &'a Value, pointer: &str, other: &'a str) -> &'a str {
    match text(object, pointer) {
        "" => other,
        found => found,
    }
}

/// A string field that may be set and empty, or `other` when it is missing.
pub(super) fn set_or<'a>(object: &'a Value, pointer: &str, other: &'a str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or(other)
}

/// An integer field, zero when missing.
pub(super) fn int(object: &Value, pointer: &str) -> i64 {
    object.pointer(pointer).and_then(Value::as_i64).unwrap_or_default()
}

/// A boolean field, if set.
pub(super) fn flag(object: &Value, pointer: &str) -> Option<bool> {
    object.pointer(pointer).and_then(Value::as_bool)
}

/// A list field, empty when missing.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// A map field, if it is one.
pub(super) fn map<'a>(object: &'a Value, pointer: &str) -> Option<&'a Map<String, Value>> {
    object.pointer(pointer).and_then(Value::as_object)
}

/// Number of entries of a map field.
pub(super) fn len(object: &Value, pointer: &str) -> usize {
    map(object, pointer).map_or(0, Map::len)
}

/// A time field, if it is set to one.
pub(super) fn time(object: &Value, pointer: &str) -> Option<Timestamp> {
    object.pointer(pointer).and_then(Value::as_str).and_then(age::rfc3339).and_then(age::not_zero)
}

/// Whether a field is set to anything.
pub(super) fn has(object: &Value, pointer: &str) -> bool {
    object.pointer(pointer).is_some_and(|value| !value.is_null())
}

/// The object's name.
pub(super) fn name(object: &Value) -> Value {
    json!(text(object, "/metadata/name"))
}

/// Time since the object was created.
pub(super) fn created(object: &Value, now: Timestamp) -> Value {
    json!(age::since(time(object, "/metadata/creationTimestamp"), now))
}

/// A value of a map whose keys may hold slashes (annotations, resource names).
pub(super) fn entry<'a>(object: &'a Value, pointer: &str, key: &str) -> Option<&'a str> {
    map(object, pointer)?.get(key)?.as_str()
}

/// An int-or-string, or a quantity, which JSON may carry as a number.
pub(super) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A quantity; the zero quantity when missing.
pub(super) fn quantity(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "0".to_owned(),
        Some(value) => scalar(value),
    }
}

/// Joins strings that are looked up in each entry of a list.
pub(super) fn joined(entries: &[Value], pointer: &str, separator: &str) -> String {
    let found: Vec<&str> = entries.iter().map(|entry| text(entry, pointer)).collect();
    found.join(separator)
}

/// Names and images of the containers in a pod spec.
pub(super) fn containers(object: &Value, spec: &str) -> [Value; 2] {
    let containers = list(object, &format!("{spec}/containers"));
    [json!(joined(containers, "/name", ",")), json!(joined(containers, "/image", ","))]
}

/// Labels as `a=b,c=d`, sorted.
pub(super) fn labels(labels: Option<&Map<String, Value>>) -> String {
    let mut pairs: Vec<String> = labels
        .into_iter()
        .flatten()
        .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
        .collect();
    pairs.sort_unstable();
    if pairs.is_empty() { NONE.to_owned() } else { pairs.join(",") }
}

/// A label selector in the syntax of the `labelSelector` parameter; empty when it selects everything or nothing.
/// `Err` when an operator is unknown.
pub(super) fn selector(selector: Option<&Value>) -> Result<String, ()> {
    let Some(selector) = selector else { return Ok(String::new()) };
    let mut terms: Vec<(&str, String)> = map(selector, "/matchLabels")
        .into_iter()
        .flatten()
        .map(|(key, value)| (key.as_str(), format!("{key}={}", value.as_str().unwrap_or_default())))
        .collect();
    for expression in list(selector, "/matchExpressions") {
        let key = text(expression, "/key");
        let mut values: Vec<&str> = list(expression, "/values").iter().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let term = match text(expression, "/operator") {
            "In" => format!("{key} in ({values})"),
            "NotIn" => format!("{key} notin ({values})"),
            "Exists" => key.to_owned(),
            "DoesNotExist" => format!("!{key}"),
            _ => return Err(()),
        };
        terms.push((key, term));
    }
    terms.sort_by_key(|(key, _)| *key);
    Ok(terms.into_iter().map(|(_, term)| term).collect::<Vec<_>>().join(","))
}

/// A label selector for a column that says so when it is empty.
pub(super) fn selector_or_none(value: Option<&Value>) -> Value {
    match selector(value) {
        Ok(text) if text.is_empty() => json!(NONE),
        Ok(text) => json!(text),
        Err(()) => json!("<error>"),
    }
}

/// The first `shown` entries, and how many there are beyond them.
pub(super) fn and_more(entries: &[String], shown: usize, separator: &str) -> String {
    let head = entries.iter().take(shown).map(String::as_str).collect::<Vec<_>>().join(separator);
    match entries.len().checked_sub(shown) {
        None | Some(0) => head,
        Some(more) => format!("{head} + {more} more..."),
    }
}
