//! Request bodies: read within a limit, decoded into objects of the resource they are sent to.

use super::Call;
use super::options::Strictness;
use crate::registry::group_version;
use crate::schema::builtin;
use crate::schema::decode::{self, Decoded};
use crate::schema::structural;
use crate::status::{FieldError, Status, Subject};
use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};
use std::borrow::Cow;

/// Where upstream's list of kinds is made; its errors say so.
const SCHEME: &str = "pkg/runtime/scheme.go:111";

/// Reads a whole body.
///
/// # Errors
/// 413 above the limit, 400 when the client breaks off.
pub(super) async fn read<B>(body: B, limit: usize) -> Result<Bytes, Status>
where
    B: http_body::Body<Data = Bytes> + Send,
    B::Error: std::fmt::Display,
{
    // Errors are turned to text before `Limited`, which wants 'static errors.
    let body = body.map_err(|e| std::io::Error::other(e.to_string()));
    match Limited::new(body, limit).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => Err(too_large(limit)),
        Err(error) => Err(Status::bad_request(format!("error reading body: {error}"))),
    }
}

fn too_large(limit: usize) -> Status {
    Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: limit is {limit}"))
}

/// The kind a body is to be of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub group: &'a str,
    pub version: &'a str,
    pub kind: &'a str,
}

impl Call {
    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted { group: &self.resource.group, version: &self.resource.version, kind: &self.resource.kind }
    }

    /// The body as JSON text.
    ///
    /// # Errors
    /// 415 for media types nobody here reads.
    pub(super) fn text(&self) -> Result<Cow<'_, [u8]>, Status> {
        match self.content_type.split(';').next().unwrap_or_default().trim() {
            "" | "application/json" => Ok(lenient(&self.body)),
            "application/yaml" => {
                let text = String::from_utf8_lossy(&self.body);
                let value: Value = serde_saphyr::from_str(&text)
                    .map_err(|e| Status::bad_request(format!("error converting YAML to JSON: {e}")))?;
                Ok(Cow::Owned(value.to_string().into_bytes()))
            }
            _ => Err(unsupported(&[
                "application/json",
                "application/yaml",
                "application/vnd.kubernetes.protobuf",
            ])),
        }
    }

    /// The body as an object of this resource.
    ///
    /// # Errors
    /// 415 for other media types, 400 for what is not such an object.
    pub(super) fn object(&self) -> Result<Value, Status> {
        let text = self.text()?;
        let (kind, version) = (&self.resource.kind, &self.resource.version);
        let refuse = |strict: String| Status::bad_request(decode::unusable(kind, version, &strict));
        if self.resource.custom.is_none() {
            return Ok(self.typed(self.decode_as(self.wanted())?));
        }
        let (api_version, given) = decode::type_meta(&text)
            .map_err(|e| Status::bad_request(decode::unrecognized(kind, &text, &e.0)))?;
        if given.is_empty() {
            let why = format!("Object 'Kind' is missing in '{}'", String::from_utf8_lossy(&text));
            return Err(Status::bad_request(decode::unrecognized(kind, &text, &why)));
        }
        let want = self.resource.api_version();
        if api_version != want {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({want})"
            )));
        }
        let decoded = decode::untyped(&text).map_err(|e| refuse(e.0))?;
        if given != *kind {
            let name = decoded.value["metadata"]["name"].as_str().unwrap_or_default();
            let subject = Subject { group: &self.resource.group, resource: "", kind: &given };
            let error = FieldError::invalid("kind", &json!(given), format!("must be {kind}"));
            return Err(Status::invalid(subject, name, &[error]));
        }
        let (value, strict) = self.coerce(decoded).map_err(&refuse)?;
        self.object_to(strict, refuse)?;
        Ok(value)
    }

    /// The body as an object of a built-in kind.
    ///
    /// # Errors
    /// 415 for other media types, 400 for what is not such an object.
    pub(super) fn decode_as(&self, wanted: Wanted<'_>) -> Result<Value, Status> {
        let (value, strict) = decode_as(wanted, &self.text()?)?;
        let refuse =
            |strict: String| Status::bad_request(decode::unusable(wanted.kind, wanted.version, &strict));
        self.object_to(strict, refuse)?;
        Ok(value)
    }

    /// Turns what strict reading objects to into warnings or an error.
    pub(super) fn object_to(
        &self,
        strict: Vec<String>,
        refuse: impl FnOnce(String) -> Status,
    ) -> Result<(), Status> {
        match self.strictness() {
            Strictness::Ignore => {}
            Strictness::Strict if !strict.is_empty() => return Err(refuse(decode::strict_error(&strict))),
            // A request that is tried again says everything again.
            Strictness::Warn | Strictness::Strict => {
                let mut warnings = self.warnings.borrow_mut();
                let new: Vec<String> = strict.into_iter().filter(|text| !warnings.contains(text)).collect();
                warnings.extend(new);
            }
        }
        Ok(())
    }

    /// A custom resource without what its schema does not know, and what strict reading objects to.
    ///
    /// # Errors
    /// A field of the metadata that has the wrong type, in upstream's words.
    pub(super) fn coerce(&self, mut decoded: Decoded) -> Result<(Value, Vec<String>), String> {
        if decoded.value.get("metadata").is_none_or(Value::is_null) {
            decoded.value["metadata"] = json!({});
        }
        let open = self.resource.custom.as_ref().is_none_or(|c| c.preserve_unknown);
        let dropped = match self.resource.schema().filter(|_| !open) {
            Some(view) => structural::coerce(view, &mut decoded.value),
            None => structural::metadata(&mut decoded.value),
        };
        let dropped = dropped.map_err(|e| e.0)?;
        // Metadata passes through upstream's struct, which leaves empty lists and maps out.
        if let Some(metadata) = decoded.value["metadata"].as_object_mut() {
            metadata.retain(|_, field| match field {
                Value::Array(list) => !list.is_empty(),
                Value::Object(map) => !map.is_empty(),
                _ => true,
            });
        }
        decoded.strict.extend(dropped.iter().map(|path| format!("unknown field {path:?}")));
        Ok((self.typed(decoded.value), decoded.strict))
    }

    /// Fills in the type, so that everything after can rely on it.
    pub(super) fn typed(&self, mut value: Value) -> Value {
        if !value.is_object() {
            value = json!({});
        }
        value["apiVersion"] = json!(self.resource.api_version());
        value["kind"] = json!(self.resource.kind);
        if !value["metadata"].is_object() {
            value["metadata"] = json!({});
        }
        value
    }
}

