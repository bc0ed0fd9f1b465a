//! Removing what the schema does not know.

use super::{DecodeError, builtin, child, decode, field, flag};
use serde_json::{Map, Value};

/// Fields every resource has; the schema need not mention them.
const META: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Prunes a whole object.
pub(super) fn root(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    Pruner { dropped: &mut dropped }.prune(Some(schema), Mode { resource: true, preserve: false }, value, "");
    dropped.sort();
    dropped
}

/// Prunes a value that is not a resource.
pub(super) fn part(schema: &Value, value: &mut Value) -> Vec<String> {
    let mut dropped = Vec::new();
    Pruner { dropped: &mut dropped }.prune(Some(schema), Mode::default(), value, "");
    dropped
}

/// What the surroundings say about a value, besides its schema.
#[derive(Clone, Copy, Default)]
struct Mode {
    /// It is a resource.
    resource: bool,
    /// It is an entry of a list that is kept as it is.
    preserve: bool,
}

struct Pruner<'d> {
    dropped: &'d mut Vec<String>,
}

impl Pruner<'_> {
    fn prune(&mut self, schema: Option<&Value>, mode: Mode, value: &mut Value, path: &str) {
        let says = |key: &str| schema.is_some_and(|schema| flag(schema, key));
        let preserve = mode.preserve || says("x-kubernetes-preserve-unknown-fields");
        let resource = mode.resource || says("x-kubernetes-embedded-resource");
        match value {
            Value::Object(fields) => fields.retain(|name, value| {
                if resource && META.contains(&name.as_str()) {
                    return true;
                }
                let below = child(path, name);
                match schema.map_or(Known::No, |schema| known(schema, name)) {
                    Known::As(schema) => {
                        self.prune(schema, Mode::default(), value, &below);
                        true
                    }
                    Known::No if preserve => true,
                    Known::No => {
                        self.dropped.push(below);
                        false
                    }
                }
            }),
            Value::Array(items) => {
                let schema = schema.and_then(|schema| schema.get("items"));
                let mode = Mode { preserve, ..Mode::default() };
                for (index, item) in items.iter_mut().enumerate() {
                    self.prune(schema, mode, item, &format!("{path}[{index}]"));
                }
            }
            _ => {}
        }
    }
}

/// Whether a schema knows a field, and as what.
enum Known<'a> {
    As(Option<&'a Value>),
    No,
}

fn known<'a>(schema: &'a Value, name: &str) -> Known<'a> {
    match field(schema, name) {
        Some(found) => Known::As(Some(found)),
        // `additionalProperties: true` keeps the keys, not what is inside them.
        None if schema.get("additionalProperties").is_some() => Known::As(None),
        None => Known::No,
    }
}

/// Decodes `metadata` as `ObjectMeta`; `path` is where the resource is.
pub(super) fn metadata(value: &mut Value, path: &str) -> Result<Vec<String>, DecodeError> {
    let Some(metadata) = value.get_mut("metadata") else { return Ok(Vec::new()) };
    let decoded = decode::typed_value(builtin::object_meta(), metadata.take())?;
    *metadata = if decoded.value.is_null() { Value::Object(Map::new()) } else { decoded.value };
    let prefix = child(path, "metadata");
    let paths = decoded.strict.iter().filter_map(|error| {
        let name = error.strip_prefix("unknown field \"")?.strip_suffix('"')?;
        Some(format!("{prefix}.{name}"))
    });
    Ok(paths.collect())
}

/// Decodes the metadata of embedded resources.
pub(super) fn embedded(schema: &Value, value: &mut Value, path: &str) -> Result<Vec<String>, DecodeError> {
    let mut dropped = Vec::new();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let Some(schema) = field(schema, name) else { continue };
                let below = child(path, name);
                if flag(schema, "x-kubernetes-embedded-resource") && value.is_object() {
                    dropped.extend(metadata(value, &below)?);
                }
                dropped.extend(embedded(schema, value, &below)?);
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for (index, item) in items.iter_mut().enumerate() {
                    let below = format!("{path}[{index}]");
                    if flag(schema, "x-kubernetes-embedded-resource") && item.is_object() {
                        dropped.extend(metadata(item, &below)?);
                    }
                    dropped.extend(embedded(schema, item, &below)?);
                }
            }
        }
        _ => {}
    }
    Ok(dropped)
}
