//! Who arrives when, asks for what, and uses what?
//!
//! A [`World`] is what every policy is held against: nodes, and pods with their times, requests and use. [`draw`] makes one
//! from real series as a cluster might have had it:
//!
//! - each workload follows one series; its replicas are up to 15 minutes apart from it and use up to 20 % more or less,
//! - pods arrive evenly over the days but the last, and live a day, give or take half of it,
//! - a pod asks for what its workload uses on average, times an error as people make it: lognormal, σ = 0.8; never for more than
//!   a node has.
//!
//! The first day is not counted: clusters fill, and nothing has been learned.

use crate::dice::Dice;
use crate::trace::Series;
use crate::{DAY, HOUR};
use std::ops::Range;
use std::sync::Arc;

/// The least anybody asks for, in thousandths of a core.
pub const LEAST_REQUEST: i64 = 10;

/// Pods that follow the same series.
#[derive(Clone, Debug)]
pub struct Workload {
    pub name: Arc<str>,
    /// Thousandths of a core, one every five minutes; starts over when it ends.
    pub series: Arc<[u32]>,
}

/// Somebody who came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pod {
    /// By its place in the world.
    pub workload: usize,
    /// The step at which it is there to be placed.
    pub arrives: usize,
    /// The step at which it is gone.
    pub leaves: usize,
    pub request_milli: i64,
    /// By so many steps it is ahead in the series.
    pub shift: usize,
    /// In thousandths of what the series says.
    pub scale: u32,
}

/// Nodes and pods over some days.
#[derive(Clone, Debug)]
pub struct World {
    /// The CPU of each node, in thousandths of a core.
    pub nodes: Vec<i64>,
    pub workloads: Vec<Workload>,
    /// In the order they arrive.
    pub pods: Vec<Pod>,
    pub steps: usize,
    /// The steps that count.
    pub counted: Range<usize>,
}

impl World {
    /// What a pod uses in a step, in thousandths of a core, wherever it is.
    #[must_use]
    pub fn usage(&self, pod: usize, step: usize) -> i64 {
        let pod = &self.pods[pod];
        let series = &self.workloads[pod.workload].series;
        if series.is_empty() {
            return 0;
        }
        i64::from(series[(step + pod.shift) % series.len()]) * i64::from(pod.scale) / 1000
    }

    /// What all pods that are there use on average while it counts, in thousandths of a core.
    #[must_use]
    pub fn mean_demand(&self) -> f64 {
        let mut sum = 0;
        for (place, pod) in self.pods.iter().enumerate() {
            let (from, to) = (pod.arrives.max(self.counted.start), pod.leaves.min(self.counted.end));
            sum += (from..to).map(|step| self.usage(place, step)).sum::<i64>();
        }
        sum as f64 / self.counted.len().max(1) as f64
    }

    /// How many nodes of that size would be used by that share on average.
    #[must_use]
    pub fn nodes_for(&self, share: f64, node_milli: i64) -> usize {
        ((self.mean_demand() / (share * node_milli as f64)).ceil() as usize).max(1)
    }
}

/// What a world is drawn by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub pods: usize,
    pub days: usize,
    /// On average.
    pub replicas: usize,
    /// σ of the lognormal error of requests.
    pub error: f64,
    /// Nobody asks for more than this, in thousandths of a core: what a node has.
    pub largest_milli: i64,
    pub seed: u64,
}

impl Default for Plan {
    fn default() -> Self {
        Self { pods: 1500, days: 5, replicas: 6, error: 0.8, largest_milli: 16_000, seed: 1 }
    }
}

/// A world without nodes yet, of series that are not empty.
#[must_use]
pub fn draw(series: &[Series], plan: &Plan) -> World {
    let mut dice = Dice::new(plan.seed);
    let steps = plan.days.max(1) * DAY;
    let count = (plan.pods / plan.replicas.max(1)).max(1);
    let mut requests = Vec::with_capacity(count);
    let mut workloads = Vec::with_capacity(count);
    for number in 0..count {
        let one = &series[dice.below(series.len())];
        // A short series starts at its own time of the day; a long one anywhere in whole days.
        let from = dice.below(one.milli.len().div_ceil(DAY)) * DAY;
        let samples = (0..one.milli.len()).map(|step| one.milli[(step + from) % one.milli.len()]);
        workloads.push(Workload { name: format!("w{number:05}").into(), series: samples.collect() });
        requests.push(one.mean() * (plan.error * dice.normal()).exp());
    }
    let last_arrival = steps.saturating_sub(DAY).max(1);
    let mut pods: Vec<Pod> = (0..plan.pods)
        .map(|_| {
            let workload = dice.below(count);
            let arrives = dice.below(last_arrival);
            let lives = 12 * HOUR + dice.below(DAY);
            Pod {
                workload,
                arrives,
                leaves: (arrives + lives).min(steps),
                request_milli: (requests[workload].round() as i64).min(plan.largest_milli).max(LEAST_REQUEST),
                shift: dice.below(4),
                scale: 800 + dice.below(401) as u32,
            }
        })
        .collect();
    pods.sort_by_key(|pod| (pod.arrives, pod.workload, pod.leaves, pod.shift, pod.scale));
    World { nodes: Vec::new(), workloads, pods, steps, counted: DAY.min(steps - 1)..steps }
}
