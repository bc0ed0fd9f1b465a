//! From amount to canonical text.

use super::{Format, Quantity};
use std::fmt;

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_zero() {
            return f.pad("0");
        }
        f.pad(&match self.format {
            Format::BinarySi => self.whole_from_1024().map_or_else(|| self.decimal(), binary),
            Format::DecimalSi => self.decimal(),
            Format::DecimalExponent => self.exponent(),
        })
    }
}

impl Quantity {
    /// The amount, if binary suffixes can show it: whole, and at least one Ki in size.
    fn whole_from_1024(&self) -> Option<i128> {
        if self.exp < 0 {
            return None;
        }
        super::scale_up(self.digits, self.exp.unsigned_abs()).filter(|v| v.unsigned_abs() >= 1024)
    }

    fn decimal(&self) -> String {
        let exp = self.exp.div_euclid(3) * 3;
        let suffix = usize::try_from(exp / 3 + 3).ok().and_then(|i| DECIMAL.get(i));
        suffix.map_or_else(|| self.exponent(), |suffix| format!("{}{suffix}", self.shifted(exp)))
    }

    fn exponent(&self) -> String {
        match self.exp.div_euclid(3) * 3 {
            0 => self.shifted(0),
            exp => format!("{}e{exp}", self.shifted(exp)),
        }
    }

    /// The digits as seen at 10^exp, where exp is at most our own.
    fn shifted(&self, exp: i32) -> String {
        let zeros = usize::try_from(self.exp.saturating_sub(exp)).unwrap_or_default();
        format!("{}{:0<zeros$}", self.digits, "")
    }
}

fn binary(mut value: i128) -> String {
    let mut step = 0;
    while step + 1 < BINARY.len() && value % 1024 == 0 {
        value /= 1024;
        step += 1;
    }
    format!("{value}{}", BINARY[step])
}
