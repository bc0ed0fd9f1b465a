//! How many points is what is free? Scores of a cluster for placements, from −100 (nothing is free) to 100 (all of it).
//!
//! | score | points |
//! |---|---|
//! | `cpuFreeMeasured`, `memoryFreeMeasured` | −100 + ⌊200 × free ÷ allocatable⌋, free by what is used |
//! | `cpuFreeRequested`, `nvidia.com/gpuFreeRequested`, … | the same, free by what pods ask for |
//! | `cpuAvailable`, `memAvailable` | −100 + 200 × free ÷ (100 cores; 1 TiB), free by requests, at most 100 |
//!
//! The first two compare how full clusters are, whatever their size: a point is half a percent. They are rounded down, so
//! that only a cluster with nothing taken has 100. The last compares how much there is, on the scale and under the names of
//! Open Cluster Management's resource-usage-collect add-on, cut off toward zero as there: placements that weigh its scores
//! can weigh these.
//!
//! What is not known has no score. A placement takes that for 0, the middle; [`Summary::scores`] never does.

use super::summary::{Summary, Taken};
use std::collections::BTreeMap;

/// Nothing is free.
pub const WORST: i32 = -100;
/// Everything is.
pub const BEST: i32 = 100;

/// What is scored by how much there is: the resource, the score, and how much of it is [`BEST`].
pub const AVAILABLE: [(&str, &str, i64); 2] =
    [("cpu", "cpuAvailable", 100_000), ("memory", "memAvailable", 1 << 40)];

impl Summary {
    /// All scores, by name.
    #[must_use]
    pub fn scores(&self) -> BTreeMap<String, i32> {
        let mut out = BTreeMap::new();
        for (name, taken) in &self.resources {
            out.insert(format!("{name}FreeRequested"), share(taken.allocatable, taken.requested));
            if let Some(measured) = taken.measured {
                out.insert(format!("{name}FreeMeasured"), share(taken.allocatable, measured));
            }
        }
        for (resource, name, most) in AVAILABLE {
            if let Some(taken) = self.resources.get(resource) {
                out.insert(name.to_owned(), available(taken, most));
            }
        }
        out
    }
}

/// −100 + ⌊200 × free ÷ all⌋. Half of it free is 0, and a third −34: −100 + ⌊66.67⌋.
fn share(all: i64, taken: i64) -> i32 {
    let (all, taken) = (i128::from(all), i128::from(taken));
    points(200 * (all - taken).clamp(0, all) / all)
}

/// −100 + 200 × free ÷ most, cut off toward zero: 25 cores of 100 are −50, 60.1 are 20.
fn available(taken: &Taken, most: i64) -> i32 {
    let most = i128::from(most);
    let free = i128::from(taken.allocatable) - i128::from(taken.requested);
    // Division of whole numbers cuts off toward zero on both sides of it.
    points((200 * free.clamp(0, most) - 100 * most) / most + 100)
}

/// From 0 to 200, to points.
fn points(of_200: i128) -> i32 {
    i32::try_from(of_200).map_or(WORST, |points| (points - 100).clamp(WORST, BEST))
}
