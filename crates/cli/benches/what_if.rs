//! How long does `what-if schedule` take on a large cluster? `cargo xtask bench what-if`
//!
//! The world is written as kubectl prints it: 5 000 nodes with their measurements, 20 000 pods that run and 10 that wait.
//! It is read in three forms. CPU time counts all cores; where the system does not tell it, only the time on the
//! clock is given.

#![expect(clippy::print_stdout, reason = "figures for people")]

use loadline_manifests::sample::Sample;
use std::process::{Command, Stdio};
use std::time::Instant;

const NODES: usize = 5_000;
const RUNNING: usize = 20_000;
const PENDING: usize = 10;

/// CPU time of ended children, in seconds.
fn children_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let after_name: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
    let ticks = |at: usize| after_name.get(at)?.parse::<f64>().ok();
    // cutime and cstime, in hundredths of a second.
    Some((ticks(13)? + ticks(14)?) / 100.0)
}

fn main() {
    // Tests build every target and may run it; only `cargo bench` means it.
    if !std::env::args().any(|arg| arg == "--bench") {
        return;
    }
    let sample = Sample { nodes: NODES, running: RUNNING, pending: PENDING };
    let (documents, list, json) = (sample.documents(), sample.list(), sample.json());
    let folder = tempfile::tempdir().expect("a folder can be made");
    println!("{NODES} nodes, {RUNNING} pods that run, {PENDING} that wait");
    println!("{:<24} {:>6} {:>8} {:>8}", "form", "MB", "seconds", "cpu");
    for (form, text, output) in [
        ("YAML documents, table", &documents, "table"),
        ("YAML list, table", &list, "table"),
        ("JSON list, table", &json, "table"),
        ("YAML documents, JSON", &documents, "json"),
    ] {
        let path = folder.path().join("world");
        std::fs::write(&path, text).expect("the world can be written");
        let (started, cpu) = (Instant::now(), children_seconds());
        let ended = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["what-if", "schedule", "--now", "2025-01-01T12:00:00Z", "-o", output, "-f"])
            .arg(&path)
            .stdout(Stdio::null())
            .status()
            .expect("it runs");
        assert!(ended.success(), "{form}");
        let wall = started.elapsed().as_secs_f64();
        let cpu = children_seconds()
            .zip(cpu)
            .map_or_else(|| "-".to_owned(), |(after, before)| format!("{:.2}", after - before));
        println!("{form:<24} {:>6} {wall:>8.2} {cpu:>8}", text.len() / 1_000_000);
    }
}
