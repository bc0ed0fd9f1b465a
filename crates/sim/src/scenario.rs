//! What can be made to happen? Short stories in a running world, for whoever wants to see one.
//!
//! **Overload** drives one node over its lines and back. On it run a shop and three batch jobs, each of which may be
//! slowed down or evicted. A rush of customers comes, [`RUSH`] after the start, and goes again:
//!
//! | | shop | batch | node |
//! |---|---|---|---|
//! | calm | 25 % | 3 × 10 % | 55 % |
//! | rush | 72 % | 3 × 10 % | more than it has: over both lines, 70 % and 85 % |
//! | batch slowed down to what it requests | 72 % | 3 × 5 % | 87 % and daemons: still over 85 % |
//! | one evicted | 72 % | 2 × 5 % | 82 % and daemons: nothing more may be taken |
//! | calm again | 25 % | 2 × 5 % → 10 % | the rest comes back, then the node is open |
//!
//! **Underrated** is a workload that asks for a fifteenth of what it uses, in a world where every third node is busy. One
//! replica runs for a while; then there are many, all at once, long before any of the new ones can be measured. By what they
//! ask for they would fit anywhere.
//!
//! **Bursts** are what nobody knows when pods are placed: every third node is busy, pods come and use little, and
//! [`BURST`] later some workloads want much more, all at once. Wherever their pods are then, nodes get over their lines; there is
//! room elsewhere.
//!
//! [Introduction](introduction) shows placement, protection and recovery in a minute, to who has just arrived.

mod introduction;

use crate::cluster::{Cluster, Failure, Key, Patch, Writer, resource};
use crate::node::{Shape, USAGE_CPU, USAGE_CPU_LATER};
use crate::tell::Teller;
use crate::workloads::{resident, residents};
use crate::world::{Options, World};
use jiff::Timestamp;
use loadline_services::agent::watched::{ACTIONS, NODE_QOS, POD_QOS};
use loadline_services::cluster::Resource;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// One node gets more load than it can take, and is protected.
    Overload,
    /// Many replicas come at once of a workload that uses far more than it asks for.
    Underrated,
    /// Workloads that used little when they were placed want much more.
    Bursts,
    /// What there is to see, in a minute.
    Introduction,
}

impl Scenario {
    /// So many nodes are needed for it.
    #[must_use]
    pub fn fewest_nodes(self) -> usize {
        match self {
            Self::Overload | Self::Underrated | Self::Bursts => 1,
            Self::Introduction => introduction::FEWEST_NODES,
        }
    }

    /// In a world that was introduced: how many pods of the burst have a node, and how many of these a busy one.
    #[must_use]
    pub fn burst_on_busy_nodes(world: &World) -> (usize, usize) {
        introduction::burst_on_busy_nodes(world.cluster())
    }

    /// When it is over, after its start, if it ends.
    #[must_use]
    pub fn ends(self) -> Option<Duration> {
        (self == Self::Introduction).then_some(introduction::END)
    }
}

/// When workloads burst.
const BURST: Duration = Duration::from_secs(24);
/// Workloads by how many replicas they have for ten nodes, and what one uses before and after, in thousandths of a CPU.
const BURSTING: [(&str, usize, i64, i64); 3] =
    [("search", 7, 300, 1200), ("render", 4, 300, 4400), ("steady", 10, 400, 400)];

/// When the other replicas come: what the first one uses is known by then.
const GROWTH: Duration = Duration::from_secs(24);
/// What a replica asks for and what it uses, in thousandths of a CPU.
const UNDERRATED: (u32, u32) = (100, 1500);

/// When customers come: everything has warmed up by then.
const RUSH: Duration = Duration::from_secs(24);
/// When they have gone.
const CALM: Duration = Duration::from_secs(48);
/// What the shop uses of its node, in percent.
const SHOP: (i64, i64) = (25, 72);
/// What a batch job may use of its node, and what it requests, in percent.
const BATCH: (i64, i64) = (10, 5);
/// The batch jobs.
const JOBS: [&str; 3] = ["batch-index", "batch-report", "batch-video"];

