//! Random questions, from the sensible to the absurd, the same with every run.

use super::world::{LABELS, NODES, SCALARS, TAINTS, node_name};
use loadline_api::estimator::{Replica, assumed_workload, pb};
use loadline_core::quantity::Quantity;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::label::Expression;
use loadline_core::select::node::{NodeSelector, NodeTerm};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;

/// In which form a request is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As up to 1.17.
    Old,
    /// As since 1.19.
    New,
    /// As in 1.18, and by us.
    Both,
}

impl Form {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Old, Self::New, Self::Both];

    /// A request for replicas in this form only; it is given in both.
    pub fn of_replicas(
        self,
        mut request: pb::MaxAvailableReplicasRequest,
    ) -> pb::MaxAvailableReplicasRequest {
        if let Some(required) = &mut request.replica_requirements {
            let (old, new) = (&mut required.resource_request, &mut required.resource_request_bytes);
            self.cut(old, new, required.node_claim.as_mut());
        }
        for workload in &mut request.assumed_workloads {
            self.cut_components(&mut workload.components);
        }
        request
    }

    /// The same for sets.
    pub fn of_sets(
        self,
        mut request: pb::MaxAvailableComponentSetsRequest,
    ) -> pb::MaxAvailableComponentSetsRequest {
        self.cut_components(&mut request.components);
        for workload in &mut request.assumed_workloads {
            self.cut_components(&mut workload.components);
        }
        request
    }

    fn cut_components(self, components: &mut [pb::Component]) {
        for required in components.iter_mut().filter_map(|component| component.replica_requirements.as_mut())
        {
            let (old, new) = (&mut required.resource_request, &mut required.resource_request_bytes);
            self.cut(old, new, required.node_claim.as_mut());
        }
    }

    fn cut<M: Default>(self, old: &mut M, new: &mut M, claim: Option<&mut pb::NodeClaim>) {
        match self {
            Self::Old => *new = M::default(),
            Self::New => *old = M::default(),
            Self::Both => {}
        }
        let Some(claim) = claim else { return };
        match self {
            Self::Old => {
                claim.node_affinity_bytes = None;
                claim.tolerations_bytes.clear();
            }
            Self::New => {
                // An affinity without terms has no bytes, and so no new form at all.
                if claim.node_affinity_bytes.as_ref().is_some_and(|bytes| !bytes.is_empty()) {
                    claim.node_affinity = None;
                }
                claim.tolerations.clear();
            }
            Self::Both => {}
        }
    }
}

/// Amounts from nothing to more than anybody has. The last are below zero.
const AMOUNTS: [&str; 24] = [
    "0",
    "1n",
    "1u",
    "0.0001",
    "1m",
    "100m",
    "0.5",
    "1",
    "1500m",
    "2",
    "3",
    "12",
    "33Ki",
    "5k",
    "100M",
    "1Gi",
    "3G",
    "64Gi",
    "1e3",
    "1E",
    "9223372036854775807",
    "1e30",
    "-1",
    "-100m",
];
/// How many of them are not below zero.
const POSITIVE: usize = 22;

/// A question about replicas; sometimes without any requirements.
pub fn replica(rng: &mut StdRng) -> Option<Replica> {
    if rng.random_bool(0.03) {
        return None;
    }
    let mut requests = List::new();
    for _ in 0..rng.random_range(0..4) {
        let name = resource(rng);
        let likely: &[&str] = match name.as_str() {
            "cpu" => &["100m", "250m", "1", "1500m", "3", "12"],
            "memory" | "ephemeral-storage" => &["100M", "33Mi", "1Gi", "3G", "1500m"],
            _ => &["1", "2", "3"],
        };
        let odd = if rng.random_bool(0.1) { &AMOUNTS[..] } else { &AMOUNTS[..POSITIVE] };
        let from = if rng.random_bool(0.7) { likely } else { odd };
        requests.insert(name, text(rng, from).parse().expect("a quantity"));
    }
    Some(Replica { requests, ..claim(rng) })
}

/// Does it ask for less than nothing?
pub fn is_negative(replica: &Replica) -> bool {
    replica.requests.values().any(Quantity::is_negative)
}

/// The same with no amount beyond 64 bits (of cpu, in thousandths); `None` if there is none.
pub fn held(replica: &Replica) -> Option<Replica> {
    let mut held = replica.clone();
    for (name, amount) in &mut held.requests {
        let most = if name == "cpu" { i64::MAX / 1000 } else { i64::MAX };
        let most: Quantity = most.to_string().parse().expect("a quantity");
        if *amount > most {
            *amount = most;
        }
    }
    (held != *replica).then_some(held)
}

/// What one set consists of. Something in it asks for places, and for enough that counting sets one by one does not
/// take long.
pub fn components(rng: &mut StdRng) -> Vec<pb::Component> {
    let mut out: Vec<pb::Component> = (0..rng.random_range(1..5)).map(|_| component(rng, 6)).collect();
    if out.iter().all(|component| component.replicas == 0) {
        out[0].replicas = 1;
    }
    out
}

/// What is on its way. Workloads of several components are small and come first: they always fit.
pub fn assumed(rng: &mut StdRng) -> Vec<pb::AssumedWorkload> {
    let mut out = Vec::new();
    if rng.random_bool(0.3) {
        let tiny = |cpu: &str| {
            let requests = List::from([("cpu".to_owned(), cpu.parse().expect("a quantity"))]);
            Replica { requests, ..Replica::default() }.component("tiny", 2)
        };
        let components = vec![tiny("10m"), tiny("250m"), tiny("50m")];
        out.push(assumed_workload("default", None, components));
    }
    for _ in 0..rng.random_range(1..4) {
        let components = vec![component(rng, 60)];
        out.push(assumed_workload("default", None, components));
    }
    out
}

