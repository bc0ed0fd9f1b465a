//! One value through a typed decode and encode.

use super::{Omit, Table, Type};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loadline_machinery::quantity::{Quantity, stored};
use serde_json::{Map, Value};

/// Encodes a struct; fields the type does not have are dropped. What is not an object counts as the zero value.
pub(super) fn encode_struct(table: &Table, id: usize, value: Value) -> Value {
    let Some(ty) = table.structs.get(id) else { return value };
    let mut source = match value {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => return other,
    };
    let mut out = Map::new();
    for field in &ty.fields {
        let found = source.remove(field.name).unwrap_or(Value::Null);
        if let Some(value) = encode_field(table, &field.ty, field.omit, found) {
            out.insert(field.name.to_owned(), value);
        }
    }
    Value::Object(out)
}

fn encode_field(table: &Table, ty: &Type, omit: Omit, value: Value) -> Option<Value> {
    let value = encode(table, ty, value);
    let empty = match ty {
        Type::Pointer(_) | Type::List(_) | Type::Map(_) | Type::Bytes => value.is_null(),
        Type::Text => value.as_str() == Some(""),
        Type::Bool => value == Value::Bool(false),
        Type::Number => value.as_f64() == Some(0.0),
        // Structs are never empty for the encoder, whatever they hold.
        Type::Struct(_) | Type::Quantity | Type::IntOrString | Type::Raw | Type::SchemaOr => false,
        Type::Time | Type::MicroTime => omit == Omit::Zero && value.is_null(),
    };
    (omit == Omit::Never || !empty).then_some(value)
}

/// The full encoding of a value, never left out: absent (`null`) becomes the zero value of the type.
fn encode(table: &Table, ty: &Type, value: Value) -> Value {
    match ty {
        Type::Pointer(_) if value.is_null() => Value::Null,
        Type::Pointer(inner) => encode(table, inner, value),
        Type::List(inner) => match value {
            Value::Array(items) if items.is_empty() => Value::Null,
            Value::Array(items) => items.into_iter().map(|item| encode(table, inner, item)).collect(),
            other => other,
        },
        Type::Map(inner) => match value {
            Value::Object(map) if map.is_empty() => Value::Null,
            Value::Object(map) => {
                map.into_iter().map(|(k, v)| (k, encode_entry(table, inner, v))).collect::<Map<_, _>>().into()
            }
            other => other,
        },
        Type::Struct(id) => encode_struct(table, *id, value),
        Type::Text => or_zero(value, || Value::String(String::new())),
        Type::Bool => or_zero(value, || Value::Bool(false)),
        Type::Number | Type::IntOrString => or_zero(value, || Value::from(0)),
        Type::Bytes => match value {
            Value::String(text) if text.is_empty() => Value::Null,
            Value::String(text) => match STANDARD.decode(&text) {
                Ok(bytes) => Value::String(STANDARD.encode(bytes)),
                Err(_) => Value::String(text),
            },
            other => other,
        },
        Type::Time => time(value, false),
        Type::MicroTime => time(value, true),
        Type::Quantity => quantity(value, false),
        Type::Raw => value,
        Type::SchemaOr => match value {
            Value::Object(_) => encode_struct(table, table.schema, value),
            Value::Array(items) => {
                items.into_iter().map(|item| encode(table, &Type::SchemaOr, item)).collect()
            }
            other => other,
        },
    }
}

/// A value of a map: like [`encode`], except that empty bytes stay and amounts are rounded up to thousandths, which
/// is what resource lists are limited to.
fn encode_entry(table: &Table, ty: &Type, value: Value) -> Value {
    match (ty, value) {
        (Type::Bytes, Value::Null) => Value::String(String::new()),
        (Type::Bytes, Value::String(text)) if text.is_empty() => Value::String(text),
        (Type::Quantity, value) => quantity(value, true),
        (_, value) => encode(table, ty, value),
    }
}

fn or_zero(value: Value, zero: impl FnOnce() -> Value) -> Value {
    if value.is_null() { zero() } else { value }
}

fn quantity(value: Value, thousandths: bool) -> Value {
    let text = match &value {
        Value::Null => return Value::String("0".to_owned()),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return value,
    };
    let Ok(amount) = text.parse::<Quantity>() else { return value };
    match amount.round_up_to_milli() {
        rounded if thousandths && rounded != amount => Value::String(rounded.to_string()),
        // Not the canonical form of the amount: some texts are kept.
        _ => stored(&text).map_or(value, Value::String),
    }
}

/// Times are kept in UTC and whole seconds, or with six decimals.
fn time(value: Value, micro: bool) -> Value {
    let Value::String(text) = value else { return value };
    let Ok(at) = text.parse::<jiff::Timestamp>() else { return Value::String(text) };
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Value::String(at.strftime(format).to_string())
}
