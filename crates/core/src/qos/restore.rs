//! Giving back: the most important first, in steps, as far as the line allows.
//!
//! Only what this agent took is given back, and never more than there was. A quota that somebody else has changed since
//! is theirs now.

use super::candidate::step;
use super::gap::Category;
use super::metric::{Metric, Throttle};
use super::phase::{Judged, Phase};
use super::plan::{Mode, Work, Write};
use super::pod::{Container, Quota};
use super::policy::RuleName;
use super::state::Throttled;
use super::throttle::{Room, Step};
use std::sync::Arc;

/// What the rules behind a throttled container say.
enum Say {
    /// One of them still holds it.
    Wait,
    /// All have restored: in steps of this size.
    Steps(Step),
    /// None of them is left, or none knows steps any more.
    AtOnce,
}

impl Work<'_> {
    /// Raises what was lowered.
    pub(super) fn throttle_up(&mut self, rules: &[&Judged<'_>]) {
        self.forget_gone();
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
        if held || blind || self.throttled.is_empty() {
            return;
        }
        let sorter = targets.first().map_or(by.clone(), |t| self.lines.targets[*t].metric.clone());
        for c in self.order_of(&sorter).into_iter().rev() {
            self.raise_pod(c, rules, &targets, &by, throttle);
        }
    }

    fn raise_pod(
        &mut self,
        c: usize,
        rules: &[&Judged<'_>],
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
            let same = |t: &Throttled| t.pod == pod.name && t.container == container.name;
            let Some(at) = self.throttled.iter().position(same) else { continue };
            let entry = self.throttled[at].clone();
            let (step, at_once) = match said(&entry, rules) {
                Say::Wait => continue,
                Say::Steps(step) => (step, false),
                Say::AtOnce => (Step::default(), true),
            };
            let left = targets.iter().filter_map(|t| self.lines.targets[*t].gap()).min();
            if !at_once && left.is_some_and(|left| !left.is_open()) {
                continue;
            }
            let room = Room { original: Quota::from_us(entry.original_us), left, at_once };
            let Some(raised) = (throttle.up)(&self.snapshot.node, container, step, room) else { continue };
            self.raised(container, &entry, raised, targets, by, at);
        }
    }

    fn raised(
        &mut self,
        container: &Container,
        entry: &Throttled,
        raised: super::throttle::Raised,
        targets: &[usize],
        by: &Arc<Metric>,
        at: usize,
    ) {
        for t in targets {
            let target = &mut self.lines.targets[*t];
            if target.metric.resource == by.resource {
                target.released += raised.added;
            }
        }
        if raised.quota != container.quota {
            let governing = targets.first().map(|t| &self.lines.targets[*t]);
            let gap = |target: &super::gap::Target| target.gap();
            let after = governing.and_then(gap);
            self.steps.writes.push(Write {
                category: Category::ThrottleUp,
                pod: entry.pod.clone(),
                container: entry.container.clone(),
                quota: raised.quota,
                period_us: container.period_us,
                moved: raised.added,
                metric: Some(governing.map_or(by.name, |target| target.metric.name)),
                rule: cause(entry, governing),
                before: after.map(|after| after + raised.added),
                after,
            });
        }
        if raised.back {
            self.throttled[at].rules.clear();
            self.done.push((entry.pod.clone(), entry.container.clone()));
        } else {
            self.throttled[at].written_us = raised.quota.us().unwrap_or(entry.written_us);
        }
    }

    /// Forgets containers that are gone, and those that somebody else has changed.
    fn forget_gone(&mut self) {
        let candidates = &self.candidates;
        let warnings = &mut self.steps.warnings;
        let written = &self.steps.writes;
        self.throttled.retain(|entry| {
            let pod = candidates.iter().find(|c| c.pod.name == entry.pod);
            let container = pod.and_then(|c| c.pod.containers.iter().find(|one| one.name == entry.container));
            let Some(container) = container else { return false };
            let just_now = written.iter().any(|w| w.pod == entry.pod && w.container == entry.container);
            match container.quota.us() {
                Some(live) if live != entry.written_us && !just_now => {
                    warnings.push(format!(
                        "the quota of {}/{} is {live}, not {} as written: somebody else has changed it, it stays",
                        entry.pod, entry.container, entry.written_us
                    ));
                    false
                }
                _ => true,
            }
        });
    }
}

/// The rule to name: the one whose line it is, if it took part.
fn cause(entry: &Throttled, governing: Option<&super::gap::Target>) -> Arc<RuleName> {
    let of_line = governing.and_then(|target| {
        target.bounds.iter().map(|bound| &bound.rule).find(|rule| entry.rules.contains(rule))
    });
    of_line
        .or(entry.rules.first())
        .cloned()
        .unwrap_or_else(|| Arc::new(RuleName { object: Arc::default(), rule: Arc::default() }))
}

fn said(entry: &Throttled, rules: &[&Judged<'_>]) -> Say {
    let of = |name: &Arc<RuleName>| rules.iter().find(|rule| rule.line.name == *name);
    let behind: Vec<&&Judged<'_>> = entry.rules.iter().filter_map(of).collect();
    if behind.iter().any(|rule| rule.holds() || rule.phase == Phase::Error) {
        return Say::Wait;
    }
    let restoring = behind.iter().filter(|rule| rule.phase == Phase::Restored);
    match step(restoring.filter_map(|rule| rule.line.action.as_ref())) {
        Some(step) if step.percent > 0 => Say::Steps(step),
        _ => Say::AtOnce,
    }
}
