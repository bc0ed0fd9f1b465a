//! What was measured, beside what the cluster has: who asked for what, who belongs together, who stays with its node.

use super::gaps::{Stay, mend};
use super::{Machine, Objects, Options, Recorded, Recording, STEP, Used, workload};
use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::quantity::Quantity;
use loadline_core::view::{NodeFacts, Phase, PodFacts};
use std::collections::{BTreeMap, BTreeSet};

/// A pod that runs for less may not have been measured yet.
const YOUNG: i64 = 3 * STEP;
/// How many names are told.
const NAMED: usize = 10;
/// A node with this taint is not for everybody's pods.
const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";

/// Puts together.
///
/// # Errors
/// Everything that is wrong, a sentence each.
pub(super) fn join(objects: &Objects, used: Used, options: &Options) -> Result<Recording, Vec<String>> {
    let (apart, nodes): (Vec<&NodeFacts>, Vec<&NodeFacts>) =
        objects.nodes.iter().partition(|node| node.taints.iter().any(|taint| &*taint.key == CONTROL_PLANE));
    if used.samples == 0 {
        return Err(vec![nothing(&used, options)]);
    }
    if nodes.is_empty() {
        return Err(vec!["the cluster has no nodes for pods".to_owned()]);
    }
    let mut problems = unmeasured(&nodes, &objects.pods, &used, options);
    let largest = nodes.iter().map(|node| cpu_milli(node)).max().unwrap_or(0);
    problems.extend(too_large(&used, largest));
    let known: BTreeMap<&Key, &PodFacts> = objects.pods.iter().map(|pod| (&pod.key, pod)).collect();
    let of = |key: &Key| (key.namespace.clone(), workload::of(&key.name).to_owned());
    // Who stays with its node, by workload: those that are gone, too.
    let bound: BTreeSet<_> = objects.pods.iter().filter(|pod| stays(pod)).map(|pod| of(&pod.key)).collect();
    let elsewhere = |key: &Key| {
        let node = known.get(key).and_then(|pod| pod.node.as_deref());
        node.is_some_and(|node| apart.iter().any(|other| other.name == node))
    };
    let mut requests: BTreeMap<_, (Option<Timestamp>, i64)> = BTreeMap::new();
    for pod in &objects.pods {
        let asked = pod.requests.get("cpu").map_or(0, Quantity::milli_value);
        let newest = requests.entry(of(&pod.key)).or_insert((pod.created, asked));
        *newest = (*newest).max((pod.created, asked));
    }
    let (stay, free): (BTreeMap<_, _>, BTreeMap<_, _>) = used
        .pods
        .into_iter()
        .filter(|(key, _)| !elsewhere(key))
        .partition(|(key, _)| bound.contains(&of(key)));
    let mended = mend(free.values().map(Vec::as_slice), options.steps, options.since());
    let mended = match (mended, problems.is_empty()) {
        (Ok(mended), true) => mended,
        (mended, _) => {
            problems.extend(mended.err().into_iter().flatten());
            return Err(problems);
        }
    };
    let mut remarks = used.warnings.into_iter().map(|warning| format!("Prometheus: {warning}")).collect();
    note(
        &mut remarks,
        stay.len(),
        "pods stay with their nodes, such as those of daemon sets: what they used on average is taken off what these have",
    );
    note(
        &mut remarks,
        mended.bridged,
        "measurements were missing, at most three in a row, and lie on the line between those around them",
    );
    note(&mut remarks, apart.len(), "nodes of the control plane, and the pods on them, are left out");
    let again = mended.stays.iter().filter(|stays| stays.len() > 1).count();
    note(&mut remarks, again, "pods were not measured for a while and count as having left and come again");
    let mut pods = Vec::new();
    let mut guessed = 0;
    for (key, stays) in free.keys().zip(mended.stays) {
        let asked = known.get(key).and_then(|pod| pod.requests.get("cpu")).map(Quantity::milli_value);
        let named = of(key);
        let request = asked.or_else(|| requests.get(&named).map(|(_, milli)| *milli));
        guessed += usize::from(request.is_none());
        let created = known.get(key).and_then(|pod| pod.created);
        for Stay { arrives, milli } in stays {
            let recorded = Recorded {
                pod: key.clone(),
                workload: format!("{}/{}", named.0, named.1),
                request_milli: request,
                arrives,
                milli,
            };
            // Whoever has no age is gone: it came before those that are still there.
            pods.push(((arrives, created, key.clone()), recorded));
        }
    }
    note(
        &mut remarks,
        guessed,
        "pods are gone, and none of their workload is left to say what they asked for: taken to be what they used on average",
    );
    pods.sort_by(|(one, _), (other, _)| one.cmp(other));
    let mut machines: Vec<Machine> = nodes
        .iter()
        .map(|node| Machine {
            name: node.name.clone(),
            milli: (cpu_milli(node) - taken(&node.name, &stay, &known)).max(1),
        })
        .collect();
    machines.sort_by(|one, other| one.name.cmp(&other.name));
    let pods = pods.into_iter().map(|(_, pod)| pod).collect();
    Ok(Recording { nodes: machines, pods, steps: options.steps, notes: remarks })
}

