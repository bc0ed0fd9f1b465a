//! Why? Decisions as data: the same value becomes an event, a table row, JSON and one sentence.
//!
//! A [`Reason`] says why something was refused; refusing is an answer, not an error. Everything found on the way is in
//! a report ([`crate::cluster::Report`]), made only when somebody asks.

use crate::load::admit::Basis;
use crate::load::policy::Figure;
use crate::load::ratio::Ratio;
use crate::load::term::Source;
use crate::quantity::Quantity;
use crate::resources::{Lack, Names, quantity};
use crate::select::Taint;
use crate::view::Hold;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Why a pod cannot go to a node. Displays as one sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Reason {
    /// Not enough of a resource is free.
    DoesNotFit {
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
    /// The same in upstream mode, in crane's own words.
    LoadTooHigh {
        metric: String,
        node: String,
        /// How much it is; `null` for an infinite one.
        value: Figure,
        /// How much it may be.
        limit: Figure,
        /// How old the value is.
        age_seconds: i64,
    },
    /// The load would pass the line: `measured + pending − departed + incoming > allocatable × target`.
    OverLine {
        resource: String,
        /// What was measured, if anything was: CPU in billionths of a core, memory in bytes.
        measured: Option<i64>,
        /// What assigned pods will add.
        pending: i64,
        /// What pods that are gone will take away.
        departed: i64,
        /// What this pod will add.
        incoming: i64,
        /// What the node has for pods.
        allocatable: i64,
        /// How much of that may be used.
        target: Ratio,
        /// What the expected load rests on.
        basis: Basis,
    },
    /// What one more is expected to use is more than may still come under the load line.
    NoHeadroom {
        resource: String,
        /// What one more is expected to use: CPU in billionths of a core, memory in bytes.
        asked: i64,
        /// What may still come; negative where the line is passed already.
        free: i64,
    },
    /// Nothing is known of the node's load, and the settings say to keep off then.
    UnknownLoad,
    /// The node was relieved and is left alone for a while.
    Cooling {
        /// Until then.
        until: jiff::Timestamp,
    },
    /// A port of the node is taken.
    PortTaken {
        /// `TCP`, `UDP` or `SCTP`.
        protocol: String,
        /// The number.
        port: i32,
    },
    /// A pod there has a disk that the two cannot share.
    DiskInUse { disk: String },
    /// Another pod has a volume for itself.
    VolumeInUse { volume: String },
    /// A driver can attach no more volumes there.
    TooManyVolumes {
        driver: String,
        /// How many it can.
        limit: i64,
    },
    /// A volume cannot be reached from there.
    VolumeOutOfReach { volume: String },
    /// A claim finds no volume there, and none can be made.
    NoVolume { claim: String },
    /// There is not enough room to make a volume for a claim.
    NoStorage { claim: String },
    /// A volume is in another zone.
    VolumeInOtherZone { volume: String },
    /// Pods like this one would not be spread evenly enough.
    Uneven {
        /// The label that makes places of nodes.
        topology_key: String,
        /// Pods in this place.
        here: i64,
        /// Pods in the emptiest.
        least: i64,
        /// How many more are allowed.
        max_skew: i64,
    },
    /// The node lacks the label pods are to be spread by.
    NoTopologyLabel {
        /// The label.
        topology_key: String,
    },
    /// Pods this one must be near are not there.
    NotNear,
    /// Pods this one must be away from are there.
    TooNear,
    /// Pods there keep this one away.
    KeptAway,
    /// The pod is not to be scheduled at all.
    Held {
        /// Why.
        hold: Hold,
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
                    let over = Quantity::ZERO.minus(free);
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
            Self::LoadTooHigh { metric, node, .. } => {
                write!(f, "Load[{metric}] of node[{node}] is too high")
            }
            Self::OverLine { .. } => self.over_line(f),
            Self::NoHeadroom { resource, asked, free } => {
                let show = |amount: i64| match resource.as_str() {
                    "cpu" => Quantity::from_nano(amount),
                    _ => Quantity::from_bytes(amount),
                };
                if *free < 0 {
                    write!(f, "{resource} is over the load line by {}", show(free.saturating_neg()))
                } else {
                    let (asked, free) = (show(*asked), show(*free));
                    write!(
                        f,
                        "{asked} {resource} is expected to be used, but only {free} may come under the load line"
                    )
                }
            }
            Self::UnknownLoad => f.write_str("nothing is known of the node's load"),
            Self::Cooling { until } => {
                write!(f, "the node is left alone until {until}, after it was relieved")
            }
            Self::PortTaken { protocol, port } => write!(f, "port {port}/{protocol} of the node is taken"),
            Self::DiskInUse { disk } => write!(f, "a pod there has the disk {disk}"),
            Self::VolumeInUse { volume } => write!(f, "another pod has the volume {volume} for itself"),
            Self::TooManyVolumes { driver, limit } => {
                write!(f, "{driver} can attach no more than {limit} volumes there")
            }
            Self::VolumeOutOfReach { volume } => {
                write!(f, "the volume {volume} cannot be reached from there")
            }
            Self::NoVolume { claim } => {
                write!(f, "the claim {claim} finds no volume there, and none can be made")
            }
            Self::NoStorage { claim } => {
                write!(f, "there is not enough room to make a volume for the claim {claim}")
            }
            Self::VolumeInOtherZone { volume } => write!(f, "the volume {volume} is in another zone"),
            Self::Uneven { topology_key, here, least, max_skew } => write!(
                f,
                "{here} such pods are in this {topology_key} already and {least} in the emptiest; at most {max_skew} more are allowed"
            ),
            Self::NoTopologyLabel { topology_key } => {
                write!(f, "the node lacks the label {topology_key} the pod is to be spread by")
            }
            Self::NotNear => f.write_str("no pod the new one must be near is there"),
            Self::TooNear => f.write_str("a pod the new one must keep away from is there"),
            Self::KeptAway => f.write_str("a pod that keeps such pods away is there"),
            Self::Held { hold: Hold::Gate(name) } => {
                write!(f, "the pod is held back by the scheduling gate {name}")
            }
            Self::Held { hold: Hold::Unsupported(what) } => {
                write!(f, "the pod needs what is not supported here: {what}")
            }
            Self::Held { hold: Hold::Invalid(what) | Hold::Claim(what) } => {
                write!(f, "the pod cannot be scheduled: {what}")
            }
        }
    }
}

