//! Ownership across the `scale` subresource: who scales an object owns its replicas, under whatever path they are.
//!
//! A write to `scale` is a write to a `Scale` object of another group. Its managers are taken from the object before the
//! write ([`to_scale`]) and brought back after it ([`to_parent`]).

use super::fields::{Element, FieldSet};
use super::managers::{Entry, Managers};
use serde_json::{Value, json};

/// Version of every `Scale`.
const SCALE: &str = "autoscaling/v1";

fn only(path: &str) -> FieldSet {
    let mut set = FieldSet::default();
    set.insert(&elements(path));
    set
}

fn elements(path: &str) -> Vec<Element> {
    path.split('.').map(Element::field).collect()
}

fn group(version: &str) -> &str {
    version.split_once('/').map_or("", |(group, _)| group)
}

/// The `managedFields` of the `Scale` of an object whose replicas are at a dotted path such as `spec.replicas`.
#[must_use]
pub(crate) fn to_scale(parent: &Value, replicas: &str) -> Value {
    let mut managers = Managers::of(parent).unwrap_or_default();
    let path = elements(replicas);
    managers.entries.retain(|_, entry| entry.fields.contains(&path));
    for entry in managers.entries.values_mut() {
        SCALE.clone_into(&mut entry.version);
        entry.fields = only("spec.replicas");
    }
    let mut holder = json!({});
    managers.write(&mut holder);
    holder["metadata"].get_mut("managedFields").map(Value::take).unwrap_or_default()
}

/// Brings the `managedFields` of a written `Scale` back into its object, which is of version `api_version`.
pub(crate) fn to_parent(parent: &mut Value, scale: &Value, api_version: &str, replicas: &str) {
    let old = Managers::of(parent).unwrap_or_default();
    let mut scaled = Managers::of(scale).unwrap_or_default();
    let path = elements(replicas);
    let mut out = Managers::default();
    for (id, entry) in &old.entries {
        if group(&entry.version) != group(api_version) {
            continue;
        }
        // Only appliers are found again: updaters are told apart by version, and a `Scale` has another.
        if !entry.fields.contains(&path) || scaled.entries.remove(id).is_some() {
            out.entries.insert(id.clone(), entry.clone());
            continue;
        }
        let fields = entry.fields.difference(&only(replicas));
        if !fields.is_empty() {
            out.entries.insert(id.clone(), Entry { fields, ..entry.clone() });
        }
    }
    for (id, entry) in scaled.entries {
        if entry.fields.contains(&elements("spec.replicas")) {
            let time = old.entries.get(&id).and_then(|e| e.time.clone());
            let entry = Entry { version: api_version.to_owned(), time, fields: only(replicas) };
            out.entries.insert(id, entry);
        }
    }
    out.write(parent);
}

#[cfg(test)]
mod tests {
    use super::super::{Write, apply, update};
    use super::*;

    fn write(manager: &'static str) -> Write<'static> {
        Write {
            manager,
            api_version: SCALE,
            kind: "Scale",
            subresource: "scale",
            time: "2026-01-01T00:00:00Z".to_owned(),
            reset: &[],
            builtin: false,
        }
    }

    fn parent() -> Value {
        let mut object = json!({"apiVersion": "apps/v1", "kind": "Thing", "metadata": {"name": "t"},
            "spec": {"replicas": 1, "paused": true}});
        let creator = Write { api_version: "apps/v1", kind: "Thing", subresource: "", ..write("c") };
        update(None, None, &mut object, &creator);
        object["metadata"]["uid"] = json!("u");
        object
    }

    fn scale(parent: &Value) -> Value {
        json!({"apiVersion": SCALE, "kind": "Scale", "spec": {"replicas": parent["spec"]["replicas"]},
            "metadata": {"name": "t", "uid": "u", "managedFields": to_scale(parent, "spec.replicas")}})
    }

    fn entry<'a>(object: &'a Value, manager: &str) -> Option<&'a Value> {
        object["metadata"]["managedFields"].as_array()?.iter().find(|e| e["manager"] == manager)
    }

    #[test]
    fn who_scales_owns_the_replicas_of_the_object_without_a_time() {
        let mut object = parent();
        let old = scale(&object);
        let mut new = old.clone();
        new["spec"]["replicas"] = json!(3);
        update(None, Some(&old), &mut new, &write("k"));
        to_parent(&mut object, &new, "apps/v1", "spec.replicas");
        let want = json!({"manager": "k", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:replicas": {}}}, "subresource": "scale"});
        assert_eq!(entry(&object, "k"), Some(&want));
        let rest = entry(&object, "c").expect("the creator keeps the rest");
        assert_eq!(rest["fieldsV1"], json!({"f:spec": {".": {}, "f:paused": {}}}));
    }

    #[test]
    fn applying_a_scale_conflicts_with_the_owner_of_the_replicas() {
        let object = parent();
        let config =
            json!({"apiVersion": SCALE, "kind": "Scale", "metadata": {"name": "t"}, "spec": {"replicas": 5}});
        let status =
            apply(None, Some(&scale(&object)), &config, &write("a"), false).expect_err("replicas are owned");
        assert_eq!(
            status.message,
            "Apply failed with 1 conflict: conflict with \"c\" using autoscaling/v1: .spec.replicas"
        );
    }
}
