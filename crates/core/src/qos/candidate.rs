//! Who may be touched? Pods that an action in force is allowed on, and that nothing protects.

use super::gap::{Gap, Lines, Waterline};
use super::level::Level;
use super::metric::{Metric, Resource};
use super::pod::{Origin, Pod};
use super::policy::{Action, Policy};
use super::snapshot::{NodeSnapshot, Options};
use super::state::Leaving;
use super::throttle::Step;
use fixedbitset::FixedBitSet;
use std::sync::Arc;

/// The least priority of system pods.
const CRITICAL: i32 = 2_000_000_000;

/// Why a pod is not touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protection {
    /// A mirror of a pod on the node.
    MirrorPod,
    /// From a file on the node.
    StaticPod,
    /// The system needs it.
    CriticalPriority,
    /// The agent itself.
    Agent,
    /// Of a namespace nobody touches.
    ProtectedNamespace,
    /// It has ended.
    TerminalPhase,
    /// It is going already.
    Terminating,
    /// It would be back at once.
    DaemonSet,
    /// It asked not to be evicted.
    OptedOut,
    /// No action in force is allowed on it.
    NotAllowed,
}

impl Protection {
    /// As it is written in answers.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::MirrorPod => "MirrorPod",
            Self::StaticPod => "StaticPod",
            Self::CriticalPriority => "CriticalPriority",
            Self::Agent => "Agent",
            Self::ProtectedNamespace => "ProtectedNamespace",
            Self::TerminalPhase => "TerminalPhase",
            Self::Terminating => "Terminating",
            Self::DaemonSet => "DaemonSet",
            Self::OptedOut => "OptedOut",
            Self::NotAllowed => "NotAllowed",
        }
    }

    /// Is it only about going, not about being slowed down?
    #[must_use]
    pub fn allows_throttling(self) -> bool {
        matches!(self, Self::Terminating | Self::DaemonSet | Self::OptedOut)
    }
}

/// What protects a pod, whatever is asked for.
#[must_use]
pub fn protection(pod: &Pod, options: &Options) -> Option<Protection> {
    let critical = pod.priority >= CRITICAL
        || matches!(&*pod.priority_class, "system-node-critical" | "system-cluster-critical");
    let agent = options.agent.as_ref().is_some_and(|agent| *agent == pod.key);
    [
        (pod.origin == Origin::Mirror, Protection::MirrorPod),
        (pod.origin == Origin::File, Protection::StaticPod),
        (critical, Protection::CriticalPriority),
        (agent, Protection::Agent),
        (options.protected_namespaces.contains(&pod.key.namespace), Protection::ProtectedNamespace),
        (pod.ended, Protection::TerminalPhase),
        (pod.deleted.is_some(), Protection::Terminating),
        (pod.of_daemon_set(), Protection::DaemonSet),
        (pod.opted_out, Protection::OptedOut),
    ]
    .into_iter()
    .find_map(|(holds, why)| holds.then_some(why))
}

/// A pod and what has been done to it in this cycle.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'s> {
    pub(super) pod: &'s Pod,
    /// The actions in force that are allowed on it.
    pub(super) allowed: FixedBitSet,
    pub(super) protection: Option<Protection>,
    /// On its way out: its usage is credited, and it is no candidate.
    pub(super) leaving: Option<Leaving>,
    /// What it released by being slowed down, of which resource.
    pub(super) slowed: Option<(Resource, Level)>,
    pub(super) evicted: bool,
}

impl Candidate<'_> {
    /// May it be slowed down at all?
    pub(super) fn can_slow(&self) -> bool {
        self.leaving.is_none()
            && self.slowed.is_none()
            && self.protection.is_none_or(Protection::allows_throttling)
    }

    /// May it be evicted at all?
    pub(super) fn can_go(&self) -> bool {
        self.leaving.is_none() && !self.evicted && self.protection.is_none()
    }

    /// Its own line of a target, as long as the gap to it is open.
    pub(super) fn open<'t>(&self, target: &'t Gap) -> Option<&'t Waterline> {
        let bound = target.bound_for(&self.allowed)?;
        target.left(bound).is_none_or(Level::is_open).then_some(bound)
    }

    /// What its end would still release; what slowing it down released is gone already.
    pub(super) fn release(&self, metric: &Metric) -> Option<Level> {
        let all = metric.release.and_then(|release| release(self.pod))?;
        let slowed = self.slowed.filter(|(resource, _)| *resource == metric.resource);
        Some((all - slowed.map_or(Level::ZERO, |(_, level)| level)).at_least_zero())
    }
}

/// Every pod, with what may be done to it.
pub(super) fn all<'s>(policy: &Policy, snapshot: &'s NodeSnapshot, lines: &Lines) -> Vec<Candidate<'s>> {
    let mut scopes: Vec<(&super::scope::Scoped, FixedBitSet)> = Vec::new();
    let numbers = |names: &[Arc<str>]| -> FixedBitSet {
        let position = |name: &Arc<str>| lines.actions.iter().position(|known| known.name == *name);
        let mut set = FixedBitSet::with_capacity(lines.actions.len());
        names.iter().filter_map(position).for_each(|number| set.insert(number));
        set
    };
    for scope in &policy.scopes {
        let set = numbers(&scope.allowed);
        if !set.is_clear() {
            scopes.push((scope, set));
        }
    }
    let candidate = |pod: &'s Pod| {
        let mut allowed = numbers(&pod.allowed);
        for (scope, set) in &scopes {
            if !set.is_subset(&allowed) && scope.matches(pod) {
                allowed.union_with(set);
            }
        }
        let nothing = !lines.actions.is_empty() && allowed.is_clear();
        let protection = protection(pod, &snapshot.options).or(nothing.then_some(Protection::NotAllowed));
        let leaving = if pod.ended { None } else { snapshot.state.leaving(pod, snapshot.now) };
        Candidate { pod, allowed, protection, leaving, slowed: None, evicted: false }
    };
    snapshot.pods.iter().map(candidate).collect()
}

/// What several actions on one pod come to: the harder step, the larger rest.
pub(super) fn step<'a>(actions: impl Iterator<Item = &'a Arc<Action>>) -> Option<Step> {
    actions.filter_map(|action| action.throttle).reduce(Step::merged)
}
