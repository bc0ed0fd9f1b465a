//! What would acting on everybody do? For comparison: it is what agents do that cannot tell how much is enough.

use super::gap::Category;
use super::level::Level;
use super::plan::{Naive, Work};
use std::collections::BTreeMap;

impl Work<'_> {
    /// Every pod an action in force is allowed on is evicted, or slowed down by one step.
    pub(super) fn naive(&self) -> Naive {
        let mut released: BTreeMap<&'static str, Level> = BTreeMap::new();
        let mut pods_disturbed = 0;
        let throttles = self.policy.catalogue.iter().find(|metric| metric.throttle.is_some());
        for candidate in &self.candidates {
            let allowed = |category| {
                self.lines.of(category).any(|target| target.bound_for(&candidate.allowed).is_some())
            };
            if candidate.leaving.is_some() {
                continue;
            }
            let going = allowed(Category::Evict) && candidate.protection.is_none();
            let may_slow = candidate.protection.is_none_or(super::candidate::Protection::allows_throttling);
            if going {
                pods_disturbed += 1;
                for target in self.lines.targets.iter().filter(|t| t.category != Category::ThrottleUp) {
                    let freed = target.metric.release.and_then(|release| release(candidate.pod));
                    let of_evict = self.first_named(target.metric.name) == Some(target.category);
                    *released.entry(target.metric.name).or_default() +=
                        freed.filter(|_| of_evict).unwrap_or_default();
                }
            } else if let (true, Some(by)) = (may_slow && allowed(Category::ThrottleDown), throttles) {
                let Some(throttle) = by.throttle else { continue };
                let in_force = candidate.allowed.ones().map(|n| &self.lines.actions[n]);
                let Some(step) = super::candidate::step(in_force) else { continue };
                let lowered = |container| (throttle.down)(candidate.pod, container, step);
                let freed: Level =
                    candidate.pod.containers.iter().filter_map(lowered).map(|l| l.release).sum();
                pods_disturbed += usize::from(freed > Level::ZERO);
                for target in self.lines.of(Category::ThrottleDown) {
                    if target.metric.resource == by.resource {
                        *released.entry(target.metric.name).or_default() += freed;
                    }
                }
            }
        }
        Naive { pods_disturbed, released }
    }

    /// The category a metric is counted in: it may be in two.
    fn first_named(&self, metric: &str) -> Option<Category> {
        let of = |target: &&super::gap::Gap| {
            target.metric.name == metric && target.category != Category::ThrottleUp
        };
        self.lines.targets.iter().find(of).map(|target| target.category)
    }
}
