//! Problems of what decides where a pod may run.

use crate::builtin::json::{get, has, int, list, text};
use crate::builtin::names;
use crate::builtin::validate::check::{
    Errors, duplicate, each, forbidden, invalid, one_of, required, selector,
};
use crate::status::FieldError;
use serde_json::{Value, json};

/// Effects a taint may have.
pub(in crate::builtin) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Affinity to nodes and to other pods.
pub(super) fn affinity(held: &Value, path: &str, out: &mut Errors) {
    let nodes = get(held, "nodeAffinity");
    let needed = get(nodes, REQUIRED);
    if !needed.is_null() {
        let path = format!("{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms");
        let terms = list(needed, "nodeSelectorTerms");
        if terms.is_empty() {
            required(out, path.clone(), "must have at least one node selector term");
        }
        for (i, term) in terms.iter().enumerate() {
            node_term(term, true, &format!("{path}[{i}]"), out);
        }
    }
    for (i, term) in list(nodes, PREFERRED).iter().enumerate() {
        let path = format!("{path}.nodeAffinity.{PREFERRED}[{i}]");
        weight(term, &path, out);
        node_term(get(term, "preference"), false, &format!("{path}.preference"), out);
    }
    for side in ["podAffinity", "podAntiAffinity"] {
        let path = format!("{path}.{side}");
        for (i, term) in list(get(held, side), REQUIRED).iter().enumerate() {
            pod_term(term, &format!("{path}.{REQUIRED}[{i}]"), out);
        }
        for (i, term) in list(get(held, side), PREFERRED).iter().enumerate() {
            let path = format!("{path}.{PREFERRED}[{i}]");
            weight(term, &path, out);
            pod_term(get(term, "podAffinityTerm"), &format!("{path}.podAffinityTerm"), out);
        }
    }
}

fn weight(term: &Value, path: &str, out: &mut Errors) {
    let weight = int(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        invalid(out, format!("{path}.weight"), &json!(weight), "must be in the range 1-100");
    }
}

/// One term of a node selector; values are checked where the term is required.
pub(in crate::builtin) fn node_term(term: &Value, strict: bool, path: &str, out: &mut Errors) {
    for (i, wish) in list(term, "matchExpressions").iter().enumerate() {
        let path = format!("{path}.matchExpressions[{i}]");
        let values = list(wish, "values");
        match text(wish, "operator") {
            "In" | "NotIn" => {
                if values.is_empty() {
                    let why = "must be specified when `operator` is 'In' or 'NotIn'";
                    required(out, format!("{path}.values"), why);
                }
            }
            "Exists" | "DoesNotExist" => {
                if !values.is_empty() {
                    let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                    forbidden(out, format!("{path}.values"), why);
                }
            }
            "Gt" | "Lt" => {
                if values.len() != 1 {
                    let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                    required(out, format!("{path}.values"), why);
                }
            }
            other => {
                invalid(out, format!("{path}.operator"), &json!(other), "not a valid selector operator");
            }
        }
        let key = text(wish, "key");
        each(out, &format!("{path}.key"), key, names::qualified(key));
        for (j, value) in values.iter().enumerate().filter(|_| strict) {
            let value = value.as_str().unwrap_or_default();
            each(out, &format!("{path}.values[{j}]"), value, names::label_value(value));
        }
    }
    for (i, wish) in list(term, "matchFields").iter().enumerate() {
        let path = format!("{path}.matchFields[{i}]");
        let (key, operator, values) = (text(wish, "key"), text(wish, "operator"), list(wish, "values"));
        if !matches!(operator, "In" | "NotIn") {
            invalid(out, format!("{path}.operator"), &json!(operator), "not a valid selector operator");
        } else if values.len() != 1 {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            required(out, format!("{path}.values"), why);
        }
        if key != "metadata.name" {
            invalid(out, format!("{path}.key"), &json!(key), "not a valid field selector key");
            continue;
        }
        for (j, value) in values.iter().enumerate() {
            let value = value.as_str().unwrap_or_default();
            each(out, &format!("{path}.values[{j}]"), value, names::subdomain(value));
        }
    }
}

fn pod_term(term: &Value, path: &str, out: &mut Errors) {
    selector(out, get(term, "labelSelector"), &format!("{path}.labelSelector"));
    selector(out, get(term, "namespaceSelector"), &format!("{path}.namespaceSelector"));
    for namespace in list(term, "namespaces") {
        let name = namespace.as_str().unwrap_or_default();
        each(out, &format!("{path}.namespace"), name, names::label(name));
    }
    label_keys(term, path, out);
    let key = text(term, "topologyKey");
    if key.is_empty() {
        required(out, format!("{path}.topologyKey"), "can not be empty");
    }
    each(out, &format!("{path}.topologyKey"), key, names::qualified(key));
}

