//! Which objects count, and what is kept of them?

use crate::cluster::resource::{DEPLOYMENTS, NODES, PODS, QUOTAS, REPLICA_SETS, Resource};
use crate::cluster::watch::{DROP, Skip, Watched};
use loadline_api::{self as api, Context, Error};
use loadline_core::estimate::Quota;
use loadline_core::estimate::waiting::{Deployment, ReplicaSet, Unplaced};
use loadline_core::load::recommend::Target;
use loadline_core::view::{NodeFacts, Owner, PodFacts};
use serde_json::Value;

/// Metadata without what is long.
const METADATA: Skip = Skip(&[("managedFields", DROP), ("annotations", DROP)]);

/// Nodes. Their annotations stay: load rules read them.
#[derive(Debug)]
pub struct Nodes;

impl Watched for Nodes {
    const RESOURCE: Resource = NODES;
    const SKIP: Skip = Skip(&[
        ("metadata", Skip(&[("managedFields", DROP)])),
        (
            "status",
            Skip(&[
                ("addresses", DROP),
                ("conditions", DROP),
                ("images", DROP),
                ("nodeInfo", DROP),
                ("volumesAttached", DROP),
                ("volumesInUse", DROP),
            ]),
        ),
    ]);
    type Facts = NodeFacts;

    fn read(value: &Value) -> Result<Self::Facts, Error> {
        let (facts, warnings) = api::node::facts(value)?;
        for warning in warnings {
            tracing::debug!(%warning, "node has a problem");
        }
        Ok(facts)
    }
}

/// What of a container says nothing about where its pod fits.
const CONTAINER: Skip = Skip(&[
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
const CONTAINER_STATUS: Skip = Skip(&[
    ("containerID", DROP),
    ("image", DROP),
    ("imageID", DROP),
    ("user", DROP),
    ("volumeMounts", DROP),
]);

/// Pods that are not over. Volumes are left out: a pod that waits will need its room wherever they are.
#[derive(Debug)]
pub struct Pods;

impl Watched for Pods {
    const RESOURCE: Resource = PODS;
    const FIELDS: Option<&'static str> = Some("status.phase!=Succeeded,status.phase!=Failed");
    const SKIP: Skip = Skip(&[
        ("metadata", METADATA),
        (
            "spec",
            Skip(&[
                ("containers", CONTAINER),
                ("initContainers", CONTAINER),
                ("ephemeralContainers", DROP),
                ("volumes", DROP),
            ]),
        ),
        (
            "status",
            Skip(&[
                ("containerStatuses", CONTAINER_STATUS),
                ("initContainerStatuses", CONTAINER_STATUS),
                ("ephemeralContainerStatuses", DROP),
            ]),
        ),
    ]);
    type Facts = Box<(PodFacts, Option<Unplaced>)>;

    fn read(value: &Value) -> Result<Self::Facts, Error> {
        // The API server has written the priority into the pod: no class is looked up.
        let (facts, _) = api::pod::facts(value, &Context::new())?;
        Ok(Box::new((facts, api::waiting::unplaced(value)?)))
    }
}

/// Replica sets, for their template and their owner.
#[derive(Debug)]
pub struct ReplicaSets;

impl Watched for ReplicaSets {
    const RESOURCE: Resource = REPLICA_SETS;
    const SKIP: Skip = Skip(&[("metadata", METADATA), ("status", DROP)]);
    type Facts = (ReplicaSet, Target, Option<Owner>);

    fn read(value: &Value) -> Result<Self::Facts, Error> {
        let (workload, _) = api::owners::read_as("apps", "ReplicaSet", value)?;
        Ok((api::waiting::replica_set(value)?, workload.target, workload.controller))
    }
}

/// Deployments, for their template.
#[derive(Debug)]
pub struct Deployments;

impl Watched for Deployments {
    const RESOURCE: Resource = DEPLOYMENTS;
    const SKIP: Skip = Skip(&[("metadata", METADATA), ("status", DROP)]);
    type Facts = Deployment;

    fn read(value: &Value) -> Result<Self::Facts, Error> {
        api::waiting::deployment(value)
    }
}

/// Quotas.
#[derive(Debug)]
pub struct Quotas;

impl Watched for Quotas {
    const RESOURCE: Resource = QUOTAS;
    const SKIP: Skip = Skip(&[("metadata", METADATA)]);
    type Facts = Quota;

    fn read(value: &Value) -> Result<Self::Facts, Error> {
        api::quota::quota(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeSeed;
    use serde_json::json;

    fn pruned<W: Watched>(value: &Value) -> Value {
        let text = value.to_string();
        W::SKIP.deserialize(&mut serde_json::Deserializer::from_str(&text)).expect("valid JSON")
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
