//! How good is a node? Scores one node can compute alone, and how all are weighed.

use super::decide::Input;
use crate::resources::Resource;
use crate::view::PodView;

/// How much each score weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Weights {
    /// The load score.
    pub load: i64,
    /// Least allocated.
    pub least: i64,
    /// Balanced allocation.
    pub balanced: i64,
    /// Few taints that discourage.
    pub taints: i64,
    /// Preferred node affinity.
    pub liking: i64,
    /// Preferred affinity between pods.
    pub affinity: i64,
    /// Soft topology spread.
    pub spread: i64,
    /// Images that are there already.
    pub images: i64,
}

impl Default for Weights {
    fn default() -> Self {
        Self { load: 3, least: 1, balanced: 1, taints: 3, liking: 2, affinity: 2, spread: 2, images: 1 }
    }
}

/// The scores of one node, 0 to 100 each; `None` where a score says nothing about any node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// The load score.
    pub load: Option<i64>,
    /// Least allocated.
    pub least: i64,
    /// Balanced allocation.
    pub balanced: Option<i64>,
    /// Few taints that discourage.
    pub taints: Option<i64>,
    /// Preferred node affinity.
    pub liking: Option<i64>,
    /// Preferred affinity between pods.
    pub affinity: Option<i64>,
    /// Soft topology spread.
    pub spread: Option<i64>,
    /// Images that are there already.
    pub images: Option<i64>,
}

impl Parts {
    fn weighed(&self, w: &Weights) -> [(Option<i64>, i64); 8] {
        [
            (self.load, w.load),
            (Some(self.least), w.least),
            (self.balanced, w.balanced),
            (self.taints, w.taints),
            (self.liking, w.liking),
            (self.affinity, w.affinity),
            (self.spread, w.spread),
            (self.images, w.images),
        ]
    }

    /// The weighted sum: what nodes are compared by.
    #[must_use]
    pub fn total(&self, weights: &Weights) -> i64 {
        self.weighed(weights).iter().map(|(part, weight)| part.unwrap_or(0) * weight).sum()
    }

    /// How much those scores weigh together that say something.
    #[must_use]
    pub fn weight(&self, weights: &Weights) -> i64 {
        self.weighed(weights).iter().filter(|(part, _)| part.is_some()).map(|(_, weight)| weight).sum()
    }

    /// The weighted mean of the scores that say something, 0 to 100: the total in a unit people can read.
    #[must_use]
    pub fn mean(&self, weights: &Weights) -> i64 {
        let of = self.weight(weights);
        if of == 0 { 0 } else { self.total(weights) / of }
    }
}

/// 100 × free ÷ allocatable after the pod came, the mean of CPU and memory, each cut to a whole number. Pods
/// that ask for nothing count a little.
pub(super) fn least(input: &Input<'_>, pod: &PodView, node: usize) -> i64 {
    let columns = input.cluster.columns();
    let asked = [pod.nonzero.cpu_milli, pod.nonzero.memory_bytes];
    let (mut sum, mut of) = (0, 0);
    for ((allocatable, taken), asked) in columns.allocatable.iter().zip(&columns.nonzero).zip(asked) {
        let (allocatable, taken) = (allocatable[node], taken[node].saturating_add(asked));
        if allocatable > 0 {
            of += 1;
            sum += if taken > allocatable { 0 } else { share(allocatable - taken, allocatable) };
        }
    }
    if of == 0 { 0 } else { sum / of }
}

/// `100 × part ÷ whole`, cut, for `0 ≤ part ≤ whole`.
fn share(part: i64, whole: i64) -> i64 {
    match part.checked_mul(100) {
        Some(scaled) => scaled / whole,
        None => i64::try_from(i128::from(part) * 100 / i128::from(whole)).unwrap_or(100),
    }
}

/// How much nearer to each other the used shares of CPU and memory come: 75 is no change, 100 the most, 50 the
/// least. `None` for pods that ask for neither.
pub(super) fn balanced(input: &Input<'_>, pod: &PodView, node: usize) -> Option<i64> {
    let asked = [Resource::CPU, Resource::MEMORY].map(|r| pod.requests.get(r));
    if asked == [0, 0] {
        return None;
    }
    let columns = input.cluster.columns();
    let part = |i: usize, more: i64| {
        let allocatable = columns.allocatable[i][node];
        let taken = allocatable.saturating_sub(columns.free[i][node]).saturating_add(more);
        (allocatable != 0).then(|| fraction(taken, allocatable))
    };
    let even = |more: [i64; 2]| {
        // With fewer than two resources nothing can be uneven.
        let off = match (part(0, more[0]), part(1, more[1])) {
            (Some(cpu), Some(memory)) => ((cpu - memory) / 2.0).abs(),
            _ => 0.0,
        };
        percent(1.0 - off)
    };
    Some(50 + (50 + even(asked) - even([0, 0])) / 2)
}

#[expect(clippy::cast_precision_loss, reason = "kube-scheduler compares the same floats")]
fn fraction(taken: i64, of: i64) -> f64 {
    (taken as f64 / of as f64).min(1.0)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the share is at most one; cutting is what kube-scheduler does"
)]
fn percent(share: f64) -> i64 {
    (share * 100.0) as i64
}
