//! Where totals mislead: two Deployments of one replica that asks for 12 cpu, each bound twice, once for the controller that asks
//! estimators and once for one that goes by totals alone.
//!
//! | | member1: 10 nodes of 8 cpu | member2: 2 nodes of 16 cpu, `key=value` | member3: 10 nodes of 16 cpu |
//! |---|---|---|---|
//! | `solver`, by totals | ⌊79 ÷ 12⌋ = **6** | ⌊31.8 ÷ 12⌋ = 2 | |
//! | `solver`, node by node | 10 × ⌊7.9 ÷ 12⌋ = 0 | 2 × ⌊15.9 ÷ 12⌋ = **2** | |
//! | `labelled`, by totals | | 2 | ⌊159 ÷ 12⌋ = **13** |
//! | `labelled`, node by node | | **2** | no node has the label: 0 |
//!
//! A tenth of a cpu of each node is the system's.

use loadline_services::cluster::resource::{DEPLOYMENTS, RESOURCE_BINDINGS};
use loadline_services::cluster::{Resource, Writer};
use loadline_sim::node::Machines;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// By whom a binding wants to be scheduled that goes by totals alone.
pub const SCHEDULER: &str = "by-totals";

/// How many nodes each member has, and which.
pub const MACHINES: [(usize, Machines); 3] = [
    (10, Machines { cpus: Some(8), label: None, gpus: 0 }),
    (2, Machines { cpus: Some(16), label: Some(("key", "value")), gpus: 0 }),
    (10, Machines { cpus: Some(16), label: None, gpus: 0 }),
];

/// Time between two of them, so that each can be followed.
const PAUSE: Duration = Duration::from_secs(2);

/// Brings one after the other.
pub async fn play(writer: Writer, stop: CancellationToken) {
    for objects in all() {
        if stop.run_until_cancelled(tokio::time::sleep(PAUSE)).await.is_none() {
            return;
        }
        for (of, object) in objects {
            if let Err(failure) = writer.create(of, "default", &object).await {
                tracing::warn!(%failure, "the story ends early");
                return;
            }
        }
    }
}

/// The Deployments, and how each is bound.
fn all() -> Vec<[(Resource, Value); 2]> {
    let stories = [
        ("solver", json!({}), ["member1", "member2"]),
        ("labelled", json!({"key": "value"}), ["member2", "member3"]),
    ];
    let both = |(name, selector, clusters): (&str, Value, [&str; 2])| {
        let by_totals = format!("{name}-by-totals");
        [
            told(name, "default-scheduler", &selector, clusters),
            told(&by_totals, SCHEDULER, &selector, clusters),
        ]
    };
    stories.into_iter().flat_map(both).collect()
}

fn told(name: &str, scheduler: &str, selector: &Value, clusters: [&str; 2]) -> [(Resource, Value); 2] {
    let asks = json!({"cpu": "12"});
    let labels = json!({"app": name});
    let container = json!({"name": "main", "image": "solver", "resources": {"requests": asks}});
    let deployment = json!({
        "apiVersion": DEPLOYMENTS.api_version(), "kind": DEPLOYMENTS.kind, "metadata": {"name": name, "labels": labels},
        "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"nodeSelector": selector, "containers": [container]}}},
    });
    let binding = json!({
        "apiVersion": RESOURCE_BINDINGS.api_version(), "kind": RESOURCE_BINDINGS.kind,
        // Without a policy behind it no binding is scheduled.
        "metadata": {"name": format!("{name}-deployment"), "labels": {"propagationpolicy.karmada.io/permanent-id": "up"}},
        "spec": {
            "schedulerName": scheduler,
            "resource": {"apiVersion": DEPLOYMENTS.api_version(), "kind": DEPLOYMENTS.kind, "namespace": "default", "name": name},
            "replicas": 1,
            "replicaRequirements": {"resourceRequest": asks, "nodeClaim": {"nodeSelector": selector}},
            "placement": {"clusterAffinity": {"clusterNames": clusters}, "replicaScheduling":
                {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}},
        },
    });
    [(DEPLOYMENTS, deployment), (RESOURCE_BINDINGS, binding)]
}
