//! What is changed about a good object?

use serde_json::Value;

/// One change: where, as a JSON pointer, and to what; none removes.
pub type Edit = (&'static str, Option<Value>);

/// A copy with these changes.
pub fn edited(object: &Value, edits: &[Edit]) -> Value {
    let mut out = object.clone();
    for (pointer, value) in edits {
        let (parent, last) = pointer.rsplit_once('/').expect("a pointer starts with /");
        let last = last.replace("~1", "/");
        match (out.pointer_mut(parent), value) {
            (Some(Value::Object(fields)), Some(value)) => drop(fields.insert(last, value.clone())),
            (Some(Value::Object(fields)), None) => drop(fields.remove(&last).expect("something to remove")),
            (Some(Value::Array(items)), Some(value)) if last == "-" => items.push(value.clone()),
            (Some(Value::Array(items)), Some(value)) => {
                items[last.parse::<usize>().expect("an index")] = value.clone();
            }
            (parent, _) => unreachable!("{pointer}: cannot be changed in {parent:?}"),
        }
    }
    out
}
