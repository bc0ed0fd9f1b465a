//! Do two components say different things about a node, or do two do the same work?

use super::facts::{Facts, Lease, Node};
use super::preflight::CRANE_LEASE;
use super::{Finding, count, few, verb};
use crate::ledger::Sample;
use crate::load::policy::{Figure, Range};
use crate::load::ratio::Ratio;
use crate::load::term::RECENT;
use crate::load::{Metered, annotation, taints};
use crate::qos::taint;
use crate::rebalance::COOLING_TAINT;
use crate::view::loads;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

const CHECK: &str = "agreement";

pub(super) fn check(facts: &Facts) -> Vec<Finding> {
    let mut out = leaders(facts);
    let Some(nodes) = facts.nodes.read() else { return out };
    out.extend(apart(facts, nodes));
    out.extend(cooling(facts, nodes));
    out.extend(interfering(nodes));
    out.extend(tainted(facts, nodes));
    out
}

/// How far apart two accounts of the same node may be, of its capacity. CPU of five minutes and of a moment differ with every
/// burst; kernels count some memory that kubelets do not.
fn allowed(resource: Metered) -> f64 {
    match resource {
        Metered::Cpu => 0.5,
        Metered::Memory => 0.3,
    }
}

/// Annotation and metrics API far apart.
fn apart(facts: &Facts, nodes: &[Node]) -> Option<Finding> {
    let samples: FxHashMap<&str, &Sample> =
        facts.metrics.read()?.iter().map(|(name, sample)| (name.as_str(), sample)).collect();
    let zone = facts.rules.settings().time_zone.as_ref();
    let mut found: Vec<(&str, String, f64)> = Vec::new();
    for node in nodes {
        let Some(sample) = samples.get(node.name()).filter(|one| facts.now.duration_since(one.at) <= RECENT)
        else {
            continue;
        };
        let capacity = loads(&node.facts.capacity);
        for metric in facts.rules.metrics() {
            let Some(derivable) = metric.derivable.filter(|one| one.range == Range::Avg5m) else { continue };
            let resource = derivable.resource;
            let has = match resource {
                Metered::Cpu => capacity[0],
                Metered::Memory => capacity[1],
            };
            let text = node.facts.annotations.get(&*metric.name);
            let reading = text.and_then(|text| annotation::read(text, zone).ok());
            let Some(reading) = reading.filter(|one| facts.now.duration_since(one.at) <= RECENT) else {
                continue;
            };
            let (Ok(said), Some(measured)) = (
                reading.value.map(Figure::to_f64),
                has.and_then(|has| Ratio::of(sample.usage.get(resource), has)),
            ) else {
                continue;
            };
            let difference = (said - measured.to_f64()).abs();
            if difference > allowed(resource) {
                let how = format!(
                    "{resource} of {} is {said:.2} by its annotation and {:.2} by the metrics API",
                    node.name(),
                    measured.to_f64()
                );
                found.push((node.name(), how, difference));
            }
        }
    }
    let (_, how, _) = found.iter().max_by(|a, b| a.2.total_cmp(&b.2))?;
    let mut names: Vec<&str> = found.iter().map(|(name, ..)| *name).collect();
    names.dedup();
    let what = format!("two accounts of {} are far apart: {how}", count(names.len(), "node"));
    let first = names[0];
    Some(
        Finding::warning(CHECK, what)
            .why("schedulers by annotations and by measurements decide differently about the same node")
            .fix(
                "look which is right on the node itself (`top`); often a label of Prometheus names another machine, or the rule \
                 counts percent of something else",
            )
            .show(format!("kubectl top node {first}; kubectl get node {first} -o jsonpath='{{.metadata.annotations}}'"))
            .about(names),
    )
}

fn bears(node: &Node, key: &str) -> bool {
    node.facts.taints.iter().any(|taint| taint.key == key)
}

/// Cooling marks and the taint that comes with them.
fn cooling(facts: &Facts, nodes: &[Node]) -> Vec<Finding> {
    let is_marked = |node: &Node| node.cooling.is_some_and(|until| until > facts.now);
    let (mut left, mut open, mut closed) = (Vec::new(), Vec::new(), 0);
    for node in nodes {
        match (is_marked(node), bears(node, COOLING_TAINT)) {
            (false, true) => left.push(node.name()),
            (true, false) => open.push(node.name()),
            (true, true) => closed += 1,
            (false, false) => {}
        }
    }
    let mut out = Vec::new();
    if !left.is_empty() {
        let number = left.len();
        let what = format!(
            "{} {} the taint {COOLING_TAINT} without a cooling mark: {}",
            count(number, "node"),
            verb(number, "bears", "bear"),
            few(&left)
        );
        out.push(
            Finding::broken(CHECK, what)
                .why("no pod comes there any more, and nobody will take the taint away: `loadline rebalance` ended without doing so")
                .fix(format!("start `loadline rebalance` again, or: kubectl taint nodes {} {COOLING_TAINT}-", left[0]))
                .show(format!("kubectl get node {} -o jsonpath='{{.spec.taints}}'", left[0]))
                .about(left),
        );
    }
    // By default there is only the mark; where others have the taint, one without is half of what was meant.
    if !open.is_empty() && closed > 0 {
        let number = open.len();
        let what = format!(
            "{} {} a cooling mark without the taint {COOLING_TAINT}: {}",
            count(number, "node"),
            verb(number, "bears", "bear"),
            few(&open)
        );
        out.push(
            Finding::warning(CHECK, what)
                .why("schedulers that know no cooling mark send pods to the node that just gave some up")
                .fix("look who writes marks: an agent writes no taint of this key; two rebalancers may have different settings (`closing`)")
                .show(format!("kubectl get node {} -o jsonpath='{{.metadata.annotations}}'", open[0]))
                .about(open),
        );
    }
    out
}

