//! A plan, as programs read it. Field names are a promise.
//!
//! Amounts are quantities as Kubernetes writes them. Every reason has its kind, its figures and one sentence.

use loadline_core::load::{Load, Metered};
use loadline_core::rebalance::{Move, Over, Pause, Plan, Stay, Wait};
use serde::Serialize;
use std::fmt::Display;

/// What is to be moved, and why nothing else is.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanResult<'a> {
    /// Why nothing was looked at; `null` if everything was.
    pause: Option<Explained<&'a Pause>>,
    /// In the order in which to make them.
    moves: Vec<MoveResult<'a>>,
    /// The nodes over their line, the one by the largest share first.
    nodes: Vec<NodeResult<'a>>,
}

/// A reason, and the sentence it reads as.
#[derive(Debug, Serialize)]
struct Explained<T> {
    reason: T,
    message: String,
}

impl<T: Display> Explained<T> {
    fn new(reason: T) -> Self {
        Self { message: reason.to_string(), reason }
    }
}

/// What is used of both.
#[derive(Debug, Serialize)]
struct Amounts {
    cpu: String,
    memory: String,
}

fn amounts(load: Load) -> Amounts {
    let show = |resource: Metered| resource.quantity(load.get(resource)).to_string();
    Amounts { cpu: show(Metered::Cpu), memory: show(Metered::Memory) }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct MoveResult<'a> {
    /// `namespace/name`.
    pod: String,
    workload: &'a str,
    from: &'a str,
    /// Where its scheduler would put it.
    to: &'a str,
    /// The load that is the reason.
    resource: Metered,
    /// What it uses now.
    uses: Amounts,
    /// What it uses at most.
    high: Amounts,
    /// What has to go from the node it leaves.
    gap: Amounts,
    gap_after: Amounts,
    /// What is expected to be used where it goes, with the most it uses.
    there: String,
    /// How far that stays below the line, as a share of what the node has.
    margin: f64,
    message: String,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct NodeResult<'a> {
    node: &'a str,
    resource: Metered,
    /// How much may be used.
    line: String,
    expected: String,
    allocatable: String,
    /// Since when it has been over its line, without a break.
    since: String,
    gap: Amounts,
    /// What of the gap is left after the moves.
    left: Amounts,
    /// Why it gives up nothing; `null` if it may.
    wait: Option<Explained<&'a Wait>>,
    /// Why its other pods stay.
    stays: Vec<StayResult<'a>>,
}

#[derive(Debug, Serialize)]
struct StayResult<'a> {
    pod: String,
    #[serde(flatten)]
    why: Explained<&'a Stay>,
}

/// A plan for programs.
#[must_use]
pub fn of(plan: &Plan) -> PlanResult<'_> {
    PlanResult {
        pause: plan.pause.as_ref().map(Explained::new),
        moves: plan.moves.iter().map(move_result).collect(),
        nodes: plan.nodes.iter().map(node_result).collect(),
    }
}

fn move_result(one: &Move) -> MoveResult<'_> {
    MoveResult {
        pod: one.pod.to_string(),
        workload: &one.workload,
        from: &one.from,
        to: &one.to,
        resource: one.resource,
        uses: amounts(one.uses),
        high: amounts(one.high),
        gap: amounts(one.gap),
        gap_after: amounts(one.gap_after),
        there: one.resource.quantity(one.there).to_string(),
        margin: one.margin.to_f64(),
        message: one.to_string(),
    }
}

fn node_result(over: &Over) -> NodeResult<'_> {
    let show = |amount: i64| over.resource.quantity(amount).to_string();
    NodeResult {
        node: &over.node,
        resource: over.resource,
        line: show(over.limit),
        expected: show(over.expected),
        allocatable: show(over.allocatable),
        since: crate::time::text(over.since),
        gap: amounts(over.gap),
        left: amounts(over.left),
        wait: over.wait.as_ref().map(Explained::new),
        stays: over
            .stays
            .iter()
            .map(|(pod, why)| StayResult { pod: pod.to_string(), why: Explained::new(why) })
            .collect(),
    }
}
