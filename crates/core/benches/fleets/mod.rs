//! Clusters to count in.

use loadline_core::estimate::{Ask, Component, Index};
use loadline_core::object::Key;
use loadline_core::resources::List;
use loadline_core::select::node::Required;
use loadline_core::view::{NodeFacts, Phase, PodFacts};
use std::collections::BTreeMap;

/// How much nodes differ.
#[derive(Clone, Copy)]
pub enum Fleet {
    /// Eight models, three zones, pods of few shapes.
    Alike,
    /// No two nodes have the same free.
    Different,
}

fn list(amounts: &[(&str, String)]) -> List {
    amounts.iter().map(|(n, q)| ((*n).to_owned(), q.parse().expect("valid quantities"))).collect()
}

impl Fleet {
    pub fn name(self) -> &'static str {
        match self {
            Self::Alike => "alike",
            Self::Different => "different",
        }
    }

    fn node(self, n: u32) -> NodeFacts {
        let name = format!("node-{n}");
        let odd = match self {
            Self::Alike => 0,
            Self::Different => n,
        };
        let cpu = 8 * u64::from(1 + n % 4);
        let labels = [
            ("kubernetes.io/hostname", name.clone()),
            ("kubernetes.io/arch", if n % 8 < 6 { "amd64" } else { "arm64" }.to_owned()),
            ("node.kubernetes.io/instance-type", format!("m{}", n % 8)),
            ("topology.kubernetes.io/zone", format!("zone-{}", n % 3)),
        ];
        NodeFacts {
            name,
            labels: labels.map(|(k, v)| (k.to_owned(), v)).into(),
            allocatable: list(&[
                ("cpu", cpu.to_string()),
                ("memory", format!("{}Ki", (cpu * 4) << 20 | u64::from(odd))),
                ("ephemeral-storage", "100Gi".to_owned()),
                ("pods", "110".to_owned()),
            ]),
            ..NodeFacts::default()
        }
    }

    /// So many nodes, four pods on each.
    pub fn index(self, nodes: u32) -> Index {
        let mut index = Index::new();
        for n in 0..nodes {
            index.set_node(&self.node(n));
        }
        for p in 0..4 * nodes {
            index.set_pod(&pod(p, p % nodes));
        }
        index
    }
}

/// A pod on a node.
pub fn pod(p: u32, node: u32) -> PodFacts {
    PodFacts {
        key: Key::new("default", format!("pod-{p}")),
        uid: format!("{p:08x}-0000-4000-8000-000000000000").into(),
        requests: list(&[("cpu", format!("{}m", 250 * (1 + node % 3))), ("memory", "512Mi".into())]),
        phase: Phase::Running,
        node: Some(format!("node-{node}")),
        ..PodFacts::default()
    }
}

/// CPU and memory, on any node.
pub fn plain() -> Ask {
    Ask { requests: list(&[("cpu", "500m".into()), ("memory", "1Gi".into())]), ..Ask::default() }
}

/// The same on some nodes: by labels many share, or also by the node's own name.
pub fn claim(by_name: bool) -> Ask {
    let selector = BTreeMap::from([("kubernetes.io/arch".to_owned(), "amd64".to_owned())]);
    let key = if by_name { "kubernetes.io/hostname" } else { "topology.kubernetes.io/zone" };
    let affinity = serde_json::json!({"nodeSelectorTerms": [{"matchExpressions": [
        {"key": key, "operator": "NotIn", "values": ["zone-2", "node-7"]}]}]});
    let affinity = serde_json::from_value(affinity).expect("a valid selector");
    Ask { required: Required::new(&selector, Some(&affinity)), ..plain() }
}

/// Part of a set.
pub fn component(name: &str, replicas: i32, cpu: &str, memory: &str) -> Component {
    let requests = list(&[("cpu", cpu.into()), ("memory", memory.into())]);
    Component { name: name.into(), replicas, ask: Ask { requests, ..Ask::default() } }
}
