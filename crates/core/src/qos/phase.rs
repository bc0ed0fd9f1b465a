//! Is a rule idle, triggered, holding, restored? Counting in a row, with time as an argument.
//!
//! ```text
//! over:     active and not restoring → triggered; else triggered once it was over often enough in a row
//! not over: idle if nothing was caused; else restored once it was not over often enough in a row, holding before
//! restored: every cycle, until what the rule caused is undone and its cool-down is over
//! ```
//!
//! A rule without a usable sample is in error: nothing is counted, nothing is concluded.

use super::level::Level;
use super::policy::{Line, Policy, RuleName, Strategy};
use super::snapshot::{NodeSnapshot, Series};
use super::state::{RuleState, later};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a rule is in this cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RulePhase {
    /// Nothing to do.
    #[default]
    Idle,
    /// Over the line: acts.
    Triggered,
    /// Has caused something and waits.
    Holding,
    /// Gives back.
    Restored,
    /// No usable sample.
    Error,
}

impl RulePhase {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Triggered => "triggered",
            Self::Holding => "holding",
            Self::Restored => "restored",
            Self::Error => "error",
        }
    }
}

/// One step of a rule's life: what was found, and what it is now.
pub fn advance(state: &mut RuleState, over: Option<bool>, limits: (i32, i32), now: Timestamp) -> RulePhase {
    let (avoid_after, restore_after) = limits;
    let phase = match over {
        None => return RulePhase::Error,
        Some(true) => {
            state.below = 0;
            if state.active && !state.restoring {
                RulePhase::Triggered
            } else {
                state.above = state.above.saturating_add(1);
                if state.above >= avoid_after {
                    (state.active, state.restoring) = (true, false);
                    RulePhase::Triggered
                } else if state.active {
                    RulePhase::Holding
                } else {
                    RulePhase::Idle
                }
            }
        }
        Some(false) if !state.active => {
            state.above = 0;
            RulePhase::Idle
        }
        Some(false) => {
            if state.restoring {
                state.above = 0;
            }
            state.below = state.below.saturating_add(1).min(restore_after);
            if state.below >= restore_after {
                state.restoring = true;
                state.above = 0;
                RulePhase::Restored
            } else {
                RulePhase::Holding
            }
        }
    };
    if phase == RulePhase::Triggered {
        state.last_triggered = Some(now);
    }
    phase
}

/// A rule in this cycle.
#[derive(Clone, Debug)]
pub(super) struct Judged<'p> {
    pub(super) line: &'p Line,
    pub(super) phase: RulePhase,
    pub(super) state: RuleState,
    /// Was it not triggered before?
    pub(super) changed: bool,
    /// Says what it would do, and does nothing.
    pub(super) preview: bool,
    /// Why there is no usable sample.
    pub(super) problem: Option<Arc<str>>,
}

impl Judged<'_> {
    /// Does it still stand in the way of new pods, and of giving back?
    pub(super) fn holds(&self) -> bool {
        match self.phase {
            RulePhase::Triggered | RulePhase::Holding => true,
            // What it caused is not known to be over.
            RulePhase::Error => self.state.active && !self.state.restoring,
            RulePhase::Idle | RulePhase::Restored => false,
        }
    }

    /// Is there anything it did itself?
    pub(super) fn has_acted(&self) -> bool {
        self.state.active && !self.state.only_said
    }
}

/// Where every rule for this node is, and what is remembered of those that are gone.
pub(super) struct Phases<'p> {
    pub(super) judged: Vec<Judged<'p>>,
    /// Deleted, or no longer for this node: what they caused is undone.
    pub(super) gone: BTreeMap<Arc<RuleName>, RuleState>,
}

