//! By what will be: the bound of what placing once can do.

use super::{Forecast, Now};

/// The largest sum of the time the pod is there, of those that are there now.
#[derive(Debug, Default)]
pub struct Oracle {
    /// What the pod will use, from this step on.
    coming: Vec<i32>,
}

impl Forecast for Oracle {
    fn look(&mut self, _: &Now<'_>) {}

    fn ask(&mut self, now: &Now<'_>, pod: usize) {
        let steps = now.step..now.world.pods[pod].leaves;
        self.coming.clear();
        self.coming
            .extend(steps.map(|step| i32::try_from(now.world.usage(pod, step)).unwrap_or(i32::MAX / 1024)));
    }

    fn with(&self, now: &Now<'_>, node: usize, _: usize) -> f64 {
        let there = &now.books.row(node)[now.step..];
        f64::from(there.iter().zip(&self.coming).map(|(there, coming)| there + coming).max().unwrap_or(0))
    }

    fn placed(&mut self, _: &Now<'_>, _: usize, _: usize) {}
}
