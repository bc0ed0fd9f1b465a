//! Is a summary worth a write? For the first time, for a change that matters, or to renew what would expire.

use super::Rules;
use super::summary::{Summary, Taken};
use crate::load::ratio::Ratio;
use jiff::Timestamp;

/// Why a summary is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// Nothing was told yet, as far as is known.
    First,
    /// Enough of it is different.
    Changed,
    /// What was told has used up half of its time.
    Renewal,
}

impl Due {
    /// In one word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::Changed => "changed",
            Self::Renewal => "renewal",
        }
    }
}

/// Should this summary be told now, when that one was told last? Not if it has expired itself: that would pretend.
#[must_use]
pub fn due(told: Option<&Summary>, new: &Summary, now: Timestamp, rules: &Rules) -> Option<Due> {
    if new.valid_until(rules.validity) <= now {
        return None;
    }
    let Some(told) = told else { return Some(Due::First) };
    if is_change(told, new, rules.min_change) {
        return Some(Due::Changed);
    }
    let halfway = told.valid_until(rules.validity - rules.recent());
    (halfway <= now && new.at > told.at).then_some(Due::Renewal)
}

/// Does anything differ by that share of the whole, or is something known that was not, or the other way round? What was
/// told is compared, so that a slow drift adds up until it counts.
fn is_change(told: &Summary, new: &Summary, least: Ratio) -> bool {
    told.resources.len() != new.resources.len()
        || new.resources.iter().any(|(name, new)| {
            told.resources.get(name).is_none_or(|told| {
                told != new
                    && (told.measured.is_some() != new.measured.is_some()
                        || differ(
                            (told.allocatable, told.allocatable),
                            (new.allocatable, told.allocatable),
                            least,
                        )
                        || differ(share(told, told.requested), share(new, new.requested), least)
                        || told
                            .measured
                            .zip(new.measured)
                            .is_some_and(|(before, now)| differ(share(told, before), share(new, now), least)))
            })
        })
}

/// A part of a whole.
type Share = (i64, i64);

fn share(of: &Taken, part: i64) -> Share {
    (part, of.allocatable)
}

/// Are two shares different, and by that much? a ÷ b − c ÷ d ≥ least, without dividing.
fn differ((a, b): Share, (c, d): Share, least: Ratio) -> bool {
    let [a, b, c, d] = [a, b, c, d].map(i128::from);
    let apart = (a * d).abs_diff(c * b);
    let one = u128::from(Ratio::ONE.nano().unsigned_abs());
    let least = u128::from(least.nano().unsigned_abs());
    apart > 0 && apart.saturating_mul(one) >= (b * d).unsigned_abs().saturating_mul(least)
}
