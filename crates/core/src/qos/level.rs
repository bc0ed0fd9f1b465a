//! How much of a metric? Usage, waterlines, gaps and releases as exact decimals.

use crate::quantity::Quantity;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Neg, Sub, SubAssign};

const NANO: i128 = 1_000_000_000;

/// Usage past this many units is no measurement but a fault: more than any machine has of anything.
const ABSURD: i128 = 1_000_000_000_000_000_000;

/// An amount in billionths of the unit of a metric: millicores, bytes, percent. Sums and gaps are exact, so that no
/// pod is touched for the rounding of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Level(i128);

impl Level {
    /// Nothing.
    pub const ZERO: Self = Self(0);
    /// A gap that is not above this is closed: a millionth of the unit.
    pub const CLOSED: Self = Self(1_000);

    /// A whole number of units.
    #[must_use]
    pub const fn whole(units: i64) -> Self {
        Self(units as i128 * NANO)
    }

    /// From billionths.
    #[must_use]
    pub const fn from_nano(nano: i128) -> Self {
        Self(nano)
    }

    /// In billionths.
    #[must_use]
    pub const fn nano(self) -> i128 {
        self.0
    }

    /// From a measurement, finer than a billionth rounded. None for what no measurement can be: NaN, infinite,
    /// or past a million million million. Negative amounts are read; who asks for usage refuses them.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "both parts are within the bounds checked before")]
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() || value.abs() > 1e18 {
            return None;
        }
        Some(Self(value.trunc() as i128 * NANO + (value.fract() * 1e9).round() as i128))
    }

    /// From a quantity, exactly. None past a million million million.
    #[must_use]
    pub fn from_quantity(quantity: &Quantity) -> Option<Self> {
        quantity.nano_value().filter(|nano| nano.abs() <= ABSURD * NANO).map(Self)
    }

    /// The nearest float, for output.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "shown to people; decisions use the exact value")]
    pub fn to_f64(self) -> f64 {
        // Whole numbers first: dividing a large one would lose its last digits twice.
        (self.0 / NANO) as f64 + (self.0 % NANO) as f64 / 1e9
    }

    /// `self × by / over`, rounded toward zero at the billionth.
    #[must_use]
    pub fn times(self, by: i128, over: i128) -> Self {
        match (self.0.checked_mul(by), over) {
            (_, 0) => Self::ZERO,
            (Some(product), over) => Self(product / over),
            // Only past any usage a machine can have: less exact, never wrapped.
            (None, over) => Self((self.0 / over).saturating_mul(by)),
        }
    }

    /// Is there a gap at all?
    #[must_use]
    pub fn is_open(self) -> bool {
        self > Self::CLOSED
    }

    /// The larger of this and nothing.
    #[must_use]
    pub fn at_least_zero(self) -> Self {
        self.max(Self::ZERO)
    }
}

impl Add for Level {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Level {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Level {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl SubAssign for Level {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

impl Neg for Level {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Level {
    fn sum<I: Iterator<Item = Self>>(levels: I) -> Self {
        levels.fold(Self::ZERO, Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured_is_read_to_the_billionth() {
        for (given, nano) in [
            (0.1, Some(100_000_000)),
            (7500.0, Some(7_500_000_000_000)),
            // Binary noise of a sum of tenths is gone.
            (0.1 + 0.2, Some(300_000_000)),
            (68_719_476_736.0, Some(68_719_476_736_000_000_000)),
            (-2.5, Some(-2_500_000_000)),
            (f64::NAN, None),
            (f64::INFINITY, None),
            (1e30, None),
        ] {
            assert_eq!(Level::from_f64(given).map(Level::nano), nano, "{given}");
        }
    }

    #[test]
    fn what_is_shown_is_what_was_read() {
        for value in [0.1, 41.5, 7500.0, 68_719_476_736.0, -450.0] {
            let shown = Level::from_f64(value).unwrap().to_f64();
            assert!((shown - value).abs() < 1e-9, "{value} is shown as {shown}");
        }
    }

    #[test]
    fn multiplying_never_wraps() {
        let much = Level::from_nano(i128::MAX / 2);
        assert!(much.times(1_100_000_000, 1_000_000_000) > Level::ZERO);
        assert_eq!(Level::whole(1500).times(11, 10), Level::whole(1650));
        assert_eq!(Level::whole(5).times(1, 0), Level::ZERO, "a share of nothing");
    }
}