fn label_keys(term: &Value, path: &str, out: &mut Errors) {
    let has_selector = has(term, "labelSelector");
    for key in ["matchLabelKeys", "mismatchLabelKeys"] {
        let keys = list(term, key);
        if !keys.is_empty() && !has_selector {
            let why = "must not be specified when labelSelector is not set";
            forbidden(out, format!("{path}.{key}"), why);
            continue;
        }
        for (i, name) in keys.iter().enumerate() {
            let name = name.as_str().unwrap_or_default();
            each(out, &format!("{path}.{key}[{i}]"), name, names::qualified(name));
        }
    }
    for (i, name) in list(term, "matchLabelKeys").iter().enumerate() {
        if list(term, "mismatchLabelKeys").contains(name) {
            let why = "exists in both matchLabelKeys and mismatchLabelKeys";
            invalid(out, format!("{path}.matchLabelKeys[{i}]"), name, why);
        }
    }
}

/// Gates that keep a pod from being scheduled.
pub(super) fn gates(spec: &Value, path: &str, out: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let path = format!("{path}.schedulingGates[{i}]");
        let name = text(gate, "name");
        each(out, &path, name, names::qualified(name));
        if seen.contains(&name) {
            duplicate(out, path, &json!(name));
        }
        seen.push(name);
    }
}

/// Constraints that spread pods over a topology.
pub(super) fn spread(spec: &Value, path: &str, out: &mut Errors) {
    let all = list(spec, "topologySpreadConstraints");
    for (i, constraint) in all.iter().enumerate() {
        let path = format!("{path}.topologySpreadConstraints[{i}]");
        let skew = int(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            invalid(out, format!("{path}.maxSkew"), &json!(skew), "must be greater than zero");
        }
        let (key, action) = (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
        if key.is_empty() {
            required(out, format!("{path}.topologyKey"), "can not be empty");
        }
        let actions = ["DoNotSchedule", "ScheduleAnyway"];
        if !actions.contains(&action) {
            let field = format!("{path}.whenUnsatisfiable");
            out.push(FieldError::not_supported(field, &json!(action), &actions));
        }
        let twin =
            |other: &Value| text(other, "topologyKey") == key && text(other, "whenUnsatisfiable") == action;
        if all.iter().skip(i + 1).any(twin) {
            let field = format!("{path}.{{topologyKey, whenUnsatisfiable}}");
            duplicate(out, field, &json!(format!("{{{key}, {action}}}")));
        }
        if let Some(domains) = int(constraint, "minDomains") {
            let field = format!("{path}.minDomains");
            if domains <= 0 {
                invalid(out, field.clone(), &json!(domains), "must be greater than zero");
            }
            if action != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                invalid(out, field, &json!(domains), why);
            }
        }
        for key in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(out, constraint, key, &path, &["Honor", "Ignore"]);
        }
        label_keys(constraint, &path, out);
        selector(out, get(constraint, "labelSelector"), &format!("{path}.labelSelector"));
    }
}

/// Taints a pod puts up with.
pub(super) fn tolerations(spec: &Value, path: &str, out: &mut Errors) {
    for (i, toleration) in list(spec, "tolerations").iter().enumerate() {
        let path = format!("{path}[{i}]");
        let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
        let (value, effect) = (text(toleration, "value"), text(toleration, "effect"));
        if !key.is_empty() {
            each(out, &format!("{path}.key"), key, names::qualified(key));
        }
        if key.is_empty() && operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            invalid(out, format!("{path}.operator"), &json!(operator), why);
        }
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            invalid(out, format!("{path}.effect"), &json!(effect), why);
        }
        let field = format!("{path}.operator");
        match operator {
            "" | "Equal" => {
                let problems = names::label_value(value);
                if !problems.is_empty() {
                    invalid(out, field, &json!(value), problems.join(";"));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let why = "value must be empty when `operator` is 'Exists'";
                    invalid(out, field, &json!(value), why);
                }
            }
            // Comparing operators are behind a feature that is off by default.
            "Lt" | "Gt" => {
                let all = ["Equal", "Exists", "Lt", "Gt"];
                out.push(FieldError::not_supported(field, &json!(operator), &all));
            }
            _ => out.push(FieldError::not_supported(field, &json!(operator), &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            one_of(out, toleration, "effect", &path, &EFFECTS);
        }
    }
}
