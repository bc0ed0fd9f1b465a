//! What is in a request body: decoding against a schema, as kube-apiserver decodes into Go structs.
//!
//! Decoding drops what the kind does not know, rewrites amounts and times the way a round trip through Go does,
//! and words its complaints as Go's decoder and Kubernetes' types word them. It works on the text, because strict
//! field validation reports duplicate fields and follows the order in which things were written.

mod seed;
#[cfg(test)]
mod tests;

use self::seed::{Seed, State};
use super::View;
use serde::Deserializer as _;
use serde::de::{DeserializeSeed, IgnoredAny};
use serde_json::Value;
use std::cell::RefCell;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Decoded {
    /// The object, without unknown fields.
    pub value: Value,
    /// What strict field validation objects to, in the order of the text: `unknown field "spec.foo"` and
    /// `duplicate field "spec.foo"`.
    pub strict: Vec<String>,
}

/// A body that cannot be decoded, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct DecodeError(pub String);

/// Decodes JSON text of a kind with a schema.
///
/// # Errors
/// When the text is not JSON, or a value has a type the schema does not allow.
pub(crate) fn typed(view: View<'_>, text: &[u8]) -> Result<Decoded, DecodeError> {
    // Go looks at the syntax of the whole text before it looks at any type.
    syntax(text)?;
    run(Some(view), &mut serde_json::Deserializer::from_slice(text))
}

/// Decodes a value, for example the result of a patch, of a kind with a schema.
///
/// # Errors
/// When a value has a type the schema does not allow.
pub(crate) fn typed_value(view: View<'_>, value: Value) -> Result<Decoded, DecodeError> {
    run(Some(view), value)
}

/// Decodes JSON text of a kind without a Go type: only duplicate fields are objected to.
///
/// # Errors
/// When the text is not JSON.
pub(crate) fn untyped(text: &[u8]) -> Result<Decoded, DecodeError> {
    syntax(text)?;
    run(None, &mut serde_json::Deserializer::from_slice(text))
}

/// API version and kind a body gives itself; empty when it does not.
///
/// # Errors
/// When the text is not JSON, or not an object with two strings; goes into [`unrecognized`].
pub(crate) fn type_meta(text: &[u8]) -> Result<(String, String), DecodeError> {
    let parse_error = |why: &str| DecodeError(format!("couldn't get version/kind; json parse error: {why}"));
    syntax(text).map_err(|error| parse_error(&error.0))?;
    let mut found = (String::new(), String::new());
    let value: Value =
        serde_json::from_slice(text).map_err(|error| parse_error(&unexpected(text, &error)))?;
    let Value::Object(fields) = value else {
        let wanted = r#"struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }"#;
        let what = json_type(&value);
        // Null sets nothing, and nothing is missing yet.
        if value.is_null() {
            return Ok(found);
        }
        return Err(parse_error(&format!("json: cannot unmarshal {what} into Go value of type {wanted}")));
    };
    for (key, target) in [("apiVersion", &mut found.0), ("kind", &mut found.1)] {
        match fields.get(key) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => target.clone_from(text),
            Some(other) => {
                let what = json_type(other);
                let why = format!("json: cannot unmarshal {what} into Go struct field .{key} of type string");
                return Err(parse_error(&why));
            }
        }
    }
    Ok(found)
}

/// The message of a body that does not say what it is, for a `BadRequest`.
#[must_use]
pub(crate) fn unrecognized(kind: &str, text: &[u8], why: &str) -> String {
    const SHOWN: usize = 30;
    let shown = &text[..text.len().min(SHOWN)];
    let more = if text.len() > SHOWN { " ..." } else { "" };
    let shown = match text.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => {
            let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or('0');
            let hex: String = shown.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
            format!("{hex}{more}")
        }
    };
    format!("the object provided is unrecognized (must be of type {kind}): {why} ({shown})")
}

/// What Go calls a JSON value in its complaints.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The message of a body that could be read but not understood, for a `BadRequest`.
#[must_use]
pub(crate) fn unusable(kind: &str, version: &str, why: &str) -> String {
    format!("{kind} in version {version:?} cannot be handled as a {kind}: {why}")
}

/// One sentence about everything strict field validation objects to; goes into [`unusable`].
#[must_use]
pub(crate) fn strict_error(strict: &[String]) -> String {
    format!("strict decoding error: {}", strict.join(", "))
}

fn syntax(text: &[u8]) -> Result<(), DecodeError> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let whole = reader.deserialize_ignored_any(IgnoredAny).and_then(|_| reader.end());
    whole.map_err(|error| {
        if error.is_eof() {
            return DecodeError("unexpected end of JSON input".to_owned());
        }
        DecodeError(unexpected(text, &error))
    })
}

/// Go names the character it did not expect.
fn unexpected(text: &[u8], error: &serde_json::Error) -> String {
    let line = text.split(|b| *b == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let found = line.get(error.column().saturating_sub(1)).copied();
    let Some(found) = found else { return error.to_string() };
    let sentence = error.to_string();
    if sentence.starts_with("expected ident")
        && let Some(place) = literal(&line[..error.column().saturating_sub(1)])
    {
        return format!("invalid character '{}' {place}", char::from(found).escape_default());
    }
    let place = if sentence.starts_with("recursion limit") {
        "exceeded max depth"
    } else if sentence.starts_with("trailing characters") {
        "after top-level value"
    } else if sentence.starts_with("key must be a string") {
        "looking for beginning of object key string"
    } else if sentence.starts_with("expected `:`") {
        "after object key"
    } else if sentence.starts_with("expected `,` or `}`") {
        "after object key:value pair"
    } else if sentence.starts_with("expected `,` or `]`") {
        "after array element"
    } else {
        "looking for beginning of value"
    };
    let shown = match found {
        b'\'' => "'\\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        other => format!("'{}'", char::from(other).escape_default()),
    };
    format!("invalid character {shown} {place}")
}

/// Where inside `true`, `false` or `null` a text stops making sense.
fn literal(before: &[u8]) -> Option<String> {
    let begun = before.iter().rev().take_while(|byte| byte.is_ascii_lowercase()).count();
    let begun = std::str::from_utf8(&before[before.len() - begun..]).ok()?;
    let whole =
        ["true", "false", "null"].into_iter().find(|word| !begun.is_empty() && word.starts_with(begun))?;
    let next = whole[begun.len()..].chars().next()?;
    Some(format!("in literal {whole} (expecting '{next}')"))
}

fn run<'de, D: serde::Deserializer<'de>>(view: Option<View<'_>>, from: D) -> Result<Decoded, DecodeError> {
    let state = RefCell::new(State::default());
    let decoded = Seed::root(view, &state).deserialize(from);
    let state = state.into_inner();
    match (decoded, state.fatal.or(state.first)) {
        (_, Some(error)) => Err(DecodeError(error)),
        (Err(error), None) => Err(DecodeError(error.to_string())),
        (Ok(value), None) => Ok(Decoded { value: value.unwrap_or(Value::Null), strict: state.strict }),
    }
}