fn component(rng: &mut StdRng, most: i32) -> pb::Component {
    let mut requests = List::new();
    requests.insert("cpu".into(), text(rng, &["250m", "1", "2", "3500m", "6"]).parse().expect("a quantity"));
    if rng.random_bool(0.6) {
        let amount = text(rng, &["100M", "1Gi", "3G", "7Gi"]);
        requests.insert("memory".into(), amount.parse().expect("a quantity"));
    }
    if rng.random_bool(0.15) {
        requests.insert(resource(rng), "1".parse().expect("a quantity"));
    }
    let claim = if rng.random_bool(0.5) { claim(rng) } else { Replica::default() };
    Replica { requests, ..claim }.component("part", rng.random_range(0..=most))
}

fn text(rng: &mut StdRng, from: &[&str]) -> String {
    (*from.choose(rng).expect("there are some")).to_owned()
}

/// The name of a resource: what nodes have, what none has, and what is none.
fn resource(rng: &mut StdRng) -> String {
    const BASE: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];
    const ODD: [&str; 9] = [
        "pods",
        "storage",
        "gpu",
        "example.com/absent",
        "hugepages-1Gi",
        "kubernetes.io/absent",
        "requests.example.com/gpu",
        "Example.com/GPU!",
        "",
    ];
    match rng.random_range(0..20) {
        0..13 => text(rng, &BASE),
        13..17 => SCALARS.choose(rng).expect("some").0.to_owned(),
        _ => text(rng, &ODD),
    }
}

/// Selector, affinity and tolerations.
fn claim(rng: &mut StdRng) -> Replica {
    let mut replica = Replica::default();
    if rng.random_bool(0.3) {
        for _ in 0..rng.random_range(1..3) {
            let (key, values) = LABELS.choose(rng).expect("some");
            let unknown = rng.random_bool(0.1);
            let value = if unknown { "no such value".into() } else { text(rng, values) };
            replica.selector.insert((*key).to_owned(), value);
        }
    }
    if rng.random_bool(0.5) {
        let node_selector_terms = (0..rng.random_range(0..4)).map(|_| term(rng)).collect();
        replica.affinity = Some(NodeSelector { node_selector_terms });
    }
    if rng.random_bool(0.6) {
        replica.tolerations = (0..rng.random_range(1..5)).map(|_| toleration(rng)).collect();
    }
    replica
}

fn term(rng: &mut StdRng) -> NodeTerm {
    let mut term = NodeTerm::default();
    for _ in 0..*[0, 1, 1, 1, 2, 3].choose(rng).expect("some") {
        term.match_expressions.push(expression(rng));
    }
    if rng.random_bool(0.25) {
        term.match_fields.push(field(rng));
    }
    term
}

fn expression(rng: &mut StdRng) -> Expression {
    let (mut key, mut values) = match rng.random_range(0..8) {
        0 => ("kubernetes.io/hostname".to_owned(), vec![node_name(rng.random_range(0..NODES + 2)); 1]),
        1 => ("topology.kubernetes.io/zone".to_owned(), vec![text(rng, &["a", "b", "c"])]),
        2 => (
            "generation".to_owned(),
            vec![text(rng, &["0", "2", "7", "-5", "x", "", "99999999999999999999"])],
        ),
        _ => {
            let (key, values) = LABELS.choose(rng).expect("some");
            ((*key).to_owned(), vec![text(rng, values)])
        }
    };
    match rng.random_range(0..12) {
        0 => values.clear(),
        1 | 2 => values.push(text(rng, &["ssd", "2", "b", "no/value!"])),
        3 => key = text(rng, &["absent", "", "not a key!"]),
        _ => {}
    }
    let operators =
        ["In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "in", "", "Near"];
    let operator = text(rng, &operators);
    // Mostly as it should be: what only looks at the key takes no values.
    if matches!(operator.as_str(), "Exists" | "DoesNotExist") && rng.random_bool(0.8) {
        values.clear();
    }
    Expression { key, operator, values }
}

fn field(rng: &mut StdRng) -> Expression {
    let key = if rng.random_bool(0.9) { "metadata.name" } else { "metadata.namespace" };
    let count = *[0, 1, 1, 1, 1, 1, 2].choose(rng).expect("some");
    let values = (0..count).map(|_| node_name(rng.random_range(0..NODES + 2))).collect();
    let operator = text(rng, &["In", "In", "In", "NotIn", "NotIn", "Exists", "Gt", "odd"]);
    Expression { key: key.into(), operator, values }
}

fn toleration(rng: &mut StdRng) -> Toleration {
    let (key, value, effect) = *TAINTS.choose(rng).expect("some");
    let cordon = "node.kubernetes.io/unschedulable";
    let key = match rng.random_range(0..10) {
        0 => "",
        1 => "absent",
        2 => cordon,
        _ => key,
    };
    let value = if rng.random_bool(0.8) { value } else { "4" };
    let effect = match rng.random_range(0..8) {
        0..3 => None,
        3..7 => Some(if key == cordon { "NoSchedule" } else { effect }),
        _ => Some("Odd"),
    };
    let operators = ["Exists", "Exists", "Exists", "Equal", "Equal", "", "Lt", "Gt", "odd"];
    Toleration {
        key: key.into(),
        operator: text(rng, &operators).into(),
        value: value.into(),
        effect: effect.map(|effect| effect.to_owned().into()),
        toleration_seconds: rng.random_bool(0.1).then(|| rng.random_range(-1..100)),
    }
}
