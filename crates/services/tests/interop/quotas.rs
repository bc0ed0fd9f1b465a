//! Quotas that both count alike, by chance: what is used is no more than allowed, and no scope but the priority class.
//!
//! What the two count differently on purpose is in `listed.rs`. Nodes have room for more than any quota leaves, so that it is
//! the quotas that are compared.

use loadline_api::estimator::{Replica, pb};
use loadline_core::resources::List;
use loadline_testkit::ControlPlane;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value, json};

/// How many namespaces have quotas, and how many there are in each at most.
const NAMESPACES: usize = 12;
const QUOTAS: usize = 3;

const CLASSES: [&str; 3] = ["", "gold", "tin"];

/// A namespace without any.
pub const FREE: &str = "free";

/// What a quota may say and no replica uses up.
const OTHERS: [(&str, &str); 4] =
    [("pods", "1"), ("limits.cpu", "1"), ("configmaps", "1"), ("count/deployments.apps", "1")];

fn name(index: usize) -> String {
    format!("quotas-{index}")
}

fn text(rng: &mut StdRng, from: &[&str]) -> String {
    (*from.choose(rng).expect("there are some")).to_owned()
}

/// Fills the cluster.
pub fn build(plane: &ControlPlane, seed: u64) {
    let mut rng = StdRng::seed_from_u64(seed);
    for index in 0..2 {
        let allocatable =
            json!({"cpu": "2000", "memory": "8Ti", "example.com/gpu": "2000", "pods": "100000"});
        plane.add_node(&format!("large-{index}"), &json!({}), &allocatable).expect("a node");
    }
    for index in 0..NAMESPACES {
        let namespace = name(index);
        plane.create("/api/v1/namespaces", &json!({"metadata": {"name": namespace}})).expect("a namespace");
        for number in 0..=index % QUOTAS {
            quota(plane, &mut rng, &namespace, number);
        }
    }
}

fn quota(plane: &ControlPlane, rng: &mut StdRng, namespace: &str, number: usize) {
    let (mut hard, mut used) = (Map::new(), Map::new());
    let mut entry = |name: String, hard_amount: String, used_amount: String| {
        hard.insert(name.clone(), hard_amount.into());
        used.insert(name, used_amount.into());
    };
    // One name or the other: where both are there, theirs goes by the one it happens to see last.
    let cpu = rng.random_range(1..40_000);
    entry(text(rng, &["cpu", "requests.cpu"]), format!("{cpu}m"), format!("{}m", rng.random_range(0..=cpu)));
    if rng.random_bool(0.7) {
        let memory = rng.random_range(1..64_000);
        let amounts = (format!("{memory}Mi"), format!("{}Mi", rng.random_range(0..=memory)));
        entry(text(rng, &["memory", "requests.memory"]), amounts.0, amounts.1);
    }
    if rng.random_bool(0.4) {
        let gpu = rng.random_range(1..30);
        let left = rng.random_range(0..=gpu);
        entry("requests.example.com/gpu".into(), gpu.to_string(), left.to_string());
    }
    let scoped = rng.random_bool(0.4);
    if !scoped && rng.random_bool(0.5) {
        let (name, amount) = *OTHERS.choose(rng).expect("there are some");
        entry(name.into(), amount.into(), amount.into());
    }
    if rng.random_bool(0.1) {
        // Nothing was reported of it yet.
        let first = used.keys().next().cloned().expect("there is one");
        used.remove(&first);
    }
    let mut spec = json!({ "hard": hard });
    if scoped {
        let operator = text(rng, &["In", "NotIn", "Exists", "DoesNotExist"]);
        let mut scope = json!({"scopeName": "PriorityClass", "operator": operator});
        if operator.ends_with("In") {
            scope["values"] = json!([text(rng, &CLASSES[1..])]);
        }
        spec["scopeSelector"] = json!({"matchExpressions": [scope]});
    }
    let list = format!("/api/v1/namespaces/{namespace}/resourcequotas");
    let quota = format!("q{number}");
    plane.create(&list, &json!({"metadata": {"name": quota}, "spec": spec})).expect("a quota");
    let status = json!({"status": {"hard": Value::from(hard), "used": used}});
    plane.patch(&format!("{list}/{quota}/status"), &status).expect("what is used of it");
}

/// What comes to a namespace with quotas.
pub fn replica(rng: &mut StdRng) -> Replica {
    let namespace = name(rng.random_range(0..NAMESPACES));
    Replica { namespace, ..part(rng) }
}

/// A set for such a namespace, its parts of different classes.
pub fn set(rng: &mut StdRng) -> (String, Vec<pb::Component>) {
    let parts =
        (0..rng.random_range(1..4)).map(|_| part(rng).component("part", rng.random_range(1..5))).collect();
    (name(rng.random_range(0..NAMESPACES)), parts)
}

fn part(rng: &mut StdRng) -> Replica {
    let mut requests = List::new();
    let mut ask = |rng: &mut StdRng, name: &str, amounts: &[&str]| {
        requests.insert(name.to_owned(), text(rng, amounts).parse().expect("a quantity"));
    };
    ask(rng, "cpu", &["1m", "100m", "250m", "1", "1500m", "3"]);
    if rng.random_bool(0.5) {
        ask(rng, "memory", &["100M", "33Mi", "1Gi", "3G", "1500m"]);
    }
    if rng.random_bool(0.3) {
        ask(rng, "example.com/gpu", &["1", "2"]);
    }
    Replica { requests, priority_class: text(rng, &CLASSES), ..Replica::default() }
}
