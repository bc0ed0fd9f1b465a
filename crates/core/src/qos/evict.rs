//! Evicting: what cannot be compressed first, one pod after the other, each credited to every metric.

use super::gap::Category;
use super::level::Level;
use super::order::tier;
use super::plan::{Blocked, Mode, Victim, Work};
use super::pod::Pod;
use super::snapshot::{Missing, Planner};
use super::state::{Eviction, Reply, later};
use crate::view::Budget;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a pod that could go stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// A disruption budget has nothing left, or has just refused.
    DisruptionBudget,
    /// More than one budget covers it; the API server refuses such pods.
    SeveralBudgets,
    /// The API server refused for another reason, and is not asked again yet.
    EvictionFailed,
    /// It has not run long enough.
    TooYoung,
}

impl Block {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DisruptionBudget => "DisruptionBudget",
            Self::SeveralBudgets => "SeveralBudgets",
            Self::EvictionFailed => "EvictionFailed",
            Self::TooYoung => "TooYoung",
        }
    }
}

/// Limits on evictions, and what is left of them.
#[derive(Clone, Debug)]
pub(super) struct Rails {
    /// How many more may go in this cycle; none: any number.
    left: Option<usize>,
    /// How many more each budget allows, by its place.
    budgets: Vec<i64>,
    /// Owners who have lost a pod in this cycle.
    hit: BTreeSet<Arc<str>>,
}

