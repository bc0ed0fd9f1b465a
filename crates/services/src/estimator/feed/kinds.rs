//! Which objects count, and what is kept of them?

use crate::watch::{DROP, Kind, Without};
use loadline_api::{self as api, Context, Error};
use loadline_core::estimate::Quota;
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::load::recommend::Target;
use loadline_core::view::{NodeFacts, Owner, PodFacts};
use serde_json::Value;

/// Facts, or why there are none.
pub type Read<T> = Result<T, Error>;

/// Metadata without what is long.
const METADATA: Without = Without(&[("managedFields", DROP), ("annotations", DROP)]);

/// Nodes. Their annotations stay: load rules read them.
#[derive(Debug)]
pub struct Nodes;

impl Kind for Nodes {
    const PATH: &'static str = "/api/v1/nodes";
    const WITHOUT: Without = Without(&[
        ("metadata", Without(&[("managedFields", DROP)])),
        (
            "status",
            Without(&[
                ("addresses", DROP),
                ("conditions", DROP),
                ("images", DROP),
                ("nodeInfo", DROP),
                ("volumesAttached", DROP),
                ("volumesInUse", DROP),
            ]),
        ),
    ]);
    type Facts = Read<NodeFacts>;

    fn read(value: &Value) -> Self::Facts {
        let (facts, warnings) = api::node::facts(value)?;
        for warning in warnings {
            tracing::debug!(%warning, "a node is odd");
        }
        Ok(facts)
    }
}

/// What of a container says nothing about where its pod fits.
const CONTAINER: Without = Without(&[
    ("args", DROP),
    ("command", DROP),
    ("env", DROP),
    ("envFrom", DROP),
    ("image", DROP),
    ("lifecycle", DROP),
    ("livenessProbe", DROP),
    ("readinessProbe", DROP),
    ("securityContext", DROP),
    ("startupProbe", DROP),
    ("volumeDevices", DROP),
    ("volumeMounts", DROP),
]);

/// What of a container's status does not.
const CONTAINER_STATUS: Without = Without(&[
    ("containerID", DROP),
    ("image", DROP),
    ("imageID", DROP),
    ("user", DROP),
    ("volumeMounts", DROP),
]);

/// Pods that are not over. Volumes are left out: a pod that waits will need its room wherever they are.
#[derive(Debug)]
pub struct Pods;

impl Kind for Pods {
    const PATH: &'static str = "/api/v1/pods";
    const FIELDS: Option<&'static str> = Some("status.phase!=Succeeded,status.phase!=Failed");
    const WITHOUT: Without = Without(&[
        ("metadata", METADATA),
        (
            "spec",
            Without(&[
                ("containers", CONTAINER),
                ("initContainers", CONTAINER),
                ("ephemeralContainers", DROP),
                ("volumes", DROP),
            ]),
        ),
        (
            "status",
            Without(&[
                ("containerStatuses", CONTAINER_STATUS),
                ("initContainerStatuses", CONTAINER_STATUS),
                ("ephemeralContainerStatuses", DROP),
            ]),
        ),
    ]);
    type Facts = Read<Box<(PodFacts, Option<Unplaced>)>>;

    fn read(value: &Value) -> Self::Facts {
        // The API server has written the priority into the pod: no class is looked up.
        let (facts, _) = api::pod::facts(value, &Context::new())?;
        Ok(Box::new((facts, api::waiting::unplaced(value)?)))
    }
}

/// Replica sets, for their template and their owner.
#[derive(Debug)]
pub struct ReplicaSets;

impl Kind for ReplicaSets {
    const PATH: &'static str = "/apis/apps/v1/replicasets";
    const WITHOUT: Without = Without(&[("metadata", METADATA), ("status", DROP)]);
    type Facts = Read<(ReplicaSet, Target, Option<Owner>)>;

    fn read(value: &Value) -> Self::Facts {
        let (workload, _) = api::owners::read_as("apps", "ReplicaSet", value)?;
        Ok((api::waiting::replica_set(value)?, workload.target, workload.controller))
    }
}

/// Deployments, for their template.
#[derive(Debug)]
pub struct Deployments;

impl Kind for Deployments {
    const PATH: &'static str = "/apis/apps/v1/deployments";
    const WITHOUT: Without = Without(&[("metadata", METADATA), ("status", DROP)]);
    type Facts = Read<Deployment>;

