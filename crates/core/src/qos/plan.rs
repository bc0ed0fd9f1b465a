//! One cycle: judge the rules, slow down, evict, give back, and say what the node says.

use super::candidate::{self, Candidate, Protection};
use super::event::{self, Event};
use super::evict::Block;
use super::gap::{Category, Gap, Lines};
use super::held::{Entry, Held};
use super::level::Level;
use super::metric::Metric;
use super::order::sorted;
use super::phase::{Judged, RulePhase, judge};
use super::pod::CpuQuota;
use super::policy::{Policy, RuleName, Strategy};
use super::reclaim::Reclaim;
use super::settle::Next;
use super::snapshot::{Missing, NodeSnapshot};
use super::state::{Departure, Leaving};
use super::taint::{self, Closed};
use crate::object::Key;
use std::collections::BTreeMap;
use std::sync::Arc;

/// How sure a category acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Until the gap is closed.
    Precise,
    /// On everybody.
    All,
    /// One at a time.
    Paced,
    /// Not at all.
    Skip,
}

impl Mode {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Precise => "precise",
            Self::All => "all",
            Self::Paced => "paced",
            Self::Skip => "skip",
        }
    }
}

impl From<Missing> for Mode {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::ActAll => Self::All,
            Missing::Paced => Self::Paced,
            Missing::Skip => Self::Skip,
        }
    }
}

/// A quota to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// Down or up.
    pub category: Category,
    pub pod: Key,
    pub container: Arc<str>,
    /// What is turned, as the metric's [`Throttle`](super::metric::Throttle) has it.
    pub knob: &'static str,
    /// What to write.
    pub quota: CpuQuota,
    /// The period it is of, in microseconds.
    pub period_us: i64,
    /// What that releases, or adds at most, in the unit of gaps.
    pub moved: Level,
    pub metric: &'static str,
    pub rule: Arc<RuleName>,
    /// The gap to the rule's line before.
    pub before: Option<Level>,
    /// And after.
    pub after: Option<Level>,
}

/// A pod to evict.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    pub pod: Key,
    pub uid: Arc<str>,
    pub metric: &'static str,
    pub rule: Arc<RuleName>,
    /// The gap to the rule's line before.
    pub before: Option<Level>,
    /// And after.
    pub after: Option<Level>,
    /// What it releases, by metric.
    pub release: BTreeMap<&'static str, Level>,
    /// How long it is given, in seconds.
    pub grace_seconds: i64,
}

/// A pod whose usage counts as gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credited {
    pub pod: Key,
    /// Its identity, where known.
    pub uid: Arc<str>,
    /// Why.
    pub reason: Leaving,
    /// What it releases, by metric.
    pub release: BTreeMap<&'static str, Level>,
}

/// A pod that could go and stays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    pub pod: Key,
    /// Why.
    pub reason: Block,
}

/// A gap that stays open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unclosed {
    /// What was done.
    pub category: Category,
    /// About what.
    pub metric: &'static str,
    /// How much is left, in the unit of gaps.
    pub left: Level,
    /// Why.
    pub reason: &'static str,
}

/// What acting on everybody would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Naive {
    /// How many pods would notice.
    pub pods_disturbed: usize,
    /// What that would release, by metric.
    pub released: BTreeMap<&'static str, Level>,
}

/// What is to be done, for some of the rules.
#[derive(Clone, Debug, Default)]
pub struct Steps {
    /// The lines in force and the gaps to them.
    pub targets: Vec<Gap>,
    /// Lines that would give back, were not another in the way.
    pub suppressed: Vec<Gap>,
    /// How sure throttling is; none if nothing of it is in force.
    pub mode_throttle: Option<Mode>,
    /// How sure evicting is.
    pub mode_evict: Option<Mode>,
    /// Who may be acted on, by metric, the first first.
    pub order: BTreeMap<&'static str, Vec<Key>>,
    /// Quotas to write, in order.
    pub writes: Vec<Write>,
    /// Page cache to ask back, in order; it counts for nothing until it is measured.
    pub reclaims: Vec<Reclaim>,
    /// Pods to evict, in order.
    pub victims: Vec<Victim>,
    /// Pods that count as gone.
    pub credited: Vec<Credited>,
    /// Pods that could go and stay.
    pub blocked: Vec<Blocked>,
    /// Did a limit cut the plan short?
    pub deferred: bool,
    /// Pods that are not touched.
    pub protected: BTreeMap<Key, Protection>,
    /// Gaps that stay open.
    pub unclosed: Vec<Unclosed>,
    /// What acting on everybody would do.
    pub naive: Naive,
    /// What could not be done as asked.
    pub warnings: Vec<String>,
}

