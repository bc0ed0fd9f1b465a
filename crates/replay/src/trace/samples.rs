//! One line a sample: when, of whom, how much.

use super::{Problems, Series, Unit};
use crate::DAY;
use jiff::Timestamp;
use rustc_hash::FxHashMap;

/// Seconds between two samples.
const STEP: i64 = 300;
/// So many samples may be missing between two; they are taken to lie on the line between them.
const HOLE: i64 = 3;

pub(super) fn is_header(line: &str) -> bool {
    line.split(',').map(str::trim).eq(["time", "name", "cpu"])
}

/// What was read of one series.
struct Open<'t> {
    name: &'t str,
    first: i64,
    newest: i64,
    milli: Vec<u32>,
}

pub(super) fn read(text: &str, unit: Unit, problems: &mut Problems<'_>) -> Vec<Series> {
    let mut open: Vec<Open<'_>> = Vec::new();
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    for (place, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty()) {
        let number = place + 1;
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let [time, name, cpu] = cells[..] else {
            problems.add(number, format!("{} columns, expected time,name,cpu", cells.len()));
            continue;
        };
        let Some(step) = seconds(time).map(|second| second.div_euclid(STEP)) else {
            problems.add(number, format!("{time:?} is not a time: expected seconds or RFC 3339"));
            continue;
        };
        let milli =
            match cpu.parse().map_err(|_| format!("{cpu:?} is not a number")).and_then(|n| unit.milli(n)) {
                Ok(milli) => milli,
                Err(why) => {
                    problems.add(number, format!("{name:?}: {why}"));
                    continue;
                }
            };
        let at = *places.entry(name).or_insert_with(|| {
            open.push(Open { name, first: step, newest: step - 1, milli: Vec::new() });
            open.len() - 1
        });
        let one = &mut open[at];
        match step - one.newest {
            0 => problems.add(number, format!("{name:?}: a second sample of the same five minutes")),
            passed if passed < 0 => problems.add(number, format!("{name:?}: time goes back")),
            passed if passed > HOLE + 1 => {
                let missing = passed - 1;
                problems.add(
                    number,
                    format!("{name:?}: a hole of {missing} samples, at most {HOLE} are bridged"),
                );
            }
            passed => bridge(&mut one.milli, milli, passed),
        }
        one.newest = one.newest.max(step);
    }
    let began = open.iter().map(|one| one.first).min().unwrap_or(0);
    open.into_iter().map(|one| aligned(one, began)).collect()
}

/// As a series that begins when the first one does, so that the same hour is at the same place in all of them. A series starts over
/// when it ends, so what it lacks before its own beginning is there already.
fn aligned(one: Open<'_>, began: i64) -> Series {
    let Open { name, first, mut milli, .. } = one;
    let late = usize::try_from(first - began).unwrap_or(0) % DAY;
    if let Some(late) = late.checked_rem(milli.len()) {
        milli.rotate_right(late);
    }
    Series { name: name.into(), milli }
}

/// Adds a sample, and before it those on the line to it.
fn bridge(milli: &mut Vec<u32>, sample: u32, passed: i64) {
    let before = milli.last().copied().unwrap_or(sample);
    for step in 1..=passed {
        let (from, to) = (i64::from(before), i64::from(sample));
        milli.push(u32::try_from(from + (to - from) * step / passed).unwrap_or(sample));
    }
}

fn seconds(text: &str) -> Option<i64> {
    text.parse().ok().or_else(|| text.parse::<Timestamp>().ok().map(Timestamp::as_second))
}
