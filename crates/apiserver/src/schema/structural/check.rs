//! Whether the schema of a `CustomResourceDefinition` is one the server can work with.
//!
//! A schema is structural when the type of every value is known without looking at the value: types stand outside
//! of `anyOf`, `oneOf`, `allOf` and `not`, and what those talk about is also declared outside of them.

use super::{flag, prune, text, validate};
use crate::status::FieldError;
use regex::Regex;
use serde_json::{Value, json};

/// Where a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What is wrong with the schema of a `CustomResourceDefinition` itself; `path` is where the schema is.
#[must_use]
pub(crate) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if flag(schema, "nullable") {
        errors.push(FieldError::forbidden(format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    let mut general = Vec::new();
    standard(schema, path, true, &mut general);
    // With constructs of other dialects nothing can be said about structure.
    let foreign = |error: &FieldError| error.detail.ends_with(" is not supported");
    if !general.iter().any(foreign) {
        let mut structural = Vec::new();
        structure(schema, Level::Root, path, &mut structural);
        complete(schema, Some(schema), path, path, &mut structural);
        structural.sort_by_key(ToString::to_string);
        if structural.is_empty() {
            defaults(schema, path, &mut structural);
        }
        errors.extend(structural);
    }
    errors.extend(general);
    errors
}

fn structure(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    match schema.get("items").filter(|items| items.is_object()) {
        Some(items) => structure(items, Level::Item, &format!("{path}.items"), errors),
        None if kind == "array" => {
            errors.push(FieldError::required(format!("{path}.items"), "must be specified"));
        }
        None => {}
    }
    for (name, property) in properties(schema) {
        structure(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    if let Some(additional) = schema.get("additionalProperties") {
        let at = format!("{path}.additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(at.clone(), "must not be used at the root"));
        }
        if embedded {
            let detail = "must not be used if x-kubernetes-embedded-resource is set";
            errors.push(FieldError::forbidden(at.clone(), detail));
        }
        if additional.is_object() {
            structure(additional, Level::Field, &at, errors);
        }
    }
    for (key, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(FieldError::invalid(format!("{path}.{key}"), &json!(true), detail));
        }
    }
    values(schema, int_or_string_pattern(schema), path, errors);
    typing(schema, level, path, errors);
}

/// What a schema has to say about its own type, and about the fields every resource has.
fn typing(schema: &Value, level: Level, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(schema, "type");
    let embedded = flag(schema, "x-kubernetes-embedded-resource");
    let preserve = flag(schema, "x-kubernetes-preserve-unknown-fields");
    let at = format!("{path}.type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(at.clone(), detail)
        } else {
            FieldError::invalid(at.clone(), &json!(kind), detail)
        });
    } else if kind.is_empty() && !flag(schema, "x-kubernetes-int-or-string") && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(at.clone(), detail));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(at, &json!(kind), "must be object at the root"));
    }
    let own = properties(schema);
    let resource = level == Level::Root || embedded;
    for name in ["kind", "apiVersion"] {
        if let Some((_, property)) = own.clone().find(|(own, _)| *own == name)
            && resource
            && text(property, "type") != "string"
        {
            let at = format!("{path}.properties[{name}].type");
            errors.push(FieldError::invalid(at, &json!(text(property, "type")), "must be string"));
        }
    }
    if let Some((_, metadata)) = own.clone().find(|(name, _)| *name == "metadata") {
        let at = format!("{path}.properties[metadata]");
        if resource && text(metadata, "type") != "object" {
            let kind = json!(text(metadata, "type"));
            errors.push(FieldError::invalid(format!("{at}.type"), &kind, "must be object"));
        }
        if level == Level::Root && !plain_metadata(metadata) {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly \
                          specified";
            errors.push(FieldError::forbidden(at, detail));
        }
    }
    if embedded && !preserve && own.count() == 0 {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(format!("{path}.properties"), detail));
    }
}

/// Metadata may say something about names, and nothing else.
fn plain_metadata(metadata: &Value) -> bool {
    let keys = metadata.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
    let mut unexpected = keys.filter(|key| !matches!(*key, "type" | "properties" | "default"));
    unexpected.next().is_none()
        && properties(metadata).all(|(name, _)| name == "name" || name == "generateName")
}

/// Whether `anyOf` only repeats what `x-kubernetes-int-or-string` says, which is allowed.
fn int_or_string_pattern(schema: &Value) -> bool {
    let pattern = json!([{"type": "integer"}, {"type": "string"}]);
    let first = schema.pointer("/allOf/0/anyOf");
    schema.get("anyOf") == Some(&pattern) || first == Some(&pattern)
}

