//! Which objects do decisions depend on, and what is kept of them?

use crate::cluster::resource::{
    BUDGETS, CLAIMS, CSI_NODES, NAMESPACES, NODES, PODS, PRIORITY_CLASSES, Resource, STORAGE_CLASSES, VOLUMES,
};
use crate::cluster::watch::{DROP, MANAGED_FIELDS, Skip};
use crate::cluster::{Event, Watched};
use crate::sources::metrics_api::Measurements;
use loadline_api::context::{Claim, CsiNode, PersistentVolume, PriorityClass, StorageClass};
use loadline_api::{self as api, Error, Warning};
use loadline_core::view::{Budget, NodeFacts};
use serde_json::Value;

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

/// A kind, what of it is skipped, and how it is read.
macro_rules! watched {
    ($name:ident: $resource:ident, skip $skip:expr, $facts:ty, $read:expr) => {
        #[derive(Debug)]
        pub(super) struct $name;

        impl Watched for $name {
            const RESOURCE: Resource = $resource;
            const SKIP: Skip = $skip;
            type Facts = $facts;

            fn read(object: &Value) -> Result<$facts, Error> {
                $read(object)
            }
        }
    };
}

/// What of a node nobody decides by.
const NODE: Skip = Skip(&[
    ("metadata", Skip(&[("managedFields", DROP)])),
    ("status", Skip(&[("conditions", DROP), ("images", DROP), ("nodeInfo", DROP)])),
]);

/// What of a container nobody decides by.
const CONTAINER: Skip = Skip(&[
    ("args", DROP),
    ("command", DROP),
    ("env", DROP),
    ("envFrom", DROP),
    ("lifecycle", DROP),
    ("livenessProbe", DROP),
    ("readinessProbe", DROP),
    ("securityContext", DROP),
    ("startupProbe", DROP),
    ("volumeMounts", DROP),
]);

/// What of a pod nobody decides by.
const POD: Skip = Skip(&[
    ("metadata", Skip(&[("managedFields", DROP), ("annotations", DROP)])),
    (
        "spec",
        Skip(&[("containers", CONTAINER), ("initContainers", CONTAINER), ("ephemeralContainers", DROP)]),
    ),
    ("status", Skip(&[("ephemeralContainerStatuses", DROP)])),
]);

watched!(Nodes: NODES, skip NODE, NodeFacts, |o| api::node::facts(o).map(logged));
watched!(Pods: PODS, skip POD, Box<api::pod::Pod>, |o| api::pod::read(o).map(logged).map(Box::new));
watched!(Namespaces: NAMESPACES, skip MANAGED_FIELDS, api::cluster::Namespace, api::cluster::namespace_labels);
watched!(PriorityClasses: PRIORITY_CLASSES, skip MANAGED_FIELDS, PriorityClass, api::context::priority_class);
watched!(Claims: CLAIMS, skip MANAGED_FIELDS, Claim, api::context::claim);
watched!(Volumes: VOLUMES, skip MANAGED_FIELDS, PersistentVolume, api::context::volume);
watched!(StorageClasses: STORAGE_CLASSES, skip MANAGED_FIELDS, StorageClass, api::context::storage_class);
watched!(CsiNodes: CSI_NODES, skip MANAGED_FIELDS, CsiNode, api::context::csi_node);
watched!(Budgets: BUDGETS, skip MANAGED_FIELDS, Budget, |o| api::cluster::budget(o).map(logged));

/// What was read; what is odd about it goes to the log.
fn logged<T>((read, warnings): (T, Vec<Warning>)) -> T {
    for warning in warnings {
        tracing::debug!(%warning, "object has a problem");
    }
    read
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeSeed;
    use serde_json::json;

    #[test]
    fn pods_are_the_same_without_what_is_skipped() {
        let container = json!({
            "name": "c", "image": "i", "env": [{"name": "A"}], "volumeMounts": [{"name": "v"}],
            "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "1"}},
        });
        let pod = json!({
            "metadata": {"name": "p", "namespace": "shop", "uid": "u", "managedFields": [1], "generation": 3,
                "annotations": {"a": "b"}},
            "spec": {"schedulerName": "loadline", "containers": [container], "initContainers": [container],
                "volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]},
            "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "message": "full"}]},
        });
        let lean = POD.deserialize(&mut serde_json::Deserializer::from_str(&pod.to_string())).unwrap();
        assert!(!lean.to_string().contains("volumeMounts") && !lean.to_string().contains("annotations"));
        let read = |value: &Value| format!("{:?}", Pods::read(value).unwrap());
        assert_eq!(read(&lean), read(&pod));
        let read = Pods::read(&lean).unwrap();
        assert_eq!((read.scheduler.as_str(), read.generation), ("loadline", 3));
        assert_eq!(read.unschedulable.as_deref(), Some("full"));
    }
}