/// Plays a story until told to stop.
pub(crate) async fn play(
    scenario: Scenario,
    world: &Options,
    cluster: &Cluster,
    tell: Teller,
    stop: CancellationToken,
) {
    let (nodes, seed, protected) = (world.nodes, world.seed, world.protect.is_some());
    let shapes: Vec<Shape> = world.shapes().collect();
    let write = cluster.write.clone();
    let story = async {
        match (scenario, shapes.first()) {
            (Scenario::Overload, Some(first)) => overload(first, &write, &tell).await,
            (Scenario::Underrated, _) => underrated((nodes, seed), &write, &tell).await,
            (Scenario::Bursts, _) => bursts(&shapes, &write, &tell).await,
            (Scenario::Introduction, _) => introduction::play((nodes, seed), protected, cluster, &tell).await,
            (Scenario::Overload, None) => Ok(()),
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        played = story => if let Err(error) = played {
            tracing::warn!(%error, "scenario ended early");
        }
    }
}

async fn overload(on: &Shape, write: &Writer, tell: &Teller) -> Result<(), Failure> {
    for (resource, object) in rules(on) {
        write.create(resource, "", &object).await?;
    }
    write.create(resource::PODS, "default", &shop(on)).await?;
    for name in JOBS {
        write.create(resource::DEPLOYMENTS, "default", &job(name, on)).await?;
    }
    let start = tokio::time::Instant::now();
    for (at, percent, what) in
        [(RUSH, SHOP.1, "a rush of customers comes"), (CALM, SHOP.0, "the customers have gone")]
    {
        tokio::time::sleep_until(start + at).await;
        use_cpu(write, on, percent).await?;
        let what = format!("{what}, it wants {percent}% of the CPU of {}", on.name);
        tell.notice("scenario", "default/shop", what);
    }
    Ok(())
}

/// Lets the shop want so much of the CPU of its node.
async fn use_cpu(write: &Writer, on: &Shape, percent: i64) -> Result<(), Failure> {
    let patch = json!({"metadata": {"annotations": {USAGE_CPU: share(on, percent)}}});
    write.patch(resource::PODS.whole(), &Key::new("default", "shop"), Patch::Merge, &patch).await.map(drop)
}

async fn underrated((nodes, seed): (usize, u64), write: &Writer, tell: &Teller) -> Result<(), Failure> {
    let (asks, uses) = UNDERRATED;
    let replicas = 2 * nodes;
    residents(nodes, seed, write).await;
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "underrated"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "underrated"}}, "template": {
            "metadata": {"labels": {"app": "underrated"}, "annotations": {USAGE_CPU: format!("{uses}m")}},
            "spec": {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"cpu": format!("{asks}m"), "memory": "64Mi"}}}]},
        }},
    });
    write.create(resource::DEPLOYMENTS, "default", &object).await?;
    tokio::time::sleep(GROWTH).await;
    let patch = json!({"spec": {"replicas": replicas}});
    write
        .patch(resource::DEPLOYMENTS.whole(), &Key::new("default", "underrated"), Patch::Merge, &patch)
        .await?;
    let what = format!("{replicas} replicas are wanted at once; each asks for {asks}m and uses {uses}m");
    tell.notice("scenario", "default/underrated", what);
    Ok(())
}

async fn bursts(shapes: &[Shape], write: &Writer, tell: &Teller) -> Result<(), Failure> {
    let start = tokio::time::Instant::now();
    let from = Timestamp::now() + BURST;
    for busy in shapes.iter().skip(2).step_by(3) {
        write.create(resource::DEPLOYMENTS, "default", &resident(busy)).await?;
    }
    // Where nobody protects nodes there are no such kinds.
    for (resource, object) in guarding() {
        if let Err(error) = write.create(resource, "", &object).await {
            tracing::debug!(%error, "no rule of protection");
        }
    }
    // What the busy nodes use is measured before the others come.
    tokio::time::sleep_until(start + BURST / 2).await;
    for (name, replicas, before, after) in BURSTING {
        let replicas = (replicas * shapes.len()).div_ceil(10);
        let object = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": {
                "metadata": {"labels": {"app": name, "tier": if name == "render" { "batch" } else { "service" }}, "annotations": {
                    USAGE_CPU: format!("{before}m"), USAGE_CPU_LATER: format!("{after}m from {from}"),
                }},
                "spec": {"terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "simulated",
                    "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}}]},
            }},
        });
        write.create(resource::DEPLOYMENTS, "default", &object).await?;
    }
    tokio::time::sleep_until(start + BURST).await;
    for (name, _, before, after) in BURSTING.into_iter().filter(|(_, _, before, after)| after > before) {
        tell.notice(
            "scenario",
            format!("default/{name}"),
            format!("each replica wants {after}m, not {before}m"),
        );
    }
    Ok(())
}

/// A part of the CPU of a node.
fn share(of: &Shape, percent: i64) -> String {
    format!("{}m", of.cpus * 10 * percent)
}

/// A kind of protection.
fn object(kind: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec,
    })
}

/// A line through the CPU of a node.
fn rule(name: &str, percent: &str, after: i32, action: &str) -> Value {
    json!({
        "name": name, "actionName": action, "strategy": "None",
        "avoidanceThreshold": after, "restoreThreshold": 2,
        "metricRule": {"name": "cpu_total_utilization", "value": percent},
    })
}

fn slow() -> Value {
    json!({
        "coolDownSeconds": 10,
        "throttle": {"cpuThrottle": {"stepCPURatio": 40, "minCPURatio": 10}},
    })
}

/// Above 72 % of any node, batch is slowed down, and nobody is evicted.
fn guarding() -> [(Resource, Value); 3] {
    let batch = json!({"labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": ["slow-down"]});
    let all = json!({
        "selector": {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "Exists"}]},
        "nodeQualityProbe": {"nodeLocalGet": {"localCacheTTLSeconds": 10}},
        "rules": [rule("busy", "72", 2, "slow-down")],
    });
    [
        (ACTIONS, object("AvoidanceAction", "slow-down", &slow())),
        (POD_QOS, object("PodQOS", "batch", &batch)),
        (NODE_QOS, object("NodeQOS", "guard", &all)),
    ]
}

