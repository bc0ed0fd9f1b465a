//! Rules that one node can answer without looking at others.

use super::Filter;
use super::decide::Input;
use super::prepare::Prepared;
use crate::load::Metered;
use crate::load::board::Closed;
use crate::view::{NodeId, NodeView, PodView, Volume};
use std::collections::BTreeMap;

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
    if !pod.wants.volumes.is_empty() {
        if ready.volume_in_use {
            return Some(Filter::VolumeInUse);
        }
        if over_attach_limit(&input.cluster[NodeId::at(node)], &pod.wants.volumes).is_some() {
            return Some(Filter::AttachLimit);
        }
        if ready.reachable.as_ref().is_some_and(|nodes| !nodes.contains(node)) {
            return Some(Filter::VolumeReach);
        }
    }
    let board = input.board.filter(|_| !input.exempt)?;
    match board.closed[node] {
        Closed::No => {}
        Closed::Threshold => return Some(Filter::Threshold),
        Closed::Unknown => return Some(Filter::UnknownLoad),
        Closed::Cooling => return Some(Filter::Cooling),
    }
    let over = Metered::ALL.into_iter().zip(&board.head).any(|(resource, head)| {
        let before = promised.map_or(0, |p| p.load.get(resource));
        pod.estimate.get(resource).saturating_add(before) > head[node]
    });
    over.then_some(Filter::Line)
}

fn ports_conflict(node: &NodeView, pod: &PodView, promised: Option<&super::prepare::Promised>) -> bool {
    let before = promised.into_iter().flat_map(|p| &p.pods).flat_map(|p| &p.wants.ports);
    node.ports().chain(before).any(|taken| pod.wants.ports.iter().any(|port| port.conflicts(taken)))
}

/// The driver that would have to attach more volumes than it can, and its limit.
pub(super) fn over_attach_limit<'a>(node: &'a NodeView, new: &'a [Volume]) -> Option<(&'a str, i64)> {
    if node.attach_limits.is_empty() {
        return None;
    }
    let used = node.pods.iter().flat_map(|p| &p.wants.volumes);
    // A volume several pods share is attached once.
    let mut attached: BTreeMap<&str, std::collections::BTreeSet<&str>> = BTreeMap::new();
    for volume in used.chain(new) {
        if let Some(driver) = &volume.driver {
            attached.entry(driver).or_default().insert(&volume.id);
        }
    }
    new.iter().filter_map(|v| v.driver.as_deref()).find_map(|driver| {
        let limit = *node.attach_limits.get(driver)?;
        let count = i64::try_from(attached.get(driver).map_or(0, std::collections::BTreeSet::len))
            .unwrap_or(i64::MAX);
        (count > limit).then_some((driver, limit))
    })
}
