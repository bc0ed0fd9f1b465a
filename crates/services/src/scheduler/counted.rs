//! What is counted of pods that wait, in the words of kube-scheduler: by what event they came into which queue, and which
//! plugins keep how many of them from a node.
//!
//! Both are kept as what happened since they were last asked for: most turns of the loop change neither.

use loadline_core::cycle::{Decision, Filter};
use loadline_core::view::Hold;
use std::collections::{BTreeMap, BTreeSet};

/// What brings pods into a queue, by kube-scheduler's names where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    PodAdd,
    PodUpdate,
    AttemptFailure,
    BackoffComplete,
    Timeout,
    NodeAdd,
    NodeUpdate,
    NodeDelete,
    AssignedPodAdd,
    AssignedPodDelete,
    /// A volume, a claim, a class of volumes or what there is room for.
    Storage,
    /// Something else that pods and nodes refer to: a budget, a namespace, a class of priorities.
    Reference,
    /// Load went down, or what is known of it became older.
    Load,
    /// Decisions are made by other rules.
    Configuration,
}

impl Event {
    pub fn label(self) -> &'static str {
        match self {
            Self::PodAdd => "UnschedulablePodAdd",
            Self::PodUpdate => "UnschedulablePodUpdate",
            Self::AttemptFailure => "ScheduleAttemptFailure",
            Self::BackoffComplete => "BackoffComplete",
            Self::Timeout => "UnschedulableTimeout",
            Self::NodeAdd => "NodeAdd",
            Self::NodeUpdate => "NodeUpdate",
            Self::NodeDelete => "NodeDelete",
            Self::AssignedPodAdd => "AssignedPodAdd",
            Self::AssignedPodDelete => "AssignedPodDelete",
            Self::Storage => "StorageUpdate",
            Self::Reference => "ReferenceUpdate",
            Self::Load => "LoadUpdate",
            Self::Configuration => "ConfigurationUpdate",
        }
    }
}

/// The plugin of kube-scheduler that has a rule; `Load` has those it has not.
pub(super) fn plugin(rule: Filter) -> &'static str {
    match rule {
        Filter::Cordon => "NodeUnschedulable",
        Filter::Taints => "TaintToleration",
        Filter::NodeAffinity => "NodeAffinity",
        Filter::Ports => "NodePorts",
        Filter::Resources => "NodeResourcesFit",
        Filter::DiskInUse | Filter::VolumeInUse => "VolumeRestrictions",
        Filter::AttachLimit => "NodeVolumeLimits",
        Filter::VolumeReach | Filter::NoVolume | Filter::NoStorage => "VolumeBinding",
        Filter::VolumeZone => "VolumeZone",
        Filter::Spread | Filter::SpreadLabel => "PodTopologySpread",
        Filter::Affinity | Filter::AntiAffinity | Filter::ExistingAntiAffinity => "InterPodAffinity",
        Filter::Threshold | Filter::UnknownLoad | Filter::Cooling | Filter::Line => "Load",
    }
}

/// The plugin that keeps pods from all nodes because they say so.
pub(super) const GATES: &str = "SchedulingGates";

/// The plugins that keep a pod from nodes, each once.
pub(super) fn plugins(decision: &Decision) -> BTreeSet<&'static str> {
    let refusing = Filter::ALL.into_iter().filter(|rule| decision.refused[rule.index()] > 0);
    let held = matches!(decision.hold, Some(Hold::Claim(_))).then_some("VolumeBinding");
    refusing.map(plugin).chain(held).collect()
}

/// What happened since somebody last asked.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// How many pods came into which queue by what.
    pub incoming: BTreeMap<(&'static str, Event), u64>,
    /// By plugin and by the name pods ask for: how many more it keeps from a node.
    pub kept: BTreeMap<(&'static str, String), i64>,
}

impl Counted {
    pub fn came(&mut self, queue: &'static str, event: Event) {
        *self.incoming.entry((queue, event)).or_default() += 1;
    }

    /// A pod is kept from a node by these from now on, or not any more.
    pub fn keep(&mut self, plugins: &BTreeSet<&'static str>, scheduler: &str, by: i64) {
        for plugin in plugins {
            *self.kept.entry((plugin, scheduler.to_owned())).or_default() += by;
        }
    }
}
