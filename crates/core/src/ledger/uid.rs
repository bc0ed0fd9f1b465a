//! Who is it? A pod's identity in sixteen bytes.

use std::ops::Range;

/// The identity of a pod, from the text of its uid.
///
/// A UUID is its 128 bits. Any other text is hashed to 128 bits; two of a million texts then share a number
/// with a chance below one in 10²⁶, so collisions are not handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// From the text of a uid.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(uuid(text).unwrap_or_else(|| fnv(text)))
    }
}

/// The bits of a UUID in its usual form, groups of 8, 4, 4, 4 and 12 digits.
fn uuid(text: &str) -> Option<u128> {
    let text: &[u8; 36] = text.as_bytes().try_into().ok()?;
    if [8, 13, 18, 23].into_iter().any(|dash| text[dash] != b'-') {
        return None;
    }
    let digits = |of: Range<usize>| {
        text[of].iter().try_fold(0, |bits: u64, byte| {
            char::from(*byte).to_digit(16).map(|digit| bits << 4 | u64::from(digit))
        })
    };
    let high = digits(0..8)? << 32 | digits(9..13)? << 16 | digits(14..18)?;
    let low = digits(19..23)? << 48 | digits(24..36)?;
    Some(u128::from(high) << 64 | u128::from(low))
}

/// FNV-1a with 128 bits: the same on every machine and in every release.
fn fnv(text: &str) -> u128 {
    const PRIME: u128 = (1 << 88) + 0x13b;
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    text.bytes().fold(BASIS, |hash, byte| (hash ^ u128::from(byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_is_its_bits_and_other_texts_are_hashed() {
        let bits = 0x0123_4567_89ab_cdef_0123_4567_89ab_cdef;
        let cases = [
            ("01234567-89ab-cdef-0123-456789abcdef", bits, "the usual form"),
            ("01234567-89AB-CDEF-0123-456789ABCDEF", bits, "capitals are the same digits"),
            ("", 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, "the basis of the hash"),
            ("a", 0xd228_cb69_6f1a_8caf_7891_2b70_4e4a_8964, "known answer of FNV-1a"),
        ];
        for (text, want, why) in cases {
            assert_eq!(Uid::new(text), Uid(want), "{text}: {why}");
        }
        let odd = ["01234567-89ab-cdef-0123-456789abcdeg", "01234567x89ab-cdef-0123-456789abcdef", "é"];
        for text in odd {
            assert_ne!(Uid::new(text), Uid(bits), "{text} is no UUID");
        }
    }
}