    fn read(value: &Value) -> Self::Facts {
        api::waiting::deployment(value)
    }
}

/// Quotas.
#[derive(Debug)]
pub struct Quotas;

impl Kind for Quotas {
    const PATH: &'static str = "/api/v1/resourcequotas";
    const WITHOUT: Without = Without(&[("metadata", METADATA)]);
    type Facts = Read<Quota>;

    fn read(value: &Value) -> Self::Facts {
        api::quota::quota(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeSeed;
    use serde_json::json;

    fn pruned<K: Kind>(value: &Value) -> Value {
        let text = value.to_string();
        K::WITHOUT.deserialize(&mut serde_json::Deserializer::from_str(&text)).expect("valid JSON")
    }

    /// A pod with everything in it that facts are read from, and much that they are not.
    fn pod() -> Value {
        let container = |name: &str| {
            json!({
                "name": name, "image": "i", "command": ["c"], "args": ["a"], "env": [{"name": "A", "value": "b"}],
                "envFrom": [{"configMapRef": {"name": "m"}}], "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                "livenessProbe": {"periodSeconds": 1}, "securityContext": {"runAsUser": 1},
                "ports": [{"containerPort": 80, "hostPort": 8080}],
                "resources": {"requests": {"cpu": "1"}, "limits": {"memory": "1Gi"}},
            })
        };
        json!({
            "metadata": {
                "name": "p", "namespace": "shop", "uid": "u", "labels": {"env": "prod", "image": "x"},
                "annotations": {"a": "b"}, "managedFields": [{"fieldsV1": {"f:spec": {}}}],
                "creationTimestamp": "2025-01-01T00:00:00Z",
                "ownerReferences": [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r",
                    "controller": true}],
            },
            "spec": {
                "nodeName": "n", "priority": 7, "nodeSelector": {"env": "prod"}, "overhead": {"cpu": "10m"},
                "containers": [container("c")],
                "initContainers": [container("i"), json!({"name": "s", "restartPolicy": "Always"})],
                "tolerations": [{"key": "k", "operator": "Exists"}],
                "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution":
                    {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Exists"}]}]}}},
                "volumes": [{"name": "v", "emptyDir": {}}], "resources": {"requests": {"cpu": "3"}},
            },
            "status": {
                "phase": "Running", "podIPs": [{"ip": "1.2.3.4"}],
                "containerStatuses": [{"name": "c", "image": "i", "imageID": "x", "restartCount": 0,
                    "allocatedResources": {"cpu": "2"}, "resources": {"requests": {"cpu": "2"}},
                    "state": {"running": {"startedAt": "2025-01-01T00:00:00Z"}}}],
            },
        })
    }

    #[test]
    fn facts_are_the_same_without_what_is_skipped() {
        let pod = pod();
        let lean = pruned::<Pods>(&pod);
        for gone in ["managedFields", "volumeMounts", "livenessProbe", "\"A\"", "imageID"] {
            assert!(!lean.to_string().contains(gone), "{gone}");
        }
        let read = |value: &Value| format!("{:?}", Pods::read(value).expect("a good pod"));
        assert_eq!(read(&lean), read(&pod));

        let node = json!({
            "metadata": {"name": "n", "labels": {"images": "x"}, "annotations": {"a": "b"}, "managedFields": [1]},
            "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": true},
            "status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "5"}, "images": [{"names": ["i"]}],
                "nodeInfo": {"kernelVersion": "6"}, "conditions": [{"type": "Ready"}]},
        });
        let lean = pruned::<Nodes>(&node);
        let read = |value: &Value| format!("{:?}", Nodes::read(value).expect("a good node"));
        assert_eq!(read(&lean), read(&node));
        assert!(lean["status"].get("images").is_none());
    }

    #[test]
    fn templates_are_not_touched() {
        let template = pod();
        let set =
            json!({"metadata": {"name": "r"}, "spec": {"template": template}, "status": {"replicas": 3}});
        assert_eq!(pruned::<ReplicaSets>(&set)["spec"], set["spec"]);
        assert_eq!(pruned::<Deployments>(&set)["spec"], set["spec"]);
    }
}
