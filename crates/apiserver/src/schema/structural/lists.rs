//! What a schema promises beyond constraints: entries told apart by keys, resources inside resources.

use super::{child, flag, text};
use crate::status::FieldError;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Entries of sets and keyed lists that are there twice.
pub(super) fn duplicates(schema: &Value, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match value {
        Value::Array(items) => {
            match text(schema, "x-kubernetes-list-type") {
                "set" => errors.extend(
                    repeated(items.iter())
                        .map(|at| FieldError::duplicate(format!("{path}[{at}]"), &items[at])),
                ),
                "map" => errors.extend(keyed(schema, items, path)),
                _ => {}
            }
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    errors.extend(duplicates(schema, item, &format!("{path}[{index}]")));
                }
            }
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                if let Some((schema, below)) = step(schema, name, path) {
                    errors.extend(duplicates(schema, value, &below));
                }
            }
        }
        _ => {}
    }
    errors
}

/// The schema and path of a field; keys of maps are in brackets.
fn step<'a>(schema: &'a Value, name: &str, path: &str) -> Option<(&'a Value, String)> {
    if let Some(property) = schema.get("properties").and_then(|properties| properties.get(name)) {
        return Some((property, child(path, name)));
    }
    let additional = schema.get("additionalProperties").filter(|schema| schema.is_object())?;
    Some((additional, format!("{path}[{name}]")))
}

/// Positions at which a value is seen for the second time.
fn repeated<'a>(values: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = usize> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let second: Vec<usize> = values
        .enumerate()
        .filter_map(|(at, value)| {
            let times = seen.entry(value.to_string()).or_default();
            *times += 1;
            (*times == 2).then_some(at)
        })
        .collect();
    second.into_iter()
}

fn keyed(schema: &Value, items: &[Value], path: &str) -> Vec<FieldError> {
    if let Some((at, item)) = items.iter().enumerate().find(|(_, item)| !item.is_null() && !item.is_object())
    {
        let detail = "must be an object for an array of list-type map";
        return vec![FieldError::invalid(format!("{path}[{at}]"), item, detail)];
    }
    let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
    let key = |item: &Value| {
        let parts = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
        Value::Object(parts.collect::<Map<_, _>>())
    };
    let keys: Vec<Value> = items.iter().map(key).collect();
    repeated(keys.iter()).map(|at| FieldError::duplicate(format!("{path}[{at}]"), &keys[at])).collect()
}

/// What embedded resources lack to be resources.
pub(super) fn embedded(schema: &Value, value: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match value {
        Value::Object(fields) => {
            if flag(schema, "x-kubernetes-embedded-resource") {
                errors.extend(["apiVersion", "kind"].iter().filter_map(|name| typing(fields, name, path)));
            }
            for (name, value) in fields {
                if let Some((schema, below)) = step(schema, name, path) {
                    errors.extend(embedded(schema, value, &below));
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter().enumerate() {
                    errors.extend(embedded(schema, item, &format!("{path}[{index}]")));
                }
            }
        }
        _ => {}
    }
    errors
}

fn typing(fields: &Map<String, Value>, name: &str, path: &str) -> Option<FieldError> {
    let path = child(path, name);
    match fields.get(name) {
        None => Some(FieldError::required(path, "")),
        Some(Value::String(text)) if text.is_empty() => {
            Some(FieldError::invalid(path, &Value::from(""), "must not be empty"))
        }
        Some(Value::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
            let detail = format!("unexpected GroupVersion string: {text}");
            Some(FieldError::invalid(path, &Value::from(text.as_str()), detail))
        }
        Some(Value::String(_)) => None,
        Some(other) => Some(FieldError::invalid(path, other, "must be a string")),
    }
}
