//! What a request body in protobuf says.
//!
//! Typed clients (kubectl and every stock component among them) write built-in kinds this way. A body is turned
//! into JSON text once, at the door; nothing behind it knows that there is another encoding.
//!
//! | question | module |
//! |---|---|
//! | how bytes become fields | `wire` |
//! | which fields a message has | `table` |
//! | how a message looks in JSON | `message` |

mod message;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use self::table::TABLE;
use self::wire::Reader;
use crate::registry::{Resource, group_version};
use crate::schema::decode;
use crate::status::Status;
use bytes::Bytes;
use http::Method;
use serde_json::{Map, Value, json};

/// The media type of these bodies.
pub(crate) const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What every body starts with.
const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be read, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("empty data")]
    Empty,
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    Prefix,
    #[error("empty body")]
    NoBody,
    #[error("unexpected EOF")]
    Eof,
    #[error("proto: integer overflow")]
    Overflow,
    #[error("proto: negative length found during unmarshaling")]
    Length,
    #[error("proto: unexpected end of group")]
    End,
    #[error("proto: illegal wireType {0}")]
    Wire(u8),
    #[error("proto: {0}: wiretype end group for non-group")]
    Group(String),
    #[error("proto: {message}: illegal tag {number} (wire type {wire})")]
    Tag { message: String, number: i32, wire: u64 },
    #[error("proto: wrong wireType = {wire} for field {field}")]
    Field { wire: u8, field: String },
    #[error("messages are nested too deep")]
    Depth,
    #[error("a time {0} seconds from 1970 cannot be written")]
    Time(i64),
    #[error("a field for JSON holds something else: {0}")]
    Json(String),
    #[error("no kind {kind:?} of {api_version:?} is known")]
    Kind { api_version: String, kind: String },
}

/// What a body says about itself, and the message it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Envelope<'a> {
    api_version: String,
    kind: String,
    raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    fn read(body: &'a [u8]) -> Result<Self, Error> {
        if body.is_empty() {
            return Err(Error::Empty);
        }
        let inner = body.strip_prefix(MAGIC).ok_or(Error::Prefix)?;
        if inner.is_empty() {
            return Err(Error::NoBody);
        }
        let mut found = Self { api_version: String::new(), kind: String::new(), raw: &[] };
        let mut reader = Reader::new(inner);
        while !reader.is_empty() {
            match reader.tag("Unknown")? {
                (1, wire::BYTES) => found.read_type(reader.bytes()?)?,
                (2, wire::BYTES) => found.raw = reader.bytes()?,
                // How the message is encoded besides: nobody writes anything there.
                (3 | 4, wire::BYTES) => drop(reader.bytes()?),
                (number @ 1..=4, wire) => {
                    let field = ["TypeMeta", "Raw", "ContentEncoding", "ContentType"][number as usize - 1];
                    return Err(Error::Field { wire, field: field.to_owned() });
                }
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(found)
    }

    fn read_type(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag("TypeMeta")? {
                (1, wire::BYTES) => self.api_version = String::from_utf8_lossy(reader.bytes()?).into_owned(),
                (2, wire::BYTES) => self.kind = String::from_utf8_lossy(reader.bytes()?).into_owned(),
                (1, wire) => return Err(Error::Field { wire, field: "APIVersion".to_owned() }),
                (2, wire) => return Err(Error::Field { wire, field: "Kind".to_owned() }),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(())
    }

    fn to_json(&self) -> Result<Value, Error> {
        let id = TABLE
            .root(&self.api_version, &self.kind)
            .ok_or_else(|| Error::Kind { api_version: self.api_version.clone(), kind: self.kind.clone() })?;
        let mut object = message::read(id, self.raw)?;
        self.name(&mut object);
        Ok(Value::Object(object))
    }

    fn name(&self, object: &mut Map<String, Value>) {
        object.insert("apiVersion".to_owned(), json!(self.api_version));
        object.insert("kind".to_owned(), json!(self.kind));
    }
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
        subject.kind.clone_into(&mut envelope.kind);
    }
    if envelope.api_version.is_empty() {
        envelope.api_version.clone_from(&subject.api_version);
    }
    let object = match envelope.to_json() {
        Ok(object) => object,
        // Whoever reads the text says that this kind is not the right one.
        Err(Error::Kind { .. }) => {
            let mut object = Map::new();
            envelope.name(&mut object);
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
