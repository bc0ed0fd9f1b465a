//! What of a measurement belongs to pods that are gone?
//!
//! Only what was measured of a pod is ever taken off, never a guess: a node must not look idler than it is.

use super::columns::Row;
use super::time::SHORT;
use crate::load::Load;

/// A pod that ran on the node and is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Departure {
    pub(super) start: i64,
    pub(super) end: i64,
    /// What it was last measured to use.
    pub(super) usage: Load,
}

impl Departure {
    /// Can no sample that ends at `newest` or later still speak of it? Beyond five minutes we do not look.
    pub(super) fn is_past(&self, newest: i64) -> bool {
        self.end <= newest.saturating_sub(SHORT)
    }

    /// How much of the newest sample, which ended at T and was averaged over W, is its use.
    ///
    /// CPU is an average: the share of the window in which it ran, rounded down. Memory is a level at T: all
    /// of it if it was running then, else nothing.
    fn credit(&self, row: &Row) -> Load {
        let at = row.at;
        if self.is_past(at) {
            return Load::ZERO;
        }
        let there = self.start <= at && self.end >= at;
        let cpu_nano = if row.window == 0 {
            if there { self.usage.cpu_nano } else { 0 }
        } else {
            let ran =
                i128::from(self.end.min(at)) - i128::from(self.start.max(at.saturating_sub(row.window)));
            let share = i128::from(self.usage.cpu_nano) * ran.max(0) / i128::from(row.window);
            i64::try_from(share).unwrap_or(self.usage.cpu_nano)
        };
        Load::new(cpu_nano, if there { self.usage.memory_bytes } else { 0 })
    }
}

/// How much of the newest sample all of them were, never more than was measured.
pub(super) fn credit(gone: &[Departure], row: &Row) -> Load {
    if gone.is_empty() || row.edge().is_none() {
        return Load::ZERO;
    }
    let sum = gone.iter().fold(Load::ZERO, |sum, d| sum.plus(d.credit(row)));
    sum.zip(row.usage, i64::min)
}
