//! How is a node's past written down in about a hundred bytes, and joined with what came since?
//!
//! ```text
//! format, unit            a byte each; unit: 0 seconds, 1 milliseconds, 2 microseconds
//! newest                  since 1970, signed; like all times in that unit, the largest in which all are whole
//! first, unbroken         so long before the newest; held at a second more than a day, and at five minutes
//! count, point …          oldest first: age, window, CPU and memory in coarse units as differences, signed
//! hour, day               peaks
//! ```
//!
//! **Peaks** are only ever asked for the largest of the newest buckets, and with time the oldest go first. A bucket
//! that has a newer one at least as large beside it therefore never decides: each is written as the largest of itself
//! and all newer ones, which makes stairs that rise toward the past. Of 13 buckets in random order three are steps.
//!
//! ```text
//! peaks    which buckets hold anything, then for CPU and memory: which are steps, how high each is
//!          buckets are bits, the current one the lowest
//! ```

use super::{BUCKETS, Coarse, DAY, DAY_STEP, Past, Peaks, Point, SPAN, mean};
use crate::ledger::checkpoint::{BadCheckpoint, FORMAT, Reader, put, put_signed};
use crate::load::Load;

/// Microseconds to a unit.
const UNITS: [i64; 3] = [1_000_000, 1_000, 1];
/// Further back than a day nobody looks; a whole number of every unit.
const LONG_AGO: i64 = DAY + UNITS[0];
/// The most points that are written as they are, and the length of time others become one: the newest and four more.
const POINTS: usize = 5;
const BLUR: u32 = SPAN / 4;

impl Peaks {
    fn write(&self, current: i64, out: &mut Vec<u8>) {
        let newest_first =
            || (0..).zip(0..BUCKETS).map(|(back, bit)| (bit, self.0[Self::place(current - back)]));
        let held = newest_first().filter(|(_, peak)| *peak != Coarse::default());
        put(out, held.fold(0, |bits, (bit, _)| bits | 1 << bit));
        for part in [|peak: Coarse| peak.cpu, |peak: Coarse| peak.memory] {
            let (mut steps, mut heights, mut largest) = (0, Vec::new(), 0);
            for (bit, value) in newest_first().map(|(bit, peak)| (bit, part(peak))) {
                if value > largest {
                    steps |= 1 << bit;
                    heights.push(value - largest);
                    largest = value;
                }
            }
            put(out, steps);
            for height in heights {
                put(out, height.into());
            }
        }
    }

    fn read(current: i64, from: &mut Reader<'_>) -> Result<Self, BadCheckpoint> {
        let mut peaks = Self::default();
        let held = from.number()?;
        let parts: [fn(&mut Coarse) -> &mut u32; 2] = [|peak| &mut peak.cpu, |peak| &mut peak.memory];
        for part in parts {
            let (steps, mut largest) = (from.number()?, 0_u32);
            if held >> BUCKETS != 0 || steps & !held != 0 {
                return Err(BadCheckpoint::Damaged);
            }
            for (back, bit) in (0..).zip(0..BUCKETS) {
                if steps >> bit & 1 == 1 {
                    largest = largest.checked_add(from.small()?).ok_or(BadCheckpoint::Damaged)?;
                }
                if held >> bit & 1 == 1 {
                    *part(&mut peaks.0[Self::place(current - back)]) = largest;
                }
            }
        }
        Ok(peaks)
    }

    /// Takes over what is still in range of peaks whose current bucket was another one.
    fn absorb(&mut self, current: i64, other: &Self, its: i64) {
        for bucket in (current.max(its) - 12)..=current.min(its) {
            self.note(bucket, other.0[Self::place(bucket)]);
        }
    }
}

impl Point {
    /// Several neighbours as one. Its older part will go first, so it is as large as the largest mean of its
    /// newest ones: whatever is left of it, no less than was measured.
    fn of(points: &[Self]) -> Option<Self> {
        let newest = points.last()?;
        let window = points.iter().fold(0_u32, |sum, p| sum.saturating_add(p.window)).min(SPAN);
        let means = (0..points.len()).map(|i| mean(points[i..].iter().map(|p| (p.usage, p.window))));
        Some(Self { age: newest.age, window, usage: means.fold(Load::ZERO, Load::max) })
    }

    fn times(&self) -> [i64; 2] {
        [self.age.into(), self.window.into()]
    }
}

impl Past {
    /// Few enough points to be written.
    fn thinned(&self) -> Vec<Point> {
        match self.points.split_last() {
            Some((newest, older)) if self.points.len() > POINTS => {
                let groups = older.chunk_by(|a, b| a.age / BLUR == b.age / BLUR);
                groups.filter_map(Point::of).chain([*newest]).collect()
            }
            _ => self.points.clone(),
        }
    }

