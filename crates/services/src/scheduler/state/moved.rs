//! What was moved away from nodes, as they say themselves: room is kept where it is expected, and whoever asks is told.

use super::State;
use jiff::{SignedDuration, Timestamp};
use loadline_api::rebalance::{MOVED, moved};
use loadline_core::rebalance::Moved;
use loadline_core::select::Lookup as _;
use loadline_core::view::NodeFacts;
use std::cmp::Reverse;

/// How long the successor of a moved pod is waited for: its workload makes it at once, or when the pod is gone.
const AWAITED: SignedDuration = SignedDuration::from_mins(2);

impl State {
    /// Room is kept for those that were moved from a node, where they are expected.
    pub(super) fn await_moved(&mut self, from: &NodeFacts) {
        let Some(text) = from.annotations.get(MOVED) else { return };
        let all = moved(&from.name, text);
        self.cluster.await_only(&from.name, &all);
        for one in &all {
            self.cluster.await_moved(one, one.at.checked_add(AWAITED).unwrap_or(Timestamp::MAX));
        }
    }

    /// What nodes say was moved from them, the newest first.
    pub(super) fn moves_of(&mut self, of: impl Fn(&Moved) -> bool) -> Vec<Moved> {
        let nodes = self.cluster.snapshot().nodes();
        let said = nodes.filter_map(|node| Some((&node.name, node.annotations.value(MOVED)?)));
        let mut all: Vec<Moved> = said.flat_map(|(name, text)| moved(name, text)).filter(of).collect();
        all.sort_by_key(|one| Reverse(one.at));
        all
    }
}
