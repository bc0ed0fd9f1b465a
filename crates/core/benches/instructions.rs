//! How many instructions does a decision take? Counted, not timed, so that a machine's mood does not matter; a
//! limit that is passed fails the run. `cargo bench -p loadline-core --bench instructions`
//!
//! The limits are what was counted plus a sixth. Who makes something faster lowers them.

#![expect(missing_docs, reason = "the benchmark macros make items without")]

mod bindings;
#[expect(dead_code, reason = "other benchmarks use the rest")]
mod fleets;
mod nodes;
mod placements;
mod worlds;

use fleets::Fleet;
use gungraun::prelude::*;
use gungraun::{Callgrind, EventKind, LibraryBenchmarkConfig};
use jiff::SignedDuration;
use loadline_core::cluster::Cluster;
use loadline_core::divide::{self, Binding, By, Spread};
use loadline_core::estimate::{Answer, Ask, Given, Index, View};
use loadline_core::ledger::{Assigned, Ledger, Options, Sample, Uid};
use loadline_core::load::Load;
use loadline_core::object::Key;
use loadline_core::place::{self, NoCel};
use loadline_core::qos;
use loadline_core::view::images::{ImageName, Images};
use loadline_core::view::{NodeFacts, NodeId, PodFacts, PodView, Wants};
use std::hint::black_box;
use std::sync::Arc;

/// At most so many instructions.
fn limit(instructions: u64) -> LibraryBenchmarkConfig {
    let mut callgrind = Callgrind::with_args(["--cache-sim=no"]);
    callgrind.hard_limits([(EventKind::Ir, instructions)]);
    let mut config = LibraryBenchmarkConfig::default();
    config.tool(callgrind);
    config
}

type World = (Cluster, Vec<Arc<PodView>>);

/// A cluster that has decided once, and 32 more pods of that shape.
fn same(nodes: usize) -> World {
    let mut cluster = worlds::cluster(nodes);
    let wants = Arc::default();
    let mut pods: Vec<_> = (0..33).map(|i| cluster.view(&worlds::same(i, &wants))).collect();
    let first = pods.remove(0);
    let _ = cluster.decide(&first).reserve();
    (cluster, pods)
}

/// The same, and a service selects them.
fn served(nodes: usize) -> World {
    let (mut cluster, pods) = same(nodes);
    let labels = [("app".to_owned(), "same".to_owned())].into();
    cluster.set_service(&Key::new(pods[0].key.namespace.clone(), "same"), &labels);
    let _ = cluster.decide(&pods[0]);
    (cluster, pods)
}

/// The same, and every other node has their image.
fn pulled(nodes: usize) -> World {
    let mut cluster = worlds::cluster(nodes);
    for i in (0..nodes).step_by(2) {
        let images = vec![(ImageName::held("same:1"), 700 << 20)];
        cluster.set_node(&NodeFacts { images, ..worlds::node(i) });
    }
    let images = Images { names: [ImageName::asked("same:1")].into(), containers: 1 };
    let wants = Arc::new(Wants { images, ..Wants::default() });
    let mut pods: Vec<_> = (0..33).map(|i| cluster.view(&worlds::same(i, &wants))).collect();
    let first = pods.remove(0);
    let _ = cluster.decide(&first).reserve();
    (cluster, pods)
}

/// A cluster that has decided once, and 8 pods, each of another shape.
fn different(nodes: usize) -> World {
    let mut cluster = worlds::cluster(nodes);
    let mut pods: Vec<_> = (0..9).map(|i| cluster.view(&worlds::different(i))).collect();
    let first = pods.remove(0);
    let _ = cluster.decide(&first).reserve();
    (cluster, pods)
}

fn schedule((mut cluster, pods): World) -> World {
    for pod in &pods {
        let _ = black_box(cluster.decide(pod).reserve());
    }
    (cluster, pods)
}

#[library_benchmark(setup = same)]
#[bench::n1000(args = (1000), config = limit(2_147_000))]
#[bench::n5000(args = (5000), config = limit(7_784_000))]
fn thirty_two_of_the_same(world: World) -> World {
    schedule(world)
}

// Spread over hosts and zones though they do not ask: who has how many changes with each.
#[library_benchmark(setup = served)]
#[bench::n1000(args = (1000), config = limit(9_520_000))]
#[bench::n5000(args = (5000), config = limit(42_720_000))]
fn thirty_two_of_a_service(world: World) -> World {
    schedule(world)
}