/// A rule in this cycle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleReport {
    /// Which.
    pub rule: Arc<RuleName>,
    /// What it watches.
    pub metric: &'static str,
    pub value: Level,
    pub unit: &'static str,
    /// What it does.
    pub action: Arc<str>,
    /// Does it act?
    pub strategy: Strategy,
    /// Where it is.
    pub phase: RulePhase,
    /// Has it just come there?
    pub changed: bool,
    /// Why it has no usable sample, where it is in error.
    pub problem: Option<Arc<str>>,
}

/// One cycle as a value.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Where every rule is.
    pub rules: Vec<RuleReport>,
    /// What is to be done.
    pub steps: Steps,
    /// What the rules that only say would do, if there are any.
    pub preview: Option<Steps>,
    /// What the node says.
    pub closed: Closed,
    /// What looks wrong.
    pub warnings: Vec<String>,
    pub(super) next: Next,
}

impl Plan {
    /// What is worth telling.
    #[must_use]
    pub fn events(&self) -> Vec<Event> {
        event::events(self)
    }
}

/// A cycle being planned.
pub(super) struct Work<'s> {
    pub(super) policy: &'s Policy,
    pub(super) snapshot: &'s NodeSnapshot,
    pub(super) lines: Lines,
    pub(super) candidates: Vec<Candidate<'s>>,
    pub(super) held: Held<'s>,
    pub(super) steps: Steps,
    /// Orders that are known already; metrics that compare alike share one.
    orders: Vec<(Arc<Metric>, Vec<usize>)>,
}

impl<'s> Work<'s> {
    fn new(policy: &'s Policy, snapshot: &'s NodeSnapshot, rules: &[&Judged<'_>]) -> Self {
        let order: Vec<Arc<Metric>> = policy.catalogue.iter().cloned().collect();
        let lines = Lines::new(rules, &order, snapshot);
        let candidates = candidate::all(policy, snapshot, &lines);
        Self {
            policy,
            snapshot,
            lines,
            candidates,
            held: Held::new(&snapshot.state.throttled, &snapshot.pods, snapshot.now),
            steps: Steps::default(),
            orders: Vec::new(),
        }
    }

    /// The places of the targets of a category, in the order they are acted on.
    pub(super) fn indices(&self, category: Category) -> Vec<usize> {
        (0..self.lines.targets.len()).filter(|i| self.lines.targets[*i].category == category).collect()
    }

    pub(super) fn is_open(&self, target: usize) -> bool {
        self.lines.targets[target].gap().is_some_and(Level::is_open)
    }

    /// All pods in the order of a metric.
    pub(super) fn order_of(&mut self, metric: &Arc<Metric>) -> Vec<usize> {
        if let Some((_, known)) = self.orders.iter().find(|(known, _)| known.compares_like(metric)) {
            return known.clone();
        }
        let pods: Vec<_> = self.candidates.iter().map(|c| c.pod).collect();
        let order = sorted(&pods, Some(metric), self.snapshot.options.order);
        self.orders.push((metric.clone(), order.clone()));
        order
    }

    /// All pods in the order for metrics that have none.
    pub(super) fn general_order(&self) -> Vec<usize> {
        let pods: Vec<_> = self.candidates.iter().map(|c| c.pod).collect();
        sorted(&pods, None, self.snapshot.options.order)
    }

    /// What pods on their way out will release counts before anything is done.
    fn credit_leaving(&mut self) {
        for candidate in &self.candidates {
            let Some(reason) = candidate.leaving else { continue };
            let mut release = BTreeMap::new();
            for target in self.lines.targets.iter_mut().filter(|t| t.category != Category::ThrottleUp) {
                if let Some(freed) = candidate.release(&target.metric) {
                    target.released += freed;
                    release.insert(target.metric.name, freed);
                }
            }
            let (pod, uid) = (candidate.pod.key.clone(), candidate.pod.uid.clone());
            self.steps.credited.push(Credited { pod, uid, reason, release });
        }
        for gone in &self.snapshot.state.leaving {
            let is_it = |candidate: &Candidate<'_>| {
                candidate.pod.key == gone.pod && candidate.pod.uid == gone.uid && !candidate.pod.ended
            };
            if self.candidates.iter().any(is_it) {
                continue;
            }
            for target in self.lines.targets.iter_mut().filter(|t| t.category != Category::ThrottleUp) {
                target.released += gone.release.get(target.metric.name).copied().unwrap_or_default();
            }
            let Departure { pod, uid, release } = gone.clone();
            self.steps.credited.push(Credited { pod, uid, reason: Leaving::StillMeasured, release });
        }
    }

