//! How many decisions a second, at which size? `cargo xtask bench schedule`
//!
//! Every decision is a whole one: all rules and scores over all nodes, and the pod charged to its node before the
//! next. Pods leave again after a thousand others came, so the cluster stays as full as it is.

#![expect(clippy::cast_precision_loss, clippy::print_stdout, reason = "figures for people")]

#[path = "../benches/worlds/mod.rs"]
mod worlds;

use loadline_core::cluster::Cluster;
use loadline_core::view::PodFacts;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn measure(cluster: &mut Cluster, next: impl Fn(usize) -> PodFacts) -> (f64, usize) {
    let mut placed: VecDeque<Arc<str>> = VecDeque::new();
    let (mut spent, mut count, mut lost) = (Duration::ZERO, 0usize, 0usize);
    let begin = Instant::now();
    // Warm caches first, then measure for about two seconds.
    while begin.elapsed() < Duration::from_millis(2500) {
        let facts = next(count);
        let start = Instant::now();
        let pod = cluster.view(&facts);
        let decision = cluster.schedule(&pod);
        let time = start.elapsed();
        count += 1;
        if begin.elapsed() > Duration::from_millis(500) {
            spent += time;
        } else {
            lost = count;
        }
        if decision.node.is_some() {
            placed.push_back(pod.uid.clone());
        }
        if placed.len() > 1000
            && let Some(uid) = placed.pop_front()
        {
            cluster.remove_pod(&uid);
        }
    }
    ((count - lost) as f64 / spent.as_secs_f64(), placed.len())
}

fn main() {
    let given: Vec<usize> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if given.is_empty() { vec![100, 1000, 5000, 20_000] } else { given };
    println!("{:>7}  {:>16}  {:>16}", "nodes", "same pods/s", "different pods/s");
    for nodes in sizes {
        let wants = Arc::default();
        let (same, _) = measure(&mut worlds::cluster(nodes), |i| worlds::same(i, &wants));
        let (different, _) = measure(&mut worlds::cluster(nodes), worlds::different);
        println!("{nodes:>7}  {same:>16.0}  {different:>16.0}");
    }
}
