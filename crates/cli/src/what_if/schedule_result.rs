//! The answer of `what-if schedule`, as programs read it. Field names are a promise.
//!
//! Amounts are quantities as Kubernetes writes them; what is unknown is `null`, never 0. Nodes come by rank: those
//! that would take the pod first, the best of them first.

use loadline_core::explain::Reason;
use loadline_core::load::admit::Basis;
use loadline_core::load::score::LoadScore;
use serde::Serialize;
use std::collections::BTreeMap;

/// Everything that was decided.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleResult {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// In the order in which they were decided.
    pub pods: Vec<PodResult>,
    /// What was odd about the input as a whole.
    pub warnings: Vec<String>,
}

impl ScheduleResult {
    pub fn new(pods: Vec<PodResult>, warnings: Vec<String>) -> Self {
        Self { api_version: "loadline.dev/v1alpha1", kind: "ScheduleResult", pods, warnings }
    }
}

/// Where one pod goes.
#[derive(Debug, Serialize)]
pub struct PodResult {
    /// `namespace/name`.
    pub pod: String,
    /// `null` if no node will do.
    pub node: Option<String>,
    /// Why not, in the words of kube-scheduler; `null` if it goes somewhere.
    pub message: Option<String>,
    pub nodes: Vec<NodeResult>,
    /// How many more nodes there are that nobody wants to see.
    #[serde(skip)]
    pub hidden: usize,
    /// Who would have to go for it, if evicting helps.
    pub preemption: Option<Preemption>,
    pub warnings: Vec<String>,
}

/// Who would have to go, and from where.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Preemption {
    pub node: String,
    /// The least important first.
    pub victims: Vec<String>,
    /// How many of them overdraw a disruption budget.
    pub budget_violations: u32,
}

/// What was found about one node.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    pub node: String,
    pub fits: bool,
    /// Everything against it, one sentence each.
    pub reasons: Vec<String>,
    /// The same as data.
    pub details: Vec<Reason>,
    /// 0 to 100; ranks among nodes that fit.
    pub score: i64,
    pub scores: Scores,
    pub hot_value: Option<i64>,
    pub terms: Vec<TermResult>,
    pub load: Option<Loads>,
    /// What would have to be different for the pod to fit.
    pub counterfactual: Option<String>,
    pub warnings: Vec<String>,
}

/// Each score is 0 to 100, or `null` if it says nothing about this pod.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Scores {
    pub load: Option<LoadScore>,
    pub least_allocated: i64,
    pub balanced_allocation: Option<i64>,
    pub taint_toleration: Option<i64>,
    pub node_affinity: Option<i64>,
    pub inter_pod_affinity: Option<i64>,
    pub pod_topology_spread: Option<i64>,
}

/// What is known of one metric of the policy.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TermResult {
    pub metric: String,
    pub value: Option<f64>,
    pub limit: Option<f64>,
    pub weight: Option<f64>,
    pub age_seconds: Option<i64>,
    pub window_seconds: Option<i64>,
    pub source: Option<loadline_core::load::term::Source>,
    /// Why the value is not known.
    pub reason: Option<loadline_core::load::term::Unknown>,
    /// What else there is to say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<&'static str>,
}

/// Both resources whose use is measured.
#[derive(Debug, Serialize)]
pub struct Loads {
    pub cpu: LoadResult,
    pub memory: LoadResult,
}

/// One resource, held against its line: measured + pending + incoming ≤ allocatable × target.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    pub measured: Option<String>,
    pub pending: Option<String>,
    pub incoming: String,
    pub allocatable: Option<String>,
    pub target: Option<f64>,
    /// Pods that are there and not measured yet.
    pub pending_pods: Vec<String>,
    /// Where the figures of the incoming pod come from, by container and resource.
    pub sources: BTreeMap<String, loadline_core::load::estimate::Source>,
    /// What `measured` and `pending` rest on.
    pub basis: Basis,
    /// What is expected with the pod, as a share of what is allocatable, in percent; for the table.
    #[serde(skip)]
    pub percent: Option<i64>,
}
