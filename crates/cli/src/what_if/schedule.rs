//! `loadline what-if schedule`: where would these pods go, and why there?

mod result;
mod table;

use super::{lines, now, warn};
use crate::args::Schedule;
use crate::out::{self, Detail, Output};
use anyhow::Result;
use loadline_api::explain::{self, RecommendationResult};
use loadline_core::cluster::{Cluster, NodeReport};
use loadline_core::cycle::Preemption;
use loadline_core::load::estimate::Estimate;
use loadline_manifests::{Manifests, ScheduleInput, UnscheduledPod};
use serde::Serialize;
use std::cmp::Reverse;

/// Reads, decides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Schedule) -> Result<()> {
    let manifests = Manifests::gather(&args.input.files, ScheduleInput::KINDS);
    let input = ScheduleInput::read(manifests, now(args.input.now))?;
    let answer = decide(input, args);
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// What was decided, pod by pod.
struct Answer {
    /// In the order of deciding.
    pods: Vec<PodAnswer>,
    /// What was odd about the input as a whole.
    warnings: Vec<String>,
}

impl out::Answer for Answer {
    const KIND: &'static str = "ScheduleResult";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        result::of(self)
    }
}

/// Where one pod goes.
struct PodAnswer {
    /// `namespace/name`.
    pod: String,
    /// None if no node will do.
    node: Option<String>,
    /// Why not, in the words of kube-scheduler.
    message: Option<String>,
    /// By rank: those that would take the pod first, the best of them first.
    nodes: Vec<NodeReport>,
    /// How many more nodes there are that nobody wants to see.
    hidden: usize,
    /// What the pod is expected to use.
    estimate: Estimate,
    /// What says so, where that is not its requests.
    recommendation: Option<RecommendationResult>,
    /// Who would have to go for it, if evicting helps.
    preemption: Option<Preempted>,
    /// What is odd about it.
    warnings: Vec<String>,
}

/// Who would have to go, and from where.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Preempted {
    node: String,
    /// The least important first.
    victims: Vec<String>,
    /// How many of them overdraw a disruption budget.
    budget_violations: u32,
}

/// Decides every pod that has no node; each is charged before the next unless they are to be independent.
fn decide(input: ScheduleInput, args: &Schedule) -> Answer {
    let ScheduleInput { mut cluster, pods, warnings } = input;
    let shown = if args.output == Output::Table { table::SHOWN } else { usize::MAX };
    let decide_one = |pod| {
        let mut answer = ask(&mut cluster, pod, args.independent);
        // There may be many, and nobody looks at them again.
        answer.hidden = answer.nodes.len().saturating_sub(shown);
        answer.nodes.truncate(shown);
        answer
    };
    Answer { pods: pods.into_iter().map(decide_one).collect(), warnings: lines(&warnings) }
}

fn ask(cluster: &mut Cluster, pod: UnscheduledPod, independent: bool) -> PodAnswer {
    let UnscheduledPod { facts, mut warnings } = pod;
    let pod = cluster.view(&facts);
    let estimate = cluster.estimate(&facts);
    let (advice, now) = (cluster.recommendation(&pod), cluster.now());
    warnings.extend(advice.and_then(|advice| explain::odd_recommendation(advice, now)));
    let recommendation = advice.map(|advice| explain::recommendation(advice, now));
    let mut decided = cluster.decide(&pod);
    let mut nodes = decided.report().nodes;
    let node = decided.node().map(|node| node.name.to_string());
    let message = node.is_none().then(|| decided.message());
    let plan = if node.is_none() { decided.preempt() } else { None };
    if !independent {
        decided.reserve();
    }
    let preemption = plan.map(|plan| preemption(cluster, &plan));
    nodes.sort_by_key(|node| (!node.fits, Reverse(node.total)));
    let pod = pod.key.to_string();
    PodAnswer { pod, node, message, nodes, hidden: 0, estimate, recommendation, preemption, warnings }
}

/// Who would have to go.
fn preemption(cluster: &mut Cluster, plan: &Preemption) -> Preempted {
    Preempted {
        node: cluster.snapshot()[plan.node].name.to_string(),
        victims: plan.victims.iter().map(|victim| victim.key.to_string()).collect(),
        budget_violations: plan.budget_violations,
    }
}
