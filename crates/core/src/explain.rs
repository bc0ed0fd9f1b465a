//! Why? Decisions as data: the same value becomes an event, a table row, JSON and one sentence.
//!
//! A [`Reason`] says why something was refused; refusing is an answer, not an error. A [`Trace`] collects what
//! was found on the way, if somebody asked; if nobody did, nothing is made, not even the words.

use crate::load::ratio::Ratio;
use crate::load::term::Source;
use crate::resources::{Lack, Names, quantity};
use crate::select::Taint;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a pod cannot go to a node. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Not enough of a resource is free.
    DoesNotFit {
        /// Which resource.
        resource: String,
        /// What the pod asks for: CPU in thousandths, otherwise bytes or pieces.
        asked: i64,
        /// What is free, in the same unit; negative where more is promised than there is.
        free: i64,
    },
    /// The node is closed for new pods.
    Cordoned,
    /// The node has a taint the pod does not tolerate.
    Untolerated {
        /// The first such taint.
        taint: Taint,
    },
    /// The node lacks a label the pod's node selector demands.
    SelectorMismatch,
    /// No term of the pod's required node affinity matches.
    AffinityMismatch,
    /// The required node affinity, or part of it, is not valid and therefore matches no node.
    InvalidAffinity {
        /// What is wrong with it.
        problem: String,
    },
    /// The pod names another node.
    OtherNode {
        /// The node it names.
        wanted: String,
    },
    /// A metric of the node is above its limit.
    OverThreshold {
        /// Which metric.
        metric: String,
        /// How much it is, as a share of the whole.
        value: Ratio,
        /// How much it may be.
        limit: Ratio,
        /// How old the value is.
        age_seconds: i64,
        /// Where it comes from.
        source: Source,
    },
}

impl Reason {
    /// The reason behind a lack.
    #[must_use]
    pub fn lack(lack: Lack, names: &Names) -> Self {
        Self::DoesNotFit {
            resource: names.name(lack.resource).to_owned(),
            asked: lack.asked,
            free: lack.free,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DoesNotFit { resource, free, .. } if resource == "pods" && *free <= 0 => {
                f.write_str("the node has no place left for a pod")
            }
            Self::DoesNotFit { resource, asked, free } => {
                let (asked, free) = (quantity(resource, *asked), quantity(resource, *free));
                if free.is_negative() {
                    let over = crate::quantity::Quantity::ZERO.minus(free);
                    write!(
                        f,
                        "the pod asks for {asked} {resource}, and {over} more than there is are already promised"
                    )
                } else {
                    write!(f, "the pod asks for {asked} {resource}, but only {free} is free")
                }
            }
            Self::Cordoned => f.write_str("the node is cordoned"),
            Self::Untolerated { taint } => write!(f, "the pod does not tolerate the taint {taint}"),
            Self::SelectorMismatch => f.write_str("the node lacks labels the pod's node selector demands"),
            Self::AffinityMismatch => {
                f.write_str("the node matches no term of the pod's required node affinity")
            }
            Self::InvalidAffinity { problem } => {
                write!(f, "the pod's required node affinity is not valid: {problem}")
            }
            Self::OtherNode { wanted } => write!(f, "the pod names the node {wanted}"),
            Self::OverThreshold { metric, value, limit, age_seconds, source } => write!(
                f,
                "{metric} of the node is {value}, above its limit {limit} (from {source}, {age_seconds} s old)"
            ),
        }
    }
}

/// May it go there?
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Yes.
    Fits,
    /// No, and why.
    Rejected(Reason),
}

impl Verdict {
    /// Is it a yes?
    #[must_use]
    pub fn fits(&self) -> bool {
        matches!(self, Self::Fits)
    }

    /// Why not, if not.
    #[must_use]
    pub fn reason(&self) -> Option<&Reason> {
        match self {
            Self::Fits => None,
            Self::Rejected(reason) => Some(reason),
        }
    }
}

impl From<Option<Reason>> for Verdict {
    fn from(reason: Option<Reason>) -> Self {
        reason.map_or(Self::Fits, Self::Rejected)
    }
}

/// What a rule found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "found", rename_all = "camelCase")]
pub enum Finding {
    /// Nothing against it.
    Fits,
    /// It cannot be.
    Rejected {
        /// Why.
        reason: Reason,
    },
    /// How good it is.
    Scored {
        /// More is better.
        points: i64,
    },
}

