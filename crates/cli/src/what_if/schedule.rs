//! `loadline what-if schedule`: where would these pods go, and why there?

use super::schedule_result::{
    LoadResult, Loads, NodeResult, PodResult, Preemption, ScheduleResult, Scores, TermResult,
};
use super::world::{self, KINDS, Waiting, World};
use super::{now, schedule_table, warn};
use crate::args::Schedule;
use crate::documents;
use crate::out::{self, Output, Refused};
use anyhow::Result;
use loadline_core::cluster::{Cluster, NodeReport, PendingPod, ResourceReport};
use loadline_core::cycle::Plan;
use loadline_core::load::Metered;
use loadline_core::load::estimate::Estimate;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::term::Term;
use loadline_core::quantity::Quantity;
use std::cmp::Reverse;

/// Reads, decides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Schedule) -> Result<()> {
    let read = documents::read(&args.input.files, &KINDS).map_err(Refused::new)?;
    let world = world::build(read, now(args.input.now), &mut |_| ()).map_err(Refused::new)?;
    let shown = if args.output == Output::Table { schedule_table::SHOWN } else { usize::MAX };
    let result = decide(world, args.independent, shown);
    warn(&result.warnings);
    match args.output {
        Output::Table | Output::Wide => {
            out::print(&schedule_table::render(&result, args.output == Output::Wide));
            Ok(())
        }
        format => out::document(format, &result),
    }
}

/// Decides every pod that waits; each is charged before the next unless they are to be independent. Of each, so many
/// nodes are reported.
fn decide(world: World, independent: bool, shown: usize) -> ScheduleResult {
    let World { mut cluster, waiting, warnings, .. } = world;
    let decide_one = |Waiting { facts, warnings: own }| {
        let pod = cluster.view(&facts);
        let estimate = cluster.estimate(&facts);
        let mut decided = cluster.decide(&pod);
        let report = decided.report();
        let node = decided.node().map(|node| node.name.to_string());
        let message = node.is_none().then(|| decided.message());
        let plan = if node.is_none() { decided.preempt() } else { None };
        if !independent {
            decided.reserve();
        }
        let preemption = plan.map(|plan| preemption(&mut cluster, &plan));
        let mut nodes = report.nodes;
        nodes.sort_by_key(|node| (!node.fits, Reverse(node.total)));
        PodResult {
            pod: pod.key.to_string(),
            node,
            message,
            hidden: nodes.len().saturating_sub(shown),
            nodes: nodes.into_iter().take(shown).map(|node| node_result(node, &estimate)).collect(),
            preemption,
            warnings: own.into_iter().chain(warnings.iter().cloned()).collect(),
        }
    };
    let pods = waiting.into_iter().map(decide_one).collect();
    ScheduleResult::new(pods, warnings)
}

/// Who would have to go for this pod.
fn preemption(cluster: &mut Cluster, plan: &Plan) -> Preemption {
    Preemption {
        node: cluster.snapshot()[plan.node].name.to_string(),
        victims: plan.victims.iter().map(|victim| victim.key.to_string()).collect(),
        budget_violations: plan.budget_violations,
    }
}

fn node_result(node: NodeReport, estimate: &Estimate) -> NodeResult {
    let load = node.lines.map(|lines| Loads {
        cpu: load_result(Metered::Cpu, lines.cpu, &node.pending, estimate),
        memory: load_result(Metered::Memory, lines.memory, &node.pending, estimate),
    });
    NodeResult {
        node: node.name.to_string(),
        fits: node.fits,
        reasons: node.reasons.iter().map(ToString::to_string).collect(),
        details: node.reasons,
        score: node.score,
        scores: Scores {
            load: node.load_score,
            least_allocated: node.parts.least,
            balanced_allocation: node.parts.balanced,
            taint_toleration: node.parts.taints,
            node_affinity: node.parts.liking,
            inter_pod_affinity: node.parts.affinity,
            pod_topology_spread: node.parts.spread,
        },
        hot_value: node.hot,
        terms: node.terms.iter().map(term_result).collect(),
        load,
        counterfactual: node.counterfactual,
        warnings: node.warnings,
    }
}

fn term_result(term: &Term) -> TermResult {
    // JSON knows no NaN and no infinity: they are not known.
    let number =
        |figure: loadline_core::load::policy::Figure| Some(figure.to_f64()).filter(|n| n.is_finite());
    TermResult {
        metric: term.metric.to_string(),
        value: term.value.and_then(number),
        limit: term.limit.and_then(number),
        weight: term.weight.and_then(number),
        age_seconds: term.age_seconds,
        window_seconds: term.window_seconds,
        source: term.source,
        reason: term.reason,
        note: term.note,
    }
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
    let expected = line.expected().map(|expected| expected.saturating_add(incoming));
    LoadResult {
        measured: line.measured.map(amount),
        pending: line.expected().map(|_| amount(line.pending)),
        incoming: amount(incoming),
        allocatable: line.allocatable.map(amount),
        target: line.target.map(Ratio::to_f64),
        pending_pods: arriving.map(|pod| pod.key.to_string()).collect(),
        sources: sources.map(|one| (format!("{}.{resource}", one.container), one.get(resource))).collect(),
        basis: line.basis,
        percent: expected.zip(line.allocatable).and_then(|(used, of)| percent(used, of)),
    }
}

/// A share in whole percent, rounded up: load is never understated.
fn percent(part: i64, whole: i64) -> Option<i64> {
    let step = Ratio::ONE.nano() / 100;
    Ratio::of(part, whole)
        .map(|share| share.nano().div_euclid(step) + i64::from(share.nano().rem_euclid(step) != 0))
}
