//! Disruption budgets, priority classes and leases.

use super::check::{
    Errors, at_most_all, forbidden, immutable, int_or_percent, invalid, invalid_text, nonnegative, one_of,
    selector, selector_text,
};
use crate::builtin::json::{flag, get, has, int, text};
use serde_json::{Value, json};

pub(super) fn budget(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    if has(spec, "minAvailable") && has(spec, "maxUnavailable") {
        let shown = format!(
            "{{\"MinAvailable\":{},\"Selector\":{},\"MaxUnavailable\":{},\"UnhealthyPodEvictionPolicy\":{}}}",
            get(spec, "minAvailable"),
            selector_text(get(spec, "selector")),
            get(spec, "maxUnavailable"),
            get(spec, "unhealthyPodEvictionPolicy")
        );
        invalid_text(out, "spec", shown, "minAvailable and maxUnavailable cannot be both set");
    }
    for key in ["minAvailable", "maxUnavailable"] {
        if has(spec, key) {
            int_or_percent(out, spec, key, "spec");
            at_most_all(out, spec, key, "spec");
        }
    }
    selector(out, get(spec, "selector"), "spec.selector");
    one_of(out, spec, "unhealthyPodEvictionPolicy", "spec", &["AlwaysAllow", "IfHealthyBudget"]);
}

pub(super) fn budget_status(obj: &Value, out: &mut Errors) {
    let status = get(obj, "status");
    for key in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
        nonnegative(out, status, key, "status");
    }
}

const HIGHEST: i64 = 1_000_000_000;

pub(super) fn priority_class(obj: &Value, out: &mut Errors) {
    let name = text(get(obj, "metadata"), "name");
    let value = int(obj, "value").unwrap_or(0);
    if name.starts_with("system-") {
        let known = match name {
            "system-node-critical" => Some(2_000_001_000),
            "system-cluster-critical" => Some(2_000_000_000),
            _ => None,
        };
        let why = match known {
            None => Some(format!("{name} is not a known system priority class")),
            Some(known) if known != value => Some(format!("value of {name} PriorityClass must be {known}")),
            Some(_) if flag(obj, "globalDefault") => {
                Some(format!("globalDefault of {name} PriorityClass must be false"))
            }
            Some(_) => None,
        };
        if let Some(why) = why {
            let rule = "priority class names with 'system-' prefix are reserved for system use only. error: ";
            forbidden(out, "metadata.name", format!("{rule}{why}"));
        }
    } else if value > HIGHEST {
        forbidden(out, "value", format!("maximum allowed value of a user defined priority is {HIGHEST}"));
    }
    preemption(out, obj, "preemptionPolicy");
}

/// What to do about lower priorities.
fn preemption(out: &mut Errors, obj: &Value, path: &str) {
    let policy = text(obj, "preemptionPolicy");
    if has(obj, "preemptionPolicy") && policy != "PreemptLowerPriority" && policy != "Never" {
        let all = ["PreemptLowerPriority", "Never"];
        out.push(crate::status::FieldError::not_supported(path, &json!(policy), &all));
    }
}

pub(super) fn priority_class_changes(new: &Value, old: &Value, out: &mut Errors) {
    if int(new, "value").unwrap_or(0) != int(old, "value").unwrap_or(0) {
        forbidden(out, "value", "may not be changed in an update.");
    }
    immutable(out, new, old, "preemptionPolicy", "");
}

pub(super) fn lease(obj: &Value, out: &mut Errors) {
    let spec = get(obj, "spec");
    if int(spec, "leaseDurationSeconds").is_some_and(|n| n <= 0) {
        let value = get(spec, "leaseDurationSeconds");
        invalid(out, "spec.leaseDurationSeconds", value, "must be greater than 0");
    }
    nonnegative(out, spec, "leaseTransitions", "spec");
}
