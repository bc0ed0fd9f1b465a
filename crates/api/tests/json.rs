//! Do things that know how to read themselves read a tree as they read a value, with the same words about what is wrong?

use loadline_api::json::Tree;
use loadline_core::quantity::Quantity;
use loadline_core::requests::Status;
use loadline_core::select::node::NodeAffinity;
use loadline_core::select::{LabelSelector, Taint, Toleration};
use loadline_core::view::Phase;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// JSON that is nearly, or quite, what Kubernetes writes.
fn nearly() -> impl Strategy<Value = Value> {
    let names = "key|operator|values|value|effect|tolerationSeconds|matchLabels|matchExpressions|timeAdded\
        |requiredDuringSchedulingIgnoredDuringExecution|preferredDuringSchedulingIgnoredDuringExecution\
        |nodeSelectorTerms|matchFields|weight|preference|containerStatuses|resources|requests|limits|name\
        |allocatedResources|cpu|Running|NoSchedule";
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![-3..300_i64, any::<i64>()].prop_map(Value::from),
        (-2.0..2.0_f64).prop_map(Value::from),
        "In|Exists|NoSchedule|Running|Pending|[a-c]|1Gi|100m|0.5|-1|2025-01-01T00:00:00Z"
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 5, move |inner| {
        prop_oneof![
            1 => prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            3 => prop::collection::btree_map(names, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// What a thing makes of a value and of the value's tree, as text.
fn both<T: DeserializeOwned + std::fmt::Debug>(value: &Value) -> (String, String) {
    let tree = Tree::from(value);
    let shown = |read: Result<T, serde_json::Error>| match read {
        Ok(read) => format!("{read:?}"),
        Err(error) => format!("error: {error}"),
    };
    (shown(T::deserialize(value)), shown(T::deserialize(&tree)))
}

fn same_of_all(value: &Value) -> Result<(), TestCaseError> {
    for (from_value, from_tree) in [
        both::<LabelSelector>(value),
        both::<NodeAffinity>(value),
        both::<Taint>(value),
        both::<Toleration>(value),
        both::<Quantity>(value),
        both::<Phase>(value),
        both::<Status>(value),
        both::<Option<Vec<(String, i32)>>>(value),
    ] {
        prop_assert_eq!(from_value, from_tree, "{}", value);
    }
    Ok(())
}

#[test]
fn what_is_wrong_is_told_in_the_words_used_for_values() {
    for value in [
        json!({"matchLabels": [1, 2]}),
        json!({"matchExpressions": [["k", "In", [], "too", "many"]]}),
        json!({"Running": null}),
        json!({"Running": 1}),
        json!({"Running": null, "Pending": null}),
        json!({}),
        json!("Walking"),
        json!([["a", 1], ["b", 1, 2]]),
        json!([["a", 1.5]]),
        json!([["a", 5_000_000_000_i64]]),
        json!(1.0),
    ] {
        same_of_all(&value).expect("the same");
    }
}

proptest! {
    #[test]
    fn things_read_themselves_from_a_tree_as_from_a_value(value in nearly()) {
        same_of_all(&value)?;
    }
}