impl Work<'_> {
    /// What is left of the limits. A cycle that is planned again, because somebody may not go, goes on with what it began with: who
    /// went at this very time went in this cycle.
    fn rails(&self) -> Rails {
        let options = &self.snapshot.options;
        let went: Vec<&Eviction> = self.snapshot.state.granted_at(self.snapshot.now).collect();
        let cycle = (options.max_per_cycle > 0).then(|| options.max_per_cycle.saturating_sub(went.len()));
        let gone = self.snapshot.state.within_the_hour(self.snapshot.now);
        let hour = (options.max_per_hour > 0).then(|| options.max_per_hour.saturating_sub(gone));
        let mut left = match (cycle, hour) {
            (Some(cycle), Some(hour)) => Some(cycle.min(hour)),
            (cycle, hour) => cycle.or(hour),
        };
        if self.snapshot.state.cycles.is_some_and(|cycles| cycles < options.grace_cycles) {
            left = Some(0);
        }
        let budgets = self.snapshot.budgets.iter().map(|budget| budget.allowed).collect();
        let has_gone = |pod: &&Pod| went.iter().any(|one| one.is_of(pod));
        let hit = if went.is_empty() {
            BTreeSet::new()
        } else {
            self.snapshot.pods.iter().filter(has_gone).filter_map(owner).collect()
        };
        Rails { left, budgets, hit }
    }

    /// Evicts pods.
    pub(super) fn evict(&mut self) {
        let targets = self.indices(Category::Evict);
        if targets.is_empty() {
            return;
        }
        let mut rails = self.rails();
        if targets.iter().any(|t| !self.lines.targets[*t].is_quantified()) {
            self.evict_blindly(&targets, &mut rails);
            return;
        }
        self.steps.mode_evict = Some(Mode::Precise);
        if self.snapshot.options.planner == Planner::Minimal {
            self.evict_fewest(&targets, &mut rails);
        }
        // Greedily, or what the exact planner had to leave.
        for target in targets {
            if !self.close_by_evicting(target, &mut rails) {
                break;
            }
        }
    }

    fn evict_blindly(&mut self, targets: &[usize], rails: &mut Rails) {
        let missing = self.snapshot.options.missing_evict;
        self.steps.mode_evict = Some(missing.into());
        if missing == Missing::Skip {
            let unquantified = targets.iter().copied().find(|t| !self.lines.targets[*t].is_quantified());
            return self.skipped(Category::Evict, unquantified);
        }
        // Whoever is on the way out has not been measured yet: one at a time means one at a time.
        let leaving = self.candidates.iter().any(|c| c.leaving.is_some());
        for c in self.general_order() {
            let open = self.first_open(c, targets);
            let Some(target) = open.filter(|_| self.candidates[c].can_go()) else { continue };
            if self.blocked(c, rails) {
                continue;
            }
            if missing == Missing::Paced && (leaving || !self.steps.victims.is_empty()) {
                return;
            }
            if !self.take(c, target, rails) {
                return;
            }
        }
    }

    /// Takes pods in the metric's order until its gap is closed. Says no when a limit was reached.
    fn close_by_evicting(&mut self, target: usize, rails: &mut Rails) -> bool {
        if !self.is_open(target) {
            return true;
        }
        let metric = self.lines.targets[target].metric.clone();
        let order = self.order_of(&metric);
        let of =
            |work: &Self, c: usize| tier(work.candidates[c].pod, Some(&metric), work.snapshot.options.order);
        let mut from = 0;
        while from < order.len() {
            let this = of(self, order[from]);
            let equal = order[from..].iter().take_while(|c| of(self, **c) == this).count();
            let tier = &order[from..from + equal];
            from += equal;
            // Of pods of equal rank, one of each owner first.
            let mut again = Vec::new();
            for &c in tier {
                if !self.is_open(target) {
                    return true;
                }
                let owned_by_hit =
                    owner(self.candidates[c].pod).is_some_and(|owner| rails.hit.contains(&owner));
                if owned_by_hit {
                    again.push(c);
                } else if !self.try_take(c, target, rails) {
                    return false;
                }
            }
            for c in again {
                if !self.is_open(target) {
                    return true;
                }
                if !self.try_take(c, target, rails) {
                    return false;
                }
            }
        }
        true
    }

    /// Takes a pod if it may go and that helps. Says no when a limit was reached.
    fn try_take(&mut self, c: usize, target: usize, rails: &mut Rails) -> bool {
        if !self.helps(c, target) || self.blocked(c, rails) {
            return true;
        }
        self.take(c, target, rails)
    }

    /// May it go, is its own line passed, and would its end release any of that?
    pub(super) fn helps(&self, c: usize, target: usize) -> bool {
        let (candidate, target) = (&self.candidates[c], &self.lines.targets[target]);
        candidate.can_go()
            && candidate.open(target).is_some()
            && candidate.release(&target.metric).is_some_and(|release| release > Level::ZERO)
    }

    /// Takes a pod, unless a limit was reached.
    pub(super) fn take(&mut self, c: usize, target: usize, rails: &mut Rails) -> bool {
        if rails.left == Some(0) {
            self.steps.deferred = true;
            return false;
        }
        let candidate = &self.candidates[c];
        let pod = candidate.pod;
        let Some(bound) = self.lines.targets[target].bound_for(&candidate.allowed).cloned() else {
            return true;
        };
        let before = self.lines.targets[target].left(&bound);
        let mut release = BTreeMap::new();
        for one in self.lines.targets.iter_mut().filter(|t| t.category == Category::Evict) {
            if let Some(freed) = candidate.release(&one.metric) {
                one.released += freed;
                release.insert(one.metric.name, freed);
            }
        }
        let actions = candidate.allowed.ones().map(|n| &self.lines.actions[n]);
        let grace = actions.filter_map(|action| action.evict?.grace_seconds).min();
        self.steps.victims.push(Victim {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            metric: self.lines.targets[target].metric.name,
            rule: bound.rule.clone(),
            before,
            after: self.lines.targets[target].left(&bound),
            release,
            grace_seconds: grace.unwrap_or_else(|| pod.grace()),
        });
        self.candidates[c].evicted = true;
        rails.left = rails.left.map(|left| left - 1);
        rails.hit.extend(owner(pod));
        for (left, budget) in rails.budgets.iter_mut().zip(&self.snapshot.budgets) {
            if covers(budget, pod) {
                *left -= 1;
            }
        }
        true
    }

    /// Is there a reason not to ask for it now? Noted once.
    pub(super) fn blocked(&mut self, c: usize, rails: &Rails) -> bool {
        let pod = self.candidates[c].pod;
        let Some(reason) = self.block(pod, rails) else { return false };
        if !self.steps.blocked.iter().any(|known| known.pod == pod.key) {
            self.steps.blocked.push(Blocked { pod: pod.key.clone(), reason });
        }
        true
    }

    fn block(&self, pod: &Pod, rails: &Rails) -> Option<Block> {
        let now = self.snapshot.now;
        if let Some(refused) = self.snapshot.state.refused(pod, now) {
            let budget = refused.reply == Reply::Refused;
            return Some(if budget { Block::DisruptionBudget } else { Block::EvictionFailed });
        }
        let age = self.snapshot.options.min_age_seconds;
        if age > 0 && pod.started.is_none_or(|started| now < later(started, age)) {
            return Some(Block::TooYoung);
        }
        let mut covering = self.snapshot.budgets.iter().zip(&rails.budgets).filter(|(b, _)| covers(b, pod));
        match (covering.next(), covering.next()) {
            (_, Some(_)) => Some(Block::SeveralBudgets),
            (Some((_, left)), None) if *left <= 0 => Some(Block::DisruptionBudget),
            _ => None,
        }
    }

    fn evict_fewest(&mut self, targets: &[usize], rails: &mut Rails) {
        let usable: Vec<usize> =
            (0..self.candidates.len()).filter(|c| targets.iter().any(|t| self.helps(*c, *t))).collect();
        let free: Vec<usize> = usable.into_iter().filter(|c| !self.blocked(*c, rails)).collect();
        let Some(chosen) = self.fewest(&free, targets, rails.left) else { return };
        for c in chosen {
            let Some(target) = self.first_open(c, targets) else { continue };
            if !self.take(c, target, rails) {
                return;
            }
        }
    }
}

fn covers(budget: &Budget, pod: &Pod) -> bool {
    budget.key.namespace == pod.key.namespace && budget.selector.matches(&pod.labels)
}

/// Who made it, if anybody who can be told from others did.
fn owner(pod: &Pod) -> Option<Arc<str>> {
    let owner = pod.owner.as_ref()?;
    if !owner.uid.is_empty() {
        return Some(owner.uid.clone());
    }
    (!owner.name.is_empty()).then(|| format!("{}/{}/{}", pod.key.namespace, owner.kind, owner.name).into())
}
