//! What a message says, as the tree that its JSON would be.
//!
//! Writers of these types put every field on the wire that is not a pointer, zero or not; JSON leaves most zeros
//! out. So a zero of a plain field disappears where Go would not print it, and a zero behind a pointer stays.

use super::Error;
use super::table::{Field, Form, Message, TABLE, Type};
use super::wire::{BYTES, FIXED64, Reader, VARINT};
use crate::json::{Entry, Map, Skip, Tree};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Number;
use std::borrow::Cow;
use std::fmt::Write as _;

/// How deep messages may be nested. JSON text deeper than this is not read either.
const DEEPEST: usize = 100;

/// Reads a message of the table. Fields that come twice are merged or replaced, as protobuf wants.
///
/// # Errors
/// When the bytes are no such message.
pub(super) fn read<'a>(message: &'static Message, bytes: &'a [u8], skip: Skip) -> Result<Tree<'a>, Error> {
    let mut open = Open { items: Vec::with_capacity(16), fields: Vec::with_capacity(64) };
    open.object(message, bytes, skip, DEEPEST).map(Tree::Object)
}

fn message(id: usize) -> Result<&'static Message, Error> {
    TABLE.messages.get(id).ok_or(Error::Depth)
}

/// Lists and objects that are not complete yet, one behind the other. Each is moved out once its size is known, so that
/// no list grows.
struct Open<'a> {
    items: Vec<Tree<'a>>,
    fields: Vec<Entry<'a>>,
}

/// A field of a message, as it stands on the wire.
#[derive(Clone, Copy)]
struct Found {
    number: u32,
    wire: u8,
    /// Where the fields of its message begin among those that are open.
    first: usize,
    /// May it have been there before? Writers put fields in order, each once.
    again: bool,
}

