//! Where did pods go?

use super::{Findings, Promise, condition, is_of, is_told, node_of, rested};
use crate::history::Entry;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// What nodes have and how much of it is the line: 65 % of 4 cores and 8 GiB. What a node uses by itself is not counted: of
/// one that was never measured nobody can know it.
const LINE: (u64, u64) = (2600, 5324);
/// What a node uses by itself, once it is measured.
const SYSTEM: (u64, u64) = (100, 256);

/// By how much a clock may differ that agrees with others: whoever goes by it may think that a node has cooled.
const SKEW: SignedDuration = SignedDuration::from_secs(2);

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Is this a pod being given a node?
fn binds(entry: &Entry) -> Option<&str> {
    let to = node_of(&entry.after).filter(|_| entry.is_of("pods"))?;
    (node_of(&entry.before) != Some(to)).then_some(to)
}

pub(super) fn bound_once(history: &[Entry], end: &BTreeMap<&str, &Value>, found: &mut Findings) {
    let mut bound: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history {
        let Some(node) = binds(entry) else { continue };
        found.occasion(Promise::BoundOnce);
        if let Some(before) = bound.insert(uid(&entry.after), node) {
            let what = format!("{} was bound to {before} and again to {node}", entry.path);
            found.broken(Promise::BoundOnce, what, vec![entry.path.clone()]);
        }
    }
    for (path, pod) in waiting(end) {
        found.occasion(Promise::BoundOnce);
        if !is_told(condition(pod, "PodScheduled")) {
            let what = format!("{path} waits, and nobody says why");
            found.broken(Promise::BoundOnce, what, vec![path.to_owned()]);
        }
    }
}

/// Pods that have no node at the end.
fn waiting<'a>(end: &BTreeMap<&'a str, &'a Value>) -> impl Iterator<Item = (&'a str, &'a Value)> {
    let waits = |pod: &Value| node_of(pod).is_none() && pod["metadata"]["deletionTimestamp"].is_null();
    end.iter().filter(move |(path, pod)| is_of(path, "pods") && waits(pod)).map(|(path, pod)| (*path, *pod))
}

/// A reason is not enough: who has waited for long, though a node has had room for as long, was forgotten.
pub(super) fn lost(history: &[Entry], end: &BTreeMap<&str, &Value>, found: &mut Findings) {
    // When each pod came, and when something about a node and who is there last changed.
    let mut came: BTreeMap<&str, u64> = BTreeMap::new();
    let mut changed: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in history {
        if entry.is_of("pods") {
            came.entry(uid(&entry.after)).or_insert(entry.at);
            for node in [&entry.before, &entry.after].into_iter().filter_map(node_of) {
                changed.insert(node, entry.at);
            }
        } else if entry.is_of("nodes") {
            changed.insert(entry.name(), entry.at);
        }
    }
    let used = |node: &str| {
        let here = end.iter().filter(|(path, pod)| is_of(path, "pods") && node_of(pod) == Some(node));
        here.map(|(_, pod)| uses(pod)).fold(SYSTEM, |a, b| (a.0 + b.0, a.1 + b.1))
    };
    let calm = |name: &str, node: &Value| {
        node["spec"]["taints"].as_array().is_none_or(Vec::is_empty)
            && node["metadata"]["annotations"]["loadline.dev/cooling-until"].is_null()
            && changed.get(name).is_some_and(|at| rested(*at, history))
    };
    let nodes = end.iter().filter(|(path, _)| is_of(path, "nodes"));
    let nodes = nodes.map(|(path, node)| (path.rsplit('/').next().unwrap_or_default(), *node));
    let nodes: Vec<(&str, (u64, u64))> =
        nodes.filter(|(name, node)| calm(name, node)).map(|(name, _)| (name, used(name))).collect();
    let long = |pod: &Value| came.get(uid(pod)).is_some_and(|at| rested(*at, history));
    for (path, pod) in waiting(end).filter(|(_, pod)| long(pod)) {
        found.occasion(Promise::NothingLost);
        let (cpu, memory) = uses(pod);
        let fits = |(_, used): &&(&str, (u64, u64))| used.0 + cpu < LINE.0 && used.1 + memory < LINE.1;
        if let Some((node, used)) = nodes.iter().find(fits) {
            let what = format!(
                "{path} wants {cpu}m and {memory} MiB and waits, though for minutes no more than {}m and {} MiB were used on {node}",
                used.0, used.1
            );
            found.broken(Promise::NothingLost, what, vec![path.to_owned(), format!("/nodes/{node}")]);
        }
    }
}

