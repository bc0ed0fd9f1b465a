//! What does the node say to schedulers? A taint and a condition while a line is passed, and until it has cooled.

use super::gap::used;
use super::level::Level;
use super::phase::{Judged, Phases, cooled};
use super::snapshot::NodeSnapshot;
use crate::select::Taint;

/// The key of the taint.
pub const KEY: &str = "interference.crane.io";
/// The type of the condition.
pub const CONDITION: &str = "interference-identified";

/// What the node is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Is the taint there?
    pub present: bool,
    /// All taints of the node, ours and others'.
    pub taints: Vec<Taint>,
    /// Why.
    pub message: String,
    /// Until when it surely stays, if only the cool-down of rules keeps it.
    pub until: Option<jiff::Timestamp>,
    /// Until when the ledger marks the node as cooling: nobody is sent here, least of all a pod that was just sent away.
    /// Moves on with every cycle in which a rule holds; none if none does.
    pub cools_until: Option<jiff::Timestamp>,
    /// Is everything it says left as it is?
    pub unchanged: bool,
}

impl Closed {
    /// The reason of the condition.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        if self.present { "WaterlineExceeded" } else { "WaterlineRestored" }
    }
}

/// What the node is to say now. With nothing but previews it is left as it is; so is what a rule made it say that is only to say since.
pub(super) fn closed(phases: &Phases<'_>, snapshot: &NodeSnapshot) -> Closed {
    let node = &snapshot.node;
    let there = node.taints.iter().any(|taint| taint.key == KEY);
    let as_it_is = |message: String| Closed {
        present: there,
        taints: node.taints.clone(),
        message,
        until: None,
        cools_until: None,
        unchanged: true,
    };
    if snapshot.options.dry_run || node.preview {
        return as_it_is("nothing is changed in a preview".to_owned());
    }
    let now = snapshot.now;
    let acting = || phases.judged.iter().filter(|rule| !rule.preview && rule.has_acted());
    let holding: Vec<String> =
        acting().filter(|rule| rule.holds()).map(|rule| figures(rule, snapshot)).collect();
    let restoring = acting().filter(|rule| !rule.holds());
    let cooling: Vec<_> = restoring
        .map(|rule| (&rule.line.name, &rule.state))
        .chain(phases.gone.iter())
        .filter(|(_, state)| !cooled(state, now))
        .collect();
    let present = !holding.is_empty() || !cooling.is_empty();
    let mut switched = phases.judged.iter().filter(|rule| rule.preview && rule.has_acted());
    if let Some(rule) = switched.next().filter(|_| there && !present) {
        return as_it_is(format!("{} only says what it would do since it closed the node", rule.line.name));
    }
    let ends = |state: &super::state::RuleState| {
        let seconds = state.cool_down_seconds.unwrap_or(super::policy::COOL_DOWN_SECONDS);
        state.last_triggered.map(|last| super::state::later(last, seconds))
    };
    let until = cooling.iter().filter_map(|(_, state)| ends(state)).max().filter(|_| holding.is_empty());
    // A rule that holds, holds at least until the next cycle.
    let next = super::state::later(now, snapshot.options.interval_seconds.saturating_mul(2));
    let active =
        acting().filter(|rule| rule.holds()).filter_map(|rule| ends(&rule.state)).map(|end| end.max(next));
    let cools_until = active.chain(until).chain(cooling.iter().filter_map(|(_, state)| ends(state))).max();
    let message = if !holding.is_empty() {
        holding.join(", ")
    } else if let Some(until) = until {
        let names: Vec<String> = cooling.iter().map(|(name, _)| name.to_string()).collect();
        format!("{} cooling until {until}", names.join(", "))
    } else {
        "no line is passed".to_owned()
    };
    let mut taints: Vec<Taint> = node.taints.iter().filter(|taint| taint.key != KEY).cloned().collect();
    if present {
        let effect = snapshot.options.taint.clone();
        taints.push(Taint { key: KEY.to_owned(), value: String::new(), effect, time_added: None });
    }
    Closed { present, taints, message, until, cools_until, unchanged: false }
}

/// A rule, where it is, and what is measured beside its line.
fn figures(rule: &Judged<'_>, snapshot: &NodeSnapshot) -> String {
    let line = rule.line;
    let shown = |level: Level| (level.to_f64() * 100.0).round() / 100.0;
    let used = used(&line.metric, std::iter::once(line), snapshot);
    let used = used.map_or_else(|| "unknown".to_owned(), |used| shown(used).to_string());
    let (name, phase, metric) = (&line.name, rule.phase.as_str(), line.metric.name);
    format!("{name} {phase} ({metric} {used}, line {})", shown(line.value))
}
