//! How does a list of objects look as rows and columns?
//!
//! Clients that only print (`kubectl get`) ask for a `meta.k8s.io/v1` Table and show the cells as they come, so
//! columns and cells are part of the wire contract. Everything here is a pure function of the objects and a clock
//! reading. A `Status` is never turned into a table: kube-apiserver sends it as it is.
//!
//! | question | module |
//! |---|---|
//! | how old is it, as people write it? | `age` |
//! | which columns does a built-in kind have? | `columns`, and one module per family of kinds |
//! | what does a printer column of a custom resource show? | `custom` |

mod age;
mod cells;
mod columns;
mod custom;
mod meta;
mod metrics;
mod network;
mod node;
mod pod;
mod storage;
mod workload;

#[cfg(test)]
mod tests;

pub(crate) use custom::CustomColumn;

use columns::Column;
use jiff::Timestamp;
use serde_json::{Value, json};

/// How much of each object travels with its row (`includeObject` of a Table request).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum IncludeObject {
    /// The object's metadata, as `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// Nothing.
    None,
    /// The whole object.
    Object,
}

impl IncludeObject {
    /// Reads the query parameter; an empty one means the default, `None` an unknown word.
    #[must_use]
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "" | "Metadata" => Some(Self::Metadata),
            "None" => Some(Self::None),
            "Object" => Some(Self::Object),
            _ => None,
        }
    }
}

/// Whether column definitions are sent: a watch sends them with its first event only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Headers {
    /// With every column's definition.
    #[default]
    Show,
    /// Rows only; `columnDefinitions` is null.
    Omit,
}

/// What a table is made for.
#[derive(Debug, Clone)]
pub(crate) struct Request<'a> {
    /// API group, empty for the core group.
    pub group: &'a str,
    /// Plural resource, with its subresource if one was asked for: `pods`, `deployments/scale`.
    pub resource: &'a str,
    /// Printer columns when this is a custom resource (see [`CustomColumn::of_version`]).
    pub custom: Option<&'a [CustomColumn]>,
    /// Metadata of the list; `None` when a single object was asked for, whose revision is then used.
    pub list_meta: Option<Value>,
    /// What travels with each row.
    pub include: IncludeObject,
    /// With or without column definitions.
    pub headers: Headers,
    /// What ages are counted to.
    pub now: Timestamp,
}

/// Columns and cells before they are wrapped into the wire format.
struct Grid {
    columns: Vec<Value>,
    rows: Vec<Vec<Value>>,
    /// Whether no rows at all are sent as null, which is what generic printing upstream does.
    null_when_empty: bool,
}

/// Renders `objects` as a `meta.k8s.io/v1` Table.
pub(crate) fn render<'o>(request: &Request<'_>, objects: impl IntoIterator<Item = &'o Value>) -> Value {
    let objects: Vec<&Value> = objects.into_iter().collect();
    let grid = grid(request, &objects);
    let conditions = columns::conditions(request.group, request.resource);
    let rows: Vec<Value> = grid
        .rows
        .into_iter()
        .zip(&objects)
        .map(|(cells, object)| {
            let mut row = json!({ "cells": cells, "object": included(request, object) });
            if let Some(conditions) = conditions(object) {
                row["conditions"] = conditions;
            }
            row
        })
        .collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_meta(request, &objects),
        "columnDefinitions": match request.headers {
            Headers::Show if !grid.columns.is_empty() => Value::Array(grid.columns),
            _ => Value::Null,
        },
        "rows": if rows.is_empty() && grid.null_when_empty { Value::Null } else { Value::Array(rows) },
    })
}

fn grid(request: &Request<'_>, objects: &[&Value]) -> Grid {
    if let Some(custom) = request.custom {
        return custom::grid(custom, objects, request.now);
    }
    if request.group == "metrics.k8s.io" {
        return metrics::grid(objects);
    }
    let printer = columns::printer(request.group, request.resource);
    Grid {
        columns: printer.columns.iter().copied().map(Column::to_json).collect(),
        rows: objects.iter().map(|object| (printer.cells)(object, request.now)).collect(),
        null_when_empty: printer.generic,
    }
}

fn included(request: &Request<'_>, object: &Value) -> Value {
    match request.include {
        IncludeObject::None => Value::Null,
        IncludeObject::Object => object.clone(),
        IncludeObject::Metadata => {
            let mut metadata = object.get("metadata").cloned().unwrap_or_else(|| json!({}));
            if (request.group, request.resource) == ("apps", "daemonsets") {
                forget_template_generation(&mut metadata);
            }
            json!({ "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": metadata })
        }
    }
}

/// This annotation stands for a field of the object that upstream keeps elsewhere, so metadata alone lacks it.
fn forget_template_generation(metadata: &mut Value) {
    let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) else { return };
    annotations.remove("deprecated.daemonset.template.generation");
    if annotations.is_empty()
        && let Some(metadata) = metadata.as_object_mut()
    {
        metadata.remove("annotations");
    }
}

fn list_meta(request: &Request<'_>, objects: &[&Value]) -> Value {
    match (&request.list_meta, objects) {
        (Some(meta), _) => meta.clone(),
        (None, [object]) => match object.pointer("/metadata/resourceVersion") {
            Some(revision) => json!({ "resourceVersion": revision }),
            None => json!({}),
        },
        (None, _) => json!({}),
    }
}
