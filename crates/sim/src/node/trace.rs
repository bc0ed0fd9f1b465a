//! How busy is a workload over a day? Real virtual machines show it: what they used of what they were given.
//!
//! The samples are a small part of a public archive and are built in, so nothing is read at run time; origin,
//! licence and how they were picked are in `scenarios/traces/README.md`. A day of a trace starts over when it
//! ends. Time may be made to pass faster: with a pace of 60 a day takes 24 minutes. Where in the day it is
//! follows from the time alone, so two runs at the same time show the same.

use jiff::Timestamp;
use std::sync::LazyLock;

/// One line per resource: the trace's id, the resource, then a day of samples in thousandths.
const TEXT: &str = include_str!("../../../../scenarios/traces/bitbrains.txt");
/// Samples of a day.
const SAMPLES: usize = 288;
/// Milliseconds between two samples: five minutes.
const STEP: u64 = 300_000;
/// Milliseconds of a day, after which a trace starts over.
pub const DAY: u64 = 86_400_000;

static ALL: LazyLock<Vec<Trace>> =
    LazyLock::new(|| read(TEXT).expect("the text is built in, and a test reads it"));

type Samples = [u16; SAMPLES];

/// A day of a workload.
#[derive(Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its kind and number, such as `daily-86`.
    pub id: &'static str,
    cpu: Samples,
    memory: Samples,
}

impl Trace {
    /// The part of its CPU it uses at a time of the day, in milliseconds.
    pub fn cpu(&self, time: u64) -> Share {
        Share::at(&self.cpu, time)
    }

    /// The part of its memory it uses at a time of the day, in milliseconds.
    pub fn memory(&self, time: u64) -> Share {
        Share::at(&self.memory, time)
    }
}

/// A part of what was given; more than all of it where a machine got more than it was promised.
///
/// In thousandths times [`STEP`], which keeps interpolation exact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share(u64);

impl Share {
    /// On the straight line from the sample before to the sample after, of which each counts by how near it
    /// is: with 100 at 00:00 and 200 at 00:05 it is 100 × 4 + 200 × 1 = 600 fifths, 120, at 00:01.
    fn at(samples: &Samples, time: u64) -> Self {
        let (step, past) = (usize::try_from(time % DAY / STEP).unwrap_or(0), time % STEP);
        let sample = |step: usize| u64::from(samples[step % SAMPLES]);
        Self(sample(step) * (STEP - past) + sample(step + 1) * past)
    }

    /// That part of an amount, rounded down.
    pub fn of(self, amount: i64) -> i64 {
        let part = i128::from(amount) * i128::from(self.0) / i128::from(1000 * STEP);
        i64::try_from(part).unwrap_or(i64::MAX)
    }
}

/// The time of the day of all traces, in milliseconds, when time passes `pace` times as fast.
pub fn time_of_day(at: Timestamp, pace: u32) -> u64 {
    let passed = i128::from(at.as_millisecond()) * i128::from(pace);
    u64::try_from(passed.rem_euclid(i128::from(DAY))).unwrap_or(0)
}

/// Every trace.
pub fn all() -> &'static [Trace] {
    &ALL
}

/// The trace with this id.
pub fn find(id: &str) -> Option<&'static Trace> {
    all().iter().find(|trace| trace.id == id)
}

/// The trace that the dice chose.
pub fn pick(roll: u64) -> &'static Trace {
    let all = all();
    // There is at least one, see `read`.
    let index = usize::try_from(roll % all.len() as u64).unwrap_or(0);
    &all[index]
}

/// Reads the traces, two lines each.
fn read(text: &'static str) -> Result<Vec<Trace>, String> {
    let mut lines = text.lines();
    let mut traces = Vec::new();
    while let Some(first) = lines.next() {
        let (id, cpu) = samples(first, "cpu")?;
        let (same, memory) = samples(lines.next().unwrap_or_default(), "memory")?;
        if id != same {
            return Err(format!("memory of {id} expected, found that of {same}"));
        }
        traces.push(Trace { id, cpu, memory });
    }
    if traces.is_empty() { Err("no traces".to_owned()) } else { Ok(traces) }
}

