//! How Go reads and writes times: RFC 3339 with Go's sentences about what is wrong.

use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};

/// How precisely a field keeps time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Precision {
    /// `metav1.Time`.
    Seconds,
    /// `metav1.MicroTime`.
    Micros,
}

impl Precision {
    fn layout(self) -> &'static str {
        match self {
            Self::Seconds => "2006-01-02T15:04:05Z07:00",
            Self::Micros => "2006-01-02T15:04:05.000000Z07:00",
        }
    }
}

/// What stopped the reading: the rest of the text and the part of the layout, or a part out of range.
enum Stop<'a> {
    At(&'a str, &'static str),
    Range(&'static str),
    Extra(&'a str),
}

/// Reads a time and writes it in UTC, as a round trip through a Go struct does.
pub(crate) fn canonical(text: &str, precision: Precision) -> Result<String, String> {
    let whole = quoted(text);
    let time = read(text, precision).map_err(|stop| match stop {
        Stop::At(rest, part) => format!(
            "parsing time {whole} as \"{}\": cannot parse {} as \"{part}\"",
            precision.layout(),
            quoted(rest)
        ),
        Stop::Range(part) => format!("parsing time {whole}: {part} out of range"),
        Stop::Extra(rest) => format!("parsing time {whole}: extra text: {}", quoted(rest)),
    })?;
    let format = match precision {
        Precision::Seconds => "%Y-%m-%dT%H:%M:%SZ",
        Precision::Micros => "%Y-%m-%dT%H:%M:%S.%6fZ",
    };
    Ok(time.strftime(format).to_string())
}

/// A string as Go's times quote it, which is not as `%q` does: whatever is not plain ASCII is shown byte by byte.
fn quoted(text: &str) -> String {
    let shown = text.bytes().map(|byte| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..0x80 => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("\"{}\"", shown.collect::<String>())
}

fn read(text: &str, precision: Precision) -> Result<DateTime, Stop<'_>> {
    let mut rest = text;
    let year = number(&mut rest, 4, "2006")?;
    literal(&mut rest, "-")?;
    let month = ranged(&mut rest, "01", "month", 1..=12)?;
    literal(&mut rest, "-")?;
    let day = number(&mut rest, 2, "02")?;
    literal(&mut rest, "T")?;
    let hour = ranged(&mut rest, "15", "hour", 0..=23)?;
    literal(&mut rest, ":")?;
    let minute = ranged(&mut rest, "04", "minute", 0..=59)?;
    literal(&mut rest, ":")?;
    let second = ranged(&mut rest, "05", "second", 0..=59)?;
    let nanos = fraction(&mut rest, precision)?;
    let offset = offset(&mut rest)?;
    if !rest.is_empty() {
        return Err(Stop::Extra(rest));
    }
    let small = |value: i32| i8::try_from(value).map_err(|_| Stop::Range("day"));
    let year = i16::try_from(year).map_err(|_| Stop::Range("year"))?;
    let local =
        DateTime::new(year, small(month)?, small(day)?, small(hour)?, small(minute)?, small(second)?, nanos)
            .map_err(|_| Stop::Range("day"))?;
    let instant = offset.to_timestamp(local).map_err(|_| Stop::Range("year"))?.to_zoned(TimeZone::UTC);
    Ok(instant.datetime())
}

fn literal<'a>(rest: &mut &'a str, mark: &'static str) -> Result<(), Stop<'a>> {
    *rest = rest.strip_prefix(mark).ok_or(Stop::At(rest, mark))?;
    Ok(())
}

fn number<'a>(rest: &mut &'a str, digits: usize, part: &'static str) -> Result<i32, Stop<'a>> {
    let stop = Stop::At(rest, part);
    let Some(head) = rest.get(..digits).filter(|head| head.bytes().all(|b| b.is_ascii_digit())) else {
        return Err(stop);
    };
    *rest = &rest[digits..];
    head.parse().map_err(|_| stop)
}

fn ranged<'a>(
    rest: &mut &'a str,
    part: &'static str,
    name: &'static str,
    range: std::ops::RangeInclusive<i32>,
) -> Result<i32, Stop<'a>> {
    let value = number(rest, 2, part)?;
    if range.contains(&value) { Ok(value) } else { Err(Stop::Range(name)) }
}

fn fraction<'a>(rest: &mut &'a str, precision: Precision) -> Result<i32, Stop<'a>> {
    let whole = *rest;
    let digits = match whole.strip_prefix(['.', ',']) {
        Some(digits) => digits,
        None if precision == Precision::Micros => return Err(Stop::At(whole, ".000000")),
        None => return Ok(0),
    };
    let len = digits.bytes().take_while(u8::is_ascii_digit).count();
    match precision {
        Precision::Micros if len < 6 => return Err(Stop::At(whole, ".000000")),
        Precision::Seconds if len == 0 => return Ok(0),
        _ => {}
    }
    let used = if precision == Precision::Micros { 6 } else { len };
    *rest = &digits[used..];
    let padded: String = digits[..used].chars().chain("000000000".chars()).take(9).collect();
    Ok(padded.parse().unwrap_or(0))
}

fn offset<'a>(rest: &mut &'a str) -> Result<Offset, Stop<'a>> {
    if let Some(after) = rest.strip_prefix('Z') {
        *rest = after;
        return Ok(Offset::UTC);
    }
    let stop = || Stop::At(rest, "Z07:00");
    let text = rest.get(..6).ok_or_else(stop)?;
    let sign = match text.as_bytes() {
        [b'+', _, _, b':', _, _] => 1,
        [b'-', _, _, b':', _, _] => -1,
        _ => return Err(stop()),
    };
    let hours: i32 = text[1..3].parse().map_err(|_| stop())?;
    let minutes: i32 = text[4..6].parse().map_err(|_| stop())?;
    let seconds = sign * (hours * 3600 + minutes * 60);
    let offset = Offset::from_seconds(seconds).map_err(|_| Stop::Range("time zone offset hour"))?;
    *rest = &rest[6..];
    Ok(offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back_in_utc() {
        let seconds = |text| canonical(text, Precision::Seconds).unwrap();
        assert_eq!(seconds("2024-01-01T00:00:00+01:00"), "2023-12-31T23:00:00Z");
        assert_eq!(seconds("2024-01-01T00:00:00.999Z"), "2024-01-01T00:00:00Z");
        let micros = canonical("2024-01-01T00:00:00.000001Z", Precision::Micros).unwrap();
        assert_eq!(micros, "2024-01-01T00:00:00.000001Z");
    }

    #[test]
    fn what_is_no_time_is_told_as_go_tells_it() {
        for (text, want) in [
            ("soon", r#"parsing time "soon" as "2006-01-02T15:04:05Z07:00": cannot parse "soon" as "2006""#),
            (
                "2024-01-01",
                r#"parsing time "2024-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T""#,
            ),
            ("2024-13-01T00:00:00Z", r#"parsing time "2024-13-01T00:00:00Z": month out of range"#),
            ("2024-02-30T00:00:00Z", r#"parsing time "2024-02-30T00:00:00Z": day out of range"#),
            ("2024-01-01T00:00:00Zx", r#"parsing time "2024-01-01T00:00:00Zx": extra text: "x""#),
        ] {
            assert_eq!(canonical(text, Precision::Seconds).unwrap_err(), want);
        }
        assert_eq!(
            canonical("2024-01-01T00:00:00Z", Precision::Micros).unwrap_err(),
            r#"parsing time "2024-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000""#
        );
    }
}
