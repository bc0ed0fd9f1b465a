//! Which objects do decisions depend on, and what is kept of them?

use crate::cluster::Event;
use crate::cluster::resource::{
    BUDGETS, CLAIMS, CSI_NODES, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, STORAGE_CLASSES, VOLUMES,
};
use crate::cluster::watch::{logged, watched};
use crate::sources::metrics_api::Measurements;
use loadline_api as api;
use loadline_api::context::{Claim, CsiNode, PersistentVolume, PriorityClass, StorageClass};
use loadline_api::json::Skip;
use loadline_core::view::{Budget, NodeFacts};

/// What comes in.
#[derive(Debug)]
pub(super) enum Message {
    Node(Event<NodeFacts>),
    Pod(Event<Box<api::pod::Pod>>),
    Namespace(Event<api::cluster::Namespace>),
    PriorityClass(Event<PriorityClass>),
    Claim(Event<Claim>),
    Volume(Event<PersistentVolume>),
    StorageClass(Event<StorageClass>),
    CsiNode(Event<CsiNode>),
    Budget(Event<Budget>),
    Measured(Measurements),
}

/// Of small objects only who set which field is long.
const MANAGED: Skip = Skip::MANAGED_FIELDS;

watched!(Nodes: NODES, skip api::node::SKIP, NodeFacts, |o| api::node::facts(o).map(logged));
watched!(Pods: PODS, skip api::pod::SKIP, Box<api::pod::Pod>, |o| api::pod::read(o).map(logged).map(Box::new));
watched!(Namespaces: NAMESPACES, skip MANAGED, api::cluster::Namespace, api::cluster::namespace_labels);
watched!(PriorityClasses: PRIORITY_CLASSES, skip MANAGED, PriorityClass, api::context::priority_class);
watched!(Claims: CLAIMS, skip MANAGED, Claim, api::context::claim);
watched!(Volumes: VOLUMES, skip MANAGED, PersistentVolume, api::context::volume);
watched!(StorageClasses: STORAGE_CLASSES, skip MANAGED, StorageClass, api::context::storage_class);
watched!(CsiNodes: CSI_NODES, skip MANAGED, CsiNode, api::context::csi_node);
watched!(Budgets: BUDGETS, skip MANAGED, Budget, |o| api::cluster::budget(o).map(logged));
