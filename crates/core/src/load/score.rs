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
use serde::Serialize;

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
    /// As an annotation has it in upstream mode, where it may be any float.
    Written(f64),
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
            let base = exact(rules, terms);
            let hot_penalty = match hot {
                Hot::Count(count) => count.saturating_mul(HOT_COST),
                Hot::Written(float) => trunc(float * 10.0),
            };
            LoadScore { base, hot_penalty, r#final: base.saturating_sub(hot_penalty).clamp(0, BEST) }
        }
        Mode::Upstream => {
            let base = upstream(rules, terms);
            #[expect(clippy::cast_precision_loss, reason = "crane keeps the hot value as a float")]
            let hot = match hot {
                Hot::Count(count) => count as f64,
                Hot::Written(float) => float,
            };
            let hot_penalty = trunc(hot * 10.0);
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
