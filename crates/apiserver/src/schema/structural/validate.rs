//! Checking a value against the constraints of a schema, in upstream's order and words.

use super::report::Report;
use super::{flag, format, text};
use crate::status::FieldError;
use regex::Regex;
use serde_json::{Map, Number, Value};
use std::collections::BTreeMap;
use std::sync::{OnceLock, RwLock};

/// Checks a value; `prefix` is put before the fields of all mistakes, but not into their sentences.
pub(super) fn whole(schema: &Value, prefix: &str, new: &Value, old: Option<&Value>) -> Vec<FieldError> {
    kept(schema, new, "", old).into_errors(prefix)
}

/// Checks a value and forgives what was wrong before and has not been touched.
fn kept(schema: &Value, value: &Value, path: &str, old: Option<&Value>) -> Report {
    let mut report = node(schema, value, path, old);
    if !report.is_valid() && old == Some(value) {
        report.forgive();
    }
    report
}

fn node(schema: &Value, value: &Value, path: &str, old: Option<&Value>) -> Report {
    let mut report = Report::default();
    if value.is_null() {
        kind(schema, value, path, &mut report);
        enumeration(schema, value, path, &mut report);
        return report;
    }
    if kind(schema, value, path, &mut report) {
        report.matched += 1;
    }
    report.merge(junctors(schema, value, path, old));
    report.matched += 1;
    match value {
        Value::String(content) => {
            string(schema, content, path, &mut report);
            report.matched += 1;
        }
        Value::Number(number) => {
            numeric(schema, number, path, &mut report);
            report.matched += 2;
        }
        Value::Array(items) => {
            list(schema, items, path, old, &mut report);
            report.matched += 2;
        }
        _ => {}
    }
    enumeration(schema, value, path, &mut report);
    report.matched += 1;
    if let Value::Object(fields) = value {
        object(schema, fields, path, old, &mut report);
        report.matched += 1;
    }
    report.matched += 1;
    report
}

/// The types a schema allows.
fn types(schema: &Value) -> Vec<&str> {
    if flag(schema, "x-kubernetes-int-or-string") {
        return vec!["integer", "string"];
    }
    match text(schema, "type") {
        "" => Vec::new(),
        one => vec![one],
    }
}

/// Returns whether there was anything to check.
fn kind(schema: &Value, value: &Value, path: &str, report: &mut Report) -> bool {
    let types = types(schema);
    let wanted_format = format::effective(schema);
    if types.is_empty() && wanted_format.is_empty() {
        return false;
    }
    let allows = |name: &str| types.contains(&name);
    let wanted = types.join(",");
    let (found, found_format) = match value {
        Value::Null => {
            if !types.is_empty() && !flag(schema, "nullable") {
                report.wrong_type(path, &wanted, "null");
            }
            return true;
        }
        Value::Bool(_) => ("boolean", ""),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
        Value::Number(number) if number.as_i64().is_some() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
    };
    let whole = value.as_f64().is_some_and(|number| number.fract() == 0.0);
    let close = allows(found)
        || (found == "number" && whole && allows("integer"))
        || (found == "integer" && allows("number"));
    let texty = matches!(value, Value::String(_) | Value::Array(_));
    if !texty && !wanted_format.is_empty() && !close && found_format != wanted_format {
        report.wrong_type(path, wanted_format, found_format);
    } else if texty && !wanted_format.is_empty() && !allows("number") && !allows("integer") {
        // The format says what is wrong with it.
        report.matched += 1;
    } else if !close {
        report.wrong_type(path, &wanted, found);
    } else {
        report.matched += 1;
    }
    true
}

