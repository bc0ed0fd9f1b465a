//! What is left on nodes at the end? A node whose pods want more than is good for it has a reason, and is at no rest.

use super::{Findings, Promise, condition, is_of, node_of};
use crate::history::Entry;
use serde_json::Value;
use std::collections::BTreeMap;

/// Whoever wants less of a node's 4 cores, in thousandths, leaves it below the lines.
const CALM: u64 = 2700;

pub(super) fn left_behind(history: &[Entry], end: &BTreeMap<&str, &Value>, found: &mut Findings) {
    // Whatever was put there could have stayed.
    let tainted = |node: &Value| node["spec"]["taints"].as_array().is_some_and(|all| !all.is_empty());
    let put = history.iter().filter(|entry| match entry.verb {
        "quota" => !entry.after.is_null(),
        _ => entry.is_of("nodes") && entry.who.starts_with("agent/") && tainted(&entry.after),
    });
    put.for_each(|_| found.occasion(Promise::LeftBehind));
    let mut left = |path: &str, what: String| found.broken(Promise::LeftBehind, what, vec![path.to_owned()]);
    let pods = || end.iter().filter(|(path, _)| is_of(path, "pods"));
    let rests = |name: &str| {
        let here = pods().filter(|(_, pod)| node_of(pod) == Some(name));
        here.map(|(_, pod)| super::pods::uses(pod).0).sum::<u64>() < CALM
    };
    for (path, node) in end.iter().filter(|(path, _)| is_of(path, "nodes")) {
        if !rests(path.rsplit('/').next().unwrap_or_default()) {
            continue;
        }
        let taints = node["spec"]["taints"].as_array().into_iter().flatten();
        for taint in taints.filter(|taint| taint["key"].as_str() == Some("interference.crane.io")) {
            left(path, format!("{path} still has the taint {taint}"));
        }
        let mark = &node["metadata"]["annotations"]["loadline.dev/cooling-until"];
        if !mark.is_null() {
            left(path, format!("{path} is still marked as cooling, until {mark}"));
        }
        let told = condition(node, "interference-identified");
        if told.is_some_and(|one| one["status"].as_str() == Some("True")) {
            left(path, format!("{path} still says that it is overloaded"));
        }
    }
    let mut quotas: BTreeMap<&str, (&str, &Value)> = BTreeMap::new();
    for entry in history.iter().filter(|entry| entry.verb == "quota") {
        quotas.insert(entry.name(), (&entry.path, &entry.after));
    }
    for (path, pod) in pods() {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default();
        let resting = node_of(pod).is_none_or(rests);
        if let Some((quota, us)) = quotas.get(uid).filter(|(_, us)| resting && !us.is_null()) {
            left(quota, format!("{path} is still held to {us} µs"));
        }
        let reserved = pod["status"]["nominatedNodeName"].as_str().filter(|node| !node.is_empty());
        if let (Some(_), Some(reserved)) = (node_of(pod), reserved) {
            left(path, format!("{path} has a node, and room is still kept for it on {reserved}"));
        }
    }
}
