//! An amount to compare and to add up, exact to a billionth.

use super::{NANO as NANO_SCALE, Unit, binary, decimal, interpret, split};
use std::fmt;

const NANO: i128 = 1_000_000_000;
const MILLI: i128 = 1_000_000;
/// Whole units above this are cut off, as upstream does.
const MAX: i128 = i64::MAX as i128 * NANO;

/// An amount, exact to a billionth, that remembers how it was written.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    nanos: i128,
    unit: Unit,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, unit: Unit::Decimal(0) };

    /// Reads an amount; `None` if it is not one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() {
            return None;
        }
        let parts = split(text).ok()?;
        let unit = interpret(parts.suffix)?;
        let nanos = magnitude(parts.whole, parts.fraction, unit);
        Some(Self { nanos: if parts.negative { -nanos } else { nanos }, unit })
    }

    /// Rounds away from zero to whole thousandths.
    #[must_use]
    pub fn round_up_milli(self) -> Self {
        let rest = self.nanos % MILLI;
        let up = if rest == 0 { 0 } else { MILLI * rest.signum() - rest };
        Self { nanos: self.nanos + up, ..self }
    }

    /// -1, 0 or 1.
    #[must_use]
    pub fn sign(self) -> i32 {
        match self.nanos {
            0 => 0,
            n if n > 0 => 1,
            _ => -1,
        }
    }

    /// Whether there is no fraction of a unit.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.nanos % NANO == 0
    }

    /// How often `other` fits, as the nearest fraction.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "ratios are shown to people and compared roughly")]
    pub fn over(self, other: Self) -> f64 {
        self.nanos as f64 / other.nanos as f64
    }

    /// The amount in units, as the nearest fraction.
    #[must_use]
    pub fn as_f64(self) -> f64 {
        self.over(Self { nanos: NANO, unit: Unit::Decimal(0) })
    }

    /// The sum, in the spelling of `self` unless that is zero.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let unit = if self.nanos == 0 { other.unit } else { self.unit };
        Self { nanos: self.nanos.saturating_add(other.nanos), unit }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.nanos.cmp(&other.nanos)
    }
}

/// Billionths of `whole.fraction` units, rounded up and cut off at [`MAX`].
fn magnitude(whole: &str, fraction: &str, unit: Unit) -> i128 {
    let digits: String = [whole, fraction].concat();
    let digits = digits.trim_start_matches('0');
    if digits.is_empty() {
        return 0;
    }
    // Thirty-six digits are beyond every bound in either direction.
    let (head, tail) = digits.split_at(digits.len().min(36));
    let sticky = tail.bytes().any(|b| b != b'0');
    let Ok(mut value) = head.parse::<i128>() else { return MAX };
    let fraction_len = i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let tail_len = i32::try_from(tail.len()).unwrap_or(i32::MAX);
    let mut exponent = tail_len.saturating_sub(fraction_len).saturating_add(9);
    let mut up = sticky;
    match unit {
        Unit::Decimal(power) | Unit::Exponent(power) => exponent = exponent.saturating_add(power),
        Unit::Binary(bits) => {
            for _ in 0..bits {
                // Doubling may overflow while a later division would bring it back: divide early, remember the loss.
                while value > i128::MAX / 2 && exponent < 0 {
                    up |= value % 10 != 0;
                    value /= 10;
                    exponent += 1;
                }
                value = value.saturating_mul(2);
            }
        }
    }
    while exponent > 0 && value <= MAX {
        value = value.saturating_mul(10);
        exponent -= 1;
    }
    while exponent < 0 && value > 0 {
        up |= value % 10 != 0;
        value /= 10;
        exponent += 1;
    }
    (value + i128::from(up)).min(MAX)
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.nanos == 0 {
            return f.write_str("0");
        }
        let sign = if self.nanos < 0 { "-" } else { "" };
        let amount = self.nanos.abs();
        let whole = matches!(self.unit, Unit::Binary(_)) && self.is_whole();
        let body = whole.then(|| binary(amount, NANO_SCALE)).flatten();
        write!(f, "{sign}{}", body.unwrap_or_else(|| decimal(amount, NANO_SCALE, self.unit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn amounts_are_spelled_as_upstream_spells_them() {
        for (given, want, why) in [
            ("1000m", "1", "thousandths that make a whole"),
            ("0.5", "500m", "no decimal points"),
            ("1.5Gi", "1536Mi", "binary suffixes stay binary"),
            ("0.5Ki", "512", "below 1024 binary amounts print as decimal"),
            ("1024Ki", "1Mi", "largest exact suffix"),
            ("1024", "1024", "no suffix stays decimal"),
            ("1000M", "1G", "largest exact suffix"),
            ("0.0000000001", "1n", "rounded up to a billionth"),
            ("-0.5", "-500m", "sign stays"),
            ("1e3", "1e3", "exponents stay exponents"),
            ("10e2", "1e3", "in threes"),
            ("0Gi", "0", "zero has no suffix"),
            (".", "0", "upstream takes no digits for none"),
            ("e3", "0", "with any unit"),
            ("1.5", "1500m", "mixed"),
            ("100Ei", "9223372036854775807", "cut off at the largest 64-bit number"),
            ("0.1Ki", "102400m", "a fraction of a unit is shown in decimal"),
        ] {
            let got = Quantity::parse(given).map(|q| q.to_string());
            assert_eq!(got.as_deref(), Some(want), "{given}: {why}");
        }
        for bad in ["", "x", "1.2.3", "1 ", "1kk", "1e", "--1", "1ki"] {
            assert_eq!(Quantity::parse(bad), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_spelling_is_stable(n in -1_000_000_000i64..1_000_000_000, s in 0usize..14) {
            let suffix = ["n", "u", "m", "", "k", "M", "G", "e2", "e-3", "Ki", "Mi", "Gi", "Ti", "e5"][s];
            let once = Quantity::parse(&format!("{n}{suffix}")).unwrap();
            let again = Quantity::parse(&once.to_string()).unwrap();
            prop_assert_eq!(again.to_string(), once.to_string());
            prop_assert_eq!(again.nanos, once.nanos);
        }
    }
}
