//! Filling in defaults, and what becomes of null.

use super::{field, flag};
use serde_json::Value;

/// Fills in defaults, outside in: a default may contain fields that have defaults of their own.
pub(super) fn default(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let properties = schema.get("properties").and_then(Value::as_object);
            for (name, property) in properties.into_iter().flatten() {
                let Some(default) = property.get("default").filter(|default| !default.is_null()) else {
                    continue;
                };
                let missing = fields.get(name).is_none_or(|value| refused_null(value, property));
                if missing {
                    fields.insert(name.clone(), default.clone());
                }
            }
            for (name, value) in fields.iter_mut() {
                let Some(schema) = field(schema, name) else { continue };
                let property = properties.is_some_and(|properties| properties.contains_key(name));
                if !property && refused_null(value, schema) {
                    *value = schema.get("default").cloned().unwrap_or(Value::Null);
                }
                default(schema, value);
            }
        }
        Value::Array(items) => {
            let Some(schema) = schema.get("items") else { return };
            for item in items {
                if refused_null(item, schema) {
                    *item = schema.get("default").cloned().unwrap_or(Value::Null);
                }
                default(schema, item);
            }
        }
        _ => {}
    }
}

/// Drops nulls that are not allowed and that no default will replace.
pub(super) fn drop_nulls(schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|name, value| {
                let schema = field(schema, name);
                !schema.is_some_and(|schema| refused_null(value, schema) && schema.get("default").is_none())
            });
            for (name, value) in fields.iter_mut() {
                if let Some(schema) = field(schema, name) {
                    drop_nulls(schema, value);
                }
            }
        }
        Value::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    drop_nulls(schema, item);
                }
            }
        }
        _ => {}
    }
}

fn refused_null(value: &Value, schema: &Value) -> bool {
    value.is_null() && !flag(schema, "nullable")
}
