//! Which kinds of objects are there? Each is declared here once; what a command reads is a list of these.

use loadline_api::qos::{VERSION as CRANE, snapshot};
use loadline_api::{karmada, policy, rebalance, scheduler, workload};

/// A kind of object, and the API versions of it that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Such as `Deployment`. No two kinds share one.
    pub name: &'static str,
    /// Such as `apps/v1`; all are read alike.
    pub versions: &'static [&'static str],
    /// Does it report what somebody saw? Nobody can be asked to write that better: who reads it says what of it can be
    /// used.
    pub(crate) observed: bool,
}

impl Kind {
    pub const CLUSTER: Self = Self::new(karmada::CLUSTER.1, &[karmada::CLUSTER.0]);
    pub const CLUSTER_PROPAGATION_POLICY: Self = Self::new(karmada::POLICIES[1].1, &[karmada::POLICIES[1].0]);
    pub const CLUSTER_RESOURCE_BINDING: Self = Self::new(karmada::BINDINGS[1].1, &[karmada::BINDINGS[1].0]);
    pub const PROPAGATION_POLICY: Self = Self::new(karmada::POLICIES[0].1, &[karmada::POLICIES[0].0]);
    pub const RESOURCE_BINDING: Self = Self::new(karmada::BINDINGS[0].1, &[karmada::BINDINGS[0].0]);

    pub const CRON_JOB: Self = Self::new("CronJob", &["batch/v1"]);
    pub const CSI_DRIVER: Self = Self::new("CSIDriver", &["storage.k8s.io/v1"]);
    pub const CSI_NODE: Self = Self::new("CSINode", &["storage.k8s.io/v1"]);
    pub const CSI_STORAGE_CAPACITY: Self = Self::new("CSIStorageCapacity", &["storage.k8s.io/v1"]);
    pub const DEFINITION: Self = Self::observed("CustomResourceDefinition", &["apiextensions.k8s.io/v1"]);
    pub const DAEMON_SET: Self = Self::new("DaemonSet", &["apps/v1"]);
    pub const DEPLOYMENT: Self = Self::new("Deployment", &["apps/v1"]);
    pub const EVENT: Self = Self::observed("Event", &["v1", "events.k8s.io/v1"]);
    pub const JOB: Self = Self::new("Job", &["batch/v1"]);
    pub const LEASE: Self = Self::observed("Lease", &["coordination.k8s.io/v1"]);
    pub const NAMESPACE: Self = Self::new("Namespace", &["v1"]);
    pub const NODE: Self = Self::new("Node", &["v1"]);
    pub const NODE_METRICS: Self = Self::observed("NodeMetrics", &["metrics.k8s.io/v1beta1"]);
    pub const PERSISTENT_VOLUME: Self = Self::new("PersistentVolume", &["v1"]);
    pub const PERSISTENT_VOLUME_CLAIM: Self = Self::new("PersistentVolumeClaim", &["v1"]);
    pub const POD: Self = Self::new("Pod", &["v1"]);
    pub const POD_DISRUPTION_BUDGET: Self = Self::new("PodDisruptionBudget", &["policy/v1"]);
    pub const POD_METRICS: Self = Self::observed("PodMetrics", &["metrics.k8s.io/v1beta1"]);
    pub const POD_TEMPLATE: Self = Self::new("PodTemplate", &["v1"]);
    pub const PRIORITY_CLASS: Self = Self::new("PriorityClass", &["scheduling.k8s.io/v1"]);
    pub const REPLICA_SET: Self = Self::new("ReplicaSet", &["apps/v1"]);
    pub const REPLICATION_CONTROLLER: Self = Self::new("ReplicationController", &["v1"]);
    pub const RESOURCE_QUOTA: Self = Self::new("ResourceQuota", &["v1"]);
    pub const SERVICE: Self = Self::new("Service", &["v1"]);
    pub const STATEFUL_SET: Self = Self::new("StatefulSet", &["apps/v1"]);
    pub const STORAGE_CLASS: Self = Self::new("StorageClass", &["storage.k8s.io/v1"]);

    pub const ADD_ON_PLACEMENT_SCORE: Self =
        Self::new("AddOnPlacementScore", &["cluster.open-cluster-management.io/v1alpha1"]);
    pub const MANAGED_CLUSTER: Self = Self::new("ManagedCluster", &["cluster.open-cluster-management.io/v1"]);
    pub const MANAGED_CLUSTER_SET: Self = Self::new(
        "ManagedClusterSet",
        &["cluster.open-cluster-management.io/v1beta2", "cluster.open-cluster-management.io/v1beta1"],
    );
    pub const MANAGED_CLUSTER_SET_BINDING: Self = Self::new(
        "ManagedClusterSetBinding",
        &["cluster.open-cluster-management.io/v1beta2", "cluster.open-cluster-management.io/v1beta1"],
    );
    pub const PLACEMENT: Self = Self::new(
        "Placement",
        &["cluster.open-cluster-management.io/v1beta1", "cluster.open-cluster-management.io/v1alpha1"],
    );
    pub const PLACEMENT_DECISION: Self = Self::new(
        "PlacementDecision",
        &["cluster.open-cluster-management.io/v1beta1", "cluster.open-cluster-management.io/v1alpha1"],
    );

