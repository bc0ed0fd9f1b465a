//! How much is it? Exact Kubernetes quantities: `100m`, `1.5Gi`, `12e6`.
//!
//! A quantity is a whole number times a power of ten, never finer than a billionth (nano). Text is accepted
//! and refused exactly where Kubernetes accepts and refuses it, amounts finer than a nano round away from zero,
//! and printing is canonical: no fraction, the largest suffix that keeps the number whole, in the style
//! ([`Format`]) the amount was written in.
//!
//! Where we differ from Kubernetes, on purpose:
//!
//! - [`Quantity::value`] and [`Quantity::milli_value`] hold at the ends of `i64`. There, Kubernetes answers
//!   zero or a wrapped number, and a giant request would read as nothing.
//! - Negative fractions always round away from zero, as documented; one path in Kubernetes rounds toward it.
//! - Amounts past the last suffix print with an exponent (`1e21`); Kubernetes prints `1` and loses the rest.
//! - Digits past the 38th may be dropped, rounding away from zero; Kubernetes keeps any number of them.
//!
//! ```
//! use loadline_machinery::quantity::Quantity;
//! let a: Quantity = "1.5Gi".parse()?;
//! assert_eq!(a.to_string(), "1536Mi");
//! assert_eq!(a.value(), 1_610_612_736);
//! assert_eq!("0.1".parse::<Quantity>()?.milli_value(), 100);
//! # Ok::<(), loadline_machinery::quantity::Error>(())
//! ```

mod parse;
mod print;
mod stored;
mod wire;

pub use stored::stored;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// The style an amount is printed in. Kept through arithmetic, no part of equality.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of 1024: `Ki`, `Mi`, `Gi`, `Ti`, `Pi`, `Ei`.
    BinarySi,
    /// Powers of 1000: `n`, `u`, `m`, none, `k`, `M`, `G`, `T`, `P`, `E`.
    #[default]
    DecimalSi,
    /// A written power of ten: `12e6`.
    DecimalExponent,
}

/// Why a text is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text has characters where none may be, or is empty.
    #[error("quantity {text:?} must be a number with an optional suffix, such as 100m or 1.5Gi")]
    Shape {
        /// What was given.
        text: String,
    },
    /// The number is fine, what follows is not a known unit.
    #[error(
        "quantity {text:?} has the unknown suffix {suffix:?}, expected one of n u m k M G T P E Ki Mi Gi Ti Pi Ei or an exponent such as e3"
    )]
    Suffix {
        /// What was given.
        text: String,
        /// The part that is no suffix.
        suffix: String,
    },
    /// There is a suffix but no digit before it.
    #[error("quantity {text:?} has no digits")]
    Digits {
        /// What was given.
        text: String,
    },
}

impl Error {
    /// The same in the words of Kubernetes, which clients of the API know.
    #[must_use]
    pub fn in_kubernetes_words(&self) -> &'static str {
        match self {
            Self::Shape { .. } => {
                "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            }
            Self::Suffix { .. } => "unable to parse quantity's suffix",
            Self::Digits { .. } => "unable to parse numeric part of quantity",
        }
    }
}

/// The smallest power of ten a quantity knows.
const NANO: i32 = -9;

/// An exact amount and the style it prints in.
///
/// Equality, order and hash are about the amount alone: `1Ki == 1024`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    // The amount is digits × 10^exp with exp ≥ -9. Kept without trailing zeros in `digits` (and 0 × 10^0 for
    // zero), so that equal amounts are equal fields.
    digits: i128,
    exp: i32,
    format: Format,
}

impl Quantity {
    /// Nothing, in the style of whatever is added to it.
    pub const ZERO: Self = Self { digits: 0, exp: 0, format: Format::DecimalSi };

    /// A whole amount.
    #[must_use]
    #[inline]
    pub fn new(value: i64, format: Format) -> Self {
        Self::scaled(value.into(), 0, format)
    }

    /// An amount in thousandths, as CPU is counted.
    #[must_use]
    #[inline]
    pub fn from_milli(milli: i64) -> Self {
        Self::scaled(milli.into(), -3, Format::DecimalSi)
    }

    /// An amount in billionths, as CPU is measured.
    #[must_use]
    #[inline]
    pub fn from_nano(nano: i64) -> Self {
        Self::scaled(nano.into(), NANO, Format::DecimalSi)
    }

    /// An amount in bytes, printed with binary suffixes.
    #[must_use]
    #[inline]
    pub fn from_bytes(bytes: i64) -> Self {
        Self::new(bytes, Format::BinarySi)
    }

