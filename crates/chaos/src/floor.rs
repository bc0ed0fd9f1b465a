//! What nodes do: run pods, end them, measure, and hold containers to quotas. A few lines instead of kubelets.

use axum::body::Body;
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What every node has, in thousandths of a core and MiB.
pub(crate) const CPU: u64 = 4000;
pub(crate) const MEMORY: u64 = 8192;
/// What a node uses by itself.
const SYSTEM: (u64, u64) = (100, 256);
/// How often a metrics server measures, and over how long, in seconds.
const WINDOW: u64 = 15;
/// The anchor of all clocks.
pub(crate) const ANCHOR: &str = "2026-01-05T08:00:00Z";

/// When that is, by a clock nobody sets.
pub(crate) fn time(at: u64) -> Timestamp {
    let anchor: Timestamp = ANCHOR.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    anchor + SignedDuration::from_millis(at.cast_signed())
}

/// The nodes.
#[derive(Debug, Default)]
pub(crate) struct Floor {
    /// Nodes on which pods use another share of what they asked for, in hundredths.
    pub hot: BTreeMap<String, u64>,
    /// Nodes that are away.
    pub away: BTreeSet<String>,
    /// Clusters of the fleet that are away.
    pub clusters_away: BTreeSet<usize>,
    /// Of placements, how many clusters are in one group from now on.
    pub regrouped: BTreeMap<usize, u64>,
    /// Is nothing measured?
    pub stopped: bool,
    /// What figures are multiplied by, in hundredths.
    pub lie: Option<u64>,
    /// By uid: microseconds of 100 000.
    pub quotas: BTreeMap<String, i64>,
    /// What has been used since the last sample, and that.
    running: Running,
    sampled: Sampled,
}

/// Sums of a window and of how many seconds they are: CPU second by second, memory as it is now.
#[derive(Debug, Default)]
struct Running {
    nodes: BTreeMap<String, (Use, u64)>,
    pods: BTreeMap<String, (Use, u64)>,
}

#[derive(Debug, Default)]
struct Sampled {
    nodes: Value,
    pods: Value,
}

/// What a pod uses.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Use {
    pub cpu_milli: u64,
    pub memory_mib: u64,
}

impl Floor {
    /// What a pod uses now: nothing unless it runs.
    pub(crate) fn uses(&self, pod: &Value) -> Use {
        let Some(node) = pod["spec"]["nodeName"].as_str() else { return Use::default() };
        if pod["status"]["phase"].as_str() != Some("Running") || self.away.contains(node) {
            return Use::default();
        }
        let asked =
            |what: &str| pod["metadata"]["annotations"][what].as_str().and_then(|text| text.parse().ok());
        let wants: u64 = asked("chaos/cpu").unwrap_or(0) * self.hot.get(node).copied().unwrap_or(100) / 100;
        let quota = pod["metadata"]["uid"].as_str().and_then(|uid| self.quotas.get(uid)).copied();
        // 100 000 microseconds are a core.
        let held = quota.filter(|us| *us > 0).map_or(u64::MAX, |us| us.unsigned_abs() / 100);
        Use { cpu_milli: wants.min(held), memory_mib: asked("chaos/memory").unwrap_or(0) }
    }

    /// What is used on a node.
    pub(crate) fn used(&self, node: &str, pods: &[(String, Arc<Value>)]) -> Use {
        let mut sum = Use { cpu_milli: SYSTEM.0, memory_mib: SYSTEM.1 };
        for (_, pod) in pods.iter().filter(|(_, pod)| pod["spec"]["nodeName"].as_str() == Some(node)) {
            let one = self.uses(pod);
            sum =
                Use { cpu_milli: sum.cpu_milli + one.cpu_milli, memory_mib: sum.memory_mib + one.memory_mib };
        }
        sum.cpu_milli = sum.cpu_milli.min(CPU);
        sum
    }

    /// What the metrics API answers.
    pub(crate) fn measured(&self, path: &str) -> Response<Body> {
        let items = if path.ends_with("/nodes") { &self.sampled.nodes } else { &self.sampled.pods };
        if items.is_null() {
            let mut response = Response::new(Body::from("{}"));
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            return response;
        }
        let list =
            json!({"kind": "List", "apiVersion": "metrics.k8s.io/v1beta1", "metadata": {}, "items": items});
        Response::new(Body::from(list.to_string()))
    }

    /// A second has passed: what was used in it counts, and now and then there is a new sample.
    pub(crate) fn tick(&mut self, now: u64, nodes: &[String], pods: &[(String, Arc<Value>)]) {
        // A node that is away measures nothing: what is told of it afterwards is of the time since it came back.
        for node in &self.away {
            self.running.nodes.remove(node);
        }
        for node in nodes.iter().filter(|node| !self.away.contains(*node)) {
            let used = self.used(node, pods);
            let (sum, seconds) = self.running.nodes.entry(node.clone()).or_default();
            (sum.cpu_milli, sum.memory_mib) = (sum.cpu_milli + used.cpu_milli, used.memory_mib);
            *seconds += 1;
        }
        let away =
            |pod: &Value| pod["spec"]["nodeName"].as_str().is_some_and(|node| self.away.contains(node));
        for (path, _) in pods.iter().filter(|(_, pod)| away(pod)) {
            self.running.pods.remove(path);
        }
        let runs = |pod: &Value| pod["status"]["phase"].as_str() == Some("Running") && !away(pod);
        let running: Vec<_> = pods.iter().filter(|(_, pod)| runs(pod)).collect();
        for (path, pod) in running {
            let used = self.uses(pod);
            let (sum, seconds) = self.running.pods.entry(path.clone()).or_default();
            (sum.cpu_milli, sum.memory_mib) = (sum.cpu_milli + used.cpu_milli, used.memory_mib);
            *seconds += 1;
        }
        if !now.is_multiple_of(WINDOW * 1000) {
            return;
        }
        let Running { nodes, pods: sums } = std::mem::take(&mut self.running);
        if self.stopped {
            return;
        }
        let lie = self.lie.unwrap_or(100);
        let usage = |one: Use, seconds: u64| {
            let cpu = one.cpu_milli / seconds.max(1) * lie / 100;
            json!({"cpu": format!("{cpu}m"), "memory": format!("{}Mi", one.memory_mib * lie / 100)})
        };
        let stamp = time(now).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let window = |seconds: u64| format!("{seconds}s");
        let nodes = nodes.into_iter().map(|(node, (used, seconds))| {
            let (usage, window) = (usage(used, seconds), window(seconds));
            json!({"metadata": {"name": node}, "timestamp": stamp, "window": window, "usage": usage})
        });
        let running = pods.iter().filter_map(|(path, pod)| {
            let (sum, seconds) = sums.get(path)?;
            let metadata =
                json!({"name": pod["metadata"]["name"], "namespace": pod["metadata"]["namespace"]});
            let (usage, window) = (usage(*sum, *seconds), window(*seconds));
            let containers = json!([{"name": "main", "usage": usage}]);
            Some(
                json!({"metadata": metadata, "timestamp": stamp, "window": window, "containers": containers}),
            )
        });
        self.sampled = Sampled { nodes: nodes.collect(), pods: running.collect() };
    }
}
