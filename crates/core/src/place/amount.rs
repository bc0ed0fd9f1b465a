//! How much is `63194Mi` as a floating number, the way the scores count?
//!
//! Scores are floating-point and truncated, so that one bit decides. An amount is therefore converted exactly as the
//! placement controller's quantities are: a whole number of digits (a binary suffix multiplied out), as a float, times
//! the power of ten that is left. `300m` is 300 × 10⁻³, not 3 × 10⁻¹, which is another number.

use crate::quantity::{Error, Quantity};
use std::collections::BTreeMap;
use std::str::FromStr;

/// Amounts by resource. What is not known is not listed.
pub type Resources = BTreeMap<String, Amount>;

/// An amount, approximately: good for ratios and comparisons, not for bookkeeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Amount(f64);

impl Amount {
    /// The number.
    #[must_use]
    pub fn float(self) -> f64 {
        self.0
    }
}

/// Powers of ten as the nearest float each.
const TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];
const TENTH: [f64; 10] = [1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9];

impl FromStr for Amount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let quantity: Quantity = text.parse()?;
        Ok(Self(
            digits(text)
                .and_then(|(digits, exponent)| scaled(digits, exponent))
                .unwrap_or_else(|| rough(&quantity)),
        ))
    }
}

/// The digits as one whole number, and the power of ten to multiply by. None if there are too many of them, or parts
/// too small to matter.
fn digits(text: &str) -> Option<(i128, i32)> {
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let mut digits: i128 = 0;
    for digit in whole.bytes().chain(part.bytes()) {
        digits = digits.checked_mul(10)?.checked_add(i128::from(digit - b'0'))?;
    }
    let (factor, exponent): (i128, i32) = match suffix {
        "" => (1, 0),
        "n" => (1, -9),
        "u" => (1, -6),
        "m" => (1, -3),
        "k" => (1, 3),
        "M" => (1, 6),
        "G" => (1, 9),
        "T" => (1, 12),
        "P" => (1, 15),
        "E" => (1, 18),
        "Ki" => (1 << 10, 0),
        "Mi" => (1 << 20, 0),
        "Gi" => (1 << 30, 0),
        "Ti" => (1 << 40, 0),
        "Pi" => (1 << 50, 0),
        "Ei" => (1 << 60, 0),
        other => (1, other.strip_prefix(['e', 'E'])?.parse().ok()?),
    };
    let digits = digits.checked_mul(factor)?;
    // A binary amount holds at the largest whole number of 64 bits.
    if factor > 1 && digits > i128::from(i64::MAX) {
        return None;
    }
    let places = i32::try_from(part.len()).ok()?;
    Some((if negative { -digits } else { digits }, exponent.checked_sub(places)?))
}

#[expect(clippy::cast_precision_loss, reason = "the nearest float is what is wanted")]
fn scaled(digits: i128, exponent: i32) -> Option<f64> {
    let power = usize::try_from(exponent.unsigned_abs()).ok()?;
    match exponent {
        0 => Some(digits as f64),
        1.. => Some(digits as f64 * TEN.get(power)?),
        _ => Some(digits as f64 * TENTH.get(power)?),
    }
}

/// For amounts nobody writes: by the exact amount, as far as it is a whole number of 64 bits.
#[expect(clippy::cast_precision_loss, reason = "the nearest float is what is wanted")]
fn rough(quantity: &Quantity) -> f64 {
    quantity.value() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_floats_bit_for_bit() {
        let cases: [(&str, f64, &str); 12] = [
            ("15", 15.0, "whole numbers are exact"),
            ("300m", 300.0 * 1e-3, "300 × 10⁻³ is 0.3"),
            ("0.3", 3.0 * 1e-1, "3 × 10⁻¹ is 0.30000000000000004"),
            ("1500m", 1500.0 * 1e-3, "not brought to 15 × 10⁻¹ first"),
            ("63194Mi", 66_263_711_744.0, "63194 × 2²⁰"),
            ("1.5Gi", 16_106_127_360.0 * 1e-1, "15 × 2³⁰ × 10⁻¹"),
            ("2k", 2.0 * 1e3, "decimal suffixes are powers of ten"),
            ("12e6", 12.0 * 1e6, "so are exponents"),
            ("-2", -2.0, "less than nothing"),
            ("0", 0.0, "nothing"),
            ("16Ei", 9_223_372_036_854_775_807.0, "binary amounts hold at 2⁶³ − 1"),
            ("0.0000000001", 1.0, "finer than a billionth: rounded up, as a whole"),
        ];
        for (text, want, why) in cases {
            let amount: Amount = text.parse().unwrap();
            assert!(
                amount.float().to_bits() == want.to_bits(),
                "{text}: {} is not {want}: {why}",
                amount.float()
            );
        }
        assert!("many".parse::<Amount>().is_err());
    }

    // Amounts that the rough way, which knows whole numbers of 64 bits, would get wrong: each suffix counts for itself.
    #[test]
    fn every_suffix_is_a_factor() {
        for (suffix, thousandths) in [("m", 1), ("u", 2), ("n", 3)] {
            let amount: Amount = format!("3{suffix}").parse().unwrap();
            assert_eq!(amount.float().to_bits(), (3.0 * TENTH[3 * thousandths]).to_bits(), "3{suffix}");
        }
        for (suffix, zeros) in [("k", 17), ("M", 14), ("G", 11), ("T", 8), ("P", 5), ("E", 2), ("e12", 8)] {
            let text = format!("1{}{suffix}", "0".repeat(zeros));
            let amount: Amount = text.parse().unwrap();
            assert_eq!(amount.float().to_bits(), 1e20_f64.to_bits(), "{text} is 10²⁰");
        }
        let mut whole = 1.0_f64;
        for suffix in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
            whole *= 1024.0;
            let amount: Amount = format!("0.1{suffix}").parse().unwrap();
            assert_eq!(amount.float().to_bits(), (whole * 1e-1).to_bits(), "0.1{suffix}");
        }
    }
}
