//! How idle is the node? 100 is idle, 0 is full, and recent bindings cost ten points each.
//!
//! ```text
//! base  = 100 × Σ (1 − value) × weight / Σ weight      over the metrics that are known
//! final = base − 10 × hot value, held within 0..100    base cut toward zero, before the penalty
//! ```
//!
//! By default in exact decimals: 0.8 everywhere is 20. With no metric known the base is [`NEUTRAL`]: neither the
//! best nor the worst place to go. A policy without weights scores 0.
//!
//! Upstream mode repeats crane: binary floats in policy order (0.8 everywhere is 19), a missing metric counts as
//! fully loaded, and where the sum is not a number the conversion to a whole one does what amd64 does: the least
//! there is, from which any penalty wraps around to the best. Crane on other processors differs there.

use super::policy::{Figure, Rules};
use super::ratio::Ratio;
use super::settings::Mode;
use super::term::Terms;
use serde::{Serialize, Serializer};
use std::fmt;

/// The base score of a node of which nothing is known.
pub const NEUTRAL: i64 = 50;

/// The best score.
pub const BEST: i64 = 100;

/// What one unit of hot value costs.
pub const HOT_COST: i64 = 10;

/// How hot a node is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Hot {
    /// Counted, by [`super::hot`] or by who wrote a whole number.
    Count(i64),
    /// Written, and not a whole number.
    Fraction(Ratio),
    /// As an annotation has it in upstream mode, where it may be any float.
    Float(f64),
}

impl Hot {
    /// From what is written.
    #[must_use]
    pub fn exact(ratio: Ratio) -> Self {
        let one = Ratio::ONE.nano();
        if ratio.nano() % one == 0 { Self::Count(ratio.nano() / one) } else { Self::Fraction(ratio) }
    }

    /// With so many more.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a few bindings")]
    pub fn plus(self, count: i64) -> Self {
        match self {
            _ if count == 0 => self,
            Self::Count(before) => Self::Count(before.saturating_add(count)),
            Self::Fraction(before) => {
                let more = count.saturating_mul(Ratio::ONE.nano());
                Self::exact(Ratio::from_nano(before.nano().saturating_add(more)))
            }
            Self::Float(before) => Self::Float(before + count as f64),
        }
    }

    /// What it takes off the score: ten times as much, cut to a whole number.
    fn penalty(self) -> i64 {
        match self {
            Self::Count(count) => count.saturating_mul(HOT_COST),
            Self::Fraction(ratio) => {
                let exact = i128::from(ratio.nano()) * i128::from(HOT_COST) / i128::from(Ratio::ONE.nano());
                i64::try_from(exact).unwrap_or(i64::MAX)
            }
            Self::Float(float) => trunc(float * 10.0),
        }
    }
}

/// As people read it: `3`, `2.55`, `+Inf`.
impl fmt::Display for Hot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Count(count) => count.fmt(f),
            Self::Fraction(ratio) => ratio.fmt(f),
            Self::Float(float) => Figure::Float(float).fmt(f),
        }
    }
}

/// As a number, a whole one where it is; `null` for what JSON has no number for.
impl Serialize for Hot {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match *self {
            Self::Count(count) => count.serialize(to),
            Self::Fraction(ratio) => ratio.serialize(to),
            Self::Float(float) if float.fract() == 0.0 && float.abs() < 1e15 => trunc(float).serialize(to),
            Self::Float(float) => Figure::Float(float).serialize(to),
        }
    }
}

/// A score and its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadScore {
    /// From the metrics; negative where load is far above the whole.
    pub base: i64,
    /// Taken off for recent bindings.
    pub hot_penalty: i64,
    /// The rest, 0 to 100.
    pub r#final: i64,
}

/// Scores a node.
#[must_use]
pub fn score(rules: &Rules, terms: &Terms, hot: Hot) -> LoadScore {
    match rules.mode() {
        Mode::Default => {
            let (base, hot_penalty) = (exact(rules, terms), hot.penalty());
            LoadScore { base, hot_penalty, r#final: base.saturating_sub(hot_penalty).clamp(0, BEST) }
        }
        Mode::Upstream => {
            // A count is far below where floats end being exact, so counting in either is the same.
            let (base, hot_penalty) = (upstream(rules, terms), hot.penalty());
            LoadScore { base, hot_penalty, r#final: base.wrapping_sub(hot_penalty).clamp(0, BEST) }
        }
    }
}

fn exact(rules: &Rules, terms: &Terms) -> i64 {
    if rules.priorities().is_empty() {
        return 0;
    }
    // In billionths of billionths. Weights are at most a million (10^15 billionths) and values below 2^63, so a
    // hundred times their product is below 2^120, and sums hold at the end.
    let (mut sum, mut weights) = (0_i128, 0_i128);
    for priority in rules.priorities() {
        let value = terms.terms.get(priority.metric).and_then(|term| term.value).and_then(Figure::ratio);
        let (Some(value), Some(weight)) = (value, priority.figure.ratio()) else { continue };
        let weight = i128::from(weight.nano());
        let idle = i128::from(Ratio::ONE.nano()) - i128::from(value.nano());
        sum = sum.saturating_add(idle.saturating_mul(weight).saturating_mul(i128::from(BEST)));
        weights += weight;
    }
    if weights == 0 {
        return NEUTRAL;
    }
    let base = sum / weights / i128::from(Ratio::ONE.nano());
    i64::try_from(base).unwrap_or(if base < 0 { i64::MIN } else { i64::MAX })
}

fn upstream(rules: &Rules, terms: &Terms) -> i64 {
    if rules.priorities().is_empty() {
        return 0;
    }
    let (mut sum, mut weights) = (0.0_f64, 0.0_f64);
    for priority in rules.priorities() {
        let weight = priority.figure.to_f64();
        let value = terms.terms.get(priority.metric).and_then(|term| term.value);
        sum += value.map_or(0.0, |value| (1.0 - value.to_f64()) * weight * 100.0);
        weights += weight;
    }
    trunc(sum / weights)
}

/// From float to whole number as amd64 does it: cut toward zero, and the least there is for what does not fit.
fn trunc(float: f64) -> i64 {
    const END: f64 = 9_223_372_036_854_775_808.0;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be in range; cutting is what is asked")]
    if (-END..END).contains(&float) { float as i64 } else { i64::MIN }
}

#[cfg(test)]
mod tests;
