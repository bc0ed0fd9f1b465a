//! What would node-exporter say on each node? Seconds its CPUs were busy and idle, and its memory, for a Prometheus to scrape.
//!
//! Figures come every few seconds and are stamped with their moment: what was used between two of them is known only at the
//! second. Without the stamp a scrape between two figures would see neither busy nor idle time pass.

use super::{Figures, Shape};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

/// Page of one node, below the address that serves them.
const PAGE: &str = "/nodes/{node}/metrics";

/// What all nodes export.
#[derive(Debug)]
pub struct Exporters {
    nodes: Mutex<HashMap<String, Counters>>,
}

/// What has been counted on a node.
#[derive(Clone, Debug, PartialEq)]
struct Counters {
    cpus: i64,
    memory_bytes: i64,
    used_bytes: i64,
    /// Of all CPUs together, in millionths of a second.
    busy_micro: i64,
    up_micro: i64,
    /// When, in milliseconds since 1970; nothing before the first figures.
    at: Option<i64>,
}

impl Exporters {
    /// Where each page is, with a place for the name of the node.
    pub const PAGE: &str = PAGE;

    /// Of these nodes.
    pub fn new(shapes: impl Iterator<Item = Shape>) -> Self {
        let counters = |shape: &Shape| Counters {
            cpus: shape.cpus,
            memory_bytes: shape.gibibytes << 30,
            used_bytes: 0,
            busy_micro: 0,
            up_micro: 0,
            at: None,
        };
        Self { nodes: Mutex::new(shapes.map(|shape| (shape.name.clone(), counters(&shape))).collect()) }
    }

    /// Counts on.
    pub fn take(&self, figures: &Figures) {
        let window = i64::try_from(figures.window.as_millis()).unwrap_or(i64::MAX);
        let at = figures.at.as_millisecond();
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        for one in &figures.nodes {
            let Some(node) = nodes.get_mut(&one.name) else { continue };
            // Figures that came late say what is used, not for how long: time is that of their stamps.
            let passed = node.at.map_or(window, |before| at.saturating_sub(before)).max(0);
            // Thousandths of a CPU for so many thousandths of a second.
            node.busy_micro += one.used.cpu_milli.saturating_mul(passed);
            node.up_micro += passed.saturating_mul(1000);
            node.used_bytes = one.used.memory_bytes;
            node.at = Some(at);
        }
    }

    /// The page of a node, in Prometheus' text format; none of a node that is not there or has not been measured yet.
    #[must_use]
    pub fn page(&self, node: &str) -> Option<String> {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let Counters { cpus, memory_bytes, used_bytes, busy_micro, up_micro, at } = nodes.get(node)?.clone();
        let at = at?;
        let mut out = String::with_capacity(256 + usize::try_from(cpus).unwrap_or(0) * 128);
        let seconds = |micro: i64| format!("{}.{:06}", micro / 1_000_000, micro % 1_000_000);
        let _ = writeln!(out, "# HELP node_cpu_seconds_total Seconds the CPUs spent in each mode.");
        let _ = writeln!(out, "# TYPE node_cpu_seconds_total counter");
        for cpu in 0..cpus {
            // Divided so that nothing is lost: the first CPUs get what does not divide.
            let busy = busy_micro / cpus + i64::from(cpu < busy_micro % cpus);
            for (mode, micro) in [("idle", up_micro - busy), ("user", busy)] {
                let value = seconds(micro.max(0));
                let _ = writeln!(out, "node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}} {value} {at}");
            }
        }
        let available = (memory_bytes - used_bytes).max(0);
        for (name, about, bytes) in [
            ("MemTotal", "Memory there is.", memory_bytes),
            ("MemAvailable", "Memory programs could still get.", available),
        ] {
            let _ = writeln!(out, "# HELP node_memory_{name}_bytes {about}");
            let _ = writeln!(out, "# TYPE node_memory_{name}_bytes gauge");
            let _ = writeln!(out, "node_memory_{name}_bytes {bytes} {at}");
        }
        Some(out)
    }

    /// Where all pages are, for the `http_sd_configs` of a Prometheus. Each node is its own instance.
    #[must_use]
    pub fn targets(&self, served_at: SocketAddr) -> Value {
        let nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let mut names: Vec<&String> = nodes.keys().collect();
        names.sort_unstable();
        let target = |name: &String| {
            let path = PAGE.replace("{node}", name);
            json!({"targets": [served_at.to_string()], "labels": {"__metrics_path__": path, "instance": name}})
        };
        names.into_iter().map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{NodeFigures, Use};
    use jiff::Timestamp;
    use std::time::Duration;

    fn figures(second: i64, cpu_milli: i64, memory_bytes: i64) -> Figures {
        let used = Use { cpu_milli, memory_bytes };
        Figures {
            at: Timestamp::from_second(second).unwrap(),
            window: Duration::from_secs(5),
            nodes: vec![NodeFigures { name: "node-00".to_owned(), used, short_milli: 0 }],
            pods: Vec::new(),
        }
    }

    fn value(page: &str, series: &str) -> f64 {
        let line = page.lines().find(|line| line.starts_with(series)).unwrap();
        line[series.len()..].split_whitespace().next().unwrap().parse().unwrap()
    }

    #[test]
    fn busy_and_idle_time_add_up_to_the_time_of_all_cpus() {
        let exporters = Exporters::new(std::iter::once(Shape::new(0, 1, 1)));
        assert_eq!(exporters.page("node-00"), None, "nothing is known yet");
        let cpus = Shape::new(0, 1, 1).cpus;
        // 1.5 CPUs for 5 s, then 3 CPUs for 10 s: a report was late.
        exporters.take(&figures(100, 1500, 1 << 30));
        exporters.take(&figures(110, 3000, 2 << 30));
        let page = exporters.page("node-00").unwrap();
        let sum = |mode: &str| -> f64 {
            (0..cpus)
                .map(|cpu| value(&page, &format!("node_cpu_seconds_total{{cpu=\"{cpu}\",mode=\"{mode}\"}}")))
                .sum()
        };
        #[expect(clippy::cast_precision_loss, reason = "a few CPUs")]
        let all = cpus as f64 * 15.0;
        assert!((sum("user") - 37.5).abs() < 1e-9, "1.5 × 5 + 3 × 10, not {}", sum("user"));
        assert!((sum("user") + sum("idle") - all).abs() < 1e-9, "{cpus} CPUs for 15 s");
        let (total, free) =
            (value(&page, "node_memory_MemTotal_bytes"), value(&page, "node_memory_MemAvailable_bytes"));
        assert!((total - free - 2_147_483_648.0).abs() < 1.0, "2 GiB are used");
        assert!(
            page.lines().filter(|line| !line.starts_with('#')).all(|line| line.ends_with(" 110000")),
            "stamped"
        );
        assert_eq!(exporters.page("node-01"), None, "there is one node");
    }

    #[test]
    fn every_node_is_a_target_under_its_own_name() {
        let targets = Exporters::new((0..12).map(|index| Shape::new(index, 12, 1)))
            .targets("127.0.0.1:9100".parse().unwrap());
        let names: Vec<&str> =
            targets.as_array().unwrap().iter().map(|t| t["labels"]["instance"].as_str().unwrap()).collect();
        assert_eq!((names.len(), names[0], names[11]), (12, "node-00", "node-11"));
        assert_eq!(targets[3]["labels"]["__metrics_path__"], "/nodes/node-03/metrics");
    }
}