/// The agent's taint and its condition.
fn interfering(nodes: &[Node]) -> Option<Finding> {
    let odd = |node: &&Node| node.interference == Some(false) && bears(node, taint::KEY);
    let names: Vec<&str> = nodes.iter().filter(odd).map(Node::name).collect();
    let first = *names.first()?;
    let number = names.len();
    let what = format!(
        "{} {} the taint {} while the condition {} says that nothing is wrong: {}",
        count(number, "node"),
        verb(number, "bears", "bear"),
        taint::KEY,
        taint::CONDITION,
        few(&names)
    );
    Some(
        Finding::warning(CHECK, what)
            .why("the node is avoided without a reason")
            .fix(format!(
                "look whether its agent runs; it takes the taint away, or: kubectl taint nodes {first} {}-",
                taint::KEY
            ))
            .show(format!("kubectl describe node {first}"))
            .about(names),
    )
}

/// A taint for load that nobody keeps up.
fn tainted(facts: &Facts, nodes: &[Node]) -> Option<Finding> {
    let zone = facts.rules.settings().time_zone.as_ref();
    let is_fresh = |node: &Node| {
        facts.rules.metrics().iter().any(|metric| {
            let text = node.facts.annotations.get(&*metric.name);
            let at = text.and_then(|text| Some(annotation::read(text, zone).ok()?.at));
            metric.window.zip(at).is_some_and(|(window, at)| facts.now.duration_since(at) <= window)
        })
    };
    let odd = |node: &&Node| bears(node, taints::KEY) && !is_fresh(node);
    let names: Vec<&str> = nodes.iter().filter(odd).map(Node::name).collect();
    let first = *names.first()?;
    let number = names.len();
    let what = format!(
        "{} {} the taint {} with no load annotation that is still good: {}",
        count(number, "node"),
        verb(number, "bears", "bear"),
        taints::KEY,
        few(&names)
    );
    Some(
        Finding::broken(CHECK, what)
            .why("pods are kept away by a load that nobody measures any more")
            .fix(format!("start `loadline annotator`: it takes away what an earlier one left, or: kubectl taint nodes {first} {}-", taints::KEY))
            .show(format!("kubectl get node {first} -o jsonpath='{{.spec.taints}}'"))
            .about(names),
    )
}

/// Two who lead the same work, and work that nobody leads.
fn leaders(facts: &Facts) -> Vec<Finding> {
    let Some(leases) = facts.leases.read() else { return Vec::new() };
    let ours = |lease: &&Lease| !lease.is_of_node() && lease.key.name.starts_with("loadline-");
    let mut by_name: BTreeMap<&str, Vec<&Lease>> = BTreeMap::new();
    for lease in leases.iter().filter(ours) {
        by_name.entry(&lease.key.name).or_default().push(lease);
    }
    let crane = leases.iter().find(|lease| &*lease.key.name == CRANE_LEASE && lease.is_held(facts.now));
    let mut out = Vec::new();
    for (name, all) in by_name {
        let held: Vec<&&Lease> = all.iter().filter(|lease| lease.is_held(facts.now)).collect();
        let show = format!("kubectl get leases -A --field-selector metadata.name={name}");
        let mut who: Vec<String> = held.iter().map(|lease| holder(lease)).collect();
        if name == "loadline-annotator" && !held.is_empty() {
            who.extend(crane.map(holder));
        }
        if who.len() > 1 {
            out.push(
                Finding::broken(CHECK, format!("{} lead the same work at once: {}", who.len(), few(&who)))
                    .why("neither knows of the other: both write the same objects, or give away the same room")
                    .fix("let all of them use one lease (--leader-elect-resource-namespace and -name), or end all but one")
                    .show(show)
                    .about(who),
            );
        } else if let (Some(held), 1) = (held.first(), who.len()) {
            out.push(Finding::ok(CHECK, format!("{name} is led by {}", holder(held)), show));
        } else if let Some(last) = all.iter().find(|lease| lease.holder.is_some()) {
            let who = last.holder.as_deref().unwrap_or_default();
            let what = format!("nobody leads by the lease {}: {who} stopped renewing it", last.key);
            out.push(
                Finding::warning(CHECK, what)
                    .why("its work is not done; one that stands by would have taken over by now")
                    .fix("look whether the component runs; if it is gone for good, delete the lease")
                    .show(show),
            );
        }
    }
    out
}

fn holder(lease: &Lease) -> String {
    format!("{} ({})", lease.holder.as_deref().unwrap_or("nobody"), lease.key)
}
