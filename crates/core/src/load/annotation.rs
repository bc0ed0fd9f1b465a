//! What does an annotation say? `0.43012,2026-01-31T12:00:00Z`: a value and when it was so.
//!
//! The format is crane's, and so is its flaw: crane writes the clock reading of some zone and a letter `Z` that
//! means nothing. We write true UTC, the time of the sample, and read UTC; a zone to read in must be named.
//!
//! By default a value is a decimal, taken exactly (finer than a billionth rounds up), never negative; anything
//! else is unreadable, which is not the same as idle. [`read_upstream`] reads what crane reads, float and all.
//!
//! Both read in crane's order: two fields, a time, then (the caller asks whether that is recent) a number that is not
//! negative. What fails first is what is told.

mod go_float;

use super::policy::Figure;
use super::ratio::Ratio;
use crate::quantity::Quantity;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// The key of the hot value. Metrics use their own names.
pub const HOT_VALUE: &str = "node_hot_value";

/// How long a written hot value is good.
pub const HOT_WINDOW: SignedDuration = SignedDuration::from_mins(5);

/// A time, and the value that matters only if the time is recent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reading {
    /// When.
    pub at: Timestamp,
    /// How much; as crane reads it, possibly NaN or infinite.
    pub value: Result<Figure, Unreadable>,
}

/// Why an annotation says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unreadable {
    /// It is not a value and a time.
    Malformed,
    /// The value is less than nothing.
    Negative,
}

/// Reads an annotation: two fields, an exact decimal and `YYYY-MM-DDTHH:MM:SSZ`, fractions of a second allowed.
/// The time is UTC, or the clock of `zone`. Where clocks went back and a reading means two instants, it is the
/// later one: stamps of the first pass then lie ahead and are not used, those of the second are right. A reading
/// that never was, where clocks went forward, moves on by the gap. One past the end of our time is that end: it is
/// from the future, not malformed.
///
/// # Errors
/// When there are not two fields, or the second is no time.
pub fn read(text: &str, zone: Option<&TimeZone>) -> Result<Reading, Unreadable> {
    let (number, stamp) = fields(text).ok_or(Unreadable::Malformed)?;
    let local = clock(stamp, Hours::Two).ok_or(Unreadable::Malformed)?;
    let utc = TimeZone::UTC;
    let at = zone.unwrap_or(&utc).to_ambiguous_timestamp(local).later().unwrap_or_else(|_| beyond(local));
    let value = match decimal(number) {
        None => Err(Unreadable::Malformed),
        Some(value) if value < Ratio::ZERO => Err(Unreadable::Negative),
        Some(value) => Ok(Figure::Exact(value)),
    };
    Ok(Reading { at, value })
}

/// Reads as crane's scheduler does: a time in its layout (hours may have one digit), a float as Go reads it.
///
/// # Errors
/// When there are not two fields, or the second is no time.
pub fn read_upstream(text: &str, zone: Option<&TimeZone>) -> Result<Reading, Unreadable> {
    let (number, stamp) = fields(text).ok_or(Unreadable::Malformed)?;
    let local = clock(stamp, Hours::OneOrTwo).ok_or(Unreadable::Malformed)?;
    let value = match go_float::parse(number) {
        None => Err(Unreadable::Malformed),
        Some(float) if float < 0.0 => Err(Unreadable::Negative),
        Some(float) => Ok(Figure::Float(float)),
    };
    Ok(Reading { at: go_instant(local, zone).unwrap_or_else(|| beyond(local)), value })
}

/// Writes a load: five decimals, rounded up, and the time in whole seconds of UTC, or of the clock of `zone` for
/// a reader that expects that.
#[must_use]
pub fn write(value: Ratio, at: Timestamp, zone: Option<&TimeZone>) -> String {
    let nano = i128::from(value.nano());
    let fifth = nano.div_euclid(10_000) + i128::from(nano.rem_euclid(10_000) != 0);
    let sign = if fifth < 0 { "-" } else { "" };
    let size = fifth.unsigned_abs();
    format!("{sign}{}.{:05},{}", size / 100_000, size % 100_000, stamp(at, zone))
}

