//! Why there? Everything that was known and found for one pod, node by node.

use super::Cluster;
use super::counterfactual::{Counterfactual, counterfactual};
use super::loads::NodeLoad;
use super::profile::Judge;
use crate::cycle::{self, Decision, Filter, Parts};
use crate::explain::Reason;
use crate::ledger::Uid;
use crate::load::admit::{Basis, Line};
use crate::load::annotation::HOT_VALUE;
use crate::load::score::{Hot, LoadScore};
use crate::load::term::{Term, Unknown};
use crate::load::{Both, Load, Metered};
use crate::object::Key;
use crate::select::Lookup;
use crate::view::{NodeId, PodView, Snapshot};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// One pod that is expected to use more than is measured of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingPod {
    pub key: Key,
    /// How much more, per resource.
    pub load: Load,
}

/// One resource of one node, as the load rules see it for this pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resource {
    pub line: Line,
    /// What the pod will add.
    pub incoming: i64,
}

impl Resource {
    /// Why the pod may not come, if it may not. So much is promised there to pods that go first, and so much is free.
    pub(super) fn refusal(&self, resource: Metered, promised: i64, free: i64) -> Option<Reason> {
        let Self { line, incoming } = *self;
        let name = || resource.name().to_owned();
        if let (Some(target), Some(allocatable)) = (line.target, line.allocatable)
            && incoming.saturating_add(promised) > line.head()
        {
            return Some(Reason::OverLine {
                resource: name(),
                measured: line.measured,
                pending: line.pending.saturating_add(promised),
                departed: line.departed,
                incoming,
                allocatable,
                target,
                basis: line.basis,
            });
        }
        // What may be about to arrive by another scheduler's choice is not in the line.
        let free = free.saturating_sub(promised);
        (incoming > free).then(|| Reason::NoHeadroom { resource: name(), asked: incoming, free })
    }
}

/// Everything about one node.
#[derive(Clone, Debug)]
pub struct NodeReport {
    pub node: NodeId,
    pub name: Arc<str>,
    /// Would it do?
    pub fits: bool,
    /// The first rule it fails.
    pub rule: Option<Filter>,
    /// Everything against it.
    pub reasons: Vec<Reason>,
    /// 0 to 100, more is better: the weighted mean of the scores.
    pub score: i64,
    /// What nodes are compared by.
    pub total: i64,
    /// The scores.
    pub parts: Parts,
    /// The load score and its parts; `None` when load is left out.
    pub load_score: Option<LoadScore>,
    /// The hot value; `None` when load is left out, or when one is written there that cannot be used.
    pub hot: Option<Hot>,
    /// Every metric of the policy.
    pub terms: Vec<Term>,
    /// Each resource against its line; `None` when there are no lines.
    pub lines: Option<Both<Resource>>,
    /// Pods on their way there.
    pub pending: Vec<PendingPod>,
    /// What would have to be different for the pod to fit; `None` if it fits, or if that is not about amounts.
    pub counterfactual: Option<Counterfactual>,
    /// What is odd about the node's data.
    pub warnings: Vec<String>,
}

/// Everything about one pod.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where it goes.
    pub decision: Decision,
    /// All nodes, by name.
    pub nodes: Vec<NodeReport>,
}

impl Cluster {
    /// Everything known and found about a pod for which this was decided just now.
    pub(super) fn report(&mut self, profile: usize, pod: &PodView, decision: Decision) -> Report {
        self.look_again();
        let examined = cycle::examine(&self.ask(profile, pod).input, pod);
        let at = self.live.snapshot().clone();
        let judge = &self.judges[profile];
        let nodes = examined.into_iter().map(|e| self.node_report(judge, &at, pod, e)).collect();
        Report { decision, nodes }
    }

