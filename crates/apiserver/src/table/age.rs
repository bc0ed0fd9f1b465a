//! How long ago was that, as people write it?

use jiff::Timestamp;

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY_HOURS: i64 = 24;
const YEAR_HOURS: i64 = 365 * DAY_HOURS;

/// A duration with at most two units and about two digits of precision, for example `47s`, `3m20s`, `5h10m`,
/// `2d4h`, `400d`. Clocks may disagree a little: up to two seconds in the future count as now.
#[must_use]
pub(crate) fn human_duration(seconds: i64) -> String {
    let minutes = seconds / MINUTE;
    let hours = seconds / HOUR;
    match seconds {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % MINUTE, 's'),
        _ if minutes < 3 * 60 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 2 * DAY_HOURS => format!("{hours}h"),
        _ if hours < 8 * DAY_HOURS => pair(hours / DAY_HOURS, 'd', hours % DAY_HOURS, 'h'),
        _ if hours < 2 * YEAR_HOURS => format!("{}d", hours / DAY_HOURS),
        _ if hours < 8 * YEAR_HOURS => pair(hours / YEAR_HOURS, 'y', hours / DAY_HOURS % 365, 'd'),
        _ => format!("{}y", hours / YEAR_HOURS),
    }
}

fn pair(large: i64, large_unit: char, small: i64, small_unit: char) -> String {
    if small == 0 {
        format!("{large}{large_unit}")
    } else {
        format!("{large}{large_unit}{small}{small_unit}")
    }
}

/// Whole seconds from `then` to `now`, cut towards zero, within what Go's durations can hold (292 years).
pub(super) fn seconds_between(then: Timestamp, now: Timestamp) -> i64 {
    let nanos = now.as_nanosecond() - then.as_nanosecond();
    let held = nanos.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    i64::try_from(held / 1_000_000_000).expect("clamped to the range of i64 above")
}

/// Age of a time as the API server stores it; `<unknown>` when there is none.
pub(super) fn since(then: Option<Timestamp>, now: Timestamp) -> String {
    match then {
        Some(then) => human_duration(seconds_between(then, now)),
        None => "<unknown>".to_owned(),
    }
}

/// Age of a time somebody else wrote; `<invalid>` when it is none.
pub(super) fn since_text(text: &str, now: Timestamp) -> String {
    if text.is_empty() || text == "null" {
        return since(None, now);
    }
    match rfc3339(text) {
        Some(then) => since(not_zero(then), now),
        None => "<invalid>".to_owned(),
    }
}

/// Reads an RFC 3339 time strictly: jiff alone also takes other separators and time zone names.
pub(super) fn rfc3339(text: &str) -> Option<Timestamp> {
    let bytes = text.as_bytes();
    let shape = b"0000-00-00T00:00:00";
    let head = bytes.get(..shape.len())?;
    let fits = head.iter().zip(shape).all(|(byte, expected)| match expected {
        b'0' => byte.is_ascii_digit(),
        other => byte == other,
    });
    let rest = text.get(shape.len()..)?;
    let zone = match rest.strip_prefix('.') {
        Some(fraction) => {
            let zone = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
            if zone.len() == fraction.len() {
                return None;
            }
            zone
        }
        None => rest,
    };
    let zoned = match zone.as_bytes() {
        b"Z" => true,
        [b'+' | b'-', h1, h2, b':', m1, m2] => [h1, h2, m1, m2].iter().all(|b| b.is_ascii_digit()),
        _ => false,
    };
    if !fits || !zoned || head.ends_with(b":60") {
        return None;
    }
    text.parse().ok()
}

/// Go's zero time stands for "never set".
pub(super) fn not_zero(time: Timestamp) -> Option<Timestamp> {
    (time.as_second() != -62_135_596_800).then_some(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_lose_precision_as_they_grow() {
        for (seconds, long, reason) in [
            (-2, "<invalid>", "two seconds in the future is a mistake"),
            (-1, "0s", "one second in the future is a clock difference"),
            (0, "0s", "now"),
            (119, "119s", "seconds up to two minutes"),
            (120, "2m", "no zero seconds"),
            (599, "9m59s", "seconds up to ten minutes"),
            (600, "10m", "minutes only"),
            (3 * 3600 - 1, "179m", "minutes up to three hours"),
            (3 * 3600, "3h", "no zero minutes"),
            (7 * 3600 + 59 * 60, "7h59m", "minutes up to eight hours"),
            (8 * 3600 + 1800, "8h", "hours only"),
            (47 * 3600, "47h", "hours up to two days"),
            (48 * 3600, "2d", "no zero hours"),
            (7 * 86400 + 23 * 3600, "7d23h", "hours up to eight days"),
            (8 * 86400, "8d", "days only"),
            (729 * 86400, "729d", "days up to two years"),
            (730 * 86400, "2y", "no zero days"),
            (8 * 365 * 86400 - 1, "7y364d", "days up to eight years"),
            (8 * 365 * 86400, "8y", "years only"),
        ] {
            assert_eq!(human_duration(seconds), long, "{reason}");
        }
    }

    #[test]
    fn only_strict_rfc3339_counts_as_a_time() {
        let now = "2026-01-02T00:00:00Z".parse().unwrap();
        for (text, expected, reason) in [
            ("2026-01-01T00:00:00Z", "24h", "plain"),
            ("2026-01-01T00:00:00.123456Z", "23h", "fractions count, and are cut off"),
            ("2026-01-01T02:00:00+02:00", "24h", "offsets"),
            ("", "<unknown>", "empty means not set"),
            ("null", "<unknown>", "so does the word"),
            ("0001-01-01T00:00:00Z", "<unknown>", "and Go's zero time"),
            ("2026-01-01 00:00:00Z", "<invalid>", "a space is no separator"),
            ("2026-01-01T00:00:00", "<invalid>", "no zone"),
            ("2026-01-01T00:00:00Z[UTC]", "<invalid>", "zone names are not RFC 3339"),
            ("2026-01-01T00:00:60Z", "<invalid>", "no leap seconds"),
            ("2026-01-01T00:00:00.Z", "<invalid>", "a point without digits"),
            ("2026-13-01T00:00:00Z", "<invalid>", "no such month"),
            ("yesterday", "<invalid>", "not a time"),
            ("2026-01-01T00:00:0\u{e9}Z", "<invalid>", "cut inside a character"),
        ] {
            assert_eq!(since_text(text, now), expected, "{text}: {reason}");
        }
    }
}
