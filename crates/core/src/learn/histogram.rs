//! What was used how much of the time? A histogram in which older samples count less.
//!
//! A bucket goes from the edge before, exclusive, to its own, inclusive. The first edge is 0.01 core or 10 MiB,
//! and each is 1.05 times the one before, rounded up: 256 edges, so that a byte says which, reach 2 500 cores
//! and 2.4 TiB. A percentile is told as an edge: above the first it overstates by less than 5 %, and it
//! understates only what is beyond the last.
//!
//! A sample at time t weighs `weight × 2^((t − reference) ÷ half-life)`: as time passes new ones weigh more and
//! no old one has to be touched. When a weight would no longer fit, the reference moves on by a half-life and
//! all weights halve; what reaches nothing is dropped. Heavy buckets are thus always near 2³², whatever the
//! number of pods, and a sample of seconds still counts beside a week of thousands.

use super::decay::HalfLives;
use crate::load::ratio::Ratio;

/// The largest weight of a sample: 37 hours in milliseconds.
const HEAVIEST: u32 = 1 << 27;

/// How many half-lives a sample may be after the reference, so that the heaviest fits: 2^27 × 2 × 2^3.
const AHEAD: i64 = 3;

/// Where the buckets of a resource end.
#[derive(Debug)]
pub(super) struct Scale([i64; 256]);

impl Scale {
    /// In billionths of a core.
    pub(super) const CPU: &Self = &Self::from(10_000_000);
    /// In bytes.
    pub(super) const MEMORY: &Self = &Self::from(10 << 20);

    const fn from(first: i64) -> Self {
        let mut edges = [first; 256];
        let mut i = 1;
        while i < edges.len() {
            edges[i] = (edges[i - 1] * 21 + 19) / 20;
            i += 1;
        }
        Self(edges)
    }

    /// The bucket an amount falls in.
    pub(super) fn bucket(&self, amount: i64) -> u8 {
        u8::try_from(self.0.partition_point(|edge| *edge < amount)).unwrap_or(u8::MAX)
    }

    /// Where that bucket ends.
    pub(super) fn edge(&self, bucket: u8) -> i64 {
        self.0[usize::from(bucket)]
    }
}

/// A bucket that has weight. Five bytes: most of what is known of a workload is these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bin {
    bucket: u8,
    weight: [u8; 4],
}

impl Bin {
    fn new(bucket: u8, weight: u32) -> Self {
        Self { bucket, weight: weight.to_ne_bytes() }
    }

    fn weight(self) -> u32 {
        u32::from_ne_bytes(self.weight)
    }
}

/// How much weight is in which bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Histogram {
    /// When a sample weighs just its weight, in milliseconds since 1970.
    reference: i64,
    /// By bucket; none is without weight.
    bins: Vec<Bin>,
}

impl Histogram {
    /// From its parts, by ascending bucket; `None` if they are not.
    pub(super) fn from_parts(reference: i64, weights: &[(u8, u32)]) -> Option<Self> {
        let sorted = weights.is_sorted_by(|a, b| a.0 < b.0);
        let weighed = weights.iter().all(|(_, weight)| *weight > 0);
        let bins = weights.iter().map(|(bucket, weight)| Bin::new(*bucket, *weight)).collect();
        (sorted && weighed).then_some(Self { reference, bins })
    }

    pub(super) fn reference(&self) -> i64 {
        self.reference
    }

    /// The buckets that have weight, ascending.
    pub(super) fn weights(&self) -> impl ExactSizeIterator<Item = (u8, u32)> {
        self.bins.iter().map(|bin| (bin.bucket, bin.weight()))
    }

    /// Adds weight to a bucket, as of a moment; in milliseconds.
    pub(super) fn add(&mut self, bucket: u8, weight: u32, at: i64, half_life: i64) {
        if self.bins.is_empty() {
            self.reference = at;
        }
        let lives = HalfLives::of(at.saturating_sub(self.reference), half_life);
        let too_far = lives.whole.saturating_sub(AHEAD).max(0);
        self.rebase(too_far, half_life);
        let grown = lives.grown(weight.clamp(1, HEAVIEST));
        let whole = lives.whole - too_far;
        let shift = u32::try_from(whole.unsigned_abs()).unwrap_or(u32::MAX);
        let amount = if whole < 0 { grown.checked_shr(shift) } else { grown.checked_shl(shift) };
        let mut amount = u32::try_from(amount.unwrap_or(0)).unwrap_or(u32::MAX).max(1);
        if self.weight(bucket).checked_add(amount).is_none() {
            self.rebase(1, half_life);
            amount /= 2;
        }
        match self.place(bucket) {
            Ok(i) => self.bins[i] = Bin::new(bucket, self.bins[i].weight().saturating_add(amount)),
            Err(i) => {
                if self.bins.len() == self.bins.capacity() {
                    self.bins.reserve_exact(8);
                }
                self.bins.insert(i, Bin::new(bucket, amount));
            }
        }
    }

    /// Moves the reference on by so many half-lives.
    fn rebase(&mut self, by: i64, half_life: i64) {
        if by == 0 {
            return;
        }
        self.reference = self.reference.saturating_add(half_life.saturating_mul(by));
        let by = u32::try_from(by).unwrap_or(u32::MAX);
        for bin in &mut self.bins {
            *bin = Bin::new(bin.bucket, bin.weight().checked_shr(by).unwrap_or(0));
        }
        self.bins.retain(|bin| bin.weight() > 0);
    }

    fn place(&self, bucket: u8) -> Result<usize, usize> {
        self.bins.binary_search_by_key(&bucket, |bin| bin.bucket)
    }

    fn weight(&self, bucket: u8) -> u32 {
        self.place(bucket).map_or(0, |i| self.bins[i].weight())
    }

    /// The first bucket at which the running weight reaches that share of all; `None` if there is none.
    pub(super) fn percentile(&self, share: Ratio) -> Option<u8> {
        let whole = u128::from(Ratio::ONE.nano().unsigned_abs());
        let share = u128::from(share.nano().max(0).unsigned_abs()).min(whole);
        let total: u64 = self.weights().map(|(_, weight)| u64::from(weight)).sum();
        let mut running = 0_u64;
        self.weights().find_map(|(bucket, weight)| {
            running += u64::from(weight);
            (u128::from(running) * whole >= u128::from(total) * share).then_some(bucket)
        })
    }

    /// Allocated bytes, itself not included.
    pub(super) fn heap(&self) -> usize {
        self.bins.capacity() * size_of::<Bin>()
    }
}

#[cfg(test)]
mod tests;
