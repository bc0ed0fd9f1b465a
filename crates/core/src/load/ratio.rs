//! Shares of a whole as exact decimals: 0.65 is 650 000 000 billionths, not the nearest binary fraction.

use crate::quantity::Quantity;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// A ratio in billionths. 1.0 is [`Ratio::ONE`]; load may be more, limits and targets may not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(i64);

impl Ratio {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// The whole.
    pub const ONE: Self = Self(1_000_000_000);

    /// From billionths.
    #[must_use]
    pub const fn from_nano(nano: i64) -> Self {
        Self(nano)
    }

    /// In billionths.
    #[must_use]
    pub const fn nano(self) -> i64 {
        self.0
    }

    /// From a float, by the shortest decimal that reads back as the same float: 0.65 is 65 hundredths. Finer
    /// than a billionth rounds away from zero. `None` for NaN, infinities and what does not fit.
    #[must_use]
    pub fn from_f64(value: f64) -> Option<Self> {
        let exact: Quantity = value.is_finite().then(|| value.to_string())?.parse().ok()?;
        i64::try_from(exact.nano_value()?).ok().map(Self)
    }

    /// The nearest float, for output.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; decisions use the exact value")]
    pub fn to_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `part` of `whole`, rounded up so that load is never understated. `None` when there is no whole.
    #[must_use]
    pub fn of(part: i64, whole: i64) -> Option<Self> {
        let (part, whole) = (i128::from(part), i128::from(whole));
        if whole <= 0 {
            return None;
        }
        let scaled = part * i128::from(Self::ONE.0);
        let up = scaled.div_euclid(whole) + i128::from(scaled.rem_euclid(whole) != 0);
        Some(Self(i64::try_from(up).unwrap_or(i64::MAX)))
    }

    /// The largest whole amount that is at most this share of `whole`: `used <= whole × ratio` exactly when
    /// `used <= ratio.floor_of(whole)`.
    #[must_use]
    pub fn floor_of(self, whole: i64) -> i64 {
        let exact = (i128::from(whole) * i128::from(self.0)).div_euclid(i128::from(Self::ONE.0));
        i64::try_from(exact).unwrap_or(if exact < 0 { i64::MIN } else { i64::MAX })
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_f64().fmt(f)
    }
}

/// As a number.
impl Serialize for Ratio {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_f64().serialize(to)
    }
}

impl<'de> Deserialize<'de> for Ratio {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let float = f64::deserialize(from)?;
        Self::from_f64(float).ok_or_else(|| serde::de::Error::custom(format!("{float} is no ratio")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact() {
        for (float, nano) in
            [(0.65, 650_000_000), (0.1, 100_000_000), (1.0, 1_000_000_000), (0.430_12, 430_120_000)]
        {
            assert_eq!(Ratio::from_f64(float), Some(Ratio::from_nano(nano)), "{float}");
        }
        for float in [f64::NAN, f64::INFINITY, 1e300] {
            assert_eq!(Ratio::from_f64(float), None, "{float}");
        }
    }

    #[test]
    fn a_share_of_an_amount_is_cut_and_an_amount_as_a_share_rounds_up() {
        let ratio = Ratio::from_f64(0.65).unwrap();
        assert_eq!(ratio.floor_of(3_910_000_000), 2_541_500_000, "3910m × 0.65 is exactly 2541.5m");
        assert_eq!(ratio.floor_of(3), 1, "1.95");
        assert_eq!(Ratio::of(1, 3), Some(Ratio::from_nano(333_333_334)));
        assert_eq!(Ratio::of(1, 0), None);
    }
}