    /// `digits × 10^exp` in normal form. `exp` must not be below nano; callers round first.
    fn scaled(mut digits: i128, mut exp: i32, format: Format) -> Self {
        if digits == 0 {
            return Self { digits: 0, exp: 0, format };
        }
        while digits % 10 == 0 && exp < i32::MAX {
            digits /= 10;
            exp += 1;
        }
        Self { digits, exp, format }
    }

    /// The style this amount prints in.
    #[must_use]
    #[inline]
    pub fn format(&self) -> Format {
        self.format
    }

    /// The same amount in another style.
    #[must_use]
    #[inline]
    pub fn with_format(self, format: Format) -> Self {
        Self { format, ..self }
    }

    /// Is there nothing?
    #[must_use]
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.digits == 0
    }

    /// Is it less than nothing?
    #[must_use]
    #[inline]
    pub fn is_negative(&self) -> bool {
        self.digits < 0
    }

    /// The whole amount, rounded away from zero, held within `i64`.
    #[must_use]
    #[inline]
    pub fn value(&self) -> i64 {
        self.at_scale(0)
    }

    /// The amount in thousandths, rounded away from zero, held within `i64`.
    #[must_use]
    #[inline]
    pub fn milli_value(&self) -> i64 {
        self.at_scale(-3)
    }

    /// The amount in billionths, or `None` past the range of `i128`.
    #[must_use]
    #[inline]
    pub fn nano_value(&self) -> Option<i128> {
        scale_up(self.digits, self.exp.abs_diff(NANO))
    }

    fn at_scale(&self, scale: i32) -> i64 {
        let wide = if self.exp >= scale {
            scale_up(self.digits, self.exp.abs_diff(scale))
        } else {
            Some(round_away(self.digits, self.exp.abs_diff(scale)))
        };
        let limit = if self.digits < 0 { i64::MIN } else { i64::MAX };
        wide.and_then(|v| i64::try_from(v).ok()).unwrap_or(limit)
    }

    /// The sum. Zero takes over the style of what is added.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let format = if self.is_zero() { other.format } else { self.format };
        let (low, high) = if self.exp <= other.exp { (self, other) } else { (other, self) };
        if let Some(sum) =
            scale_up(high.digits, high.exp.abs_diff(low.exp)).and_then(|h| h.checked_add(low.digits))
        {
            return Self::scaled(sum, low.exp, format);
        }
        // More than 38 digits lie between the two. Lift the finer one until the sum fits, rounding away from
        // zero, so that nothing asked for is ever forgotten.
        let mut exp = low.exp;
        loop {
            exp = exp.saturating_add(1);
            let fine = round_away(low.digits, exp.abs_diff(low.exp));
            let coarse = if exp <= high.exp {
                scale_up(high.digits, high.exp.abs_diff(exp))
            } else {
                Some(round_away(high.digits, exp.abs_diff(high.exp)))
            };
            if let Some(sum) = coarse.and_then(|c| c.checked_add(fine)) {
                return Self::scaled(sum, exp, format);
            }
            if exp == i32::MAX {
                return Self::scaled(coarse.unwrap_or(high.digits).saturating_add(fine), exp, format);
            }
            // Jump when the exponents are far apart; single steps would take as long as the gap is wide.
            if coarse.is_none() && high.exp.abs_diff(exp) > 40 {
                exp = high.exp.saturating_sub(40);
            }
        }
    }

    /// The difference; it may be negative. Zero takes over the style of what is taken.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        self.plus(Self { digits: other.digits.saturating_neg(), ..other })
    }
}

/// `digits × 10^by`, or `None` past the range of `i128`.
fn scale_up(digits: i128, by: u32) -> Option<i128> {
    if digits == 0 {
        return Some(0);
    }
    10_i128.checked_pow(by).and_then(|p| digits.checked_mul(p))
}

/// `digits ÷ 10^by`, rounded away from zero.
fn round_away(digits: i128, by: u32) -> i128 {
    match 10_i128.checked_pow(by) {
        Some(p) => digits / p + (digits % p).signum(),
        None => digits.signum(),
    }
}

impl PartialEq for Quantity {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        self.digits == other.digits && self.exp == other.exp
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.digits, self.exp).hash(state);
    }
}

impl PartialOrd for Quantity {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let signs = self.digits.signum().cmp(&other.digits.signum());
        if signs != Ordering::Equal || self.exp == other.exp {
            return signs.then(self.digits.cmp(&other.digits));
        }
        // Same sign: bring the coarser one to the finer scale; if it does not fit there, it is the larger in size.
        let by_size = |negative: bool| if negative { Ordering::Less } else { Ordering::Greater };
        if self.exp > other.exp {
            scale_up(self.digits, self.exp.abs_diff(other.exp))
                .map_or_else(|| by_size(self.is_negative()), |d| d.cmp(&other.digits))
        } else {
            other.cmp(self).reverse()
        }
    }
}

#[cfg(test)]
mod tests;