    /// As bytes.
    pub(in crate::ledger) fn write(&self) -> Vec<u8> {
        let points = self.thinned();
        let first = self.newest.saturating_sub(self.first).min(LONG_AGO);
        let unbroken = self.newest.saturating_sub(self.unbroken).min(SPAN.into());
        let times = || [self.newest, first, unbroken].into_iter().chain(points.iter().flat_map(Point::times));
        let whole = |unit: &i64| times().all(|time| time % unit == 0);
        let (place, unit) = (0_u8..).zip(UNITS).find(|(_, unit)| whole(unit)).unwrap_or((2, 1));

        let mut out = vec![FORMAT, place];
        put_signed(&mut out, self.newest / unit);
        let length = |out: &mut Vec<u8>, time: i64| put(out, (time / unit).unsigned_abs());
        length(&mut out, first);
        length(&mut out, unbroken);
        put(&mut out, points.len() as u64);
        let mut before = Coarse::default();
        for point in &points {
            for time in point.times() {
                length(&mut out, time);
            }
            let usage = Coarse::new(point.usage);
            put_signed(&mut out, i64::from(usage.cpu) - i64::from(before.cpu));
            put_signed(&mut out, i64::from(usage.memory) - i64::from(before.memory));
            before = usage;
        }
        self.hour.write(self.hour_bucket(), &mut out);
        self.day.write(self.day_bucket(), &mut out);
        out
    }

    /// From bytes, whatever they are.
    pub(in crate::ledger) fn read(bytes: &[u8]) -> Result<Self, BadCheckpoint> {
        let from = &mut Reader::new(bytes);
        let format = from.byte()?;
        if format != FORMAT {
            return Err(BadCheckpoint::Format(format));
        }
        let unit = *UNITS.get(usize::from(from.byte()?)).ok_or(BadCheckpoint::Damaged)?;
        let newest = from.signed()?.checked_mul(unit).ok_or(BadCheckpoint::Damaged)?;
        let length = |from: &mut Reader<'_>, most: i64| {
            let time = from.small::<i64>()?.checked_mul(unit).filter(|time| *time <= most);
            time.ok_or(BadCheckpoint::Damaged)
        };
        let ago = |from: &mut Reader<'_>, most: i64| {
            newest.checked_sub(length(from, most)?).ok_or(BadCheckpoint::Damaged)
        };
        let (first, unbroken) = (ago(from, LONG_AGO)?, ago(from, SPAN.into())?);

        let count: usize = from.small()?;
        let (mut points, mut before) = (Vec::new(), Coarse::default());
        for left in (0..count).rev() {
            let [age, window] = [length(from, (SPAN - 1).into())?, length(from, SPAN.into())?]
                .map(|time| u32::try_from(time).unwrap_or(SPAN));
            let mut part = |before: u32| {
                let value = i64::from(before).checked_add(from.signed()?);
                value.and_then(|v| u32::try_from(v).ok()).ok_or(BadCheckpoint::Damaged)
            };
            before = Coarse { cpu: part(before.cpu)?, memory: part(before.memory)? };
            let ordered = points.last().is_none_or(|older: &Point| older.age > age);
            if !ordered || (left == 0) != (age == 0) {
                return Err(BadCheckpoint::Damaged);
            }
            points.push(Point { age, window, usage: before.load() });
        }
        if points.is_empty() || points.len() > POINTS {
            return Err(BadCheckpoint::Damaged);
        }
        let mut past =
            Self { newest, first, unbroken, points, hour: Peaks::default(), day: Peaks::default() };
        past.hour = Peaks::read(past.hour_bucket(), from)?;
        past.day = Peaks::read(past.day_bucket(), from)?;
        if from.is_empty() { Ok(past) } else { Err(BadCheckpoint::Damaged) }
    }

    /// This past, read from a checkpoint, and the samples held since.
    pub(in crate::ledger) fn join(mut self, held: &Self) -> Self {
        // Who has five minutes of its own, or all that is in the checkpoint, needs no older samples: only peaks.
        let enough = held.newest.saturating_sub(held.unbroken) >= SPAN.into() || held.first <= self.first;
        if held.newest >= self.newest && enough {
            let mut newer = held.clone();
            newer.absorb(&self);
            return newer.since_at_least(held);
        }
        let known = self.newest;
        let samples = held.points.iter().map(|p| (held.newest - i64::from(p.age), p));
        for (at, point) in samples.clone().filter(|(at, _)| *at > known) {
            self.push(at, point.window, point.usage);
        }
        self.absorb(held);
        // With every sample told again, it is what it would be had the checkpoint come first.
        let all = samples.clone().next().is_some_and(|(oldest, _)| oldest <= held.first);
        if all { self } else { self.since_at_least(held) }
    }

    /// Beyond a day, how far back it goes is told by peaks, and there may be none: what was known must not look
    /// shorter for having become longer.
    fn since_at_least(mut self, held: &Self) -> Self {
        if self.since() > held.since() {
            self.first = held.first;
        }
        self
    }

    /// Takes over peaks, and since when there are samples unless they are more than a day apart.
    fn absorb(&mut self, other: &Self) {
        self.hour.absorb(self.hour_bucket(), &other.hour, other.hour_bucket());
        self.day.absorb(self.day_bucket(), &other.day, other.day_bucket());
        let (end, start) = (self.newest.min(other.newest), self.first.max(other.first));
        if start.div_euclid(DAY_STEP) - end.div_euclid(DAY_STEP) < 13 {
            self.first = self.first.min(other.first);
        }
    }
}
