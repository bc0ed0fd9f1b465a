//! How Kubernetes writes an amount: reading any spelling, writing the canonical one.
//!
//! [`canonical`] rewrites what clients send; [`Quantity`] is for comparing and adding.
//!
//! The server stores what it understood, not what was sent: `0.5` comes back as `500m`, `1024Mi` as `1Gi`.
//! A spelling that is already canonical is kept as it is.

mod amount;

use std::fmt::Write as _;

pub use amount::Quantity;

/// Not an amount at all.
const FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
/// Digits that are not a number.
const NUMERIC: &str = "unable to parse numeric part of quantity";
/// A unit that does not exist.
const SUFFIX: &str = "unable to parse quantity's suffix";

/// Units that are powers of 1000, by their exponent of 10.
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
/// Units that are powers of 1024, by their exponent of 2.
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// Nothing smaller is told apart; amounts are rounded up to it.
const NANO: i32 = -9;

/// How the unit was written, which is how it is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Decimal(i32),
    Exponent(i32),
    Binary(u32),
}

/// The parts of a spelling, digits without the sign.
struct Parts<'a> {
    negative: bool,
    whole: &'a str,
    fraction: &'a str,
    suffix: &'a str,
}

/// The canonical spelling of an amount.
///
/// # Errors
/// Upstream's sentence about what is wrong with `text`.
pub fn canonical(text: &str) -> Result<String, &'static str> {
    let text = text.trim();
    if text.is_empty() {
        return Err(FORMAT);
    }
    let parts = split(text)?;
    let unit = interpret(parts.suffix).ok_or(SUFFIX)?;
    if kept(&parts, unit) {
        return Ok(text.to_owned());
    }
    let digits = format!("{}{}", parts.whole, parts.fraction);
    let Ok(mut amount) = digits.parse::<i128>() else {
        // Beyond 38 digits nothing is gained by rewriting it.
        return if digits.bytes().all(|b| b.is_ascii_digit()) { Ok(text.to_owned()) } else { Err(NUMERIC) };
    };
    let places = i32::try_from(parts.fraction.len()).map_err(|_| NUMERIC)?;
    let mut scale = match unit {
        Unit::Decimal(exponent) | Unit::Exponent(exponent) => exponent.saturating_sub(places),
        Unit::Binary(bits) => {
            amount = amount.checked_mul(1 << bits).unwrap_or(i128::MAX);
            -places
        }
    };
    while scale < NANO && amount != 0 {
        amount = round_up(amount, 10);
        scale += 1;
    }
    let sign = if parts.negative { "-" } else { "" };
    Ok(match (amount, unit) {
        (0, _) => "0".to_owned(),
        (_, Unit::Binary(_)) => match binary(amount, scale) {
            Some(body) => format!("{sign}{body}"),
            None => format!("{sign}{}", decimal(amount, scale, unit)),
        },
        _ => format!("{sign}{}", decimal(amount, scale, unit)),
    })
}

fn split(text: &str) -> Result<Parts<'_>, &'static str> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let rest = rest.trim_start_matches('0');
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (whole, rest) = rest.split_at(end);
    let whole = if whole.is_empty() { "0" } else { whole };
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())),
        None => ("", rest),
    };
    let tail = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    if !tail.bytes().all(|b| b.is_ascii_digit()) {
        return Err(FORMAT);
    }
    Ok(Parts { negative, whole, fraction, suffix })
}

fn interpret(suffix: &str) -> Option<Unit> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Decimal(*exponent));
    }
    if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        return Some(Unit::Binary(*bits));
    }
    let exponent = suffix.strip_prefix(['e', 'E'])?;
    exponent.parse().ok().map(Unit::Exponent)
}

