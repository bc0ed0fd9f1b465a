//! How bytes become protobuf fields: tags, numbers, lengths, and what to skip. And how a few fields become bytes.
//!
//! Limits and complaints are those of the code generated for Kubernetes' types, because clients see them.

use super::Error;

/// How a field is written.
pub(super) const VARINT: u8 = 0;
pub(super) const FIXED64: u8 = 1;
pub(super) const BYTES: u8 = 2;
const START_GROUP: u8 = 3;
const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Reads a message from its front. Everything it hands out borrows from the body, so lengths that lie cost nothing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(super) fn is_empty(self) -> bool {
        self.0.is_empty()
    }

    /// The number and the wire type of the next field of a message.
    pub(super) fn tag(&mut self, message: &str) -> Result<(u32, u8), Error> {
        let wire = self.varint()?;
        let (number, kind) = split(wire);
        if kind == END_GROUP {
            return Err(Error::Group(message.to_owned()));
        }
        // Upstream keeps the number in 32 bits with a sign, and drops the rest.
        u32::try_from(number)
            .ok()
            .filter(|number| *number > 0)
            .map(|number| (number, kind))
            .ok_or_else(|| Error::Tag { message: message.to_owned(), number, wire })
    }

    pub(super) fn varint(&mut self) -> Result<u64, Error> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            // The tenth byte has room for one bit; upstream loses the others.
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Error::Overflow)
    }

    pub(super) fn fixed64(&mut self) -> Result<u64, Error> {
        Ok(self.take(8)?.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    pub(super) fn bytes(&mut self) -> Result<&'a [u8], Error> {
        let length = self.varint()?;
        self.take(usize::try_from(length).ok().filter(|l| isize::try_from(*l).is_ok()).ok_or(Error::Length)?)
    }

    /// Is the next field the same once more? Then its tag has been read.
    pub(super) fn goes_on(&mut self, number: u32, wire: u8) -> bool {
        let mut ahead = *self;
        let same = !self.is_empty() && ahead.tag("") == Ok((number, wire));
        if same {
            *self = ahead;
        }
        same
    }

    /// Leaves out a field whose tag was read; groups with all that is in them.
    pub(super) fn skip(&mut self, kind: u8) -> Result<(), Error> {
        let mut kind = kind;
        let mut open = 0_usize;
        loop {
            match kind {
                VARINT => drop(self.varint()?),
                FIXED64 => drop(self.take(8)?),
                BYTES => drop(self.bytes()?),
                START_GROUP => open += 1,
                END_GROUP => open = open.checked_sub(1).ok_or(Error::End)?,
                FIXED32 => drop(self.take(4)?),
                other => return Err(Error::Wire(other)),
            }
            if open == 0 {
                return Ok(());
            }
            kind = split(self.varint()?).1;
        }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let (front, rest) = self.0.split_at_checked(count).ok_or(Error::Eof)?;
        self.0 = rest;
        Ok(front)
    }
}

/// Writes a message, field by field.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// The body of a request: what kind it is, and its message.
    #[must_use]
    pub fn body(api_version: &str, kind: &str, message: &Self) -> Vec<u8> {
        let about = Self::default().text(1, api_version).text(2, kind);
        let mut body = super::MAGIC.to_vec();
        body.extend(Self::default().message(1, &about).message(2, message).0);
        body
    }

    /// A text, under that number.
    #[must_use]
    pub fn text(self, number: u8, text: &str) -> Self {
        self.bytes(number, text.as_bytes())
    }

    /// A message within this one.
    #[must_use]
    pub fn message(self, number: u8, message: &Self) -> Self {
        self.bytes(number, &message.0)
    }

    fn bytes(mut self, number: u8, bytes: &[u8]) -> Self {
        self.varint(u64::from(number) << 3 | u64::from(BYTES));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        self.0.push(value.to_le_bytes()[0]);
    }
}

/// Number and wire type of a tag.
#[expect(clippy::cast_possible_truncation, reason = "upstream keeps the lower 32 bits, too")]
fn split(wire: u64) -> (i32, u8) {
    ((wire >> 3) as i32, (wire & 7) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_seven_bits_at_a_time() {
        for (bytes, want) in [
            (&[0][..], Ok(0)),
            (&[0x96, 0x01], Ok(150)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], Ok(u64::MAX)),
            (&[0xff; 11], Err(Error::Overflow)),
            (&[0x80], Err(Error::Eof)),
            (&[], Err(Error::Eof)),
        ] {
            assert_eq!(Reader::new(bytes).varint(), want, "{bytes:?}");
        }
    }

    #[test]
    fn lengths_that_lie_are_refused() {
        assert_eq!(Reader::new(&[5, 1, 2]).bytes(), Err(Error::Eof));
        let negative = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0];
        assert_eq!(Reader::new(&negative).bytes(), Err(Error::Length));
    }

    #[test]
    fn what_is_not_known_is_skipped_as_a_whole() {
        for (kind, bytes, want) in [
            (VARINT, &[0x80, 1, 9][..], Ok(())),
            (FIXED64, &[1, 2, 3, 4, 5, 6, 7, 8, 9], Ok(())),
            (BYTES, &[2, 1, 2, 9], Ok(())),
            (FIXED32, &[1, 2, 3, 4, 9], Ok(())),
            // A number and a group within a group.
            (START_GROUP, &[8, 1, 11, 12, 12, 9], Ok(())),
            (START_GROUP, &[8, 1], Err(Error::Eof)),
            (END_GROUP, &[9], Err(Error::End)),
            (6, &[9], Err(Error::Wire(6))),
        ] {
            let mut reader = Reader::new(bytes);
            assert_eq!(reader.skip(kind), want, "{kind} {bytes:?}");
            if want.is_ok() {
                assert_eq!(reader.0, [9], "{kind}");
            }
        }
    }

    #[test]
    fn tags_that_name_no_field_are_refused() {
        assert_eq!(Reader::new(&[0x0a]).tag("Pod"), Ok((1, BYTES)));
        assert_eq!(Reader::new(&[4]).tag("Pod"), Err(Error::Group("Pod".to_owned())));
        let zero = Error::Tag { message: "Pod".to_owned(), number: 0, wire: 2 };
        assert_eq!(Reader::new(&[2]).tag("Pod"), Err(zero));
    }
}