fn junctors(schema: &Value, value: &Value, path: &str, old: Option<&Value>) -> Report {
    let mut report = Report::default();
    let list = |key: &str| schema.get(key).and_then(Value::as_array).filter(|list| !list.is_empty());
    let closest = |best: &mut Option<Report>, other: Report| {
        if best.as_ref().is_none_or(|best| other.matched > best.matched) {
            *best = Some(other);
        }
    };
    if let Some(any) = list("anyOf") {
        let mut best = None;
        let mut success = None;
        for one in any {
            let result = node(one, value, path, old);
            if result.is_valid() {
                success = Some(result);
                break;
            }
            closest(&mut best, result);
        }
        if success.is_none() {
            report.general(format!("{path:?} must validate at least one schema (anyOf)"));
        }
        if let Some(result) = success.or(best) {
            report.merge(result);
        }
    }
    if let Some(one_of) = list("oneOf") {
        let mut best = None;
        let mut success = None;
        let mut valid = 0;
        for one in one_of {
            let result = node(one, value, path, old);
            if result.is_valid() {
                valid += 1;
                success.get_or_insert(result);
            } else if valid == 0 {
                closest(&mut best, result);
            }
        }
        match valid {
            1 => {
                if let Some(result) = success {
                    report.merge(result);
                }
            }
            0 => {
                let words = "must validate one and only one schema (oneOf). Found none valid";
                report.general(format!("{path:?} {words}"));
                if let Some(result) = best {
                    report.merge(result);
                }
            }
            _ => {
                let words = "must validate one and only one schema (oneOf).";
                report.general(format!("{path:?} {words} Found {valid} valid alternatives"));
            }
        }
    }
    if let Some(all) = list("allOf") {
        let results: Vec<Report> = all.iter().map(|one| node(one, value, path, old)).collect();
        let valid = results.iter().filter(|result| result.is_valid()).count();
        let missed = valid != results.len();
        for result in results {
            report.merge(result);
        }
        if missed {
            let none = if valid == 0 { ". None validated" } else { "" };
            report.general(format!("{path:?} must validate all the schemas (allOf){none}"));
        }
    }
    if let Some(not) = schema.get("not")
        && node(not, value, path, old).is_valid()
    {
        report.general(format!("{path:?} must not validate the schema (not)"));
    }
    report.matched += 1;
    report
}

fn string(schema: &Value, value: &str, path: &str, report: &mut Report) {
    let length = value.chars().count();
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let over = |bound: u64| u64::try_from(length).is_ok_and(|length| length > bound);
    let under = |bound: u64| u64::try_from(length).is_ok_and(|length| length < bound);
    let pattern = text(schema, "pattern");
    if let Some(most) = bound("maxLength").filter(|most| over(*most)) {
        report.too_long(path, most);
    } else if let Some(least) = bound("minLength").filter(|least| under(*least)) {
        report.invalid(path, &Value::from(value), &format!("should be at least {least} chars long"));
    } else if !pattern.is_empty() && !matches(pattern, value) {
        report.invalid(path, &Value::from(value), &format!("should match '{pattern}'"));
    }
    let format = format::effective(schema);
    if format::is_known(format) {
        if !format::holds(format, value) {
            report.wrong_type(path, format, value);
        }
        report.matched += 1;
    }
}

/// Whether a text matches a pattern; compiled patterns are kept, since schemas live as long as the server.
fn matches(pattern: &str, value: &str) -> bool {
    static COMPILED: OnceLock<RwLock<BTreeMap<String, Option<Regex>>>> = OnceLock::new();
    let compiled = COMPILED.get_or_init(RwLock::default);
    if let Ok(known) = compiled.read()
        && let Some(regex) = known.get(pattern)
    {
        return regex.as_ref().is_some_and(|regex| regex.is_match(value));
    }
    let regex = Regex::new(pattern).ok();
    let answer = regex.as_ref().is_some_and(|regex| regex.is_match(value));
    if let Ok(mut known) = compiled.write() {
        known.insert(pattern.to_owned(), regex);
    }
    answer
}

fn numeric(schema: &Value, number: &Number, path: &str, report: &mut Report) {
    let value = Value::Number(number.clone());
    let types = types(schema);
    let float = number.as_f64().unwrap_or(f64::NAN);
    if types == ["integer"] {
        let format = format::effective(schema);
        let fits = match number.as_i64() {
            Some(value) => format != "int32" || i32::try_from(value).is_ok(),
            None => float.fract() == 0.0 && float.abs() < 9.2e18,
        };
        if !fits {
            let format = if format.is_empty() {
                "(default format)".to_owned()
            } else {
                format!("with format {format}")
            };
            report.general(format!("Checked value must be of type integer {format} in {path}"));
        }
    }
    let bound =
        |key: &str| schema.get(key).and_then(Value::as_number).filter(|bound| bound.as_f64().is_some());
    if let Some(factor) = bound("multipleOf")
        && !multiple(number, factor)
    {
        report.invalid(path, &value, &format!("should be a multiple of {}", shown(factor)));
    }
    if let Some(least) = bound("minimum") {
        let exclusive = flag(schema, "exclusiveMinimum");
        let limit = least.as_f64().unwrap_or(f64::NAN);
        if float < limit || (exclusive && float <= limit) {
            let words = if exclusive { "greater than" } else { "greater than or equal to" };
            report.invalid(path, &value, &format!("should be {words} {}", shown(least)));
        }
    }
    if let Some(most) = bound("maximum") {
        let exclusive = flag(schema, "exclusiveMaximum");
        let limit = most.as_f64().unwrap_or(f64::NAN);
        if float > limit || (exclusive && float >= limit) {
            let words = if exclusive { "less than" } else { "less than or equal to" };
            report.invalid(path, &value, &format!("should be {words} {}", shown(most)));
        }
    }
}

