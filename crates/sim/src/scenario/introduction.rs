//! What does somebody see who has just arrived? Placement, protection and recovery, one after the other, in a minute.
//!
//! | from | happens | seen |
//! |---|---|---|
//! | 0 s | every third node is busy, though hardly anything is requested there; a shop and batch jobs come to the first | |
//! | [`BURST`] | many replicas at once, which by requests would fit on the busy nodes | they are avoided |
//! | [`RUSH`] | the shop wants more than its node has left | batch jobs are slowed down, one is evicted and goes elsewhere |
//! | [`CALM`] | the shop wants what it wanted before | the others get back what they had, the node is open again |
//! | [`END`] | | |
//!
//! A replica of the burst uses an eighth of the largest node: too much for what is left of any busy one.

use super::{JOBS, SHOP, job, rules, shop, use_cpu};
use crate::cluster::{Cluster, Failure, Pod, resource};
use crate::node::{Shape, USAGE_CPU};
use crate::tell::Teller;
use crate::workloads::{is_busy, residents};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// When many pods come: everything has warmed up by then, and what the busy nodes use has been measured.
const BURST: Duration = Duration::from_secs(27);
/// When customers come.
const RUSH: Duration = Duration::from_secs(30);
/// When they have gone.
const CALM: Duration = Duration::from_secs(44);
/// When everything has been given back.
pub(super) const END: Duration = Duration::from_secs(59);
/// Fewer nodes leave nowhere to go.
pub(super) const FEWEST_NODES: usize = 4;
/// What a replica of the burst asks for and uses, in thousandths of a CPU.
const REPLICA: (u32, u32) = (2000, 1900);

pub(super) async fn play(
    (nodes, seed): (usize, u64),
    protected: bool,
    cluster: &Cluster,
    tell: &Teller,
) -> Result<(), Failure> {
    let write = &cluster.write;
    let say = |about: &str, what: String| tell.notice("story", about, what);
    let start = tokio::time::Instant::now();
    let at = |moment: Duration| tokio::time::sleep_until(start + moment);
    let on = Shape::new(0, nodes, seed);
    if protected {
        for (resource, object) in rules(&on) {
            write.create(resource, "", &object).await?;
        }
    }
    residents(nodes, seed, write).await;
    write.create(resource::PODS, "default", &shop(&on)).await?;
    for name in JOBS {
        write.create(resource::DEPLOYMENTS, "default", &job(name, &on)).await?;
    }
    let busy = (0..nodes).filter(|index| is_busy(*index)).count();
    let calm = nodes - busy - 1;
    say(
        "1 placement",
        format!("{busy} of {nodes} nodes are busy: a pod there asks for 200m and uses 60% of the CPU"),
    );
    say("1 placement", format!("what they use is measured; {calm} pods come in {} s", BURST.as_secs()));

    at(BURST).await;
    let (asks, uses) = REPLICA;
    write.create(resource::DEPLOYMENTS, "default", &burst(calm)).await?;
    say("1 placement", format!("{calm} pods of web come at once; each asks for {asks}m, and uses {uses}m"));

    at(RUSH).await;
    let (placed, crowded) = burst_on_busy_nodes(cluster);
    say(
        "1 placement",
        format!("{placed} of {calm} pods of web have a node by now, {crowded} of them a busy one"),
    );
    use_cpu(write, &on, SHOP.1).await?;
    say(
        "2 protection",
        format!(
            "a rush of customers: shop wants {}% of the CPU of {}, batch jobs run there, too",
            SHOP.1, on.name
        ),
    );

    at(CALM).await;
    use_cpu(write, &on, SHOP.0).await?;
    say(
        "3 recovery",
        format!(
            "the customers have gone: shop wants {}% of {}; who was slowed down gets it back",
            SHOP.0, on.name
        ),
    );
    at(END).await;
    Ok(())
}

/// Nodes are busy where a resident is.
pub(super) fn burst_on_busy_nodes(cluster: &Cluster) -> (usize, usize) {
    let pods = cluster.pods.all();
    let placed = |prefix: &'static str| {
        let of = move |pod: &&Arc<Pod>| pod.meta.id.key.name.starts_with(prefix) && pod.is_active();
        pods.iter().filter(of).filter_map(|pod| pod.node.as_deref())
    };
    let busy: BTreeSet<&str> = placed("resident-").collect();
    (placed("web-").count(), placed("web-").filter(|node| busy.contains(node)).count())
}

fn burst(replicas: usize) -> Value {
    let (asks, uses) = REPLICA;
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": {
            "metadata": {"labels": {"app": "web"}, "annotations": {USAGE_CPU: format!("{uses}m")}},
            "spec": {"containers": [{"name": "app", "image": "simulated", "resources":
                {"requests": {"cpu": format!("{asks}m"), "memory": "64Mi"}}}]},
        }},
    })
}

#[cfg(test)]
mod tests {
    use super::super::BATCH;
    use super::*;
    use crate::workloads::RESIDENT_PERCENT;

    #[test]
    fn by_load_a_replica_fits_on_every_calm_node_and_on_no_busy_one() {
        let jobs = i64::try_from(JOBS.len()).unwrap();
        let (asks, uses) = (i64::from(REPLICA.0), i64::from(REPLICA.1));
        for cpus in [4, 8, 16] {
            // Crane's target, of what is for pods: a tenth of a CPU is not.
            let line = (cpus * 1000 - 100) * 65 / 100;
            let milli = |percent: i64| cpus * 10 * percent;
            assert!(asks <= line && uses <= line, "{cpus} CPUs: an empty node takes one");
            assert!(milli(RESIDENT_PERCENT) + asks > line, "{cpus} CPUs: a busy one does not");
            assert!(milli(SHOP.0 + jobs * BATCH.0) + asks > line, "{cpus} CPUs: nor does that of the shop");
            // By requests each of them looks open: the resident asks for 200m, shop and jobs for a quarter.
            assert!(200 + asks <= cpus * 1000 - 100, "{cpus} CPUs");
        }
    }

    #[test]
    fn it_is_over_within_the_first_minute() {
        assert!(BURST < RUSH && RUSH < CALM && CALM < END && END < Duration::from_mins(1));
    }
}
