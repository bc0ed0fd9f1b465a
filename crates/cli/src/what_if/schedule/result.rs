//! The answer of `what-if schedule`, as programs read it. Field names are a promise.
//!
//! Amounts are quantities as Kubernetes writes them; what is unknown is `null`, never 0. Nodes come by rank: those
//! that would take the pod first, the best of them first.

use super::{Answer, PodAnswer, Preempted};
use loadline_api::explain::{NodeResult, RecommendationResult, node};
use serde::Serialize;

/// Everything that was decided.
#[derive(Serialize)]
pub struct ScheduleResult<'a> {
    /// In the order in which they were decided.
    pods: Vec<PodResult<'a>>,
    /// What was odd about the input as a whole.
    warnings: &'a [String],
}

/// Where one pod goes.
#[derive(Serialize)]
struct PodResult<'a> {
    /// `namespace/name`.
    pod: &'a str,
    /// `null` if no node will do.
    node: Option<&'a str>,
    /// Why not, in the words of kube-scheduler; `null` if it goes somewhere.
    message: Option<&'a str>,
    nodes: Vec<NodeResult<'a>>,
    /// What says how much it is expected to use; `null` if its requests do.
    recommendation: Option<&'a RecommendationResult>,
    /// Who would have to go for it, if evicting helps.
    preemption: Option<&'a Preempted>,
    warnings: Vec<&'a str>,
}

pub fn of(answer: &Answer) -> ScheduleResult<'_> {
    let pods = answer.pods.iter().map(|pod| pod_result(pod, &answer.warnings)).collect();
    ScheduleResult { pods, warnings: &answer.warnings }
}

/// What is odd about the input bears on every pod.
fn pod_result<'a>(answer: &'a PodAnswer, warnings: &'a [String]) -> PodResult<'a> {
    PodResult {
        pod: &answer.pod,
        node: answer.node.as_deref(),
        message: answer.message.as_deref(),
        nodes: answer.nodes.iter().map(|found| node(found, &answer.estimate)).collect(),
        recommendation: answer.recommendation.as_ref(),
        preemption: answer.preemption.as_ref(),
        warnings: answer.warnings.iter().chain(warnings).map(String::as_str).collect(),
    }
}