/// Judges every rule by its samples.
pub(super) fn judge<'p>(
    policy: &'p Policy,
    snapshot: &NodeSnapshot,
    warnings: &mut Vec<String>,
) -> Phases<'p> {
    let dry = snapshot.options.dry_run || snapshot.node.preview;
    let by_name = by_name(policy, snapshot);
    let mut gone = snapshot.state.rules.clone();
    let mut judged = Vec::new();
    for line in policy.lines.iter().filter(|line| line.is_for(&snapshot.node.labels)) {
        let known = gone.remove(&line.name);
        let mut state = known.unwrap_or_default();
        if state.definition.as_ref().is_some_and(|was| *was != line.definition) {
            // Edited: it counts anew, and what it caused comes back unless it is found over again.
            (state.above, state.below, state.restoring) = (0, 0, state.active);
        }
        state.definition = Some(line.definition.clone());
        state.cool_down_seconds = Some(line.cool_down());
        let before = (state.active, state.restoring);
        let series = by_name.get(line.metric.name).map_or(&[][..], Vec::as_slice);
        let over = over(line, series, snapshot);
        if let Err(problem) = &over {
            warnings.push(format!("rule {}: {problem}", line.name));
        }
        let limits = (line.avoid_after, line.restore_after);
        let phase = advance(&mut state, over.as_ref().ok().copied(), limits, snapshot.now);
        if state.active && state.last_triggered.is_none() {
            // Not remembered when: the cool-down begins now.
            state.last_triggered = Some(snapshot.now);
        }
        let preview = dry || line.strategy == Strategy::Preview;
        if !state.active {
            state.only_said = false;
        } else if phase == RulePhase::Triggered {
            // What it did before it was only to say stays its own.
            state.only_said = preview && (state.only_said || !before.0);
        }
        let changed = match phase {
            RulePhase::Triggered => before != (true, false),
            RulePhase::Restored => before != (true, true),
            _ => false,
        };
        let problem = over.err().map(Arc::from);
        judged.push(Judged { line, phase, state, changed, preview, problem });
    }
    gone.retain(|_, state| state.active && !state.only_said);
    for state in gone.values_mut() {
        (state.restoring, state.above) = (true, 0);
        state.last_triggered.get_or_insert(snapshot.now);
    }
    Phases { judged, gone }
}

fn by_name<'s>(policy: &Policy, snapshot: &'s NodeSnapshot) -> BTreeMap<&'static str, Vec<&'s Series>> {
    let mut out: BTreeMap<&'static str, Vec<&Series>> = BTreeMap::new();
    for series in &snapshot.series {
        if let Some(metric) = policy.catalogue.find(&series.name) {
            out.entry(metric.name).or_default().push(series);
        }
    }
    out
}

/// Is any selected series over the line? One that cannot be used may be: then nobody knows, unless another is.
fn over(line: &Line, series: &[&Series], snapshot: &NodeSnapshot) -> Result<bool, String> {
    let chosen = || series.iter().filter(|s| line.series.as_ref().is_none_or(|by| by.matches(&s.labels)));
    let mut problem = None;
    let mut any = false;
    for one in chosen() {
        any = true;
        match usable(one, snapshot) {
            Ok(value) if value > line.value => return Ok(true),
            Ok(_) => {}
            Err(found) => problem = Some(found),
        }
    }
    match problem {
        Some(problem) => Err(format!("{} {problem}", line.metric.name)),
        None if any => Ok(false),
        None => Err(format!("no sample of {}", line.metric.name)),
    }
}

/// The value of a sample that is one: a number, not negative, neither old nor of the future.
pub(super) fn usable(series: &Series, snapshot: &NodeSnapshot) -> Result<Level, &'static str> {
    let age = snapshot.now.duration_since(series.at);
    let interval = SignedDuration::from_secs(snapshot.options.interval_seconds.max(1));
    if age > interval.saturating_mul(3) {
        return Err("is older than three intervals");
    }
    if age < -interval {
        return Err("is of the future");
    }
    match series.value {
        None => Err("is no number that could be measured"),
        Some(value) if value < Level::ZERO => Err("is negative"),
        Some(value) => Ok(value),
    }
}

/// Is the cool-down of a rule over? Only after it, not at its last moment.
pub(super) fn cooled(state: &RuleState, now: Timestamp) -> bool {
    let seconds = state.cool_down_seconds.unwrap_or(super::policy::COOL_DOWN_SECONDS);
    state.last_triggered.is_none_or(|last| now > later(last, seconds))
}
