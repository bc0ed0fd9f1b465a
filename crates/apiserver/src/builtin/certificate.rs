//! Certificate signing requests: who asks is not for the client to say, and approval is a path of its own.

use super::json::{child_of, copy, get, list, remove, text};
use serde_json::{Value, json};

/// Whoever asks: here everybody is the same user.
const USER: &str = "admin";
const GROUPS: [&str; 2] = ["system:masters", "system:authenticated"];

/// Fills in who asks.
pub(super) fn create(obj: &mut Value) {
    if let Some(spec) = child_of(obj, "spec") {
        for key in ["uid", "extra"] {
            spec.remove(key);
        }
        spec.insert("username".to_owned(), json!(USER));
        spec.insert("groups".to_owned(), json!(GROUPS));
    }
}

/// A write to `approval` changes the conditions alone.
pub(super) fn approval(new: &mut Value, old: &Value) {
    stamp(new, old);
    let conditions = new.get_mut("status").and_then(|status| status.get_mut("conditions")).map(Value::take);
    copy(new, old, "spec");
    copy(new, old, "status");
    if let Some(status) = child_of(new, "status") {
        match conditions {
            Some(conditions) => status.insert("conditions".to_owned(), conditions),
            None => status.remove("conditions"),
        };
    }
}

/// A write to `status` leaves what was approved or denied as it is.
pub(super) fn status(new: &mut Value, old: &Value) {
    for kind in ["Approved", "Denied"] {
        let places = |object: &Value| -> Vec<usize> {
            let conditions = list(get(object, "status"), "conditions").iter().enumerate();
            conditions.filter(|(_, c)| text(c, "type") == kind).map(|(place, _)| place).collect()
        };
        let (to, from) = (places(new), places(old));
        if to.len() != from.len() {
            continue;
        }
        for (to, from) in to.into_iter().zip(from) {
            new["status"]["conditions"][to] = old["status"]["conditions"][from].clone();
        }
    }
    stamp(new, old);
}

/// Times that the client left out: now, or since when a condition has been what it is.
fn stamp(new: &mut Value, old: &Value) {
    let now = json!(jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
    let before = list(get(old, "status"), "conditions");
    let conditions =
        new.get_mut("status").and_then(|s| s.get_mut("conditions")).and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        let same = |other: &&Value| {
            text(other, "type") == text(condition, "type")
                && text(other, "status") == text(condition, "status")
        };
        let since = before.iter().find(same).map(|other| get(other, "lastTransitionTime").clone());
        let since = since.filter(|since| !since.is_null()).unwrap_or_else(|| now.clone());
        for (key, value) in [("lastUpdateTime", now.clone()), ("lastTransitionTime", since)] {
            if get(condition, key).is_null() {
                remove(condition, key);
                condition[key] = value;
            }
        }
    }
}
