//! Checks many kinds share, each adding to a list of problems.

use crate::builtin::json::{entries, get, has, int, list, quantity, text};
use crate::builtin::{meta, names};
use crate::status::{FieldError, Mistake};
use loadline_machinery::quantity::Quantity;
use serde_json::{Map, Value, json};

/// Problems found so far.
pub(in crate::builtin) type Errors = Vec<FieldError>;

pub(in crate::builtin) fn required(out: &mut Errors, path: impl Into<String>, why: &str) {
    out.push(FieldError::required(path, why));
}

pub(in crate::builtin) fn forbidden(out: &mut Errors, path: impl Into<String>, why: impl Into<String>) {
    out.push(FieldError::forbidden(path, why));
}

pub(in crate::builtin) fn invalid(
    out: &mut Errors,
    path: impl Into<String>,
    value: &Value,
    why: impl Into<String>,
) {
    out.push(FieldError::invalid(path, value, why));
}

/// A value that is not acceptable, already rendered: upstream prints some of its own types in their field order.
pub(in crate::builtin) fn invalid_text(
    out: &mut Errors,
    path: impl Into<String>,
    value: String,
    why: impl Into<String>,
) {
    out.push(FieldError {
        mistake: Mistake::Invalid,
        field: path.into(),
        value: Some(value),
        detail: why.into(),
    });
}

pub(in crate::builtin) fn duplicate(out: &mut Errors, path: impl Into<String>, value: &Value) {
    out.push(FieldError::duplicate(path, value));
}

/// One problem per message about the same value.
pub(in crate::builtin) fn each(out: &mut Errors, path: &str, value: &str, messages: Vec<String>) {
    for message in messages {
        out.push(FieldError::invalid(path, &json!(value), message));
    }
}

/// A number that may not be negative.
pub(in crate::builtin) fn nonnegative(out: &mut Errors, holder: &Value, key: &str, path: &str) {
    if int(holder, key).is_some_and(|n| n < 0) {
        invalid(out, format!("{path}.{key}"), get(holder, key), "must be greater than or equal to 0");
    }
}

/// A text that must be one of a few, or absent.
pub(in crate::builtin) fn one_of(out: &mut Errors, holder: &Value, key: &str, path: &str, all: &[&str]) {
    if has(holder, key) && !all.contains(&text(holder, key)) {
        out.push(FieldError::not_supported(format!("{path}.{key}"), get(holder, key), all));
    }
}

/// A text that must be there and one of a few.
pub(in crate::builtin) fn must_be(out: &mut Errors, holder: &Value, key: &str, path: &str, all: &[&str]) {
    if text(holder, key).is_empty() {
        required(out, format!("{path}.{key}"), "");
    } else {
        one_of(out, holder, key, path, all);
    }
}

/// A field that must stay as it was.
pub(in crate::builtin) fn immutable(out: &mut Errors, new: &Value, old: &Value, key: &str, path: &str) {
    if get(new, key) != get(old, key) {
        out.push(FieldError {
            mistake: Mistake::Invalid,
            field: format!("{path}{key}"),
            value: Some(if key == "selector" {
                selector_text(get(new, key))
            } else {
                crate::status::render(get(new, key))
            }),
            detail: "field is immutable".to_owned(),
        });
    }
}

/// A number or a percentage, not negative.
pub(in crate::builtin) fn int_or_percent(out: &mut Errors, holder: &Value, key: &str, path: &str) {
    let value = get(holder, key);
    if let Some(words) = value.as_str() {
        if let Some(why) = names::percent(words) {
            invalid(out, format!("{path}.{key}"), value, why);
        }
    } else {
        nonnegative(out, holder, key, path);
    }
}

/// A percentage above 100.
pub(in crate::builtin) fn at_most_all(out: &mut Errors, holder: &Value, key: &str, path: &str) {
    if percentage(get(holder, key)).is_some_and(|p| p > 100) {
        invalid(out, format!("{path}.{key}"), get(holder, key), "must not be greater than 100%");
    }
}

fn percentage(value: &Value) -> Option<i64> {
    let words = value.as_str()?;
    if names::percent(words).is_some() {
        return None;
    }
    Some(words.trim_end_matches('%').parse().unwrap_or(i64::MAX))
}

/// The number in a number or percentage.
pub(in crate::builtin) fn plain_number(value: &Value) -> i64 {
    percentage(value).or_else(|| value.as_i64()).or_else(|| value.as_str()?.parse().ok()).unwrap_or(0)
}

/// A label selector.
pub(in crate::builtin) fn selector(out: &mut Errors, selector: &Value, path: &str) {
    meta::labels(selector, "matchLabels", &format!("{path}.matchLabels"), out);
    for (i, term) in list(selector, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        requirement(out, term, &path);
        for (j, value) in list(term, "values").iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            each(out, &format!("{path}.values[{j}]"), value, names::label_value(value));
        }
    }
}

