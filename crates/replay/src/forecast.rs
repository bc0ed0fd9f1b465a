//! What is a node going to need, with one more pod? Other people's answers and candidates for ours.
//!
//! A [`Forecast`] says so for every node; the node with the smallest share is taken, of those that fit by requests. Each looks
//! at what was measured until now, but for the [oracle](oracle).

mod learned;
mod node;
mod oracle;
mod tasks;

pub use learned::{Bursts, Days, Percentiles, Worst};
pub use node::{Deviations, Limits, Packing, Risk};
pub use oracle::Oracle;
pub use tasks::{Larger, Tasks};

use crate::books::Books;
use crate::usage::Usage;
use crate::world::World;

/// What can be known when a pod is placed.
#[derive(Clone, Copy, Debug)]
pub struct Now<'a> {
    pub world: &'a World,
    pub books: &'a Books,
    pub usage: &'a Usage,
    /// The step that begins.
    pub step: usize,
}

impl Now<'_> {
    /// What was measured of a node.
    pub fn measured(&self, node: usize) -> f64 {
        self.step.checked_sub(1).map_or(0.0, |before| f64::from(self.books.row(node)[before]))
    }

    /// What was measured of it so many steps back, the newest last.
    pub fn past(&self, node: usize, steps: usize) -> &[i32] {
        &self.books.row(node)[self.step.saturating_sub(steps)..self.step]
    }

    pub fn request(&self, pod: usize) -> f64 {
        self.world.pods[pod].request_milli as f64
    }
}

/// What a node is going to need. Amounts are in thousandths of a core.
pub trait Forecast {
    /// A step begins: nodes were measured, some pods have left.
    fn look(&mut self, now: &Now<'_>);

    /// A pod is asked about.
    fn ask(&mut self, _now: &Now<'_>, _pod: usize) {}

    /// What a node will need with that pod.
    fn with(&self, now: &Now<'_>, node: usize, pod: usize) -> f64;

    /// The pod went there.
    fn placed(&mut self, now: &Now<'_>, node: usize, pod: usize);

    /// Is a node that will need more than it has out of the question, as long as another is not?
    fn refuses(&self) -> bool {
        false
    }

    /// How good a node is that will need that share: the larger the better.
    fn score(&self, share: f64) -> f64 {
        -share
    }
}