impl Reason {
    /// The terms of the inequality that does not hold, with their figures.
    fn over_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::OverLine { resource, measured, pending, departed, incoming, allocatable, target, basis } =
            self
        else {
            return Ok(());
        };
        let cpu = resource == "cpu";
        let show = |amount: i64| if cpu { Quantity::from_nano(amount) } else { Quantity::from_bytes(amount) };
        write!(f, "{resource} would pass the line: ")?;
        match (measured, basis) {
            (Some(measured), Basis::Late) => write!(f, "{} measured a while ago + ", show(*measured))?,
            (Some(measured), Basis::Annotation) => {
                write!(f, "{} by the five-minute mean + ", show(*measured))?;
            }
            (Some(measured), _) => write!(f, "{} measured + ", show(*measured))?,
            (None, _) => {}
        }
        let pending_word = if measured.is_some() { "pending" } else { "expected of its pods" };
        write!(f, "{} {pending_word}", show(*pending))?;
        if *departed > 0 {
            write!(f, " − {} departed", show(*departed))?;
        }
        let limit = show(target.floor_of(*allocatable));
        write!(f, " + {} incoming is over {limit} ({target} of {})", show(*incoming), show(*allocatable))
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
            (
                Reason::LoadTooHigh {
                    metric: "mem_usage_avg_5m".into(),
                    node: "n1".into(),
                    value: Figure::Float(f64::INFINITY),
                    limit: Figure::Float(0.65),
                    age_seconds: 12,
                },
                "Load[mem_usage_avg_5m] of node[n1] is too high",
            ),
            (
                Reason::OverLine {
                    resource: "cpu".into(),
                    measured: Some(2_000_000_000),
                    pending: 300_000_000,
                    departed: 0,
                    incoming: 250_000_000,
                    allocatable: 3_910_000_000,
                    target: Ratio::from_nano(650_000_000),
                    basis: Basis::Measured,
                },
                "cpu would pass the line: 2 measured + 300m pending + 250m incoming is over 2541500u (0.65 of 3910m)",
            ),
            (
                Reason::OverLine {
                    resource: "memory".into(),
                    measured: None,
                    pending: 3 << 30,
                    departed: 0,
                    incoming: 1 << 30,
                    allocatable: 4 << 30,
                    target: Ratio::from_nano(500_000_000),
                    basis: Basis::Estimates,
                },
                "memory would pass the line: 3Gi expected of its pods + 1Gi incoming is over 2Gi (0.5 of 4Gi)",
            ),
            (
                Reason::NoHeadroom { resource: "cpu".into(), asked: 2_000_000_000, free: 1_500_000_000 },
                "2 cpu is expected to be used, but only 1500m may come under the load line",
            ),
            (
                Reason::NoHeadroom { resource: "memory".into(), asked: 1, free: -(1 << 30) },
                "memory is over the load line by 1Gi",
            ),
            (Reason::UnknownLoad, "nothing is known of the node's load"),
            (Reason::PortTaken { protocol: "TCP".into(), port: 80 }, "port 80/TCP of the node is taken"),
            (Reason::NotNear, "no pod the new one must be near is there"),
            (
                Reason::Held { hold: Hold::Gate("example.com/wait".into()) },
                "the pod is held back by the scheduling gate example.com/wait",
            ),
        ] {
            assert_eq!(reason.to_string(), want);
            let json = serde_json::to_string(&reason).unwrap();
            assert_eq!(serde_json::from_str::<Reason>(&json).unwrap(), reason, "{json}");
        }
    }
}
