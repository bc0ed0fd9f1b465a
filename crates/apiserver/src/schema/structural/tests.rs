use super::*;
use crate::schema::{Definitions, Schema};
use proptest::prelude::*;
use serde_json::json;

fn with<T>(schema: &Value, act: impl FnOnce(View<'_>) -> T) -> T {
    let definitions = Definitions::default();
    act(Schema::from_openapi(schema).standalone(&definitions))
}

/// A schema with one field of interest, `spec.a`.
fn around(a: &Value) -> Value {
    json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": a}}}})
}

fn errors(schema: &Value, value: &Value, old: Option<&Value>) -> Vec<String> {
    with(schema, |view| validate(view, value, old)).iter().map(ToString::to_string).collect()
}

/// What kube-apiserver v1.36.3 answered.
fn recorded(part: &str) -> Vec<Value> {
    let recorded: Value = serde_json::from_str(include_str!("../../../recorded/structural.json")).unwrap();
    recorded[part].as_array().unwrap().clone()
}

fn with_reasons(errors: &[FieldError]) -> Value {
    let lines = errors.iter().map(|error| format!("{error}|{}", error.mistake.reason()));
    lines.map(Value::from).collect()
}

#[test]
fn mistakes_are_told_as_upstream_tells_them() {
    for case in recorded("values") {
        let object = json!({"spec": {"a": case["value"]}});
        let found = with(&around(&case["schema"]), |view| validate(view, &object, None));
        assert_eq!(with_reasons(&found), case["errors"], "{case}");
    }
}

#[test]
fn schemas_that_are_not_structural_are_refused_as_upstream_refuses_them() {
    for case in recorded("schemas") {
        let found = check(&case["schema"], "spec.validation.openAPIV3Schema");
        assert_eq!(with_reasons(&found), case["errors"], "{case}");
    }
}

#[test]
fn null_is_a_value_only_where_it_is_allowed() {
    let schema = around(&json!({"type": "integer"}));
    let value = json!({"spec": {"a": null}});
    assert_eq!(
        errors(&schema, &value, None),
        [r#"spec.a: Invalid value: "null": spec.a in body must be of type integer: "null""#]
    );
    assert_eq!(errors(&around(&json!({"type": "integer", "nullable": true})), &value, None), [""; 0]);
}

#[test]
fn what_was_wrong_before_and_is_unchanged_is_forgiven() {
    let schema = around(&json!({
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
        "items": {"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer", "maximum": 1}}},
    }));
    let old = json!({"spec": {"a": [{"k": "x", "v": 5}]}});
    let added = json!({"spec": {"a": [{"k": "y", "v": 1}, {"k": "x", "v": 5}]}});
    assert_eq!(errors(&schema, &added, Some(&old)), Vec::<String>::new());
    let changed = json!({"spec": {"a": [{"k": "x", "v": 6}]}});
    assert_eq!(errors(&schema, &changed, Some(&old)).len(), 1);
}

#[test]
fn unknown_fields_are_pruned_and_listed_in_order() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
        "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object"}},
        "kept": {"type": "object", "x-kubernetes-preserve-unknown-fields": true,
                 "properties": {"known": {"type": "object"}}},
        "embedded": {"type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}}},
    }}}});
    let mut value = json!({
        "apiVersion": "v1", "kind": "K", "metadata": {"name": "n", "foo": 1}, "zoo": 1,
        "spec": {
            "list": [{"k": "x", "bar": 1}], "map": {"m": {"bar": 1}}, "foo": {"bar": 1},
            "kept": {"any": {"thing": 1}, "known": {"bar": 1}},
            "embedded": {"apiVersion": "v1", "kind": "E", "metadata": {"name": "e", "bar": 1}, "bar": 1},
        },
    });
    let dropped = with(&schema, |view| coerce(view, &mut value)).unwrap();
    assert_eq!(
        dropped,
        [
            "metadata.foo",
            "spec.embedded.bar",
            "spec.foo",
            "spec.kept.known.bar",
            "spec.list[0].bar",
            "spec.map.m.bar",
            "zoo",
            "spec.embedded.metadata.bar",
        ]
    );
    assert_eq!(
        value,
        json!({
            "apiVersion": "v1", "kind": "K", "metadata": {"name": "n"},
            "spec": {
                "list": [{"k": "x"}], "map": {"m": {}}, "kept": {"any": {"thing": 1}, "known": {}},
                "embedded": {"apiVersion": "v1", "kind": "E", "metadata": {"name": "e"}},
            },
        })
    );
}

