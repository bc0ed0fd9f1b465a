//! What is known of who uses what? Everything here was measured: nothing of the step that is being decided, or later.

use crate::books::Books;
use crate::world::World;
use crate::{DAY, HOUR};

/// Buckets of a histogram per doubling.
const FINE: f64 = 12.0;
/// Enough for a million cores.
const BUCKETS: usize = 365;
/// A pod that was measured for less is known by its siblings, if at all.
pub const YOUNG: usize = HOUR;

/// How a quantity varied.
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    pub count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    pub fn add(&mut self, value: f64) {
        self.count += 1.0;
        self.sum += value;
        self.squares += value * value;
    }

    pub fn mean(&self) -> f64 {
        self.sum / self.count.max(1.0)
    }

    pub fn variance(&self) -> f64 {
        (self.squares / self.count.max(1.0) - self.mean() * self.mean()).max(0.0)
    }

    pub fn deviation(&self) -> f64 {
        self.variance().sqrt()
    }
}

/// One workload, by all its pods.
#[derive(Clone, Debug)]
pub struct Known {
    pub all: Moments,
    /// By the hour of the day.
    pub hours: [Moments; 24],
    /// The largest five-minute mean of a pod, by the hour of the day; and of which day that is.
    pub peaks: [f64; 24],
    seen: [usize; 24],
    histogram: Vec<u32>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            all: Moments::default(),
            hours: [Moments::default(); 24],
            peaks: [0.0; 24],
            seen: [usize::MAX; 24],
            histogram: vec![0; BUCKETS],
        }
    }
}

fn bucket(milli: f64) -> usize {
    (((milli + 1.0).log2() * FINE).ceil() as usize).min(BUCKETS - 1)
}

impl Known {
    fn add(&mut self, milli: f64, step: usize) {
        let (hour, day) = (step / HOUR % 24, step / DAY);
        self.all.add(milli);
        self.hours[hour].add(milli);
        self.histogram[bucket(milli)] += 1;
        // A new day halves what the day before had: it may have been an exception.
        if self.seen[hour] == usize::MAX {
            self.peaks[hour] = milli;
        } else if self.seen[hour] < day {
            self.peaks[hour] = milli.max(self.peaks[hour] / 2.0);
        } else {
            self.peaks[hour] = milli.max(self.peaks[hour]);
        }
        self.seen[hour] = day;
    }

    /// So much suffices for that share of the time; nothing if nothing is known.
    pub fn percentile(&self, share: f64) -> Option<f64> {
        let all: u32 = self.histogram.iter().sum();
        let mut left = share * f64::from(all);
        for (bucket, count) in self.histogram.iter().enumerate() {
            left -= f64::from(*count);
            if *count > 0 && left <= 0.0 {
                return Some((bucket as f64 / FINE).exp2() - 1.0);
            }
        }
        None
    }

    /// The peak of an hour that was seen.
    pub fn seen_peak(&self, hour: usize) -> Option<f64> {
        (self.seen[hour] != usize::MAX).then(|| self.peaks[hour])
    }

    /// The peak of an hour; of hours nobody has seen, the largest of all.
    pub fn peak(&self, hour: usize) -> Option<f64> {
        let known = |hour: &usize| self.seen[*hour] != usize::MAX;
        if known(&hour) {
            return Some(self.peaks[hour]);
        }
        (0..24).filter(known).map(|hour| self.peaks[hour]).max_by(f64::total_cmp)
    }
}

/// Everything that was measured of pods.
#[derive(Clone, Debug)]
pub struct Usage {
    pub workloads: Vec<Known>,
    /// What a pod uses 95 and 99 % of its time or less, looked at every hour.
    own: Vec<[f64; 2]>,
    since: Vec<usize>,
}

impl Usage {
    pub fn new(world: &World) -> Self {
        Self {
            workloads: vec![Known::default(); world.workloads.len()],
            own: vec![[0.0; 2]; world.pods.len()],
            since: vec![usize::MAX; world.pods.len()],
        }
    }

    /// A pod started.
    pub fn started(&mut self, pod: usize, step: usize) {
        self.since[pod] = self.since[pod].min(step);
    }

    /// Takes what pods used in the step before this.
    pub fn measure(&mut self, world: &World, books: &Books, step: usize) {
        let Some(before) = step.checked_sub(1) else { return };
        for pod in books.on.iter().flatten().copied() {
            let known = &mut self.workloads[world.pods[pod].workload];
            known.add(world.usage(pod, before) as f64, before);
            let age = step.saturating_sub(self.since[pod]);
            if age > 0 && age.is_multiple_of(HOUR) {
                let from = self.since[pod].max(step.saturating_sub(DAY));
                let mut samples: Vec<i64> = (from..step).map(|step| world.usage(pod, step)).collect();
                for (kept, share) in self.own[pod].iter_mut().zip([0.95, 0.99]) {
                    *kept = crate::figures::percentile(&mut samples, share).unwrap_or(0) as f64;
                }
            }
        }
    }

    fn is_young(&self, pod: usize, step: usize) -> bool {
        step.saturating_sub(self.since[pod].min(step)) < YOUNG
    }

    /// What a pod uses 99 % of its time, if it is not too young to tell.
    pub fn own_p99(&self, pod: usize, step: usize) -> Option<f64> {
        (!self.is_young(pod, step)).then(|| self.own[pod][1])
    }

    /// What a pod uses 95 % of its time: its own past, else that of its siblings, else what it asks for.
    pub fn p95(&self, world: &World, pod: usize, step: usize) -> f64 {
        let one = &world.pods[pod];
        if !self.is_young(pod, step) {
            return self.own[pod][0];
        }
        self.workloads[one.workload].percentile(0.95).unwrap_or(one.request_milli as f64)
    }
}
