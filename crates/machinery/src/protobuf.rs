//! What do bytes in Kubernetes' protobuf say?
//!
//! Every stock component reads and writes built-in kinds this way: for an API server it is much less work than JSON, and
//! what nobody reads is passed over without being looked at. What is read here is the same [`Tree`] that JSON text
//! becomes, so that nobody behind it knows which of the two was on the wire. Custom resources have no messages; servers
//! answer those in JSON whatever was asked for.
//!
//! | question | module |
//! |---|---|
//! | how bytes become fields, and fields bytes | `wire` |
//! | which fields a message has | `table` |
//! | what a message says | `message` |

mod message;
mod table;
#[cfg(test)]
mod tests;
mod wire;

use crate::json::{Skip, Tree};
use std::borrow::Cow;
use table::{Message, TABLE};
use wire::{BYTES, Reader};

pub use wire::Writer;

/// The media type of these bodies.
pub const MEDIA: &str = "application/vnd.kubernetes.protobuf";

/// What every body starts with; no JSON does.
pub const MAGIC: &[u8] = b"k8s\0";

/// Why a body could not be read, in upstream's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the words are the documentation")]
pub enum Error {
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

/// A kind whose message is known.
#[derive(Clone, Copy, Debug)]
pub struct Kind(&'static Message);

impl Kind {
    /// The kind of that name; none if nothing is known of its message.
    #[must_use]
    pub fn find(api_version: &str, kind: &str) -> Option<Self> {
        TABLE.root(api_version, kind).map(Self)
    }

    /// What a message of this kind says, without the fields to skip, and without saying of which kind it is.
    ///
    /// # Errors
    /// When the bytes are no such message.
    pub fn read(self, raw: &[u8], skip: Skip) -> Result<Tree<'_>, Error> {
        message::read(self.0, raw, skip)
    }
}

/// What a body says about itself, and the message it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Envelope<'a> {
    /// As in JSON, such as `apps/v1`.
    pub api_version: Cow<'a, str>,
    /// As in JSON, such as `Pod`.
    pub kind: Cow<'a, str>,
    /// The message.
    pub raw: &'a [u8],
}

impl<'a> Envelope<'a> {
    /// Reads a body.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        if body.is_empty() {
            return Err(Error::Empty);
        }
        let inner = body.strip_prefix(MAGIC).ok_or(Error::Prefix)?;
        if inner.is_empty() {
            return Err(Error::NoBody);
        }
        let mut found = Self { api_version: Cow::default(), kind: Cow::default(), raw: &[] };
        let mut reader = Reader::new(inner);
        while !reader.is_empty() {
            match reader.tag("Unknown")? {
                (1, BYTES) => found.read_type(reader.bytes()?)?,
                (2, BYTES) => found.raw = reader.bytes()?,
                // How the message is encoded besides: nobody writes anything there.
                (3 | 4, BYTES) => drop(reader.bytes()?),
                (number @ 1..=4, wire) => {
                    let field = ["TypeMeta", "Raw", "ContentEncoding", "ContentType"][number as usize - 1];
                    return Err(Error::Field { wire, field: field.to_owned() });
                }
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(found)
    }

    fn read_type(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag("TypeMeta")? {
                (1, BYTES) => self.api_version = String::from_utf8_lossy(reader.bytes()?),
                (2, BYTES) => self.kind = String::from_utf8_lossy(reader.bytes()?),
                (1, wire) => return Err(Error::Field { wire, field: "APIVersion".to_owned() }),
                (2, wire) => return Err(Error::Field { wire, field: "Kind".to_owned() }),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(())
    }

    /// What its message says.
    ///
    /// # Errors
    /// When nothing is known of the kind, or it is no such message.
    pub fn object(&self, skip: Skip) -> Result<Tree<'a>, Error> {
        self.known(&self.kind)?.read(self.raw, skip)
    }

    fn known(&self, kind: &str) -> Result<Kind, Error> {
        Kind::find(&self.api_version, kind).ok_or_else(|| Error::Kind {
            api_version: self.api_version.clone().into_owned(),
            kind: kind.to_owned(),
        })
    }
}

/// A list: every kind's has the same two fields.
#[derive(Debug, Clone)]
pub struct List<'a> {
    /// The revision it was at.
    pub revision: Cow<'a, str>,
    /// How to ask for the next page; empty if there is none.
    pub next: Cow<'a, str>,
    item: Kind,
    items: Vec<&'a [u8]>,
}

impl<'a> List<'a> {
    /// Reads a list of a kind that is known.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(body: &'a [u8]) -> Result<Self, Error> {
        let envelope = Envelope::read(body)?;
        let item = envelope.known(envelope.kind.strip_suffix("List").unwrap_or_default())?;
        let mut list = Self { revision: Cow::default(), next: Cow::default(), item, items: Vec::new() };
        let mut reader = Reader::new(envelope.raw);
        while !reader.is_empty() {
            match reader.tag("List")? {
                (1, BYTES) => list.read_meta(reader.bytes()?)?,
                (2, BYTES) => list.items.push(reader.bytes()?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(list)
    }

    fn read_meta(&mut self, bytes: &'a [u8]) -> Result<(), Error> {
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            match reader.tag("ListMeta")? {
                (2, BYTES) => self.revision = String::from_utf8_lossy(reader.bytes()?),
                (3, BYTES) => self.next = String::from_utf8_lossy(reader.bytes()?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(())
    }

    /// Its objects, without the fields to skip.
    #[must_use]
    pub fn items(&self, skip: Skip) -> impl ExactSizeIterator<Item = Result<Tree<'a>, Error>> + use<'a> {
        let item = self.item;
        self.items.clone().into_iter().map(move |raw| item.read(raw, skip))
    }
}

/// One event of a watch.
#[derive(Debug, Clone)]
pub struct Event<'a> {
    /// Such as `ADDED`.
    pub what: Cow<'a, str>,
    /// What happened to it.
    pub object: Envelope<'a>,
}

impl<'a> Event<'a> {
    /// Reads an event as streams carry it, without its length.
    ///
    /// # Errors
    /// When it is none.
    pub fn read(frame: &'a [u8]) -> Result<Self, Error> {
        let (mut what, mut object) = (Cow::default(), None);
        let mut reader = Reader::new(frame);
        while !reader.is_empty() {
            match reader.tag("WatchEvent")? {
                (1, BYTES) => what = String::from_utf8_lossy(reader.bytes()?),
                (2, BYTES) => object = Some(embedded(reader.bytes()?)?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        Ok(Self { what, object: object.ok_or(Error::NoBody)? })
    }
}

/// An object within a `RawExtension`: a body of its own.
fn embedded(bytes: &[u8]) -> Result<Envelope<'_>, Error> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        match reader.tag("RawExtension")? {
            (1, BYTES) => return Envelope::read(reader.bytes()?),
            (_, wire) => reader.skip(wire)?,
        }
    }
    Err(Error::NoBody)
}