impl From<&Verdict> for Finding {
    fn from(verdict: &Verdict) -> Self {
        verdict.reason().map_or(Self::Fits, |reason| Self::Rejected { reason: reason.clone() })
    }
}

/// One rule's finding about one candidate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The candidate, usually a node's name.
    pub about: String,
    /// The rule.
    pub rule: &'static str,
    /// What it found.
    #[serde(flatten)]
    pub finding: Finding,
}

/// What was found on the way to a decision, if somebody wants to know.
///
/// ```
/// use loadline_core::explain::{Finding, Step, Trace};
/// let step = || Step { about: "n1".into(), rule: "taints", finding: Finding::Fits };
/// let mut nobody_asked = Trace::off();
/// nobody_asked.note(|| unreachable!("nothing is made"));
/// let mut asked = Trace::on();
/// asked.note(step);
/// assert_eq!(asked.steps(), [step()]);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Trace {
    steps: Option<Vec<Step>>,
}

impl Trace {
    /// Collects nothing.
    #[must_use]
    pub fn off() -> Self {
        Self { steps: None }
    }

    /// Collects everything.
    #[must_use]
    pub fn on() -> Self {
        Self { steps: Some(Vec::new()) }
    }

    /// Does somebody want to know? For work that only serves the trace.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.steps.is_some()
    }

    /// Adds a step. The closure runs only if somebody wants to know.
    pub fn note(&mut self, step: impl FnOnce() -> Step) {
        if let Some(steps) = &mut self.steps {
            steps.push(step());
        }
    }

    /// What was collected, in order.
    #[must_use]
    pub fn steps(&self) -> &[Step] {
        self.steps.as_deref().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::select::taint::Effect;

    #[test]
    fn every_reason_is_one_sentence_and_survives_json() {
        let taint =
            Taint { key: "gpu".into(), value: "yes".into(), effect: Effect::NoSchedule, time_added: None };
        let lack =
            |resource: &str, asked, free| Reason::DoesNotFit { resource: resource.into(), asked, free };
        for (reason, want) in [
            (lack("cpu", 1500, 250), "the pod asks for 1500m cpu, but only 250m is free"),
            (lack("memory", 3 << 29, 1 << 30), "the pod asks for 1536Mi memory, but only 1Gi is free"),
            (
                lack("example.com/gpu", 1, -2),
                "the pod asks for 1 example.com/gpu, and 2 more than there is are already promised",
            ),
            (lack("pods", 1, 0), "the node has no place left for a pod"),
            (Reason::Cordoned, "the node is cordoned"),
            (Reason::Untolerated { taint }, "the pod does not tolerate the taint gpu=yes:NoSchedule"),
            (Reason::SelectorMismatch, "the node lacks labels the pod's node selector demands"),
            (Reason::AffinityMismatch, "the node matches no term of the pod's required node affinity"),
            (
                Reason::InvalidAffinity { problem: "no such operator".into() },
                "the pod's required node affinity is not valid: no such operator",
            ),
            (Reason::OtherNode { wanted: "n2".into() }, "the pod names the node n2"),
            (
                Reason::OverThreshold {
                    metric: "cpu_usage_avg_5m".into(),
                    value: Ratio::from_nano(710_000_000),
                    limit: Ratio::from_nano(650_000_000),
                    age_seconds: 12,
                    source: Source::Annotation,
                },
                "cpu_usage_avg_5m of the node is 0.71, above its limit 0.65 (from annotation, 12 s old)",
            ),
        ] {
            assert_eq!(reason.to_string(), want);
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), reason, "{json}");
        }
    }

    #[test]
    fn steps_read_as_flat_json() {
        let mut trace = Trace::on();
        let verdict = Verdict::from(Some(Reason::Cordoned));
        trace.note(|| Step { about: "n1".into(), rule: "cordon", finding: (&verdict).into() });
        trace.note(|| Step { about: "n2".into(), rule: "affinity", finding: Finding::Scored { points: 7 } });
        let json = serde_json::to_value(&trace).unwrap();
        assert_eq!(
            json,
            serde_json::json!([
                {"about": "n1", "rule": "cordon", "found": "rejected", "reason": {"kind": "cordoned"}},
                {"about": "n2", "rule": "affinity", "found": "scored", "points": 7},
            ])
        );
        assert_eq!(serde_json::to_value(Trace::off()).unwrap(), serde_json::Value::Null);
    }
}
