//! How far is it to the line? Waterlines by category and metric, and the gaps to them.
//!
//! ```text
//! evict, throttle down:  gap = (1 + excess) × (used − line)
//! throttle up:           gap = (1 − excess) × ((1 − margin) × line − used)
//! ```
//!
//! The margin is for those who measure: given back up to the line itself, the noise of the next sample passes it.
//!
//! in millicores or bytes; shares of 100 are turned into those first. The smallest line of a metric is its target, but
//! each pod has its own: the smallest line of the rules whose action may touch it.

use super::level::Level;
use super::metric::Metric;
use super::phase::{Judged, RulePhase, usable};
use super::policy::{Action, Line, RuleName};
use super::snapshot::NodeSnapshot;
use fixedbitset::FixedBitSet;
use std::sync::Arc;

const WHOLE: i128 = 1_000_000_000;

/// What is done about a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Pods go.
    Evict,
    /// Pods are slowed down.
    ThrottleDown,
    /// Pods get something back.
    ThrottleUp,
    /// Page cache is asked back.
    Reclaim,
}

impl Category {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Evict => "evict",
            Self::ThrottleDown => "throttleDown",
            Self::ThrottleUp => "throttleUp",
            Self::Reclaim => "reclaim",
        }
    }
}

/// The line of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waterline {
    pub rule: Arc<RuleName>,
    /// The line, in the metric's unit.
    pub value: Level,
    /// The gap to it before anything is done, in the unit of gaps; none if nobody can tell.
    pub before: Option<Level>,
    /// The number of its action among those in force.
    pub(super) action: usize,
}

/// Everything about one metric in one category.
#[derive(Clone, Debug)]
pub struct Gap {
    /// What is done.
    pub category: Category,
    /// About what.
    pub metric: Arc<Metric>,
    /// What is used, in the metric's unit, by the latest reading; none if there is none.
    pub used: Option<Level>,
    /// The lines, the lowest first.
    pub bounds: Vec<Waterline>,
    /// What has been released (or added, going up) so far, in the unit of gaps.
    pub released: Level,
}

impl Gap {
    /// Can it be told what acting does?
    #[must_use]
    pub fn is_quantified(&self) -> bool {
        self.bounds.first().is_some_and(|bound| bound.before.is_some())
    }

    /// The gap that is left to a line.
    #[must_use]
    pub fn left(&self, bound: &Waterline) -> Option<Level> {
        bound.before.map(|before| before - self.released)
    }

    /// The gap that is left to the lowest line: the whole of what is to be done.
    #[must_use]
    pub fn gap(&self) -> Option<Level> {
        self.left(self.bounds.first()?)
    }

    /// The lowest line among those whose action is one of these.
    pub(super) fn bound_for(&self, allowed: &FixedBitSet) -> Option<&Waterline> {
        self.bounds.iter().find(|bound| allowed.contains(bound.action))
    }
}

/// The lines in force, and the actions behind them.
#[derive(Clone, Debug, Default)]
pub(super) struct Lines {
    /// In the order they are acted on within each category.
    pub(super) targets: Vec<Gap>,
    /// Lines above which page cache is asked back. Nothing done about them counts for the others.
    pub(super) reclaims: Vec<Gap>,
    /// Lines that would give back, were not another rule on the same resource in the way.
    pub(super) suppressed: Vec<Gap>,
    /// The actions in force, for [`Waterline::action`].
    pub(super) actions: Vec<Arc<Action>>,
}