/// What a pod uses: as much as it asks for.
pub(super) fn uses(pod: &Value) -> (u64, u64) {
    let figure = |name: &str| {
        pod["metadata"]["annotations"][name].as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
    };
    (figure("chaos/cpu"), figure("chaos/memory"))
}

pub(super) fn line(history: &[Entry], until: u64, found: &mut Findings) {
    let mut there: BTreeMap<&str, &Value> = BTreeMap::new();
    for entry in history.iter().filter(|entry| entry.is_of("pods")).take_while(|entry| entry.at < until) {
        if entry.after.is_null() {
            there.remove(entry.path.as_str());
            continue;
        }
        there.insert(&entry.path, &entry.after);
        let Some(node) = binds(entry) else { continue };
        found.occasion(Promise::Line);
        let stays =
            |pod: &&&Value| node_of(pod) == Some(node) && pod["metadata"]["deletionTimestamp"].is_null();
        let sum =
            there.values().filter(stays).map(|pod| uses(pod)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if sum.0 > LINE.0 || sum.1 > LINE.1 {
            let what = format!(
                "{} went to {node}, where {}m and {} MiB are used then: the line is {}m and {} MiB",
                entry.path, sum.0, sum.1, LINE.0, LINE.1
            );
            let about = there.iter().filter(|(_, pod)| stays(pod)).map(|(path, _)| (*path).to_owned());
            found.broken(Promise::Line, what, about.collect());
        }
    }
}

fn owner(pod: &Value) -> &str {
    pod["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default()
}

pub(super) fn cooling(history: &[Entry], until: u64, found: &mut Findings) {
    let anchor: Timestamp = crate::floor::ANCHOR.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    // Whose pods were sent away from where; and until when nodes cool, and since when they say so.
    let mut sent: Vec<(&str, &str, &str)> = Vec::new();
    let mut cools: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history.iter().take_while(|entry| entry.at < until) {
        if entry.is_of("nodes") {
            match entry.after["metadata"]["annotations"]["loadline.dev/cooling-until"].as_str() {
                Some(until) => cools.insert(entry.name(), until),
                None => cools.remove(entry.name()),
            };
        }
        if entry.subresource == "eviction"
            && entry.who.starts_with("agent/")
            && let Some(node) = node_of(&entry.before)
        {
            sent.push((owner(&entry.before), node, &entry.path));
        }
        let Some(node) = binds(entry) else { continue };
        let now = anchor + SignedDuration::from_millis(entry.at.cast_signed());
        let still = |from: &str| {
            let until = cools.get(from)?;
            until.parse::<Timestamp>().is_ok_and(|until| until > now + SKEW).then_some(*until)
        };
        // Wherever it goes: it could have gone back.
        let mut victims =
            sent.iter().filter(|(of, from, _)| *of == owner(&entry.after) && still(from).is_some());
        if victims.clone().next().is_some() {
            found.occasion(Promise::Cooling);
        }
        if let Some((.., path)) = victims.find(|(_, from, _)| *from == node) {
            let until = still(node).unwrap_or_default();
            let what =
                format!("{} came to {node}, which had sent away {path} and cools until {until}", entry.path);
            found.broken(
                Promise::Cooling,
                what,
                vec![entry.path.clone(), (*path).to_owned(), format!("/nodes/{node}")],
            );
        }
    }
}
