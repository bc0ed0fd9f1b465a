//! Where does a pod hurt least, when nothing but load keeps it from every node?
//!
//! A cluster that is over its lines everywhere may still have to take a pod. Of the nodes only load keeps it from, the one
//! is chosen that would be over its limits by least:
//!
//! > excess = the largest of: (expected use with the pod − the line) ÷ allocatable, per resource; metric − its limit
//!
//! Equals are compared by their score, then by name. A node that is cooling is never taken: what was sent away from it
//! would come back. One whose load is unknown is taken only if nothing is known of any.

use super::profile::Judge;
use super::{Asked, Cluster, Decided};
use crate::cycle::{self, Input};
use crate::load::Metered;
use crate::load::board::Closed;
use crate::load::filter::excess;
use crate::load::ratio::Ratio;
use crate::view::{NodeId, PodView};
use std::cmp::Reverse;
use std::sync::Arc;

/// The node that would be over its limits by least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeastBad {
    pub node: NodeId,
    /// By how much, as a share of the node; `None` if its load is not known.
    pub excess: Option<Ratio>,
}

impl Decided<'_> {
    /// The node to take if the pod must go somewhere; `None` if it has one, or if it is not load alone that keeps it
    /// from every node.
    pub fn least_bad(&mut self) -> Option<LeastBad> {
        if self.decision.node.is_some() || self.decision.hold.is_some() {
            return None;
        }
        self.cluster.least_bad(self.profile, self.pod)
    }

    /// Charges the pod to a node the load rules would keep it off, knowingly.
    pub fn reserve_anyway(self, on: LeastBad) {
        self.cluster.reserve(self.pod, on.node);
    }
}

impl Cluster {
    fn least_bad(&mut self, profile: usize, pod: &Arc<PodView>) -> Option<LeastBad> {
        let Asked { input, memo, .. } = self.ask(profile, pod);
        input.board.filter(|_| !input.exempt)?;
        cycle::decide(&Input { exempt: true, ..input }, pod, memo).node?;
        let candidates: Vec<NodeId> = cycle::candidates(memo).collect();
        let judge = &self.judges[profile];
        let open = candidates.iter().filter(|id| judge.board.closed[id.index()] != Closed::Cooling);
        let at = self.live.snapshot();
        let best = open.min_by_key(|id| {
            let excess = judge.excess(**id, pod);
            (excess.is_none(), excess, Reverse(judge.board.score[id.index()]), at.rank(**id))
        })?;
        Some(LeastBad { node: *best, excess: judge.excess(*best, pod) })
    }
}

impl Judge {
    /// By how much a node would be over its limits with the pod; `None` if its load is not known.
    fn excess(&self, id: NodeId, pod: &PodView) -> Option<Ratio> {
        if self.board.closed[id.index()] == Closed::Unknown {
            return None;
        }
        let load = &self.loads[id.index()];
        let over = Metered::ALL.into_iter().filter_map(|resource| {
            let line = load.lines.get(resource);
            let (limit, expected) = (line.limit()?, line.expected()?);
            let with_it = expected.saturating_add(pod.estimate.get(resource));
            Ratio::of(with_it.saturating_sub(limit), line.allocatable?)
        });
        let metrics = excess(&self.rules, &load.rules, &load.terms);
        Some(over.chain(metrics).max().unwrap_or(Ratio::ZERO).max(Ratio::ZERO))
    }
}