impl Lines {
    /// The lines of these rules.
    pub(super) fn new<'p>(rules: &[&Judged<'p>], order: &[Arc<Metric>], snapshot: &NodeSnapshot) -> Self {
        let mut lines = Self::default();
        for metric in order {
            let of_it: Vec<&&Judged<'p>> =
                rules.iter().filter(|r| Arc::ptr_eq(&r.line.metric, metric)).collect();
            if of_it.is_empty() {
                continue;
            }
            if metric.reclaimable.is_some() {
                let reclaim = lines.target(Category::Reclaim, metric, &of_it, snapshot);
                lines.reclaims.extend(reclaim);
            }
            for category in [Category::Evict, Category::ThrottleDown, Category::ThrottleUp] {
                let Some(target) = lines.target(category, metric, &of_it, snapshot) else { continue };
                let in_the_way = |r: &&Judged<'_>| r.line.metric.resource == metric.resource && r.holds();
                if category == Category::ThrottleUp && rules.iter().any(in_the_way) {
                    lines.suppressed.push(target);
                } else {
                    lines.targets.push(target);
                }
            }
        }
        lines
    }

    fn target(
        &mut self,
        category: Category,
        metric: &Arc<Metric>,
        rules: &[&&Judged<'_>],
        snapshot: &NodeSnapshot,
    ) -> Option<Gap> {
        let chosen: Vec<&&&Judged<'_>> = rules.iter().filter(|rule| is_in(category, rule)).collect();
        if chosen.is_empty() {
            return None;
        }
        let used = used(metric, chosen.iter().map(|rule| rule.line), snapshot);
        let acts = match category {
            Category::Evict => metric.release.is_some(),
            Category::Reclaim => metric.reclaimable.is_some(),
            Category::ThrottleDown | Category::ThrottleUp => metric.throttle.is_some(),
        };
        let scaled = |value: Level| (metric.scale)(value, &snapshot.node);
        let before = |line: Level| {
            let (used, line) = (scaled(used?)?, scaled(line)?);
            let excess = i128::from(snapshot.options.excess);
            acts.then(|| match category {
                Category::ThrottleUp => {
                    let margin = i128::from(snapshot.options.restore_margin);
                    (line.times(WHOLE - margin, WHOLE) - used).times(WHOLE - excess, WHOLE)
                }
                _ => (used - line).times(WHOLE + excess, WHOLE),
            })
        };
        let mut bounds: Vec<Waterline> = Vec::with_capacity(chosen.len());
        for rule in chosen {
            let Line { name, value, action: Some(action), .. } = rule.line else { continue };
            let action = self.number(action);
            bounds.push(Waterline { rule: name.clone(), value: *value, before: before(*value), action });
        }
        bounds.sort_by(|a, b| a.value.cmp(&b.value).then_with(|| a.rule.cmp(&b.rule)));
        Some(Gap { category, metric: metric.clone(), used, bounds, released: Level::ZERO })
    }

    fn number(&mut self, action: &Arc<Action>) -> usize {
        let known = self.actions.iter().position(|known| known.name == action.name);
        known.unwrap_or_else(|| {
            self.actions.push(action.clone());
            self.actions.len() - 1
        })
    }

    /// The targets of a category.
    pub(super) fn of(&self, category: Category) -> impl Iterator<Item = &Gap> {
        self.targets.iter().filter(move |target| target.category == category)
    }
}

fn is_in(category: Category, rule: &Judged<'_>) -> bool {
    let Some(action) = &rule.line.action else { return false };
    match category {
        Category::Evict => rule.phase == RulePhase::Triggered && action.evict.is_some(),
        Category::ThrottleDown => rule.phase == RulePhase::Triggered && action.throttle.is_some(),
        Category::Reclaim => rule.phase == RulePhase::Triggered && action.reclaim,
        Category::ThrottleUp => rule.phase == RulePhase::Restored && action.throttle.is_some(),
    }
}

/// What is used by the latest reading, else by the samples the rules were judged on: the largest that was selected.
pub(super) fn used<'l>(
    metric: &Metric,
    lines: impl Iterator<Item = &'l Line>,
    snapshot: &NodeSnapshot,
) -> Option<Level> {
    let lines: Vec<&Line> = lines.collect();
    let named = |name: &str| name == metric.name || metric.aliases.contains(&name);
    let selected = |labels| lines.iter().any(|line| line.series.as_ref().is_none_or(|by| by.matches(labels)));
    let mut again = snapshot.latest.iter().filter(|l| named(&l.name) && selected(&l.labels)).peekable();
    if again.peek().is_some() {
        // One that cannot be read may be the largest.
        return again
            .map(|l| l.value.filter(|value| *value >= Level::ZERO))
            .try_fold(Level::ZERO, |most, value| value.map(|value| most.max(value)));
    }
    let samples = snapshot.series.iter().filter(|s| named(&s.name) && selected(&s.labels));
    samples.filter_map(|series| usable(series, snapshot).ok()).max()
}