    pub const AVOIDANCE_ACTION: Self = Self::new("AvoidanceAction", &[CRANE]);
    pub const NODE_QOS: Self = Self::new("NodeQOS", &[CRANE]);
    pub const NODE_QOS_ENSURANCE_POLICY: Self = Self::new("NodeQOSEnsurancePolicy", &[CRANE]);
    pub const POD_QOS: Self = Self::new("PodQOS", &[CRANE]);
    pub const POD_QOS_ENSURANCE_POLICY: Self = Self::new("PodQOSEnsurancePolicy", &[CRANE]);
    pub const RECOMMENDATION: Self = Self::new("Recommendation", &["analysis.crane.io/v1alpha1"]);
    pub const SERVICE_POLICY: Self = Self::new("ServicePolicy", &[CRANE]);

    pub const ASSUMED_WORKLOAD: Self = Self::new(workload::ASSUMED.1, &[workload::ASSUMED.0]);
    pub const LOAD_POLICY: Self = Self::new(policy::POLICY.1, &[policy::POLICY.0]);
    pub const LOAD_SETTINGS: Self = Self::new(policy::SETTINGS.1, &[policy::SETTINGS.0]);
    pub const REBALANCE_SETTINGS: Self = Self::new(rebalance::SETTINGS.1, &[rebalance::SETTINGS.0]);
    pub const SCHEDULER_CONFIGURATION: Self =
        Self::new(scheduler::CONFIGURATION.1, &[scheduler::CONFIGURATION.0]);
    pub const NODE_SNAPSHOT: Self = Self::new(snapshot::SNAPSHOT.1, &[snapshot::SNAPSHOT.0]);

    const fn new(name: &'static str, versions: &'static [&'static str]) -> Self {
        Self { name, versions, observed: false }
    }

    const fn observed(name: &'static str, versions: &'static [&'static str]) -> Self {
        Self { name, versions, observed: true }
    }
}

/// The one of these kinds an object says it is, or what is wrong with what it says: a path and a sentence.
pub(crate) fn find(kinds: &[Kind], version: &str, name: &str) -> Result<Kind, (&'static str, String)> {
    let Some(kind) = kinds.iter().find(|kind| kind.name == name) else {
        return Err(("kind", format!("unknown kind {name}, expected {}", meant(kinds, version, name))));
    };
    if kind.versions.contains(&version) {
        return Ok(*kind);
    }
    let versions = kind.versions.join(" or ");
    Err(("apiVersion", format!("unknown API version {version:?} of {name}, expected {versions}")))
}

/// Is it certainly none of these kinds, and not one of them misspelt? One of the same name in another API group is another.
pub(crate) fn is_another(kinds: &[Kind], version: &str, name: &str) -> bool {
    let near = |kind: &&Kind| kind.in_group_of(version) && is_near(kind.name, name);
    !name.ends_with("List") && !kinds.iter().any(|kind| near(&kind))
}

/// What may have been meant.
fn meant(kinds: &[Kind], version: &str, name: &str) -> String {
    let near = kinds.iter().find(|kind| kind.in_group_of(version) && is_near(kind.name, name));
    near.map_or_else(|| format!("one of {}", names(kinds)), |kind| kind.name.to_owned())
}

pub(crate) fn names(kinds: &[Kind]) -> String {
    kinds.iter().map(|kind| kind.name).collect::<Vec<_>>().join(", ")
}

impl Kind {
    fn in_group_of(&self, version: &str) -> bool {
        let group = |version: &str| version.split_once('/').map(|(group, _)| group.to_owned());
        self.versions.iter().any(|known| group(known) == group(version))
    }
}

/// The same but for capitals, or but for one letter: one too many, one too few, another one, or two exchanged.
fn is_near(one: &str, other: &str) -> bool {
    let (one, other) = (one.to_ascii_lowercase(), other.to_ascii_lowercase());
    let (a, b) = (one.as_bytes(), other.as_bytes());
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[start..], &b[start..]);
    let end = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    match (&a[..a.len() - end], &b[..b.len() - end]) {
        ([] | [_], [] | [_]) => true,
        ([a, b], [c, d]) => a == d && b == c,
        _ => false,
    }
}

/// Lists of kinds as one; `N` is how many there are.
pub(crate) const fn concat<const N: usize>(lists: &[&[Kind]]) -> [Kind; N] {
    let mut all = [Kind::NODE; N];
    let (mut list, mut at, mut next) = (0, 0, 0);
    while list < lists.len() {
        while at < lists[list].len() {
            all[next] = lists[list][at];
            (at, next) = (at + 1, next + 1);
        }
        (list, at) = (list + 1, 0);
    }
    assert!(next == N, "N is how many there are");
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        DivideInput, EstimateInput, PlaceInput, PolicyInput, ProtectInput, RebalanceInput, ScheduleInput,
    };
    use loadline_api::{ocm, qos};
    use loadline_apiserver::validation::builtin_kind;
    use std::collections::BTreeMap;

