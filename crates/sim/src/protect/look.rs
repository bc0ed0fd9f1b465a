//! What does an agent see of its node? What everything uses now and what containers are held to, as a snapshot.

use super::guest::Guest;
use crate::cluster::{Cluster, Node};
use crate::node::{Figures, Kubelets, PodFigures, Shape};
use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::qos::{self, Level, Options, Quota, Series, Snapshot, State};
use loadline_core::quantity::Quantity;
use loadline_core::view::Labels;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// One look at all nodes.
pub struct Look<'a> {
    now: Timestamp,
    every: Duration,
    cluster: &'a Cluster,
    kubelets: &'a Kubelets,
    /// CPU in millicores and memory in bytes, by node.
    nodes: HashMap<String, (i64, i64)>,
    /// By `namespace/name`.
    pods: HashMap<Key, PodFigures>,
    guests: HashMap<String, Vec<Arc<Guest>>>,
}

impl<'a> Look<'a> {
    pub fn new(
        (now, every): (Timestamp, Duration),
        cluster: &'a Cluster,
        kubelets: &'a Kubelets,
        guests: Vec<Arc<Guest>>,
    ) -> Self {
        let Figures { nodes, pods, .. } = kubelets.measure(now, every);
        let mut by_node = HashMap::<String, Vec<Arc<Guest>>>::new();
        for guest in guests {
            if let Some(node) = &guest.node {
                by_node.entry(node.clone()).or_default().push(guest);
            }
        }
        Self {
            now,
            every,
            cluster,
            kubelets,
            nodes: nodes.into_iter().map(|node| (node.name, amounts(&node.usage))).collect(),
            pods: pods.into_iter().map(|pod| (Key::new(&*pod.namespace, &*pod.name), pod)).collect(),
            guests: by_node,
        }
    }

    /// The pods on a node.
    pub fn guests(&self, node: &str) -> &[Arc<Guest>] {
        self.guests.get(node).map_or(&[], Vec::as_slice)
    }

    /// What there is to know about a node. None if it is none of ours.
    pub fn snapshot(&self, node: &Node, state: State) -> Option<Snapshot> {
        let name = node.meta.key.name.as_str();
        let shape = self.kubelets.shape(name)?;
        let interval = i64::try_from(self.every.as_secs()).unwrap_or(i64::MAX).max(1);
        Some(Snapshot {
            now: self.now,
            node: described(shape, node)?,
            series: self.series(shape),
            latest: Vec::new(),
            pods: self.guests(name).iter().map(|guest| self.measured(guest)).collect(),
            // The API server knows them, and is asked before anybody goes.
            budgets: Vec::new(),
            state,
            options: Options { interval_seconds: interval, ..Options::default() },
        })
    }

    fn series(&self, shape: &Shape) -> Vec<Series> {
        let used = self.nodes.get(&shape.name).copied();
        let (cpu, memory) = (used.map(|used| used.0), used.map(|used| used.1));
        let series = |name: &str, value: Option<Level>| Series {
            name: name.into(),
            labels: Labels::default(),
            value,
            at: self.now,
        };
        let percent = |used: i64, all: i64| Level::whole(used).times(100, all.into());
        vec![
            series("cpu_total_usage", cpu.map(Level::whole)),
            series("cpu_total_utilization", cpu.map(|cpu| percent(cpu, shape.cpus * 1000))),
            series("memory_total_usage", memory.map(Level::whole)),
            series("memory_total_utilization", memory.map(|memory| percent(memory, shape.gibibytes << 30))),
        ]
    }

    /// A pod with what it uses and what it is held to; what nobody measured stays unknown.
    fn measured(&self, guest: &Guest) -> qos::Pod {
        let mut pod = guest.pod.clone();
        let here = self.cluster.pods.get(&guest.meta.key).filter(|here| here.meta.uid == guest.meta.uid);
        let used = self.pods.get(&pod.key);
        for container in &mut pod.containers {
            let mut known = here.iter().flat_map(|here| here.containers.iter().chain(&here.init_containers));
            let known = known.find(|known| *known.name == *container.name);
            let quota = known.map(|known| self.kubelets.quotas().get(&guest.meta.uid, known));
            container.quota = quota.unwrap_or(Quota::Unknown);
            let used = used.and_then(|used| used.containers.get(&*container.name));
            container.usage = used.map(|used| Level::whole(amounts(used).0));
        }
        if let Some(used) = used {
            let all = used.containers.values().map(amounts).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
            (pod.cpu, pod.memory) = (Some(Level::whole(all.0)), Some(Level::whole(all.1)));
        }
        pod
    }
}

/// The node itself, as its object and its shape say.
fn described(shape: &Shape, node: &Node) -> Option<qos::Node> {
    let object = json!({
        "metadata": {"name": shape.name, "labels": node.meta.labels, "annotations": node.meta.annotations},
        "spec": {"taints": node.taints},
        "status": {"capacity": {"cpu": shape.cpus.to_string(), "memory": format!("{}Gi", shape.gibibytes)}},
    });
    let read = loadline_api::qos::snapshot::node(&object);
    read.inspect_err(|error| tracing::warn!(%error, "left out a node")).ok().map(|(node, _)| node)
}

/// Millicores and bytes.
fn amounts(usage: &BTreeMap<String, String>) -> (i64, i64) {
    let of = |name: &str, read: fn(&Quantity) -> i64| {
        usage.get(name).and_then(|text| text.parse::<Quantity>().ok()).as_ref().map_or(0, read)
    };
    (of("cpu", Quantity::milli_value), of("memory", Quantity::value))
}
