//! Where did pods go?

use super::{Promise, Violation, condition, is_of, is_told, node_of};
use crate::history::Entry;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::collections::BTreeMap;

/// What nodes have and how much of it is the line: 65 % of 4 cores and 8 GiB. What a node uses by itself is not counted: of
/// one that was never measured nobody can know it.
const LINE: (u64, u64) = (2600, 5324);

fn uid(pod: &Value) -> &str {
    pod["metadata"]["uid"].as_str().unwrap_or_default()
}

/// Is this a pod being given a node?
fn binds(entry: &Entry) -> Option<&str> {
    let to = node_of(&entry.after).filter(|_| entry.is_of("pods"))?;
    (node_of(&entry.before) != Some(to)).then_some(to)
}

pub(super) fn bound_once(history: &[Entry], end: &BTreeMap<&str, &Value>, found: &mut Vec<Violation>) {
    let mut bound: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history {
        let Some(node) = binds(entry) else { continue };
        if let Some(before) = bound.insert(uid(&entry.after), node) {
            found.push(Violation {
                promise: Promise::BoundOnce,
                what: format!("{} was bound to {before} and again to {node}", entry.path),
                about: vec![entry.path.clone()],
            });
        }
    }
    for (path, pod) in end.iter().filter(|(path, _)| is_of(path, "pods")) {
        let scheduled = condition(pod, "PodScheduled");
        if node_of(pod).is_none() && pod["metadata"]["deletionTimestamp"].is_null() && !is_told(scheduled) {
            found.push(Violation {
                promise: Promise::BoundOnce,
                what: format!("{path} waits, and nobody says why"),
                about: vec![(*path).to_owned()],
            });
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

pub(super) fn line(history: &[Entry], found: &mut Vec<Violation>) {
    let mut there: BTreeMap<&str, &Value> = BTreeMap::new();
    for entry in history.iter().filter(|entry| entry.is_of("pods")) {
        if entry.after.is_null() {
            there.remove(entry.path.as_str());
            continue;
        }
        there.insert(&entry.path, &entry.after);
        let Some(node) = binds(entry) else { continue };
        let stays =
            |pod: &&&Value| node_of(pod) == Some(node) && pod["metadata"]["deletionTimestamp"].is_null();
        let sum =
            there.values().filter(stays).map(|pod| uses(pod)).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        if sum.0 > LINE.0 || sum.1 > LINE.1 {
            found.push(Violation {
                promise: Promise::Line,
                what: format!(
                    "{} went to {node}, where {}m and {} MiB are used then: the line is {}m and {} MiB",
                    entry.path, sum.0, sum.1, LINE.0, LINE.1
                ),
                about: there
                    .iter()
                    .filter(|(_, pod)| stays(pod))
                    .map(|(path, _)| (*path).to_owned())
                    .collect(),
            });
        }
    }
}

fn owner(pod: &Value) -> &str {
    pod["metadata"]["ownerReferences"][0]["uid"].as_str().unwrap_or_default()
}

pub(super) fn cooling(history: &[Entry], found: &mut Vec<Violation>) {
    let anchor: Timestamp = crate::floor::ANCHOR.parse().unwrap_or(Timestamp::UNIX_EPOCH);
    // Whose pods were sent away from where; and until when nodes cool, and since when they say so.
    let mut sent: Vec<(&str, &str, &str)> = Vec::new();
    let mut cools: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history {
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
        let victim = sent.iter().find(|(of, from, _)| *from == node && *of == owner(&entry.after));
        let (Some((.., path)), Some(until)) = (victim, cools.get(node)) else { continue };
        let now = anchor + SignedDuration::from_millis(entry.at.cast_signed());
        if until.parse::<Timestamp>().is_ok_and(|until| until > now) {
            found.push(Violation {
                promise: Promise::Cooling,
                what: format!(
                    "{} came to {node}, which had sent away {path} and cools until {until}",
                    entry.path
                ),
                about: vec![entry.path.clone(), (*path).to_owned(), format!("/nodes/{node}")],
            });
        }
    }
}