#[test]
fn defaults_fill_what_is_missing_and_null_that_is_not_allowed() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "a": {"type": "integer", "default": 1},
        "b": {"type": "integer", "default": 2, "nullable": true},
        "c": {"type": "object", "properties": {"d": {"type": "string", "default": "x"}}},
        "e": {"type": "array", "items": {"type": "object", "properties": {"f": {"type": "boolean", "default": true}}}},
    }}}});
    for (value, want, why) in [
        (json!({}), json!({"spec": {"a": 1, "b": 2}}), "a default with defaults inside"),
        (json!({"spec": {"a": null, "b": null}}), json!({"spec": {"a": 1, "b": null}}), "null"),
        (
            json!({"spec": {"c": {}, "e": [{}]}}),
            json!({"spec": {"a": 1, "b": 2, "c": {"d": "x"}, "e": [{"f": true}]}}),
            "nested",
        ),
    ] {
        let mut value = value;
        with(&schema, |view| default(view, &mut value));
        assert_eq!(value, want, "{why}");
    }
}

#[test]
fn metadata_of_a_wrong_type_is_refused() {
    let mut value = json!({"metadata": {"labels": {"a": 1}}});
    let error = with(&json!({"type": "object"}), |view| coerce(view, &mut value)).unwrap_err();
    assert_eq!(
        error.0,
        "json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string"
    );
}

/// Objects around one schema: known and unknown fields, nulls, wrong types.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..20_i64).prop_map(Value::from),
        "[a-c]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-f]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn sample() -> Value {
    json!({"type": "object", "properties": {
        "a": {"type": "integer", "default": 3, "maximum": 10},
        "b": {"type": "object", "default": {}, "properties": {
            "a": {"type": "string", "default": "x"}, "c": {"type": "boolean", "nullable": true}}},
        "c": {"type": "array", "items": {"type": "object", "properties": {"a": {"type": "integer", "default": 1}}}},
        "d": {"type": "object", "additionalProperties": {"type": "string", "default": "y"}},
        "e": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
    }})
}

proptest! {
    #[test]
    fn pruning_twice_is_pruning_once(value in anything()) {
        let schema = sample();
        let mut once = value;
        with(&schema, |view| prune(view, &mut once));
        let mut twice = once.clone();
        let dropped = with(&schema, |view| prune(view, &mut twice));
        prop_assert!(dropped.is_empty());
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn defaulting_twice_is_defaulting_once(value in anything()) {
        let schema = sample();
        let mut once = value;
        with(&schema, |view| default(view, &mut once));
        let mut twice = once.clone();
        with(&schema, |view| default(view, &mut twice));
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_valid_object_stays_valid_when_pruned_and_defaulted(value in anything()) {
        let schema = sample();
        let mut value = value;
        let left = with(&schema, |view| {
            if !value.is_object() || !validate(view, &value, None).is_empty() {
                return Vec::new();
            }
            prune(view, &mut value);
            default(view, &mut value);
            validate(view, &value, None)
        });
        prop_assert_eq!(left, Vec::new());
    }
}

#[cfg(feature = "cel")]
#[test]
fn rules_are_evaluated_as_upstream_evaluates_them() {
    let recorded: Vec<Value> = serde_json::from_str(include_str!("../../../recorded/rules.json")).unwrap();
    for case in recorded {
        let whole = |spec: &Value| json!({"metadata": {"name": "n"}, "spec": spec});
        let old = Some(&case["old"]).filter(|old| !old.is_null()).map(whole);
        let found = with(&case["schema"], |view| validate(view, &whole(&case["value"]), old.as_ref()));
        assert_eq!(with_reasons(&found), case["errors"], "{case}");
    }
}
