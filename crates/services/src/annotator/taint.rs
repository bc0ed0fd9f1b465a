//! How does a load taint get onto a node, and how many are there?

use super::watched::Node;
use crate::cluster::events::{Happened, Severity};
use loadline_core::load::taints::{Act, Change, Grade, KEY};
use loadline_core::select::taint::Taint;

/// A change of a node's taints to be written.
#[derive(Clone, Debug)]
pub(super) struct Tainting {
    pub change: Change,
    /// All taints of the node with that change: the list can only be replaced as a whole.
    pub taints: Vec<Taint>,
}

impl Tainting {
    pub fn new(change: Change, taints: &[Taint]) -> Self {
        Self { taints: change.apply(taints), change }
    }

    /// The Event about it.
    pub fn happened(&self) -> Happened {
        let reason = match self.change.act {
            Act::Add => "LoadTaintAdded",
            Act::Raise => "LoadTaintRaised",
            Act::Lower => "LoadTaintLowered",
            Act::Remove => "LoadTaintRemoved",
            Act::Keep | Act::Spare => "LoadTaintKept",
        };
        let because = &self.change.because;
        let note = match self.change.after.or(self.change.before) {
            Some(taint) => format!("{}: {because}", taint.taint()),
            None => because.to_string(),
        };
        Happened { severity: Severity::Normal, reason, action: "Tainting", note }
    }
}

/// How many nodes bear a taint of ours, or would.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tainted {
    pub high: usize,
    pub over: usize,
    /// Hot, and without one because enough others have one.
    pub spared: usize,
}

impl Tainted {
    /// As decided, whether it is written yet or not.
    pub fn count(changes: &[Change]) -> Self {
        let grade =
            |grade| changes.iter().filter(|c| c.after.map(|after| after.grade) == Some(grade)).count();
        let spared = changes.iter().filter(|change| change.act == Act::Spare).count();
        Self { high: grade(Grade::High), over: grade(Grade::Over), spared }
    }
}

/// May ordinary pods come, but for what we say ourselves?
pub(super) fn takes_pods(node: &Node) -> bool {
    !node.unschedulable && !node.taints.iter().any(|taint| taint.effect.repels() && taint.key != KEY)
}
