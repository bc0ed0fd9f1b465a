//! Whose turn is it, where does it go, and what became of that? Decided and reserved in one step.

use super::State;
use crate::ctx::Now;
use crate::scheduler::counted::plugins;
use crate::scheduler::execute::{Action, Outcome};
use crate::scheduler::queue::{Helps, Pending};
use jiff::SignedDuration;
use loadline_api::scheduler::WhenOverloaded;
use loadline_core::cluster::{Decided, Grounds, LeastBad};
use loadline_core::cycle::{Decision, Filter, InVain, Parts, Preemption, Weights};
use loadline_core::object::Meta;
use loadline_core::resources::is_extended;
use loadline_core::view::{PodView, Snapshot};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Rules by which load keeps a pod from a node it would otherwise fit on.
const LOAD_RULES: [Filter; 4] = [Filter::Threshold, Filter::UnknownLoad, Filter::Cooling, Filter::Line];
/// Rules other pods can help with by being there.
const POD_RULES: [Filter; 2] = [Filter::Affinity, Filter::Spread];
/// Looking for words about a decision takes longer than the decision; this is how often it may be done.
const WORDS_EVERY: Duration = Duration::from_millis(500);

impl State {
    /// The next action, if there is one; its pod is reserved on its node already.
    pub(in crate::scheduler) fn next(&mut self, now: Now) -> Option<Action> {
        if !self.is_ready() {
            return None;
        }
        if let Some(action) = self.volumes_done(now) {
            return Some(action);
        }
        let pod = self.queue.pop(now.at)?;
        let pod = self.resolved(pod);
        // What is recommended may be known since it came.
        let expected = self.cluster.estimate(&pod.pod.facts).load;
        let view = if expected == pod.view.estimate {
            pod.view.clone()
        } else {
            Arc::new(PodView { estimate: expected, ..PodView::clone(&pod.view) })
        };
        let view = self.cluster.succeeding(&view);
        let profile = self.profiles.find(&pod.pod.scheduler).unwrap_or(0);
        // Not asked if nobody is less important: it would take long to find out.
        let lowest = self.priorities.first_key_value().map(|(priority, _)| *priority);
        let may_preempt = lowest.is_some_and(|lowest| lowest < pod.view.priority);
        if may_preempt {
            self.tell_budgets();
        }
        let mut decided = self.cluster.decide_by(profile, &view);
        let grounds = decided.grounds();
        let Some(node) = decided.node().map(|node| node.name.clone()) else {
            let helps = helps(decided.decision());
            let plugins = plugins(decided.decision());
            let waited = self.queue.looked_at(&pod.meta.key, plugins, helps.load, now.at);
            if let WhenOverloaded::LeastBad { after } = self.profiles.when_overloaded(profile)
                && helps.load
            {
                // Preemption would be of no use: what is measured does not go with a pod at once.
                if waited.is_some_and(|waited| SignedDuration::try_from(waited).is_ok_and(|w| w >= after))
                    && let Some(found) = decided.least_bad()
                {
                    let decision = decided.decision().clone();
                    let grounds = Grounds { lines: decided.lines_on(found.node), ..grounds };
                    let planned = decided.volumes_on(found.node);
                    decided.reserve_anyway(found);
                    let node = self.cluster.snapshot()[found.node].name.clone();
                    self.decisions.keep(
                        &pod.meta.key,
                        &pod.pod.scheduler,
                        (&decision, grounds),
                        Ok(node.clone()),
                        now.clock,
                    );
                    let remark = Some(least_bad(found, after));
                    if !planned.is_empty() {
                        return Some(self.provide(pod, (node, remark), planned, now));
                    }
                    return Some(Action::Bind { pod, node, remark });
                }
            }
            let text = decided.message();
            let decision = decided.decision().clone();
            let text = match unoffered(&mut decided, &pod) {
                Some(why) => format!("{text} {why}"),
                None => text,
            };
            let room = decided.make_room(may_preempt);
            let text = with_room(text, &room, self.cluster.snapshot());
            let kept = (&decision, grounds);
            self.decisions.keep(&pod.meta.key, &pod.pod.scheduler, kept, Err(text.clone()), now.clock);
            let why = self.retellings.why(&pod, text, now);
            let plan = match room {
                // If not all can go, nobody is to: the pod would not fit, and they would have gone for nothing.
                Ok(plan) if plan.kept == 0 => plan,
                Ok(_) => return Some(Action::Refuse { pod, why, helps, forfeits: true }),
                Err(vain) => {
                    return Some(Action::Refuse { pod, why, helps, forfeits: vain.forfeits() });
                }
            };
            let node = self.cluster.snapshot()[plan.node].name.clone();
            // Who is on the way out already is only waited for.
            let victims = plan.victims.iter().filter(|victim| !victim.terminating);
            let victims = victims.map(|victim| named(victim)).collect();
            let promised = self.cluster.snapshot().nominated().iter().filter(|(on, _)| *on == plan.node);
            let outdone = promised.filter(|(_, other)| other.priority < pod.view.priority);
            let outdone = outdone.map(|(_, other)| named(other)).collect();
            return Some(Action::Preempt { pod, node, victims, outdone, why, helps });
        };
        self.queue.looked_at(&pod.meta.key, BTreeSet::new(), false, now.at);
        let avoided = avoided(&mut decided, &mut self.quiet_until, now);
        let planned = decided.volumes();
        let decision = decided.reserve();
        let kept = (&decision, grounds);
        self.decisions.keep(&pod.meta.key, &pod.pod.scheduler, kept, Ok(node.clone()), now.clock);
        if let Some(words) = words(&pod, &node, avoided, now) {
            self.notices.push(("scheduler", pod.meta.key.to_string(), words));
        }
        if !planned.is_empty() {
            return Some(self.provide(pod, (node, None), planned, now));
        }
        Some(Action::Bind { pod, node, remark: None })
    }