#[library_benchmark(setup = pulled)]
#[bench::n1000(args = (1000), config = limit(2_362_000))]
#[bench::n5000(args = (5000), config = limit(9_017_000))]
fn thirty_two_of_an_image(world: World) -> World {
    schedule(world)
}

#[library_benchmark(setup = different)]
#[bench::n1000(args = (1000), config = limit(4_724_000))]
#[bench::n5000(args = (5000), config = limit(21_483_000))]
fn eight_different(world: World) -> World {
    schedule(world)
}

/// Books of so many nodes with ten pods each.
fn books(nodes: u32) -> (Ledger, u32) {
    let mut ledger = Ledger::new(Options::default());
    for n in 0..nodes {
        ledger.node(NodeId(n));
        for p in 0..10 {
            let pod = Assigned { node: NodeId(n), estimate: Load::new(100_000_000, 1 << 27), started: None };
            ledger.assign(Uid(u128::from(n) * 16 + p), pod);
        }
    }
    let _ = ledger.changed().count();
    (ledger, nodes)
}

// Pods come, start and go, and every tenth event is a measurement.
#[library_benchmark(setup = books)]
#[bench::n1000(args = (1000), config = limit(1_170_000))]
#[bench::n5000(args = (5000), config = limit(1_180_000))]
fn a_thousand_events((mut ledger, nodes): (Ledger, u32)) -> Ledger {
    for i in 0..1000u32 {
        let node = NodeId(i.wrapping_mul(2_654_435_761) % nodes);
        let uid = Uid(u128::from(node.0) * 16 + u128::from(i % 10));
        let at = worlds::now() + SignedDuration::from_secs(i64::from(i));
        match i % 10 {
            0 => {
                let usage = Load::new(2_000_000_000, 1 << 33);
                let _ = ledger.sample(node, Sample { at, window: SignedDuration::from_secs(15), usage });
            }
            1 => ledger.remove(uid, at),
            _ => {
                let pod = Assigned { node, estimate: Load::new(200_000_000, 1 << 28), started: Some(at) };
                ledger.assign(uid, pod);
            }
        }
    }
    black_box(ledger)
}

/// A view and a question, asked once before. Nothing is given back: tidying up memory is not part of the question.
fn view(fleet: Fleet, nodes: u32) -> (&'static View, &'static Ask) {
    let index = Box::leak(Box::new(fleet.index(nodes)));
    let (view, ask) = (Box::leak(Box::new(index.publish())), Box::leak(Box::new(fleets::claim(false))));
    let _ = black_box(view.replicas(ask, &Given::default()));
    (view, ask)
}

// What is not different costs nothing: the limit is the same at a thousand nodes and at five thousand.
#[library_benchmark(setup = view)]
#[bench::alike_1000(args = (Fleet::Alike, 1000), config = limit(15_500))]
#[bench::alike_5000(args = (Fleet::Alike, 5000), config = limit(15_500))]
#[bench::different_1000(args = (Fleet::Different, 1000), config = limit(78_600))]
#[bench::different_5000(args = (Fleet::Different, 5000), config = limit(353_600))]
fn an_estimate((view, ask): (&View, &Ask)) -> Option<Answer> {
    view.replicas(black_box(ask), &Given::default()).ok()
}

// Two components; their cost follows the nodes they fill.
#[library_benchmark(setup = view)]
#[bench::alike_1000(args = (Fleet::Alike, 1000), config = limit(5_360_000))]
#[bench::alike_5000(args = (Fleet::Alike, 5000), config = limit(27_540_000))]
fn sets_of_two_components((view, _): (&View, &Ask)) -> Option<Answer> {
    let set = [fleets::component("driver", 1, "2", "4Gi"), fleets::component("worker", 4, "500m", "1Gi")];
    view.sets("default", black_box(&set), &Given::default()).ok()
}

fn index(nodes: u32) -> (Index, View, Vec<PodFacts>) {
    let index = Fleet::Different.index(nodes);
    let view = index.publish();
    let pod = |i: u32| fleets::pod(4 * nodes + i, i.wrapping_mul(2_654_435_761) % nodes);
    (index, view, (0..100).map(pod).collect())
}

