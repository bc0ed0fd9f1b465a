//! Ownership across writes. The tables hold facts observed on a real kube-apiserver.

use super::*;
use crate::schema::Definitions;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

static DEFINITIONS: LazyLock<Definitions> = LazyLock::new(|| {
    let text = json!({"type": "string"});
    let map = json!({"type": "object", "additionalProperties": text});
    let keyed = |keys: &[&str], item: &Value| json!({"type": "array", "items": item, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys});
    let port = json!({"type": "object", "required": ["port"], "properties": {
        "port": {"type": "integer", "default": 0}, "protocol": {"type": "string", "default": "TCP"}, "host": text,
    }});
    let container = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string", "default": ""}, "image": text, "ports": keyed(&["port", "protocol"], &port),
        "args": {"type": "array", "items": text, "x-kubernetes-list-type": "atomic"},
    }});
    let spec = json!({"type": "object", "required": ["containers"], "properties": {
        "replicas": {"type": "integer"}, "paused": {"type": "boolean"}, "containers": keyed(&["name"], &container),
        "selector": {"type": "object", "x-kubernetes-map-type": "atomic", "additionalProperties": text},
        "strategy": {"type": "object", "properties": {"type": text}},
    }});
    let metadata = json!({"type": "object", "properties": {
        "name": text, "namespace": text, "uid": text, "resourceVersion": text, "labels": map, "annotations": map,
        "finalizers": {"type": "array", "items": text, "x-kubernetes-list-type": "set"},
    }});
    Definitions::from_openapi(&json!({
        "x.Spec": spec, "x.Meta": metadata,
        "x.Status": {"type": "object", "properties": {"ready": {"type": "integer"}}},
        "x.Root": {"type": "object", "properties": {
            "apiVersion": text, "kind": text,
            "metadata": {"allOf": [{"$ref": "#/components/schemas/x.Meta"}], "default": {}},
            "spec": {"allOf": [{"$ref": "#/components/schemas/x.Spec"}], "default": {}},
            "status": {"allOf": [{"$ref": "#/components/schemas/x.Status"}], "default": {}},
        }},
    }))
});

fn root() -> Option<View<'static>> {
    DEFINITIONS.view("x.Root")
}

const NOON: &str = "2026-01-01T12:00:00Z";
const LATER: &str = "2026-01-01T13:00:00Z";

