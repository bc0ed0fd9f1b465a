//! Which Events are written, what do they mean, and what is there to do about them?
//!
//! Whoever records one that is not listed here fails its tests (`is_known`), and the reference page is made from the list.

use super::Severity;

/// A kind of Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Who reports it: `reportingController`; `None` for whoever can lead.
    pub by: Option<&'static str>,
    pub reason: &'static str,
    pub severity: Severity,
    /// The kind of object it is on.
    pub about: &'static str,
    /// What happened.
    pub means: &'static str,
    /// What to do, if there is anything.
    pub advice: &'static str,
}

/// Under which name placements are told about: that of the controller whose place we take.
pub const PLACEMENT: &str = "placement-controller";

const fn row(
    by: &'static str,
    reason: &'static str,
    severity: Severity,
    about: &'static str,
    means: &'static str,
    advice: &'static str,
) -> Known {
    Known { by: Some(by), reason, severity, about, means, advice }
}

use Severity::{Normal, Warning};

/// All of them, by component.
pub const KNOWN: &[Known] = &[
    Known {
        by: None,
        reason: "LeaderElection",
        severity: Normal,
        about: "Lease",
        means: "a process became the leader, or stopped leading",
        advice: "often in a row: renewing takes too long, look at the API server",
    },
    row(
        SCHEDULER,
        "Scheduled",
        Normal,
        "Pod",
        "the pod was bound to a node; a remark follows if that node is over its limits because all were",
        "",
    ),
    row(
        SCHEDULER,
        "FailedScheduling",
        Warning,
        "Pod",
        "the pod fits nowhere now, with the reason of every node counted",
        "`loadline explain pod` names each node and what would have to be different",
    ),
    row(
        SCHEDULER,
        "Preempted",
        Normal,
        "Pod",
        "the pod was asked to go because a more important one is to have its place",
        "the pod it goes for is in `related`; a disruption budget or a higher priority keeps who must stay",
    ),
    row(
        SCHEDULER,
        "LinesDisagree",
        Warning,
        "NodeQOS",
        "the scheduler fills nodes above this line, from which the agent takes load off again",
        "lower the target in the policy or raise the line; the note has both figures",
    ),
    row(
        ANNOTATOR,
        "LoadDataLost",
        Warning,
        "Node",
        "no source has measured the node for five minutes; what is written on it will expire",
        "does `kubectl top node` know it, and does Prometheus scrape it?",
    ),
    row(ANNOTATOR, "LoadDataFound", Normal, "Node", "the node is measured again", ""),
    row(
        ANNOTATOR,
        "LoadTaintAdded",
        Normal,
        "Node",
        "the node bears a taint for its load now (`--taints`)",
        "",
    ),
    row(ANNOTATOR, "LoadTaintRaised", Normal, "Node", "the taint keeps pods away harder than before", ""),
    row(ANNOTATOR, "LoadTaintLowered", Normal, "Node", "the taint keeps pods away less than before", ""),
    row(ANNOTATOR, "LoadTaintRemoved", Normal, "Node", "the taint for its load is gone", ""),
    row(ANNOTATOR, "LoadTaintKept", Normal, "Node", "a taint found there is taken over", ""),
    row(ANNOTATOR, "PolicyLoaded", Normal, "ConfigMap", "the load policy in it is in force", ""),
    row(
        ANNOTATOR,
        "PolicyRefused",
        Warning,
        "ConfigMap",
        "the policy in it cannot be used; the last good one stays",
        "the note says where and what was expected; `loadline policy check FILE` says so beforehand",
    ),
    row(
        REBALANCE,
        "Rebalanced",
        Normal,
        "Pod, Node",
        "the pod was evicted because its node stays over its line, and where it is expected to go",
        "",
    ),
    row(
        REBALANCE,
        "RebalanceBlocked",
        Warning,
        "Pod, Node",
        "the pod should go and a disruption budget keeps it",
        "a budget that never allows anybody to go keeps the node over its line",
    ),
    row(
        AGENT,
        "DoubtfulRule",
        Warning,
        "Node",
        "a rule of a `NodeQOS` cannot be used, never acts, or contradicts another; the others count",
        "the note says which and why; `loadline policy check FILE` says so beforehand",
    ),
    row(
        AGENT,
        "RuleInError",
        Warning,
        "Node",
        "a rule had no usable sample for two looks: it neither acts nor gives back until it has one",
        "the note says of what: a metric this kernel or agent does not have, or a file that says nothing",
    ),
    row(
        AGENT,
        "AvoidanceTriggered",
        Warning,
        "Node",
        "a rule passed its waterline and its action is taken",
        "`loadline explain node` shows lines, gaps and who comes first",
    ),
    row(
        AGENT,
        "RestoreTriggered",
        Normal,
        "Node",
        "the rule is below its line again and gives back what it took",
        "",
    ),
    row(
        AGENT,
        "Throttled",
        Warning,
        "Pod",
        "a container got a lower CPU quota, and how much that releases",
        "more important than others on its node? say so by its priority or a PodQOS",
    ),
    row(AGENT, "Restored", Normal, "Pod", "a container got CPU quota back", ""),
    row(AGENT, "Reclaimed", Normal, "Pod", "the kernel was asked for page cache of the pod", ""),
    row(
        AGENT,
        "Evicted",
        Warning,
        "Pod",
        "the pod was evicted to relieve its node",
        "often: the node has more work than it can do; look at what it was promised",
    ),
    row(
        AGENT,
        "EvictionBlocked",
        Warning,
        "Pod",
        "the pod should go and may not, with the reason",
        "a disruption budget, a protected namespace or an hourly limit: the note says which",
    ),
    row(
        AGENT,
        "LinesDisagree",
        Warning,
        "Node",
        "the scheduler fills the node above a line of the agent",
        "lower the target in the policy or raise the line; the note has both figures",
    ),
    row(
        FLEET,
        "ScheduleBindingSucceed",
        Normal,
        "ResourceBinding, ClusterResourceBinding, what is bound",
        "clusters and replicas were assigned",
        "",
    ),
    row(
        FLEET,
        "ScheduleBindingFailed",
        Warning,
        "ResourceBinding, ClusterResourceBinding, what is bound",
        "no cluster fits, or something is wrong with the binding",
        "`loadline explain binding` names the reason of every cluster",
    ),
    row(
        FLEET,
        "DescheduleBindingSucceed",
        Normal,
        "ResourceBinding, ClusterResourceBinding, what is bound",
        "replicas without a node were taken from a cluster",
        "",
    ),
    row(
        FLEET,
        "DescheduleBindingFailed",
        Warning,
        "ResourceBinding, ClusterResourceBinding, what is bound",
        "that could not be written",
        "it is tried again at the next pass",
    ),
    row(PLACEMENT, "DecisionCreate", Normal, "Placement", "a PlacementDecision was created", ""),
    row(
        PLACEMENT,
        "DecisionUpdate",
        Normal,
        "Placement",
        "the clusters of a PlacementDecision changed; a warning where something is wrong with a prioritizer",
        "`loadline explain placement` says why these clusters",
    ),
    row(
        PLACEMENT,
        "DecisionDelete",
        Normal,
        "Placement",
        "a PlacementDecision that is not needed any more was deleted",
        "",
    ),
    row(PLACEMENT, "ScoreUpdate", Normal, "Placement", "the points of the clusters, if they changed", ""),
    row(
        PLACEMENT,
        "Misconfigured",
        Warning,
        "Placement",
        "the placement cannot be decided; what it had is kept",
        "the note says what is wrong; `loadline what-if place` tries a change",
    ),
];