/// Writes a hot value.
#[must_use]
pub fn write_hot(hot: i64, at: Timestamp, zone: Option<&TimeZone>) -> String {
    format!("{hot},{}", stamp(at, zone))
}

fn stamp(at: Timestamp, zone: Option<&TimeZone>) -> String {
    let zone = zone.cloned().unwrap_or(TimeZone::UTC);
    at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

fn fields(text: &str) -> Option<(&str, &str)> {
    text.split_once(',').filter(|(_, stamp)| !stamp.contains(','))
}

/// An exact decimal, finer than a billionth rounded away from zero, held at the largest ratio. A sign and an
/// exponent may be there; blanks, NaN, infinities and the suffixes of quantities may not.
pub(super) fn decimal(text: &str) -> Option<Ratio> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (digits, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((digits, exponent)) => (digits, Some(exponent)),
        None => (unsigned, None),
    };
    let only_digits = |t: &str| t.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let fine = only_digits(whole)
        && only_digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| {
            let e = e.strip_prefix(['+', '-']).unwrap_or(e);
            (1..=4).contains(&e.len()) && only_digits(e)
        });
    let exact: Quantity = fine.then(|| text.parse().ok())??;
    let end = if exact.is_negative() { i64::MIN } else { i64::MAX };
    let nano = exact.nano_value().and_then(|nano| i64::try_from(nano).ok()).unwrap_or(end);
    Some(Ratio::from_nano(nano))
}

/// The end of our time that a reading past it stands for: clocks are read up to the last second of the year 9999,
/// instants end a day before.
fn beyond(local: DateTime) -> Timestamp {
    if local.year() > 0 { Timestamp::MAX } else { Timestamp::MIN }
}

/// The instant Go gives a clock reading: it guesses the offset by taking the reading for UTC, then asks again for
/// the offset at the instant that gives. Which of two instants this finds depends on the zone.
fn go_instant(local: DateTime, zone: Option<&TimeZone>) -> Option<Timestamp> {
    let utc = TimeZone::UTC.to_timestamp(local).ok()?;
    let Some(zone) = zone else { return Some(utc) };
    let back = |at: Timestamp| {
        let seconds = zone.to_offset(at).seconds();
        utc.checked_sub(SignedDuration::from_secs(seconds.into())).ok()
    };
    back(back(utc)?)
}

/// How many digits hours must have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hours {
    Two,
    OneOrTwo,
}

/// `YYYY-MM-DDTHH:MM:SS`, perhaps a point and digits, and the letter `Z`.
fn clock(text: &str, hours: Hours) -> Option<DateTime> {
    let (day, time) = text.strip_suffix('Z')?.split_once('T')?;
    let (year, day) = day.split_once('-')?;
    let (month, day) = day.split_once('-')?;
    let (hour, rest) = time.split_once(':')?;
    let (minute, second) = rest.split_once(':')?;
    let (second, fraction) = match second.split_once('.') {
        Some((_, "")) => return None,
        Some((second, fraction)) => (second, fraction),
        None => (second, ""),
    };
    let number = |text: &str, len: usize| -> Option<i16> {
        (text.len() == len && text.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok())?
    };
    let two = |text: &str| number(text, 2).and_then(|n| i8::try_from(n).ok());
    let hour = match hours {
        Hours::OneOrTwo if hour.len() == 1 => number(hour, 1).and_then(|n| i8::try_from(n).ok()),
        _ => two(hour),
    };
    if !fraction.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let nanos: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let date = Date::new(number(year, 4)?, two(month)?, two(day)?).ok()?;
    let time = Time::new(hour?, two(minute)?, two(second)?, nanos.parse().ok()?).ok()?;
    Some(date.to_datetime(time))
}

#[cfg(test)]
mod tests;
