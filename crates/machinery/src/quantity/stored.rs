//! How does kube-apiserver write an amount back that a client has sent?
//!
//! In canonical form, with two exceptions that only matter to who stands in for it: a text that looks canonical is
//! kept as it is (`+1`, `1.5e+7`), and past the last suffix there is none (`1000E` is stored as `1`).

use super::parse::{Pieces, Unit, split, unit};
use super::{Error, Format, NANO, Quantity};

/// The text that kube-apiserver stores for an amount.
///
/// ```
/// use loadline_machinery::quantity::stored;
/// assert_eq!(stored("0.5").as_deref(), Ok("500m"));
/// assert_eq!(stored("1024Mi").as_deref(), Ok("1Gi"));
/// assert_eq!(stored("1.5e+7").as_deref(), Ok("1.5e+7"));
/// ```
///
/// # Errors
/// When it is no amount.
pub fn stored(text: &str) -> Result<String, Error> {
    let text = text.trim();
    let amount: Quantity = text.parse()?;
    Ok(if looks_canonical(text) { text.to_owned() } else { amount.without_suffix_past_exa() })
}

/// A glance at the digits, which is what Kubernetes spends on it.
fn looks_canonical(text: &str) -> bool {
    let Some((unit, pieces)) = split(text).and_then(|pieces| Some((unit(pieces.suffix)?, pieces))) else {
        return false;
    };
    let Pieces { whole, fraction, .. } = pieces;
    match unit {
        Unit::Ten(exp, _) => {
            let digits: Vec<u8> = [whole, fraction].concat();
            let scale = i64::from(exp) - super::parse::len(fraction);
            (1..=18).contains(&digits.len())
                && !whole.is_empty()
                && scale >= i64::from(NANO)
                && scale % 3 == 0
                && !digits.ends_with(b"000")
        }
        Unit::Two(power) => {
            let value = whole
                .iter()
                .try_fold(0_i64, |value, digit| value.checked_mul(10)?.checked_add(i64::from(digit - b'0')));
            // Room for the digits of the number and of the unit in fifteen.
            let room = 14 - super::parse::len(whole).max(1) - i64::from(power * 3 / 10);
            fraction.is_empty() && room >= 0 && value.is_some_and(|value| value % 8 != 0)
        }
    }
}

impl Quantity {
    fn without_suffix_past_exa(&self) -> String {
        let text = self.to_string();
        match text.rsplit_once('e') {
            Some((digits, _)) if self.format() != Format::DecimalExponent => digits.to_owned(),
            _ => text,
        }
    }

    /// Rounded away from zero to whole thousandths, which is as fine as resource lists are stored.
    #[must_use]
    pub fn round_up_to_milli(self) -> Self {
        match self.exp {
            -3.. => self,
            exp => Self::scaled(super::round_away(self.digits, exp.abs_diff(-3)), -3, self.format),
        }
    }

    /// Is there no fraction?
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.exp >= 0
    }
}
