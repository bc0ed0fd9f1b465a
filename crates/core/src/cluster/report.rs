//! Why there? Everything that was known and found for one pod, node by node.

use super::Cluster;
use super::profile::Judge;
use crate::cycle::{self, Decision, Filter, Parts};
use crate::explain::Reason;
use crate::ledger::Uid;
use crate::load::admit::{Basis, Line};
use crate::load::ratio::Ratio;
use crate::load::score::LoadScore;
use crate::load::settings::Mode;
use crate::load::term::Term;
use crate::load::{Both, Load, Metered};
use crate::object::Key;
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
    /// The hot value; `None` when load is left out.
    pub hot: Option<i64>,
    /// Every metric of the policy.
    pub terms: Vec<Term>,
    /// Each resource against its line; `None` when there are no lines.
    pub lines: Option<Both<Resource>>,
    /// Pods on their way there.
    pub pending: Vec<PendingPod>,
    /// What would have to be different for the pod to fit; `None` if it fits, or if that is not about amounts.
    pub counterfactual: Option<String>,
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
        let examined = cycle::examine(&self.ask(profile, pod).input, pod);
        let at = self.live.snapshot().clone();
        let judge = &self.judges[profile];
        let nodes = examined.into_iter().map(|e| self.node_report(judge, &at, pod, e)).collect();
        Report { decision, nodes }
    }

    fn node_report(&self, judge: &Judge, at: &Snapshot, pod: &PodView, found: cycle::Examined) -> NodeReport {
        let weights = judge.profile.weights;
        let name = at[found.node].name.clone();
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
            out.hot = Some(load.hot);
            out.terms.clone_from(&load.terms.terms);
            out.warnings.clone_from(&load.warnings);
            if judge.rules.mode() == Mode::Default {
                let resource =
                    |r: Metered| Resource { line: load.lines.get(r), incoming: pod.estimate.get(r) };
                let lines = Both { cpu: resource(Metered::Cpu), memory: resource(Metered::Memory) };
                out.warnings.extend(odd(&lines));
                out.lines = Some(lines);
                out.pending = self.pending(at, found.node);
            }
            if !judge.is_exempt(pod) {
                judge.load_reasons(&mut out, load.filtered.reason.clone(), load.cooling_until);
            }
        }
        out.counterfactual = counterfactual(&out);
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
    fn load_reasons(
        &self,
        out: &mut NodeReport,
        threshold: Option<Reason>,
        cooling_until: Option<jiff::Timestamp>,
    ) {
        out.reasons.extend(threshold);
        if let Some(until) = cooling_until {
            out.reasons.push(Reason::Cooling { until });
        }
        if self.board.closed[out.node.index()] == crate::load::board::Closed::Unknown {
            out.reasons.push(Reason::UnknownLoad);
        }
        for (i, resource) in Metered::ALL.into_iter().enumerate() {
            let Some(Resource { line, incoming }) = out.lines.map(|l| l.get(resource)) else { continue };
            if let (Some(target), Some(allocatable)) = (line.target, line.allocatable)
                && incoming > line.head()
            {
                out.reasons.push(Reason::OverLine {
                    resource: resource.name().to_owned(),
                    measured: line.measured,
                    pending: line.pending,
                    departed: line.departed,
                    incoming,
                    allocatable,
                    target,
                    basis: line.basis,
                });
                continue;
            }
            // What may be about to arrive by another scheduler's choice is not in the line.
            let free = self.board.head[i][out.node.index()];
            if incoming > free {
                out.reasons.push(Reason::NoHeadroom {
                    resource: resource.name().to_owned(),
                    asked: incoming,
                    free,
                });
            }
        }
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

fn counterfactual(report: &NodeReport) -> Option<String> {
    if report.fits || report.reasons.is_empty() {
        return None;
    }
    let mut parts = Vec::new();
    for reason in &report.reasons {
        parts.push(match reason {
            Reason::OverLine { resource, .. } => {
                let r = Metered::ALL.into_iter().find(|r| r.name() == resource)?;
                let Resource { line, incoming } = report.lines?.get(r);
                format!("the {resource} target were {}", hundredths(line.target_for(incoming)?))
            }
            Reason::OverThreshold { metric, value, .. } => {
                format!("the limit of {metric} were {value}")
            }
            Reason::DoesNotFit { resource, .. } if resource == "pods" => {
                "one pod fewer were there".to_owned()
            }
            Reason::DoesNotFit { resource, asked, free } => {
                let lacking = crate::resources::quantity(resource, asked.saturating_sub(*free));
                format!("{lacking} more {resource} were free")
            }
            Reason::UnknownLoad => "its load were known".to_owned(),
            Reason::Cooling { until } => format!("it were {until}"),
            Reason::Cordoned => "it were not cordoned".to_owned(),
            Reason::Untolerated { taint } => format!("the pod tolerated {taint}"),
            // Nothing one would change just for this.
            _ => return None,
        });
    }
    Some(format!("would fit if {}", parts.join(" and ")))
}

/// A ratio with two decimals: 0.70, not 0.7.
fn hundredths(ratio: Ratio) -> String {
    let exact = ratio.nano() / 10_000_000;
    format!("{}.{:02}", exact / 100, exact % 100)
}
