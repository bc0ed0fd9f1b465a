//! `loadline annotator` on real parts: a kube-apiserver, a Prometheus with our rules, node-exporter on this machine.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/monitoring.rs"]
mod monitoring;
#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use loadline_testkit::parts::find_or_skip;
use monitoring::{Busy, Prometheus, exporter};
use serde_json::json;
use service::{Service, until};
use std::path::Path;
use std::process::Command;

const NODE: &str = "this-machine";
const SHORT: &str = "cpu_usage_avg_5m";
const METRICS: [&str; 6] = [
    SHORT,
    "cpu_usage_max_avg_1h",
    "cpu_usage_max_avg_1d",
    "mem_usage_avg_5m",
    "mem_usage_max_avg_1h",
    "mem_usage_max_avg_1d",
];

/// Idle time and all time of this machine since it started, as the kernel counts.
fn ticks() -> [f64; 2] {
    let stat = std::fs::read_to_string("/proc/stat").unwrap();
    let all: Vec<f64> =
        stat.lines().next().unwrap().split_whitespace().skip(1).map(|n| n.parse().unwrap()).collect();
    // The last two, time of guests, are within the first two.
    [all[3], all[..8].iter().sum()]
}

/// Share of memory that is not available.
fn memory() -> f64 {
    let info = std::fs::read_to_string("/proc/meminfo").unwrap();
    let of = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
    };
    1.0 - of("MemAvailable:") / of("MemTotal:")
}

/// The value and the stamp of an annotation.
fn annotation(plane: &ControlPlane, key: &str) -> Option<(f64, String)> {
    let node = plane.get(&format!("/api/v1/nodes/{NODE}")).unwrap();
    monitoring::annotation(&node, key)
}

fn annotator(plane: &ControlPlane, more: &[&str]) -> Service {
    let kubeconfig = plane.kubeconfig();
    let mut args = vec!["annotator", "--no-metrics-api", "--kubeconfig", kubeconfig.to_str().unwrap()];
    args.extend(["--prometheus-interval", "1s", "--prometheus-timeout", "3s"]);
    args.extend(more);
    Service::start(&args)
}

fn plane() -> Option<ControlPlane> {
    Some(with_node(ControlPlane::start_or_skip()?))
}

fn with_node(plane: ControlPlane) -> ControlPlane {
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "110"});
    plane.add_node(NODE, &json!({}), &room).unwrap();
    let addresses =
        json!([{"type": "InternalIP", "address": "127.0.0.1"}, {"type": "Hostname", "address": NODE}]);
    plane
        .patch(&format!("/api/v1/nodes/{NODE}/status"), &json!({"status": {"addresses": addresses}}))
        .unwrap();
    plane
}

fn bind(plane: &ControlPlane, pod: &str) {
    let pods = "/api/v1/namespaces/default/pods";
    let object = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod},
        "spec": {"containers": [{"name": "c", "image": "i"}]}});
    plane.create(pods, &object).unwrap();
    let binding = json!({"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod},
        "target": {"apiVersion": "v1", "kind": "Node", "name": NODE}});
    plane.create(&format!("{pods}/{pod}/binding"), &binding).unwrap();
}

#[test]
fn real_load_reaches_all_windows_and_a_prometheus_that_stops_stops_nothing_else() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let (Some(exporter), Some(plane)) = (exporter(), plane()) else { return };
    let target = format!("127.0.0.1:{}", exporter.port());
    let before = ticks();
    let busy = Busy::start();
    let mut prometheus = Prometheus::start(program, &[target], true);
    let url = prometheus.url();
    let annotator =
        annotator(&plane, &["--prometheus-address", &url, "--prometheus-matcher", "cluster=\"a\""]);
    annotator.until("active");

    // All six are there; a busy machine is busy in every window, by the kernel's own account of the same time.
    for metric in METRICS {
        until(metric, || annotation(&plane, metric));
    }
    let (idle, all) = {
        let now = ticks();
        (now[0] - before[0], now[1] - before[1])
    };
    let used = 1.0 - idle / all;
    for metric in &METRICS[..3] {
        until(&format!("{metric} near {used:.2}"), || {
            annotation(&plane, metric).filter(|(value, _)| (value - used).abs() < 0.15)
        });
    }
    for metric in &METRICS[3..] {
        let (value, _) = annotation(&plane, metric).unwrap();
        assert!((value - memory()).abs() < 0.1, "{metric} {value}, the kernel says {:.3}", memory());
    }
    drop(busy);

    // Stopped: it takes questions and answers none. What was bound is told all the same.
    let (_, stamp) = annotation(&plane, SHORT).unwrap();
    prometheus.signal("STOP");
    annotator.until("no answer within 3 s");
    bind(&plane, "one");
    bind(&plane, "two");
    until("hot", || annotation(&plane, "node_hot_value").filter(|(value, _)| *value >= 1.0));
    prometheus.signal("CONT");
    // It comes back by itself.
    let recovered = |why: &str| {
        until(why, || {
            let text = annotator.get("/readyz");
            (text.contains("prometheus: answered") && !text.contains("http://")).then_some(())
        });
    };
    recovered("the answers to come back");

    // Killed, and started again where it was: what is written then was measured later.
    prometheus.signal("KILL");
    annotator.until("onnection refused");
    prometheus.restart();
    recovered("the answers to come back once more");
    // With the machine quiet again the mean falls by a point soon, and is written.
    until("a newer value", || annotation(&plane, SHORT).filter(|(_, now)| *now > stamp));
    assert!(annotator.ends());
}