    const INPUTS: [&[Kind]; 7] = [
        ScheduleInput::KINDS,
        EstimateInput::KINDS,
        DivideInput::KINDS,
        PlaceInput::KINDS,
        ProtectInput::KINDS,
        PolicyInput::KINDS,
        RebalanceInput::KINDS,
    ];

    #[test]
    fn a_name_stands_for_one_kind_and_no_input_lists_it_twice() {
        let mut known: BTreeMap<&str, Kind> = BTreeMap::new();
        for kinds in INPUTS {
            for (at, kind) in kinds.iter().enumerate() {
                assert_eq!(known.entry(kind.name).or_insert(*kind), kind);
                assert!(!kinds[..at].contains(kind), "{}", kind.name);
            }
        }
    }

    #[test]
    fn every_kind_is_held_to_something_or_read_by_us_alone() {
        let defined = |name: &str| {
            let line = format!("\n    kind: {name}\n");
            ocm::DEFINITIONS.iter().chain(&qos::DEFINITIONS).any(|definition| definition.contains(&line))
        };
        let built_in = |kind: &Kind| {
            kind.versions.iter().all(|api_version| {
                let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
                builtin_kind(group, version, kind.name).is_some()
            })
        };
        let mut others: Vec<&str> = Vec::new();
        for kind in INPUTS.into_iter().flatten().filter(|kind| !kind.observed) {
            if !built_in(kind) && !defined(kind.name) && !others.contains(&kind.name) {
                others.push(kind.name);
            }
        }
        others.sort_unstable();
        assert_eq!(
            others,
            [
                "AssumedWorkload",
                "Cluster",
                "ClusterPropagationPolicy",
                "ClusterResourceBinding",
                "DynamicSchedulerPolicy",
                "LoadSettings",
                "NodeQOSEnsurancePolicy",
                "NodeSnapshot",
                "PodQOSEnsurancePolicy",
                "PropagationPolicy",
                "RebalanceSettings",
                "Recommendation",
                "ResourceBinding",
                "ServicePolicy",
            ]
        );
    }

    #[test]
    fn a_kind_is_another_unless_it_is_one_of_these_misspelt() {
        let kinds = [Kind::NODE, Kind::POD, Kind::DEPLOYMENT, Kind::CLUSTER];
        for (version, name, another) in [
            ("v1", "Secret", true),
            ("v1", "Node", false),
            ("v2", "Node", false),
            ("v1", "node", false),
            ("v1", "Nodee", false),
            ("v1", "Noed", false),
            ("v1", "Nde", false),
            ("v1", "List", false),
            ("apps/v1", "Deploymant", false),
            ("apps/v1beta1", "Deployment", false),
            ("apps/v1", "DaemonSet", true),
            ("cluster.x-k8s.io/v1beta1", "Cluster", true),
            ("cluster.karmada.io/v1alpha1", "Cluster", false),
            ("example.com/v1", "Node", true),
        ] {
            assert_eq!(is_another(&kinds, version, name), another, "{version} {name}");
        }
        let (path, text) = find(&kinds, "v1", "Nodee").unwrap_err();
        assert_eq!((path, &*text), ("kind", "unknown kind Nodee, expected Node"));
    }

    #[test]
    fn what_is_not_read_is_told_with_what_is() {
        let kinds = [Kind::POD, Kind::EVENT];
        for (version, name, expected) in [
            ("v1", "Pod", Ok(Kind::POD)),
            ("events.k8s.io/v1", "Event", Ok(Kind::EVENT)),
            ("v1", "Secret", Err(("kind", "unknown kind Secret, expected one of Pod, Event".to_owned()))),
            (
                "v2",
                "Event",
                Err((
                    "apiVersion",
                    "unknown API version \"v2\" of Event, expected v1 or events.k8s.io/v1".to_owned(),
                )),
            ),
        ] {
            assert_eq!(find(&kinds, version, name), expected, "{version} {name}");
        }
    }
}
