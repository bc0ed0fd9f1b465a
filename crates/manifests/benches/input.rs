//! How long does it take from text to a decision, and how much of that is YAML? `cargo xtask bench input`
//!
//! The world is written as kubectl prints it: 5 000 nodes with their measurements, 20 000 pods that run and 10 that wait.
//! It is read by our reader of what kubectl prints, and by the complete parser alone, which gets the same pieces to read side
//! by side. Then everything is checked and made into a cluster, and every pod that waits is decided with all reasons.
//! CPU time counts all cores.

#![expect(clippy::print_stdout, reason = "figures for people")]

use jiff::Timestamp;
use loadline_core::cluster::Cluster;
use loadline_core::view::PodView;
use loadline_manifests::sample::Sample;
use loadline_manifests::{Kind, Manifests, ScheduleInput};
use std::sync::Arc;
use std::time::Instant;

const SAMPLE: Sample = Sample { nodes: 5_000, running: 20_000, pending: 10 };
/// Each is measured so often, in turns; the quickest counts.
const ROUNDS: usize = 3;

type Parse = fn(&str, &str, &[Kind]) -> Manifests;

/// CPU time of this process, in seconds.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    // utime and stime, in hundredths of a second.
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Seconds on the clock and of CPU.
#[derive(Clone, Copy)]
struct Spent {
    wall: f64,
    cpu: f64,
}

fn measured<T>(work: impl FnOnce() -> T) -> (T, Spent) {
    let (started, cpu) = (Instant::now(), cpu_seconds());
    let done = work();
    (done, Spent { wall: started.elapsed().as_secs_f64(), cpu: cpu_seconds() - cpu })
}

/// Reading and checking alone, and the whole way to the last decision.
fn run(parse: Parse, text: &str) -> [Spent; 2] {
    let (manifests, reading) = measured(|| parse("world", text, ScheduleInput::KINDS));
    let (decided, rest) = measured(|| {
        let now: Timestamp = "2025-01-01T12:00:00Z".parse().expect("a time");
        let mut input = ScheduleInput::read(manifests, now).expect("nothing is wrong with it");
        let pods: Vec<_> = input.pods.iter().map(|pod| input.cluster.view(&pod.facts)).collect();
        pods.iter().filter(|pod| decides(&mut input.cluster, pod)).count()
    });
    assert_eq!(decided, SAMPLE.pending, "every pod finds a node");
    [reading, Spent { wall: reading.wall + rest.wall, cpu: reading.cpu + rest.cpu }]
}

/// Decides with all reasons; says whether there is a node.
fn decides(cluster: &mut Cluster, pod: &Arc<PodView>) -> bool {
    let mut decided = cluster.decide(pod);
    let report = decided.report();
    !report.nodes.is_empty() && decided.node().is_some()
}

fn main() {
    // Tests build every target and may run it; only `cargo bench` means it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let Sample { nodes, running, pending } = SAMPLE;
    println!("{nodes} nodes, {running} pods that run, {pending} that wait");
    println!("{:<34} {:>4} {:>9} {:>9} {:>9} {:>9}", "form and reader", "MB", "read", "cpu", "all", "cpu");
    let (list, documents, json) = (SAMPLE.list(), SAMPLE.documents(), SAMPLE.json());
    let rows: [(&str, Parse, &str); 5] = [
        ("YAML list, ours", Manifests::parse, &list),
        ("YAML list, complete parser", Manifests::parse_completely, &list),
        ("YAML documents, ours", Manifests::parse, &documents),
        ("YAML documents, complete parser", Manifests::parse_completely, &documents),
        ("JSON list", Manifests::parse, &json),
    ];
    let mut best = rows.map(|_| [Spent { wall: f64::INFINITY, cpu: f64::INFINITY }; 2]);
    for _ in 0..ROUNDS {
        for ((_, parse, text), best) in rows.iter().zip(&mut best) {
            for (best, found) in best.iter_mut().zip(run(*parse, text)) {
                *best = Spent { wall: best.wall.min(found.wall), cpu: best.cpu.min(found.cpu) };
            }
        }
    }
    for ((name, _, text), [read, all]) in rows.iter().zip(&best) {
        let size = text.len() / 1_000_000;
        println!(
            "{name:<34} {size:>4} {:>7.2} s {:>7.2} s {:>7.2} s {:>7.2} s",
            read.wall, read.cpu, all.wall, all.cpu
        );
    }
}
