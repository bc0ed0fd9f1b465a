//! Which objects do decisions depend on, and what is kept of them?

use crate::agent::watched::{ACTIONS, NODE_QOS};
use crate::cluster::Event;
use crate::cluster::resource::{
    BUDGETS, CLAIMS, CSI_DRIVERS, CSI_NODES, CSI_STORAGE_CAPACITIES, DEPLOYMENTS, JOBS, NAMESPACES, NODES,
    PODS, PRIORITY_CLASSES, RECOMMENDATIONS, REPLICA_SETS, REPLICATION_CONTROLLERS, SERVICES, STATEFUL_SETS,
    STORAGE_CLASSES, VOLUMES,
};
use crate::cluster::watch::{logged, watched};
use crate::sources::metrics_api::Measurements;
use loadline_api as api;
use loadline_api::context::{
    Claim, CsiDriver, CsiNode, PersistentVolume, PriorityClass, StorageCapacity, StorageClass,
};
use loadline_api::json::Skip;
use loadline_api::owners::{SKIP, SKIP_SELECTOR, Workload, read_as};
use loadline_core::load::recommend::Recommendation;
use loadline_core::qos::policy::{Action, NodeQos};
use loadline_core::view::{Budget, NodeFacts};

/// What comes in.
#[derive(Debug)]
pub(crate) enum Message {
    Node(Event<NodeFacts>),
    Pod(Event<Box<api::pod::Pod>>),
    Namespace(Event<api::cluster::Namespace>),
    PriorityClass(Event<PriorityClass>),
    CsiNode(Event<CsiNode>),
    Storage(StorageMessage),
    Budget(Event<Budget>),
    Service(Event<api::cluster::Service>),
    Advice(AdviceMessage),
    Lines(LinesMessage),
    Measured(Measurements),
    /// The text of the configuration's file, or why it cannot be read.
    Configuration(Result<String, String>),
}

/// What comes in about volumes.
#[derive(Debug)]
pub(crate) enum StorageMessage {
    Claim(Event<Claim>),
    Volume(Event<Box<PersistentVolume>>),
    Class(Event<StorageClass>),
    Driver(Event<CsiDriver>),
    Capacity(Event<StorageCapacity>),
}

/// What comes in about what is recommended for pods, and who made them.
#[derive(Debug)]
pub(crate) enum AdviceMessage {
    Recommendation(Event<Option<Recommendation>>),
    ReplicationController(Event<Workload>),
    ReplicaSet(Event<Workload>),
    Deployment(Event<Workload>),
    StatefulSet(Event<Workload>),
    Job(Event<Workload>),
}

/// What comes in about the lines agents hold nodes to.
#[derive(Debug)]
pub(crate) enum LinesMessage {
    NodeRules(Event<NodeQos>),
    Action(Event<Action>),
}

/// Of small objects only who set which field is long.
const MANAGED: Skip = Skip::MANAGED_FIELDS;

watched!(Nodes: NODES, skip api::node::SKIP_BUT_IMAGES, NodeFacts, |o| api::node::with_images(o).map(logged));
watched!(Pods: PODS, skip api::pod::SKIP, Box<api::pod::Pod>, |o| api::pod::read(o).map(logged).map(Box::new));
watched!(Namespaces: NAMESPACES, skip MANAGED, api::cluster::Namespace, api::cluster::namespace_labels);
watched!(PriorityClasses: PRIORITY_CLASSES, skip MANAGED, PriorityClass, api::context::priority_class);
watched!(Claims: CLAIMS, skip MANAGED, Claim, api::context::claim);
watched!(Volumes: VOLUMES, skip MANAGED, Box<PersistentVolume>, |o| api::context::volume(o).map(Box::new));
watched!(StorageClasses: STORAGE_CLASSES, skip MANAGED, StorageClass, api::context::storage_class);
watched!(CsiNodes: CSI_NODES, skip MANAGED, CsiNode, api::context::csi_node);
watched!(CsiDrivers: CSI_DRIVERS, skip MANAGED, CsiDriver, api::context::csi_driver);
watched!(StorageCapacities: CSI_STORAGE_CAPACITIES, skip MANAGED, StorageCapacity, api::context::storage_capacity);
watched!(Budgets: BUDGETS, skip MANAGED, Budget, |o| api::cluster::budget(o).map(logged));
watched!(Services: SERVICES, skip api::cluster::SKIP_SERVICE, api::cluster::Service, api::cluster::service);
watched!(Recommendations: RECOMMENDATIONS, skip MANAGED, Option<Recommendation>, |o| api::recommendation::read(o).map(logged));
watched!(NodeRules: NODE_QOS, skip MANAGED, NodeQos, |o| api::qos::rules::node_qos(o).map(logged));
watched!(Actions: ACTIONS, skip MANAGED, Action, |o| api::qos::rules::action(o).map(logged));
watched!(ReplicationControllers: REPLICATION_CONTROLLERS, skip SKIP, Workload, |o| read_as("", "ReplicationController", o).map(logged));
watched!(ReplicaSets: REPLICA_SETS, skip SKIP, Workload, |o| read_as("apps", "ReplicaSet", o).map(logged));
watched!(Deployments: DEPLOYMENTS, skip SKIP_SELECTOR, Workload, |o| read_as("apps", "Deployment", o).map(logged));
watched!(StatefulSets: STATEFUL_SETS, skip SKIP, Workload, |o| read_as("apps", "StatefulSet", o).map(logged));
watched!(Jobs: JOBS, skip SKIP_SELECTOR, Workload, |o| read_as("batch", "Job", o).map(logged));
