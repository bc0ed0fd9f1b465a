//! What do kinds of this group share?

use crate::schema::parts::{IntOrString, schema};
use kube::KubeSchema;
use kube::core::Rule;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A label of RFC 1123, but for its length.
pub const DNS_LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// The key of a label, but for the length of its prefix.
const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
/// The value of a label, but for its length.
const LABEL_VALUE: &str = "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$";

/// The name of something in a list: a label of RFC 1123.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Name(pub String);

/// The name of a line. Crane's examples have some with underscores and its definition takes anything, so there are such
/// objects; what is taken here is what can stand in a label.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LineName(pub String);

/// The key of a label, such as `example.com/team`.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LabelKey(pub String);

/// The value of a label.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct LabelValue(pub String);

schema!(Name, json_schema!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": DNS_LABEL}));
schema!(LineName, json_schema!({"type": "string", "minLength": 1, "maxLength": 63, "pattern": LABEL_VALUE}));
schema!(LabelKey, json_schema!({"type": "string", "minLength": 1, "maxLength": 317, "pattern": LABEL_KEY}));
schema!(LabelValue, json_schema!({"type": "string", "maxLength": 63, "pattern": LABEL_VALUE}));

/// Labels that are asked for. All of it must hold.
#[derive(Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-map-type" = "atomic"))]
pub struct Selector {
    /// Labels with exactly these values, at most 64.
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = keys())]
    pub match_labels: Option<BTreeMap<String, LabelValue>>,
    /// Labels compared with lists of values, at most 64.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<Requirement>>,
}

/// What is asked of one label.
#[derive(Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[x_kube(validation = compared())]
pub struct Requirement {
    /// The label.
    #[x_kube(validation = prefix())]
    pub key: LabelKey,
    /// How it is compared.
    pub operator: Operator,
    /// What it is compared with, at most 64 values.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<LabelValue>>,
}

/// Whether a label has one of the values, none of them, any value, or is absent.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

/// Keys of a map have no schema.
fn keys() -> Rule {
    // A backslash in a rule is written twice.
    let pattern = LABEL_KEY.replace('\\', r"\\");
    Rule::new(format!("self.all(key, key.matches('{pattern}') && key.indexOf('/') <= 253)"))
        .message("keys must be those of labels: a name of at most 63 characters, with a DNS name and '/' before it or not")
}

fn prefix() -> Rule {
    Rule::new("self.indexOf('/') <= 253").message("what is before '/' must have at most 253 characters")
}

fn compared() -> Rule {
    let rule = "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)";
    Rule::new(rule)
        .message("In and NotIn need values, Exists and DoesNotExist have none")
        .field_path(".values")
}

/// The name of a port, but for its length: a letter in it, '-' neither at an end nor twice in a row.
const PORT_NAME: &str = "^([0-9]+-)*[0-9]*[a-z](-?[a-z0-9])*$";

/// A question over HTTP.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpGet {
    /// What is asked for.
    #[schemars(length(max = 4096))]
    pub path: Option<String>,
    /// The number of a port, from 1 to 65535, or its name: at most 15 lower-case letters, digits and single '-'.
    #[schemars(extend("minimum" = 1, "maximum" = 65535, "maxLength" = 15, "pattern" = PORT_NAME))]
    pub port: IntOrString,
    /// Who is asked.
    pub host: Option<String>,
    /// How.
    #[schemars(extend("default" = "HTTP"))]
    pub scheme: Option<Scheme>,
    /// What is said besides.
    pub http_headers: Option<Vec<HttpHeader>>,
}

/// In the clear, or not.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Scheme {
    Http,
    Https,
}

/// A header of a request.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct HttpHeader {
    /// Letters, digits and '-'.
    #[schemars(regex(pattern = "^[-A-Za-z0-9]+$"))]
    pub name: String,
    /// Anything.
    pub value: String,
}
