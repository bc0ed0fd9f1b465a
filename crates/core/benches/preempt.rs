//! How long does it take to find out who has to go for a pod, or that nobody's going helps?
//!
//! Thirty pods a node, all of it taken. Where nothing helps, every pod that waits asks again whenever something changes,
//! so that is what counts: nobody is less important; all that are would not make enough room; all would have to be taken
//! off in thought, and somebody else is in the way still. The last row has a plan on every node.
//! `cargo xtask bench preempt`

#[path = "quickest/mod.rs"]
mod quickest;

use loadline_core::cluster::{Cluster, Options};
use loadline_core::object::Key;
use loadline_core::select::Selector;
use loadline_core::select::label::{Op, Requirement};
use loadline_core::view::{NodeFacts, Phase, PodAffinity, PodFacts, PodTerm, Wants};
use quickest::micros;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::hint::black_box;
use std::sync::Arc;

const HOST: &str = "kubernetes.io/hostname";

fn list(cpu_milli: i64) -> BTreeMap<String, loadline_core::quantity::Quantity> {
    let cpu = format!("{cpu_milli}m").parse().expect("a quantity");
    BTreeMap::from([("cpu".to_owned(), cpu), ("pods".to_owned(), "110".parse().expect("a quantity"))])
}

fn pod(name: String, app: &str, cpu_milli: i64, priority: i32) -> PodFacts {
    let mut requests = list(cpu_milli);
    requests.remove("pods");
    PodFacts {
        uid: name.as_str().into(),
        key: Key::new("default", name),
        labels: BTreeMap::from([("app".to_owned(), app.to_owned())]),
        requests,
        priority,
        preempts: true,
        ..PodFacts::default()
    }
}

/// Sixteen cores a node: twenty-nine pods of half a core, and one of 1 500 thousandths that is worth more.
fn cluster(nodes: usize) -> Cluster {
    let mut cluster = Cluster::new(Options::default(), jiff::Timestamp::UNIX_EPOCH);
    for node in 0..nodes {
        let name = format!("node-{node:05}");
        cluster.set_node(&NodeFacts {
            labels: BTreeMap::from([(HOST.to_owned(), name.clone())]),
            allocatable: list(16_000),
            capacity: list(16_000),
            name: name.clone(),
            ..NodeFacts::default()
        });
        for at in 0..30 {
            let facts = match at {
                0 => pod(format!("guard-{node}"), "guard", 1_500, 1_000),
                _ => pod(format!("old-{node}-{at}"), "old", 500, 10),
            };
            cluster.set_pod(&PodFacts { node: Some(name.clone()), phase: Phase::Running, ..facts });
        }
    }
    cluster
}

/// A pod that keeps away from those that are worth as much as itself.
fn shy(mut pod: PodFacts) -> PodFacts {
    let guard = Requirement::new("app", Op::In, vec!["guard".to_owned()]).expect("a requirement");
    let away = PodTerm {
        namespaces: vec!["default".into()],
        namespace_selector: None,
        selector: Selector::all(vec![guard]),
        topology_key: HOST.into(),
    };
    let anti_affinity = PodAffinity { required: vec![away], ..PodAffinity::default() };
    pod.wants = Arc::new(Wants { anti_affinity, ..Wants::default() });
    pod
}

fn main() {
    println!(
        "| nodes | nobody less important | not enough room | somebody else in the way | a plan everywhere |"
    );
    println!("|---:|---:|---:|---:|---:|");
    for nodes in [100, 1_000, 5_000, 20_000] {
        let mut cluster = cluster(nodes);
        let mut row = format!("| {nodes} |");
        for (facts, plan) in [
            (pod("humble".to_owned(), "new", 2_000, 0), false),
            (pod("large".to_owned(), "new", 15_000, 1_000), false),
            (shy(pod("shy".to_owned(), "new", 2_000, 1_000)), false),
            (pod("bold".to_owned(), "new", 2_000, 1_000), true),
        ] {
            let view = cluster.view(&facts);
            let mut ask = || black_box(cluster.decide(&view).preempt()).is_some();
            assert_eq!(ask(), plan, "{}", facts.key.name);
            let took = micros(|| assert_eq!(ask(), plan));
            let _ = write!(row, " {took:.0} µs |");
        }
        println!("{row}");
    }
}