/// Decodes JSON text of a built-in kind, and says what strict reading objects to.
///
/// # Errors
/// 400 for what is not such an object.
fn decode_as(wanted: Wanted<'_>, text: &[u8]) -> Result<(Value, Vec<String>), Status> {
    let Wanted { group, version, kind } = wanted;
    let (api_version, given) =
        decode::type_meta(text).map_err(|e| Status::bad_request(decode::unrecognized(kind, text, &e.0)))?;
    check_type(wanted, &api_version, &given)?;
    let Some(view) = builtin::kind(group, version, kind) else {
        let decoded = decode::untyped(text).map_err(|e| Status::bad_request(e.0))?;
        return Ok((decoded.value, decoded.strict));
    };
    let decoded =
        decode::typed(view, text).map_err(|e| Status::bad_request(decode::unusable(kind, version, &e.0)))?;
    let value = if decoded.value.is_null() { json!({}) } else { decoded.value };
    Ok((value, decoded.strict))
}

/// A body may leave out its type, but not have another one.
fn check_type(wanted: Wanted<'_>, api_version: &str, kind: &str) -> Result<(), Status> {
    let want = group_version(wanted.group, wanted.version);
    let kind = if kind.is_empty() { wanted.kind } else { kind };
    let api_version = if api_version.is_empty() { &want } else { api_version };
    if api_version == want && kind == wanted.kind {
        return Ok(());
    }
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let why = if builtin::kind(group, version, kind).is_some() {
        // Upstream's internal types live in a package named after the group.
        let package = if wanted.group.is_empty() { "core" } else { wanted.group };
        let package = package.split('.').next().unwrap_or_default();
        format!("converting ({version}.{kind}) to ({package}.{}): unknown conversion", wanted.kind)
    } else {
        no_kind(kind, api_version)
    };
    Err(Status::bad_request(format!(
        "{kind} in version {version:?} cannot be handled as a {}: {why}",
        wanted.kind
    )))
}

/// What upstream says about a kind it does not know.
pub(super) fn no_kind(kind: &str, api_version: &str) -> String {
    format!("no kind {kind:?} is registered for version {api_version:?} in scheme {SCHEME:?}")
}

/// 415 with the media types that would do.
pub(super) fn unsupported(accepted: &[&str]) -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        ),
    )
}

/// JSON text as Go reads it: broken UTF-8 and halves of surrogate pairs become the replacement character.
pub(super) fn lenient(text: &[u8]) -> Cow<'_, [u8]> {
    let text = match String::from_utf8_lossy(text) {
        Cow::Borrowed(whole) => Cow::Borrowed(whole.as_bytes()),
        Cow::Owned(mended) => Cow::Owned(mended.into_bytes()),
    };
    let unit = |at: usize| {
        let hex = text.get(at + 2..at + 6).filter(|_| text[at..].starts_with(b"\\u"))?;
        u16::from_str_radix(std::str::from_utf8(hex).ok()?, 16).ok()
    };
    let mut lone = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].iter().position(|byte| *byte == b'\\') {
        at += found;
        match unit(at) {
            Some(0xd800..=0xdbff) if matches!(unit(at + 6), Some(0xdc00..=0xdfff)) => at += 12,
            Some(0xd800..=0xdfff) => {
                lone.push(at);
                at += 6;
            }
            _ => at += 2,
        }
        at = at.min(text.len());
    }
    if lone.is_empty() {
        return text;
    }
    let mut text = text.into_owned();
    for at in lone {
        text[at + 2..at + 6].copy_from_slice(b"fffd");
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_text_is_mended_as_go_mends_it() {
        for (text, want) in [
            (&b"{\"a\":\"b\"}"[..], &b"{\"a\":\"b\"}"[..]),
            (b"\"a\xff\"", "\"a\u{fffd}\"".as_bytes()),
            (br#""\ud800""#, br#""\ufffd""#),
            (br#""\ud83d\ude00""#, br#""\ud83d\ude00""#),
            (br#""\\ud800""#, br#""\\ud800""#),
            (br#""\udc00x"#, br#""\ufffdx"#),
            (br#""\"#, br#""\"#),
        ] {
            assert_eq!(lenient(text).as_ref(), want, "{}", String::from_utf8_lossy(text));
        }
    }
}
