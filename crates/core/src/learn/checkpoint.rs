//! What has to be written down so that a restart forgets nothing? The profiles of a workload as bytes.
//!
//! ```text
//! version, method, number of containers, containers, checksum
//! ```
//!
//! Numbers take seven bits a byte, signed ones with the sign in the lowest bit. Pods are not written: after a restart a
//! sample of each may be counted twice. Whatever the bytes are, reading them ends in profiles or in an error, and with
//! an error one starts afresh: what can be learned again is not worth repairing.

use super::crane::Linear;
use super::day::Hours;
use super::histogram::Histogram;
use super::profile::{Evidence, Oom, Profile};
use crate::ledger::Coarse;
use jiff::Timestamp;
use std::sync::Arc;

const VERSION: u8 = 1;
const CHECKSUM: usize = 4;

/// Why a checkpoint is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("the checkpoint has version {0}, and only version {VERSION} can be read")]
    Version(u8),
    #[error("the checkpoint is damaged")]
    Damaged,
    #[error(
        "the checkpoint was made with other arithmetic: Loadline's and crane's cannot be made of each other"
    )]
    Method,
}

/// FNV-1a with 32 bits: no single changed byte goes unnoticed.
fn checksum(bytes: &[u8]) -> [u8; CHECKSUM] {
    let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, step).to_le_bytes()
}

/// The profiles as bytes.
pub(super) fn encode<'a>(profiles: impl ExactSizeIterator<Item = &'a Profile> + Clone) -> Vec<u8> {
    let mut to = Writer(vec![VERSION]);
    to.0.push(profiles.clone().any(Profile::is_crane).into());
    to.count(profiles.len());
    for profile in profiles {
        to.profile(profile);
    }
    let sum = checksum(&to.0);
    to.0.extend(sum);
    to.0
}

/// The profiles again, by ascending name.
pub(super) fn decode(bytes: &[u8]) -> Result<Vec<Profile>, Unusable> {
    let (version, _) = bytes.split_first().ok_or(Unusable::Damaged)?;
    if *version != VERSION {
        return Err(Unusable::Version(*version));
    }
    let (text, sum) = bytes.split_last_chunk::<CHECKSUM>().ok_or(Unusable::Damaged)?;
    if checksum(text) != *sum {
        return Err(Unusable::Damaged);
    }
    Reader(text).profiles().ok_or(Unusable::Damaged)
}

struct Writer(Vec<u8>);

impl Writer {
    fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(u8::try_from(number & 0x7f).unwrap_or(0) | 0x80);
            number >>= 7;
        }
        self.0.push(u8::try_from(number).unwrap_or(0));
    }

    fn signed(&mut self, number: i64) {
        self.number((number << 1 ^ number >> 63).cast_unsigned());
    }

    fn count(&mut self, count: usize) {
        self.number(u64::try_from(count).unwrap_or(u64::MAX));
    }

    fn profile(&mut self, profile: &Profile) {
        self.count(profile.name.len());
        self.0.extend(profile.name.as_bytes());
        self.signed(profile.since);
        self.signed(profile.newest);
        self.number(profile.samples.into());
        let oom = profile.oom.unwrap_or(Oom { bytes: 0, at: 0 });
        self.0.push(profile.oom.is_some().into());
        self.signed(oom.bytes);
        self.signed(oom.at);
        self.hours(&profile.hours);
        match &profile.evidence {
            Evidence::Decaying { cpu, memory, open, peak } => {
                self.histogram(cpu);
                self.histogram(memory);
                self.signed(*open);
                self.signed(*peak);
            }
            Evidence::Crane { cpu, memory } => {
                self.linear(cpu);
                self.linear(memory);
            }
        }
    }

    fn peak(&mut self, peak: Coarse) {
        self.number(peak.cpu.into());
        self.number(peak.memory.into());
    }

    fn hours(&mut self, hours: &Hours) {
        for (peak, seen) in hours.peaks.iter().zip(hours.seen) {
            self.peak(*peak);
            self.number(seen.into());
        }
        self.signed(hours.open);
        self.peak(hours.peak);
    }

    fn histogram(&mut self, histogram: &Histogram) {
        self.signed(histogram.reference());
        self.count(histogram.weights().len());
        for (bucket, weight) in histogram.weights() {
            self.0.push(bucket);
            self.number(weight.into());
        }
    }

    fn linear(&mut self, linear: &Linear) {
        self.count(linear.days().len());
        for (day, bins) in linear.days() {
            self.signed(day);
            self.count(bins.len());
            for (bucket, weight) in bins {
                self.number((*bucket).into());
                self.0.extend(weight.to_bits().to_le_bytes());
            }
        }
    }
}

