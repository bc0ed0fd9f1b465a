//! What runs without anybody doing anything? Some nodes are busy from the start, then workloads come.
//!
//! On every third node a resident asks for little and uses a lot, [`RESIDENT_PERCENT`] of the node's CPU: just
//! under the target of crane's policy. By requests those nodes look as empty as the others. [`HEAD_START`] later,
//! when that has been measured, workloads come one by one: Deployments of a few replicas, each of which follows one
//! [trace](crate::node) of a real machine and asks for what a machine of its size is given. Most use far less
//! than that, a few nearly all of it.

use crate::cluster::{Writer, resource};
use crate::node::{Shape, dice, traces};
use serde_json::{Value, json};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// One of so many nodes is busy.
const BUSY: usize = 3;
/// How much of its node's CPU a resident uses.
pub(crate) const RESIDENT_PERCENT: i64 = 60;
/// How long residents are alone.
const HEAD_START: Duration = Duration::from_secs(15);
/// Time between two workloads.
const EVERY: Duration = Duration::from_millis(1500);
/// What replicas may ask for, in thousandths of a CPU and MiB.
const SIZES: [(u32, u32); 3] = [(500, 1024), (1000, 2048), (2000, 4096)];

/// Creates so many workloads, and residents before them, for a world of that many nodes.
pub async fn create(count: usize, nodes: usize, seed: u64, write: Writer, stop: CancellationToken) {
    if count == 0 {
        return;
    }
    let all = async {
        residents(nodes, seed, &write).await;
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + HEAD_START, EVERY);
        for index in 0..count {
            ticks.tick().await;
            put(&write, &workload(index, seed)).await;
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = all => {}
    }
}

/// Is this node one of those that are busy?
pub(crate) fn is_busy(index: usize) -> bool {
    index % BUSY == BUSY - 1
}

/// Makes every third node busy.
pub(crate) async fn residents(nodes: usize, seed: u64, write: &Writer) {
    for index in (0..nodes).filter(|index| is_busy(*index)) {
        put(write, &resident(&Shape::new(index, nodes, seed))).await;
    }
}

async fn put(write: &Writer, deployment: &Value) {
    if let Err(error) = write.create(resource::DEPLOYMENTS, "default", deployment).await {
        tracing::warn!(%error, "workload not created");
    }
}

pub(crate) fn resident(on: &Shape) -> Value {
    let name = format!("resident-{}", on.name);
    let milli = on.cpus * 10 * RESIDENT_PERCENT;
    let annotations = json!({"loadline.dev/usage-cpu": format!("{milli}m")});
    let mut deployment = deployment(&name, 1, (200, 256), &annotations);
    deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": on.name});
    deployment
}

/// Workload number `index`: the same for the same seed.
fn workload(index: usize, seed: u64) -> Value {
    let roll = |what: &str, of: usize| {
        let of = u64::try_from(of).unwrap_or(1).max(1);
        usize::try_from(dice(seed, &format!("workload {index} {what}")) % of).unwrap_or(0)
    };
    let traces = traces();
    let annotations = json!({"loadline.dev/usage-trace": traces[roll("trace", traces.len())].id});
    let size = SIZES[roll("size", SIZES.len())];
    deployment(&format!("work-{index:02}"), 2 + roll("replicas", 4), size, &annotations)
}

fn deployment(name: &str, replicas: usize, (cpu, memory): (u32, u32), annotations: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations},
                "spec": {"containers": [{
                    "name": "main", "image": "simulated",
                    "resources": {"requests": {"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")}},
                }]},
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workloads_follow_from_the_seed() {
        let all = |seed| (0..12).map(|i| workload(i, seed)).collect::<Vec<_>>();
        assert_eq!(all(1), all(1));
        assert_ne!(all(1), all(2));
    }

    #[test]
    fn a_resident_stays_on_its_node_and_uses_three_fifths_of_it() {
        let shape = Shape::new(2, 10, 1);
        let template = &resident(&shape)["spec"]["template"];
        assert_eq!(template["spec"]["nodeSelector"]["kubernetes.io/hostname"], "node-02");
        let milli = format!("{}m", shape.cpus * 600);
        assert_eq!(template["metadata"]["annotations"]["loadline.dev/usage-cpu"], milli);
    }
}
