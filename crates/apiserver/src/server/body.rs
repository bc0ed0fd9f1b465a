//! Request bodies: read within a limit, decoded into objects of the resource they are sent to.

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::Call;
use crate::schema::decode::{self, Decoded};
use crate::schema::structural;
use crate::status::Status;

/// Reads a whole body.
///
/// # Errors
/// 413 above the limit, 400 when the client breaks off.
pub async fn read<B>(body: B, limit: usize) -> Result<Bytes, Status>
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

/// How strictly a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    Ignore,
    Warn,
    Strict,
}

impl Call {
    /// The `fieldValidation` parameter.
    pub(super) fn strictness(&self) -> Result<Strictness, Status> {
        match self.query.get("fieldValidation") {
            None | Some("Warn") => Ok(Strictness::Warn),
            Some("Ignore") => Ok(Strictness::Ignore),
            Some("Strict") => Ok(Strictness::Strict),
            Some(other) => Err(options_invalid(
                self,
                "fieldValidation",
                &json!(other),
                &["", "Ignore", "Strict", "Warn"],
            )),
        }
    }

    /// Whether this is a dry run.
    pub(super) fn dry_run(&self) -> Result<bool, Status> {
        match self.query.get("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => Err(options_invalid(self, "dryRun", &json!([other]), &["All"])),
        }
    }

    /// Who writes: the `fieldManager` parameter, else the first part of the user agent.
    pub(super) fn manager(&self) -> String {
        let name = self.query.get("fieldManager");
        let name = name.unwrap_or_else(|| self.user_agent.split('/').next().unwrap_or_default());
        name.chars().take(128).collect()
    }

    /// The body as an object of this resource, with what strict reading objected to.
    ///
    /// # Errors
    /// 415 for other media types, 400 for what is not such an object.
    pub(super) fn object(&self) -> Result<(Value, Vec<String>), Status> {
        let strictness = self.strictness()?;
        let media = self.content_type.split(';').next().unwrap_or_default().trim();
        if !matches!(media, "" | "application/json") {
            return Err(unsupported(&["application/json"]));
        }
        let decoded = self.decode(&self.body)?;
        self.accept(decoded, strictness)
    }

    /// A decoded object without what its schema does not know, and what strict reading objected to.
    pub(super) fn accept(
        &self,
        mut decoded: Decoded,
        strictness: Strictness,
    ) -> Result<(Value, Vec<String>), Status> {
        let custom = self.resource.custom.as_ref().filter(|c| !c.preserve_unknown);
        if let Some(view) = custom.and_then(|c| c.schema()) {
            let pruned = structural::prune(view, &mut decoded.value);
            decoded.strict.extend(pruned.iter().map(|path| format!("unknown field {path:?}")));
        }
        let object = self.typed(decoded.value)?;
        Ok((object, objections(decoded.strict, strictness)?))
    }

    fn decode(&self, text: &[u8]) -> Result<Decoded, Status> {
        let kind = &self.resource.kind;
        let view = if self.resource.custom.is_some() { None } else { self.resource.schema() };
        // The type is checked before the fields: an object of another kind has other fields.
        let plain = decode::untyped(text).map_err(|e| {
            Status::bad_request(match &self.resource.custom {
                Some(_) => e.0,
                None => format!(
                    "{kind} in version {:?} cannot be handled as a {kind}: {e}",
                    self.resource.version
                ),
            })
        })?;
        self.check_type(&plain.value)?;
        let Some(view) = view else { return Ok(plain) };
        decode::typed(view, text).map_err(|e| {
            let version = &self.resource.version;
            Status::bad_request(format!("{kind} in version {version:?} cannot be handled as a {kind}: {e}"))
        })
    }

    fn check_type(&self, value: &Value) -> Result<(), Status> {
        let (api_version, kind) = (value["apiVersion"].as_str(), value["kind"].as_str());
        let want = self.resource.api_version();
        let custom = self.resource.custom.is_some();
        if custom && kind.unwrap_or_default().is_empty() {
            return Err(Status::bad_request(format!(
                "Object 'Kind' is missing in '{}'",
                String::from_utf8_lossy(&self.body)
            )));
        }
        let kind = kind.filter(|k| !k.is_empty()).unwrap_or(&self.resource.kind);
        let api_version = api_version.filter(|v| !v.is_empty()).unwrap_or(&want);
        if api_version == want && kind == self.resource.kind {
            return Ok(());
        }
        if api_version != want {
            return Err(Status::bad_request(format!(
                "the API version in the data ({api_version}) does not match the expected API version ({want})"
            )));
        }
        Err(Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for version {want:?}",
            self.resource.version, self.resource.kind
        )))
    }

    /// Fills in the type, so that everything after can rely on it.
    pub(super) fn typed(&self, mut value: Value) -> Result<Value, Status> {
        if !value.is_object() {
            return Err(Status::bad_request("the object provided is not a JSON object"));
        }
        value["apiVersion"] = json!(self.resource.api_version());
        value["kind"] = json!(self.resource.kind);
        if !value["metadata"].is_object() {
            value["metadata"] = json!({});
        }
        Ok(value)
    }
}

/// Turns what strict reading objected to into warnings or an error.
fn objections(strict: Vec<String>, strictness: Strictness) -> Result<Vec<String>, Status> {
    match strictness {
        Strictness::Ignore => Ok(Vec::new()),
        Strictness::Warn => Ok(strict),
        Strictness::Strict if strict.is_empty() => Ok(strict),
        Strictness::Strict => {
            Err(Status::bad_request(format!("strict decoding error: {}", strict.join(", "))))
        }
    }
}

/// 415 with the media types that would do.
pub fn unsupported(accepted: &[&str]) -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        ),
    )
}

/// 422 for a bad request parameter.
fn options_invalid(call: &Call, field: &str, value: &Value, supported: &[&str]) -> Status {
    use crate::status::{FieldError, Subject};
    let kind = match call.target.name {
        None => "CreateOptions",
        Some(_) if call.content_type.contains("patch") => "PatchOptions",
        Some(_) => "UpdateOptions",
    };
    let subject = Subject { group: "meta.k8s.io", resource: "", kind };
    Status::invalid(subject, "", &[FieldError::not_supported(field, value, supported)])
}
