//! Small helpers over JSON objects, so that rules read as rules.

use loadline_machinery::quantity::Quantity;
use serde_json::{Map, Value};

/// A JSON object.
pub(super) type Object = Map<String, Value>;

const NULL: Value = Value::Null;

/// Sets a field that is not there yet.
pub(super) fn set_default(map: &mut Object, key: &str, value: impl Into<Value>) {
    if map.get(key).is_none_or(Value::is_null) {
        map.insert(key.to_owned(), value.into());
    }
}

/// A field as text, empty if absent.
pub(super) fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// A field of a map as text, empty if absent.
pub(super) fn text_of<'a>(map: &'a Object, key: &str) -> &'a str {
    map.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// An amount, none if it is not one: what cannot be read was refused before.
pub(super) fn quantity(value: &Value) -> Quantity {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(Quantity::ZERO)
}

/// A field, `null` if absent.
pub(super) fn get<'a>(value: &'a Value, key: &str) -> &'a Value {
    value.get(key).unwrap_or(&NULL)
}

/// Entries of a list field, none if absent.
pub(super) fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Entries of a map field, none if absent.
pub(super) fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// A field as a whole number.
pub(super) fn int(value: &Value, key: &str) -> Option<i64> {
    value.get(key).and_then(Value::as_i64)
}

/// A field as a truth value, false if absent.
pub(super) fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or(false)
}

/// Whether a field is there and not `null`.
pub(super) fn has(value: &Value, key: &str) -> bool {
    value.get(key).is_some_and(|v| !v.is_null())
}

/// The object in a field, made if absent. `None` if something else is there.
pub(super) fn child<'a>(map: &'a mut Object, key: &str) -> Option<&'a mut Object> {
    let slot = map.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if slot.is_null() {
        *slot = Value::Object(Map::new());
    }
    slot.as_object_mut()
}

/// The object in a field of a value, made if absent. `None` if something else is there.
pub(super) fn child_of<'a>(value: &'a mut Value, key: &str) -> Option<&'a mut Object> {
    child(value.as_object_mut()?, key)
}

/// Copies a field, or removes it where the source has none.
pub(super) fn copy(to: &mut Value, from: &Value, key: &str) {
    let Some(map) = to.as_object_mut() else { return };
    match from.get(key) {
        Some(value) => map.insert(key.to_owned(), value.clone()),
        None => map.remove(key),
    };
}

/// Removes a field.
pub(super) fn remove(value: &mut Value, key: &str) {
    if let Some(map) = value.as_object_mut() {
        map.remove(key);
    }
}
