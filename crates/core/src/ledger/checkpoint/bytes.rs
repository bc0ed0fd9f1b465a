//! How are numbers kept small? Seven bits to a byte, the low ones first; a sign is the lowest bit.

use super::BadCheckpoint;

/// Appends a number.
pub(in crate::ledger) fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Appends a number that may be negative; near zero is short.
pub(in crate::ledger) fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, (number.cast_unsigned() << 1) ^ (number >> 63).cast_unsigned());
}

/// What is still to be read.
#[derive(Clone, Copy, Debug)]
pub(in crate::ledger) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(in crate::ledger) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(in crate::ledger) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::ledger) fn byte(&mut self) -> Result<u8, BadCheckpoint> {
        let (first, rest) = self.0.split_first().ok_or(BadCheckpoint::Damaged)?;
        self.0 = rest;
        Ok(*first)
    }

    /// So many bytes.
    pub(in crate::ledger) fn take(&mut self, count: u64) -> Result<&'a [u8], BadCheckpoint> {
        let count = usize::try_from(count).map_err(|_| BadCheckpoint::Damaged)?;
        let (first, rest) = self.0.split_at_checked(count).ok_or(BadCheckpoint::Damaged)?;
        self.0 = rest;
        Ok(first)
    }

    pub(in crate::ledger) fn number(&mut self) -> Result<u64, BadCheckpoint> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(BadCheckpoint::Damaged)
    }

    pub(in crate::ledger) fn signed(&mut self) -> Result<i64, BadCheckpoint> {
        let number = self.number()?;
        Ok((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// A number that fits, or the bytes are not ours.
    pub(in crate::ledger) fn small<T: TryFrom<u64>>(&mut self) -> Result<T, BadCheckpoint> {
        T::try_from(self.number()?).map_err(|_| BadCheckpoint::Damaged)
    }
}