fn note(remarks: &mut Vec<String>, count: usize, what: &str) {
    if count > 0 {
        remarks.push(format!("{count} {what}"));
    }
}

/// Does it go wherever its node goes, and nowhere else?
fn stays(pod: &PodFacts) -> bool {
    pod.daemon || pod.owner.as_ref().is_some_and(|owner| &*owner.kind == "Node")
}

fn cpu_milli(node: &NodeFacts) -> i64 {
    node.allocatable.get("cpu").map_or(0, Quantity::milli_value)
}

/// What those that stay used on a node, on average, in thousandths of a core.
fn taken(node: &str, stay: &BTreeMap<Key, Vec<(u32, u32)>>, known: &BTreeMap<&Key, &PodFacts>) -> i64 {
    let here =
        stay.iter().filter(|(key, _)| known.get(key).is_some_and(|pod| pod.node.as_deref() == Some(node)));
    here.map(|(_, row)| {
        let sum: i64 = row.iter().map(|(_, milli)| i64::from(*milli)).sum();
        sum / i64::try_from(row.len().max(1)).unwrap_or(1)
    })
    .sum()
}

fn nothing(used: &Used, options: &Options) -> String {
    let address = &options.target.address;
    if used.unlabelled > 0 {
        return format!(
            "prometheus: {address}: {} series, none with the labels namespace and pod; asked for {}",
            used.unlabelled, options.query
        );
    }
    format!(
        "prometheus: {address}: nothing was measured; asked for {}: are the kubelets' /metrics/cadvisor scraped, at least every two minutes?",
        options.query
    )
}

/// Nodes whose pods run and are not measured.
fn unmeasured(nodes: &[&NodeFacts], pods: &[PodFacts], used: &Used, options: &Options) -> Vec<String> {
    let old = options.until.as_second() - YOUNG;
    let newest = u32::try_from(options.steps.saturating_sub(4)).unwrap_or(u32::MAX);
    let mut by_node: BTreeMap<&str, [usize; 2]> = BTreeMap::new();
    for pod in pods {
        let runs = pod.phase == Phase::Running && pod.accepted.is_some_and(|at| at.as_second() <= old);
        let Some(node) = pod.node.as_deref().filter(|_| runs) else { continue };
        let measured =
            used.pods.get(&pod.key).and_then(|row| row.last()).is_some_and(|last| last.0 >= newest);
        let counts = by_node.entry(node).or_default();
        counts[0] += 1;
        counts[1] += usize::from(measured);
    }
    by_node.retain(|name, _| nodes.iter().any(|node| node.name == *name));
    let running: usize = by_node.values().map(|counts| counts[0]).sum();
    if running > 0 && by_node.values().all(|counts| counts[1] == 0) {
        let measured = used.pods.len();
        return vec![format!(
            "none of the {running} pods that run here is among the {measured} that were measured: is it the Prometheus of this cluster? One of several clusters is chosen with --prometheus-matcher"
        )];
    }
    let missing: Vec<&str> =
        by_node.iter().filter(|(_, counts)| counts[1] == 0).map(|(name, _)| *name).collect();
    if missing.is_empty() {
        return Vec::new();
    }
    let all = by_node.len();
    vec![format!(
        "{} of {all} nodes with pods are not measured: {}; are their kubelets scraped?",
        missing.len(),
        listed(&missing)
    )]
}

fn too_large(used: &Used, largest: i64) -> Option<String> {
    let most = |row: &Vec<(u32, u32)>| row.iter().map(|(_, milli)| i64::from(*milli)).max().unwrap_or(0);
    // A moment's rate may be a little more than there is.
    let names: Vec<String> = used
        .pods
        .iter()
        .filter(|(_, row)| most(row) > largest * 3 / 2)
        .map(|(key, _)| key.to_string())
        .collect();
    (!names.is_empty()).then(|| {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        format!("{} used more than the largest node has, {largest}m: is the query in cores?", listed(&names))
    })
}

fn listed(names: &[&str]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let shown = names[..names.len().min(NAMED)].join(", ");
    if more == 0 { shown } else { format!("{shown} and {more} more") }
}