fn by(manager: &'static str) -> Write<'static> {
    Write {
        manager,
        api_version: "apps/v1",
        kind: "Thing",
        subresource: "",
        time: NOON.to_owned(),
        reset: &["status"],
        builtin: true,
    }
}

fn object(spec: &Value) -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

/// An object with a uid, as if stored.
fn created(spec: &Value, manager: &'static str) -> Value {
    let mut new = object(spec);
    update(root(), None, &mut new, &by(manager));
    new["metadata"]["uid"] = json!("u");
    new
}

fn applied(live: Option<&Value>, spec: &Value, manager: &'static str) -> Result<Value, Status> {
    apply(root(), live, &object(spec), &by(manager), false)
}

/// What somebody owns, by manager and operation.
fn owned(object: &Value, manager: &str, operation: &str) -> Value {
    let list = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let found = list.into_iter().find(|e| e["manager"] == manager && e["operation"] == operation);
    found.map_or(Value::Null, |mut e| e["fieldsV1"].take())
}

#[test]
fn a_creator_owns_what_it_set_beyond_what_a_struct_always_has() {
    let new = created(
        &json!({"replicas": 1, "selector": {"a": "1"}, "containers": [
            {"name": "app", "image": "x", "args": ["-v"], "ports": [{"port": 80}]}]}),
        "kubectl",
    );
    let want = json!({"f:spec": {
        "f:replicas": {},
        "f:selector": {},
        "f:containers": {"k:{\"name\":\"app\"}": {
            ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
            "f:ports": {".": {}, "k:{\"port\":80,\"protocol\":\"TCP\"}": {".": {}, "f:port": {}}},
        }},
    }});
    assert_eq!(owned(&new, "kubectl", "Update"), want);
    let mut custom = object(&json!({"replicas": 1}));
    update(root(), None, &mut custom, &Write { builtin: false, ..by("kubectl") });
    let want = json!({"f:spec": {".": {}, "f:replicas": {}}});
    assert_eq!(owned(&custom, "kubectl", "Update"), want, "custom resources start from nothing");
}

#[test]
fn who_changes_a_field_takes_it_and_who_is_left_with_nothing_goes() {
    let live = created(&json!({"replicas": 1}), "a");
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    new["status"] = json!({"ready": 1});
    update(root(), Some(&live), &mut new, &by("b"));
    assert_eq!(owned(&new, "b", "Update"), json!({"f:spec": {"f:replicas": {}}}), "status is reset here");
    assert_eq!(owned(&new, "a", "Update"), Value::Null);
    let mut same = new.clone();
    update(root(), Some(&new), &mut same, &Write { time: LATER.to_owned(), ..by("c") });
    assert_eq!(same, new, "a write that changes nothing leaves no trace");
}

#[test]
fn a_status_write_is_told_apart_and_owns_only_status() {
    let mut live = created(&json!({"replicas": 1}), "a");
    live["status"] = json!({});
    let mut new = live.clone();
    new["status"] = json!({"ready": 1});
    new["spec"]["replicas"] = json!(7);
    let write = Write { subresource: "status", reset: &["spec", "metadata.labels"], ..by("a") };
    update(root(), Some(&live), &mut new, &write);
    let list = new["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(list.len(), 2);
    let status = list.iter().find(|e| e["subresource"] == "status").unwrap();
    assert_eq!(status["fieldsV1"], json!({"f:status": {"f:ready": {}}}));
}

#[test]
fn managers_sent_along_are_honoured_ignored_or_forgotten() {
    let live = created(&json!({"replicas": 1}), "a");
    let mine = json!([{"manager": "z", "operation": "Update", "apiVersion": "apps/v1", "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let cases = [
        ("a list that can be read replaces the old one", mine, Some("z")),
        ("an empty list forgets all", json!([]), None),
        ("so does one empty entry", json!([{}]), None),
        ("what cannot be read is ignored", json!([{"manager": "z", "operation": "Nothing"}]), Some("a")),
        ("none at all keeps the old ones", Value::Null, Some("a")),
    ];
    for (why, list, owner) in cases {
        let mut new = live.clone();
        new["metadata"]["managedFields"] = list;
        update(root(), Some(&live), &mut new, &by("b"));
        let first = new.pointer("/metadata/managedFields/0/manager").and_then(Value::as_str);
        assert_eq!(first, owner, "{why}");
    }
}

#[test]
fn an_untracked_object_stays_so_until_somebody_applies() {
    let mut live = object(&json!({"replicas": 1}));
    live["metadata"]["uid"] = json!("u");
    let mut new = live.clone();
    new["spec"]["replicas"] = json!(2);
    update(root(), Some(&live), &mut new, &by("b"));
    assert_eq!(new["metadata"].get("managedFields"), None);
    let status = applied(Some(&new), &json!({"replicas": 3}), "c").expect_err("somebody was there before");
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"before-first-apply\" using apps/v1: .spec.replicas"
    );
}

#[test]
fn the_oldest_of_too_many_updaters_are_merged() {
    let names = ["u0", "u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "u9", "v0", "v1"];
    let mut live = created(&json!({"replicas": 0}), "first");
    for (at, manager) in names.into_iter().enumerate() {
        let mut new = live.clone();
        new["metadata"]["labels"][format!("l{at}")] = json!("1");
        let write = Write { time: format!("2026-01-02T00:00:{at:02}Z"), ..by(manager) };
        update(root(), Some(&live), &mut new, &write);
        live = new;
    }
    let list = live["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(list.len(), 10);
    assert_eq!(list[0]["manager"], "ancient-changes");
    assert_eq!(list[0]["time"], "2026-01-02T00:00:02Z", "the time is that of the last one merged");
    let want = json!({"f:metadata": {"f:labels": {".": {}, "f:l0": {}, "f:l1": {}, "f:l2": {}}},
        "f:spec": {"f:replicas": {}}});
    assert_eq!(list[0]["fieldsV1"], want);
}

#[test]
fn conflicts_name_manager_and_field() {
    let live =
        created(&json!({"replicas": 1, "containers": [{"name": "app", "image": "x"}]}), "kubectl-create");
    let status = applied(Some(&live), &json!({"replicas": 2}), "a").expect_err("replicas belong to another");
    assert_eq!((status.code, status.reason), (409, "Conflict"));
    assert_eq!(
        status.message,
        "Apply failed with 1 conflict: conflict with \"kubectl-create\" using apps/v1: .spec.replicas"
    );
    let both = json!({"replicas": 2, "containers": [{"name": "app", "image": "y"}]});
    let status = applied(Some(&live), &both, "a").expect_err("both belong to another");
    assert_eq!(
        status.message,
        "Apply failed with 2 conflicts: conflicts with \"kubectl-create\" using apps/v1:\n- .spec.replicas\n\
         - .spec.containers[name=\"app\"].image"
    );
    let causes = status.details.expect("conflicts have details").causes;
    assert_eq!(causes[1].reason, "FieldManagerConflict");
    assert_eq!(causes[1].message, "conflict with \"kubectl-create\" using apps/v1");
    assert_eq!(causes[1].field, ".spec.containers[name=\"app\"].image");
    let forced = apply(root(), Some(&live), &object(&both), &by("a"), true).unwrap();
    assert_eq!(forced["spec"]["replicas"], 2);
    let want = json!({"f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:name": {}}}}});
    assert_eq!(
        owned(&forced, "kubectl-create", "Update"),
        want,
        "the entry stays with both, what changed moves"
    );
}

#[test]
fn applying_what_is_already_there_shares_it_without_a_time() {
    let live = created(&json!({"replicas": 1}), "a");
    let shared = applied(Some(&live), &json!({"replicas": 1}), "b").unwrap();
    let entry = &shared["metadata"]["managedFields"][0];
    assert_eq!((&entry["manager"], &entry["operation"]), (&json!("b"), &json!("Apply")));
    assert_eq!(entry.get("time"), None);
    assert_eq!(owned(&shared, "a", "Update"), owned(&shared, "b", "Apply"));
}

#[test]
fn configurations_that_do_not_fit_are_refused_as_upstream_does() {
    let typed = "failed to create typed patch object (/t; apps/v1, Kind=Thing): ";
    let cases = [
        (json!({"foo": 3}), ".spec.foo: field not declared in schema"),
        (json!({"replicas": "x"}), ".spec.replicas: expected numeric (int or float), got string"),
        (json!({"paused": "yes"}), ".spec.paused: expected boolean, got &{yes}"),
        (json!({"containers": {"name": "z"}}), ".spec.containers: expected list, got &{map[name:z]}"),
        (json!([1]), ".spec: expected map, got &{[1]}"),
        (
            json!({"containers": [{"name": "z"}, {"name": "z"}]}),
            ".spec.containers: duplicate entries for key [name=\"z\"]",
        ),
        (
            json!({"containers": [{"name": "z", "image": 1}]}),
            ".spec.containers[name=\"z\"].image: expected string, got &value.valueUnstructured{Value:1}",
        ),
    ];
    for (spec, why) in cases {
        let status = applied(None, &spec, "a").expect_err("the configuration must be refused");
        assert_eq!((status.code, status.reason, status.message), (500, "", format!("{typed}{why}")));
    }
    let mut config = object(&json!({}));
    config["metadata"]["managedFields"] = json!([]);
    let status = apply(None, None, &config, &by("a"), false).expect_err("managers cannot be applied");
    assert_eq!((status.code, status.message.as_str()), (400, "metadata.managedFields must be nil"));
    let other = json!({"apiVersion": "v1", "kind": "Thing"});
    let status = apply(None, None, &other, &by("a"), false).expect_err("versions must agree");
    assert_eq!((status.code, status.message.as_str()), (400, "invalid object type: /v1, Kind=Thing"));
}

#[test]
fn applied_lists_keep_their_order_around_what_others_have() {
    let names =
        |list: &[&str]| -> Vec<Value> { list.iter().map(|n| json!({"name": n, "image": n})).collect() };
    let cases = [
        ("what is new comes where it was put", vec!["b"], vec!["a", "b", "c"], vec!["a", "b", "c"]),
        ("the applied order wins", vec!["a", "b"], vec!["b", "a"], vec!["b", "a"]),
        ("others keep their place", vec!["x", "a", "y"], vec!["a", "n"], vec!["x", "a", "y", "n"]),
        ("also between reordered ones", vec!["a", "x", "b"], vec!["b", "a"], vec!["x", "b", "a"]),
    ];
    for (why, live, config, want) in cases {
        let live = created(&json!({"containers": names(&live)}), "a");
        let merged = applied(Some(&live), &json!({"containers": names(&config)}), "b").unwrap();
        assert_eq!(merged["spec"]["containers"], json!(names(&want)), "{why}");
    }
}

#[test]
fn kubectl_takes_over_what_client_side_apply_left() {
    let config = object(&json!({"replicas": 1}));
    let key = "kubectl.kubernetes.io/last-applied-configuration";
    let mut live = config.clone();
    live["metadata"]["annotations"] = json!({key: config.to_string()});
    update(root(), None, &mut live, &by("kubectl-client-side-apply"));
    let next = object(&json!({"replicas": 2}));
    let taken = apply(root(), Some(&live), &next, &by("kubectl"), false).unwrap();
    assert_eq!(taken["spec"]["replicas"], 2);
    let text = taken["metadata"]["annotations"][key].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), next, "the annotation follows");
    assert!(apply(root(), Some(&live), &next, &by("other"), false).is_err(), "others get no favour");
}

