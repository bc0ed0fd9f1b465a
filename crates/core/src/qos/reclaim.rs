//! Memory reclaim: the kernel is asked for page cache back, pod by pod in the order of memory.
//!
//! ```text
//! asked of a pod = min(what of it could be reclaimed, what is left of the gap to its line)
//! ```
//!
//! Example: 1.1 × 2 Gi to the line; a pod with 1.5 Gi of old page cache is asked for 1.5 Gi, the next one with 1 Gi for 0.7 Gi, and nobody
//! after it for anything. Whatever a pod reads again it gets again, so there is no pace and nothing to give back.
//!
//! Nobody knows how much will come, and some of it counts as free already: nothing of it is credited to any gap. What it released shows
//! at the next measurement.

use super::candidate::Protection;
use super::gap::Gap;
use super::level::Level;
use super::plan::Work;
use super::policy::RuleName;
use crate::object::Key;
use std::sync::Arc;

/// Page cache to be asked back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reclaim {
    pub pod: Key,
    /// At most so much.
    pub bytes: i64,
    pub metric: &'static str,
    pub rule: Arc<RuleName>,
}

impl Work<'_> {
    /// Asks for page cache back.
    pub(super) fn reclaim(&mut self) {
        for mut gap in std::mem::take(&mut self.lines.reclaims) {
            let Some(reclaimable) = gap.metric.reclaimable else { continue };
            // Who is on the way out takes its page cache with it.
            let leaving = self.candidates.iter().filter(|one| one.leaving.is_some());
            gap.released += leaving.filter_map(|one| one.release(&gap.metric)).sum::<Level>();
            for c in self.order_of(&gap.metric.clone()) {
                let candidate = &self.candidates[c];
                let is_free = candidate.protection.is_none_or(Protection::allows_throttling);
                let is_asked = self.steps.reclaims.iter().any(|known| known.pod == candidate.pod.key);
                let may = is_free && candidate.leaving.is_none() && !is_asked;
                let Some(bound) = candidate.open(&gap).filter(|_| may) else { continue };
                let (Some(left), Some(has)) = (gap.left(bound), reclaimable(candidate.pod)) else { continue };
                let bytes = i64::try_from(has.min(left).nano() / Level::whole(1).nano()).unwrap_or(i64::MAX);
                if bytes <= 0 {
                    continue;
                }
                let (pod, rule) = (candidate.pod.key.clone(), bound.rule.clone());
                self.steps.reclaims.push(Reclaim { pod, bytes, metric: gap.metric.name, rule });
                gap.asked(bytes);
            }
        }
    }
}

impl Gap {
    /// So much was asked for: less is asked of the next.
    fn asked(&mut self, bytes: i64) {
        self.released += Level::whole(bytes);
    }
}
