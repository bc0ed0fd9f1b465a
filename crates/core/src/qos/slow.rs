//! Throttling down: one step on every container of a pod, pod by pod, until the gap is closed.

use super::candidate::step;
use super::gap::{Category, Gap};
use super::level::Level;
use super::metric::{Metric, Resource, Throttle};
use super::plan::{Mode, Unclosed, Work, Write};
use super::pod::CpuQuota;
use super::snapshot::Missing;
use std::sync::Arc;

impl Work<'_> {
    /// Slows pods down.
    pub(super) fn throttle_down(&mut self) {
        let targets = self.indices(Category::ThrottleDown);
        if targets.is_empty() {
            return;
        }
        if targets.iter().all(|i| self.lines.targets[*i].is_quantified()) {
            self.steps.mode_throttle = Some(Mode::Precise);
            // One write a pod is the usual case; growing step by step copies all of them again and again.
            self.steps.writes.reserve(self.candidates.len());
            self.held.reserve(self.candidates.len());
            for i in targets {
                self.close_by_throttling(i);
            }
            return;
        }
        // Nobody can tell what is enough. The step is the one of the first metric that has one.
        let missing = self.snapshot.options.missing_throttle;
        self.steps.mode_throttle = Some(missing.into());
        let throttles = || self.policy.catalogue.iter().find(|metric| metric.throttle.is_some());
        let (Some(by), false) = (throttles().cloned(), missing == Missing::Skip) else {
            let unquantified = targets.into_iter().find(|i| !self.lines.targets[*i].is_quantified());
            self.skipped(Category::ThrottleDown, unquantified);
            return;
        };
        for c in self.general_order() {
            let Some(target) = self.first_open(c, &targets) else { continue };
            if self.slow(c, target, &by) && missing == Missing::Paced {
                break;
            }
        }
    }

    fn close_by_throttling(&mut self, target: usize) {
        let metric = self.lines.targets[target].metric.clone();
        if !self.is_open(target) {
            return;
        }
        for c in self.order_of(&metric) {
            if !self.is_open(target) {
                break;
            }
            if self.candidates[c].open(&self.lines.targets[target]).is_some() {
                self.slow(c, target, &metric);
            }
        }
    }

    /// The first of these targets in which a pod has an open line.
    pub(super) fn first_open(&self, c: usize, targets: &[usize]) -> Option<usize> {
        targets.iter().copied().find(|t| self.candidates[c].open(&self.lines.targets[*t]).is_some())
    }

    /// One step on every container of a pod. Says whether anything was written.
    fn slow(&mut self, c: usize, target: usize, by: &Arc<Metric>) -> bool {
        let Some(Throttle { knob, down, .. }) = by.throttle else { return false };
        let candidate = &self.candidates[c];
        let bound = self.lines.targets[target].bound_for(&candidate.allowed).cloned();
        let (true, Some(bound)) = (candidate.can_slow(), bound) else { return false };
        let pod = candidate.pod;
        let Some(step) = step(candidate.allowed.ones().map(|n| &self.lines.actions[n])) else { return false };
        let rules = self.causes(&candidate.allowed);
        let mut released = Level::ZERO;
        for container in &pod.containers {
            let Some(lowered) = down(pod, container, step) else { continue };
            let before = self.lines.targets[target].left(&bound);
            self.credit(by.resource, lowered.release);
            released += lowered.release;
            self.steps.writes.push(Write {
                category: Category::ThrottleDown,
                pod: pod.key.clone(),
                container: container.name.clone(),
                knob,
                quota: CpuQuota::Us(lowered.quota_us),
                period_us: container.period_us,
                moved: lowered.release,
                metric: self.lines.targets[target].metric.name,
                rule: bound.rule.clone(),
                before,
                after: self.lines.targets[target].left(&bound),
            });
            self.held.lower(pod, container, lowered.quota_us, &rules);
        }
        if released == Level::ZERO {
            return false;
        }
        self.candidates[c].slowed = Some((by.resource, released));
        true
    }

    /// The rules a pod is slowed down for.
    fn causes(&self, allowed: &fixedbitset::FixedBitSet) -> Vec<Arc<super::policy::RuleName>> {
        let targets = self.lines.of(Category::ThrottleDown);
        let open = |target: &Gap, bound: &super::gap::Waterline| {
            allowed.contains(bound.action) && target.left(bound).is_none_or(Level::is_open)
        };
        let mut rules: Vec<_> = targets
            .flat_map(|t| t.bounds.iter().filter(move |b| open(t, b)).map(|b| b.rule.clone()))
            .collect();
        rules.sort();
        rules.dedup();
        rules
    }

    /// What slowing down released counts for every metric of the resource, also where pods would be evicted for it.
    fn credit(&mut self, resource: Resource, release: Level) {
        for target in &mut self.lines.targets {
            if target.metric.resource == resource && target.category != Category::ThrottleUp {
                target.released += release;
            }
        }
    }

    /// Nothing is done because nothing can be told.
    pub(super) fn skipped(&mut self, category: Category, target: Option<usize>) {
        let Some(target) = target.map(|i| &self.lines.targets[i]) else { return };
        self.steps.warnings.push(format!(
            "nothing to {}: nobody can tell what that does to {}",
            category.as_str(),
            target.metric.name
        ));
    }

    /// What is left over at the end, and why.
    pub(super) fn unclosed(&mut self) {
        for target in self.lines.targets.iter().filter(|t| t.category != Category::ThrottleUp) {
            let Some(left) = target.gap().filter(|gap| gap.is_open()) else { continue };
            let more = self.candidates.iter().any(|c| match target.category {
                Category::Evict => c.can_go() && c.open(target).is_some(),
                _ => c.slowed.is_some(),
            });
            let reason = match target.category {
                Category::Evict if self.steps.deferred && more => "a limit on evictions was reached",
                Category::ThrottleDown if more => "one step a cycle",
                _ => "no pod is left that may be acted on",
            };
            let (category, metric) = (target.category, target.metric.name);
            self.steps.unclosed.push(Unclosed { category, metric, left, reason });
        }
    }
}
