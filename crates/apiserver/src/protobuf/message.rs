//! What a message says, as JSON.
//!
//! Writers of these types put every field on the wire that is not a pointer, zero or not; JSON leaves most zeros
//! out. So a zero of a plain field disappears where Go would not print it, and a zero behind a pointer stays.

use super::Error;
use super::table::{Field, Form, Message, TABLE, Type};
use super::wire::{BYTES, FIXED64, Reader, VARINT};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

/// How deep messages may be nested. JSON text deeper than this is not read either.
const DEEPEST: usize = 100;

/// Reads a message of the table. Fields that come twice are merged or replaced, as protobuf wants.
///
/// # Errors
/// When the bytes are no such message.
pub(super) fn read(id: usize, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    let mut object = Map::new();
    read_into(message(id)?, bytes, DEEPEST, &mut object)?;
    Ok(object)
}

fn message(id: usize) -> Result<&'static Message, Error> {
    TABLE.messages.get(id).ok_or(Error::Depth)
}

fn read_into(
    message: &'static Message,
    bytes: &[u8],
    depth: usize,
    object: &mut Map<String, Value>,
) -> Result<(), Error> {
    let depth = depth.checked_sub(1).ok_or(Error::Depth)?;
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        let (number, wire) = reader.tag(message.go())?;
        match message.field(number) {
            None => reader.skip(wire)?,
            Some(field) => read_field(field, wire, &mut reader, depth, object)?,
        }
    }
    Ok(())
}

fn read_field(
    field: &'static Field,
    wire: u8,
    reader: &mut Reader<'_>,
    depth: usize,
    object: &mut Map<String, Value>,
) -> Result<(), Error> {
    let wrong = || Error::Field { wire, field: field.go() };
    match &field.ty {
        Type::List(inner) if wire == BYTES && wire_of(inner) == VARINT => {
            let mut packed = Reader::new(reader.bytes()?);
            while !packed.is_empty() {
                push(object, field.json, read_value(inner, &mut packed, depth)?);
            }
        }
        ty if wire != wire_of(ty) => return Err(wrong()),
        Type::List(inner) => {
            push(object, field.json, read_value(inner, reader, depth)?);
        }
        Type::Map(inner) => {
            let (key, value) = read_entry(inner, reader.bytes()?, depth)?;
            if let Value::Object(map) = object.entry(field.json).or_insert_with(|| json!({})) {
                map.insert(key, value);
            }
        }
        Type::Message(id) if field.json.is_empty() => {
            read_into(message(*id)?, reader.bytes()?, depth, object)?;
        }
        ty => {
            let (inner, pointer) = match ty {
                Type::Pointer(inner) => (inner.as_ref(), true),
                plain => (plain, false),
            };
            if let Type::Message(id) = inner
                && message(*id)?.form == Form::Fields
                && let Value::Object(within) = object.entry(field.json).or_insert_with(|| json!({}))
            {
                return read_into(message(*id)?, reader.bytes()?, depth, within);
            }
            let value = read_value(inner, reader, depth)?;
            // Go never takes a struct for empty, whatever its form in JSON.
            let plain = !pointer && !matches!(inner, Type::Message(_));
            if value.is_null() || plain && field.omit && is_zero(&value) {
                object.remove(field.json);
            } else {
                object.insert(field.json.to_owned(), value);
            }
        }
    }
    Ok(())
}

/// One entry of a map: a message of a key and a value, either of which may be missing.
fn read_entry(inner: &Type, bytes: &[u8], depth: usize) -> Result<(String, Value), Error> {
    let mut reader = Reader::new(bytes);
    let (mut key, mut value) = (String::new(), None);
    while !reader.is_empty() {
        match reader.tag("")? {
            (1, _) => key = text(reader.bytes()?),
            (2, _) => value = Some(read_value(inner, &mut reader, depth)?),
            (_, wire) => reader.skip(wire)?,
        }
    }
    let value = match value {
        Some(value) => value,
        None => zero(inner, depth)?,
    };
    Ok((key, value))
}

/// What a map holds under a key that came without a value.
fn zero(ty: &Type, depth: usize) -> Result<Value, Error> {
    let empty: &[u8] = match wire_of(ty) {
        FIXED64 => &[0; 8],
        // The number zero, or no bytes at all.
        _ => &[0],
    };
    read_value(ty, &mut Reader::new(empty), depth)
}