/// What is too much on the node, and what is done about it to whom.
fn rules(on: &Shape) -> [(Resource, Value); 4] {
    let evict = json!({"coolDownSeconds": 15, "eviction": {"terminationGracePeriodSeconds": 5}});
    [
        (ACTIONS, object("AvoidanceAction", "slow-down", &slow())),
        (ACTIONS, object("AvoidanceAction", "evict", &evict)),
        (
            POD_QOS,
            object(
                "PodQOS",
                "batch",
                &json!({
                    "labelSelector": {"matchLabels": {"tier": "batch"}},
                    "allowedActions": ["slow-down", "evict"],
                }),
            ),
        ),
        (
            NODE_QOS,
            object(
                "NodeQOS",
                "overload",
                &json!({
                    "selector": {"matchLabels": {"kubernetes.io/hostname": on.name}},
                    "nodeQualityProbe": {"nodeLocalGet": {"localCacheTTLSeconds": 10}},
                    "rules": [rule("busy", "70", 2, "slow-down"), rule("full", "85", 4, "evict")],
                }),
            ),
        ),
    ]
}

fn shop(on: &Shape) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "shop", "labels": {"app": "shop"}, "annotations": {USAGE_CPU: share(on, SHOP.0)}},
        "spec": {
            "nodeSelector": {"kubernetes.io/hostname": on.name},
            "containers": [{
                "name": "main", "image": "simulated",
                "resources": {"requests": {"cpu": share(on, 10), "memory": "256Mi"}},
            }],
        },
    })
}

/// A job that would like to be on the node, but runs anywhere.
fn job(name: &str, on: &Shape) -> Value {
    let labels = json!({"app": name, "tier": "batch"});
    let like = json!({"weight": 100, "preference": {"matchExpressions": [
        {"key": "kubernetes.io/hostname", "operator": "In", "values": [on.name]},
    ]}});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": labels, "annotations": {USAGE_CPU: share(on, BATCH.0)}},
                "spec": {
                    "affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [like]}},
                    "containers": [{
                        "name": "main", "image": "simulated",
                        "resources": {
                            "requests": {"cpu": share(on, BATCH.1), "memory": "128Mi"},
                            "limits": {"cpu": share(on, BATCH.0)},
                        },
                    }],
                },
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use loadline_api::json::Tree;
    use loadline_core::load::Both;
    use loadline_core::load::policy::Rules;
    use loadline_core::qos::agree::{About, disagreements};
    use loadline_core::qos::metric::Catalogue;
    use loadline_core::qos::policy::Policy;
    use std::collections::BTreeMap;

    // Else the scheduler would send pods to the very node that is being emptied.
    #[test]
    fn the_lines_are_not_below_cranes_targets() {
        let (bare, on) = (BTreeMap::new(), Shape::new(0, 1, 1));
        let labels = BTreeMap::from([("kubernetes.io/hostname".to_owned(), on.name.clone())]);
        let (mut node_rules, mut actions) = (Vec::new(), Vec::new());
        for (resource, object) in rules(&on) {
            let tree = Tree::from(&object);
            if resource == NODE_QOS {
                node_rules.push(loadline_api::qos::rules::node_qos(&tree).unwrap().0);
            } else if resource == ACTIONS {
                actions.push(loadline_api::qos::rules::action(&tree).unwrap().0);
            }
        }
        let policy = Policy::new(Catalogue::default(), &node_rules, actions, &[]);
        let has = Both { cpu: Some(on.cpus * 1_000_000_000), memory: Some(1 << 30) };
        let node = About { labels: &labels, annotations: &bare, allocatable: has, capacity: has };
        assert_eq!(disagreements(&Rules::default(), &policy, &node), []);
        let own = BTreeMap::from([("loadline.dev/target-cpu".to_owned(), "0.71".to_owned())]);
        let higher = About { annotations: &own, ..node };
        assert_eq!(
            disagreements(&Rules::default(), &policy, &higher).len(),
            1,
            "the line at 70 % is looked at"
        );
    }

    #[test]
    fn slowing_down_is_not_enough_and_one_victim_is_on_every_node() {
        // What daemons use, in thousandths of a CPU.
        let daemons = 60;
        for cpus in [4, 8, 16] {
            let part = |percent: i64| cpus * 10 * percent;
            let jobs = i64::try_from(JOBS.len()).unwrap();
            let calm = part(SHOP.0 + jobs * BATCH.0) + daemons;
            assert!(calm < part(65), "{cpus} CPUs: under crane's target, so that everybody is let in");
            let slowed = part(SHOP.1 + jobs * BATCH.1) + daemons;
            assert!(slowed > part(85), "{cpus} CPUs: still over the second line");
            // A tenth more than the gap is taken.
            assert!((slowed - part(85)) * 11 <= part(BATCH.1) * 10, "{cpus} CPUs: one job closes the gap");
        }
    }
}