/// Whether upstream keeps the spelling because it looks canonical.
fn kept(parts: &Parts<'_>, unit: Unit) -> bool {
    let len = |text: &str| i64::try_from(text.len()).unwrap_or(i64::MAX);
    let digits = format!("{}{}", parts.whole, parts.fraction);
    match unit {
        Unit::Decimal(exponent) | Unit::Exponent(exponent) => {
            let scale = i64::from(exponent) - len(parts.fraction);
            len(&digits) <= 18
                && scale >= i64::from(NANO)
                && scale % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
        Unit::Binary(bits) => {
            parts.fraction.is_empty()
                && 15 - len(parts.whole) - i64::from(bits * 3 / 10) > 0
                && digits.parse::<i64>().is_ok_and(|value| value & 7 != 0)
        }
    }
}

/// Whole units of the largest power of 1024 that divides; `None` where upstream prefers decimal units.
fn binary(mut amount: i128, mut scale: i32) -> Option<String> {
    let below =
        |limit: i128| 10_i128.checked_pow(scale.unsigned_abs()).is_some_and(|unit| amount < limit * unit);
    if below(1024) {
        return None;
    }
    while scale < 0 {
        amount = round_up(amount, 10);
        scale += 1;
    }
    amount = amount.min(i128::from(i64::MAX));
    let mut step = 0;
    while amount % 1024 == 0 && step < BINARY.len() {
        amount /= 1024;
        step += 1;
    }
    let suffix = step.checked_sub(1).map_or("", |at| BINARY[at].0);
    Some(format!("{amount}{suffix}"))
}

fn decimal(mut amount: i128, mut scale: i32, unit: Unit) -> String {
    while amount % 10 == 0 {
        amount /= 10;
        scale += 1;
    }
    while scale.rem_euclid(3) != 0 {
        amount = amount.saturating_mul(10);
        scale -= 1;
    }
    let mut out = amount.to_string();
    match unit {
        Unit::Exponent(_) if scale != 0 => {
            // Writing to a string cannot fail.
            let _ = write!(out, "e{scale}");
        }
        _ => {
            let unit = DECIMAL.iter().find(|(_, exponent)| *exponent == scale);
            out.push_str(unit.map_or("", |(name, _)| name));
        }
    }
    out
}

fn round_up(amount: i128, by: i128) -> i128 {
    amount / by + i128::from(amount % by != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_come_back_in_canonical_spelling() {
        for (text, want, why) in [
            ("1", "1", "already canonical"),
            ("1000m", "1", "milli that make a whole"),
            ("0.5", "500m", "fractions become milli"),
            ("1500m", "1500m", "milli that do not"),
            ("1024Mi", "1Gi", "a larger binary unit fits"),
            ("100Mi", "100Mi", "none does"),
            ("1.5Gi", "1536Mi", "fractions of binary units"),
            ("0.5Ki", "512", "small binary amounts lose the unit"),
            ("812.5Ki", "832000", "so do those that no power of 1024 divides"),
            ("1000k", "1M", "a larger decimal unit fits"),
            ("1e3", "1e3", "exponents stay exponents"),
            ("1000e3", "1e6", "and are normalised"),
            ("0.1n", "1n", "rounded up to a nano"),
            ("0", "0", "zero"),
            ("000Gi", "0", "zero of any unit"),
            ("-1.5", "-1500m", "negative"),
            (" 2 ", "2", "spaces around"),
        ] {
            assert_eq!(canonical(text).as_deref(), Ok(want), "{text}: {why}");
        }
    }

    #[test]
    fn what_is_no_amount_is_told_as_upstream_tells_it() {
        for (text, want) in [
            ("", FORMAT),
            ("abc", FORMAT),
            ("1 Gi", FORMAT),
            ("1GiB", FORMAT),
            ("1mm", SUFFIX),
            ("1Km", SUFFIX),
        ] {
            assert_eq!(canonical(text), Err(want), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn the_canonical_spelling_is_its_own(number in "[0-9]{1,12}(\\.[0-9]{0,6})?", unit in 0_usize..16) {
            let suffix = DECIMAL.iter().map(|u| u.0).chain(BINARY.iter().map(|u| u.0)).nth(unit).unwrap();
            let once = canonical(&format!("{number}{suffix}")).unwrap();
            let twice = canonical(&once).unwrap();
            // A binary amount that no power of 1024 divides loses its unit ("812.5Ki" is "832000"), and plain
            // digits read as decimal ("832k"). Upstream does the same; the amount stays what it was.
            let unitless = unit >= DECIMAL.len() && once.ends_with(|c: char| c.is_ascii_digit());
            if unitless {
                let amount = |text: &str| Quantity::parse(text).unwrap();
                proptest::prop_assert_eq!(amount(&twice), amount(&once));
                proptest::prop_assert_eq!(canonical(&twice).unwrap(), twice);
            } else {
                proptest::prop_assert_eq!(twice, once);
            }
        }
    }
}
