//! May more load come aboard? For each metered resource with a target:
//!
//! ```text
//! measured + pending − departed + incoming  ≤  allocatable × target
//! ```
//!
//! *Pending* is what assigned pods will use that the measurement cannot contain yet, *departed* what is still in
//! the measurement of pods that are gone, *incoming* what the new pod is expected to use. All are whole numbers
//! (billionths of a core, bytes), the target an exact decimal: nothing is rounded, equality passes.
//!
//! Example: 3910m × 0.65 is a line at exactly 2541.5m. With 2 cores measured and 300m pending, a pod of 241.5m
//! comes aboard and one of 241.500001m does not.
//!
//! When the newest measurement is old, the next best thing is used, and what was used is part of the answer:
//!
//! 1. the newest sample, if not older than three of its windows or 90 s, whichever is longer;
//! 2. the same up to 5 min: whatever was placed since is added, so the error is bounded, and it is marked;
//! 3. a fresh five-minute mean from the node's annotation;
//! 4. what all pods of the node are expected to use together (or all or nothing, as the settings say).

use super::ratio::Ratio;
use super::settings::Missing;
use crate::ledger::Sample;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Up to this age a sample is as good as new, at least.
pub const FRESH: SignedDuration = SignedDuration::from_secs(90);
/// Up to this age a sample is used at all.
pub const USABLE: SignedDuration = SignedDuration::from_secs(300);
/// Stamps further ahead than this are not believed.
pub const AHEAD: SignedDuration = super::term::AHEAD;

/// What the expected load of a node rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Basis {
    /// A fresh sample.
    Measured,
    /// A sample that is not fresh any more.
    Late,
    /// A five-minute mean from an annotation.
    Annotation,
    /// What its pods are expected to use; nothing is measured.
    Estimates,
    /// Nothing: nothing is measured, and the settings say not to guess.
    #[default]
    Nothing,
}

/// How good a sample is at a time, and when that changes by itself. `None`: not to be used.
#[must_use]
pub fn judge(sample: &Sample, now: Timestamp) -> (Option<Basis>, Option<Timestamp>) {
    let ahead = sample.at.duration_since(now);
    if ahead > AHEAD {
        return (None, sample.at.checked_sub(AHEAD).ok());
    }
    let fresh = sample.window.saturating_mul(3).max(FRESH).min(USABLE);
    let age = SignedDuration::ZERO.max(now.duration_since(sample.at));
    // Good up to and including the limit, so it changes right after.
    let after = |limit: SignedDuration| sample.at.checked_add(limit + SignedDuration::from_nanos(1)).ok();
    if age <= fresh {
        (Some(Basis::Measured), after(fresh))
    } else if age <= USABLE {
        (Some(Basis::Late), after(USABLE))
    } else {
        (None, None)
    }
}

/// One resource of one node, held against its line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// What was measured; `None` if nothing was.
    pub measured: Option<i64>,
    /// What assigned pods will add.
    pub pending: i64,
    /// What pods that are gone will take away.
    pub departed: i64,
    /// What the node has for pods; `None` if it does not say.
    pub allocatable: Option<i64>,
    /// How much of that may be used; `None` if there is no line.
    pub target: Option<Ratio>,
    /// What it rests on.
    pub basis: Basis,
}

impl Line {
    /// What will be used when everything assigned has arrived; `None` if that cannot be said.
    #[must_use]
    pub fn expected(&self) -> Option<i64> {
        let known = self.basis != Basis::Nothing;
        let sum = || self.measured.unwrap_or(0).saturating_add(self.pending).saturating_sub(self.departed);
        known.then(|| sum().max(0))
    }

    /// The most that may be used; `None` if there is no line.
    #[must_use]
    pub fn limit(&self) -> Option<i64> {
        Some(self.target?.floor_of(self.allocatable?))
    }

    /// How much more may come; negative if the line is passed already, the largest number if there is no line.
    #[must_use]
    pub fn head(&self) -> i64 {
        match (self.limit(), self.expected()) {
            (Some(limit), Some(expected)) => limit.saturating_sub(expected),
            _ => i64::MAX,
        }
    }

