//! What patches do, checked against answers of a real kube-apiserver where a case says so.

use super::*;
use crate::schema::Definitions;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn definitions() -> Definitions {
    let keyed = |key: &str, item: &Value| json!({"type": "array", "items": item, "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": key});
    let text = json!({"type": "string"});
    let env = json!({"type": "object", "properties": {"name": text, "value": text}});
    let container = json!({"type": "object", "properties": {
        "name": text, "image": text, "env": keyed("name", &env), "args": {"type": "array", "items": text},
    }});
    Definitions::from_openapi(&json!({
        "x.Spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "containers": keyed("name", &container),
            "finalizers": {"type": "array", "items": text, "x-kubernetes-patch-strategy": "merge"},
            "strategy": {"type": "object", "properties": {"type": text, "rolling": {"type": "object", "properties": {}}},
                "x-kubernetes-patch-strategy": "retainKeys"},
            "selector": {"type": "object", "additionalProperties": text, "x-kubernetes-patch-strategy": "replace"},
            "labels": {"type": "object", "additionalProperties": text},
            "nokey": {"type": "array", "items": {"type": "object"}, "x-kubernetes-patch-strategy": "merge"},
        }},
        "x.Root": {"type": "object", "properties": {
            "spec": {"$ref": "#/components/schemas/x.Spec"},
            "labels": {"type": "object", "additionalProperties": text},
        }},
    }))
}

fn strategic_spec(doc: &Value, patch: &Value) -> Result<Value, Status> {
    let defs = definitions();
    let doc = json!({"spec": doc});
    let patch = json!({"spec": patch});
    strategic(defs.view("x.Root"), &doc, &patch).map(|mut out| out["spec"].take())
}

#[test]
fn strategic_patches_merge_as_upstream_does() {
    let app = json!({"name": "app", "image": "a", "env": [{"name": "A", "value": "1"}]});
    let side = json!({"name": "side", "image": "s"});
    let cases = [
        (
            "entries are matched by key and new ones follow",
            json!({"containers": [app, side]}),
            json!({"containers": [{"name": "side", "image": "s2"}, {"name": "new"}]}),
            json!({"containers": [app, {"name": "side", "image": "s2"}, {"name": "new"}]}),
        ),
        (
            "entries the patch names come in its order",
            json!({"containers": [app, side]}),
            json!({"containers": [{"name": "side"}, {"name": "app"}]}),
            json!({"containers": [side, app]}),
        ),
        (
            "a directive deletes an entry, also a nested one",
            json!({"containers": [app, side]}),
            json!({"containers": [{"name": "side", "$patch": "delete"},
                {"name": "app", "env": [{"name": "A", "$patch": "delete"}, {"name": "B"}]}]}),
            json!({"containers": [{"name": "app", "image": "a", "env": [{"name": "B"}]}]}),
        ),
        (
            "a directive replaces a whole list",
            json!({"containers": [app, side]}),
            json!({"containers": [{"$patch": "replace"}, {"name": "only"}]}),
            json!({"containers": [{"name": "only"}]}),
        ),
        (
            "a directive replaces a whole map",
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "replace", "b": "2"}}),
            json!({"labels": {"b": "2"}}),
        ),
        (
            "a directive empties a map",
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "delete"}}),
            json!({"labels": {}}),
        ),
        (
            "null deletes, and in something new there is nothing to delete",
            json!({"labels": {"a": "1"}, "replicas": 1}),
            json!({"labels": {"a": null}, "replicas": null, "strategy": {"type": null, "rolling": {}}}),
            json!({"labels": {}, "strategy": {"rolling": {}}}),
        ),
        (
            "a directive in something new is not kept",
            json!({}),
            json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b"}], "labels": {"$patch": "replace"}}),
            json!({"containers": [{"name": "b"}]}),
        ),
        (
            "the order of a list can be set",
            json!({"containers": [app, side]}),
            json!({"$setElementOrder/containers": [{"name": "side"}, {"name": "app"}],
                "containers": [{"name": "app", "image": "b"}]}),
            json!({"containers": [side, {"name": "app", "image": "b", "env": [{"name": "A", "value": "1"}]}]}),
        ),
        (
            "entries the order does not know stay where they were",
            json!({"containers": [{"name": "server"}, app, side]}),
            json!({"$setElementOrder/containers": [{"name": "side"}, {"name": "app"}]}),
            json!({"containers": [{"name": "server"}, side, app]}),
        ),
        (
            "retained keys are the only ones left",
            json!({"strategy": {"type": "Rolling", "rolling": {}}}),
            json!({"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}),
            json!({"strategy": {"type": "Recreate"}}),
        ),
        (
            "scalars form a set in the order of the patch",
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c", "a"]}),
            json!({"finalizers": ["c", "a", "b"]}),
        ),
        (
            "scalars are deleted through a parallel list",
            json!({"finalizers": ["a", "b", "c"]}),
            json!({"$deleteFromPrimitiveList/finalizers": ["a", "c", "z"]}),
            json!({"finalizers": ["b"]}),
        ),
        (
            "a list without strategy is replaced",
            json!({"containers": [{"name": "app", "args": ["a", "b"]}]}),
            json!({"containers": [{"name": "app", "args": ["c"]}]}),
            json!({"containers": [{"name": "app", "args": ["c"]}]}),
        ),
        (
            "a map may ask to be replaced",
            json!({"selector": {"a": "1", "b": "2"}}),
            json!({"selector": {"a": "2"}}),
            json!({"selector": {"a": "2"}}),
        ),
    ];
    for (why, doc, patch, want) in cases {
        assert_eq!(strategic_spec(&doc, &patch), Ok(want), "{why}");
    }
}

