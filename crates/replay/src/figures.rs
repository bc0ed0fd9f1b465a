//! How good was that? The figures of one run, over all nodes and the steps that count.

use crate::books::Books;
use crate::protect::Slowed;
use crate::world::World;
use crate::{DAY, HOUR};
use serde::Serialize;

/// What came of a policy. Shares are from 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Figures {
    /// How many nodes there were.
    pub nodes: usize,
    /// What was used of all nodes on average.
    pub mean_use: f64,
    /// The share of nodes' time in which more than the target was wanted.
    pub over_target: f64,
    /// The share of nodes' time in which more was wanted than there is.
    pub over_full: f64,
    /// What was wanted and not given, of all that was wanted: what is above what there is, and what agents withheld.
    pub not_served: f64,
    /// So much of a node is wanted, or less, in 99 % of nodes' time.
    pub p99_use: f64,
    /// The most that was wanted of a node.
    pub peak_use: f64,
    /// Pods that had to wait for a node, or never got one.
    pub pods_pending: usize,
    /// How long they waited, in hours.
    pub pending_hours: f64,
    /// How often pods were moved.
    pub moves: usize,
    /// The same per pod that was there and day.
    pub moves_per_pod_day: f64,
    /// Pods that were moved, or were on a node of which more was wanted than there is; with protection, of which more was wanted
    /// even so, or that were slowed down.
    pub pods_disturbed: usize,
    pub pods: usize,
    /// With protection: what agents did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protection: Option<Protection>,
}

/// What agents did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Protection {
    /// Pods that were slowed down.
    pub pods_slowed: usize,
    /// Pods that acting on all would have slowed down.
    pub pods_slowed_by_all: usize,
    /// The share of nodes' time in which more was wanted than there is, even so.
    pub over_full: f64,
}

/// What is counted besides what the books know.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// How many steps each pod waited.
    pub waited: Vec<usize>,
    /// How often each was moved.
    pub moved: Vec<usize>,
    /// Was it on a node over 100 % while that counted?
    pub crowded: Vec<bool>,
}

impl Counts {
    #[must_use]
    pub fn new(world: &World) -> Self {
        let pods = world.pods.len();
        Self { waited: vec![0; pods], moved: vec![0; pods], crowded: vec![false; pods] }
    }
}

/// The value that a share of all values does not exceed: the nearest rank. `values` is put in another order.
pub fn percentile(values: &mut [i64], share: f64) -> Option<i64> {
    if values.is_empty() {
        return None;
    }
    let rank = (share * values.len() as f64).ceil() as usize;
    let (_, value, _) = values.select_nth_unstable(rank.clamp(1, values.len()) - 1);
    Some(*value)
}

pub(crate) fn of(
    world: &World,
    books: &Books,
    counts: &Counts,
    slowed: Option<&Slowed>,
    target: f64,
) -> Figures {
    let (mut over_target, mut over_full, mut not_served, mut wanted, mut there) =
        (0_usize, 0_usize, 0_i64, 0_i64, 0_i64);
    // In millionths of the node, so that nodes of different sizes compare.
    let mut shares = Vec::with_capacity(world.nodes.len() * world.counted.len());
    for (node, capacity) in world.nodes.iter().enumerate() {
        let line = (target * *capacity as f64).round() as i64;
        for load in &books.row(node)[world.counted.clone()] {
            let load = i64::from(*load);
            over_target += usize::from(load > line);
            over_full += usize::from(load > *capacity);
            not_served += (load - capacity).max(0);
            wanted += load;
            there += capacity;
            shares.push(load * 1_000_000 / (*capacity).max(1));
        }
    }
    let all = shares.len().max(1) as f64;
    let peak = shares.iter().copied().max().unwrap_or(0);
    let p99 = percentile(&mut shares, 0.99).unwrap_or(0);
    let moves: usize = counts.moved.iter().sum();
    // What is above what there is, is withheld as well.
    let not_served = slowed.map_or(not_served, |slowed| slowed.withheld);
    let crowded = slowed.map_or(&counts.crowded, |slowed| &slowed.crowded);
    let is_slowed = |pod: usize| slowed.is_some_and(|slowed| slowed.exactly[pod]);
    let count = |pods: &[bool]| pods.iter().filter(|pod| **pod).count();
    let lives: usize = world.pods.iter().map(|pod| pod.leaves - pod.arrives).sum();
    Figures {
        nodes: world.nodes.len(),
        mean_use: wanted as f64 / there.max(1) as f64,
        over_target: over_target as f64 / all,
        over_full: over_full as f64 / all,
        not_served: not_served as f64 / wanted.max(1) as f64,
        p99_use: p99 as f64 / 1e6,
        peak_use: peak as f64 / 1e6,
        pods_pending: counts.waited.iter().filter(|steps| **steps > 0).count(),
        pending_hours: counts.waited.iter().sum::<usize>() as f64 / HOUR as f64,
        moves,
        moves_per_pod_day: moves as f64 * DAY as f64 / lives.max(1) as f64,
        pods_disturbed: (0..world.pods.len())
            .filter(|pod| counts.moved[*pod] > 0 || crowded[*pod] || is_slowed(*pod))
            .count(),
        pods: world.pods.len(),
        protection: slowed.map(|slowed| Protection {
            pods_slowed: count(&slowed.exactly),
            pods_slowed_by_all: count(&slowed.by_all),
            over_full: slowed.over_full as f64 / all,
        }),
    }
}
