//! Events, by the rules of the core group and the stricter ones of their own group.

use super::check::{Errors, each, immutable, invalid, required};
use crate::builtin::json::{get, has, int, text};
use crate::builtin::names;
use serde_json::{Value, json};

/// Rules every event keeps, whichever group it came through.
pub(super) fn event(obj: &Value, group: &str, out: &mut Errors) {
    let core = group.is_empty();
    let involved = get(obj, if core { "involvedObject" } else { "regarding" });
    let namespace = text(get(obj, "metadata"), "namespace");
    let about = text(involved, "namespace");
    let mismatch = |out: &mut Errors| {
        invalid(out, "involvedObject.namespace", &json!(about), "does not match event.namespace");
    };
    if has(obj, "eventTime") {
        if about.is_empty() && namespace != "default" && namespace != "kube-system" {
            mismatch(out);
        }
        details(obj, core, out);
    } else {
        let agrees = if about.is_empty() {
            namespace.is_empty() || namespace == "default"
        } else {
            about == namespace
        };
        if !agrees {
            mismatch(out);
        }
    }
    each(out, "namespace", namespace, names::subdomain(namespace));
}

fn details(obj: &Value, core: bool, out: &mut Errors) {
    let controller_key = if core { "reportingComponent" } else { "reportingController" };
    let controller = text(obj, controller_key);
    if controller.is_empty() {
        required(out, controller_key, "");
    }
    each(out, controller_key, controller, names::qualified(controller));
    for (key, limit, needed) in [
        ("reportingInstance", 128, true),
        ("action", 128, true),
        ("reason", 128, true),
        ("message", 1024, false),
    ] {
        let value = text(obj, if key == "message" && !core { "note" } else { key });
        if needed && value.is_empty() {
            required(out, key, "");
        }
        if value.len() > limit {
            invalid(out, key, &json!(""), format!("can have at most {limit} characters"));
        }
    }
}

fn series(obj: &Value, out: &mut Errors) {
    let series = get(obj, "series");
    if series.is_null() {
        return;
    }
    if int(series, "count").unwrap_or(0) < 2 {
        invalid(out, "series.count", &json!(""), "should be at least 2");
    }
    if !has(series, "lastObservedTime") {
        required(out, "series.lastObservedTime", "");
    }
}

/// What the events group asks of new events, beyond the common rules.
pub(super) fn strict_create(obj: &Value, out: &mut Errors) {
    series(obj, out);
    if !has(obj, "eventTime") {
        required(out, "eventTime", "");
    }
    let ty = text(obj, "type");
    if ty != "Normal" && ty != "Warning" {
        invalid(out, "type", &json!(""), format!("has invalid value: {ty}"));
    }
    for (key, field) in
        [("deprecatedFirstTimestamp", "firstTimestamp"), ("deprecatedLastTimestamp", "lastTimestamp")]
    {
        if has(obj, key) {
            invalid(out, field, &json!(""), "needs to be unset");
        }
    }
    if int(obj, "deprecatedCount").unwrap_or(0) != 0 {
        invalid(out, "count", &json!(""), "needs to be unset");
    }
    let source = get(obj, "deprecatedSource");
    if !text(source, "component").is_empty() || !text(source, "host").is_empty() {
        invalid(out, "source", &json!(""), "needs to be unset");
    }
}

/// What the events group lets nobody change. Fields are reported by their core names.
pub(super) fn strict_update(new: &Value, old: &Value, out: &mut Errors) {
    if get(new, "series") != get(old, "series") {
        series(new, out);
    }
    for (key, field) in [
        ("regarding", "involvedObject"),
        ("reason", "reason"),
        ("note", "message"),
        ("deprecatedSource", "source"),
        ("deprecatedFirstTimestamp", "firstTimestamp"),
        ("deprecatedLastTimestamp", "lastTimestamp"),
        ("deprecatedCount", "count"),
        ("reason", "reason"),
        ("type", "type"),
        ("eventTime", "eventTime"),
        ("action", "action"),
        ("related", "related"),
        ("reportingController", "reportingController"),
        ("reportingInstance", "reportingInstance"),
    ] {
        let (new, old) = (json!({ field: get(new, key) }), json!({ field: get(old, key) }));
        immutable(out, &new, &old, field, "");
    }
}
