//! What is told? Events, to whoever looks at the node or the pod, and a notice per decision, to whoever looks at us.

use super::Metrics;
use super::act::Target;
use super::host::Reclaimed;
use crate::cluster::Recorder;
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::resource::{NODES, PODS};
use crate::ctx::Notices;
use jiff::Timestamp;
use loadline_core::object::{Key, Meta};
use loadline_core::qos::agree::Disagreement;
use loadline_core::qos::gap::Category;
use loadline_core::qos::phase::RulePhase;
use loadline_core::qos::policy::RuleName;
use loadline_core::qos::taint::Closed;
use loadline_core::qos::{CpuQuota, NodeSnapshot, Plan, Reclaim, Results, Victim, Write, audit, event};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The events of evictions; only those that happened are told.
const EVICTED: &str = "Evicted";
/// And of page cache that was asked back.
const RECLAIMED: &str = "Reclaimed";
const BLOCKED: &str = "EvictionBlocked";
/// And those of quotas; only those that were written are told.
const THROTTLED: &str = "Throttled";
const RESTORED: &str = "Restored";

/// Tells whoever looks.
pub(super) struct Teller {
    pub events: Recorder,
    pub notices: Notices,
    pub metrics: Metrics,
}

impl Teller {
    /// A rule cannot be used, or looks as if something else was meant. Whoever looks at the node finds it there.
    pub fn warn_of_rules(&self, warning: &str, on: Option<&Meta>, now: Timestamp) {
        self.notices.tell("agent", "rules", warning);
        let Some(meta) = on else { return };
        let happened = Happened {
            severity: Severity::Warning,
            reason: "DoubtfulRule",
            action: "Protecting",
            note: warning.to_owned(),
        };
        self.events.reporting_as(super::COMPONENT, &meta.key.name).record(
            Regarding::new(NODES, meta),
            happened,
            now,
        );
    }

    /// A scheduler fills a node above a line of ours.
    pub fn disagrees(&self, meta: &Meta, one: &Disagreement, now: Timestamp) {
        self.notices.tell("agent", &meta.key, format!("lines disagree: {one}"));
        let happened = Happened {
            severity: Severity::Warning,
            reason: "LinesDisagree",
            action: "Protecting",
            note: one.to_string(),
        };
        self.events.reporting_as(super::COMPONENT, &meta.key.name).record(
            Regarding::new(NODES, meta),
            happened,
            now,
        );
    }

    /// A rule has no usable sample, so nothing is concluded from it.
    pub fn in_error(&self, target: &Target, rule: &RuleName, problem: &str, now: Timestamp) {
        let note = format!("rule {rule} is in error: {problem}");
        self.notices.tell("agent", &target.meta.key, note.as_str());
        let happened =
            Happened { severity: Severity::Warning, reason: "RuleInError", action: "Protecting", note };
        self.events.reporting_as(super::COMPONENT, &target.meta.key.name).record(
            Regarding::new(NODES, &target.meta),
            happened,
            now,
        );
    }

    /// It has one again.
    pub fn judged_again(&self, target: &Target, rule: &RuleName) {
        self.notices.tell("agent", &target.meta.key, format!("rule {rule} is measured again"));
    }

    /// Something could not be done as asked.
    pub fn warned(&self, target: &Target, warning: &str) {
        self.notices.tell("agent", &target.meta.key, warning);
    }

    pub fn closed(&self, target: &Target, closed: &Closed) {
        let what = if closed.present { "closed" } else { "open again" };
        self.notices.tell("agent", &target.meta.key, format!("{what}: {}", closed.message));
    }

    pub fn wrote(&self, target: &Target, plan: &Plan, snapshot: &NodeSnapshot, write: &Write) {
        let on = &target.meta.key;
        let pod = snapshot.pods.iter().find(|pod| pod.key == write.pod);
        let container = pod.and_then(|pod| pod.containers.iter().find(|c| c.name == write.container));
        let from = container.map_or(CpuQuota::Unknown, |container| container.quota);
        if from == write.quota {
            return;
        }
        let (from, to) = (amount(from, write.period_us), amount(write.quota, write.period_us));
        let what = if write.category == Category::ThrottleUp {
            self.metrics.restored.inc();
            format!("given back on {on}, cpu {from} → {to}: {}", write.rule)
        } else {
            self.metrics.throttled.inc();
            format!("throttled on {on}, cpu {from} → {to}: {}", why(plan, snapshot, &write.rule))
        };
        self.notices.tell("agent", &write.pod, what);
    }

    pub fn reclaimed(
        &self,
        target: &Target,
        plan: &Plan,
        snapshot: &NodeSnapshot,
        (one, came): (&Reclaim, Reclaimed),
    ) {
        self.metrics.reclaimed.inc();
        let less = if came == Reclaimed::Less { ", less came" } else { "" };
        let what = format!("asked on {} for {} bytes of page cache{less}", target.meta.key, one.bytes);
        self.notices.tell("agent", &one.pod, format!("{what}: {}", why(plan, snapshot, &one.rule)));
        let event = |event: &&event::Event| event.reason == RECLAIMED && event.pod.as_ref() == Some(&one.pod);
        if let Some(event) = plan.events().iter().find(event) {
            self.event(target, event, snapshot.now);
        }
    }

