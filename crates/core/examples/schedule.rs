//! How many decisions a second, at which size? `cargo xtask bench schedule`
//!
//! Every decision is a whole one: all rules and scores over all nodes, and the pod charged to its node before the
//! next. Pods leave again after a thousand others came (that is counted, too), so the cluster stays as full as it
//! is. Time is CPU time where the system tells it.

#![expect(clippy::cast_precision_loss, clippy::print_stdout, reason = "figures for people")]

#[path = "../benches/worlds/mod.rs"]
mod worlds;

use loadline_core::cluster::Cluster;
use loadline_core::view::PodFacts;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

/// CPU time this process has had, in seconds: other work on the machine does not count.
fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/schedstat").ok()?;
    let nanoseconds: f64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(nanoseconds / 1e9)
}

fn measure(cluster: &mut Cluster, next: impl Fn(usize) -> PodFacts) -> f64 {
    let mut placed: VecDeque<Arc<str>> = VecDeque::new();
    let mut round = |cluster: &mut Cluster, from: usize, count: usize| {
        for i in from..from + count {
            let facts = next(i);
            let pod = cluster.view(&facts);
            if cluster.decide(&pod).reserve().node.is_some() {
                placed.push_back(pod.uid.clone());
            }
            if placed.len() > 1000
                && let Some(uid) = placed.pop_front()
            {
                cluster.remove_pod(&uid);
            }
        }
    };
    // Warm caches first, then double until it takes long enough to say something.
    round(cluster, 0, 200);
    let (mut done, mut count) = (200, 200);
    loop {
        let (wall, cpu) = (Instant::now(), cpu_seconds());
        round(cluster, done, count);
        let spent = match (cpu, cpu_seconds()) {
            (Some(before), Some(after)) => after - before,
            _ => wall.elapsed().as_secs_f64(),
        };
        done += count;
        if spent > 0.5 {
            return count as f64 / spent;
        }
        count *= 2;
    }
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![100, 1000, 5000, 20_000] } else { given };
    println!("{:>7}  {:>16}  {:>16}", "nodes", "same pods/s", "different pods/s");
    for nodes in sizes {
        let wants = Arc::default();
        let same = measure(&mut worlds::cluster(nodes), |i| worlds::same(i, &wants));
        let different = measure(&mut worlds::cluster(nodes), worlds::different);
        println!("{nodes:>7}  {same:>16.0}  {different:>16.0}");
    }
}
