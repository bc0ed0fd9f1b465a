use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::schema::{Definitions, Schema};

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

#[test]
fn mistakes_are_told_as_upstream_tells_them() {
    for (schema, value, want) in [
        (
            json!({"type": "integer"}),
            json!("x"),
            vec![r#"spec.a: Invalid value: "string": spec.a in body must be of type integer: "string""#],
        ),
        (
            json!({"type": "integer"}),
            json!(null),
            vec![r#"spec.a: Invalid value: "null": spec.a in body must be of type integer: "null""#],
        ),
        (json!({"type": "integer", "nullable": true}), json!(null), vec![]),
        (json!({"type": "integer"}), json!(1.0), vec![]),
        (
            json!({"type": "integer", "format": "int32"}),
            json!(3_000_000_000_i64),
            vec![r#"<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.a"#],
        ),
        (
            json!({"type": "integer", "minimum": 1}),
            json!(0),
            vec!["spec.a: Invalid value: 0: spec.a in body should be greater than or equal to 1"],
        ),
        (
            json!({"type": "number", "maximum": 0.5, "exclusiveMaximum": true}),
            json!(0.5),
            vec!["spec.a: Invalid value: 0.5: spec.a in body should be less than 0.5"],
        ),
        (
            json!({"type": "integer", "multipleOf": 5}),
            json!(7),
            vec!["spec.a: Invalid value: 7: spec.a in body should be a multiple of 5"],
        ),
        (
            json!({"type": "string", "enum": ["x", "y"]}),
            json!("z"),
            vec![r#"spec.a: Unsupported value: "z": supported values: "x", "y""#],
        ),
        (
            json!({"type": "string", "maxLength": 2}),
            json!("xyz"),
            vec!["spec.a: Too long: may not be more than 2 bytes"],
        ),
        (
            json!({"type": "string", "minLength": 2}),
            json!("x"),
            vec![r#"spec.a: Invalid value: "x": spec.a in body should be at least 2 chars long"#],
        ),
        (
            json!({"type": "string", "pattern": "^a+$"}),
            json!("b"),
            vec![r#"spec.a: Invalid value: "b": spec.a in body should match '^a+$'"#],
        ),
        (
            json!({"type": "string", "format": "date-time"}),
            json!("soon"),
            vec![r#"spec.a: Invalid value: "soon": spec.a in body must be of type date-time: "soon""#],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "maxItems": 1}),
            json!(["x", "y"]),
            vec!["spec.a: Too many: 2: must have at most 1 item"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 1}),
            json!([]),
            vec!["spec.a: Invalid value: 0: spec.a in body should have at least 1 items"],
        ),
        (
            json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
            json!(["x", "x", "x"]),
            vec![r#"spec.a[1]: Duplicate value: "x""#],
        ),
        (
            json!({
                "type": "array", "items": {"type": "object", "properties": {"k": {"type": "string"}}},
                "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
            }),
            json!([{"k": "x"}, {"k": "x"}]),
            vec![r#"spec.a[1]: Duplicate value: {"k":"x"}"#],
        ),
        (
            json!({"type": "object", "required": ["b"], "properties": {"b": {"type": "string"}}}),
            json!({}),
            vec!["spec.a.b: Required value"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 1}),
            json!({"x": 1, "y": "z"}),
            vec![
                "spec.a: Too many: 2: must have at most 1 item",
                r#"spec.a.x: Invalid value: "integer": spec.a.x in body must be of type string: "integer""#,
            ],
        ),
        (
            json!({"x-kubernetes-int-or-string": true}),
            json!(true),
            vec![r#"spec.a: Invalid value: "boolean": spec.a in body must be of type integer,string: "boolean""#],
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                   "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            json!({}),
            vec![
                r#"<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found none valid"#,
                "spec.a.x: Required value",
            ],
        ),
        (
            json!({"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "string"}},
                   "oneOf": [{"required": ["x"]}, {"required": ["y"]}]}),
            json!({"x": "", "y": ""}),
            vec![
                r#"<nil>: Invalid value: "": "spec.a" must validate one and only one schema (oneOf). Found 2 valid alternatives"#,
            ],
        ),
        (
            json!({"type": "integer", "anyOf": [{"minimum": 5}, {"maximum": 1}]}),
            json!(3),
            vec![
                r#"<nil>: Invalid value: "": "spec.a" must validate at least one schema (anyOf)"#,
                "spec.a: Invalid value: 3: spec.a in body should be greater than or equal to 5",
            ],
        ),
        (
            json!({"type": "integer", "not": {"minimum": 5}}),
            json!(7),
            vec![r#"<nil>: Invalid value: "": "spec.a" must not validate the schema (not)"#],
        ),
    ] {
        assert_eq!(errors(&around(&schema), &json!({"spec": {"a": value}}), None), want, "{schema} {value}");
    }
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
            "metadata.foo", "spec.embedded.bar", "spec.foo", "spec.kept.known.bar", "spec.list[0].bar",
            "spec.map.m.bar", "zoo", "spec.embedded.metadata.bar",
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
        (json!({"spec": {"c": {}, "e": [{}]}}), json!({"spec": {"a": 1, "b": 2, "c": {"d": "x"}, "e": [{"f": true}]}}), "nested"),
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

#[test]
fn schemas_that_are_not_structural_are_refused() {
    for (schema, want) in [
        (json!({"type": "object"}), vec![]),
        (json!({}), vec!["s.type: Required value: must not be empty at the root"]),
        (
            json!({"type": "object", "properties": {"a": {}}}),
            vec!["s.properties[a].type: Required value: must not be empty for specified object fields"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array"}}}),
            vec!["s.properties[a].items: Required value: must be specified"],
        ),
        (
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            vec!["s.additionalProperties: Forbidden: must not be used at the root"],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}},
                   "anyOf": [{"properties": {"a": {"type": "string"}, "b": {"minLength": 1}}}]}),
            vec![
                "s.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
                "s.properties[b]: Required value: because it is defined in s.anyOf[0].properties[b]",
            ],
        ),
        (
            json!({"type": "object", "properties": {"a": {"x-kubernetes-int-or-string": true,
                   "anyOf": [{"type": "integer"}, {"type": "string"}]}}}),
            vec![],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "integer", "default": "x"}}}),
            vec![r#"s.properties[a].default: Invalid value: "string":  in body must be of type integer: "string""#],
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object"},
                   "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"]}}}),
            vec![
                r#"s.properties[a].x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties"#,
            ],
        ),
        (
            json!({"type": "object", "properties": {"metadata": {"type": "object", "properties": {"labels": {"type": "object"}}}}}),
            vec![
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified",
            ],
        ),
    ] {
        let got: Vec<String> = check(&schema, "s").iter().map(ToString::to_string).collect();
        assert_eq!(got, want, "{schema}");
    }
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
