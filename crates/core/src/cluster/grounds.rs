//! What did a decision rest on? So little of it that it can be kept of every one: how good the node was and which came
//! next, what counted against its lines, and why one node was refused by each rule. Everything else is worked out
//! when somebody asks, as things are then.

use super::profile::Judge;
use super::report::Resource;
use super::{Asked, Decided};
use crate::cycle::{self, Filter};
use crate::explain::Reason;
use crate::load::settings::Mode;
use crate::load::{Both, Metered};
use crate::view::{NodeId, PodView};
use std::sync::Arc;

/// What is worth keeping of a decision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grounds {
    /// How good its node was, 0 to 100; `None` if it has none.
    pub score: Option<i64>,
    /// Which node came next, and how good that was; `None` if no other would have done.
    pub next: Option<(Arc<str>, i64)>,
    /// Each resource of its node against its line, with what the pod adds; `None` where there are no lines.
    pub lines: Option<Both<Resource>>,
    /// One node of those each rule refused.
    pub refused: Vec<Refusal>,
}

/// Why a node was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The first rule it failed.
    pub rule: Filter,
    pub node: Arc<str>,
    /// `None` where there is no more to say than the rule.
    pub reason: Option<Reason>,
}

impl Decided<'_> {
    /// What it rests on. To be asked right after it was made, and before it is charged.
    #[must_use]
    pub fn grounds(&mut self) -> Grounds {
        let decision = &self.decision;
        // What holds still holds, but how old it is has changed.
        if let Some((.., node)) = decision.refusals().find(|(rule, ..)| *rule == Filter::Threshold) {
            self.cluster.judge(node);
        }
        let Asked { input, memo, .. } = self.cluster.ask(self.profile, self.pod);
        let name = |node: NodeId| input.cluster[node].name.clone();
        let refused = decision.refusals().map(|(rule, _, node)| {
            let reason = if is_load(rule) { None } else { cycle::reason(&input, self.pod, memo, rule, node) };
            (node, Refusal { rule, node: name(node), reason })
        });
        let refused: Vec<_> = refused.collect();
        let next = decision.next.map(|(node, score)| (name(node), score));
        let judge = &self.cluster.judges[self.profile];
        let by_load = |(node, refusal): (NodeId, Refusal)| {
            if !is_load(refusal.rule) {
                return refusal;
            }
            Refusal { reason: judge.load_reason(refusal.rule, node, self.pod), ..refusal }
        };
        Grounds {
            score: decision.node.map(|_| decision.mean),
            next,
            lines: decision.node.and_then(|node| judge.lines(node, self.pod)),
            refused: refused.into_iter().map(by_load).collect(),
        }
    }

    /// Each resource of another node against its line, with what the pod adds; `None` where there are no lines.
    #[must_use]
    pub fn lines_on(&self, node: NodeId) -> Option<Both<Resource>> {
        self.cluster.judges[self.profile].lines(node, self.pod)
    }
}

fn is_load(rule: Filter) -> bool {
    matches!(rule, Filter::Threshold | Filter::UnknownLoad | Filter::Cooling | Filter::Line)
}

impl Judge {
    /// Each resource of a node against its line; `None` where there are no lines.
    pub(super) fn lines(&self, node: NodeId, pod: &PodView) -> Option<Both<Resource>> {
        if self.profile.rules.is_none() || self.rules.mode() != Mode::Default {
            return None;
        }
        let load = self.loads.get(node.index())?;
        let resource = |r: Metered| Resource { line: load.lines.get(r), incoming: pod.estimate.get(r) };
        Some(Both { cpu: resource(Metered::Cpu), memory: resource(Metered::Memory) })
    }

    /// Why a load rule refused a node.
    fn load_reason(&self, rule: Filter, node: NodeId, pod: &PodView) -> Option<Reason> {
        let load = self.loads.get(node.index())?;
        match rule {
            Filter::Threshold => load.filtered.reasons.first().cloned(),
            Filter::UnknownLoad => Some(Reason::UnknownLoad),
            Filter::Cooling => load.cooling_until.map(|until| Reason::Cooling { until }),
            Filter::Line => {
                let lines = self.lines(node, pod)?;
                let free = |r: Metered| self.board.head[r as usize][node.index()];
                Metered::ALL.into_iter().find_map(|r| lines.get(r).refusal(r, 0, free(r)))
            }
            _ => None,
        }
    }
}
