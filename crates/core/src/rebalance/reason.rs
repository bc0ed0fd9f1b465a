//! Why does a pod stay, a node wait, or nothing move at all? As data that reads as one sentence.

use crate::cycle::{Filter, words};
use crate::explain::Reason;
use crate::load::Metered;
use crate::view::Hold;
use jiff::Timestamp;
use serde::Serialize;
use std::fmt;

/// How many nodes refuse a pod by which rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub rule: Filter,
    pub nodes: u32,
}

/// Why a pod stays where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Stay {
    /// Its node gets under its line without it.
    NotNeeded,
    /// A daemon set made it for this node.
    Daemon,
    /// It stands for a file on its node.
    Mirror,
    /// Nobody would make it again.
    Bare,
    /// The cluster itself depends on it.
    Critical { priority: i32 },
    /// Somebody said to leave it alone.
    Exempt,
    /// It is on its way out already.
    Leaving,
    /// Not all of it runs.
    NotRunning,
    /// Nobody knows since when it is there.
    AgeUnknown,
    /// It has not been there for long enough to be judged.
    WarmUp { until: Timestamp },
    /// It was moved to where it is.
    Dwells { until: Timestamp },
    /// Nobody measured of late what it uses.
    UseUnknown,
    /// It uses too little of what its node has too little of.
    UsesLittle {
        resource: Metered,
        /// CPU in billionths of a core, memory in bytes.
        uses: i64,
        /// What it would have to use, at least.
        worth: i64,
    },
    /// A disruption budget allows no more.
    Budget { budget: String },
    /// Several disruption budgets cover it; the API server evicts no such pod.
    Budgets { budgets: Vec<String> },
    /// So many were moved from its node within an hour.
    NodeLimit { limit: u32 },
    /// So many of its workload were moved within an hour.
    WorkloadLimit { limit: u32 },
    /// So many were moved within an hour.
    HourLimit { limit: u32 },
    /// It could not be scheduled again at all.
    Held { hold: Hold },
    /// No other node takes it.
    NoNode { refused: Vec<Refused> },
    /// It would be placed on the node it is on.
    Returns,
    /// A pod came from the node it would go to.
    Swap { node: String, pod: String },
    /// Nothing is known of the load of the node it would go to.
    UnknownThere { node: String },
    /// The node it would go to would not stay far enough under its line.
    OverThere {
        node: String,
        resource: Metered,
        /// What that node is expected to use without it: CPU in billionths of a core, memory in bytes.
        expected: i64,
        /// What the pod uses at most.
        high: i64,
        /// What may be used there, the margin taken off.
        limit: i64,
    },
}

impl fmt::Display for Stay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotNeeded => f.write_str("its node gets under its line without it"),
            Self::Daemon => f.write_str("a daemon set made it for this node"),
            Self::Mirror => f.write_str("it stands for a file on its node"),
            Self::Bare => f.write_str("nobody would make it again"),
            Self::Critical { priority } => write!(f, "the cluster depends on it (priority {priority})"),
            Self::Exempt => f.write_str("it is to be left alone"),
            Self::Leaving => f.write_str("it is on its way out already"),
            Self::NotRunning => f.write_str("not all of it runs"),
            Self::AgeUnknown => f.write_str("nobody knows since when it is there"),
            Self::WarmUp { until } => write!(f, "it has not been there for long; not before {until}"),
            Self::Dwells { until } => write!(f, "it was moved there and stays until {until}"),
            Self::UseUnknown => f.write_str("nobody measured of late what it uses"),
            Self::UsesLittle { resource, uses, worth } => {
                let (uses, worth) = (resource.rounded(*uses), resource.rounded(*worth));
                write!(f, "it uses {uses} {resource}, and less than {worth} is not worth it")
            }
            Self::Budget { budget } => write!(f, "the disruption budget {budget} lets no more pods go"),
            Self::Budgets { budgets } => {
                write!(f, "several disruption budgets cover it: {}", budgets.join(", "))
            }
            Self::NodeLimit { limit } => write!(f, "no more than {limit} leave a node within an hour"),
            Self::WorkloadLimit { limit } => {
                write!(f, "no more than {limit} of a workload are moved within an hour")
            }
            Self::HourLimit { limit } => write!(f, "no more than {limit} are moved within an hour"),
            Self::Held { hold } => write!(f, "{}", Reason::Held { hold: hold.clone() }),
            Self::NoNode { refused } => {
                f.write_str("no other node takes it")?;
                for (i, one) in refused.iter().enumerate() {
                    let before = if i == 0 { ": " } else { ", " };
                    write!(f, "{before}{} {}", one.nodes, words(one.rule))?;
                }
                Ok(())
            }
            Self::Returns => f.write_str("it would come straight back"),
            Self::Swap { node, pod } => write!(f, "it would go to {node}, where {pod} came from"),
            Self::UnknownThere { node } => {
                write!(f, "it would go to {node}, and nothing is known of the load there")
            }
            Self::OverThere { node, resource, expected, high, limit } => {
                let [expected, high, limit] = [expected, high, limit].map(|amount| resource.rounded(*amount));
                write!(
                    f,
                    "it would go to {node}, where {resource} would pass the line: {expected} expected + {high} at most is over {limit}, the margin taken off"
                )
            }
        }
    }
}

/// Why a node that is over its line gives up nothing now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Wait {
    /// Somebody said to leave it alone.
    Off,
    /// It gave up a pod, and has not been measured since.
    Settling { since: Timestamp },
    /// It has not been over its line for long enough.
    Brief { since: Timestamp, samples: u32, needed_seconds: i64 },
    /// What is on its way out is enough.
    Leaving,
    /// Its pods are known to use less soon.
    Passing {
        resource: Metered,
        /// What is expected then: CPU in billionths of a core, memory in bytes.
        soon: i64,
    },
    /// So many left it within an hour.
    NodeLimit { limit: u32 },
    /// So many were moved within an hour.
    HourLimit { limit: u32 },
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("it is to be left alone"),
            Self::Settling { since } => {
                write!(f, "it gave up a pod at {since} and has not been measured since")
            }
            Self::Brief { since, samples, needed_seconds } => write!(
                f,
                "it has been over its line only since {since}, measured {samples} times; {needed_seconds} s and two measurements are needed"
            ),
            Self::Leaving => f.write_str("what is on its way out is enough"),
            Self::Passing { resource, soon } => {
                write!(f, "its pods are known to use less soon: {} {resource}", resource.rounded(*soon))
            }
            Self::NodeLimit { limit } => write!(f, "no more than {limit} leave a node within an hour"),
            Self::HourLimit { limit } => write!(f, "no more than {limit} are moved within an hour"),
        }
    }
}

/// Why nothing is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Pause {
    /// The settings say so.
    Off,
    /// No node has been measured yet.
    NoHistory,
    /// No node has been measured of late.
    Stale,
    /// There is no line for any node.
    NoLine,
}

impl fmt::Display for Pause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Off => "moving is switched off",
            Self::NoHistory => "no node has been measured yet",
            Self::Stale => "no node has been measured within five minutes",
            Self::NoLine => "no node has a line",
        })
    }
}
