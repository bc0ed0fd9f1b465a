//! Quotas, limit ranges and claims: bounds on amounts.

use super::check::{
    Errors, amount, amounts, forbidden, invalid, is_standard, must_be, one_of, required, resource_name,
};
use crate::builtin::json::{get, list, text};
use loadline_machinery::quantity::{Format, Quantity};
use serde_json::{Value, json};

const SCOPES: [&str; 7] = [
    "BestEffort",
    "CrossNamespacePodAffinity",
    "NotBestEffort",
    "NotTerminating",
    "PriorityClass",
    "Terminating",
    "VolumeAttributesClass",
];

pub(super) fn resource_quota(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    for (name, value) in amounts(spec, "hard") {
        let path = format!("spec.hard[{name}]");
        quota_name(out, name, &path);
        amount(out, name, value, &path);
    }
    for scope in list(spec, "scopes") {
        if !SCOPES.contains(&scope.as_str().unwrap_or_default()) {
            invalid(out, "spec.scopes", &json!(list(spec, "scopes")), "unsupported scope");
        }
    }
}

fn quota_name(out: &mut Errors, name: &str, path: &str) {
    resource_name(out, name, path);
    if !name.contains('/') && (!is_standard(name) || name == "storage") {
        invalid(out, path, &json!(name), "must be a standard resource for quota");
    }
}

pub(super) fn limit_range(obj: &Value, out: &mut Errors) {
    let mut seen: Vec<&str> = Vec::new();
    for (i, limit) in list(get(obj, "spec"), "limits").iter().enumerate() {
        let path = format!("spec.limits[{i}]");
        let ty = text(limit, "type");
        must_be(out, limit, "type", &path, &["Container", "PersistentVolumeClaim", "Pod"]);
        if seen.contains(&ty) {
            out.push(crate::status::FieldError::duplicate(format!("{path}.type"), &json!(ty)));
        }
        seen.push(ty);
        if ty == "Pod" {
            for key in ["default", "defaultRequest"] {
                if !amounts(limit, key).is_empty() {
                    forbidden(out, format!("{path}.{key}"), "may not be specified when `type` is 'Pod'");
                }
            }
        }
        bounds(out, limit, &path);
    }
}

fn bounds(out: &mut Errors, limit: &Value, path: &str) {
    let find =
        |key: &str, name: &str| amounts(limit, key).into_iter().find(|(n, _)| *n == name).map(|(_, q)| q);
    let mut all: Vec<&str> = Vec::new();
    for key in ["max", "min", "default", "defaultRequest", "maxLimitRequestRatio"] {
        for (name, _) in amounts(limit, key) {
            resource_name(out, name, &format!("{path}.{key}[{name}]"));
            if !all.contains(&name) {
                all.push(name);
            }
        }
    }
    all.sort_unstable();
    let one = Quantity::new(1, Format::DecimalSi);
    for name in all {
        if let Some(ratio) = find("maxLimitRequestRatio", name).filter(|ratio| *ratio < one) {
            let field = format!("{path}.maxLimitRequestRatio[{name}]");
            invalid(out, field, &json!(ratio.to_string()), format!("ratio {ratio} is less than 1"));
        }
        // Each pair says: the first may not be above the second.
        for (low, high, low_word, high_word) in [
            ("min", "max", "min", "max"),
            ("min", "defaultRequest", "min", "default request"),
            ("defaultRequest", "max", "default request", "max"),
            ("defaultRequest", "default", "default request", "default limit"),
            ("min", "default", "min", "default"),
            ("default", "max", "default", "max"),
        ] {
            let (Some(a), Some(b)) = (find(low, name), find(high, name)) else { continue };
            if a > b {
                let owner = if low == "defaultRequest" || low == "default" { low } else { high };
                let owner = if (low, high) == ("min", "max") { "min" } else { owner };
                let value = match (low, high) {
                    ("min", "default") => a,
                    ("default", "max") => b,
                    _ => find(owner, name).unwrap_or(a),
                };
                let words = format!("{low_word} value {a} is greater than {high_word} value {b}");
                invalid(out, format!("{path}.{owner}[{name}]"), &json!(value.to_string()), words);
            }
        }
    }
}

pub(super) fn claim(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    let modes = list(spec, "accessModes");
    if modes.is_empty() {
        required(out, "spec.accessModes", "at least 1 access mode is required");
    }
    let all = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
    for mode in modes {
        if !all.contains(&mode.as_str().unwrap_or_default()) {
            out.push(crate::status::FieldError::not_supported("spec.accessModes", mode, &all));
        }
    }
    let requests = amounts(get(spec, "resources"), "requests");
    match requests.iter().find(|(name, _)| *name == "storage") {
        None => required(out, "spec.resources[storage]", ""),
        Some((_, size)) if *size <= Quantity::ZERO => {
            let why = "must be greater than zero";
            invalid(out, "spec.resources[storage]", &json!(size.to_string()), why);
        }
        Some(_) => {}
    }
    one_of(out, spec, "volumeMode", "spec", &["Block", "Filesystem"]);
}