// Each seen by readers before the next: a hundred pods come, and a hundred views are published.
#[library_benchmark(setup = index)]
#[bench::n1000(args = (1000), config = limit(1_283_000))]
#[bench::n5000(args = (5000), config = limit(1_450_000))]
fn a_hundred_pods((mut index, mut view, pods): (Index, View, Vec<PodFacts>)) -> (Index, View, Vec<PodFacts>) {
    for pod in &pods {
        index.set_pod(pod);
        view = index.publish();
    }
    (index, view, pods)
}

/// A fleet and a binding, and whether regions are to be chosen.
fn divided(
    clusters: usize,
    by_region: bool,
) -> (&'static [divide::Member], &'static Binding, divide::Given<'static>) {
    let most = i64::try_from(clusters / 2).unwrap_or(1);
    let spread =
        vec![Spread { by: By::Region, min: 10, max: 15 }, Spread { by: By::Cluster, min: 20, max: most }];
    let spread = if by_region { spread } else { Vec::new() };
    let binding = bindings::binding(clusters, clusters * 2, bindings::dynamic(), spread);
    let estimators = Box::leak(Box::new([bindings::estimator(clusters)]));
    (
        Box::leak(bindings::members(clusters).into_boxed_slice()),
        Box::leak(Box::new(binding)),
        divide::Given { estimators, ..divide::Given::default() },
    )
}

#[library_benchmark(setup = divided)]
#[bench::plain_1000(args = (1000, false), config = limit(2_290_000))]
#[bench::plain_5000(args = (5000, false), config = limit(12_150_000))]
#[bench::regions_1000(args = (1000, true), config = limit(3_015_000))]
#[bench::regions_5000(args = (5000, true), config = limit(12_730_000))]
fn a_division(
    (members, binding, given): (&[divide::Member], &Binding, divide::Given<'static>),
) -> divide::Answer {
    divide::divide(black_box(members), binding, &given)
}

/// Everything decided and published.
fn placed(clusters: usize) -> (place::Fleet, usize) {
    let mut fleet = placements::fleet(clusters, clusters / 10);
    placements::settle(&mut fleet);
    fleet.decide(&NoCel, placements::noon());
    (fleet, clusters)
}

fn wished(clusters: usize) -> place::Fleet {
    placements::fleet(clusters, clusters / 10)
}

// From nothing: all placements of the fleet.
#[library_benchmark(setup = wished)]
#[bench::n500(args = (500), config = limit(10_570_000))]
#[bench::n1000(args = (1000), config = limit(28_490_000))]
fn all_placements(mut fleet: place::Fleet) -> place::Fleet {
    black_box(fleet.decide(&NoCel, placements::noon()));
    fleet
}

// The resources of one cluster are others.
#[library_benchmark(setup = placed)]
#[bench::n500(args = (500), config = limit(2_860_000))]
#[bench::n1000(args = (1000), config = limit(7_365_000))]
fn one_cluster_changes((mut fleet, clusters): (place::Fleet, usize)) -> place::Fleet {
    let mut changed = placements::cluster(clusters / 2);
    changed.allocatable = placements::amounts(100, 400);
    fleet.set_cluster(changed);
    black_box(fleet.decide(&NoCel, placements::noon()));
    fleet
}

fn busy(pods: usize) -> (qos::policy::Policy, qos::NodeSnapshot) {
    (nodes::policy(), nodes::node(pods, qos::Planner::Greedy))
}

// One cycle of a node: six metrics, ten rules, all lines passed.
#[library_benchmark(setup = busy)]
#[bench::n250(args = (250), config = limit(2_508_000))]
#[bench::n1000(args = (1000), config = limit(9_581_000))]
fn a_plan((policy, snapshot): (qos::policy::Policy, qos::NodeSnapshot)) -> qos::Plan {
    black_box(qos::plan(&policy, &snapshot))
}

library_benchmark_group!(
    name = engine;
    benchmarks =
        thirty_two_of_the_same,
        thirty_two_of_a_service,
        thirty_two_of_an_image,
        eight_different,
        a_thousand_events,
        an_estimate,
        sets_of_two_components,
        a_hundred_pods,
        a_division,
        all_placements,
        one_cluster_changes,
        a_plan
);
main!(library_benchmark_groups = engine);