    /// What became of an action.
    pub(in crate::scheduler) fn done(&mut self, outcome: Outcome, now: Now) {
        match outcome {
            // Kept until the watch shows it: older events about it may be under way.
            Outcome::Bound { .. } => {}
            Outcome::Provided { pod, written, failed } => self.provided(&pod, written, failed, now),
            Outcome::Unbound { pod, now: answer } => {
                if let Some(answer) = answer {
                    let (meta, read) = *answer;
                    let change = self.informers.pods.wrote(meta, read);
                    self.take_pod(change, now);
                }
                // Nothing happens if it turned out to be bound.
                self.give_back(&pod.meta, now);
                self.backoff(&pod, now);
            }
            Outcome::Refused { pod, helps } => {
                if self.queue.is_in_flight(&pod.meta.key, &pod.meta.uid) {
                    let profile = self.profiles.find(&pod.pod.scheduler).unwrap_or(0);
                    let patience = match self.profiles.when_overloaded(profile) {
                        WhenOverloaded::LeastBad { after } if helps.load => Duration::try_from(after).ok(),
                        _ => None,
                    };
                    self.queue.unschedulable(&pod.meta.key, helps, patience, now.at);
                }
            }
            Outcome::Untold { pod } => self.backoff(&pod, now),
        }
    }

    /// What was kept for a pod is free again, if anything was: whoever waits for room may have it.
    pub(super) fn give_back(&mut self, pod: &Meta, now: Now) {
        if self.cluster.unreserve(&pod.uid) {
            self.queue.requeue_others(&pod.key, Helps::ANY, now.at);
        }
    }

    pub(super) fn backoff(&mut self, pod: &Pending, now: Now) {
        if self.queue.is_in_flight(&pod.meta.key, &pod.meta.uid) {
            self.queue.backoff(&pod.meta.key, now.at);
        }
    }
}

