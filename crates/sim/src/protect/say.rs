//! What is told? Events, to whoever looks at the node or the pod, and a line per decision, to whoever looks at us.

use super::Agents;
use super::guest::Guest;
use crate::cluster::{Meta, Node};
use crate::node::milli;
use crate::tell::{About, Event};
use loadline_core::object::Key;
use loadline_core::qos::gap::Category;
use loadline_core::qos::policy::RuleName;
use loadline_core::qos::taint::Closed;
use loadline_core::qos::{Plan, Quota, Snapshot, Victim, event};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Who events come from.
pub(super) const COMPONENT: &str = "loadline-agent";
/// The events of evictions; only those that happened are told.
const EVICTED: &str = "Evicted";
const BLOCKED: &str = "EvictionBlocked";

impl Agents {
    pub(super) fn tell_closed(&self, node: &Node, closed: &Closed) {
        let what = if closed.present { "closed" } else { "open again" };
        self.tell.notice("agent", &node.meta.key, format!("{what}: {}", closed.message));
    }

    pub(super) fn tell_writes(&self, node: &Node, plan: &Plan, snapshot: &Snapshot) {
        let on = &node.meta.key;
        for write in &plan.steps.writes {
            let pod = snapshot.pods.iter().find(|pod| pod.key == write.pod);
            let container = pod.and_then(|pod| pod.containers.iter().find(|c| c.name == write.container));
            let from = container.map_or(Quota::Unknown, |container| container.quota);
            if from == write.quota {
                continue;
            }
            let (from, to) = (amount(from), amount(write.quota));
            let what = if write.category == Category::ThrottleUp {
                self.counts.restored.add();
                format!("given back on {on}, cpu {from} → {to}: {}", write.rule)
            } else {
                self.counts.throttled.add();
                format!("throttled on {on}, cpu {from} → {to}: {}", why(plan, snapshot, &write.rule))
            };
            self.tell.notice("agent", &write.pod, what);
        }
    }

    pub(super) fn tell_evicted(
        &self,
        node: &Node,
        guests: &[Arc<Guest>],
        plan: &Plan,
        victim: &Victim,
        snapshot: &Snapshot,
    ) {
        let what = format!("evicted from {}: {}", node.meta.key, why(plan, snapshot, &victim.rule));
        self.tell.notice("agent", &victim.pod, what);
        let event =
            |event: &&event::Event| event.reason == EVICTED && event.pod.as_ref() == Some(&victim.pod);
        if let Some(event) = plan.events().iter().find(event) {
            self.tell_event(node, guests, event);
        }
    }

    /// What changed; `blocked` has whose stay was told before.
    pub(super) fn tell_events(
        &self,
        node: &Node,
        guests: &[Arc<Guest>],
        plan: &Plan,
        blocked: &mut BTreeSet<Key>,
    ) {
        for event in plan.events().iter().filter(|event| event.changed) {
            match (event.reason, &event.pod) {
                (EVICTED, _) => {}
                (BLOCKED, Some(pod)) if blocked.contains(pod) => {}
                (BLOCKED, Some(pod)) => {
                    self.tell.notice("agent", pod, format!("stays on {}: {}", node.meta.key, event.message));
                    self.tell_event(node, guests, event);
                }
                _ => self.tell_event(node, guests, event),
            }
        }
        *blocked = plan.steps.blocked.iter().map(|blocked| blocked.pod.clone()).collect();
    }

    fn tell_event(&self, node: &Node, guests: &[Arc<Guest>], event: &event::Event) {
        let of_pod = |key: &Key| guests.iter().find(|guest| guest.pod.key == *key);
        let (kind, meta): (_, &Meta) = match &event.pod {
            None => ("Node", &node.meta),
            Some(pod) => match of_pod(pod) {
                Some(guest) => ("Pod", &guest.meta),
                None => return,
            },
        };
        let about = About { api_version: "v1", kind, meta };
        let event = Event {
            component: COMPONENT,
            host: Some(&node.meta.key.name),
            warning: event.warning,
            reason: event.reason,
            message: event.message.clone(),
        };
        self.tell.event(&about, &event);
    }
}

fn amount(quota: Quota) -> String {
    match (milli(quota), quota) {
        (Some(milli), _) => format!("{milli}m"),
        (None, Quota::Unknown) => "unknown".to_owned(),
        (None, _) => "unlimited".to_owned(),
    }
}

/// The rule, and what was measured against its line.
fn why(plan: &Plan, snapshot: &Snapshot, name: &Arc<RuleName>) -> String {
    let rule = plan.rules.iter().find(|rule| rule.rule == *name);
    let measured = rule.and_then(|rule| {
        let series = snapshot.series.iter().find(|series| *series.name == *rule.metric)?;
        Some(format!(", {} {:.0} over {:.0}", rule.metric, series.value?.to_f64(), rule.value.to_f64()))
    });
    format!("{name}{}", measured.unwrap_or_default())
}