const SCHEDULER: &str = "loadline-scheduler";
const ANNOTATOR: &str = "loadline-annotator";
const REBALANCE: &str = "loadline-rebalance";
const AGENT: &str = "loadline-agent";
const FLEET: &str = "loadline-fleet";

/// Is there such an Event? Those of others are theirs to know.
pub(super) fn is_known(controller: &str, reason: &str) -> bool {
    let ours = KNOWN.iter().any(|known| known.by == Some(controller));
    let fits = |known: &Known| known.reason == reason && known.by.is_none_or(|by| by == controller);
    !ours || KNOWN.iter().any(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_listed_twice_and_warnings_say_what_to_do() {
        for (at, known) in KNOWN.iter().enumerate() {
            let twice = KNOWN[..at].iter().any(|other| (other.by, other.reason) == (known.by, known.reason));
            assert!(!twice, "{known:?}");
            assert!(known.severity == Normal || !known.advice.is_empty(), "{known:?}");
        }
    }

    #[test]
    fn others_may_say_what_they_like() {
        assert!(is_known("loadline-scheduler", "Scheduled"));
        assert!(is_known("loadline-scheduler", "LeaderElection"));
        assert!(!is_known("loadline-scheduler", "Throttled"));
        assert!(is_known("loadline-sim", "Whatever"));
    }
}
