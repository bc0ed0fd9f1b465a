//! What would an agent have noted of a node, going by what the metrics API says of it?
//!
//! Somebody who asks at night has no snapshot of an agent: `NodeMetrics` and `PodMetrics` stand in. They know CPU and
//! memory, and nothing of page cache, disks or what was done before. One moment cannot show how long it has been like
//! this, so it is taken to have been long enough for every rule.

use crate::kind::Kind;
use crate::manifest::{Manifest, Manifests};
use crate::problem::Problem;
use loadline_api::json::Tree;
use loadline_api::qos::snapshot::SNAPSHOT;
use loadline_api::{metrics, node};
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use loadline_core::object::Key;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The metrics API is asked less often than an agent looks.
const INTERVAL_SECONDS: i64 = 60;

/// Puts a snapshot among the objects, if there is none; what is missing for it is noted. Of several snapshots those of
/// other nodes than the one that is named are left out.
pub(super) fn stand_in(manifests: &mut Manifests, wanted: Option<&str>) {
    let samples = of_nodes(manifests);
    let usage = of_pods(manifests);
    let other = |object: &Manifest| wanted.is_some_and(|wanted| *object.key().name != *wanted);
    manifests.objects.retain(|object| object.kind != Kind::NODE_SNAPSHOT || !other(object));
    if manifests.objects.iter().any(|object| object.kind == Kind::NODE_SNAPSHOT) {
        return;
    }
    // What could not be read may have been what is missing.
    if !manifests.problems.is_empty() {
        return;
    }
    let names: Vec<&str> = samples.keys().map(String::as_str).collect();
    let message = match (wanted, names.as_slice()) {
        (Some(name), _) if samples.contains_key(name) => Ok(name),
        (Some(name), _) => {
            Err(format!("expected a NodeSnapshot or NodeMetrics of the node {name}, found neither"))
        }
        (None, [only]) => Ok(*only),
        (None, []) => Err("expected a NodeSnapshot, or NodeMetrics of a node, found neither".to_owned()),
        (None, all) => {
            let all = all.join(", ");
            Err(format!("expected one node, found measurements of several: --node chooses one of {all}"))
        }
    };
    match message {
        Ok(name) => {
            let (place, sample) = &samples[name];
            let snapshot = snapshot(manifests, name, sample, &usage);
            let location = place.location.clone();
            manifests.objects.push(Manifest { location, kind: Kind::NODE_SNAPSHOT, value: snapshot });
            manifests.warn(Problem::general(format!(
                "there is no snapshot of an agent: {name} is taken as the metrics API has it, and to have been like this for as long as the rules ask"
            )));
        }
        Err(message) => manifests.problems.push(Problem::general(message)),
    }
}

/// The newest measurement of each node.
fn of_nodes(manifests: &mut Manifests) -> BTreeMap<String, (Manifest, Sample)> {
    let mut newest: BTreeMap<String, (Manifest, Sample)> = BTreeMap::new();
    for object in manifests.take_all(Kind::NODE_METRICS) {
        let read = |tree: &Tree<'_>| metrics::node(tree).map(|sample| (sample, Vec::new()));
        let Some((name, sample)) = manifests.optional(&object, read) else { continue };
        if newest.get(&name).is_none_or(|(_, known)| known.at < sample.at) {
            newest.insert(name, (object, sample));
        }
    }
    newest
}

/// What was measured of the containers of each pod, the newest of it.
type Usage = BTreeMap<Key, Vec<(String, Sample)>>;

fn of_pods(manifests: &mut Manifests) -> Usage {
    let mut newest = Usage::new();
    for object in manifests.take_all(Kind::POD_METRICS) {
        let read = |tree: &Tree<'_>| metrics::containers(tree).map(|found| (found, Vec::new()));
        let Some((key, found)) = manifests.optional(&object, read) else { continue };
        let at = |found: &[(String, Sample)]| found.first().map(|(_, sample)| sample.at);
        if newest.get(&key).is_none_or(|known| at(known) < at(&found)) {
            newest.insert(key, found);
        }
    }
    newest
}

