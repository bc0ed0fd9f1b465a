//! Rules in the Common Expression Language: `x-kubernetes-validations`.
//!
//! The expressions are evaluated by the `kube-cel` crate, one schema node at a time; walking the object,
//! forgiving what has not been changed, and the words of a failure are upstream's and done here.

use super::report::NOWHERE;
use super::{child, flag, text, validate};
use crate::status::{FieldError, Mistake, render};
use kube_cel::{CompiledSchema, ErrorKind, Validator, compile_schema};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// More compiled rules than this are not kept.
const MOST_KEPT: usize = 4096;

/// What one thread needs to evaluate rules: compiling costs far more than evaluating.
#[derive(Default)]
struct Engine {
    validator: Validator,
    compiled: BTreeMap<String, Rc<CompiledSchema>>,
}

thread_local! {
    static ENGINE: RefCell<Engine> = RefCell::default();
}

/// Whether a schema has rules anywhere.
pub(super) fn any(schema: &Value) -> bool {
    match schema {
        Value::Object(fields) => fields.iter().any(|(key, value)| match key.as_str() {
            "x-kubernetes-validations" => value.as_array().is_some_and(|rules| !rules.is_empty()),
            "properties" => value.as_object().is_some_and(|properties| properties.values().any(any)),
            "items" | "additionalProperties" => any(value),
            "allOf" => value.as_array().is_some_and(|all| all.iter().any(any)),
            _ => false,
        }),
        _ => false,
    }
}

/// Evaluates all rules; `old` is what the value replaces.
pub(super) fn rules(schema: &Value, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    walk(schema, true, "", new, old.filter(|old| !old.is_null()), &mut errors);
    errors
}

fn walk(
    schema: &Value,
    resource: bool,
    path: &str,
    new: &Value,
    old: Option<&Value>,
    errors: &mut Vec<FieldError>,
) {
    if new.is_null() {
        return;
    }
    let resource = resource || flag(schema, "x-kubernetes-embedded-resource");
    let rules = schema.get("x-kubernetes-validations").and_then(Value::as_array);
    for rule in rules.into_iter().flatten() {
        if let Some(error) = evaluate(schema, resource, rule, path, new, old) {
            errors.push(error);
        }
    }
    match new {
        Value::Array(items) => {
            let Some(schema_of_items) = schema.get("items") else { return };
            for (index, item) in items.iter().enumerate() {
                let before = old.and_then(|old| validate::counterpart(schema, old, item));
                walk(schema_of_items, false, &format!("{path}[{index}]"), item, before, errors);
            }
        }
        Value::Object(fields) => {
            // Parts of a map that is replaced as a whole have no past.
            let past = old.filter(|_| text(schema, "x-kubernetes-map-type") != "atomic");
            for (name, value) in fields {
                let before = past.and_then(|old| old.get(name)).filter(|before| !before.is_null());
                let property = schema.get("properties").and_then(|properties| properties.get(name));
                if let Some(schema) = property {
                    walk(schema, false, &child(path, name), value, before, errors);
                } else if let Some(schema) =
                    schema.get("additionalProperties").filter(|schema| schema.is_object())
                {
                    walk(schema, false, &format!("{path}[{name}]"), value, before, errors);
                }
            }
        }
        _ => {}
    }
}

