//! Rules that one node can answer without looking at others.

use super::Filter;
use super::decide::Input;
use super::prepare::Prepared;
use crate::load::board::Closed;
use crate::load::{Load, Metered};
use crate::view::{NodeId, NodeView, PodView};

/// The first rule the node fails, if any.
pub(super) fn check(input: &Input<'_>, pod: &PodView, ready: &Prepared, node: usize) -> Option<Filter> {
    let columns = input.cluster.columns();
    if ready.passes_over(node) {
        return Some(Filter::NodeAffinity);
    }
    if columns.unschedulable[node] && !ready.ignores_cordon {
        return Some(Filter::Cordon);
    }
    if !ready.tolerated[columns.taints[node] as usize] {
        return Some(Filter::Taints);
    }
    if ready.required.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
        return Some(Filter::NodeAffinity);
    }
    let promised = if ready.promised.is_empty() { None } else { ready.promised(NodeId::at(node)) };
    if !pod.wants.ports.is_empty() && ports_conflict(&input.cluster[NodeId::at(node)], pod, promised) {
        return Some(Filter::Ports);
    }
    for (resource, asked) in &ready.asked {
        let free = columns.free.get(resource.index()).map_or(0, |column| column[node]);
        let free = promised.map_or(free, |p| free.saturating_sub(p.requests.get(*resource)));
        if *asked > free {
            return Some(Filter::Resources);
        }
    }
    if let Some(volumes) = &ready.volumes
        && let Some(rule) =
            volumes.refused(&input.cluster[NodeId::at(node)], promised.map_or(&[], |p| &p.pods), pod)
    {
        return Some(rule);
    }
    check_load(input, pod, promised.map_or(Load::ZERO, |p| p.load), Load::ZERO, node)
}

/// The load rule the node fails, if any: pods that go first bring so much, and so much is on its way out.
pub(super) fn check_load(
    input: &Input<'_>,
    pod: &PodView,
    before: Load,
    released: Load,
    node: usize,
) -> Option<Filter> {
    let board = input.board.filter(|_| !input.exempt)?;
    match board.closed[node] {
        Closed::No => {}
        Closed::Threshold => return Some(Filter::Threshold),
        Closed::Unknown => return Some(Filter::UnknownLoad),
        Closed::Cooling => return Some(Filter::Cooling),
    }
    let over = Metered::ALL.into_iter().zip(&board.head).any(|(resource, head)| {
        let come = pod.estimate.get(resource).saturating_add(before.get(resource));
        come > head[node].saturating_add(released.get(resource))
    });
    over.then_some(Filter::Line)
}

fn ports_conflict(node: &NodeView, pod: &PodView, promised: Option<&super::prepare::Promised>) -> bool {
    let before = promised.into_iter().flat_map(|p| &p.pods).flat_map(|p| &p.wants.ports);
    node.ports().chain(before).any(|taken| pod.wants.ports.iter().any(|port| port.conflicts(taken)))
}