    fn node_report(&self, judge: &Judge, at: &Snapshot, pod: &PodView, found: cycle::Examined) -> NodeReport {
        let weights = judge.profile.weights;
        let name = at[found.node].name.clone();
        let mut others = [0, 0];
        let mut out = NodeReport {
            node: found.node,
            name,
            fits: found.rule.is_none() && pod.wants.holds.is_empty(),
            rule: found.rule,
            reasons: found.reasons,
            score: found.parts.mean(&weights),
            total: found.total,
            parts: found.parts,
            load_score: None,
            hot: None,
            terms: Vec::new(),
            lines: None,
            pending: Vec::new(),
            counterfactual: None,
            warnings: Vec::new(),
        };
        for hold in &pod.wants.holds {
            out.reasons.insert(0, Reason::Held { hold: hold.clone() });
        }
        if judge.profile.rules.is_some()
            && let Some(load) = judge.loads.get(found.node.index())
        {
            out.load_score = Some(load.score);
            out.hot = load.hot;
            out.terms.clone_from(&load.terms.terms);
            out.warnings.clone_from(&load.warnings);
            out.warnings.extend(odd_hot(load, at[found.node].annotations.value(HOT_VALUE)));
            if let Some(lines) = judge.lines(found.node, pod) {
                out.warnings.extend(odd(&lines));
                out.lines = Some(lines);
                out.pending = self.pending(at, found.node);
            }
            if !judge.is_exempt(pod) {
                others = judge.load_reasons(&mut out, load, found.promised);
            }
        }
        out.counterfactual = counterfactual(&out, others);
        out
    }

    /// Pods on their way to a node, by name.
    fn pending(&self, at: &Snapshot, node: NodeId) -> Vec<PendingPod> {
        let mut left: FxHashMap<Uid, Load> = self.ledger.pending(node).collect();
        if left.is_empty() {
            return Vec::new();
        }
        let pods = &at[node].pods;
        let found = pods.iter().filter_map(|p| Some((p.key.clone(), left.remove(&Uid::new(&p.uid))?)));
        let mut out: Vec<PendingPod> = found.map(|(key, load)| PendingPod { key, load }).collect();
        out.sort_by(|a, b| a.key.cmp(&b.key));
        out
    }
}

impl Judge {
    /// Everything load has against a node. So much is promised there to pods that go first; gives what counts per
    /// resource beside the line and the pod: that, and what may be about to arrive by another scheduler's choice.
    fn load_reasons(&self, out: &mut NodeReport, load: &NodeLoad, promised: Load) -> [i64; 2] {
        out.reasons.extend(load.filtered.reasons.iter().cloned());
        if let Some(until) = load.cooling_until {
            out.reasons.push(Reason::Cooling { until });
        }
        let mut others = [0, 0];
        if load.unknown {
            out.reasons.push(Reason::UnknownLoad);
        }
        for (i, resource) in Metered::ALL.into_iter().enumerate() {
            let Some(found) = out.lines.map(|l| l.get(resource)) else { continue };
            let promised = promised.get(resource);
            let free = self.board.head[i][out.node.index()];
            others[i] = promised.saturating_add(found.line.head().saturating_sub(free));
            out.reasons.extend(found.refusal(resource, promised, free));
        }
        others
    }
}

/// What is odd about the hot value written on a node, if something is.
fn odd_hot(load: &NodeLoad, text: Option<&str>) -> Option<String> {
    let text = text.unwrap_or_default();
    let ignored = |why: &str| Some(format!("annotation {HOT_VALUE} is ignored: {text:?}, {why}"));
    match (load.hot_unknown, load.hot) {
        (Some(Unknown::Malformed), _) => {
            ignored("expected a number and a time, such as 3,2026-01-31T12:00:00Z")
        }
        (Some(Unknown::Negative), _) => ignored("expected 0 or more"),
        (Some(Unknown::Future), _) => ignored("its time is yet to come"),
        (None, Some(Hot::Float(float))) if !float.is_finite() => {
            Some(format!("annotation {HOT_VALUE} is {text:?} and counts as crane counts it"))
        }
        _ => None,
    }
}

/// What is odd about what a line rests on.
fn odd(lines: &Both<Resource>) -> Vec<String> {
    let mut out = Vec::new();
    for r in Metered::ALL {
        let line = lines.get(r).line;
        if line.target.is_none() {
            continue;
        }
        if line.allocatable.is_none() {
            out.push(format!(
                "the node does not say how much {r} it has for pods, so its {r} line is not checked"
            ));
            continue;
        }
        out.extend(match line.basis {
            Basis::Measured => None,
            Basis::Late => {
                Some(format!("the newest {r} measurement is old; what was placed since is added to it"))
            }
            Basis::Annotation => Some(format!("no {r} measurement; the annotated five-minute mean is used")),
            Basis::Estimates => {
                Some(format!("no {r} measurement; what its pods are expected to use is taken instead"))
            }
            Basis::Nothing => Some(format!("no {r} measurement, so its {r} line is not checked")),
        });
    }
    out
}
