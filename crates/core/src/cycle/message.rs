//! Why did no node do, in the words kube-scheduler uses? People and programs know these texts.

use super::decide::{Decision, Input};
use super::local;
use super::prepare::prepare;
use super::{Filter, apart, spread};
use crate::view::{Hold, NodeId, PodView};
use std::collections::{BTreeMap, BTreeSet};

/// The text of a `FailedScheduling` event: how many nodes fail for which reason.
#[must_use]
pub fn message(input: &Input<'_>, pod: &PodView, decision: &Decision) -> String {
    message_with(input, pod, decision, &BTreeMap::new())
}

/// The same where of some nodes with a load over its threshold something of their own is said.
pub(crate) fn message_with(
    input: &Input<'_>,
    pod: &PodView,
    decision: &Decision,
    over: &BTreeMap<NodeId, String>,
) -> String {
    match &decision.hold {
        Some(Hold::Gate(name)) => return format!("held back by the scheduling gate {name:?}"),
        Some(Hold::Unsupported(what)) => {
            return format!(
                "not scheduled, because it needs {what}; kube-scheduler does that (schedulerName: default-scheduler)"
            );
        }
        Some(Hold::Invalid(what)) => return what.clone(),
        Some(Hold::Claim(_)) | None => {}
    }
    let all = input.cluster.nodes().len();
    if all == 0 {
        return "no nodes available to schedule pods".to_owned();
    }
    if pod.wants.required.names().is_some_and(BTreeSet::is_empty) {
        return format!("0/{all} nodes are available: pod affinity terms conflict.");
    }
    if let Some(Hold::Claim(what)) = &decision.hold {
        return format!("0/{all} nodes are available: {what}.");
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let ready = prepare(input, pod);
    let mut places = super::memo::Places::default();
    let spread = spread::Hard::new(input, pod, &ready, &mut places);
    let apart = apart::Hard::new(input, pod, &ready, &mut places);
    for node in input.cluster.nodes() {
        let at = node.id.index();
        let failed =
            local::check(input, pod, &ready, at).or_else(|| spread.check(at)).or_else(|| apart.check(at));
        let Some(rule) = failed else { continue };
        if ready.passes_over(at) {
            *counts.entry("node(s) didn't satisfy plugin(s) [NodeAffinity]".to_owned()).or_default() += 1;
        } else if rule == Filter::Resources {
            let mut free = node.free();
            // What is promised to pods that go first is not free.
            if let Some(promised) = ready.promised(node.id) {
                free = free.minus(&promised.requests);
            }
            for lack in pod.requests.lacking(&free) {
                let text = insufficient(input.cluster.names().name(lack.resource));
                *counts.entry(text).or_default() += 1;
            }
        } else if rule == Filter::VolumeReach {
            // Volumes that are there and those that are not are looked for in one go.
            let claims = ready.volumes.as_ref().and_then(|volumes| volumes.claims.as_ref());
            let more = claims.and_then(|claims| claims.refused(at));
            for rule in [Some(rule), more].into_iter().flatten() {
                *counts.entry(words(rule).to_owned()).or_default() += 1;
            }
        } else if let (Filter::Threshold, Some(text)) = (rule, over.get(&node.id)) {
            *counts.entry(text.clone()).or_default() += 1;
        } else {
            *counts.entry(words(rule).to_owned()).or_default() += 1;
        }
    }
    available(all, &counts)
}

/// That none of so many nodes does, and of how many that is so for which reason.
pub(super) fn available(nodes: usize, counts: &BTreeMap<String, usize>) -> String {
    let mut reasons: Vec<String> = counts.iter().map(|(why, count)| format!("{count} {why}")).collect();
    reasons.sort();
    format!("0/{nodes} nodes are available: {}.", reasons.join(", "))
}

/// That there is not enough of a resource.
pub(super) fn insufficient(name: &str) -> String {
    if name == "pods" { "Too many pods".to_owned() } else { format!("Insufficient {name}") }
}

pub(crate) fn words(rule: Filter) -> &'static str {
    match rule {
        Filter::Cordon => "node(s) were unschedulable",
        Filter::Taints => "node(s) had untolerated taint(s)",
        Filter::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
        Filter::Ports => "node(s) didn't have free ports for the requested pod ports",
        Filter::Resources => "node(s) had too few resources",
        Filter::DiskInUse => "node(s) had no available disk",
        Filter::VolumeInUse => {
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
        }
        Filter::AttachLimit => "node(s) exceed max volume count",
        Filter::VolumeReach => "node(s) didn't match PersistentVolume's node affinity",
        Filter::NoVolume => "node(s) didn't find available persistent volumes to bind",
        Filter::NoStorage => "node(s) did not have enough free storage",
        Filter::VolumeZone => "node(s) had no available volume zone",
        Filter::Spread => "node(s) didn't match pod topology spread constraints",
        Filter::SpreadLabel => {
            "node(s) didn't match pod topology spread constraints (missing required label)"
        }
        Filter::Affinity => "node(s) didn't match pod affinity rules",
        Filter::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
        Filter::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
        Filter::Threshold => "node(s) had a load over its threshold",
        Filter::UnknownLoad => "node(s) had an unknown load",
        Filter::Cooling => "node(s) were cooling down",
        Filter::Line => "node(s) would pass the load line",
    }
}
