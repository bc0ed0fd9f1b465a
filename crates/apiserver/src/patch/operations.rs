//! JSON patch (RFC 6902) with the liberties of the library behind kube-apiserver.
//!
//! That library counts negative indices from the end, lets `replace` add a missing key of an object and takes a missing
//! key for null in `test`. Clients rely on all three, so a strict implementation would answer differently.

use super::words;
use crate::status::{Details, Status};
use serde_json::{Map, Value};

/// More operations than this are refused before any is tried.
const MAX_OPERATIONS: usize = 10_000;

/// Why an operation does not apply; the wire shows one sentence for all of them.
struct Misfit;

/// Applies all operations to a copy of the document.
pub(super) fn apply(doc: &Value, patch: &Value) -> Result<Value, Status> {
    let operations = decode(patch)?;
    if operations.len() > MAX_OPERATIONS {
        let count = operations.len();
        return Err(Status::new(
            413,
            "RequestEntityTooLarge",
            format!(
                "Request entity too large: The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got \
                 {count}"
            ),
        ));
    }
    let mut out = doc.clone();
    for operation in operations {
        one(&mut out, operation).map_err(|Misfit| unprocessable())?;
    }
    Ok(out)
}

/// 422 with the one sentence upstream has for a patch that does not fit.
pub(super) fn unprocessable() -> Status {
    let mut status =
        Status::new(422, "Invalid", "the server rejected our request due to an error in our request");
    status.details = Some(Box::<Details>::default());
    status
}

fn decode(patch: &Value) -> Result<Vec<&Map<String, Value>>, Status> {
    let wrong = |value: &Value, place: &str| {
        let name = words::json_name(value);
        Status::bad_request(format!("error decoding patch: json: cannot unmarshal {name} into Go {place}"))
    };
    let list = match patch {
        Value::Array(list) => list.as_slice(),
        Value::Null => &[],
        other => return Err(wrong(other, "value of type []handlers.jsonPatchOp")),
    };
    list.iter()
        .map(|item| {
            let map = item.as_object().ok_or_else(|| wrong(item, "value of type handlers.jsonPatchOp"))?;
            for key in ["op", "path", "from"] {
                if let Some(value) = map.get(key).filter(|v| !v.is_string() && !v.is_null()) {
                    return Err(wrong(value, &format!("struct field jsonPatchOp.{key} of type string")));
                }
            }
            Ok(map)
        })
        .collect()
}

fn one(doc: &mut Value, operation: &Map<String, Value>) -> Result<(), Misfit> {
    let text = |key: &str| operation.get(key).and_then(Value::as_str);
    let path = text("path").ok_or(Misfit)?;
    let value = || operation.get("value").cloned().unwrap_or(Value::Null);
    match text("op").ok_or(Misfit)? {
        "add" => add(doc, path, value()),
        "remove" => remove(doc, path).map(drop),
        "replace" => replace(doc, path, value()),
        "move" => {
            let moved = remove(doc, text("from").ok_or(Misfit)?)?;
            add(doc, path, moved)
        }
        "copy" => {
            let copied = get(doc, text("from").ok_or(Misfit)?)?.cloned().unwrap_or(Value::Null);
            add(doc, path, copied)
        }
        "test" => test(doc, path, &value()),
        _ => Err(Misfit),
    }
}

/// Splits a pointer into the steps to the container and the last step. What precedes the first slash is not looked at.
fn split(path: &str) -> Result<(Vec<String>, String), Misfit> {
    let mut steps: Vec<String> =
        path.split('/').skip(1).map(|s| s.replace("~1", "/").replace("~0", "~")).collect();
    let end = steps.pop().ok_or(Misfit)?;
    Ok((steps, end))
}

/// An index into a list of `len` places; negative ones count from the end.
fn index(step: &str, len: usize) -> Result<usize, Misfit> {
    let number: i64 = step.parse().map_err(|_| Misfit)?;
    let len = i64::try_from(len).map_err(|_| Misfit)?;
    let index = if number < 0 { number + len } else { number };
    if (0..len).contains(&index) { usize::try_from(index).map_err(|_| Misfit) } else { Err(Misfit) }
}

fn container<'a>(doc: &'a mut Value, steps: &[String]) -> Result<&'a mut Value, Misfit> {
    let mut here = doc;
    for step in steps {
        here = match here {
            Value::Object(map) => map.get_mut(step).ok_or(Misfit)?,
            Value::Array(list) => {
                let at = index(step, list.len())?;
                &mut list[at]
            }
            _ => return Err(Misfit),
        };
    }
    Ok(here)
}

/// The value at a path: `None` for a key an object does not have.
fn get<'a>(doc: &'a mut Value, path: &str) -> Result<Option<&'a Value>, Misfit> {
    let (steps, end) = split(path)?;
    match container(doc, &steps)? {
        Value::Object(map) => Ok(map.get(&end)),
        Value::Array(list) => {
            let at = index(&end, list.len())?;
            Ok(Some(&list[at]))
        }
        _ => Err(Misfit),
    }
}

fn add(doc: &mut Value, path: &str, value: Value) -> Result<(), Misfit> {
    let (steps, end) = split(path)?;
    match container(doc, &steps)? {
        Value::Object(map) => {
            map.insert(end, value);
        }
        Value::Array(list) if end == "-" => list.push(value),
        Value::Array(list) => {
            let at = index(&end, list.len() + 1)?;
            list.insert(at, value);
        }
        _ => return Err(Misfit),
    }
    Ok(())
}

fn remove(doc: &mut Value, path: &str) -> Result<Value, Misfit> {
    let (steps, end) = split(path)?;
    match container(doc, &steps)? {
        Value::Object(map) => map.remove(&end).ok_or(Misfit),
        Value::Array(list) => {
            let at = index(&end, list.len())?;
            Ok(list.remove(at))
        }
        _ => Err(Misfit),
    }
}

fn replace(doc: &mut Value, path: &str, value: Value) -> Result<(), Misfit> {
    if path.is_empty() {
        if !value.is_object() && !value.is_array() {
            return Err(Misfit);
        }
        *doc = value;
        return Ok(());
    }
    let (steps, end) = split(path)?;
    match container(doc, &steps)? {
        Value::Object(map) => {
            map.insert(end, value);
        }
        Value::Array(list) => {
            let at = index(&end, list.len())?;
            list[at] = value;
        }
        _ => return Err(Misfit),
    }
    Ok(())
}

fn test(doc: &mut Value, path: &str, want: &Value) -> Result<(), Misfit> {
    let same = if path.is_empty() { doc == want } else { get(doc, path)?.unwrap_or(&Value::Null) == want };
    if same { Ok(()) } else { Err(Misfit) }
}