    /// Who may be acted on, by metric.
    fn note_order(&mut self) {
        let metrics: Vec<(Arc<Metric>, bool)> = {
            let up_only = |metric: &Arc<Metric>| {
                self.lines
                    .targets
                    .iter()
                    .all(|t| !Arc::ptr_eq(&t.metric, metric) || t.category == Category::ThrottleUp)
            };
            let all = self.lines.targets.iter().map(|target| target.metric.clone());
            all.map(|metric| (metric.clone(), up_only(&metric))).collect()
        };
        for (metric, up) in metrics {
            if self.steps.order.contains_key(metric.name) {
                continue;
            }
            let mut order = self.order_of(&metric);
            if up {
                order.reverse();
            }
            let may = |c: &&usize| {
                let candidate = &self.candidates[**c];
                if up {
                    let slowed = self.snapshot.state.throttled.iter().filter(|one| one.is_slowed());
                    return slowed.into_iter().any(|one| one.pod == candidate.pod.key);
                }
                let targets = self.lines.targets.iter().filter(|t| Arc::ptr_eq(&t.metric, &metric));
                candidate.leaving.is_none()
                    && candidate.protection.is_none_or(Protection::allows_throttling)
                    && targets.into_iter().any(|t| {
                        let may_go = t.category != Category::Evict || candidate.protection.is_none();
                        may_go && t.bound_for(&candidate.allowed).is_some()
                    })
            };
            let keys = order.iter().filter(may).map(|c| self.candidates[*c].pod.key.clone()).collect();
            self.steps.order.insert(metric.name, keys);
        }
    }

    /// Plans for some rules; what the others did is not theirs to undo.
    fn run(mut self, rules: &[&Judged<'_>], others: &[&Judged<'_>]) -> (Steps, Vec<Entry>) {
        self.note_order();
        self.steps.naive = self.naive();
        self.credit_leaving();
        self.throttle_down();
        self.reclaim();
        self.evict();
        self.throttle_up(rules, others);
        self.unclosed();
        let protected = |c: &Candidate<'_>| Some((c.pod.key.clone(), c.protection?));
        self.steps.protected = self.candidates.iter().filter_map(protected).collect();
        self.steps.targets = self.lines.targets;
        self.steps.suppressed = self.lines.suppressed;
        (self.steps, self.held.left())
    }
}

/// Plans one cycle.
#[must_use]
pub fn plan(policy: &Policy, snapshot: &NodeSnapshot) -> Plan {
    let mut warnings = policy.warnings().to_vec();
    let phases = judge(policy, snapshot, &mut warnings);
    let (previewed, acting): (Vec<&Judged<'_>>, Vec<&Judged<'_>>) =
        phases.judged.iter().partition(|rule| rule.preview);
    let still = snapshot.options.dry_run || snapshot.node.preview;
    let (steps, held) = if still {
        // Nothing is changed, and what was is left as it is.
        (Steps::default(), Held::new(&snapshot.state.throttled, &snapshot.pods, snapshot.now).left())
    } else {
        Work::new(policy, snapshot, &acting).run(&acting, &previewed)
    };
    let preview =
        (!previewed.is_empty()).then(|| Work::new(policy, snapshot, &previewed).run(&previewed, &acting).0);
    let closed = taint::closed(&phases, snapshot);
    warnings.extend(steps.warnings.iter().cloned());
    let report = |rule: &Judged<'_>| RuleReport {
        rule: rule.line.name.clone(),
        metric: rule.line.metric.name,
        value: rule.line.value,
        unit: if rule.line.metric.percent { "%" } else { rule.line.metric.unit },
        action: rule.line.action_name.clone(),
        strategy: rule.line.strategy,
        phase: rule.phase,
        changed: rule.changed,
        problem: rule.problem.clone(),
    };
    let rules = phases.judged.iter().map(report).collect();
    let next = Next::new(phases, snapshot, held);
    Plan { rules, steps, preview, closed, warnings, next }
}
