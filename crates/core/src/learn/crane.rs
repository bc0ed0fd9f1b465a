//! What would crane recommend? The arithmetic of craned's resource recommender, float by float.
//!
//! Buckets of 0.1 core and 100 MiB; each sample weighs as much as it is, so high ones count more; nothing decays, and
//! what is older than seven days is out. The percentile is the upper edge of its bucket, of the last one the lower;
//! then the margin is put on top and the target utilisation divided by, and fractions of a millicore or of a byte are
//! cut off. The smallest answers are therefore 114m, not 115m, and 120586239 bytes, because 0.1 × 1.15 is a little less than
//! 0.115 in floats.
//!
//! Samples are kept per day, so what is up to a day older than seven days may still count.

use super::facts::CraneRule;

/// In milliseconds.
const DAY: i64 = 86_400_000;
const DAYS: i64 = 7;
/// The open-ended bucket: 100 cores, or 1000 times 100 MiB, and more.
const LAST: u16 = 1000;
/// What a sample weighs at least.
const LIGHTEST: f64 = 1e-5;

/// How wide the buckets are: cores, bytes.
pub(super) const CPU: f64 = 0.1;
pub(super) const MEMORY: f64 = 104_857_600.0;

/// What was used on one day.
#[derive(Clone, Debug, Default, PartialEq)]
struct LinearDay {
    /// Since 1970.
    day: i64,
    /// Weight by bucket, ascending.
    bins: Vec<(u16, f64)>,
}

/// What was used on the last days, ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Linear(Vec<LinearDay>);

impl Linear {
    /// From its parts, by ascending day and bucket; `None` if they are not, or a weight is none.
    pub(super) fn from_parts(days: Vec<(i64, Vec<(u16, f64)>)>) -> Option<Self> {
        let sorted = days.is_sorted_by(|a, b| a.0 < b.0);
        let fine = |bins: &[(u16, f64)]| {
            bins.is_sorted_by(|a, b| a.0 < b.0)
                && bins.iter().all(|(bucket, weight)| *bucket <= LAST && weight.is_finite() && *weight > 0.0)
        };
        let fine = days.iter().all(|(_, bins)| fine(bins));
        (sorted && fine).then(|| Self(days.into_iter().map(|(day, bins)| LinearDay { day, bins }).collect()))
    }

    pub(super) fn days(&self) -> impl ExactSizeIterator<Item = (i64, &[(u16, f64)])> {
        self.0.iter().map(|held| (held.day, &*held.bins))
    }

    /// Adds a sample, in the unit of the buckets' size.
    pub(super) fn add(&mut self, value: f64, size: f64, at: i64) {
        let day = at.div_euclid(DAY);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "cut as crane does, and held"
        )]
        let bucket = ((value / size) as u16).min(LAST);
        let weight = value.max(LIGHTEST);
        let held = match self.0.binary_search_by_key(&day, |held| held.day) {
            Ok(i) => &mut self.0[i],
            Err(i) => {
                self.0.insert(i, LinearDay { day, bins: Vec::new() });
                &mut self.0[i]
            }
        };
        match held.bins.binary_search_by_key(&bucket, |bin| bin.0) {
            Ok(i) => held.bins[i].1 += weight,
            Err(i) => held.bins.insert(i, (bucket, weight)),
        }
        let newest = self.0.last().map_or(day, |held| held.day);
        self.0.retain(|held| held.day >= newest.saturating_sub(DAYS));
    }

    /// What crane would recommend at that moment, in the unit of the buckets' size, not cut off yet.
    pub(super) fn target(&self, size: f64, rule: CraneRule, now: i64) -> Option<f64> {
        let first = now.div_euclid(DAY).saturating_sub(DAYS);
        let mut bins: Vec<(u16, f64)> = self
            .0
            .iter()
            .filter(|held| held.day >= first)
            .flat_map(|held| held.bins.iter().copied())
            .collect();
        bins.sort_by_key(|bin| bin.0);
        let threshold = rule.percentile * bins.iter().map(|bin| bin.1).sum::<f64>();
        let mut running = 0.0;
        let reached = bins.iter().find(|bin| {
            running += bin.1;
            running >= threshold
        });
        // Rounding may leave the sum a hair short of itself.
        let bucket = reached.or(bins.last())?.0;
        let edge = f64::from(if bucket < LAST { bucket + 1 } else { LAST }) * size;
        Some(edge * (1.0 + rule.margin) / rule.utilisation)
    }

    /// Allocated bytes, itself not included.
    pub(super) fn heap(&self) -> usize {
        let days = self.0.iter().map(|held| held.bins.capacity() * size_of::<(u16, f64)>());
        self.0.capacity() * size_of::<LinearDay>() + days.sum::<usize>()
    }
}

/// Whole millicores, the rest cut off, in billionths of a core.
#[expect(clippy::cast_possible_truncation, reason = "cut as crane does, and held within i64")]
pub(super) fn nanocores(cores: f64) -> i64 {
    ((cores * 1000.0) as i64).saturating_mul(1_000_000)
}

/// Whole bytes, the rest cut off.
#[expect(clippy::cast_possible_truncation, reason = "cut as crane does, and held within i64")]
pub(super) fn bytes(bytes: f64) -> i64 {
    bytes as i64
}

#[cfg(test)]
mod tests;
