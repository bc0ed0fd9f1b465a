//! Where is a kind of object served?

use loadline_core::object::Key;

/// A kind of object, as requests name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource {
    /// Empty for the core group.
    pub group: &'static str,
    pub version: &'static str,
    /// Such as `pods`.
    pub plural: &'static str,
    /// Such as `Pod`.
    pub kind: &'static str,
}

pub const NODES: Resource = Resource::core("nodes", "Node");
pub const PODS: Resource = Resource::core("pods", "Pod");
pub const CONFIG_MAPS: Resource = Resource::core("configmaps", "ConfigMap");
pub const NAMESPACES: Resource = Resource::core("namespaces", "Namespace");
pub const CLAIMS: Resource = Resource::core("persistentvolumeclaims", "PersistentVolumeClaim");
pub const VOLUMES: Resource = Resource::core("persistentvolumes", "PersistentVolume");
pub const REPLICATION_CONTROLLERS: Resource =
    Resource::core("replicationcontrollers", "ReplicationController");
pub const SERVICES: Resource = Resource::core("services", "Service");
pub const QUOTAS: Resource = Resource::core("resourcequotas", "ResourceQuota");
pub const DEPLOYMENTS: Resource = Resource::new("apps", "v1", "deployments", "Deployment");
pub const REPLICA_SETS: Resource = Resource::new("apps", "v1", "replicasets", "ReplicaSet");
pub const STATEFUL_SETS: Resource = Resource::new("apps", "v1", "statefulsets", "StatefulSet");
pub const BUDGETS: Resource = Resource::new("policy", "v1", "poddisruptionbudgets", "PodDisruptionBudget");
pub const PRIORITY_CLASSES: Resource =
    Resource::new("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass");
pub const STORAGE_CLASSES: Resource = Resource::new("storage.k8s.io", "v1", "storageclasses", "StorageClass");
pub const CSI_NODES: Resource = Resource::new("storage.k8s.io", "v1", "csinodes", "CSINode");
pub const CSI_DRIVERS: Resource = Resource::new("storage.k8s.io", "v1", "csidrivers", "CSIDriver");
pub const CSI_STORAGE_CAPACITIES: Resource =
    Resource::new("storage.k8s.io", "v1", "csistoragecapacities", "CSIStorageCapacity");
pub const JOBS: Resource = Resource::new("batch", "v1", "jobs", "Job");
pub const RECOMMENDATIONS: Resource =
    Resource::new("analysis.crane.io", "v1alpha1", "recommendations", "Recommendation");
pub const MANAGED_CLUSTERS: Resource = Resource::ocm("v1", "managedclusters", "ManagedCluster");
pub const MANAGED_CLUSTER_SETS: Resource =
    Resource::ocm("v1beta2", "managedclustersets", "ManagedClusterSet");
pub const MANAGED_CLUSTER_SET_BINDINGS: Resource =
    Resource::ocm("v1beta2", "managedclustersetbindings", "ManagedClusterSetBinding");
pub const PLACEMENTS: Resource = Resource::ocm("v1beta1", "placements", "Placement");
pub const PLACEMENT_DECISIONS: Resource = Resource::ocm("v1beta1", "placementdecisions", "PlacementDecision");
pub const ADD_ON_PLACEMENT_SCORES: Resource =
    Resource::ocm("v1alpha1", "addonplacementscores", "AddOnPlacementScore");
pub const KARMADA_CLUSTERS: Resource = Resource::new("cluster.karmada.io", "v1alpha1", "clusters", "Cluster");
pub const RESOURCE_BINDINGS: Resource =
    Resource::new("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding");
pub const CLUSTER_RESOURCE_BINDINGS: Resource =
    Resource::new("work.karmada.io", "v1alpha2", "clusterresourcebindings", "ClusterResourceBinding");
pub const EVENTS: Resource = Resource::new("events.k8s.io", "v1", "events", "Event");
pub const LEASES: Resource = Resource::new("coordination.k8s.io", "v1", "leases", "Lease");
pub const DEFINITIONS: Resource =
    Resource::new("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition");
pub const NODE_METRICS: Resource = Resource::new("metrics.k8s.io", "v1beta1", "nodes", "NodeMetrics");
pub const POD_METRICS: Resource = Resource::new("metrics.k8s.io", "v1beta1", "pods", "PodMetrics");

impl Resource {
    #[must_use]
    pub const fn new(
        group: &'static str,
        version: &'static str,
        plural: &'static str,
        kind: &'static str,
    ) -> Self {
        Self { group, version, plural, kind }
    }

    const fn core(plural: &'static str, kind: &'static str) -> Self {
        Self::new("", "v1", plural, kind)
    }

    const fn ocm(version: &'static str, plural: &'static str, kind: &'static str) -> Self {
        Self::new(loadline_api::ocm::GROUP, version, plural, kind)
    }

    /// `v1`, `apps/v1`.
    #[must_use]
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// Where all objects of a namespace are; of the whole cluster if it is empty.
    #[must_use]
    pub fn collection(&self, namespace: &str) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let version = self.api_version();
        if namespace.is_empty() {
            format!("{root}/{version}/{}", self.plural)
        } else {
            format!("{root}/{version}/namespaces/{namespace}/{}", self.plural)
        }
    }

    /// Where one object is.
    #[must_use]
    pub fn object(&self, key: &Key) -> String {
        format!("{}/{}", self.collection(&key.namespace), key.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_the_api() {
        for (path, expected) in [
            (NODES.collection(""), "/api/v1/nodes"),
            (PODS.collection("shop"), "/api/v1/namespaces/shop/pods"),
            (NODES.object(&Key::new("", "n1")), "/api/v1/nodes/n1"),
            (DEPLOYMENTS.object(&Key::new("shop", "web")), "/apis/apps/v1/namespaces/shop/deployments/web"),
            (NODE_METRICS.collection(""), "/apis/metrics.k8s.io/v1beta1/nodes"),
        ] {
            assert_eq!(path, expected);
        }
    }
}
