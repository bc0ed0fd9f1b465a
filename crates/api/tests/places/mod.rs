//! What two placement controllers make of the same fleet, in a form that can be compared.

pub mod generate;
pub mod listed;
pub mod ours;
pub mod rows;

#[path = "../worlds/dice.rs"]
#[allow(dead_code, reason = "not every throw is needed here")]
pub mod dice;

use loadline_core::place::{MISCONFIGURED, SATISFIED};
use serde_json::Value;
use std::collections::BTreeMap;

/// Text at a JSON pointer, empty if there is none.
pub fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// Namespace and name of an object.
pub fn key(object: &Value) -> (String, String) {
    (text(object, "/metadata/namespace").to_owned(), text(object, "/metadata/name").to_owned())
}

/// A published slice: its name, its labels, its clusters in the order in which they are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub clusters: Vec<String>,
}

/// A group in the status: its name, its slices, and how many clusters it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    pub index: i64,
    pub name: String,
    pub slices: Vec<String>,
    pub clusters: i64,
}

/// A condition: its status, its reason, its message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    pub status: bool,
    pub reason: String,
    pub message: String,
}

/// What became of a placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Result {
    pub slices: Vec<Slice>,
    pub selected: i64,
    pub groups: Vec<Group>,
    pub satisfied: Said,
    pub misconfigured: Said,
}

/// What the controller wrote: all placements by namespace and name. Those it said nothing about are left out.
pub fn written(placements: &[Value], decisions: &[Value]) -> BTreeMap<(String, String), Result> {
    let mut out = BTreeMap::new();
    for placement in placements {
        let key = key(placement);
        let said = |kind: &str| {
            let all = placement.pointer("/status/conditions").and_then(Value::as_array)?;
            let one = all.iter().find(|one| one["type"] == kind)?;
            Some(Said {
                status: text(one, "/status") == "True",
                reason: text(one, "/reason").to_owned(),
                message: text(one, "/message").to_owned(),
            })
        };
        let (Some(satisfied), Some(misconfigured)) = (said(SATISFIED), said(MISCONFIGURED)) else { continue };
        let number = |value: &Value| value.as_i64().unwrap_or(0);
        let strings = |value: &Value, pointer: &str| {
            let items = value.as_array().into_iter().flatten();
            items.map(|item| text(item, pointer).to_owned()).collect::<Vec<String>>()
        };
        let groups = placement.pointer("/status/decisionGroups").and_then(Value::as_array);
        let group = |one: &Value| Group {
            index: number(&one["decisionGroupIndex"]),
            name: text(one, "/decisionGroupName").to_owned(),
            slices: strings(&one["decisions"], ""),
            clusters: number(&one["clusterCount"]),
        };
        let own = decisions.iter().filter(|one| {
            text(one, "/metadata/namespace") == key.0
                && one["metadata"]["labels"]["cluster.open-cluster-management.io/placement"] == key.1
        });
        let slice = |one: &Value| Slice {
            name: text(one, "/metadata/name").to_owned(),
            labels: serde_json::from_value(one["metadata"]["labels"].clone()).expect("labels"),
            clusters: strings(&one["status"]["decisions"], "/clusterName"),
        };
        let mut slices: Vec<Slice> = own.map(slice).collect();
        slices.sort_by(|a, b| a.name.cmp(&b.name));
        let result = Result {
            slices,
            selected: number(&placement["status"]["numberOfSelectedClusters"]),
            groups: groups.into_iter().flatten().map(group).collect(),
            satisfied,
            misconfigured,
        };
        out.insert(key, result);
    }
    out
}