/// A value that is neither a list nor a map.
fn read_value(ty: &Type, reader: &mut Reader<'_>, depth: usize) -> Result<Value, Error> {
    Ok(match ty {
        Type::Text => json!(text(reader.bytes()?)),
        Type::Bool => json!(reader.varint()? != 0),
        #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the lower 32 bits, too")]
        Type::Int32 => json!(reader.varint()?.cast_signed() as i32),
        Type::Int64 => json!(reader.varint()?.cast_signed()),
        Type::Double => number(f64::from_bits(reader.fixed64()?)),
        Type::Bytes => json!(STANDARD.encode(reader.bytes()?)),
        Type::Json => match reader.bytes()? {
            [] => Value::Null,
            bytes => serde_json::from_slice(bytes).map_err(|e| Error::Json(e.to_string()))?,
        },
        Type::Message(id) => {
            let message = message(*id)?;
            let mut object = Map::new();
            read_into(message, reader.bytes()?, depth, &mut object)?;
            formed(message, object)?
        }
        Type::Pointer(inner) => read_value(inner, reader, depth)?,
        // No message has lists of lists, or maps of them: there are messages around the inner ones.
        Type::List(_) | Type::Map(_) => return Err(Error::Depth),
    })
}

/// A message in the form it has in JSON.
fn formed(message: &Message, mut object: Map<String, Value>) -> Result<Value, Error> {
    let integer = |object: &Map<String, Value>, key: &str| object.get(key).and_then(Value::as_i64);
    let mut take = |key: &str| object.remove(key);
    Ok(match message.form {
        Form::Fields => Value::Object(object),
        Form::Text => take("string").unwrap_or_else(|| json!("0")),
        Form::Raw => take("raw").unwrap_or_default(),
        Form::Either => match integer(&object, "type") {
            None | Some(0) => object.remove("intVal").unwrap_or_else(|| json!(0)),
            Some(_) => object.remove("strVal").unwrap_or_else(|| json!("")),
        },
        Form::First => message.fields.iter().find_map(|field| take(field.json)).unwrap_or_default(),
        // Nobody writes an empty time but for the year one.
        Form::Time | Form::Micro if object.is_empty() => Value::Null,
        Form::Time => instant(integer(&object, "seconds").unwrap_or(0), 0, "%Y-%m-%dT%H:%M:%SZ")?,
        Form::Micro => {
            let nanos = integer(&object, "nanos").unwrap_or(0);
            instant(integer(&object, "seconds").unwrap_or(0), nanos, "%Y-%m-%dT%H:%M:%S.%6fZ")?
        }
    })
}

fn instant(seconds: i64, nanos: i64, format: &str) -> Result<Value, Error> {
    let span = jiff::SignedDuration::new(seconds.clamp(-1 << 40, 1 << 40), 0);
    let span = span.checked_add(jiff::SignedDuration::from_nanos(nanos / 1000 * 1000));
    let instant = span.and_then(|span| jiff::Timestamp::from_duration(span).ok());
    let instant = instant.ok_or(Error::Time(seconds))?;
    Ok(json!(instant.strftime(format).to_string()))
}

/// A number as Go prints it: whole ones have no decimals.
fn number(value: f64) -> Value {
    #[expect(clippy::cast_possible_truncation, reason = "whole and far below the largest")]
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

/// Text as Go prints it into JSON.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn wire_of(ty: &Type) -> u8 {
    match ty {
        Type::Pointer(inner) | Type::List(inner) => wire_of(inner),
        Type::Bool | Type::Int32 | Type::Int64 => VARINT,
        Type::Double => FIXED64,
        Type::Map(_) | Type::Message(_) | Type::Text | Type::Bytes | Type::Json => BYTES,
    }
}

/// Whether a plain field with this value is left out of JSON.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(_) | Value::Object(_) => false,
    }
}

/// Adds to the list of a field.
fn push(object: &mut Map<String, Value>, key: &str, value: Value) {
    if let Value::Array(list) = object.entry(key).or_insert_with(|| json!([])) {
        list.push(value);
    }
}