fn values(schema: &Value, int_or_string: bool, path: &str, errors: &mut Vec<FieldError>) {
    for (key, at, one) in junctors(schema) {
        let repeats = int_or_string && (key == "anyOf" || (key == "allOf" && at == "[0]"));
        if repeats && key == "anyOf" {
            continue;
        }
        nested(one, repeats, &format!("{path}.{key}{at}"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = Regex::new(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(FieldError::invalid(format!("{path}.pattern"), &json!(pattern), detail));
    }
}

/// Schemas below `anyOf`, `allOf`, `oneOf` and `not`, with their place.
fn junctors(schema: &Value) -> Vec<(&'static str, String, &Value)> {
    let mut out = Vec::new();
    for key in ["anyOf", "allOf", "oneOf"] {
        let list = schema.get(key).and_then(Value::as_array).into_iter().flatten();
        out.extend(list.enumerate().map(|(index, one)| (key, format!("[{index}]"), one)));
    }
    out.extend(schema.get("not").map(|one| ("not", String::new(), one)));
    out
}

/// A schema below a junctor may constrain values, and say nothing about their structure.
fn nested(schema: &Value, skip_any_of: bool, path: &str, errors: &mut Vec<FieldError>) {
    values(schema, skip_any_of && schema.get("anyOf").is_some(), path, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        nested(items, false, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let forbid = |key: &str, detail: &str| FieldError::forbidden(format!("{path}.{key}"), detail);
    let present = |key: &str| schema.get(key).is_some_and(|value| !value.is_null());
    for key in ["type", "title", "description"] {
        if !text(schema, key).is_empty() {
            errors.push(forbid(key, "must be empty to be structural"));
        }
    }
    for key in ["additionalProperties", "default", "x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if present(key) {
            errors.push(forbid(key, "must be undefined to be structural"));
        }
    }
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if flag(schema, key) {
            errors.push(forbid(key, "must be false to be structural"));
        }
    }
    for key in ["x-kubernetes-list-map-keys", "x-kubernetes-validations"] {
        if schema.get(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty()) {
            errors.push(forbid(key, "must be empty to be structural"));
        }
    }
    if properties(schema).any(|(name, _)| name == "metadata") {
        errors.push(forbid("properties[metadata]", "must not be specified in a nested context"));
    }
}

/// What junctors talk about has to be declared outside of them.
fn complete(schema: &Value, outer: Option<&Value>, path: &str, at: &str, errors: &mut Vec<FieldError>) {
    for (key, index, one) in junctors(schema) {
        declared(one, outer, path, &format!("{at}.{key}{index}"), errors);
    }
}

fn declared(schema: &Value, outer: Option<&Value>, path: &str, at: &str, errors: &mut Vec<FieldError>) {
    let Some(structure) = outer else {
        errors.push(FieldError::required(path, format!("because it is defined in {at}")));
        return;
    };
    complete(schema, outer, path, at, errors);
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        declared(items, structure.get("items"), &format!("{path}.items"), &format!("{at}.items"), errors);
    }
    for (name, property) in properties(schema) {
        let below = format!("{path}.properties[{name}]");
        let found = structure.get("properties").and_then(|properties| properties.get(name));
        declared(property, found, &below, &format!("{at}.properties[{name}]"), errors);
    }
}

/// Defaults have to fulfil the schema they are defaults of.
fn defaults(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(default) = schema.get("default").filter(|default| !default.is_null()) {
        let at = format!("{path}.default");
        let mut pruned = default.clone();
        if prune::part(schema, &mut pruned).is_empty() {
            errors.extend(validate::whole(schema, &at, default, None));
        } else {
            errors.push(FieldError::invalid(at, default, "must not have unknown fields"));
        }
    }
    for (name, property) in properties(schema) {
        defaults(property, &format!("{path}.properties[{name}]"), errors);
    }
    for key in ["items", "additionalProperties"] {
        if let Some(below) = schema.get(key).filter(|below| below.is_object()) {
            defaults(below, &format!("{path}.{key}"), errors);
        }
    }
}

/// Rules that hold for a schema wherever it stands.
fn standard(schema: &Value, path: &str, root: bool, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    if !kind.is_empty() && !matches!(kind, "array" | "boolean" | "integer" | "number" | "object" | "string") {
        let types = ["array", "boolean", "integer", "number", "object", "string"];
        errors.push(FieldError::not_supported(at("type"), &json!(kind), &types));
    }
    for key in ["id", "patternProperties", "definitions", "dependencies", "additionalItems", "$ref"] {
        if schema.get(key).is_some() {
            errors.push(FieldError::forbidden(at(key), format!("{key} is not supported")));
        }
    }
    if schema.get("items").is_some_and(Value::is_array) {
        errors.push(FieldError::forbidden(at("items"), "items must be a schema object and not an array"));
    }
    if flag(schema, "uniqueItems") {
        let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        errors.push(FieldError::forbidden(at("uniqueItems"), detail));
    }
    if let Some(additional) = schema.get("additionalProperties") {
        if properties(schema).next().is_some() && *additional != json!(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            errors.push(FieldError::forbidden(at("additionalProperties"), detail));
        }
        if additional.is_object() {
            standard(additional, &at("additionalProperties"), false, errors);
        }
    }
    for (name, property) in properties(schema) {
        let below = format!("{path}.properties[{name}]");
        if root && matches!(name, "apiVersion" | "kind" | "metadata") && property.get("default").is_some() {
            let detail = format!("must not be set in top-level {name}");
            errors.push(FieldError::forbidden(format!("{below}.default"), detail));
        }
        standard(property, &below, false, errors);
    }
    for (key, index, one) in junctors(schema) {
        standard(one, &format!("{path}.{key}{index}"), false, errors);
    }
    if let Some(items) = schema.get("items").filter(|items| items.is_object()) {
        standard(items, &at("items"), false, errors);
    }
    markers(schema, path, errors);
}

/// Rules about the markers Kubernetes adds to schemas.
fn markers(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    let kind = text(schema, "type");
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&json!(false)) {
        let key = at("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(key, &json!(false), "must be true or undefined"));
    }
    for (marker, wanted, allowed) in [
        ("x-kubernetes-map-type", "object", ["atomic", "granular"].as_slice()),
        ("x-kubernetes-list-type", "array", ["atomic", "set", "map"].as_slice()),
    ] {
        let value = text(schema, marker);
        if value.is_empty() {
            continue;
        }
        let detail = format!("must be {wanted} if {marker} is specified");
        if kind.is_empty() {
            errors.push(FieldError::required(at("type"), detail));
        } else if kind != wanted {
            errors.push(FieldError::invalid(at("type"), &json!(kind), detail));
        }
        if !allowed.contains(&value) {
            errors.push(FieldError::not_supported(at(marker), &json!(value), allowed));
        }
    }
    let list = text(schema, "x-kubernetes-list-type");
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    let keys: Vec<&str> = keys.into_iter().flatten().filter_map(Value::as_str).collect();
    if !keys.is_empty() && list != "map" {
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        errors.push(if list.is_empty() {
            FieldError::required(at("x-kubernetes-list-type"), detail)
        } else {
            FieldError::invalid(at("x-kubernetes-list-type"), &json!(list), detail)
        });
    }
    if matches!(list, "map" | "set") && schema.get("items").is_some_and(|items| flag(items, "nullable")) {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list}");
        errors.push(FieldError::forbidden(at("items.nullable"), detail));
    }
    match list {
        "map" => keyed(schema, &keys, path, errors),
        "set" => atomic(schema, path, errors),
        _ => {}
    }
}

/// Entries of sets are compared as a whole, so nobody may own parts of them.
fn atomic(schema: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(items) = schema.get("items") else { return };
    let marker = match text(items, "type") {
        "array" if !matches!(text(items, "x-kubernetes-list-type"), "" | "atomic") => {
            "x-kubernetes-list-type"
        }
        "object" if text(items, "x-kubernetes-map-type") != "atomic" => "x-kubernetes-map-type",
        _ => return,
    };
    // Upstream shows the list type in both cases.
    let shown = items.get("x-kubernetes-list-type").cloned().unwrap_or(Value::Null);
    let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
    errors.push(FieldError::invalid(format!("{path}.items.{marker}"), &shown, detail));
}

fn keyed(schema: &Value, keys: &[&str], path: &str, errors: &mut Vec<FieldError>) {
    let at = |key: &str| format!("{path}.{key}");
    if keys.is_empty() {
        let detail = "must not be empty if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at("x-kubernetes-list-map-keys"), detail));
    }
    let Some(items) = schema.get("items") else {
        let detail = "must have a schema if x-kubernetes-list-type is map";
        errors.push(FieldError::required(at("items"), detail));
        return;
    };
    if text(items, "type") != "object" {
        let detail = "must be object if parent array's x-kubernetes-list-type is map";
        errors.push(FieldError::invalid(at("items.type"), &json!(text(items, "type")), detail));
        return;
    }
    for (index, key) in keys.iter().enumerate() {
        let Some((_, property)) = properties(items).find(|(name, _)| name == key) else {
            let detail = "entries must all be names of item properties";
            errors.push(FieldError::invalid(at("x-kubernetes-list-map-keys"), &json!(keys), detail));
            continue;
        };
        if matches!(text(property, "type"), "array" | "object") {
            let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
            errors.push(FieldError::invalid(
                at(&format!("items.properties[{key}].type")),
                &json!("object"),
                detail,
            ));
        }
        if keys[..index].contains(key) {
            let detail = "must not contain duplicate entries";
            errors.push(FieldError::invalid(at("x-kubernetes-list-map-keys"), &json!(keys), detail));
        }
        let required = items.get("required").and_then(Value::as_array);
        let required = required.is_some_and(|names| names.iter().any(|name| name == key));
        if property.get("default").is_none() && !required {
            let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a \
                          required property";
            errors.push(FieldError::required(at(&format!("items.properties[{key}].default")), detail));
        }
        if flag(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(FieldError::forbidden(at(&format!("items.properties[{key}].nullable")), detail));
        }
    }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&str, &Value)> + Clone {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().map(|(name, property)| (name.as_str(), property))
}