/// What is left to read. `None` is damage.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.byte()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let digits = u64::from(byte & 0x7f);
            // Of the tenth byte one bit is left.
            if digits << shift >> shift != digits {
                return None;
            }
            number |= digits << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn small<T: TryFrom<u64>>(&mut self) -> Option<T> {
        self.number()?.try_into().ok()
    }

    fn signed(&mut self) -> Option<i64> {
        let number = self.number()?;
        Some((number >> 1).cast_signed() ^ -(number & 1).cast_signed())
    }

    /// How many of something follow: each takes a byte at least, so no number makes us reserve what is not there.
    fn count(&mut self) -> Option<usize> {
        self.small().filter(|count| *count <= self.0.len())
    }

    fn moment(&mut self) -> Option<i64> {
        self.signed().filter(|millis| Timestamp::from_millisecond(*millis).is_ok())
    }

    fn text(&mut self) -> Option<Arc<str>> {
        let count = self.count()?;
        let (text, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        std::str::from_utf8(text).ok().map(Into::into)
    }

    fn profiles(mut self) -> Option<Vec<Profile>> {
        // The version.
        self.byte()?;
        let crane = self.flag()?;
        let count = self.count()?;
        let profiles: Option<Vec<_>> = (0..count).map(|_| self.profile(crane)).collect();
        profiles.filter(|all| self.0.is_empty() && all.is_sorted_by(|a, b| a.name < b.name))
    }

    fn profile(&mut self, crane: bool) -> Option<Profile> {
        Some(Profile {
            name: self.text()?,
            since: self.moment()?,
            newest: self.moment()?,
            samples: self.small()?,
            oom: {
                let there = self.flag()?;
                let oom = Oom { bytes: self.signed()?, at: self.moment()? };
                there.then_some(oom)
            },
            hours: self.hours()?,
            evidence: if crane {
                Evidence::Crane { cpu: self.linear()?, memory: self.linear()? }
            } else {
                Evidence::Decaying {
                    cpu: self.histogram()?,
                    memory: self.histogram()?,
                    open: self.signed()?,
                    peak: self.signed()?,
                }
            },
        })
    }

    fn peak(&mut self) -> Option<Coarse> {
        Some(Coarse { cpu: self.small()?, memory: self.small()? })
    }

    fn hours(&mut self) -> Option<Hours> {
        let mut hours = Hours::default();
        for (peak, seen) in hours.peaks.iter_mut().zip(&mut hours.seen) {
            *peak = self.peak()?;
            *seen = self.small()?;
        }
        hours.open = self.signed()?;
        hours.peak = self.peak()?;
        Some(hours)
    }

    fn histogram(&mut self) -> Option<Histogram> {
        let reference = self.signed()?;
        let count = self.count()?;
        let weights: Option<Vec<_>> = (0..count).map(|_| Some((self.byte()?, self.small()?))).collect();
        Histogram::from_parts(reference, &weights?)
    }

    fn linear(&mut self) -> Option<Linear> {
        let count = self.count()?;
        let days: Option<Vec<_>> = (0..count)
            .map(|_| {
                let day = self.signed()?;
                let count = self.count()?;
                let bin = |_| Some((self.small()?, f64::from_bits(u64::from_le_bytes(self.bytes()?))));
                Some((day, (0..count).map(bin).collect::<Option<Vec<_>>>()?))
            })
            .collect();
        Linear::from_parts(days?)
    }
}

#[cfg(test)]
mod tests;
