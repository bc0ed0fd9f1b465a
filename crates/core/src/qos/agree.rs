//! Do the scheduler's targets and the agent's waterlines agree? Where a target is above a line, pods are sent to a node until the agent
//! takes load off it again.
//!
//! ```text
//! a node is filled until it uses    allocatable × target
//! a rule acts once it uses more     waterline, or percent × capacity / 100
//! they disagree                     allocatable × target > waterline
//! ```
//!
//! Example: 8 cores of which 7.5 are for pods, a target of 0.8 and a line at 70 % are 6 cores against 5.6: 400m too many. With 7 cores
//! for pods they are 5.6 against 5.6, and agree. What a node does not say is not guessed, so nothing is said of it.
//!
//! Rules that only say what they would do, and actions that neither slow pods down nor evict them, empty no node.

use super::level::Level;
use super::metric::cpu::CPU;
use super::metric::memory::MEMORY;
use super::pod::Node;
use super::policy::{Line, Policy, RuleName, Strategy};
use crate::load::policy::Rules;
use crate::load::ratio::Ratio;
use crate::load::{Both, Metered};
use crate::select::Lookup;
use crate::view::{Labels, NodeFacts, NodeView, loads};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Billionths of a millicore in a billionth of a core.
const NANO_PER_CORE_NANO: i128 = 1_000;
/// Billionths of a byte in a byte.
const NANO_PER_BYTE: i128 = 1_000_000_000;

/// A node, as far as both look at it.
#[derive(Debug)]
pub struct About<'a, L: ?Sized> {
    pub labels: &'a L,
    pub annotations: &'a L,
    /// What it has for pods: billionths of a core, bytes.
    pub allocatable: Both<Option<i64>>,
    /// What it has in all.
    pub capacity: Both<Option<i64>>,
}

impl<'a> From<&'a NodeFacts> for About<'a, BTreeMap<String, String>> {
    fn from(facts: &'a NodeFacts) -> Self {
        let NodeFacts { labels, annotations, allocatable, capacity, .. } = facts;
        Self { labels, annotations, allocatable: both(loads(allocatable)), capacity: both(loads(capacity)) }
    }
}

impl<'a> From<&'a NodeView> for About<'a, Labels> {
    fn from(view: &'a NodeView) -> Self {
        let NodeView { labels, annotations, allocatable_load, capacity_load, .. } = view;
        Self { labels, annotations, allocatable: both(*allocatable_load), capacity: both(*capacity_load) }
    }
}

fn both([cpu, memory]: [Option<i64>; 2]) -> Both<Option<i64>> {
    Both { cpu, memory }
}

/// A rule that acts on a node before it is as full as the scheduler makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disagreement {
    pub rule: Arc<RuleName>,
    pub resource: Metered,
    /// How much of what it has for pods may be used.
    pub target: Ratio,
    /// The same as an amount: billionths of a core, or bytes.
    pub admitted: i64,
    /// Above which amount the rule acts, a part of a unit left out.
    pub waterline: i64,
    /// The line as it is written, if it is a share of 100.
    pub percent: Option<Level>,
}

impl Disagreement {
    /// By how much the target is above the line.
    #[must_use]
    pub fn excess(&self) -> i64 {
        self.admitted.saturating_sub(self.waterline)
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, resource, target, admitted, waterline, percent } = self;
        let amount = |amount: i64| resource.quantity(amount);
        write!(
            f,
            "pods come until {} of {resource} are used (target {target}), but rule {rule} acts above {}",
            amount(*admitted),
            amount(*waterline)
        )?;
        if let Some(percent) = percent {
            write!(f, " ({}%)", percent.to_f64())?;
        }
        write!(f, ": {} too many", amount(self.excess()))
    }
}

/// Where targets are above the lines of rules that act on this node, in the order of the rules.
#[must_use]
pub fn disagreements<L: Lookup + ?Sized>(
    rules: &Rules,
    policy: &Policy,
    node: &About<'_, L>,
) -> Vec<Disagreement> {
    let acting: Vec<(&Line, Metered)> =
        policy.lines.iter().filter_map(|line| Some((line, acts_on(line)?))).collect();
    if acting.is_empty() {
        return Vec::new();
    }
    let targets = rules.node(node.labels, node.annotations).0.targets;
    let level = |amount: Option<i64>, scale| amount.map(|n| Level::from_nano(i128::from(n) * scale));
    let has = Node {
        cpu: level(node.capacity.cpu, NANO_PER_CORE_NANO),
        memory: level(node.capacity.memory, NANO_PER_BYTE),
        ..Node::default()
    };
    let of = |(line, resource): (&Line, Metered)| {
        if !line.is_for(node.labels) {
            return None;
        }
        let target = targets.get(resource)?;
        let admitted = target.floor_of(node.allocatable.get(resource)?);
        let level = (line.metric.scale)(line.value, &has)?.nano();
        let waterline = level.div_euclid(match resource {
            Metered::Cpu => NANO_PER_CORE_NANO,
            Metered::Memory => NANO_PER_BYTE,
        });
        let waterline = i64::try_from(waterline).unwrap_or(i64::MAX);
        let percent = line.metric.percent.then_some(line.value);
        let rule = line.name.clone();
        (admitted > waterline).then_some(Disagreement {
            rule,
            resource,
            target,
            admitted,
            waterline,
            percent,
        })
    };
    acting.into_iter().filter_map(of).collect()
}

/// Which resource a rule takes off nodes; none if it takes nothing.
fn acts_on(line: &Line) -> Option<Metered> {
    let empties = line.action.as_ref().is_some_and(|a| a.throttle.is_some() || a.evict.is_some());
    // The node's own series have no labels: a rule that asks for some never sees them.
    let sees = line.series.as_ref().is_none_or(|series| series.matches(&Labels::default()));
    if line.strategy == Strategy::Preview || !empties || !sees {
        return None;
    }
    match line.metric.resource {
        CPU => Some(Metered::Cpu),
        MEMORY => Some(Metered::Memory),
        _ => None,
    }
}

/// What to say of one node, and of how many more it is true.
#[must_use]
pub fn told(node: &str, one: &Disagreement, others: usize) -> String {
    match others {
        0 => format!("on {node}, {one}"),
        1 => format!("on {node}, {one}; so on one more node"),
        others => format!("on {node}, {one}; so on {others} more nodes"),
    }
}

#[cfg(test)]
mod tests;