fn multiple(number: &Number, factor: &Number) -> bool {
    if let (Some(number), Some(factor)) = (number.as_i64(), factor.as_i64()) {
        return factor != 0 && number % factor == 0;
    }
    let (Some(number), Some(factor)) = (number.as_f64(), factor.as_f64()) else { return false };
    let times = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
    (times - times.round()).abs() < 1e-9
}

/// A bound as Go prints it: whole numbers without a fraction.
fn shown(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.as_i64().is_none() => float.to_string(),
        _ => number.to_string(),
    }
}

fn list(schema: &Value, items: &[Value], path: &str, old: Option<&Value>, report: &mut Report) {
    if let Some(schema_of_items) = schema.get("items").filter(|items| items.is_object()) {
        for (index, item) in items.iter().enumerate() {
            let before = old.and_then(|old| counterpart(schema, old, item));
            report.merge(kept(schema_of_items, item, &format!("{path}[{index}]"), before));
        }
    }
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    let count = u64::try_from(items.len()).unwrap_or(u64::MAX);
    if let Some(least) = bound("minItems").filter(|least| count < *least) {
        report.invalid(path, &Value::from(count), &format!("should have at least {least} items"));
    }
    if let Some(most) = bound("maxItems").filter(|most| count > *most) {
        report.too_many(path, items.len(), most, "items");
    }
    if flag(schema, "uniqueItems") && items.iter().enumerate().any(|(at, item)| items[..at].contains(item)) {
        report.invalid(path, &Value::from(""), "shouldn't contain duplicates");
    }
}

/// The old entry of a list with the same keys; only lists with keys tell their entries apart.
pub(super) fn counterpart<'a>(schema: &Value, old: &'a Value, item: &Value) -> Option<&'a Value> {
    if text(schema, "x-kubernetes-list-type") != "map" {
        return None;
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array)?;
    let same = |other: &&Value| {
        keys.iter()
            .filter_map(Value::as_str)
            .all(|key| other.get(key).is_some() && other.get(key) == item.get(key))
    };
    old.as_array()?.iter().find(same)
}

fn enumeration(schema: &Value, value: &Value, path: &str, report: &mut Report) {
    let Some(allowed) = schema.get("enum").and_then(Value::as_array).filter(|allowed| !allowed.is_empty())
    else {
        return;
    };
    let same = |one: &Value| match (one, value) {
        (Value::Number(one), Value::Number(value)) => one.as_f64() == value.as_f64(),
        // Upstream never finds null in an enumeration.
        _ => !value.is_null() && one == value,
    };
    if !allowed.iter().any(same) {
        report.not_supported(path, value, allowed);
    }
}

fn object(schema: &Value, fields: &Map<String, Value>, path: &str, old: Option<&Value>, report: &mut Report) {
    let count = u64::try_from(fields.len()).unwrap_or(u64::MAX);
    let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
    if let Some(least) = bound("minProperties").filter(|least| count < *least) {
        report.invalid(path, &Value::from(count), &format!("should have at least {least} properties"));
    }
    if let Some(most) = bound("maxProperties").filter(|most| count > *most) {
        report.too_many(path, fields.len(), most, "properties");
    }
    let properties = schema.get("properties").and_then(Value::as_object);
    let additional = schema.get("additionalProperties");
    for (name, value) in fields {
        if properties.is_some_and(|properties| properties.contains_key(name)) {
            continue;
        }
        match additional {
            Some(Value::Bool(false)) => report.forbidden_key(path, name),
            Some(schema @ Value::Object(_)) => {
                let before = old.and_then(|old| old.get(name));
                report.merge(kept(schema, value, &format!("{path}.{name}"), before));
            }
            _ => {}
        }
    }
    for (name, property) in properties.into_iter().flatten() {
        if let Some(value) = fields.get(name) {
            // What an object says it is cannot have been wrong before.
            let typing = path.is_empty() && (name == "kind" || name == "apiVersion");
            let before = old.filter(|_| !typing).and_then(|old| old.get(name));
            report.merge(kept(property, value, &super::child(path, name), before));
        }
    }
    for name in
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
    {
        if !fields.contains_key(name) {
            report.required(&format!("{path}.{name}"));
        }
    }
}