fn evaluate(
    schema: &Value,
    resource: bool,
    rule: &Value,
    path: &str,
    new: &Value,
    old: Option<&Value>,
) -> Option<FieldError> {
    let alone = alone(schema, resource, rule);
    let failures = ENGINE.with_borrow_mut(|engine| {
        let compiled = engine.compiled(&alone);
        let result = engine.validator.validate_compiled(&compiled, new, old);
        result.err().map(|errors| (errors.into_vec(), transition(&compiled)))
    });
    let (failures, transition) = failures?;
    let failure = failures.into_iter().next()?;
    let kind = text(schema, "type");
    let words = |key: &str| text(rule, key).trim();
    let said = if words("message").is_empty() { words("rule") } else { words("message") };
    let at = |field: String| if field.is_empty() { NOWHERE.to_owned() } else { field };
    let broken = |detail: String| FieldError {
        mistake: Mistake::Invalid,
        field: at(path.to_owned()),
        value: Some(render(&json!(kind))),
        detail,
    };
    match failure.kind {
        ErrorKind::ValidationFailure => {}
        ErrorKind::CompilationFailure | ErrorKind::InvalidRule => {
            return Some(broken(format!("rule compile error: {}", failure.message)));
        }
        _ => {
            return Some(broken(format!("{} evaluating rule: {said}", reworded(&failure.message))));
        }
    }
    if !transition && old == Some(new) {
        return None;
    }
    let detail = if !words("messageExpression").is_empty() {
        failure.message
    } else if words("message").is_empty() {
        format!("failed rule: {said}")
    } else {
        said.to_owned()
    };
    let field = match words("fieldPath").trim_start_matches('.') {
        "" => path.to_owned(),
        below if below.starts_with('[') => format!("{path}{below}"),
        below => child(path, below),
    };
    let value = (!matches!(kind, "object" | "array")).then(|| render(new));
    Some(match text(rule, "reason") {
        "FieldValueForbidden" => FieldError::forbidden(at(field), detail),
        "FieldValueRequired" => FieldError::required(at(field), detail),
        "FieldValueDuplicate" => {
            FieldError { mistake: Mistake::Duplicate, field: at(field), value, detail: String::new() }
        }
        _ => FieldError { mistake: Mistake::Invalid, field: at(field), value, detail },
    })
}

/// A failure of the evaluator in upstream's words, for the failures users meet.
fn reworded(message: &str) -> String {
    let message = message.trim_start_matches("rule evaluation error: ");
    if message.starts_with("Division by zero") {
        "division by zero".to_owned()
    } else if let Some(key) = message.strip_prefix("No such key: ") {
        format!("no such key: {key}")
    } else {
        message.to_owned()
    }
}

/// Whether a rule compares with the past.
fn transition(compiled: &CompiledSchema) -> bool {
    compiled.validations.iter().flatten().any(|result| result.is_transition_rule)
}

impl Engine {
    fn compiled(&mut self, schema: &Value) -> Rc<CompiledSchema> {
        if self.compiled.len() >= MOST_KEPT {
            self.compiled.clear();
        }
        let compile = || Rc::new(compile_schema(schema));
        Rc::clone(self.compiled.entry(schema.to_string()).or_insert_with(compile))
    }
}

/// A schema with one rule of its own, none below, and without defaults, which have been applied.
fn alone(schema: &Value, resource: bool, rule: &Value) -> Value {
    let mut out = bare(schema);
    if resource && out.is_object() {
        if !out["properties"].is_object() {
            out["properties"] = json!({});
        }
        for name in ["apiVersion", "kind"] {
            out["properties"][name] = json!({"type": "string"});
        }
        let name = json!({"type": "string"});
        out["properties"]["metadata"] =
            json!({"type": "object", "properties": {"name": name, "generateName": name}});
    }
    out["x-kubernetes-validations"] = json!([rule]);
    out
}

fn bare(schema: &Value) -> Value {
    let Value::Object(fields) = schema else { return schema.clone() };
    let structure = fields.iter().filter_map(|(key, value)| {
        let value = match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, property)| (name.clone(), bare(property))).collect()
            }
            ("items" | "additionalProperties", below) => bare(below),
            (
                "type"
                | "format"
                | "nullable"
                | "x-kubernetes-int-or-string"
                | "x-kubernetes-embedded-resource"
                | "x-kubernetes-preserve-unknown-fields"
                | "x-kubernetes-list-type"
                | "x-kubernetes-list-map-keys"
                | "x-kubernetes-map-type",
                value,
            ) => value.clone(),
            _ => return None,
        };
        Some((key.clone(), value))
    });
    Value::Object(structure.collect())
}
