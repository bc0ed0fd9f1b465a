//! The books of one node.

use super::departures::Departure;
use super::history::Past;
use super::pods::NONE;
use crate::load::Load;

/// Sums that are exact whatever is added: what is taken off again leaves nothing behind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    cpu_nano: i128,
    memory_bytes: i128,
}

impl Sum {
    pub(super) fn add(&mut self, load: Load) {
        self.cpu_nano += i128::from(load.cpu_nano);
        self.memory_bytes += i128::from(load.memory_bytes);
    }

    pub(super) fn sub(&mut self, load: Load) {
        self.cpu_nano -= i128::from(load.cpu_nano);
        self.memory_bytes -= i128::from(load.memory_bytes);
    }

    pub(super) fn load(self) -> Load {
        let held = |sum: i128| i64::try_from(sum).unwrap_or(i64::MAX);
        Load::new(held(self.cpu_nano), held(self.memory_bytes))
    }
}

/// One slot.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) pending: Sum,
    pub(super) assigned: Sum,
    /// The chain of pods that are pending.
    pub(super) unsettled: u32,
    /// The chain of the others.
    pub(super) settled: u32,
    pub(super) pods: u32,
    pub(super) pending_pods: u32,
    pub(super) gone: Box<[Departure]>,
    pub(super) past: Option<Box<Past>>,
    pub(super) present: bool,
    /// Is it in the list of changed ones?
    pub(super) listed: bool,
}

impl Node {
    pub(super) fn empty() -> Self {
        Self {
            pending: Sum::default(),
            assigned: Sum::default(),
            unsettled: NONE,
            settled: NONE,
            pods: 0,
            pending_pods: 0,
            gone: Box::default(),
            past: None,
            present: false,
            listed: false,
        }
    }
}