    /// The smallest target, in hundredths, under which so much more would come aboard; `None` if even the whole
    /// node is too small or nothing is known.
    #[must_use]
    pub fn target_for(&self, incoming: i64) -> Option<Ratio> {
        let wanted = self.expected()?.saturating_add(incoming);
        let exact = Ratio::of(wanted, self.allocatable?)?;
        let step = Ratio::ONE.nano() / 100;
        let up = exact.nano().div_euclid(step) + i64::from(exact.nano().rem_euclid(step) != 0);
        Some(Ratio::from_nano(up * step)).filter(|r| *r <= Ratio::ONE)
    }
}

/// What to rest on when nothing is measured.
#[must_use]
pub fn without_data(missing: Missing) -> Basis {
    match missing {
        Missing::Estimate => Basis::Estimates,
        Missing::Allow | Missing::Deny => Basis::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::Load;

    fn line(measured: i64, pending: i64) -> Line {
        Line {
            measured: Some(measured),
            pending,
            departed: 0,
            allocatable: Some(3_910_000_000),
            target: Ratio::from_f64(0.65),
            basis: Basis::Measured,
        }
    }

    // A5, A6, A12: whole numbers, equality passes.
    #[test]
    fn the_line_is_exact_and_equality_passes() {
        let line = line(2_000_000_000, 300_000_000);
        assert_eq!(line.limit(), Some(2_541_500_000), "3910m × 0.65 = 2541.5m");
        assert_eq!(line.head(), 241_500_000, "2541.5m − 2000m − 300m");
        assert_eq!(
            line.target_for(241_500_001),
            Ratio::from_f64(0.66),
            "2541.500001 ÷ 3910 is just over 0.65"
        );
        assert_eq!(line.target_for(241_500_000), Ratio::from_f64(0.65));
        assert_eq!(line.target_for(2_000_000_000), None, "4300m does not fit into 3910m at all");
    }

    #[test]
    fn a_node_above_its_line_takes_nothing_not_even_a_pod_that_asks_nothing() {
        assert!(line(2_541_500_001, 0).head() < 0);
        assert_eq!(line(2_541_500_000, 0).head(), 0);
    }

    #[test]
    fn without_allocatable_or_target_there_is_no_line() {
        for (why, line) in [
            ("allocatable unknown", Line { allocatable: None, ..line(1, 1) }),
            ("no target", Line { target: None, ..line(1, 1) }),
            ("nothing known and not to be guessed", Line { basis: Basis::Nothing, ..line(1, 1) }),
        ] {
            assert_eq!(line.head(), i64::MAX, "{why}");
        }
    }

    // A7, promise 1: old and future data are not taken for new.
    #[test]
    fn a_sample_is_fresh_then_late_then_gone() {
        let at = Timestamp::from_second(1_000_000).unwrap();
        let sample = |window| Sample { at, window: SignedDuration::from_secs(window), usage: Load::ZERO };
        for (why, age, window, want) in [
            ("new", 0, 15, Some(Basis::Measured)),
            ("90 s, and 3 × 15 s is less", 90, 15, Some(Basis::Measured)),
            ("91 s", 91, 15, Some(Basis::Late)),
            ("3 × 60 s is longer than 90 s", 180, 60, Some(Basis::Measured)),
            ("181 s", 181, 60, Some(Basis::Late)),
            ("5 min", 300, 15, Some(Basis::Late)),
            ("over 5 min", 301, 15, None),
            ("a window of an hour does not make it fresh for three", 301, 3600, None),
            ("30 s ahead: clocks differ a little", -30, 15, Some(Basis::Measured)),
            ("31 s ahead: not believed", -31, 15, None),
        ] {
            let now = at + SignedDuration::from_secs(age);
            let (basis, until) = judge(&sample(window), now);
            assert_eq!(basis, want, "{why}");
            if let Some(until) = until {
                assert!(until > now, "{why}");
                assert_ne!(judge(&sample(window), until).0, basis, "{why}: it changes exactly then");
                assert_eq!(judge(&sample(window), until - SignedDuration::from_nanos(1)).0, basis, "{why}");
            }
        }
    }
}
