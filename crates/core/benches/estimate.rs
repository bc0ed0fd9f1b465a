//! What does an estimate cost, what an event, and does that depend on how many nodes there are?
//! `cargo bench -p loadline-core --bench estimate`
//!
//! Two clusters of each size, four pods a node. In one, nodes come in eight models and pods in few shapes, as fleets
//! do: the number of different nodes does not grow with the cluster. In the other, no two nodes have the same free.
//! Figures are the quickest of many runs, in microseconds.

mod fleets;
mod quickest;

use fleets::{Fleet, claim, component, plain, pod};
use loadline_core::estimate::Given;
use quickest::micros;
use std::hint::black_box;

fn main() {
    println!(
        "{:<10} {:>7} {:>7} {:>6} {:>8} {:>9} {:>9} {:>9} {:>9} {:>11}",
        "cluster", "nodes", "pods", "kinds", "classes", "plain", "claim", "by name", "sets", "pod event"
    );
    for fleet in [Fleet::Alike, Fleet::Different] {
        for nodes in [100, 1_000, 5_000, 20_000] {
            let mut index = fleet.index(nodes);
            let view = index.publish();
            let given = Given::default();
            let ask = |ask: &loadline_core::estimate::Ask| {
                micros(|| drop(black_box(view.replicas(black_box(ask), &given))))
            };
            let (plainly, claimed, named) = (ask(&plain()), ask(&claim(false)), ask(&claim(true)));
            let set = [component("driver", 1, "2", "4Gi"), component("worker", 4, "500m", "1Gi")];
            let sets = micros(|| drop(black_box(view.sets("default", black_box(&set), &given))));
            // A pod comes, is published, goes, is published: two events.
            let new = pod(u32::MAX, nodes / 2);
            let event = micros(|| {
                index.set_pod(&new);
                drop(black_box(index.publish()));
                index.remove_pod(&new.uid);
                drop(black_box(index.publish()));
            }) / 2.0;
            println!(
                "{:<10} {nodes:>7} {:>7} {:>6} {:>8} {plainly:>9.1} {claimed:>9.1} {named:>9.1} {sets:>9.0} {event:>11.1}",
                fleet.name(),
                view.pod_count(),
                view.kind_count(),
                view.class_count(),
            );
        }
    }
}
