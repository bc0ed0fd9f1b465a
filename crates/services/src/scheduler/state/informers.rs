//! Which objects are there, and what is remembered of each? The kinds that are watched.

use crate::cluster::{Freshness, Informer};
use crate::scheduler::advice::answered;
use jiff::Timestamp;
use loadline_core::view::NodeFacts;
use std::hash::{BuildHasher as _, BuildHasherDefault, DefaultHasher};

/// What is remembered of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct NodeNote {
    pub(super) cordoned: bool,
    /// A hash of everything but its annotations.
    pub(super) looks: Option<u64>,
    /// Was it annotated by another policy than ours?
    pub(super) foreign: bool,
    /// What it used when it was last measured.
    pub(super) used: Option<(Timestamp, [i64; 2])>,
}

/// What is remembered of a pod.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PodNote {
    /// Its priority, if it takes up room on a node.
    pub(super) placed: Option<i32>,
    /// Which scheduler it asks for, by its place among [`State::schedulers`].
    pub(super) scheduler: u8,
}

/// The kinds that are watched.
#[derive(Debug)]
pub(super) struct Informers {
    pub(super) nodes: Informer<NodeNote>,
    pub(super) pods: Informer<PodNote>,
    pub(super) namespaces: Informer<()>,
    pub(super) priority_classes: Informer<()>,
    /// With the write each is as of.
    pub(super) claims: Informer<Option<u64>>,
    pub(super) volumes: Informer<Option<u64>>,
    pub(super) storage_classes: Informer<()>,
    pub(super) csi_nodes: Informer<()>,
    pub(super) csi_drivers: Informer<()>,
    pub(super) capacities: Informer<()>,
    pub(super) budgets: Informer<()>,
    pub(super) services: Informer<()>,
}

impl Informers {
    pub(super) fn new() -> Self {
        Self {
            nodes: Informer::new("nodes"),
            pods: Informer::new("pods"),
            namespaces: Informer::new("namespaces"),
            priority_classes: Informer::new("priorityclasses"),
            claims: Informer::new("persistentvolumeclaims"),
            volumes: Informer::new("persistentvolumes"),
            storage_classes: Informer::new("storageclasses"),
            csi_nodes: Informer::new("csinodes"),
            csi_drivers: Informer::new("csidrivers"),
            capacities: Informer::new("csistoragecapacities"),
            budgets: Informer::new("poddisruptionbudgets"),
            services: Informer::new("services"),
        }
    }

    /// Has everything been read, and is nothing being replaced?
    pub(super) fn are_complete(&self) -> bool {
        fn is<T>(informer: &Informer<T>) -> bool {
            informer.is_listed() && !informer.is_replacing()
        }
        let others =
            [&self.namespaces, &self.priority_classes, &self.storage_classes, &self.csi_nodes, &self.budgets];
        // Who may not read these goes without.
        let optional = [&self.services, &self.csi_drivers, &self.capacities];
        let volumes = is(&self.claims) && is(&self.volumes);
        is(&self.nodes)
            && is(&self.pods)
            && volumes
            && others.into_iter().all(is)
            && optional.into_iter().all(answered)
    }

    /// The same for somebody who only looks on: whoever may not read something goes without, but for nodes and pods.
    pub(super) fn are_settled(&self) -> bool {
        fn is<T>(informer: &Informer<T>) -> bool {
            informer.is_listed() && !informer.is_replacing()
        }
        let volumes = answered(&self.claims) && answered(&self.volumes);
        is(&self.nodes) && is(&self.pods) && volumes && self.others().into_iter().all(answered)
    }

    fn others(&self) -> [&Informer<()>; 8] {
        [
            &self.namespaces,
            &self.priority_classes,
            &self.storage_classes,
            &self.csi_nodes,
            &self.csi_drivers,
            &self.capacities,
            &self.budgets,
            &self.services,
        ]
    }

    /// How current is what is known of each kind?
    pub(super) fn freshness(&self) -> Vec<Freshness<'_>> {
        let first = [
            self.nodes.freshness(),
            self.pods.freshness(),
            self.claims.freshness(),
            self.volumes.freshness(),
        ];
        first.into_iter().chain(self.others().map(Informer::freshness)).collect()
    }

    /// Which kinds cannot be read, and why.
    pub(super) fn troubles(&self) -> Vec<(&'static str, &str)> {
        fn of<T>(informer: &Informer<T>) -> Option<(&'static str, &str)> {
            Some((informer.name(), informer.trouble()?.0.as_str()))
        }
        let first = [of(&self.nodes), of(&self.pods), of(&self.claims), of(&self.volumes)];
        first.into_iter().chain(self.others().map(of)).flatten().collect()
    }
}

/// A hash of what pods look for on a node, its annotations aside.
pub(super) fn looks(facts: &NodeFacts) -> u64 {
    let NodeFacts {
        name: _,
        labels,
        annotations: _,
        taints,
        unschedulable,
        allocatable,
        capacity,
        attach_limits,
        // No pod waits for an image.
        images: _,
    } = facts;
    BuildHasherDefault::<DefaultHasher>::default().hash_one((
        labels,
        taints,
        unschedulable,
        allocatable,
        capacity,
        attach_limits,
    ))
}
