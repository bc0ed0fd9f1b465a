//! `loadline annotator` on a real node: what a pod really uses is in the annotations of the node it runs on.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/monitoring.rs"]
mod monitoring;
#[path = "common/service.rs"]
mod service;

use jiff::{SignedDuration, Timestamp};
use loadline_testkit::node::Usage;
use loadline_testkit::parts::find_or_skip;
use loadline_testkit::{ControlPlane, MetricsServer, RealNode};
use monitoring::{Prometheus, annotation, exporter};
use serde_json::Value;
use service::{Service, until};
use std::cell::RefCell;

const SHORT: &str = "cpu_usage_avg_5m";
const LONG: [&str; 2] = ["cpu_usage_max_avg_1h", "cpu_usage_max_avg_1d"];
const MEMORY: &str = "mem_usage_avg_5m";

/// What the pod is told to use, and the least of it that must be seen: a busy machine may not have given it all.
const BURN: &str = "500";
const SEEN_MILLI: f64 = 350.0;

/// What is written has five digits, and peaks are rounded up to a ten-thousandth of a core.
const ROUNDED: f64 = 0.001;

/// Everything the metrics API said of the node, each measurement once.
struct Measured<'a> {
    metrics: &'a MetricsServer<'a>,
    node: &'a RealNode<'a>,
    all: RefCell<Vec<Usage>>,
}

impl<'a> Measured<'a> {
    /// Begins with the newest.
    fn start(metrics: &'a MetricsServer<'a>, node: &'a RealNode<'a>) -> Self {
        let measured = Self { metrics, node, all: RefCell::default() };
        measured.look();
        measured
    }

    /// To be called more often than the server measures.
    fn look(&self) {
        let mut all = self.all.borrow_mut();
        let last = all.last().map(|last| last.at.clone());
        all.extend(self.metrics.node(self.node).filter(|new| last.is_none_or(|last| last < new.at)));
    }

    /// What an annotator that saw everything from the first or the second on may say as of `stamp`: the mean of five
    /// minutes, each measurement by the part of its window that is in them.
    fn means(&self, stamp: &str, of: impl Fn(&Usage) -> f64) -> Vec<f64> {
        const SPAN: SignedDuration = SignedDuration::from_mins(5);
        let newest = moment(stamp);
        let mean = |from: usize| {
            let (mut sum, mut whole) = (0.0, 0.0);
            for usage in self.all.borrow().iter().skip(from) {
                let age = newest.duration_since(moment(&usage.at));
                let window: SignedDuration = usage.window.parse().unwrap();
                if !age.is_negative() && age < SPAN {
                    let weight = window.min(SPAN - age).as_secs_f64();
                    sum += weight * of(usage);
                    whole += weight;
                }
            }
            sum / whole
        };
        vec![mean(0), mean(1)]
    }

    /// When the first measurement of the node ended that began after `since`, if there is one.
    fn after(&self, since: Timestamp) -> Option<Timestamp> {
        let begins = |usage: &Usage| moment(&usage.at) - usage.window.parse::<SignedDuration>().unwrap();
        self.all.borrow().iter().find(|usage| begins(usage) >= since).map(|usage| moment(&usage.at))
    }
}

