//! Nodes and namespaces.

use super::check::{Errors, amount, amounts, each, forbidden, must_be};
use crate::builtin::json::{get, has, list, text};
use crate::builtin::names;
use crate::builtin::pod::scheduling::EFFECTS;
use crate::status::{FieldError, Mistake};
use serde_json::{Value, json};

/// The phase says whether a namespace is going, and so does its metadata.
pub(super) fn namespace_status(obj: &Value, out: &mut Errors) {
    let going = has(get(obj, "metadata"), "deletionTimestamp");
    let phase = text(get(obj, "status"), "phase");
    let (wanted, rule) = if going {
        ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty")
    } else {
        ("Active", "may only be 'Active' if `deletionTimestamp` is empty")
    };
    if phase != wanted {
        out.push(FieldError::invalid("status.Phase", &json!(phase), rule));
    }
}

pub(super) fn namespace(obj: &Value, out: &mut Errors) {
    for finalizer in list(get(obj, "spec"), "finalizers") {
        let name = finalizer.as_str().unwrap_or_default();
        each(out, "spec.finalizers", name, names::qualified(name));
        if names::qualified(name).is_empty() && !name.contains('/') && name != "kubernetes" {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            out.push(FieldError::invalid("spec.finalizers", finalizer, why));
        }
    }
}

pub(super) fn node(obj: &Value, old: Option<&Value>, out: &mut Errors) {
    let spec = get(obj, "spec");
    if old.is_none() {
        taints(spec, out);
    }
    let status = get(obj, "status");
    for key in ["capacity", "allocatable"] {
        for (name, value) in amounts(status, key) {
            amount(out, name, value, &format!("status.{key}.{name}"));
        }
    }
    if let Some(old) = old {
        changes(obj, get(old, "spec"), out);
        taints(spec, out);
    }
}

fn changes(obj: &Value, old: &Value, out: &mut Errors) {
    let mut seen: Vec<&Value> = Vec::new();
    for (i, address) in list(get(obj, "status"), "addresses").iter().enumerate() {
        if seen.contains(&address) {
            let shown = json!({"Type": get(address, "type"), "Address": get(address, "address")});
            out.push(FieldError {
                mistake: Mistake::Duplicate,
                field: format!("status.addresses[{i}]"),
                value: Some(super::check::ordered(&shown, &["Type", "Address"])),
                detail: String::new(),
            });
        }
        seen.push(address);
    }
    let spec = get(obj, "spec");
    let (cidrs, before) = (list(spec, "podCIDRs"), list(old, "podCIDRs"));
    let why = "node updates may not change podCIDR except from \"\" to valid";
    if !before.is_empty() && before.len() != cidrs.len() {
        forbidden(out, "spec.podCIDRs", why);
    } else {
        before.iter().zip(cidrs).filter(|(a, b)| a != b).for_each(|_| forbidden(out, "spec.podCIDRs", why));
    }
    let provider = text(old, "providerID");
    if !provider.is_empty() && provider != text(spec, "providerID") {
        let why = "node updates may not change providerID except from \"\" to valid";
        forbidden(out, "spec.providerID", why);
    }
}

/// Taints are reported below the metadata, for upstream reports them so.
fn taints(spec: &Value, out: &mut Errors) {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (i, taint) in list(spec, "taints").iter().enumerate() {
        let path = format!("metadata.taints[{i}]");
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        each(out, &format!("{path}.key"), key, names::qualified(key));
        let problems = names::label_value(value);
        if !problems.is_empty() {
            out.push(FieldError::invalid(format!("{path}.value"), &json!(value), problems.join(";")));
        }
        must_be(out, taint, "effect", &path, &EFFECTS);
        if seen.contains(&(key, effect)) {
            let shown = json!({
                "Key": key, "Value": value, "Effect": effect, "TimeAdded": get(taint, "timeAdded"),
            });
            out.push(FieldError {
                mistake: Mistake::Duplicate,
                field: path,
                value: Some(super::check::ordered(&shown, &["Key", "Value", "Effect", "TimeAdded"])),
                detail: "taints must be unique by key and effect pair".to_owned(),
            });
            continue;
        }
        seen.push((key, effect));
    }
}
