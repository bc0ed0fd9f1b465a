//! What do kinds of several groups share?
//!
//! The types of `k8s-openapi` know their schemas only with a feature that everything built with it would pay for.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A point in time, as RFC 3339 has it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Time(pub String);

/// An amount such as `500m` or `4Gi`, or a whole number.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Quantity(pub Value);

/// A whole number, or text.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct IntOrString(pub Value);

/// Fields of any kind, kept as they are.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Anything(pub Value);

/// How Kubernetes writes amounts.
const AMOUNT: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

macro_rules! schema {
    ($type:ident, $schema:expr) => {
        impl JsonSchema for $type {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}
pub(crate) use schema;

schema!(Time, json_schema!({"type": "string", "format": "date-time"}));
schema!(Quantity, json_schema!({"x-kubernetes-int-or-string": true, "pattern": AMOUNT}));
schema!(Anything, json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}));
schema!(IntOrString, json_schema!({"x-kubernetes-int-or-string": true}));

/// Labels that are asked for. All of it must hold; nothing in it holds for everything.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels with exactly these values.
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Labels compared with lists of values.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<Requirement>>,
}

/// What is asked of one label.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Requirement {
    /// The label.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// What it is compared with.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// Something that is so or not, since when and why.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[schemars(length(max = 316))]
    pub r#type: String,
    /// Whether it is so.
    pub status: Truth,
    /// Why, in one word.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// Why, in a sentence.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// Since when.
    pub last_transition_time: Time,
    /// Which generation of the object it was found for.
    #[schemars(range(min = 0))]
    pub observed_generation: Option<i64>,
}

/// Three kinds of truth.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Truth {
    True,
    False,
    Unknown,
}
