//! From text to amount, accepting what Kubernetes accepts.

use super::{Error, Format, NANO, Quantity};
use std::str::FromStr;

/// The largest size written with a binary suffix; more is held here. Kubernetes caps only binary amounts.
const BINARY_CAP: i128 = i64::MAX as i128;

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
pub(super) enum Unit {
    Ten(i32, Format),
    Two(u32),
}

/// A text in its pieces: sign, digits before and after the point, suffix.
pub(super) struct Pieces<'a> {
    negative: bool,
    pub(super) whole: &'a [u8],
    pub(super) fraction: &'a [u8],
    pub(super) suffix: &'a str,
    /// Was there any digit at all? Kubernetes takes `Ki` for zero but refuses `Pi`.
    digits: bool,
}

impl FromStr for Quantity {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let pieces = split(text).ok_or_else(|| Error::Shape { text: text.into() })?;
        let unit = unit(pieces.suffix)
            .ok_or_else(|| Error::Suffix { text: text.into(), suffix: pieces.suffix.into() })?;
        if !pieces.digits && needs_digits(unit) {
            return Err(Error::Digits { text: text.into() });
        }
        let size = match unit {
            Unit::Ten(exp, format) => decimal(&pieces, exp, format),
            Unit::Two(power) => binary(&pieces, power),
        };
        Ok(if pieces.negative { Self { digits: -size.digits, ..size } } else { size })
    }
}

pub(super) fn split(text: &str) -> Option<Pieces<'_>> {
    let bytes = text.as_bytes();
    if bytes.is_empty() {
        return None;
    }
    let signed = usize::from(matches!(bytes[0], b'+' | b'-'));
    let skip = |from: usize, ok: fn(&u8) -> bool| from + bytes[from..].iter().take_while(|b| ok(b)).count();
    let point = skip(signed, u8::is_ascii_digit);
    let (fraction, units) = if bytes.get(point) == Some(&b'.') {
        (point + 1, skip(point + 1, u8::is_ascii_digit))
    } else {
        (point, point)
    };
    // A suffix is letters, then perhaps a sign, then digits. Whether it means something is decided later.
    let mut end = skip(units, |b| b"eEinumkKMGTP".contains(b));
    if end < bytes.len() {
        end = skip(end + usize::from(matches!(bytes[end], b'+' | b'-')), u8::is_ascii_digit);
    }
    let zeros = bytes[signed..point].iter().take_while(|b| **b == b'0').count();
    (end == bytes.len()).then(|| Pieces {
        negative: bytes[0] == b'-',
        whole: &bytes[signed + zeros..point],
        fraction: &bytes[fraction..units],
        suffix: &text[units..],
        digits: point > signed || units > fraction,
    })
}

pub(super) fn unit(suffix: &str) -> Option<Unit> {
    let ten = |exp| Some(Unit::Ten(exp, Format::DecimalSi));
    match suffix {
        "n" => ten(-9),
        "u" => ten(-6),
        "m" => ten(-3),
        "" => ten(0),
        "k" => ten(3),
        "M" => ten(6),
        "G" => ten(9),
        "T" => ten(12),
        "P" => ten(15),
        "E" => ten(18),
        "Ki" => Some(Unit::Two(10)),
        "Mi" => Some(Unit::Two(20)),
        "Gi" => Some(Unit::Two(30)),
        "Ti" => Some(Unit::Two(40)),
        "Pi" => Some(Unit::Two(50)),
        "Ei" => Some(Unit::Two(60)),
        _ => {
            let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            #[expect(
                clippy::cast_possible_truncation,
                reason = "Kubernetes keeps the low 32 bits, so 1e4294967296 is 1"
            )]
            Some(Unit::Ten(exponent as i32, Format::DecimalExponent))
        }
    }
}

/// Kubernetes reads numbers without digits as zero on its short path and refuses them on the long one.
fn needs_digits(unit: Unit) -> bool {
    match unit {
        Unit::Ten(exp, _) => exp < NANO,
        Unit::Two(power) => power >= 50,
    }
}

/// All digits times ten to the `exp`, minus the places after the point.
fn decimal(pieces: &Pieces<'_>, exp: i32, format: Format) -> Quantity {
    let digits = || pieces.whole.iter().chain(pieces.fraction);
    // The power of ten of the last digit read; the text may be longer than any i32, hence i64.
    let mut power = i64::from(exp) - len(pieces.fraction);
    let drop = usize::try_from((i64::from(NANO) - power).max(0)).unwrap_or(usize::MAX);
    let keep = (pieces.whole.len() + pieces.fraction.len()).saturating_sub(drop);
    power = power.max(i64::from(NANO));

    let mut size: i128 = 0;
    let mut held = 0;
    for d in digits().take(keep) {
        let next = size.checked_mul(10).and_then(|s| s.checked_add(i128::from(d - b'0')));
        match next {
            Some(next) => {
                size = next;
                held += 1;
            }
            // Once one digit did not fit, none of the following may.
            None => break,
        }
    }
    power += i64::try_from(keep - held).unwrap_or(i64::MAX);
    if digits().skip(held).any(|d| *d != b'0') {
        size = size.saturating_add(1);
    }
    let power = i32::try_from(power).unwrap_or(i32::MAX);
    Quantity::scaled(size, power, format)
}

/// The digits times a power of two, exact to the nano however many digits are given.
fn binary(pieces: &Pieces<'_>, power: u32) -> Quantity {
    let mut whole: i128 = 0;
    for d in pieces.whole {
        whole = (whole * 10 + i128::from(d - b'0')).min(BINARY_CAP);
    }
    // 0.d1d2d3… × 2^power in nano: multiply from the last digit on, carrying; what falls off only matters
    // in that it is not zero.
    let nano = (1_i128 << power) * 1_000_000_000;
    let (mut carry, mut rest) = (0_i128, false);
    for d in pieces.fraction.iter().rev() {
        let step = i128::from(d - b'0') * nano + carry;
        rest |= step % 10 != 0;
        carry = step / 10;
    }
    carry += i128::from(rest);
    let (units, nanos) = (carry / 1_000_000_000, carry % 1_000_000_000);
    // whole ≤ 2^63 and 2^power ≤ 2^60, so the product stays below 2^123.
    let units = (whole << power) + units;
    if units >= BINARY_CAP {
        return Quantity::scaled(BINARY_CAP, 0, Format::BinarySi);
    }
    // A part of one byte prints as decimal; so it is decimal.
    let format = if units == 0 && nanos > 0 { Format::DecimalSi } else { Format::BinarySi };
    Quantity::scaled(units * 1_000_000_000 + nanos, NANO, format)
}

pub(super) fn len(part: &[u8]) -> i64 {
    i64::try_from(part.len()).unwrap_or(i64::MAX)
}