#[test]
fn new_times_alone_are_taken_back() {
    let old = created(&json!({"replicas": 1}), "a");
    let mut new = old.clone();
    new["metadata"]["managedFields"][0]["time"] = json!(LATER);
    assert!(keep_times(&old, &mut new));
    assert_eq!(new, old);
    new["spec"]["replicas"] = json!(2);
    assert!(!keep_times(&old, &mut new));
}

#[test]
fn without_a_schema_maps_merge_and_lists_do_not() {
    let live = object(&json!({"m": {"a": 1}, "l": [1]}));
    let config = object(&json!({"m": {"b": 2}, "l": [2]}));
    let merged = apply(None, Some(&live), &config, &Write { builtin: false, ..by("a") }, true).unwrap();
    assert_eq!(merged["spec"], json!({"m": {"a": 1, "b": 2}, "l": [2]}));
    let want = json!({"f:spec": {".": {}, "f:m": {".": {}, "f:b": {}}, "f:l": {}}});
    assert_eq!(owned(&merged, "a", "Apply"), want);
}

/// A configuration out of a few optional fields and entries.
fn config() -> impl Strategy<Value = Value> {
    let container = ("[ab]", prop::option::of("[xy]"), prop::collection::btree_set(1..3i64, 0..3));
    let containers = prop::collection::vec(container, 0..3);
    let labels = prop::collection::btree_map("[ab]", "[xy]", 0..3);
    (prop::option::of(0..3i64), containers, prop::option::of(labels)).prop_map(
        |(replicas, containers, selector)| {
            let mut spec = json!({});
            if let Some(replicas) = replicas {
                spec["replicas"] = json!(replicas);
            }
            let mut seen = std::collections::BTreeSet::new();
            for (name, image, ports) in containers {
                if !seen.insert(name.clone()) {
                    continue;
                }
                let mut one = json!({"name": name});
                if let Some(image) = image {
                    one["image"] = json!(image);
                }
                if !ports.is_empty() {
                    one["ports"] = ports.into_iter().map(|p| json!({"port": p, "protocol": "TCP"})).collect();
                }
                match spec["containers"].as_array_mut() {
                    Some(list) => list.push(one),
                    None => spec["containers"] = json!([one]),
                }
            }
            if let Some(selector) = selector {
                spec["selector"] = json!(selector);
            }
            spec
        },
    )
}

