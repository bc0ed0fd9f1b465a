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

/// The same as Go writes it, in hours, minutes and seconds from the largest that is not 0 on: `1h0m0s`, `90s` is `1m30s`,
/// `1.5s`; below a second `250ms`, `10µs`, `7ns`.
#[must_use]
pub fn write(span: SignedDuration) -> String {
    let nanos = span.as_nanos().unsigned_abs();
    let sign = if span.is_negative() { "-" } else { "" };
    // A whole number of units, and what is left of one without its zeros.
    let decimal = |unit: u128, digits: usize| {
        let rest = format!("{:0digits$}", nanos % unit);
        let rest = rest.trim_end_matches('0');
        let whole = nanos / unit;
        if rest.is_empty() { whole.to_string() } else { format!("{whole}.{rest}") }
    };
    let text = match nanos {
        0 => "0s".to_owned(),
        1..1_000 => format!("{nanos}ns"),
        1_000..1_000_000 => format!("{}µs", decimal(1_000, 3)),
        1_000_000..1_000_000_000 => format!("{}ms", decimal(1_000_000, 6)),
        _ => {
            let (hours, minutes) = (nanos / 3_600_000_000_000, nanos / 60_000_000_000 % 60);
            let seconds = {
                let (whole, rest) = (nanos / 1_000_000_000 % 60, format!("{:09}", nanos % 1_000_000_000));
                let rest = rest.trim_end_matches('0');
                if rest.is_empty() { format!("{whole}s") } else { format!("{whole}.{rest}s") }
            };
            match (hours, minutes) {
                (0, 0) => seconds,
                (0, _) => format!("{minutes}m{seconds}"),
                _ => format!("{hours}h{minutes}m{seconds}"),
            }
        }
    };
    format!("{sign}{text}")
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
    use super::{parse, write};
    use jiff::SignedDuration;

    #[test]
    fn spans_are_written_as_go_writes_them() {
        for (nanos, text) in [
            (0, "0s"),
            (7, "7ns"),
            (1_100, "1.1µs"),
            (250_000_000, "250ms"),
            (2_200_000, "2.2ms"),
            (3_300_000_000, "3.3s"),
            (90_000_000_000, "1m30s"),
            (245_001_000_000, "4m5.001s"),
            (3_600_000_000_000, "1h0m0s"),
            (-5_400_000_000_000, "-1h30m0s"),
            (i64::MAX, "2562047h47m16.854775807s"),
        ] {
            let span = SignedDuration::from_nanos(nanos);
            assert_eq!(write(span), text);
            assert_eq!(parse(text), Some(span));
        }
    }

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
