//! How many events a second does the ledger take, and does that depend on the size of the cluster?
//!
//! Twenty pods a node. The stream is what a busy cluster tells: mostly pods seen again, started or ended, some
//! decisions, a sample of some node in between; a snapshot every hundred events, as a decision takes one.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use jiff::{SignedDuration, Timestamp};
use loadline_core::ledger::{Assigned, Ledger, Options, Sample, Uid};
use loadline_core::load::Load;
use loadline_core::view::NodeId;
use std::hint::black_box;

const PODS: u32 = 20;
const EVENTS: u32 = 10_000;

/// Numbers in no order, the same each time.
struct Mix(u64);

impl Mix {
    fn below(&mut self, bound: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = (self.0 >> 32) * u64::from(bound);
        u32::try_from(share >> 32).expect("below the bound")
    }
}

/// Seconds after some moment.
fn t(secs: u32) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::from(secs)).expect("a year like any other")
}

fn uid(pod: u32) -> Uid {
    Uid((u128::from(pod) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_d1b5_4a32_d192_ed03))
}

fn sample(at: u32) -> Sample {
    Sample { at: t(at), window: SignedDuration::from_secs(15), usage: Load::new(4_000_000_000, 8 << 30) }
}

fn pod(node: u32, started: Option<u32>) -> Assigned {
    Assigned { node: NodeId(node), estimate: Load::new(250_000_000, 256 << 20), started: started.map(t) }
}

fn cluster(nodes: u32) -> Ledger {
    let mut ledger = Ledger::new(Options::default());
    for node in 0..nodes {
        ledger.node(NodeId(node));
        for i in 0..20 {
            ledger.sample(NodeId(node), sample(15 * i));
        }
    }
    for i in 0..nodes * PODS {
        ledger.assign(uid(i), pod(i % nodes, Some(i % 250)));
    }
    ledger.changed().for_each(drop);
    ledger
}

/// Ten thousand events over a minute, six minutes after the start.
fn stream(ledger: &mut Ledger, nodes: u32, mix: &mut Mix) {
    let pods = nodes * PODS;
    for i in 0..EVENTS {
        let (node, known, now) = (mix.below(nodes), mix.below(pods), 360 + i * 60 / EVENTS);
        match mix.below(10) {
            0..=3 => ledger.assign(uid(known), pod(known % nodes, Some(known % 250))),
            4 => ledger.assign(uid(known), pod(known % nodes, Some(now))),
            5 => {
                ledger.reserve(uid(pods + i), pod(node, None), t(now));
            }
            6 => ledger.assign(uid(pods + i.saturating_sub(1)), pod(node, None)),
            7 => ledger.remove(uid(known), t(now)),
            _ => {
                ledger.sample(NodeId(node), sample(now));
            }
        }
        if i % 100 == 0 {
            ledger.advance(t(now));
            black_box(ledger.snapshot());
            black_box(ledger.changed().count());
        }
    }
}

fn events(c: &mut Criterion) {
    let mut group = c.benchmark_group("ledger");
    group.throughput(Throughput::Elements(EVENTS.into()));
    for nodes in [100, 1_000, 5_000, 20_000] {
        let ledger = cluster(nodes);
        println!("{nodes} nodes, {} pods: {} KiB", nodes * PODS, ledger.bytes() / 1024);
        group.bench_function(format!("{nodes} nodes"), |b| {
            b.iter_batched_ref(
                || (ledger.clone(), Mix(7)),
                |(ledger, mix)| stream(ledger, nodes, mix),
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

criterion_group!(benches, events);
criterion_main!(benches);