/// The spec; in a struct none is as good as an empty one.
fn spec(object: &Value) -> Value {
    object.get("spec").cloned().unwrap_or_else(|| json!({}))
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(first in config(), second in config()) {
        let live = applied(None, &first, "a").unwrap();
        let once = apply(root(), Some(&live), &object(&second), &by("b"), true).unwrap();
        let write = Write { time: LATER.to_owned(), ..by("b") };
        let twice = apply(root(), Some(&once), &object(&second), &write, false).unwrap();
        prop_assert_eq!(twice.to_string(), once.to_string());
    }

    #[test]
    fn disjoint_managers_never_conflict(replicas in 0..3i64, rounds in prop::collection::vec("[xyz]", 1..5)) {
        let mut live = applied(None, &json!({"replicas": replicas}), "a").unwrap();
        for image in rounds {
            live = applied(Some(&live), &json!({"containers": [{"name": "c", "image": image}]}), "b").unwrap();
            live = applied(Some(&live), &json!({"replicas": replicas + 1}), "a").unwrap();
            prop_assert_eq!(&live["spec"], &json!({"replicas": replicas + 1,
                "containers": [{"name": "c", "image": image}]}));
        }
    }

    #[test]
    fn what_a_configuration_drops_goes_only_if_nobody_else_owns_it(shared in config(), kept in config()) {
        let start = applied(None, &shared, "a").unwrap();
        let both = apply(root(), Some(&start), &object(&kept), &by("b"), true).unwrap();
        let nothing = json!({"apiVersion": "apps/v1", "kind": "Thing", "metadata": {"name": "t"}});
        let left = apply(root(), Some(&both), &nothing, &by("a"), false).unwrap();
        let alone = applied(None, &kept, "b").unwrap();
        prop_assert_eq!(spec(&left), spec(&alone));
        prop_assert_eq!(owned(&left, "a", "Apply"), Value::Null);
    }

    #[test]
    fn a_lone_applier_gets_exactly_what_it_applies(first in config(), second in config()) {
        let live = applied(None, &first, "a").unwrap();
        let next = applied(Some(&live), &second, "a").unwrap();
        let fresh = applied(None, &second, "a").unwrap();
        prop_assert_eq!(spec(&next), spec(&fresh));
        prop_assert_eq!(owned(&next, "a", "Apply"), owned(&fresh, "a", "Apply"));
    }
}
