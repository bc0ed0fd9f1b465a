//! What a request body in protobuf says.
//!
//! Typed clients (kubectl and every stock component among them) write built-in kinds this way. A body is turned
//! into JSON text once, at the door; nothing behind it knows that there is another encoding.
//!
//! How bytes are read is `loadline_machinery::protobuf`.

#[cfg(test)]
mod tests;

use crate::registry::{Resource, group_version};
use crate::schema::decode;
use crate::status::Status;
use bytes::Bytes;
use http::Method;
use loadline_machinery::json::Skip;
use loadline_machinery::protobuf::{Envelope, Error, MEDIA};
use serde_json::{Map, Value, json};

/// The object in a body, as its writer would have written it in JSON.
fn to_json(envelope: &Envelope<'_>) -> Result<Value, Error> {
    let mut object = Value::from(&envelope.object(Skip::NOTHING)?);
    if let Value::Object(fields) = &mut object {
        name(envelope, fields);
    }
    Ok(object)
}

/// A message does not say of which kind it is; what is around it does.
fn name(envelope: &Envelope<'_>, object: &mut Map<String, Value>) {
    object.insert("apiVersion".to_owned(), json!(envelope.api_version));
    object.insert("kind".to_owned(), json!(envelope.kind));
}

/// A kind a request is about.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Subject<'a> {
    api_version: String,
    kind: &'a str,
}

impl<'a> Subject<'a> {
    /// What the body of a request is to be; nothing when the request has none, or is none of ours to read.
    fn of(method: &Method, resource: &'a Resource, below: Option<&str>) -> Option<Self> {
        if *method == Method::DELETE {
            return Some(Self { api_version: "v1".to_owned(), kind: "DeleteOptions" });
        }
        if !matches!(*method, Method::POST | Method::PUT) {
            return None;
        }
        let own = Self { api_version: resource.api_version(), kind: &resource.kind };
        let subject = match below {
            None => own,
            Some(below) => {
                let sub = resource.subresource(below)?;
                let other = !sub.version.is_empty();
                let version =
                    if other { group_version(&sub.group, &sub.version) } else { resource.api_version() };
                Self { api_version: version, kind: &sub.kind }
            }
        };
        // Custom resources have no messages.
        (resource.custom.is_none() || subject.kind != resource.kind).then_some(subject)
    }
}

/// The JSON text of a request body in protobuf. Nothing when it is not for this module to read: bodies of other
/// media types, empty ones of deletions, patches and custom resources.
///
/// # Errors
/// 400 when the body cannot be read.
pub(crate) fn body_text(
    media: &str,
    method: &Method,
    resource: &Resource,
    below: Option<&str>,
    body: &[u8],
) -> Result<Option<Bytes>, Status> {
    if media.split(';').next().unwrap_or_default().trim() != MEDIA {
        return Ok(None);
    }
    let deletion = *method == Method::DELETE;
    let Some(subject) = Subject::of(method, resource, below).filter(|_| !(deletion && body.is_empty()))
    else {
        return Ok(None);
    };
    let mut envelope = Envelope::read(body).map_err(|error| {
        let why = error.to_string();
        Status::bad_request(if deletion { why } else { decode::unrecognized(subject.kind, body, &why) })
    })?;
    if envelope.kind.is_empty() {
        envelope.kind = subject.kind.into();
    }
    if envelope.api_version.is_empty() {
        envelope.api_version = subject.api_version.as_str().into();
    }
    let object = match to_json(&envelope) {
        Ok(object) => object,
        // Whoever reads the text says that this kind is not the right one.
        Err(Error::Kind { .. }) => {
            let mut object = Map::new();
            name(&envelope, &mut object);
            Value::Object(object)
        }
        Err(error) if deletion => return Err(Status::bad_request(error.to_string())),
        Err(error) => {
            let version = envelope.api_version.rsplit('/').next().unwrap_or_default();
            let Envelope { kind, .. } = &envelope;
            let wanted = subject.kind;
            return Err(Status::bad_request(format!(
                "{kind} in version {version:?} cannot be handled as a {wanted}: {error}"
            )));
        }
    };
    Ok(Some(object.to_string().into()))
}