fn moment(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn object(plane: &ControlPlane, node: &RealNode) -> Value {
    plane.get(&format!("/api/v1/nodes/{}", node.name())).unwrap()
}

/// What the node has of a resource: cores, or KiB as kubelet writes memory.
fn capacity(node: &Value, resource: &str) -> f64 {
    node["status"]["capacity"][resource].as_str().unwrap().trim_end_matches("Ki").parse().unwrap()
}

fn annotator(plane: &ControlPlane, more: &[&str]) -> Service {
    let kubeconfig = plane.kubeconfig();
    let mut args =
        vec!["annotator", "--kubeconfig", kubeconfig.to_str().unwrap(), "--metrics-interval", "1s"];
    args.extend(more);
    let annotator = Service::start(&args);
    annotator.until("active");
    annotator
}

/// Starts a busy pod, and waits until the annotations are of a time at which it was measured: the node then.
fn with_busy_pod(plane: &ControlPlane, measured: &Measured) -> Value {
    until("the first annotation", || {
        measured.look();
        annotation(&object(plane, measured.node), SHORT)
    });
    // Not waited for until they run: no measurement may be missed meanwhile.
    let start = |name: &str, args: &[&str]| {
        plane.create("/api/v1/namespaces/default/pods", &measured.node.pod(name, args)).unwrap();
    };
    start("busy", &["burn", BURN]);
    let busy = until("the pod in a measurement", || {
        measured.look();
        measured.metrics.pod("busy").filter(|usage| usage.cpu_milli >= SEEN_MILLI)
    });
    let at = until("a measurement of the node from then on", || {
        measured.look();
        measured.after(moment(&busy.at))
    });
    // Values that hardly move, as on a machine with much other work, are not written for minutes. That a node is hot is
    // written at once, and with it everything that is newer.
    for number in 0..4 {
        start(&format!("new-{number}"), &["pause"]);
    }
    until("the pod in the annotations", || {
        measured.look();
        let node = object(plane, measured.node);
        let (_, stamp) = annotation(&node, SHORT)?;
        (moment(&stamp) >= at).then_some(node)
    })
}

/// Is the mean of five minutes what the metrics API says, and is the pod in it?
fn check_means(measured: &Measured, node: &Value) -> f64 {
    let (value, stamp) = annotation(node, SHORT).unwrap();
    let cores = capacity(node, "cpu");
    let means = measured.means(&stamp, |usage| usage.cpu_milli / 1000.0 / cores);
    let near = |value: f64, means: &[f64]| means.iter().any(|mean| (value - mean).abs() < ROUNDED);
    assert!(
        near(value, &means),
        "{SHORT} {value} at {stamp}, measured {means:?}: {:?}",
        measured.all.borrow()
    );

    let newest =
        measured.all.borrow().iter().rfind(|usage| moment(&usage.at) <= moment(&stamp)).cloned().unwrap();
    assert!(newest.cpu_milli >= SEEN_MILLI, "{newest:?}");

    let bytes = 1024.0 * capacity(node, "memory");
    let (value, stamp) = annotation(node, MEMORY).unwrap();
    let means = measured.means(&stamp, |usage| usage.memory_bytes / bytes);
    assert!(near(value, &means), "{MEMORY} {value}, measured {means:?}");
    annotation(node, SHORT).unwrap().0
}

#[test]
fn without_prometheus_a_busy_pod_is_in_all_windows() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let metrics = MetricsServer::start(&plane, &node).unwrap();
    let measured = Measured::start(&metrics, &node);
    let annotator = annotator(&plane, &[]);

    let node = with_busy_pod(&plane, &measured);
    let mean = check_means(&measured, &node);
    // The peak of what was seen up to now: not below the present mean, nor above any measurement.
    let cores = capacity(&node, "cpu");
    let most = measured.all.borrow().iter().map(|usage| usage.cpu_milli / 1000.0 / cores).fold(0.0, f64::max);
    for metric in LONG {
        let (peak, _) = annotation(&node, metric).unwrap();
        assert!(peak >= mean && peak <= most + ROUNDED, "{metric} {peak}, mean {mean}, at most {most}");
    }
    let young = node["metadata"]["annotations"]["loadline.dev/load-warming-up"].as_str().unwrap();
    assert!(LONG.iter().all(|metric| young.contains(metric)), "{young}");
    assert!(annotator.ends());
}

#[test]
fn beside_prometheus_the_long_windows_are_its_own() {
    let Some(program) = find_or_skip("prometheus") else { return };
    let Some(exporter) = exporter() else { return };
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let metrics = MetricsServer::start(&plane, &node).unwrap();
    let prometheus = Prometheus::start(program, &[format!("{}:{}", node.name(), exporter.port())], true);
    for metric in LONG {
        until(metric, || prometheus.query(metric, Timestamp::now().as_second()));
    }
    let measured = Measured::start(&metrics, &node);
    let annotator =
        annotator(&plane, &["--prometheus-address", &prometheus.url(), "--prometheus-interval", "1s"]);

    let node = with_busy_pod(&plane, &measured);
    check_means(&measured, &node);
    for metric in LONG {
        let (peak, stamp) = annotation(&node, metric).unwrap();
        // Asked within the second the stamp names; a peak only grows.
        let [before, after] =
            [0, 1].map(|later| prometheus.query(metric, moment(&stamp).as_second() + later).unwrap() / 100.0);
        assert!(
            peak >= before - ROUNDED && peak <= after + ROUNDED,
            "{metric} {peak} at {stamp}, Prometheus says {before} to {after}"
        );
    }
    assert!(
        node["metadata"]["annotations"]["loadline.dev/load-warming-up"].is_null(),
        "{}",
        node["metadata"]
    );
    assert!(annotator.ends());
}
