//! By what the pods that are there are known to use: their own past, else that of their siblings, else what they ask for.

use super::{Forecast, Now};
use loadline_core::load::Load;
use loadline_core::load::need::{Day, Needs};
use rustc_hash::FxHashMap;

/// A thousandth of a core, in billionths.
const MILLI: i64 = 1_000_000;

/// The sum of what each uses 95 % of its time.
#[derive(Debug, Default)]
pub struct Percentiles {
    need: Vec<f64>,
}

impl Forecast for Percentiles {
    fn look(&mut self, now: &Now<'_>) {
        let need = |pod: &usize| now.usage.p95(now.world, *pod, now.step);
        self.need = now.books.on.iter().map(|pods| pods.iter().map(need).sum()).collect();
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        self.need[node] + now.usage.p95(now.world, pod, now.step)
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.need[node] += now.usage.p95(now.world, pod, now.step);
    }
}

/// What a pod is expected to use in an hour of the day, in thousandths of a core.
#[derive(Clone, Copy, Debug, Default)]
struct Hour {
    mean: f64,
    /// How far its largest five-minute mean is above that.
    burst: f64,
}

impl Hour {
    fn peak(self) -> f64 {
        self.mean + self.burst
    }
}

/// By the hour of the day. Of newcomers nothing is known but what they ask for; in hours nobody has seen, a workload is taken to
/// be as it is in all others, and to reach its largest peak.
fn day(now: &Now<'_>, pod: usize) -> [Hour; 24] {
    let known = &now.usage.workloads[now.world.pods[pod].workload];
    std::array::from_fn(|hour| match known.peak(hour) {
        None => Hour { mean: now.request(pod), burst: 0.0 },
        Some(peak) => {
            let seen = &known.hours[hour];
            let mean = if seen.count > 0.0 { seen.mean() } else { known.all.mean() };
            Hour { mean, burst: (peak - mean).max(0.0) }
        }
    })
}

/// The same in the unit of production.
fn whole(milli: &[f64; 24]) -> Option<Day> {
    Day::new(milli.iter().map(|milli| (milli * MILLI as f64) as i64).enumerate())
}

/// How sums of hours are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Worst {
    /// By the largest hour.
    #[default]
    Peak,
    /// By how much the fourth powers of all hours grow, as in [`loadline_core::load::need`].
    Growth,
}

/// The summed day: what each uses at most in each hour of the day, added up hour by hour.
#[derive(Debug, Default)]
pub struct Days {
    pub worst: Worst,
    need: Vec<[f64; 24]>,
    coming: [Hour; 24],
}

impl Days {
    pub fn new(worst: Worst) -> Self {
        Self { worst, ..Self::default() }
    }

    fn add(need: &mut [f64; 24], day: &[Hour; 24]) {
        need.iter_mut().zip(day).for_each(|(need, more)| *need += more.peak());
    }
}

impl Forecast for Days {
    fn look(&mut self, now: &Now<'_>) {
        self.need = vec![[0.0; 24]; now.world.nodes.len()];
        for (need, pods) in self.need.iter_mut().zip(&now.books.on) {
            for pod in pods {
                Self::add(need, &day(now, *pod));
            }
        }
    }

    fn ask(&mut self, now: &Now<'_>, pod: usize) {
        self.coming = day(now, pod);
    }

    fn with(&self, now: &Now<'_>, node: usize, _: usize) -> f64 {
        let hours = self.need[node].iter().zip(&self.coming).map(|(need, more)| (*need, need + more.peak()));
        match self.worst {
            Worst::Peak => hours.map(|(_, after)| after).fold(0.0, f64::max),
            Worst::Growth => {
                let capacity = now.world.nodes[node].max(1);
                let mut needs = Needs::default();
                needs.add(whole(&self.need[node]).as_ref(), Load::ZERO);
                let coming = whole(&self.coming.map(Hour::peak)).unwrap_or(Day::flat(0));
                capacity as f64 * needs.grown(&coming, capacity * MILLI)
            }
        }
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        Self::add(&mut self.need[node], &day(now, pod));
    }
}

/// The summed day, where bursts of different workloads do not come together and those of replicas do:
///
/// ```text
/// need of an hour = Σ mean + √ Σ over workloads (Σ over its replicas burst)²        the largest of the 24
/// ```
#[derive(Debug, Default)]
pub struct Bursts {
    mean: Vec<[f64; 24]>,
    squares: Vec<[f64; 24]>,
    /// By node and workload: the bursts of its replicas there, added up.
    sums: Vec<FxHashMap<usize, [f64; 24]>>,
    coming: [Hour; 24],
}

impl Bursts {
    fn add(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        let sums = self.sums[node].entry(now.world.pods[pod].workload).or_default();
        for (hour, (sum, more)) in sums.iter_mut().zip(day(now, pod)).enumerate() {
            self.mean[node][hour] += more.mean;
            self.squares[node][hour] += (*sum + more.burst).powi(2) - sum.powi(2);
            *sum += more.burst;
        }
    }
}

impl Forecast for Bursts {
    fn look(&mut self, now: &Now<'_>) {
        let nodes = now.world.nodes.len();
        (self.mean, self.squares) = (vec![[0.0; 24]; nodes], vec![[0.0; 24]; nodes]);
        self.sums = vec![FxHashMap::default(); nodes];
        for (node, pods) in now.books.on.iter().enumerate() {
            for pod in pods {
                self.add(now, node, *pod);
            }
        }
    }

    fn ask(&mut self, now: &Now<'_>, pod: usize) {
        self.coming = day(now, pod);
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        let sums = self.sums[node].get(&now.world.pods[pod].workload);
        let need = |(hour, more): (usize, &Hour)| {
            let sum = sums.map_or(0.0, |sums| sums[hour]);
            let squares = self.squares[node][hour] + (sum + more.burst).powi(2) - sum.powi(2);
            self.mean[node][hour] + more.mean + squares.max(0.0).sqrt()
        };
        self.coming.iter().enumerate().map(need).fold(0.0, f64::max)
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.add(now, node, pod);
    }
}
