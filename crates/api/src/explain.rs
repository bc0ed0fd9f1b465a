//! What was found about nodes for a pod, as programs read it. Field names are a promise.
//!
//! Amounts are quantities as Kubernetes writes them; what is unknown is `null`, never 0.

use loadline_core::cluster::{NodeReport, PendingPod, ResourceReport};
use loadline_core::explain::Reason;
use loadline_core::load::Metered;
use loadline_core::load::admit::Basis;
use loadline_core::load::estimate::{self, Estimate};
use loadline_core::load::policy::Figure;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::score::LoadScore;
use loadline_core::load::term::{Source, Term, Unknown};
use loadline_core::quantity::Quantity;
use serde::Serialize;
use std::collections::BTreeMap;

/// What was found about one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult<'a> {
    node: &'a str,
    fits: bool,
    /// Everything against it, one sentence each.
    reasons: Vec<String>,
    /// The same as data.
    details: &'a [Reason],
    /// 0 to 100; ranks among nodes that fit.
    score: i64,
    scores: Scores,
    hot_value: Option<i64>,
    terms: Vec<TermResult<'a>>,
    load: Option<Loads>,
    /// What would have to be different for the pod to fit.
    counterfactual: Option<&'a str>,
    warnings: &'a [String],
}

/// Each score is 0 to 100, or `null` if it says nothing about this pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scores {
    load: Option<LoadScore>,
    least_allocated: i64,
    balanced_allocation: Option<i64>,
    taint_toleration: Option<i64>,
    node_affinity: Option<i64>,
    inter_pod_affinity: Option<i64>,
    pod_topology_spread: Option<i64>,
    image_locality: Option<i64>,
}

/// What is known of one metric of the policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TermResult<'a> {
    metric: &'a str,
    value: Option<f64>,
    limit: Option<f64>,
    weight: Option<f64>,
    age_seconds: Option<i64>,
    window_seconds: Option<i64>,
    source: Option<Source>,
    /// Why the value is not known.
    reason: Option<Unknown>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
}

/// Both resources whose use is measured.
#[derive(Debug, Serialize)]
struct Loads {
    cpu: LoadResult,
    memory: LoadResult,
}

/// One resource, held against its line: measured + pending + incoming ≤ allocatable × target.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LoadResult {
    measured: Option<String>,
    pending: Option<String>,
    incoming: String,
    allocatable: Option<String>,
    target: Option<f64>,
    /// Pods that are there and not measured yet.
    pending_pods: Vec<String>,
    /// Where the figures of the incoming pod come from, by container and resource.
    sources: BTreeMap<String, estimate::Source>,
    /// What `measured` and `pending` rest on.
    basis: Basis,
}

/// What was found about a node for a pod that is expected to use so much.
#[must_use]
pub fn node<'a>(node: &'a NodeReport, estimate: &Estimate) -> NodeResult<'a> {
    let load = node.lines.map(|lines| Loads {
        cpu: load_result(Metered::Cpu, lines.cpu, &node.pending, estimate),
        memory: load_result(Metered::Memory, lines.memory, &node.pending, estimate),
    });
    NodeResult {
        node: &node.name,
        fits: node.fits,
        reasons: node.reasons.iter().map(ToString::to_string).collect(),
        details: &node.reasons,
        score: node.score,
        scores: Scores {
            load: node.load_score,
            least_allocated: node.parts.least,
            balanced_allocation: node.parts.balanced,
            taint_toleration: node.parts.taints,
            node_affinity: node.parts.liking,
            inter_pod_affinity: node.parts.affinity,
            pod_topology_spread: node.parts.spread,
            image_locality: node.parts.images,
        },
        hot_value: node.hot,
        terms: node.terms.iter().map(term_result).collect(),
        load,
        counterfactual: node.counterfactual.as_deref(),
        warnings: &node.warnings,
    }
}

fn term_result(term: &Term) -> TermResult<'_> {
    TermResult {
        metric: &term.metric,
        value: term.value.and_then(finite),
        limit: term.limit.and_then(finite),
        weight: term.weight.and_then(finite),
        age_seconds: term.age_seconds,
        window_seconds: term.window_seconds,
        source: term.source,
        reason: term.reason,
        note: term.note,
    }
}

/// JSON knows no NaN and no infinity: they are not known.
#[must_use]
pub fn finite(figure: Figure) -> Option<f64> {
    Some(figure.to_f64()).filter(|number| number.is_finite())
}

fn load_result(
    resource: Metered,
    report: ResourceReport,
    pending: &[PendingPod],
    estimate: &Estimate,
) -> LoadResult {
    let ResourceReport { line, incoming } = report;
    let amount = |amount: i64| match resource {
        Metered::Cpu => Quantity::from_nano(amount).to_string(),
        Metered::Memory => Quantity::from_bytes(amount).to_string(),
    };
    let arriving = pending.iter().filter(|pod| pod.load.get(resource) > 0);
    let sources = estimate.sources.iter();
    LoadResult {
        measured: line.measured.map(amount),
        pending: line.expected().map(|_| amount(line.pending)),
        incoming: amount(incoming),
        allocatable: line.allocatable.map(amount),
        target: line.target.map(Ratio::to_f64),
        pending_pods: arriving.map(|pod| pod.key.to_string()).collect(),
        sources: sources.map(|one| (format!("{}.{resource}", one.container), one.get(resource))).collect(),
        basis: line.basis,
    }
}
