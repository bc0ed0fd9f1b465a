//! What was found about nodes for a pod, as programs read it. Field names are a promise.
//!
//! Amounts are quantities as Kubernetes writes them; what is unknown is `null`, never 0.

use jiff::Timestamp;
use loadline_core::cluster::{NodeReport, PendingPod, ResourceReport};
use loadline_core::explain::Reason;
use loadline_core::load::admit::Basis;
use loadline_core::load::estimate::{self, Estimate};
use loadline_core::load::policy::Figure;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::recommend::Recommendation;
use loadline_core::load::score::{Hot, LoadScore};
use loadline_core::load::term::{Source, Term, Unknown};
use loadline_core::load::{Both, Metered};
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
    /// `null` if one is written there that does not read.
    hot_value: Option<Hot>,
    terms: Vec<TermResult<'a>>,
    load: Option<Loads>,
    /// What would have to be different for the pod to fit.
    counterfactual: Option<String>,
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
pub struct TermResult<'a> {
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
    /// What is still measured of pods that are gone; left out where that is nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    departed: Option<String>,
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

/// What both resources came to when something was decided. Field names are a promise.
#[derive(Clone, Debug, Serialize)]
pub struct LinesResult {
    cpu: LineResult,
    memory: LineResult,
}

/// One resource then: measured + pending − departed + incoming, and the most that may be used.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct LineResult {
    measured: Option<String>,
    pending: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    departed: Option<String>,
    incoming: String,
    /// `null` where no line is drawn.
    limit: Option<String>,
    allocatable: Option<String>,
    target: Option<f64>,
    basis: Basis,
}

/// What both resources of a node came to with a pod, as programs read it.
#[must_use]
pub fn lines(of: &Both<ResourceReport>) -> LinesResult {
    let line = |resource: Metered| {
        let ResourceReport { line, incoming } = of.get(resource);
        let amount = |amount: i64| resource.quantity(amount).to_string();
        LineResult {
            measured: line.measured.map(amount),
            pending: line.expected().map(|_| amount(line.pending)),
            departed: Some(line.departed).filter(|gone| *gone > 0).map(amount),
            incoming: amount(incoming),
            limit: line.limit().map(amount),
            allocatable: line.allocatable.map(amount),
            target: line.target.map(Ratio::to_f64),
            basis: line.basis,
        }
    };
    LinesResult { cpu: line(Metered::Cpu), memory: line(Metered::Memory) }
}

/// What says how much a pod is expected to use, where that is not its requests.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecommendationResult {
    /// `namespace/name` of its object, or the workload that carries it.
    name: String,
    /// How its last run went: `Success`, or what went wrong. `null` if nobody says.
    message: Option<String>,
    /// When it was last renewed, or that was last tried.
    updated: Option<Timestamp>,
    age_seconds: Option<i64>,
}

/// What is known of a recommendation at a time.
#[must_use]
pub fn recommendation(advice: &Recommendation, now: Timestamp) -> RecommendationResult {
    RecommendationResult {
        name: advice.name.to_string(),
        message: advice.message.as_deref().map(str::to_owned),
        updated: advice.updated,
        age_seconds: advice.updated.map(|at| now.duration_since(at).as_secs()),
    }
}

/// What is odd about a recommendation that is used. One whose last run failed keeps the figures of an earlier one, and
/// takes the time of the failure for its own.
#[must_use]
pub fn odd_recommendation(advice: &Recommendation, now: Timestamp) -> Option<String> {
    let why = advice.message.as_deref().filter(|_| !advice.success)?;
    let tried = advice
        .updated
        .map_or_else(String::new, |at| format!(" {} s ago", now.duration_since(at).as_secs().max(0)));
    Some(format!(
        "the recommendation {} is used though its last run{tried} failed ({why}): its figures are from an earlier one, nobody says which",
        advice.name
    ))
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
        counterfactual: node.counterfactual.as_ref().map(ToString::to_string),
        warnings: &node.warnings,
    }
}

/// What is known of one metric, as programs read it.
#[must_use]
pub fn term_result(term: &Term) -> TermResult<'_> {
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
    let amount = |amount: i64| resource.quantity(amount).to_string();
    let arriving = pending.iter().filter(|pod| pod.load.get(resource) > 0);
    let sources = estimate.sources.iter();
    LoadResult {
        measured: line.measured.map(amount),
        pending: line.expected().map(|_| amount(line.pending)),
        departed: Some(line.departed).filter(|gone| *gone > 0).map(amount),
        incoming: amount(incoming),
        allocatable: line.allocatable.map(amount),
        target: line.target.map(Ratio::to_f64),
        pending_pods: arriving.map(|pod| pod.key.to_string()).collect(),
        sources: sources.map(|one| (format!("{}.{resource}", one.container), one.get(resource))).collect(),
        basis: line.basis,
    }
}
