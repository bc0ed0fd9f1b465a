//! Between the version objects are stored in and the version a client speaks.
//!
//! Few kinds of resources have several versions here: events (kept in the core form), autoscalers (kept in the newer
//! one) and custom resources (strategy `None`: only `apiVersion` differs).

mod autoscaler;

use crate::registry::Resource;
use crate::schema::structural;
use serde_json::{Map, Value, json};

/// Whether the version asked for differs from the stored one.
#[must_use]
pub(super) fn needed(resource: &Resource) -> bool {
    match &resource.custom {
        Some(custom) => !custom.storage || custom.defaults,
        None => !resource.is_stored_form(),
    }
}

/// From the stored form to the version of `resource`.
#[must_use]
pub(super) fn from_storage(resource: &Resource, mut value: Value) -> Value {
    if !needed(resource) {
        return value;
    }
    if resource.is_older_autoscaler() {
        return autoscaler::older(value);
    }
    if resource.custom.is_none() {
        return rename(value, "events.k8s.io/v1", &EVENT_FIELDS);
    }
    value["apiVersion"] = json!(resource.api_version());
    // A definition may have got defaults since the object was stored.
    if let Some(view) = resource.schema() {
        structural::default(view, &mut value);
    }
    value
}

/// From the version of `resource` to the stored form.
#[must_use]
pub(super) fn to_storage(resource: &Resource, mut value: Value) -> Value {
    match &resource.custom {
        _ if !needed(resource) => value,
        None if resource.is_older_autoscaler() => autoscaler::newer(value),
        None => rename(value, "v1", &EVENT_FIELDS.map(|(core, newer)| (newer, core))),
        Some(custom) => {
            value["apiVersion"] = json!(custom.storage_api_version);
            value
        }
    }
}

/// Fields of an event in the core form and in `events.k8s.io/v1`.
const EVENT_FIELDS: [(&str, &str); 8] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
    ("reportingComponent", "reportingController"),
    ("reportingInstance", "reportingInstance"),
];

fn rename(value: Value, api_version: &str, fields: &[(&str, &str)]) -> Value {
    let Value::Object(old) = value else { return value };
    let mut new = Map::new();
    for (key, entry) in old {
        let renamed = fields.iter().find(|(from, _)| *from == key).map_or(key.as_str(), |(_, to)| to);
        // Upstream's empty source is a struct without fields; it does not travel in the newer form either way.
        new.insert(renamed.to_owned(), entry);
    }
    new.insert("apiVersion".to_owned(), json!(api_version));
    // Two fields are always there in the core form, and only when they say something in the newer one.
    let core = api_version == "v1";
    for key in [if core { "reportingComponent" } else { "reportingController" }, "reportingInstance"] {
        if core {
            new.entry(key).or_insert_with(|| json!(""));
        } else if new.get(key).is_some_and(|text| text == "") {
            new.remove(key);
        }
    }
    Value::Object(new)
}

/// The stored name of a selectable field asked for in the version of `resource`.
#[must_use]
pub(super) fn field_name(resource: &Resource, field: &str) -> String {
    if resource.group == "events.k8s.io" {
        if let Some(rest) = field.strip_prefix("regarding.") {
            return format!("involvedObject.{rest}");
        }
        if field == "reportingController" {
            return "reportingComponent".to_owned();
        }
    }
    field.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn an_event_survives_the_way_to_the_newer_form_and_back() {
        let registry = Registry::default();
        let newer = registry.find("events.k8s.io", "v1", "events").expect("built in");
        let core = json!({
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e"}, "involvedObject": {"name": "p"},
            "message": "m", "reason": "R", "source": {"component": "c"}, "count": 2, "type": "Normal",
            "reportingComponent": "", "reportingInstance": "",
        });
        let there = from_storage(newer, core.clone());
        assert_eq!(there["regarding"]["name"], "p");
        assert_eq!(there["note"], "m");
        assert_eq!(there.get("reportingController"), None);
        assert_eq!(there["apiVersion"], "events.k8s.io/v1");
        assert_eq!(to_storage(newer, there), core);
    }
}