impl<'a> Open<'a> {
    /// The fields of one message.
    fn object(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        skip: Skip,
        depth: usize,
    ) -> Result<Map<'a>, Error> {
        let first = self.fields.len();
        self.extend(message, bytes, skip, depth, (first, false))?;
        Ok(Map::new(self.fields.drain(first..).collect()))
    }

    /// Reads a message into the fields that are open from `first` on, of which some may be there `again`.
    fn extend(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        skip: Skip,
        depth: usize,
        (first, again): (usize, bool),
    ) -> Result<(), Error> {
        let depth = depth.checked_sub(1).ok_or(Error::Depth)?;
        let mut reader = Reader::new(bytes);
        let mut last = 0;
        while !reader.is_empty() {
            let (number, wire) = reader.tag(message.go())?;
            let Some(field) = message.field(number).filter(|field| !skip.skips(field.json)) else {
                reader.skip(wire)?;
                continue;
            };
            let found = Found { number, wire, first, again: again || number <= last };
            last = last.max(number);
            self.field(field, found, &mut reader, skip, depth)?;
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &'static Field,
        found: Found,
        reader: &mut Reader<'a>,
        skip: Skip,
        depth: usize,
    ) -> Result<(), Error> {
        let packed = found.wire == BYTES && matches!(&field.ty, Type::List(of) if wire_of(of) == VARINT);
        if !packed && found.wire != wire_of(&field.ty) {
            return Err(Error::Field { wire: found.wire, field: field.go() });
        }
        let below = skip.below(field.json);
        match &field.ty {
            Type::List(of) => self.list(field, found, of, reader, below, depth),
            Type::Map(of) => self.map(field, found, of, reader, below, depth),
            // Its fields are those of the message it is in.
            Type::Message(id) if field.json.is_empty() => {
                self.extend(message(*id)?, reader.bytes()?, skip, depth, (found.first, found.again))
            }
            Type::Pointer(of) => self.single(field, found, of, reader, below, depth),
            plain => self.single(field, found, plain, reader, below, depth),
        }
    }

    /// All items that stand one behind the other.
    fn list(
        &mut self,
        field: &'static Field,
        found: Found,
        of: &Type,
        reader: &mut Reader<'a>,
        skip: Skip,
        depth: usize,
    ) -> Result<(), Error> {
        let first = self.items.len();
        if let Some(Tree::Array(before)) = self.take(found, field) {
            self.items.extend(before);
        }
        loop {
            if found.wire == BYTES && wire_of(of) == VARINT {
                let mut packed = Reader::new(reader.bytes()?);
                while !packed.is_empty() {
                    let item = self.value(of, &mut packed, skip, depth)?;
                    self.items.push(item);
                }
            } else {
                let item = self.value(of, reader, skip, depth)?;
                self.items.push(item);
            }
            if !reader.goes_on(found.number, found.wire) {
                break;
            }
        }
        let items = self.items.drain(first..).collect();
        self.fields.push((Cow::Borrowed(field.json), Tree::Array(items)));
        Ok(())
    }

    /// All entries that stand one behind the other.
    fn map(
        &mut self,
        field: &'static Field,
        found: Found,
        of: &Type,
        reader: &mut Reader<'a>,
        skip: Skip,
        depth: usize,
    ) -> Result<(), Error> {
        let before = self.take(found, field);
        let first = self.fields.len();
        if let Some(Tree::Object(before)) = before {
            self.fields.extend(before.into_entries());
        }
        loop {
            let (key, value) = self.entry(of, reader.bytes()?, skip, depth)?;
            if !skip.skips(&key) {
                self.fields.push((key, value));
            }
            if !reader.goes_on(found.number, found.wire) {
                break;
            }
        }
        let entries = Map::new(self.fields.drain(first..).collect());
        self.fields.push((Cow::Borrowed(field.json), Tree::Object(entries)));
        Ok(())
    }

    /// One entry of a map: a message of a key and a value, either of which may be missing.
    fn entry(&mut self, of: &Type, bytes: &'a [u8], skip: Skip, depth: usize) -> Result<Entry<'a>, Error> {
        let mut reader = Reader::new(bytes);
        let (mut key, mut value) = (Cow::default(), None);
        while !reader.is_empty() {
            match reader.tag("")? {
                (1, _) => key = text(reader.bytes()?),
                (2, _) => value = Some(self.value(of, &mut reader, skip.below(&key), depth)?),
                (_, wire) => reader.skip(wire)?,
            }
        }
        let value = match value {
            Some(value) => value,
            None => self.value(of, &mut Reader::new(zero(of)), skip, depth)?,
        };
        Ok((key, value))
    }

    /// A field that is neither a list nor a map.
    fn single(
        &mut self,
        field: &'static Field,
        found: Found,
        ty: &Type,
        reader: &mut Reader<'a>,
        skip: Skip,
        depth: usize,
    ) -> Result<(), Error> {
        let before = self.take(found, field);
        if let Type::Message(id) = ty
            && message(*id)?.form == Form::Fields
        {
            let first = self.fields.len();
            let again = matches!(before, Some(Tree::Object(_)));
            if let Some(Tree::Object(before)) = before {
                self.fields.extend(before.into_entries());
            }
            self.extend(message(*id)?, reader.bytes()?, skip, depth, (first, again))?;
            let fields = Map::new(self.fields.drain(first..).collect());
            self.fields.push((Cow::Borrowed(field.json), Tree::Object(fields)));
            return Ok(());
        }
        let value = self.value(ty, reader, skip, depth)?;
        // Go never takes a struct for empty, whatever its form in JSON.
        let plain = !matches!(field.ty, Type::Pointer(_)) && !matches!(ty, Type::Message(_));
        if !(value.is_null() || plain && field.omit && is_zero(&value)) {
            self.fields.push((Cow::Borrowed(field.json), value));
        }
        Ok(())
    }

    /// What a field said before, taken out.
    fn take(&mut self, found: Found, field: &Field) -> Option<Tree<'a>> {
        if !found.again {
            return None;
        }
        let mut open = self.fields[found.first..].iter();
        let place = open.position(|(name, _)| *name == field.json)?;
        Some(self.fields.remove(found.first + place).1)
    }

    /// A value that is neither a list nor a map.
    fn value(
        &mut self,
        ty: &Type,
        reader: &mut Reader<'a>,
        skip: Skip,
        depth: usize,
    ) -> Result<Tree<'a>, Error> {
        Ok(match ty {
            Type::Text => Tree::String(text(reader.bytes()?)),
            Type::Bool => Tree::Bool(reader.varint()? != 0),
            #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the lower 32 bits, too")]
            Type::Int32 => Tree::Number((reader.varint()?.cast_signed() as i32).into()),
            Type::Int64 => Tree::Number(reader.varint()?.cast_signed().into()),
            Type::Double => number(f64::from_bits(reader.fixed64()?)),
            Type::Bytes => Tree::String(Cow::Owned(STANDARD.encode(reader.bytes()?))),
            Type::Json => match reader.bytes()? {
                [] => Tree::Null,
                bytes => Tree::parse(bytes, skip).map_err(|e| Error::Json(e.to_string()))?,
            },
            Type::Message(id) => self.formed(message(*id)?, reader.bytes()?, skip, depth)?,
            Type::Pointer(inner) => self.value(inner, reader, skip, depth)?,
            // No message has lists of lists, or maps of them: there are messages around the inner ones.
            Type::List(_) | Type::Map(_) => return Err(Error::Depth),
        })
    }

    /// A message in the form it has in JSON.
    fn formed(
        &mut self,
        message: &'static Message,
        bytes: &'a [u8],
        skip: Skip,
        depth: usize,
    ) -> Result<Tree<'a>, Error> {
        // Amounts and times are many: nothing is built for them but the text.
        if matches!(message.form, Form::Text | Form::Time | Form::Micro) {
            return Few::read(message, bytes)?.formed(message.form);
        }
        let skip = if message.form == Form::Fields { skip } else { Skip::NOTHING };
        let object = self.object(message, bytes, skip, depth)?;
        let taken = |key: &str| object.get(key).cloned();
        let is_number = object.get("type").and_then(Tree::as_i64).unwrap_or(0) == 0;
        Ok(match message.form {
            Form::Raw => taken("raw").unwrap_or_default(),
            Form::Either if is_number => taken("intVal").unwrap_or(Tree::Number(0.into())),
            Form::Either => taken("strVal").unwrap_or(Tree::String(Cow::Borrowed(""))),
            Form::First => message.fields.iter().find_map(|field| taken(field.json)).unwrap_or_default(),
            Form::Fields | Form::Text | Form::Time | Form::Micro => Tree::Object(object),
        })
    }
}