/// Operator, number of values and key of a requirement of a label selector.
fn requirement(out: &mut Errors, term: &Value, path: &str) {
    let values = list(term, "values");
    match text(term, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let why = "must be specified when `operator` is 'In' or 'NotIn'";
            required(out, format!("{path}.values"), why);
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            forbidden(out, format!("{path}.values"), why);
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
        other => {
            invalid(out, format!("{path}.operator"), &json!(other), "not a valid selector operator");
        }
    }
    let key = text(term, "key");
    each(out, &format!("{path}.key"), key, names::qualified(key));
}

/// Whether a label selector selects these labels. No selector selects nothing, an empty one everything; `None` if the
/// selector cannot be understood.
pub(in crate::builtin) fn matches(selector: &Value, labels: &Value) -> Option<bool> {
    if selector.is_null() {
        return Some(false);
    }
    let mut problems = Errors::new();
    self::selector(&mut problems, selector, "");
    if !problems.is_empty() {
        return None;
    }
    let equal = entries(selector, "matchLabels").all(|(key, value)| labels.get(key) == Some(value));
    let fit = list(selector, "matchExpressions").iter().all(|term| {
        let label = labels.get(text(term, "key"));
        let named = label.is_some_and(|l| list(term, "values").contains(l));
        match text(term, "operator") {
            "In" => named,
            "NotIn" => !named,
            "Exists" => label.is_some(),
            _ => label.is_none(),
        }
    });
    Some(equal && fit)
}

/// A label selector as upstream prints it: fields in the order of its type.
pub(in crate::builtin) fn selector_text(selector: &Value) -> String {
    let Some(map) = selector.as_object() else { return selector.to_string() };
    let mut parts = Vec::new();
    for key in ["matchLabels", "matchExpressions"] {
        if let Some(value) = map.get(key) {
            parts.push(format!("{key:?}:{}", ordered(value, &["key", "operator", "values"])));
        }
    }
    format!("{{{}}}", parts.join(","))
}

/// JSON with the given fields first, in that order, and the rest by name.
pub(in crate::builtin) fn ordered(value: &Value, first: &[&str]) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| ordered(item, first)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(map) => {
            let known = first.iter().filter_map(|key| map.get_key_value(*key));
            let mut rest: Vec<(&String, &Value)> =
                map.iter().filter(|(key, _)| !first.contains(&key.as_str())).collect();
            rest.sort_by_key(|(key, _)| *key);
            let parts: Vec<String> =
                known.chain(rest).map(|(k, v)| format!("{k:?}:{}", ordered(v, first))).collect();
            format!("{{{}}}", parts.join(","))
        }
        other => other.to_string(),
    }
}

/// A map of labels as upstream prints it, sorted by key.
pub(in crate::builtin) fn labels_value(labels: &Value) -> Value {
    match labels.as_object() {
        Some(map) => {
            let mut sorted: Vec<_> = map.iter().collect();
            sorted.sort_by_key(|(key, _)| *key);
            sorted.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect::<Map<_, _>>().into()
        }
        None => Value::Null,
    }
}

/// Entries of a map sorted by key, with their amounts. Amounts that cannot be read do not come this far.
pub(in crate::builtin) fn amounts<'a>(holder: &'a Value, key: &str) -> Vec<(&'a str, Quantity)> {
    let mut all: Vec<_> = entries(holder, key).map(|(k, v)| (k.as_str(), quantity(v))).collect();
    all.sort_by_key(|(key, _)| *key);
    all
}

/// An amount of a resource: not negative, and whole where parts make no sense.
pub(in crate::builtin) fn amount(out: &mut Errors, name: &str, amount: Quantity, path: &str) {
    if amount.is_negative() {
        invalid(out, path, &json!(amount.to_string()), "must be greater than or equal to 0");
    }
    if is_integer(name) && !amount.is_whole() {
        invalid(out, path, &json!(amount.to_string()), "must be an integer");
    }
}

const INTEGERS: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

fn is_integer(name: &str) -> bool {
    INTEGERS.contains(&name) || is_extended(name)
}

/// Resources of Kubernetes itself.
pub(in crate::builtin) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources of somebody else.
pub(in crate::builtin) fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified(&format!("requests.{name}")).is_empty()
}

/// Resources that may be promised more often than they exist.
pub(in crate::builtin) fn may_overcommit(name: &str) -> bool {
    is_native(name) && !name.starts_with("hugepages-")
}

/// Names without a domain that mean something.
pub(in crate::builtin) fn is_standard(name: &str) -> bool {
    const OTHERS: [&str; 11] = [
        "cpu",
        "memory",
        "ephemeral-storage",
        "requests.cpu",
        "requests.memory",
        "requests.ephemeral-storage",
        "limits.cpu",
        "limits.memory",
        "limits.ephemeral-storage",
        "storage",
        "requests.storage",
    ];
    OTHERS.contains(&name)
        || INTEGERS.contains(&name)
        || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

/// The name of a resource.
pub(in crate::builtin) fn resource_name(out: &mut Errors, name: &str, path: &str) {
    let problems = names::qualified(name);
    let known = problems.is_empty();
    each(out, path, name, problems);
    if known && !name.contains('/') && !is_standard(name) {
        invalid(out, path, &json!(name), "must be a standard resource type or fully qualified");
    }
}
