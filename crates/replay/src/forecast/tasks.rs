//! By what was measured of the pods that are there.

use super::node::Deviations;
use super::{Forecast, Now};

/// The sum of what each uses 99 % of its time ("RC-like"); who is too young to tell counts with what it asks for.
#[derive(Debug, Default)]
pub struct Tasks {
    need: Vec<f64>,
}

impl Forecast for Tasks {
    fn look(&mut self, now: &Now<'_>) {
        let need = |pod: &usize| now.usage.own_p99(*pod, now.step).unwrap_or_else(|| now.request(*pod));
        self.need = now.books.on.iter().map(|pods| pods.iter().map(need).sum()).collect();
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

/// The larger of that and of mean and deviations of the node.
#[derive(Debug)]
pub struct Larger(pub Deviations, pub Tasks);

impl Forecast for Larger {
    fn look(&mut self, now: &Now<'_>) {
        self.0.look(now);
        self.1.look(now);
    }

    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64 {
        self.0.with(now, node, pod).max(self.1.with(now, node, pod))
    }

    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize) {
        self.0.placed(now, node, pod);
        self.1.placed(now, node, pod);
    }

    fn refuses(&self) -> bool {
        true
    }
}