/// A message of a text, or of seconds and nanoseconds.
#[derive(Default)]
struct Few<'a> {
    text: Option<Cow<'a, str>>,
    /// By the number of the field, less one.
    numbers: [i64; 2],
    /// Is there anything at all?
    is_there: bool,
}

impl<'a> Few<'a> {
    fn read(message: &Message, bytes: &'a [u8]) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut reader = Reader::new(bytes);
        while !reader.is_empty() {
            let (number, wire) = reader.tag(message.go())?;
            let Some(field) = message.field(number) else {
                reader.skip(wire)?;
                continue;
            };
            if wire != wire_of(&field.ty) {
                return Err(Error::Field { wire, field: field.go() });
            }
            found.is_there = true;
            if wire == BYTES {
                found.text = Some(text(reader.bytes()?));
                continue;
            }
            let mut value = reader.varint()?.cast_signed();
            if field.ty == Type::Int32 {
                #[expect(clippy::cast_possible_truncation, reason = "upstream keeps the lower 32 bits, too")]
                let lower = value as i32;
                value = lower.into();
            }
            if let Some(place) = found.numbers.get_mut(number as usize - 1) {
                *place = value;
            }
        }
        Ok(found)
    }

    fn formed(self, form: Form) -> Result<Tree<'a>, Error> {
        let [seconds, nanos] = self.numbers;
        match form {
            Form::Text => Ok(Tree::String(self.text.unwrap_or(Cow::Borrowed("0")))),
            // Nobody writes an empty time but for the year one.
            _ if !self.is_there => Ok(Tree::Null),
            Form::Micro => instant(seconds, nanos, "%Y-%m-%dT%H:%M:%S.%6fZ"),
            _ => instant(seconds, 0, "%Y-%m-%dT%H:%M:%SZ"),
        }
    }
}

/// What a map holds under a key that came without a value.
fn zero(ty: &Type) -> &'static [u8] {
    match wire_of(ty) {
        FIXED64 => &[0; 8],
        // The number zero, or no bytes at all.
        _ => &[0],
    }
}

fn instant(seconds: i64, nanos: i64, format: &str) -> Result<Tree<'static>, Error> {
    let span = jiff::SignedDuration::new(seconds.clamp(-1 << 40, 1 << 40), 0);
    let span = span.checked_add(jiff::SignedDuration::from_nanos(nanos / 1000 * 1000));
    let instant = span.and_then(|span| jiff::Timestamp::from_duration(span).ok());
    let instant = instant.ok_or(Error::Time(seconds))?;
    // As long as the longest of them.
    let mut written = String::with_capacity(32);
    write!(written, "{}", instant.strftime(format)).map_err(|_| Error::Time(seconds))?;
    Ok(Tree::String(Cow::Owned(written)))
}

/// A number as Go prints it: whole ones have no decimals.
fn number(value: f64) -> Tree<'static> {
    #[expect(clippy::cast_possible_truncation, reason = "whole and far below the largest")]
    if value.fract() == 0.0 && value.abs() < 9e15 {
        return Tree::Number((value as i64).into());
    }
    Number::from_f64(value).map_or(Tree::Null, Tree::Number)
}

/// Text as Go prints it into JSON.
fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

fn wire_of(ty: &Type) -> u8 {
    match ty {
        Type::Pointer(inner) | Type::List(inner) => wire_of(inner),
        Type::Bool | Type::Int32 | Type::Int64 => VARINT,
        Type::Double => FIXED64,
        Type::Map(_) | Type::Message(_) | Type::Text | Type::Bytes | Type::Json => BYTES,
    }
}

/// Whether a plain field with this value is left out of JSON.
fn is_zero(value: &Tree<'_>) -> bool {
    match value {
        Tree::Null => true,
        Tree::Bool(yes) => !yes,
        Tree::Number(number) => number.as_f64() == Some(0.0),
        Tree::String(text) => text.is_empty(),
        Tree::Array(_) | Tree::Object(_) => false,
    }
}