#[test]
fn strategic_patches_that_make_no_sense_are_answered_as_upstream_does() {
    let doc =
        json!({"containers": [{"name": "app"}], "nokey": [{"a": 1}], "finalizers": ["a"], "strategy": {}});
    let cases = [
        (
            json!({"containers": [{"image": "x"}]}),
            500,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"name": "app", "$patch": "merge"}]}),
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"containers": [{"name": "app", "$patch": "foo"}]}),
            500,
            "unknown patch type: foo in map: map[$patch:foo name:app]",
        ),
        (json!({"$patch": "foo"}), 500, "unknown patch type: foo in map: map[$patch:foo]"),
        (json!({"strategy": {"$retainKeys": "x"}}), 400, "invalid patch format of retainKeys"),
        (json!({"strategy": {"$retainKeys": [], "type": "x"}}), 400, "invalid patch format of retainKeys"),
        (
            json!({"$setElementOrder/containers": [{"name": "app"}], "containers": [{"image": "i", "name": "z"}]}),
            500,
            "The order in patch list:\n[map[image:i name:z]]\n doesn't match $setElementOrder list:\n[map[name:app]]\n",
        ),
        (
            json!({"$setElementOrder/foo": [{"name": "app"}]}),
            500,
            "unable to find api field in struct Spec for the json field \"foo\"",
        ),
        (json!({"$setElementOrder": []}), 400, "invalid patch format of setElementOrder list"),
        (json!({"$deleteFromPrimitiveList": ["x"]}), 400, "invalid patch format of primitive list"),
        (json!({"nokey": [{"b": 1}]}), 500, "cannot merge lists without merge key for struct"),
        (json!({"finalizers": [1]}), 500, "list element types are not identical: [[a] [1]]"),
    ];
    for (patch, code, message) in cases {
        let status = strategic_spec(&doc, &patch).expect_err("the patch must be refused");
        assert_eq!((status.code, status.message.as_str()), (code, message), "{patch}");
    }
    let status = strategic_spec(&json!({"finalizers": [["a"]]}), &json!({"finalizers": [["b"]]}));
    assert_eq!(status.expect_err("lists of lists are refused").code, 422);
    let status = strategic(None, &json!({}), &json!([1])).expect_err("a list is no patch");
    assert_eq!(status.message, "json: cannot unmarshal array into Go value of type map[string]interface {}");
}

#[test]
fn json_patches_take_the_liberties_upstream_takes() {
    let doc = json!({"a": {"b": "1"}, "l": [1, 2]});
    let cases = [
        (
            "replace adds a missing key",
            json!([{"op": "replace", "path": "/a/c", "value": 2}]),
            Some(json!({"a": {"b": "1", "c": 2}, "l": [1, 2]})),
        ),
        (
            "a missing key passes for null",
            json!([{"op": "test", "path": "/a/z", "value": null}]),
            Some(doc.clone()),
        ),
        (
            "minus one is the end of a list",
            json!([{"op": "add", "path": "/l/-1", "value": 3}]),
            Some(json!({"a": {"b": "1"}, "l": [1, 2, 3]})),
        ),
        (
            "so is a dash",
            json!([{"op": "add", "path": "/l/-", "value": 3}]),
            Some(json!({"a": {"b": "1"}, "l": [1, 2, 3]})),
        ),
        (
            "indices count before insertion",
            json!([{"op": "add", "path": "/l/0", "value": 0}]),
            Some(json!({"a": {"b": "1"}, "l": [0, 1, 2]})),
        ),
        (
            "escapes are undone",
            json!([{"op": "add", "path": "/a/x~1y~0", "value": 0}]),
            Some(json!({"a": {"b": "1", "x/y~": 0}, "l": [1, 2]})),
        ),
        (
            "move and copy",
            json!([{"op": "copy", "from": "/a", "path": "/c"}, {"op": "move", "from": "/l", "path": "/a"}]),
            Some(json!({"a": [1, 2], "c": {"b": "1"}})),
        ),
        ("a list may be empty", json!([]), Some(doc.clone())),
        (
            "a failing test fails all",
            json!([{"op": "remove", "path": "/l"}, {"op": "test", "path": "/a/b", "value": "2"}]),
            None,
        ),
        ("what is not there cannot be removed", json!([{"op": "remove", "path": "/z"}]), None),
        ("nothing is added to what is not there", json!([{"op": "add", "path": "/z/a", "value": 1}]), None),
        ("a list ends where it ends", json!([{"op": "add", "path": "/l/9", "value": 1}]), None),
        ("the whole cannot be added", json!([{"op": "add", "path": "", "value": {}}]), None),
        ("an operation must exist", json!([{"op": "foo", "path": "/a"}]), None),
    ];
    for (why, patch, want) in cases {
        match (json(&doc, &patch), want) {
            (Ok(got), Some(want)) => assert_eq!(got, want, "{why}"),
            (Err(status), None) => {
                let words = "the server rejected our request due to an error in our request";
                assert_eq!(
                    (status.code, status.reason, status.message.as_str()),
                    (422, "Invalid", words),
                    "{why}"
                );
            }
            (got, want) => panic!("{why}: {got:?} instead of {want:?}"),
        }
    }
}

