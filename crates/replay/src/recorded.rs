//! What a cluster really had: its nodes, and its pods with what each used while it was there, as a [`World`].

use crate::world::{LEAST_REQUEST, Pod, Workload, World};
use crate::{DAY, HOUR};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// A pod that was there without a break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Pods of the same belong together.
    pub workload: Arc<str>,
    /// What it asked for, in thousandths of a core; if nobody knows, what it used on average.
    pub request_milli: Option<i64>,
    /// The step at which it came.
    pub arrives: usize,
    /// What it used in each step from then on, in thousandths of a core.
    pub milli: Vec<u32>,
}

/// What is not counted of so many steps: a quarter, at most a day. Everybody comes at once to begin with, and nothing is known.
#[must_use]
pub fn left_out(steps: usize) -> usize {
    (steps / 4).min(DAY)
}

/// The shortest time that is replayed.
pub const LEAST_STEPS: usize = HOUR;

/// The world of what was recorded. `nodes` are thousandths of a core; pods that come in the same step are placed in the order
/// they are given in.
#[must_use]
pub fn world(nodes: Vec<i64>, recorded: &[Recorded], steps: usize) -> World {
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    // A workload has one series: that of its first pod, then that of its second, and so on.
    let mut series: Vec<(Arc<str>, Vec<u32>)> = Vec::new();
    let mut pods: Vec<(Pod, usize)> = Vec::with_capacity(recorded.len());
    for one in recorded.iter().filter(|one| !one.milli.is_empty() && one.arrives < steps) {
        let workload = *places.entry(&one.workload).or_insert_with(|| {
            series.push((one.workload.clone(), Vec::new()));
            series.len() - 1
        });
        let own = &mut series[workload].1;
        let begins = own.len();
        own.extend_from_slice(&one.milli);
        let mean = one.milli.iter().map(|milli| i64::from(*milli)).sum::<i64>() / one.milli.len() as i64;
        let pod = Pod {
            workload,
            arrives: one.arrives,
            leaves: (one.arrives + one.milli.len()).min(steps),
            request_milli: one.request_milli.unwrap_or(mean).max(LEAST_REQUEST),
            shift: 0,
            scale: 1000,
        };
        pods.push((pod, begins));
    }
    pods.sort_by_key(|(pod, _)| pod.arrives);
    let pods = pods
        .into_iter()
        .map(|(pod, begins)| {
            // In the step it arrives it is where its part of the series begins: (arrives + shift) mod length = begins.
            let length = series[pod.workload].1.len();
            Pod { shift: (begins + length - pod.arrives % length) % length, ..pod }
        })
        .collect();
    let workloads = series.into_iter().map(|(name, series)| Workload { name, series: series.into() });
    World { nodes, workloads: workloads.collect(), pods, steps, counted: left_out(steps)..steps }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(workload: &str, request: Option<i64>, arrives: usize, milli: &[u32]) -> Recorded {
        Recorded { workload: workload.into(), request_milli: request, arrives, milli: milli.into() }
    }

    #[test]
    fn every_pod_uses_what_it_used_when_it_did() {
        let recorded = [
            one("web", Some(500), 0, &[10, 20, 30]),
            one("web", None, 7, &[40, 50, 60, 90]),
            one("db", Some(0), 2, &[70, 80]),
            one("web", Some(1), 11, &[99, 98]),
        ];
        let world = world(vec![4000, 8000], &recorded, 12);
        assert_eq!((world.nodes.len(), world.workloads.len(), world.pods.len()), (2, 2, 4));
        assert!(world.pods.is_sorted_by_key(|pod| pod.arrives));
        let mut compared = 0;
        for pod in &recorded {
            let place = world.pods.iter().position(|other| other.arrives == pod.arrives).unwrap();
            for (step, milli) in (pod.arrives..12).zip(&pod.milli) {
                assert_eq!(world.usage(place, step), i64::from(*milli), "{pod:?} at {step}");
                compared += 1;
            }
        }
        assert_eq!(compared, 10, "3 + 4 + 2 + 1, the last one ends with the recording");
        let asked: Vec<i64> = world.pods.iter().map(|pod| pod.request_milli).collect();
        assert_eq!(asked, [500, 10, 60, 10], "as said, at least a little, else the mean of what was used");
        assert_eq!(world.pods[3].leaves, 12);
        assert_eq!(world.counted, 3..12, "a quarter is left out");
        assert_eq!(left_out(7 * DAY), DAY, "and at most a day");
    }
}
