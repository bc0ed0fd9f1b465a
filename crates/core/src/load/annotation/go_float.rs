//! Floats as Go's `strconv.ParseFloat` reads them.
//!
//! Beside what Rust reads: hexadecimal (`0x1p-2`, the exponent is needed) and underscores between digits
//! (`0.7_5`, `0x_1p0`). Unlike Rust: no sign before `nan`, and what is too large is refused.

/// The float, or nothing if Go refuses the text.
pub(super) fn parse(text: &str) -> Option<f64> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let signed = unsigned.len() < text.len();
    let size = if unsigned.starts_with(|c: char| c.is_ascii_alphabetic()) {
        // A name: NaN without a sign, the infinities with or without.
        unsigned.parse().ok().filter(|float: &f64| float.is_infinite() || !signed)?
    } else {
        let digits = plain(unsigned)?;
        let hex = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"));
        let float = hex.map_or_else(|| digits.parse().ok(), hexadecimal)?;
        Some(float).filter(|float| float.is_finite())?
    };
    Some(if negative { -size } else { size })
}

/// The text without its underscores; nothing if one of them is not between digits, the base prefix counting as one.
fn plain(text: &str) -> Option<String> {
    let prefixed = text.len() > 2 && (text.starts_with("0x") || text.starts_with("0X"));
    let bytes = text.as_bytes();
    let digit = |at: usize| match bytes.get(at) {
        Some(b'x' | b'X') => prefixed && at == 1,
        Some(byte) if prefixed => byte.is_ascii_hexdigit(),
        Some(byte) => byte.is_ascii_digit(),
        None => false,
    };
    let between = |at: usize| at > 0 && digit(at - 1) && digit(at + 1);
    let fine = bytes.iter().enumerate().all(|(at, byte)| *byte != b'_' || between(at));
    fine.then(|| text.replace('_', ""))
}

/// `1.8p-3`, the prefix taken off: hexadecimal digits, perhaps a point among them, and a power of two in decimal.
/// Rounded once, to the nearest, ties to even.
fn hexadecimal(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let fine = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_hexdigit())
        && !digits.is_empty()
        && digits.bytes().all(|b| b.is_ascii_digit());
    if !fine {
        return None;
    }
    // Go holds exponents at this, too: far beyond any float either way.
    let size: i64 = digits.parse::<i64>().unwrap_or(10_000).min(10_000);
    let mut power = if exponent.starts_with('-') { -size } else { size };
    // As many digits as 60 bits hold; whether anything but zeros is cut off is all that matters of the rest.
    let (mut bits, mut rest) = (0_u64, false);
    for (at, digit) in whole.chars().chain(fraction.chars()).enumerate() {
        let digit = u64::from(digit.to_digit(16)?);
        let after_point = at >= whole.len();
        if bits >> 56 == 0 {
            bits = bits << 4 | digit;
            power -= if after_point { 4 } else { 0 };
        } else {
            rest |= digit != 0;
            power += if after_point { 0 } else { 4 };
        }
    }
    Some(rounded(bits, rest, power))
}

/// The float nearest to `bits × 2^power`, and a little more if there is a rest.
fn rounded(bits: u64, rest: bool, power: i64) -> f64 {
    if bits == 0 {
        return 0.0;
    }
    // The exponent of the leading bit, and from it the least bit a float of that size has: 53 of them, and none below
    // the smallest float there is.
    let lead = 63 - i64::from(bits.leading_zeros()) + power;
    let least = (lead - 52).max(-1074);
    let cut = least - power;
    let kept = if cut <= 0 {
        // Exact: at most 60 bits moved up by at most 52, and those that do not fit are zeros.
        bits.checked_shl(u32::try_from(-cut).unwrap_or(u32::MAX)).unwrap_or(0)
    } else {
        let cut = u32::try_from(cut).unwrap_or(u32::MAX);
        let (kept, half) = (bits.checked_shr(cut).unwrap_or(0), 1_u64.checked_shl(cut - 1).unwrap_or(0));
        let lost = bits & half.checked_mul(2).map_or(u64::MAX, |one| one - 1);
        let above = lost > half || (lost == half && rest);
        let tie = lost == half && !rest;
        kept + u64::from(half > 0 && (above || (tie && kept & 1 == 1)))
    };
    // At most 2^53, so exact; and a power of two scales exactly, in two steps where one does not reach.
    #[expect(clippy::cast_precision_loss, reason = "at most 53 bits")]
    let float = kept as f64;
    let exponent = i32::try_from(least.min(2000)).unwrap_or(2000);
    let (first, second) = (exponent / 2, exponent - exponent / 2);
    float * 2_f64.powi(first) * 2_f64.powi(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    // What Go 1.26 answers to the same texts.
    #[test]
    fn floats_are_those_go_reads() {
        for (text, want) in [
            ("0x1p-2", Some(0.25)),
            ("0X1P-2", Some(0.25)),
            ("-0x1.8p1", Some(-3.0)),
            ("0x.8p0", Some(0.5)),
            ("0x1p", None),
            ("0x1", None),
            ("0xp1", None),
            ("0x1p-2_0", Some(2_f64.powi(-20))),
            ("0x_1p0", Some(1.0)),
            ("0x1_p0", None),
            ("0x1p1_", None),
            ("0x1p1024", None),
            ("0x1p-1075", Some(0.0)),
            ("0x1.8p-1075", Some(5e-324)),
            ("0x1p-1074", Some(5e-324)),
            ("0x1.fffffffffffff8p0", Some(2.0)),
            ("0x1.00000000000008p0", Some(1.0)),
            ("0x1.000000000000081p0", Some(1.000_000_000_000_000_2)),
            ("0x123456789abcdefp-60", Some(0.071_111_111_111_111_11)),
            ("0x123456789abcdef0123p-76", Some(0.071_111_111_111_111_11)),
            ("0.7_5", Some(0.75)),
            ("1_2.5_0e1_0", Some(12.5e10)),
            ("_1", None),
            ("1_", None),
            ("1__2", None),
            ("1_.5", None),
            ("1._5", None),
            ("1e_5", None),
            ("1_e5", None),
            ("-_1", None),
            ("0_1", Some(1.0)),
            ("0b1", None),
            ("0x", None),
            ("", None),
            ("+", None),
            ("in_f", None),
            ("infinity", Some(f64::INFINITY)),
            ("-Inf", Some(f64::NEG_INFINITY)),
            ("+nan", None),
            ("1e400", None),
            ("1e-400", Some(0.0)),
        ] {
            assert_eq!(parse(text), want, "{text:?}");
        }
        assert!(parse("NaN").unwrap().is_nan());
    }
}