#[test]
fn what_is_not_a_patch_is_a_bad_request() {
    let cases = [
        (json!({"op": "add"}), "object into Go value of type []handlers.jsonPatchOp"),
        (json!([1]), "number into Go value of type handlers.jsonPatchOp"),
        (json!([{"op": 1}]), "number into Go struct field jsonPatchOp.op of type string"),
        (json!([{"op": "add", "path": 1}]), "number into Go struct field jsonPatchOp.path of type string"),
    ];
    for (patch, why) in cases {
        let status = json(&json!({}), &patch).expect_err("the patch must be refused");
        let want = format!("error decoding patch: json: cannot unmarshal {why}");
        assert_eq!((status.code, status.message), (400, want), "{patch}");
    }
    let many = Value::Array(vec![json!({"op": "add", "path": "/a", "value": 1}); 10_001]);
    let status = json(&json!({}), &many).expect_err("too many operations must be refused");
    assert_eq!((status.code, status.reason), (413, "RequestEntityTooLarge"));
    assert_eq!(merge(&json!({}), &json!([1])).expect_err("a list is no merge patch").code, 400);
}

#[test]
fn a_merge_patch_drops_nulls_even_inside_lists() {
    let doc = json!({"a": {"b": 1, "c": 2}, "l": [1]});
    let patch = json!({"a": {"b": null, "d": {"e": null, "f": 1}}, "l": [{"x": null, "y": 1}, null]});
    assert_eq!(merge(&doc, &patch), Ok(json!({"a": {"c": 2, "d": {"f": 1}}, "l": [{"y": 1}, null]})));
}

/// Small nested maps without nulls.
fn tree() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![any::<bool>().prop_map(Value::from), (0..3i64).prop_map(Value::from)];
    let node = leaf.prop_recursive(3, 16, 3, |inner| {
        prop::collection::btree_map("[a-d]", inner, 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    });
    prop::collection::btree_map("[a-d]", node, 0..4).prop_map(|map| Value::Object(map.into_iter().collect()))
}

/// The patch that turns one map into another, the slow way.
fn diff(from: &Value, to: &Value) -> Value {
    let (Value::Object(from), Value::Object(to)) = (from, to) else { return to.clone() };
    let mut out = Map::new();
    for key in from.keys().filter(|k| !to.contains_key(*k)) {
        out.insert(key.clone(), Value::Null);
    }
    for (key, new) in to {
        match from.get(key) {
            Some(old) if old == new => {}
            Some(old) if old.is_object() && new.is_object() => {
                out.insert(key.clone(), diff(old, new));
            }
            _ => {
                out.insert(key.clone(), new.clone());
            }
        }
    }
    Value::Object(out)
}

proptest! {
    #[test]
    fn a_computed_difference_turns_one_map_into_the_other(from in tree(), to in tree()) {
        let patch = diff(&from, &to);
        prop_assert_eq!(strategic(None, &from, &patch), Ok(to.clone()));
        prop_assert_eq!(merge(&from, &patch), Ok(to));
    }

    #[test]
    fn no_patch_makes_us_panic(doc in tree(), patch in tree()) {
        let text = patch.to_string().replace("\"a\"", "\"$patch\"").replace("\"b\"", "\"$setElementOrder/c\"");
        let patch: Value = serde_json::from_str(&text).unwrap();
        let _ = strategic(None, &doc, &patch);
        let _ = json(&doc, &patch);
    }
}
