//! What can be said of a pod before any node is looked at.

use super::decide::Input;
use super::volumes::Volumes;
use crate::resources::Resource;
use crate::select::node::Sets;
use crate::select::taint::{Compare, Taint, discouraging, repelling, tolerates_cordon};
use crate::view::{NodeId, PodView, Snapshot};
use fixedbitset::FixedBitSet;
use std::collections::BTreeSet;

/// A pod, ready to be held against nodes.
#[derive(Clone, Debug)]
pub(super) struct Prepared {
    /// The nodes its selector and affinity allow; `None` for all.
    pub required: Option<FixedBitSet>,
    /// The nodes its affinity names, where it names all it could be; the others are not looked at.
    pub named: Option<FixedBitSet>,
    /// By class of taints: are they tolerated?
    pub tolerated: Vec<bool>,
    /// By class of taints: how many discourage it?
    pub discouraging: Vec<u32>,
    /// Does any class of taints discourage it?
    pub discouraged: bool,
    /// Does it go to cordoned nodes, too?
    pub ignores_cordon: bool,
    /// By node, how much it is liked; empty when nothing is.
    pub liking: Vec<i64>,
    /// What is asked, zeros left out.
    pub asked: Vec<(Resource, i64)>,
    /// Nodes with pods that others were evicted for and that go first: what these take.
    pub promised: Vec<(usize, Promised)>,
    /// Its volumes, if they matter for where it can go.
    pub volumes: Option<Volumes>,
}

/// What pods that go first will take on a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Promised {
    pub requests: crate::resources::Amounts,
    pub load: crate::load::Load,
    pub pods: Vec<std::sync::Arc<PodView>>,
}

pub(super) fn prepare(input: &Input<'_>, pod: &PodView) -> Prepared {
    let at = input.cluster;
    let wants = &*pod.wants;
    let classes = at.taints();
    let tolerated = |taints: &[Taint]| repelling(taints, &wants.tolerations, Compare::Off).is_none();
    let counts: Vec<u32> = classes
        .iter()
        .map(|t| u32::try_from(discouraging(t, &wants.tolerations, Compare::Off)).unwrap_or(u32::MAX))
        .collect();
    Prepared {
        required: wants.required.nodes(at.labels()),
        named: wants.required.names().map(|names| named(at, names)),
        tolerated: classes.iter().map(|t| tolerated(t)).collect(),
        discouraged: counts.iter().any(|c| *c > 0),
        discouraging: counts,
        ignores_cordon: tolerates_cordon(&wants.tolerations),
        liking: liking(at, pod),
        asked: pod.requests.iter().filter(|(_, amount)| *amount > 0).collect(),
        promised: promised(at, pod),
        volumes: Volumes::new(at, wants),
    }
}

fn named(at: &Snapshot, names: &BTreeSet<String>) -> FixedBitSet {
    let mut out = FixedBitSet::with_capacity(at.width());
    for name in names {
        out.union_with(&at.labels().named(name));
    }
    out
}

fn liking(at: &Snapshot, pod: &PodView) -> Vec<i64> {
    if pod.wants.preferred.is_empty() {
        return Vec::new();
    }
    let mut out = vec![0; at.width()];
    for (weight, nodes) in pod.wants.preferred.nodes(at.labels()) {
        for node in nodes.ones() {
            out[node] += weight;
        }
    }
    out
}

pub(super) fn promised(at: &Snapshot, pod: &PodView) -> Vec<(usize, Promised)> {
    let mut out: Vec<(usize, Promised)> = Vec::new();
    for (node, other) in at.nominated() {
        if other.uid == pod.uid || other.priority < pod.priority {
            continue;
        }
        let at = node.index();
        let place = out.iter().position(|(n, _)| *n == at).unwrap_or_else(|| {
            out.push((at, Promised::default()));
            out.len() - 1
        });
        let promised = &mut out[place].1;
        promised.requests.add(&other.requests);
        promised.load = promised.load.plus(other.estimate);
        promised.pods.push(other.clone());
    }
    out
}

impl Prepared {
    /// Is the node not even looked at, because the pod's affinity names others?
    pub fn passes_over(&self, node: usize) -> bool {
        self.named.as_ref().is_some_and(|nodes| !nodes.contains(node))
    }

    pub fn promised(&self, node: NodeId) -> Option<&Promised> {
        self.promised.iter().find(|(n, _)| *n == node.index()).map(|(_, p)| p)
    }
}
