use super::{Skip, Tree};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::borrow::Cow;

const SOME: Skip =
    Skip::fields(&["a"]).within(&[("b", Skip::fields(&["c"]).within(&[("d", Skip::fields(&["a"]))]))]);

/// Decodes the value's text, and makes a value of the tree.
fn decoded(skip: Skip, value: &Value) -> Value {
    Value::from(&Tree::parse(value.to_string().as_bytes(), skip).expect("valid JSON"))
}

#[test]
fn only_the_named_fields_are_skipped() {
    for (given, expected, why) in [
        (json!({"a": 1, "e": 2}), json!({"e": 2}), "at the top"),
        (json!({"e": {"a": 1}}), json!({"e": {"a": 1}}), "the same name elsewhere"),
        (json!({"b": {"c": [1], "x": 2}}), json!({"b": {"x": 2}}), "below"),
        (json!({"b": [{"c": 1}, {"x": 1}]}), json!({"b": [{}, {"x": 1}]}), "through lists"),
        (json!({"b": {"d": {"a": 1, "c": 1}}}), json!({"b": {"d": {"c": 1}}}), "further below"),
        (json!({"b": "c"}), json!({"b": "c"}), "something else than expected is kept"),
        (json!(null), json!(null), "not even an object"),
    ] {
        assert_eq!(decoded(SOME, &given), expected, "{why}");
    }
}

#[test]
fn strings_without_escapes_are_slices_of_the_text() {
    let text = r#"{"plain": "as it is", "escaped": "a\"b", "\u0061\nb": "é"}"#;
    let tree = Tree::parse(text.as_bytes(), Skip::NOTHING).expect("valid JSON");
    let Tree::Object(fields) = &tree else { unreachable!("an object") };
    let borrowed = |text: &Cow<'_, str>| matches!(text, Cow::Borrowed(_));
    let found: Vec<_> = fields
        .0
        .iter()
        .map(|(key, value)| {
            let Tree::String(text) = value else { unreachable!("a text") };
            (&**key, borrowed(key), &**text, borrowed(text))
        })
        .collect();
    assert_eq!(
        found,
        [("a\nb", false, "é", true), ("escaped", true, "a\"b", false), ("plain", true, "as it is", true)]
    );
}

#[test]
fn of_fields_of_the_same_name_the_last_counts_and_names_are_in_order() {
    let text = r#"{"b": 1, "a": 2, "c": 3, "b": 4, "a": null, "b": 5}"#;
    let tree = Tree::parse(text.as_bytes(), Skip::NOTHING).expect("valid JSON");
    assert_eq!(tree.to_string(), r#"{"a":null,"b":5,"c":3}"#);
    assert_eq!(Value::from(&tree), serde_json::from_str::<Value>(text).expect("valid JSON"));
    assert_eq!((tree["b"].as_i64(), tree.get("d"), &tree["d"]["e"]), (Some(5), None, &Tree::Null));
}

#[test]
fn what_is_no_json_is_refused() {
    for text in ["", "{", "{} {}", "[1,]", "{\"a\": tru}", "nul"] {
        assert!(Tree::parse(text.as_bytes(), Skip::NOTHING).is_err(), "{text:?}");
    }
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        // Eighths are read as they were written.
        (-9_999..9_999_i32).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[a-z\"\\\\é]{0,4}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map("[a-e]", inner, 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// Reads everything, then takes out.
fn slow(skip: Skip, value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| slow(skip, item)),
        Value::Object(fields) => {
            for name in skip.fields {
                fields.remove(*name);
            }
            for (name, below) in skip.within {
                if let Some(value) = fields.get_mut(*name) {
                    slow(*below, value);
                }
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn skipping_while_reading_is_taking_out_afterwards(value in any_json()) {
        let mut expected = value.clone();
        slow(SOME, &mut expected);
        prop_assert_eq!(decoded(SOME, &value), expected);
    }

    #[test]
    fn a_tree_says_what_its_text_and_its_value_say(value in any_json()) {
        prop_assert_eq!(&decoded(Skip::NOTHING, &value), &value, "nothing named, nothing skipped");
        let (text, tree) = (value.to_string(), Tree::from(&value));
        prop_assert_eq!(&Tree::parse(text.as_bytes(), Skip::NOTHING).expect("valid JSON"), &tree);
        prop_assert_eq!(tree.to_string(), text);
    }
}