fn snapshot(manifests: &Manifests, name: &str, sample: &Sample, usage: &Usage) -> Value {
    let here: BTreeSet<Key> = manifests
        .objects
        .iter()
        .filter(|object| object.kind == Kind::POD && object.value["spec"]["nodeName"] == *name)
        .map(Manifest::full_key)
        .collect();
    let pods =
        usage.iter().filter(|(key, _)| here.contains(key)).map(|(key, containers)| pod(key, containers));
    json!({
        "apiVersion": SNAPSHOT.0,
        "kind": SNAPSHOT.1,
        "metadata": {"name": name},
        "timestamp": sample.at.to_string(),
        "metrics": series(manifests, name, sample.usage),
        "pods": pods.collect::<Vec<_>>(),
        "state": {"rules": lasting(manifests)},
        "options": {"collectIntervalSeconds": INTERVAL_SECONDS},
    })
}

fn cores(load: Load) -> f64 {
    precise(load.cpu_nano) / 1e9
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a measurement; what is beyond 2^53 is off by a billionth of a billionth"
)]
fn precise(amount: i64) -> f64 {
    amount as f64
}

fn pod(key: &Key, containers: &[(String, Sample)]) -> Value {
    let memory: i64 =
        containers.iter().map(|(_, sample)| sample.usage.memory_bytes).fold(0, i64::saturating_add);
    let cpu = containers.iter().map(|(_, sample)| sample.usage).fold(Load::ZERO, Load::plus);
    let container =
        |(name, sample): &(String, Sample)| json!({"name": name, "cpuUsage": cores(sample.usage)});
    json!({
        "namespace": *key.namespace,
        "name": *key.name,
        "cpuUsage": cores(cpu),
        "memUsage": memory,
        "containers": containers.iter().map(container).collect::<Vec<_>>(),
    })
}

/// In the units of the metrics: thousandths of a core, bytes, percent of what the node has in all, where it says so.
fn series(manifests: &Manifests, name: &str, used: Load) -> Value {
    let of_node = |object: &&Manifest| object.kind == Kind::NODE && *object.key().name == *name;
    let facts = manifests.objects.iter().find(of_node).and_then(|object| node::facts(&object.tree()).ok());
    let capacity = |resource: &str| {
        let amount = facts.as_ref()?.0.capacity.get(resource)?;
        let whole = precise(if resource == "cpu" { amount.milli_value() } else { amount.value() });
        (whole > 0.0).then_some(whole)
    };
    let (cpu, memory) = (cores(used) * 1000.0, precise(used.memory_bytes));
    let mut all = vec![
        json!({"name": "cpu_total_usage", "value": cpu}),
        json!({"name": "memory_total_usage", "value": memory}),
    ];
    let percent = |name: &str, used: f64, whole: Option<f64>| {
        whole.map(|whole| json!({"name": name, "value": used / whole * 100.0}))
    };
    all.extend(percent("cpu_total_utilization", cpu, capacity("cpu")));
    all.extend(percent("memory_total_utilization", memory, capacity("memory")));
    all.into()
}

/// Every rule is one look away from acting.
fn lasting(manifests: &Manifests) -> Value {
    let mut all = Vec::new();
    for object in manifests.objects.iter().filter(|object| object.kind == Kind::NODE_QOS) {
        let rules = object.value["spec"]["rules"].as_array().into_iter().flatten();
        for rule in rules {
            let before = rule["avoidanceThreshold"].as_i64().unwrap_or(1) - 1;
            if let (Some(name), true) = (rule["name"].as_str(), before > 0) {
                all.push(json!({"rule": format!("{}/{name}", object.key().name), "above": before}));
            }
        }
    }
    all.into()
}
