//! Moments and lengths as whole nanoseconds, so that a moment takes eight bytes and compares in one step.
//!
//! What lies outside 1677 to 2262 is held at the nearest end: "far back" and "never" keep their meaning.

use jiff::{SignedDuration, Timestamp};

/// Five minutes in nanoseconds: the short interval everything recent is judged by.
pub(super) const SHORT: i64 = 300_000_000_000;

/// Nanoseconds since 1970.
pub(super) fn nanos(at: Timestamp) -> i64 {
    held(at.as_nanosecond())
}

/// The moment again.
pub(super) fn moment(nanos: i64) -> Timestamp {
    Timestamp::from_nanosecond(nanos.into()).expect("years 1677 to 2262 are within what a timestamp holds")
}

/// A length in nanoseconds.
pub(super) fn length(of: SignedDuration) -> i64 {
    held(of.as_nanos())
}

fn held(nanos: i128) -> i64 {
    i64::try_from(nanos).unwrap_or(if nanos < 0 { i64::MIN } else { i64::MAX })
}