/// What to add if a pod was refused for a resource that no node has at all: a device class may offer it instead.
fn unoffered(decided: &mut Decided<'_>, pod: &Pending) -> Option<String> {
    if decided.decision().refused[Filter::Resources.index()] == 0 {
        return None;
    }
    let mut asked = pod.pod.facts.requests.keys().filter(|name| name.contains('/') && is_extended(name));
    let name = asked.find(|name| !decided.is_offered(name))?;
    Some(format!(
        "No node has {name}; if a DeviceClass offers it, kube-scheduler does that (schedulerName: default-scheduler)."
    ))
}

/// Which pod it is, whatever has become of it.
fn named(pod: &PodView) -> Meta {
    Meta { key: pod.key.clone(), uid: pod.uid.clone(), revision: None }
}

/// Why a pod goes nowhere, with why nobody is evicted for it.
pub(super) fn with_room(text: String, room: &Result<Preemption, InVain>, at: &Snapshot) -> String {
    let more = match room {
        Ok(Preemption { node, victims, kept, .. }) if *kept > 0 => Some(format!(
            "preemption: disruption budgets keep {kept} of {} pod(s) that would have to go from {}.",
            victims.len(),
            at[*node].name
        )),
        Ok(_) => None,
        Err(vain) => vain.words(),
    };
    match more {
        Some(more) => format!("{text} {more}"),
        None => text,
    }
}

/// What to say of a decision; nothing of most.
fn words(pod: &Pending, node: &str, avoided: Option<(i64, String)>, now: Now) -> Option<String> {
    let waited = pod.pod.unschedulable.is_some().then(|| match pod.pod.facts.created {
        Some(created) => format!("to {node} after {} s", now.clock.duration_since(created).as_secs()),
        None => format!("to {node} at last"),
    });
    match (waited, avoided) {
        (None, None) => None,
        (Some(waited), None) => Some(waited),
        (None, Some((score, why))) => Some(format!("to {node}, load score {score}; {why}")),
        (Some(waited), Some((score, why))) => Some(format!("{waited}, load score {score}; {why}")),
    }
}

/// What to add to the news that a pod was bound although no node had room.
fn least_bad(found: LeastBad, after: SignedDuration) -> String {
    let by = match found.excess {
        Some(excess) => format!("by least, {}% of it", (excess.nano() + 9_999_999).div_euclid(10_000_000)),
        None => "by how much is not known".to_owned(),
    };
    format!("every node was over its load limits for {} s; this one is over {by}", after.as_secs())
}

/// The load score of the node taken, and which node would be better by requests but for its load, or which one cools.
fn avoided(decided: &mut Decided<'_>, quiet_until: &mut Option<Instant>, now: Now) -> Option<(i64, String)> {
    let by_load = LOAD_RULES.iter().any(|rule| decided.decision().refused[rule.index()] > 0);
    if !by_load || quiet_until.is_some_and(|until| now.at < until) {
        return None;
    }
    *quiet_until = Some(now.at + WORDS_EVERY);
    let report = decided.report();
    let by_requests = |parts: &Parts| Parts { load: None, ..*parts }.total(&Weights::default());
    let taken = report.nodes.iter().find(|n| Some(n.node) == report.decision.node)?;
    let better = report
        .nodes
        .iter()
        .filter(|n| n.rule.is_some_and(|rule| LOAD_RULES.contains(&rule)))
        .max_by_key(|n| by_requests(&n.parts))
        .filter(|n| by_requests(&n.parts) > by_requests(&taken.parts));
    // It may be a victim's successor.
    let better = better.or_else(|| report.nodes.iter().find(|n| n.rule == Some(Filter::Cooling)))?;
    let why = better.reasons.first()?;
    Some((taken.load_score?.r#final, format!("{} avoided: {why}", better.name)))
}

/// What could help a pod that was refused like this.
fn helps(decision: &Decision) -> Helps {
    let any = |rules: &[Filter]| rules.iter().any(|rule| decision.refused[rule.index()] > 0);
    Helps { load: any(&LOAD_RULES), pods: any(&POD_RULES) }
}