fn samples(line: &'static str, resource: &str) -> Result<(&'static str, Samples), String> {
    let mut words = line.split(' ');
    let (id, found) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    if id.is_empty() || found != resource {
        return Err(format!("{resource} of a trace expected, found {found:?} of {id:?}"));
    }
    let samples: Vec<u16> = words
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|error| format!("{id} {resource}: {error}"))?;
    let count = samples.len();
    let samples = samples.try_into();
    let samples =
        samples.map_err(|_| format!("{id} {resource}: {SAMPLES} samples expected, found {count}"))?;
    Ok((id, samples))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    #[test]
    fn the_built_in_traces_are_whole_and_of_every_kind() {
        let traces = read(TEXT).unwrap();
        let mut kinds = BTreeMap::<&str, usize>::new();
        for trace in &traces {
            *kinds.entry(trace.id.split('-').next().unwrap_or_default()).or_default() += 1;
        }
        assert_eq!(kinds, BTreeMap::from([("idle", 18), ("daily", 15), ("varied", 15), ("hot", 12)]));
        assert_eq!(traces.iter().map(|trace| trace.id).collect::<BTreeSet<_>>().len(), traces.len());
        for trace in &traces {
            let peak = *trace.cpu.iter().max().unwrap();
            match trace.id.split('-').next().unwrap_or_default() {
                "idle" => assert!(peak < 50, "{}", trace.id),
                "hot" => assert!(peak >= 900, "{}", trace.id),
                _ => assert!((50..900).contains(&peak), "{}", trace.id),
            }
        }
    }

    #[test]
    fn text_that_holds_no_traces_is_an_error_that_says_where() {
        for (text, expected) in [
            ("", "no traces"),
            ("a memory 1", "cpu of a trace expected, found \"memory\" of \"a\""),
            ("a cpu 1 x", "a cpu: invalid digit found in string"),
            ("a cpu 1 2", "a cpu: 288 samples expected, found 2"),
        ] {
            assert_eq!(read(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn usage_lies_on_the_line_between_two_samples() {
        let mut day = [0; SAMPLES];
        (day[0], day[1], day[287]) = (100, 200, 500);
        let minute = 60_000;
        for (time, amount, expected, why) in [
            (0, 1000, 100, "the first sample: a tenth"),
            (STEP, 1000, 200, "the second"),
            (minute, 1000, 120, "a fifth of the way from 100 to 200"),
            (STEP / 2, 2000, 300, "half way, 150 thousandths of 2000"),
            (STEP / 2, 7, 1, "150 thousandths of 7 are 1.05, rounded down"),
            (STEP + STEP / 4, 1000, 150, "a quarter of the way from 200 to 0"),
            (287 * STEP, 1000, 500, "the last sample"),
            (287 * STEP + minute, 1000, 420, "on the way from 500 to the 100 of the next morning"),
            (DAY + minute, 1000, 120, "the next day is the same"),
            (0, 1 << 42, (1 << 42) / 10, "4 TiB do not overflow"),
            (0, i64::MAX, i64::MAX / 10, "nor does the largest number"),
        ] {
            assert_eq!(Share::at(&day, time).of(amount), expected, "{why}");
        }
        assert_eq!(Share::at(&[2000; SAMPLES], 0).of(i64::MAX), i64::MAX, "held within the range");
    }

    #[test]
    fn time_passes_as_fast_as_it_is_told_to() {
        let at = |second| Timestamp::from_second(second).unwrap();
        for (second, pace, expected, why) in [
            (0, 60, 0, "midnight"),
            (5, 60, STEP, "five seconds are a sample"),
            (24 * 60, 60, 0, "a day takes 24 minutes"),
            (24 * 60 + 1, 60, 60_000, "and starts over"),
            (300, 1, STEP, "time as it is"),
            (300, 0, 0, "no time passes at all"),
            (-1, 60, DAY - 60_000, "before 1970 there were days, too"),
        ] {
            assert_eq!(time_of_day(at(second), pace), expected, "{why}");
        }
        assert!(time_of_day(Timestamp::MAX, u32::MAX) < DAY);
        assert!(time_of_day(Timestamp::MIN, u32::MAX) < DAY);
    }

    #[test]
    fn every_trace_can_be_picked_and_found() {
        let picked: BTreeSet<&str> = (0..60).map(|roll| pick(roll).id).collect();
        assert_eq!(picked.len(), all().len());
        assert!(all().iter().all(|trace| find(trace.id) == Some(trace)));
        assert_eq!(find("no-such"), None);
    }
}
