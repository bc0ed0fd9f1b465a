//! Five thousand nodes: simulated exporters, scraped by a real Prometheus, asked by a real annotator.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/monitoring.rs"]
mod monitoring;
#[path = "common/service.rs"]
mod service;

use common::Up;
use loadline_testkit::parts::find_or_skip;
use monitoring::{Prometheus, annotation};
use serde_json::{Value, json};
use service::{Service, until};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const NODES: u32 = 5_000;
/// What the daemons of a simulated node use: thousandths of a CPU, and bytes.
const DAEMONS: (f64, f64) = (60.0, (400 << 20) as f64);

/// What is served there, as a document.
fn get(url: &str, path: &str) -> Value {
    let address = url.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET {path} HTTP/1.0\r\nhost: x\r\n\r\n").unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let body = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    serde_json::from_slice(&answer[body..]).unwrap()
}

/// How much a metric of the annotator says.
fn counted(annotator: &Service, line: &str) -> f64 {
    let text = annotator.get("/metrics");
    let found = text.lines().find(|found| found.starts_with(line));
    found.and_then(|found| found.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
}

#[test]
fn five_thousand_exporters_are_scraped_and_every_node_gets_its_own_values() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let nodes = NODES.to_string();
    let without = "annotator,agent,recommender,scheduler";
    let up = Up::start(&["--nodes", &nodes, "--without", without, "--for", "1h"]);
    let found = json!({"http_sd_configs": [{"url": up.said("exporters"), "refresh_interval": "1m"}]});
    let prometheus = Prometheus::start_every("15s", program, found, true);
    let kubeconfig = up.kubeconfig();
    let address = prometheus.url();
    let annotator = Service::start(&[
        "annotator",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--no-metrics-api",
        "--prometheus-address",
        &address,
        "--prometheus-interval",
        "5s",
        "--patch-qps",
        "500",
    ]);
    annotator.until(&format!("nodes: {NODES} late"));
    let metrics = ["cpu_usage_avg_5m", "mem_usage_avg_5m", "cpu_usage_max_avg_1d", "mem_usage_max_avg_1d"];
    let server = up.said("API server");
    // Reading five thousand nodes takes a core for seconds: that is left to others until there is something to find.
    let written = "loadline_annotator_patches_total{urgency=\"now\",outcome=\"written\"}";
    until("a patch for every node", || (counted(&annotator, written) >= f64::from(NODES)).then_some(()));
    let list = until("every node to be annotated", || {
        let list = get(&server, "/api/v1/nodes");
        let all = list["items"].as_array().unwrap();
        let done = all.iter().all(|node| metrics.iter().all(|metric| annotation(node, metric).is_some()));
        (all.len() == NODES as usize && done).then_some(list)
    });
    for node in list["items"].as_array().unwrap() {
        let has = |what: &str| node["status"]["capacity"][what].as_str().unwrap();
        let cpus: f64 = has("cpu").parse().unwrap();
        let gibibytes: f64 = has("memory").strip_suffix("Gi").unwrap().parse().unwrap();
        let want = [DAEMONS.0 / (cpus * 1000.0), DAEMONS.1 / (gibibytes * f64::from(1 << 30))];
        for (at, metric) in metrics.iter().enumerate() {
            let (value, _) = annotation(node, metric).unwrap();
            let right = (value - want[at % 2]).abs() <= 0.000_02;
            assert!(right, "{} {metric}: {value}, not {}", node["metadata"]["name"], want[at % 2]);
        }
    }
    // However many nodes there are, a round is six questions.
    let asked =
        counted(&annotator, "loadline_annotator_queries_total{source=\"prometheus\",outcome=\"answered\"}");
    let patches = counted(&annotator, written);
    assert!(asked >= 6.0 && asked <= f64::from(NODES) / 10.0, "{asked} questions");
    assert!(patches >= f64::from(NODES), "{patches} patches");
    let resident = annotator.resident_kib() / 1024;
    // Of a build for tests; what a release takes is measured by `cargo xtask bench load`.
    assert!(resident <= 150, "{resident} MiB resident");
    println!("{asked} questions, {patches} patches, {resident} MiB resident");
    assert!(annotator.ends());
}