    /// How many pods notice, when a line has just been passed, and how many would if everybody was acted on.
    pub fn compared(&self, target: &Target, plan: &Plan) {
        let begins = plan.rules.iter().any(|rule| rule.changed && rule.phase == RulePhase::Triggered);
        let steps = &plan.steps;
        let touched: BTreeSet<&Key> = steps
            .writes
            .iter()
            .filter(|write| write.category == Category::ThrottleDown)
            .map(|write| &write.pod)
            .chain(steps.victims.iter().map(|victim| &victim.pod))
            .collect();
        if begins && !touched.is_empty() {
            let all = steps.naive.pods_disturbed;
            let what = format!("pods disturbed: {}, acting on all would disturb {all}", touched.len());
            self.notices.tell("agent", &target.meta.key, what);
        }
    }

    pub fn evicted(&self, target: &Target, plan: &Plan, victim: &Victim, snapshot: &NodeSnapshot) {
        let what = format!("evicted from {}: {}", target.meta.key, why(plan, snapshot, &victim.rule));
        self.notices.tell("agent", &victim.pod, what);
        let event =
            |event: &&event::Event| event.reason == EVICTED && event.pod.as_ref() == Some(&victim.pod);
        if let Some(event) = plan.events().iter().find(event) {
            self.event(target, event, snapshot.now);
        }
    }

    /// What changed, by the plan that was begun with and the one that was ended with; `blocked` has whose stay was told
    /// before.
    pub fn events(
        &self,
        target: &Target,
        (first, last): (&Plan, &Plan),
        results: &Results,
        blocked: &mut BTreeSet<Key>,
        now: Timestamp,
    ) {
        let failed = |pod: &Key| results.unwritten.iter().chain(&results.unsure).any(|(of, _)| of == pod);
        let (begun, ended) = (first.events(), last.events());
        let of_steps = begun.iter().filter(|event| event.reason != BLOCKED);
        let of_end = ended.iter().filter(|event| event.reason == BLOCKED);
        for event in of_steps.chain(of_end).filter(|event| event.changed) {
            match (event.reason, &event.pod) {
                (EVICTED | RECLAIMED, _) => {}
                (THROTTLED | RESTORED, Some(pod)) if failed(pod) => {}
                (BLOCKED, Some(pod)) if blocked.contains(pod) => {}
                (BLOCKED, Some(pod)) => {
                    let what = format!("stays on {}: {}", target.meta.key, event.message);
                    self.notices.tell("agent", pod, what);
                    self.event(target, event, now);
                }
                _ => self.event(target, event, now),
            }
        }
        *blocked = last.steps.blocked.iter().map(|blocked| blocked.pod.clone()).collect();
    }

    fn event(&self, target: &Target, event: &event::Event, now: Timestamp) {
        let regarding = match &event.pod {
            None => Regarding::new(NODES, &target.meta),
            Some(key) => match target.pods.iter().find(|(meta, _)| meta.key == *key) {
                Some((meta, _)) => Regarding::new(PODS, meta),
                None => return,
            },
        };
        let severity = if event.warning { Severity::Warning } else { Severity::Normal };
        let happened =
            Happened { severity, reason: event.reason, action: "Protecting", note: event.message.clone() };
        self.events.reporting_as(super::COMPONENT, &target.meta.key.name).record(regarding, happened, now);
    }
}

/// Of an act that has been measured.
pub(super) fn measured(closed: &audit::Closed) {
    let act = &closed.act;
    for (resource, predicted) in &act.predicted {
        let measured = closed.measured.get(resource).map(|level| level.to_f64());
        tracing::info!(
            pod = %act.pod, container = act.container.as_deref(), act = act.kind.as_str(), rule = %act.rule,
            resource = resource.0, predicted = predicted.to_f64(), measured, "act measured"
        );
    }
}

fn amount(quota: CpuQuota, period_us: i64) -> String {
    match (quota, quota.level(period_us)) {
        (CpuQuota::Unknown, _) => "unknown".to_owned(),
        (_, Some(level)) => format!("{:.0}m", level.to_f64().max(1.0)),
        _ => "unlimited".to_owned(),
    }
}

/// The rule, and what was measured against its line.
fn why(plan: &Plan, snapshot: &NodeSnapshot, name: &Arc<RuleName>) -> String {
    let rule = plan.rules.iter().find(|rule| rule.rule == *name);
    let measured = rule.and_then(|rule| {
        let series = snapshot.series.iter().find(|series| *series.name == *rule.metric)?;
        Some(format!(", {} {:.0} over {:.0}", rule.metric, series.value?.to_f64(), rule.value.to_f64()))
    });
    format!("{name}{}", measured.unwrap_or_default())
}
