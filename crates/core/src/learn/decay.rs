//! How much less does it count by now? Powers of two in whole numbers.
//!
//! Floats would be shorter, but the last digits of `exp2` are not the same on every machine, and then neither
//! would be a recommendation, nor a test of one.

/// 2^½, 2^¼, … 2^(1 ÷ 65 536), with 32 binary digits after the point.
const ROOTS: [u128; 16] = roots();

const fn roots() -> [u128; 16] {
    let mut roots = [0; 16];
    let (mut root, mut i) = (2_u128 << 32, 0);
    while i < roots.len() {
        root = (root << 32).isqrt();
        roots[i] = root;
        i += 1;
    }
    roots
}

/// A time in half-lives: whole ones toward the past, and the rest in 65 536ths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct HalfLives {
    pub(super) whole: i64,
    rest: u128,
}

impl HalfLives {
    /// Of a time and a half-life in the same unit.
    pub(super) fn of(time: i64, half_life: i64) -> Self {
        let half_life = half_life.max(1);
        let rest = u128::from(time.rem_euclid(half_life).unsigned_abs());
        let rest = (rest << 16) / u128::from(half_life.unsigned_abs());
        Self { whole: time.div_euclid(half_life), rest }
    }

    /// The amount times 2^rest, which is less than 2: the whole ones are left to the caller.
    pub(super) fn grown(self, amount: u32) -> u64 {
        let mut grown = u128::from(amount) << 32;
        for (i, root) in ROOTS.iter().enumerate() {
            if self.rest >> (15 - i) & 1 == 1 {
                grown = (grown * root) >> 32;
            }
        }
        u64::try_from(grown >> 32).unwrap_or(u64::MAX)
    }
}

/// What is left of an amount after that time: `amount × 2^(−age ÷ half_life)`, rounded down.
pub(super) fn decayed(amount: u32, age: i64, half_life: i64) -> u32 {
    let lives = HalfLives::of(age.max(0).saturating_neg(), half_life);
    let by = u32::try_from(lives.whole.saturating_neg()).unwrap_or(u32::MAX);
    u32::try_from(lives.grown(amount).checked_shr(by).unwrap_or(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_half_life_leaves_a_half() {
        let cases = [
            (1000, 0, 1000, "nothing has passed"),
            (1000, -5, 1000, "what lies ahead does not grow"),
            (1000, 24, 500, "1000 ÷ 2"),
            (1000, 72, 125, "1000 ÷ 8"),
            (1000, 12, 707, "1000 ÷ √2 = 707.1"),
            (1000, 36, 353, "1000 ÷ 2^1.5 = 353.6"),
            (1000, 24 * 10, 0, "1000 ÷ 1024"),
            (u32::MAX, i64::MAX, 0, "all time there is"),
        ];
        for (amount, age, want, why) in cases {
            assert_eq!(decayed(amount, age, 24), want, "{amount} after {age} h: {why}");
        }
        assert_eq!(decayed(8, 1, 0), 4, "a half-life of nothing is taken as one unit");
    }

    proptest! {
        #[test]
        fn powers_agree_with_floats(amount in 1 << 20..u32::MAX, time in -1_000_000_i64..1_000_000) {
            let lives = HalfLives::of(time, 86_400);
            #[expect(clippy::cast_precision_loss, reason = "small numbers")]
            let (got, want) = (
                lives.grown(amount) as f64 * (lives.whole as f64).exp2(),
                f64::from(amount) * (time as f64 / 86_400.0).exp2(),
            );
            // A 65 536th of a half-life is one part in 94 000.
            prop_assert!((got / want - 1.0).abs() < 2e-5, "{got} for {want}");
        }
    }
}
