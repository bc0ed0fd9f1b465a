//! A fleet on the same server: clusters of both kinds, placements and bindings.

use crate::front::Front;
use crate::hands::Hands;
use crate::plan::Fleet;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};

/// Cores a cluster of the fleet has, and what a replica asks for.
pub(crate) const CORES: u64 = 4;

/// The kinds that are not built in.
pub(crate) fn definitions() -> &'static [Value] {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    READ.get_or_init(|| {
        let texts = loadline_api::qos::DEFINITIONS.iter().chain([&loadline_api::recommendation::DEFINITION]);
        texts.filter_map(|text| serde_saphyr::from_str(text).ok()).collect()
    })
}

/// Those of the fleet.
fn fleet_definitions() -> &'static [Value] {
    static READ: OnceLock<Vec<Value>> = OnceLock::new();
    READ.get_or_init(|| {
        let texts = loadline_api::ocm::DEFINITIONS.iter();
        let mut all: Vec<Value> = texts.filter_map(|text| serde_saphyr::from_str(text).ok()).collect();
        all.extend([
            karmada("cluster.karmada.io", "v1alpha1", "clusters", "Cluster", "Cluster"),
            karmada("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding", "Namespaced"),
            karmada(
                "work.karmada.io",
                "v1alpha2",
                "clusterresourcebindings",
                "ClusterResourceBinding",
                "Cluster",
            ),
        ]);
        all
    })
}

/// A kind of Karmada's, with whatever fields; its status is written apart.
fn karmada(group: &str, version: &str, plural: &str, kind: &str, scope: &str) -> Value {
    let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": open, "status": open}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": scope,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
            "versions": [{"name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}],
        },
    })
}

const OCM: &str = "/apis/cluster.open-cluster-management.io";
const KARMADA: &str = "/apis/cluster.karmada.io/v1alpha1/clusters";
const BINDINGS: &str = "/apis/work.karmada.io/v1alpha2/namespaces/default/resourcebindings";

/// What people and members of a fleet write.
pub(crate) async fn run(front: Front, fleet: Fleet) {
    if fleet.clusters == 0 {
        return;
    }
    let hands = Hands::new(&front, "fleet");
    for definition in fleet_definitions() {
        hands.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    }
    let object = |version: &str, kind: &str, name: &str, spec: Value| {
        json!({"apiVersion": format!("cluster.open-cluster-management.io/{version}"), "kind": kind,
            "metadata": {"name": name}, "spec": spec})
    };
    hands
        .create(
            "/api/v1/namespaces",
            &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}}),
        )
        .await;
    hands
        .create(
            &format!("{OCM}/v1beta2/managedclustersets"),
            &object("v1beta2", "ManagedClusterSet", "main", json!({})),
        )
        .await;
    let bound = object("v1beta2", "ManagedClusterSetBinding", "main", json!({"clusterSet": "main"}));
    hands.create(&format!("{OCM}/v1beta2/namespaces/team/managedclustersetbindings"), &bound).await;
    for cluster in 0..fleet.clusters {
        let name = format!("c{cluster}");
        let mut managed = object("v1", "ManagedCluster", &name, json!({"hubAcceptsClient": true}));
        managed["metadata"]["labels"] = json!({"cluster.open-cluster-management.io/clusterset": "main"});
        hands.create(&format!("{OCM}/v1/managedclusters"), &managed).await;
        let member = json!({"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster",
            "metadata": {"name": name}, "spec": {"syncMode": "Push"}});
        hands.create(KARMADA, &member).await;
    }
    for (index, placed) in fleet.placements.iter().enumerate() {
        let mut spec = grouped(placed.per_group);
        spec["numberOfClusters"] = json!(placed.count);
        let placement = object("v1beta1", "Placement", &format!("pl{index}"), spec);
        hands.create(&format!("{OCM}/v1beta1/namespaces/team/placements"), &placement).await;
    }
    let mut sizes: Vec<u64> = fleet.placements.iter().map(|placed| placed.per_group).collect();
    let mut ready: Vec<Option<bool>> = vec![None; fleet.clusters];
    let mut bound = vec![false; fleet.bindings.len()];
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        ticks.tick().await;
        for (cluster, said) in ready.iter_mut().enumerate() {
            let is = !front.floor().clusters_away.contains(&cluster);
            if *said != Some(is) {
                *said = Some(is);
                say(&hands, cluster, is).await;
            }
        }
        for (index, known) in sizes.iter_mut().enumerate() {
            let size = front.floor().regrouped.get(&index).copied().unwrap_or(*known);
            if size != *known {
                *known = size;
                let path = format!("{OCM}/v1beta1/namespaces/team/placements/pl{index}");
                hands.patch(&path, &json!({"spec": grouped(size)})).await;
            }
        }
        for (index, (at, replicas)) in fleet.bindings.iter().enumerate() {
            if !bound[index] && front.at() >= *at {
                bound[index] = true;
                hands.create(BINDINGS, &binding(index, *replicas)).await;
            }
        }
    }
}

/// How many clusters of a placement are in one group.
fn grouped(size: u64) -> Value {
    let strategy = if size > 0 { json!({"clustersPerDecisionGroup": size}) } else { Value::Null };
    json!({"decisionStrategy": {"groupStrategy": strategy}})
}

/// Whether a cluster is there.
async fn say(hands: &Hands, cluster: usize, is: bool) {
    let status = if is { "True" } else { "False" };
    let available = json!([{"type": "ManagedClusterConditionAvailable", "status": status, "reason": "Chaos",
        "message": "", "lastTransitionTime": "2026-01-05T08:00:00Z"}]);
    let has = json!({"cpu": CORES.to_string(), "memory": "64Gi"});
    let managed = json!({"status": {"conditions": available, "allocatable": has, "capacity": has}});
    hands.patch(&format!("{OCM}/v1/managedclusters/c{cluster}/status"), &managed).await;
    let taint = json!([{"key": "chaos/away", "effect": "NoSelect", "timeAdded": "2026-01-05T08:00:00Z"}]);
    let taints = json!({"spec": {"taints": if is { Value::Null } else { taint }}});
    hands.patch(&format!("{OCM}/v1/managedclusters/c{cluster}"), &taints).await;
    let apis =
        json!([{"groupVersion": "apps/v1", "resources": [{"kind": "Deployment", "name": "deployments"}]}]);
    let member = json!({"status": {
        "apiEnablements": apis, "conditions": [{"type": "Ready", "status": status}],
        "resourceSummary": {"allocatable": {"cpu": CORES.to_string(), "memory": "640Gi", "pods": "1000"}},
    }});
    hands.patch(&format!("{KARMADA}/c{cluster}/status"), &member).await;
    // What Karmada's controllers do about it.
    let taint = json!([{"key": "cluster.karmada.io/not-ready", "effect": "NoSchedule"}]);
    let taints = json!({"spec": {"taints": if is { Value::Null } else { taint }}});
    hands.patch(&format!("{KARMADA}/c{cluster}"), &taints).await;
}

/// So many replicas of a core each, by how many fit.
fn binding(index: usize, replicas: u64) -> Value {
    let name = format!("b{index}");
    json!({
        "apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": name, "namespace": "default",
            "labels": {"propagationpolicy.karmada.io/permanent-id": "some"}},
        "spec": {
            "schedulerName": "loadline",
            "resource": {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "default", "name": name, "uid": format!("uid-{name}")},
            "replicas": replicas,
            "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
            "placement": {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                "weightPreference": {"dynamicWeight": "AvailableReplicas"}}},
        },
    })
}
