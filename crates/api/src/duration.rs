//! How long is `1m30.5s`? Spans of time as Go writes them, and with it every Kubernetes API.

use jiff::SignedDuration;

/// Reads a span of time: signed numbers with units, `1h`, `1m30.5s`, `250ms`, or a bare `0`. None if it is not
/// one or too long. What is finer than a nanosecond is cut, as in Go.
#[must_use]
pub fn parse(text: &str) -> Option<SignedDuration> {
    let (negative, mut rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = one(rest)?;
        total = total.checked_add(nanos)?;
        rest = after;
    }
    let total = i64::try_from(if negative { -total } else { total }).ok()?;
    Some(SignedDuration::from_nanos(total))
}

/// The first number with its unit, in nanoseconds, and what follows it.
fn one(text: &str) -> Option<(i128, &str)> {
    let digits = |t: &str| t.len() - t.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (whole, rest) = text.split_at(digits(text));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest.find(|c: char| c == '.' || c.is_ascii_digit()).unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: i128 = match unit {
        "ns" => 1,
        // Go knows both signs for micro.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    // An hour has 3.6 × 10^12 ns: digits past the 15th do not matter.
    let fraction = fraction.get(..15).unwrap_or(fraction);
    let scale = 10_i128.pow(u32::try_from(fraction.len()).ok()?);
    let part: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    Some((whole.checked_mul(unit)?.checked_add(part * unit / scale)?, rest))
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn spans_read_as_go_reads_them() {
        for (text, nanos) in [
            ("15.236s", Some(15_236_000_000)),
            ("1m0s", Some(60_000_000_000)),
            ("1h15m30.918273645s", Some(4_530_918_273_645)),
            ("0", Some(0)),
            ("0s", Some(0)),
            ("0h0m", Some(0)),
            ("-1.5h", Some(-5_400_000_000_000)),
            ("+5s", Some(5_000_000_000)),
            (".5s", Some(500_000_000)),
            ("5.s", Some(5_000_000_000)),
            ("100ns", Some(100)),
            ("1us2µs3μs4ms", Some(4_006_000)),
            ("0.9ns", Some(0)),
            ("2562047h47m16.854775807s", Some(i64::MAX)),
            ("2562047h47m16.854775808s", None),
            ("99999999999999999999999999999999999999999s", None),
            ("", None),
            ("-", None),
            ("5", None),
            (".s", None),
            ("s", None),
            ("5 s", None),
            ("5d", None),
            ("1s1", None),
            ("1s-1s", None),
            ("NaN", None),
            ("é", None),
        ] {
            assert_eq!(parse(text).map(|d| d.as_nanos()), nanos.map(i128::from), "{text:?}");
        }
    }
}
