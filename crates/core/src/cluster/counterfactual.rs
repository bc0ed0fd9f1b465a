//! What would have to be different for a pod to fit on a node?
//!
//! Everything against the node is taken up, so that a node with all of the changes, and nothing else, takes the pod; if
//! one of the reasons is nothing one would change just for this, there is no answer.

use super::report::{NodeReport, Resource};
use crate::explain::Reason;
use crate::load::Metered;
use crate::load::policy::Figure;
use crate::load::ratio::Ratio;
use crate::resources::quantity;
use crate::select::Taint;
use jiff::Timestamp;
use std::fmt;

/// One thing that would have to be different.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// How much of a resource may be used.
    Target {
        resource: Metered,
        to: Ratio,
    },
    /// How much a metric may be.
    Limit {
        metric: String,
        to: Figure,
    },
    /// A metric is above anything a limit may be.
    NoLimit {
        metric: String,
    },
    /// So much more of a resource would have to be free: CPU in thousandths, otherwise bytes or pieces.
    Free {
        resource: String,
        more: i64,
    },
    /// So many pods fewer.
    FewerPods(i64),
    /// Nodes whose load is not known would have to be taken.
    AllowUnknown,
    /// It would not have to be left alone.
    NotCooling {
        until: Timestamp,
    },
    Uncordoned,
    Tolerated {
        taint: Taint,
    },
}

/// All that would have to be different together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    pub changes: Vec<Change>,
}

/// What would have to change, by everything that is against the node. Beside what it uses, so much counts per resource:
/// pods that go first, and pods another scheduler may be sending.
pub(super) fn counterfactual(report: &NodeReport, others: [i64; 2]) -> Option<Counterfactual> {
    if report.fits || report.reasons.is_empty() {
        return None;
    }
    let mut changes: Vec<Change> = Vec::new();
    for reason in &report.reasons {
        let change = match reason {
            Reason::OverLine { resource, .. } | Reason::NoHeadroom { resource, .. } => {
                let at = Metered::ALL.into_iter().position(|r| r.name() == resource)?;
                let resource = Metered::ALL[at];
                let Resource { line, incoming } = report.lines?.get(resource);
                Change::Target { resource, to: line.target_for(incoming.saturating_add(others[at]))? }
            }
            // By default a limit is at most the whole; crane takes any number.
            Reason::OverThreshold { metric, value, .. } if *value <= Ratio::ONE => {
                Change::Limit { metric: metric.clone(), to: Figure::Exact(*value) }
            }
            Reason::LoadTooHigh { metric, value, .. } if value.to_f64().is_finite() => {
                Change::Limit { metric: metric.clone(), to: *value }
            }
            Reason::OverThreshold { metric, .. } | Reason::LoadTooHigh { metric, .. } => {
                Change::NoLimit { metric: metric.clone() }
            }
            Reason::DoesNotFit { resource, asked, free } => {
                let more = asked.saturating_sub(*free);
                match resource.as_str() {
                    "pods" => Change::FewerPods(more),
                    _ => Change::Free { resource: resource.clone(), more },
                }
            }
            Reason::UnknownLoad => Change::AllowUnknown,
            Reason::Cooling { until } => Change::NotCooling { until: *until },
            Reason::Cordoned => Change::Uncordoned,
            Reason::Untolerated { taint } => Change::Tolerated { taint: taint.clone() },
            // Nothing one would change just for this.
            _ => return None,
        };
        // Two limits of one metric, which crane takes, are one change.
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Some(Counterfactual { changes })
}

impl fmt::Display for Counterfactual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.changes.iter().map(ToString::to_string).collect();
        write!(f, "would fit if {}", parts.join(" and "))
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Target { resource, to } => write!(f, "the {resource} target were {}", hundredths(*to)),
            Self::Limit { metric, to } => write!(f, "the limit of {metric} were {to}"),
            Self::NoLimit { metric } => write!(f, "{metric} had no limit"),
            Self::Free { resource, more } => {
                write!(f, "{} more {resource} were free", quantity(resource, *more))
            }
            Self::FewerPods(1) => f.write_str("one pod fewer were there"),
            Self::FewerPods(more) => write!(f, "{more} pods fewer were there"),
            Self::AllowUnknown => f.write_str("missingData were Allow"),
            Self::NotCooling { until } => write!(f, "it were not left alone until {until}"),
            Self::Uncordoned => f.write_str("it were not cordoned"),
            Self::Tolerated { taint } => write!(f, "the pod tolerated {taint}"),
        }
    }
}

/// A ratio with two decimals: 0.70, not 0.7.
fn hundredths(ratio: Ratio) -> String {
    let exact = ratio.nano() / 10_000_000;
    format!("{}.{:02}", exact / 100, exact % 100)
}
