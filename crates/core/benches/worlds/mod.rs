//! Worlds to measure in: nodes like a real cluster's, pods that are all the same or all different.

use jiff::{SignedDuration, Timestamp};
use loadline_core::cluster::{Cluster, Options};
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use loadline_core::load::estimate::Asks;
use loadline_core::load::policy::Rules;
use loadline_core::object::Key;
use loadline_core::requests::NonZero;
use loadline_core::select::label::{Op, Requirement};
use loadline_core::select::node::{NodeSelector, NodeTerm, Preferred, Required, WeightedTerm};
use loadline_core::select::taint::{Effect, Taint};
use loadline_core::select::{Selector, label};
use loadline_core::view::{NodeFacts, Phase, PodAffinity, PodFacts, PodTerm, Spread, Wants};
use std::collections::BTreeMap;
use std::sync::Arc;

pub const ZONE: &str = "topology.kubernetes.io/zone";
pub const HOST: &str = "kubernetes.io/hostname";
const TYPE: &str = "node.kubernetes.io/instance-type";
const APPS: usize = 500;
const GI: i64 = 1 << 30;

/// A number modulo another, as an amount.
fn turn(i: usize, of: usize) -> i64 {
    i64::try_from(i % of).unwrap_or(0)
}

pub fn now() -> Timestamp {
    Timestamp::from_second(1_700_000_000).expect("a time in range")
}

fn map<const N: usize>(pairs: [(&str, String); N]) -> BTreeMap<String, String> {
    pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()
}

/// Sixteen cores, 64 GiB, ten zones, five types; one in twenty is tainted. Annotated as crane would.
pub fn node(i: usize) -> NodeFacts {
    let name = format!("node-{i:05}");
    let list = |pairs: [(&str, &str); 3]| {
        pairs.into_iter().map(|(k, v)| (k.to_owned(), v.parse().expect("a quantity"))).collect()
    };
    let load = |metric: &str, percent: usize| {
        (metric.to_owned(), format!("0.{percent:02}000,{}", now().strftime("%Y-%m-%dT%H:%M:%SZ")))
    };
    let taint = Taint {
        key: "dedicated".into(),
        value: "batch".into(),
        effect: Effect::NoSchedule,
        time_added: None,
    };
    NodeFacts {
        labels: map([
            (HOST, name.clone()),
            (ZONE, format!("zone-{}", i % 10)),
            (TYPE, format!("type-{}", i % 5)),
            ("kubernetes.io/os", "linux".into()),
        ]),
        annotations: [
            load("cpu_usage_avg_5m", 20 + i % 30),
            load("cpu_usage_max_avg_1h", 25 + i % 30),
            load("cpu_usage_max_avg_1d", 30 + i % 30),
            load("mem_usage_avg_5m", 20 + i % 17),
            load("mem_usage_max_avg_1h", 25 + i % 17),
            load("mem_usage_max_avg_1d", 30 + i % 17),
        ]
        .into(),
        taints: if i % 20 == 7 { vec![taint] } else { Vec::new() },
        allocatable: list([("cpu", "15800m"), ("memory", "60Gi"), ("pods", "110")]),
        capacity: list([("cpu", "16"), ("memory", "64Gi"), ("pods", "110")]),
        name,
        ..NodeFacts::default()
    }
}

fn app(name: &str) -> Selector {
    let r = Requirement::new("app", Op::In, vec![name.to_owned()]).expect("a valid requirement");
    Selector::all(vec![r])
}

/// A pod of so many millicores and MiB.
fn pod(name: &str, app: &str, cpu_milli: i64, mib: i64) -> PodFacts {
    let load = Load::new(cpu_milli * 1_000_000, mib << 20);
    PodFacts {
        key: Key::new(format!("team-{}", app.len() % 3), name),
        uid: format!("uid-{name}").into(),
        labels: map([("app", app.to_owned()), ("pod-template-hash", "5d8f7".into())]),
        requests: [
            ("cpu".to_owned(), format!("{cpu_milli}m").parse().expect("a quantity")),
            ("memory".to_owned(), format!("{mib}Mi").parse().expect("a quantity")),
        ]
        .into(),
        nonzero: NonZero { cpu_milli, memory_bytes: mib << 20 },
        asks: Arc::new(Asks { effective: load, ..Asks::default() }),
        preempts: true,
        ..PodFacts::default()
    }
}

/// The next replica of one workload.
pub fn same(i: usize, wants: &Arc<Wants>) -> PodFacts {
    PodFacts { wants: wants.clone(), ..pod(&format!("same-{i}"), "same", 100, 128) }
}

/// A pod like no other: its own size and labels, a demand and a liking about nodes, spread over zones and hosts,
/// away from its like.
pub fn different(i: usize) -> PodFacts {
    let name = format!("app-{}", i % APPS);
    let expression = |key: &str, values: &[String]| label::Expression {
        key: key.into(),
        operator: "In".into(),
        values: values.to_vec(),
    };
    let term = |e| NodeTerm { match_expressions: vec![e], ..NodeTerm::default() };
    let types = [format!("type-{}", i % 5), format!("type-{}", (i + 1) % 5)];
    let required = NodeSelector { node_selector_terms: vec![term(expression(TYPE, &types))] };
    let liked =
        WeightedTerm { weight: 10, preference: term(expression(ZONE, &[format!("zone-{}", i % 10)])) };
    let spread = |key: &str, hard: bool, max_skew: i64| Spread {
        max_skew,
        topology_key: key.into(),
        hard,
        selector: app(&name),
        min_domains: None,
        honor_affinity: true,
        honor_taints: false,
    };
    let mut facts = pod(&format!("different-{i}"), &name, 50 + turn(i, 97), 64 + turn(i, 89));
    facts.labels.insert("serial".into(), i.to_string());
    let away = PodTerm {
        namespaces: vec![facts.key.namespace.clone()],
        namespace_selector: None,
        selector: app(&name),
        topology_key: HOST.into(),
    };
    facts.wants = Arc::new(Wants {
        required: Required::new(&BTreeMap::new(), Some(&required)),
        preferred: Preferred::new(&[liked]).expect("a valid preference"),
        anti_affinity: PodAffinity { required: vec![away], ..PodAffinity::default() },
        spread: vec![spread(ZONE, true, 5), spread(HOST, false, 1)],
        ..Wants::default()
    });
    facts
}

/// So many nodes with four running pods each, measured a moment ago.
pub fn cluster(nodes: usize) -> Cluster {
    let options = Options { rules: Some(Rules::default()), ..Options::default() };
    let mut cluster = Cluster::new(options, now());
    for i in 0..nodes {
        let facts = node(i);
        cluster.set_node(&facts);
        for j in 0..4 {
            let mut facts = pod(&format!("old-{i}-{j}"), &format!("app-{}", (i * 4 + j) % APPS), 500, 1024);
            facts.node = Some(format!("node-{i:05}"));
            facts.phase = Phase::Running;
            facts.started = Some(now() - SignedDuration::from_mins(60));
            cluster.set_pod(&facts);
        }
        let usage = Load::new(2_000_000_000 + turn(i, 40) * 100_000_000, (8 + turn(i, 13)) * GI);
        cluster.sample(&facts.name, Sample { at: now(), window: SignedDuration::from_secs(15), usage });
    }
    cluster
}