#[test]
fn expressions_of_ones_own_need_no_rules() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let (Some(exporter), Some(plane)) = (exporter(), plane()) else { return };
    let prometheus = Prometheus::start(program, &[format!("127.0.0.1:{}", exporter.port())], false);
    let (url, share) =
        (prometheus.url(), "1 - avg without (cpu, mode) (irate(node_cpu_seconds_total{mode=\"idle\"}[1m]))");
    let good = format!("{SHORT}=100 * ({share})");
    let wrong = "mem_usage_avg_5m=100 * (";
    let annotator = annotator(
        &plane,
        &["--prometheus-address", &url, "--prometheus-query", &good, "--prometheus-query", wrong],
    );
    let (value, _) = until(SHORT, || annotation(&plane, SHORT));
    assert!((0.0..=1.0).contains(&value), "{value}");
    annotator.until("mem_usage_avg_5m: the query is refused: invalid parameter \"query\"");
    assert_eq!(annotation(&plane, "mem_usage_avg_5m"), None);
    assert!(annotator.ends());
}

/// Memory of this machine is always used: by this policy it has too much of it.
const TINY: &str = "apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{name: mem_usage_avg_5m, period: 3m}]
  predicate: [{name: mem_usage_avg_5m, maxLimitPecent: 0.001}]
";

#[test]
fn a_stock_scheduler_avoids_a_node_that_is_tainted_for_its_load() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    let Some(plane) = ControlPlane::setup().scheduler(&[]).start_or_skip().map(with_node) else {
        return;
    };
    plane.add_node("calm", &json!({}), &json!({"cpu": "4", "memory": "8Gi", "pods": "110"})).unwrap();
    let prometheus = Prometheus::start(program, &[format!("127.0.0.1:{}", exporter.port())], true);
    let policy = plane.folder().join("tiny.yaml");
    std::fs::write(&policy, TINY).unwrap();
    let url = prometheus.url();
    let more = [
        "--prometheus-address",
        &url,
        "--policy",
        policy.to_str().unwrap(),
        "--taints",
        "--taint-share",
        "1",
    ];
    let annotator = annotator(&plane, &more);
    let taints = |node: &str| {
        let node = plane.get(&format!("/api/v1/nodes/{node}")).unwrap();
        let all = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
        all.iter()
            .map(|taint| format!("{}={}", taint["key"].as_str().unwrap(), taint["value"]))
            .collect::<Vec<_>>()
    };
    until("the taint", || (taints(NODE) == ["loadline.dev/load=\"over\""]).then_some(()));
    assert!(taints("calm").is_empty(), "nothing is known of it");

    let node_of = |pod: &str| {
        let pods = "/api/v1/namespaces/default/pods";
        let spec = json!({"containers": [{"name": "c", "image": "i"}]});
        plane
            .create(
                pods,
                &json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec}),
            )
            .unwrap();
        until("a node", || {
            plane.get(&format!("{pods}/{pod}")).unwrap()["spec"]["nodeName"].as_str().map(str::to_owned)
        })
    };
    for pod in ["p1", "p2", "p3", "p4"] {
        assert_eq!(node_of(pod), "calm");
    }
    // A clean end opens the node again, and the stock scheduler goes there: it is empty.
    assert!(annotator.ends());
    assert!(taints(NODE).is_empty());
    assert_eq!(node_of("p5"), NODE);
}

#[test]
fn the_shipped_rules_mean_what_they_say() {
    let Some(promtool) = find_or_skip("promtool") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/prometheus");
    let output = Command::new(promtool)
        .args(["test", "rules", "rules_test.yaml"])
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}
