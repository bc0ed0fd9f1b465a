//! What is worth telling? Events on the node and on the pods that were touched.

use super::gap::Category;
use super::level::Level;
use super::phase::RulePhase;
use super::plan::{Plan, RuleReport};
use super::pod::CpuQuota;
use crate::object::Key;

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The pod it is about; none: the node.
    pub pod: Option<Key>,
    pub warning: bool,
    /// In one word.
    pub reason: &'static str,
    /// In one sentence.
    pub message: String,
    /// Did something change, or is it as in the cycle before?
    pub changed: bool,
}

/// How far it was to the line before, and after, where that is known.
fn gap(before: Option<Level>, after: Option<Level>) -> String {
    let (Some(before), Some(after)) = (before, after) else { return String::new() };
    format!(", gap {:.0} → {:.0}", before.to_f64(), after.to_f64())
}

/// The events of a cycle.
pub(super) fn events(plan: &Plan) -> Vec<Event> {
    let steps = &plan.steps;
    let of_rule = |rule: &RuleReport| {
        let (name, action) = (&rule.rule, &rule.action);
        let (warning, reason, verb) = match rule.phase {
            RulePhase::Triggered => (true, "AvoidanceTriggered", "triggered"),
            RulePhase::Restored if rule.changed => (false, "RestoreTriggered", "restored"),
            _ => return None,
        };
        let message = format!("{name} {verb} action {action}");
        Some(Event { pod: None, warning, reason, message, changed: rule.changed })
    };
    let mut out: Vec<Event> = plan.rules.iter().filter_map(of_rule).collect();
    let of_pod = |pod: &Key, warning, reason, message| Event {
        pod: Some(pod.clone()),
        warning,
        reason,
        message,
        changed: true,
    };
    for write in &steps.writes {
        let moved = write.moved.to_f64();
        let to = match write.quota {
            CpuQuota::Us(us) => format!("{us} µs of {}", write.period_us),
            _ => "unlimited".to_owned(),
        };
        let (container, rule) = (&write.container, &write.rule);
        out.push(if write.category == Category::ThrottleUp {
            of_pod(&write.pod, false, "Restored", format!("{rule}: quota of {container} raised to {to}"))
        } else {
            let message = format!(
                "{rule}: quota of {container} lowered to {to}, releases {moved}{}",
                gap(write.before, write.after)
            );
            of_pod(&write.pod, true, "Throttled", message)
        });
    }
    for one in &steps.reclaims {
        let message = format!("{}: the kernel is asked for {} bytes of page cache", one.rule, one.bytes);
        out.push(of_pod(&one.pod, false, "Reclaimed", message));
    }
    for victim in &steps.victims {
        let release = victim.release.get(victim.metric).copied().unwrap_or_default().to_f64();
        let gap = gap(victim.before, victim.after);
        let message = format!("{}: evicted for {}, releases {release}{gap}", victim.rule, victim.metric);
        out.push(of_pod(&victim.pod, true, "Evicted", message));
    }
    for blocked in &steps.blocked {
        let message = format!("not evicted: {}", blocked.reason.as_str());
        out.push(of_pod(&blocked.pod, true, "EvictionBlocked", message));
    }
    out
}
