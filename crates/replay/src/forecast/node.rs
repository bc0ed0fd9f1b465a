//! By what was measured of the node as a whole.

use super::{Forecast, Now};
use crate::usage::Moments;
use crate::{DAY, HOUR};

/// What pods that came in this step ask for, by node: nobody has measured them.
fn fresh(now: &Now<'_>) -> Vec<f64> {
    vec![0.0; now.world.nodes.len()]
}

fn moments(samples: &[i32]) -> Moments {
    let mut all = Moments::default();
    for milli in samples {
        all.add(f64::from(*milli));
    }
    all
}

/// Packs up to a target, as Trimaran's `TargetLoadPacking`: the fuller the better up to the target, the emptier the better
/// above it.
#[derive(Debug)]
pub struct Packing {
    /// From 0 to 1.
    pub target: f64,
    pub coming: Vec<f64>,
}

impl Forecast for Packing {
    fn look(&mut self, now: &Now<'_>) {
        self.coming = fresh(now);
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        now.measured(node) + self.coming[node] + now.request(pod)
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.coming[node] += now.request(pod);
    }

    /// With a target of 0.65: 0.65 at 0 rises to 1 at 0.65, falls to 0.65 just above it and to 0 at 1.
    fn score(&self, share: f64) -> f64 {
        let target = self.target;
        if share <= target {
            (1.0 - target) * share / target + target
        } else {
            target * (1.0 - share) / (1.0 - target)
        }
    }
}

/// Lowest risk by mean and deviation, as Trimaran's `LoadVariationRiskBalancing`: half of mean and deviation of an hour.
#[derive(Debug, Default)]
pub struct Risk {
    past: Vec<Moments>,
    coming: Vec<f64>,
}

impl Forecast for Risk {
    fn look(&mut self, now: &Now<'_>) {
        self.coming = fresh(now);
        self.past = (0..now.world.nodes.len()).map(|node| moments(now.past(node, HOUR))).collect();
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        f64::midpoint(
            self.past[node].mean() + self.coming[node] + now.request(pod),
            self.past[node].deviation(),
        )
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.coming[node] += now.request(pod);
    }
}

/// A share of what is asked for ("Borg default" in Bashir et al., 2021).
#[derive(Debug)]
pub struct Limits {
    pub share: f64,
}

impl Forecast for Limits {
    fn look(&mut self, _: &Now<'_>) {}

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        self.share * (now.books.requested[node] as f64 + now.request(pod))
    }

    fn placed(&mut self, _: &Now<'_>, _: usize, _: usize) {}

    fn refuses(&self) -> bool {
        true
    }
}

/// Mean and so many deviations of what the node used in a day ("N-sigma"), and what comes.
#[derive(Debug)]
pub struct Deviations {
    pub count: f64,
    pub need: Vec<f64>,
}

impl Forecast for Deviations {
    fn look(&mut self, now: &Now<'_>) {
        let need = |node| {
            let past = moments(now.past(node, DAY));
            past.mean() + self.count * past.deviation()
        };
        self.need = (0..now.world.nodes.len()).map(need).collect();
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        self.need[node] + now.request(pod)
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.need[node] += now.request(pod);
    }

    fn refuses(&self) -> bool {
        true
    }
}
