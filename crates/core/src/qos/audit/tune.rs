//! How much more than the gap is to be taken, by what earlier acts taught?
//!
//! ```text
//! mean   = shortfalls, each newer one counting for a quarter of what all before it and itself count
//! wanted = mean / (1 − mean)              between 0 and 0.5: taking (1 + wanted) times the gap closes it
//! excess = excess + (wanted − excess) / 8, by at most 0.02
//! ```
//!
//! all in billionths. If a quarter of what was predicted is missing every time, a third more has to be asked for: from 0.1 the excess goes
//! to 0.12, as (0.333 − 0.1) / 8 = 0.029 is more than one step may be.

/// A whole, in billionths.
const WHOLE: i64 = 1_000_000_000;
/// The most that is ever asked for beyond the gap, in billionths.
pub const LIMIT: i64 = WHOLE / 2;
/// The most it moves at once.
const STEP: i64 = WHOLE / 50;
/// The mean goes that part of the way to a newer shortfall.
const NEWER: i64 = 4;
/// The excess goes that part of the way to what is wanted.
const SLOWLY: i64 = 8;

/// The next excess after these shortfalls, the oldest first, all in billionths. To be asked once for each time acts were closed, with the
/// last of them. Without any it stays as it is.
#[must_use]
pub fn tuned(excess: i64, shortfalls: &[i64]) -> i64 {
    let Some(mean) = mean(shortfalls) else { return excess };
    let step = wanted(mean).saturating_sub(excess) / SLOWLY;
    excess.saturating_add(step.clamp(-STEP, STEP))
}

fn mean(shortfalls: &[i64]) -> Option<i64> {
    // Ten times what was predicted, or the opposite of it, says no more than all and nothing.
    let mut all = shortfalls.iter().map(|shortfall| shortfall.clamp(&-WHOLE, &WHOLE));
    let first = *all.next()?;
    Some(all.fold(first, |mean, newer| mean + (newer - mean) / NEWER))
}

fn wanted(mean: i64) -> i64 {
    // From a third on, half as much more is not enough.
    if mean >= WHOLE / 3 {
        return LIMIT;
    }
    let exact = i128::from(mean.max(0)) * i128::from(WHOLE) / i128::from(WHOLE - mean);
    i64::try_from(exact).map_or(LIMIT, |exact| exact.min(LIMIT))
}
