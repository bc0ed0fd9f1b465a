//! Giving back: the most important first, in steps, as far as the line allows.
//!
//! Only what this agent took is given back, and never more than there was. A quota that somebody else has changed since
//! is theirs now.

use super::candidate::step;
use super::gap::{Category, Gap};
use super::level::Level;
use super::metric::{Metric, Throttle};
use super::phase::{Judged, RulePhase};
use super::plan::{Mode, Work, Write};
use super::pod::{Container, CpuQuota};
use super::policy::RuleName;
use super::state::Throttled;
use super::throttle::{Raised, Room, Step};
use std::sync::Arc;

/// What the rules behind a throttled container say.
enum Say {
    /// One of them still holds it, or is only to say since what it would do.
    Wait,
    /// All have restored: in steps of this size.
    Steps(Step),
    /// None of them is left, or none knows steps any more.
    AtOnce,
}

impl Work<'_> {
    /// Raises what was lowered.
    pub(super) fn throttle_up(&mut self, rules: &[&Judged<'_>], others: &[&Judged<'_>]) {
        let warnings = &mut self.steps.warnings;
        self.held.forget(self.candidates.iter().map(|c| c.pod), |warning| warnings.push(warning));
        let Some(by) = self.policy.catalogue.iter().find(|metric| metric.throttle.is_some()).cloned() else {
            return;
        };
        let Some(throttle) = by.throttle else { return };
        let held = rules.iter().any(|rule| rule.line.metric.resource == by.resource && rule.holds());
        let targets = self.indices(Category::ThrottleUp);
        let precise = targets.iter().all(|t| self.lines.targets[*t].is_quantified());
        if !targets.is_empty() && self.steps.mode_throttle.is_none() {
            self.steps.mode_throttle = Some(if precise { Mode::Precise } else { Mode::All });
        }
        // A reading that is missing now may be there in the next cycle; nothing is given back blindly meanwhile.
        let blind = targets.iter().any(|t| {
            let target = &self.lines.targets[*t];
            target.metric.throttle.is_some() && target.used.is_none()
        });
        if held || blind || !self.held.any_to_raise() {
            return;
        }
        let sorter = targets.first().map_or(by.clone(), |t| self.lines.targets[*t].metric.clone());
        for c in self.order_of(&sorter).into_iter().rev() {
            self.raise_pod(c, (rules, others), &targets, &by, throttle);
        }
    }

    fn raise_pod(
        &mut self,
        c: usize,
        (rules, others): (&[&Judged<'_>], &[&Judged<'_>]),
        targets: &[usize],
        by: &Arc<Metric>,
        throttle: Throttle,
    ) {
        let candidate = &self.candidates[c];
        if candidate.slowed.is_some() || candidate.evicted {
            return;
        }
        let pod = candidate.pod;
        for container in &pod.containers {
            let Some(entry) = self.held.to_raise(pod, container).cloned() else { continue };
            let (step, at_once) = match said(&entry, rules, others) {
                Say::Wait => continue,
                Say::Steps(step) => (step, false),
                Say::AtOnce => (Step::default(), true),
            };
            let left = targets.iter().filter_map(|t| self.lines.targets[*t].gap()).min();
            if !at_once && left.is_some_and(|left| !left.is_open()) {
                continue;
            }
            let original = CpuQuota::from_us(entry.original_us);
            let room = Room { original, left, at_once };
            let raised = if !entry.unsure_us.is_empty() && container.quota == original {
                // It has everything back, unless the write nobody knows of is still on its way: once more, after that one.
                Some(Raised { quota: original, added: Level::ZERO, back: true })
            } else {
                (throttle.up)(&self.snapshot.node, container, step, room)
            };
            let Some(raised) = raised else { continue };
            for t in targets {
                let target = &mut self.lines.targets[*t];
                if target.metric.resource == by.resource {
                    target.released += raised.added;
                }
            }
            self.held.raise(pod, container, (!raised.back).then_some(raised.quota));
            if raised.quota != container.quota || !entry.unsure_us.is_empty() {
                self.note_raise(container, &entry, (raised, throttle.knob), targets, by);
            }
        }
    }

    fn note_raise(
        &mut self,
        container: &Container,
        entry: &Throttled,
        (raised, knob): (Raised, &'static str),
        targets: &[usize],
        by: &Arc<Metric>,
    ) {
        let governing = targets.first().map(|t| &self.lines.targets[*t]);
        let after = governing.and_then(Gap::gap);
        self.steps.writes.push(Write {
            category: Category::ThrottleUp,
            pod: entry.pod.clone(),
            container: entry.container.clone(),
            knob,
            quota: raised.quota,
            period_us: container.period_us,
            moved: raised.added,
            metric: governing.map_or(by.name, |target| target.metric.name),
            rule: cause(entry, governing),
            before: after.map(|after| after + raised.added),
            after,
        });
    }
}

/// The rule to name: the one whose line it is, if it took part.
fn cause(entry: &Throttled, governing: Option<&Gap>) -> Arc<RuleName> {
    let of_line = governing.and_then(|target| {
        target.bounds.iter().map(|bound| &bound.rule).find(|rule| entry.rules.contains(rule))
    });
    of_line
        .or(entry.rules.first())
        .cloned()
        .unwrap_or_else(|| Arc::new(RuleName { object: Arc::default(), rule: Arc::default() }))
}

fn said(entry: &Throttled, rules: &[&Judged<'_>], others: &[&Judged<'_>]) -> Say {
    if others.iter().any(|rule| entry.rules.contains(&rule.line.name)) {
        return Say::Wait;
    }
    let of = |name: &Arc<RuleName>| rules.iter().find(|rule| rule.line.name == *name);
    let behind: Vec<&&Judged<'_>> = entry.rules.iter().filter_map(of).collect();
    if behind.iter().any(|rule| rule.holds() || rule.phase == RulePhase::Error) {
        return Say::Wait;
    }
    let restoring = behind.iter().filter(|rule| rule.phase == RulePhase::Restored);
    match step(restoring.filter_map(|rule| rule.line.action.as_ref())) {
        Some(step) if step.percent > 0 => Say::Steps(step),
        _ => Say::AtOnce,
    }
}
