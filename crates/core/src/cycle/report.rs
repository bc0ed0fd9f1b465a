//! What does every rule say of every node? For people who ask; a decision never waits for this.

use super::decide::{Input, Together, alone};
use super::images::Held;
use super::memo::Places;
use super::prepare::{Prepared, prepare};
use super::{Filter, Parts, apart, local, spread, volumes};
use crate::explain::Reason;
use crate::load::Load;
use crate::select::taint::{Compare, all_repelling};
use crate::view::{NodeId, NodeView, PodView};
use std::sync::Arc;

/// What was found out about one node, the load rules left out.
#[derive(Clone, Debug)]
pub struct Examined {
    pub node: NodeId,
    /// The first rule it fails, load rules included.
    pub rule: Option<Filter>,
    /// Every reason against it but load, in the order of checking.
    pub reasons: Vec<Reason>,
    /// Its scores, also when it does not fit.
    pub parts: Parts,
    /// What it is compared by.
    pub total: i64,
    /// What pods that others were evicted for, and that go first, will use there.
    pub promised: Load,
}

/// Looks at every node, by name, and leaves nothing out.
#[must_use]
pub fn examine(input: &Input<'_>, pod: &PodView) -> Vec<Examined> {
    let ready = prepare(input, pod);
    let mut places = Places::default();
    let spread = spread::Hard::new(input, pod, &ready, &mut places);
    let apart = apart::Hard::new(input, pod, &ready, &mut places);
    let first = |at: usize| {
        let alone = local::check(input, pod, &ready, at);
        alone.or_else(|| spread.check(at)).or_else(|| apart.check(at))
    };
    let feasible: Vec<u32> =
        input.cluster.nodes().map(|n| n.id).filter(|id| first(id.index()).is_none()).map(|id| id.0).collect();
    // With nobody to compare with, nodes are compared with all.
    let compared: Vec<u32> =
        if feasible.is_empty() { input.cluster.nodes().map(|n| n.id.0).collect() } else { feasible };
    let together = Together::new(input, pod, &ready, &mut places, &compared);
    let images = Held::new(input.cluster, pod);
    let look = |node: &NodeView| {
        let at = node.id.index();
        let mut parts = alone(input, pod, at);
        if let Some(together) = &together {
            let more = together.parts(input, &ready, at);
            let held = |part: Option<i64>| part.map(|p| p.clamp(0, 100));
            parts.taints = held(more.taints);
            parts.liking = held(more.liking);
            parts.affinity = held(more.affinity);
            parts.spread = held(more.spread);
        }
        parts.images = images.score(at);
        let mut reasons = by_itself(input, pod, &ready, node);
        reasons.extend(among_others(pod, &spread, &apart, at));
        let promised = ready.promised(node.id).map_or(Load::ZERO, |promised| promised.load);
        Examined {
            node: node.id,
            rule: first(at),
            reasons,
            total: parts.total(&input.weights),
            parts,
            promised,
        }
    };
    input.cluster.nodes().map(look).collect()
}

/// Every reason against a node that other nodes have no part in, in the order of checking.
pub(super) fn by_itself(input: &Input<'_>, pod: &PodView, ready: &Prepared, node: &NodeView) -> Vec<Reason> {
    let mut out = Vec::new();
    let wants = &*pod.wants;
    if node.unschedulable && !ready.ignores_cordon {
        out.push(Reason::Cordoned);
    }
    for taint in all_repelling(&node.taints, &wants.tolerations, Compare::Off) {
        out.push(Reason::Untolerated { taint: taint.clone() });
    }
    if !wants.required.matches_selector(&node.labels) {
        out.push(Reason::SelectorMismatch);
    }
    if !wants.required.matches_affinity(&node.name, &node.labels) {
        out.push(match wants.required.errors() {
            [] => Reason::AffinityMismatch,
            [first, ..] => Reason::InvalidAffinity { problem: first.to_string() },
        });
    }
    let promised = ready.promised(node.id);
    let first = promised.map_or(&[][..], |promised| &promised.pods);
    let before = promised.into_iter().flat_map(|p| &p.pods).flat_map(|p| &p.wants.ports);
    let taken: Vec<_> = node.ports().chain(before).collect();
    for port in wants.ports.iter().filter(|p| taken.iter().any(|t| p.conflicts(t))) {
        out.push(Reason::PortTaken { protocol: port.protocol.clone(), port: port.port });
    }
    let mut free = node.free();
    if let Some(promised) = promised {
        free.sub(&promised.requests);
    }
    out.extend(pod.requests.lacking(&free).map(|lack| Reason::lack(lack, input.cluster.names())));
    if let Some(disk) = volumes::disk_in_use(node, first, pod) {
        out.push(Reason::DiskInUse { disk: disk.addresses.join(", ") });
    }
    let in_use = |claim: &&Arc<str>| input.cluster.users(claim) > 0 || volumes::is_used(claim, first);
    for claim in wants.exclusive.iter().filter(in_use) {
        out.push(Reason::VolumeInUse { volume: claim.to_string() });
    }
    if let Some((driver, limit)) = volumes::over_attach_limit(node, first, &wants.volumes) {
        out.push(Reason::TooManyVolumes { driver: driver.to_owned(), limit });
    }
    for volume in wants.volumes.iter().filter(|v| !v.reachable.matches(&node.name, &node.labels)) {
        out.push(Reason::VolumeOutOfReach { volume: volume.id.to_string() });
    }
    let claims = ready.volumes.as_ref().and_then(|volumes| volumes.claims.as_ref());
    if let Some(Err((rule, claim))) = claims.map(|claims| claims.plan(node.id.index())) {
        let claim = claim.key.name.to_string();
        out.push(match rule {
            Filter::NoStorage => Reason::NoStorage { claim },
            _ => Reason::NoVolume { claim },
        });
    }
    for volume in wants.volumes.iter().filter(|v| !v.zones.matches(&node.name, &node.labels)) {
        out.push(Reason::VolumeInOtherZone { volume: volume.id.to_string() });
    }
    out
}

fn among_others(pod: &PodView, spread: &spread::Hard, apart: &apart::Hard, node: usize) -> Vec<Reason> {
    let hard =
        |i: usize| pod.wants.spread.iter().filter(|s| s.hard).nth(i).map(|s| s.topology_key.to_string());
    let mut out = Vec::new();
    match spread.check(node) {
        Some(Filter::SpreadLabel) => out.push(Reason::NoTopologyLabel {
            topology_key: spread.unplaced(node).and_then(hard).unwrap_or_default(),
        }),
        Some(_) => {
            if let Some((i, here, least, max_skew)) = spread.skew(node) {
                let topology_key = hard(i).unwrap_or_default();
                out.push(Reason::Uneven { topology_key, here, least, max_skew });
            }
        }
        None => {}
    }
    match apart.check(node) {
        Some(Filter::Affinity) => out.push(Reason::NotNear),
        Some(Filter::AntiAffinity) => out.push(Reason::TooNear),
        Some(_) => out.push(Reason::KeptAway),
        None => {}
    }
    out
}

/// Every node that would do and its total, best first, equals by name.
#[must_use]
pub fn rank(input: &Input<'_>, pod: &PodView) -> Vec<(NodeId, i64)> {
    let fits = examine(input, pod).into_iter().filter(|e| e.rule.is_none());
    let mut out: Vec<(NodeId, i64)> = fits.map(|e| (e.node, e.total)).collect();
    out.sort_by_key(|(_, total)| std::cmp::Reverse(*total));
    out
}
