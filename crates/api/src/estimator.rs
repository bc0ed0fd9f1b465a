//! What does a fleet scheduler ask about a cluster? The messages of the estimator, and what they mean.
//!
//! Requests come in three dialects, one per generation of Karmada, and mean the same in each: what used to be an
//! embedded message became bytes under a new number, and one release writes both. We read the new form if it
//! carries anything, else the old one, and write both. The schema is in `proto/`; [`pb`] and [`service`] are made
//! from it by `cargo xtask codegen`.
//!
//! ```text
//! request (pb) ──read──► Replica, Component, Assumed ──into──► Ask, Component, Assumed (core)
//!              ◄─write──
//! ```
//!
//! What is malformed in a request is told all at once with the path to it, see [`Error`]. A node affinity that does
//! not make sense is not malformed: its terms match no node, as in Kubernetes.

#[rustfmt::skip]
#[allow(missing_docs, clippy::pedantic, reason = "generated")]
mod generated {
    pub mod kubernetes;
    pub mod pb;
    pub mod service;
}
mod read;
#[cfg(test)]
mod tests;
mod write;

pub use crate::read::{Error, Problem};
pub use generated::{pb, service};
pub use read::{replicas, sets, unschedulable};
pub use write::{replicas_request, sets_request};

use loadline_core::estimate;
use loadline_core::load::recommend::Target;
use loadline_core::resources::List;
use loadline_core::select::Toleration;
use loadline_core::select::node::{NodeSelector, Required};
use std::collections::BTreeMap;

/// The schema of [`pb`] and [`service`], for servers that tell about themselves.
pub const DESCRIPTORS: &[u8] = include_bytes!("estimator/generated/descriptors.bin");

/// The components and assumed workloads one request may have, all together.
///
/// It is far beyond what is real (components are pod templates, and the largest workloads have a handful), and bounds
/// what one request can cost.
pub const MOST_COMPONENTS: usize = 100_000;

/// What one replica asks for, in the words of Kubernetes. Becomes an [`Ask`](estimate::Ask).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Replica {
    /// Labels its node must have.
    pub selector: BTreeMap<String, String>,
    /// What else it demands of its node.
    pub affinity: Option<NodeSelector>,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// What it requests.
    pub requests: List,
    /// What it may not exceed, where known.
    pub limits: Option<List>,
    /// Whose quotas bind it; empty for none.
    pub namespace: String,
    /// The name of its priority class; empty for none.
    pub priority_class: String,
    /// What that class amounts to, where known.
    pub priority: Option<i32>,
}

impl From<Replica> for estimate::Ask {
    fn from(replica: Replica) -> Self {
        Self {
            required: Required::new(&replica.selector, replica.affinity.as_ref()),
            tolerations: replica.tolerations,
            requests: replica.requests,
            limits: replica.limits,
            namespace: replica.namespace,
            priority_class: replica.priority_class,
            priority: replica.priority,
            load: None,
        }
    }
}

/// One pod template of a set, and how often a set has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Component {
    pub name: String,
    /// How many a set has; never negative.
    pub replicas: i32,
    /// What each asks for.
    pub replica: Replica,
}

impl From<Component> for estimate::Component {
    fn from(component: Component) -> Self {
        Self { name: component.name, replicas: component.replicas, ask: component.replica.into() }
    }
}

/// Something assigned to the cluster whose pods are not all to be seen there yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Assumed {
    pub namespace: String,
    /// What it is, where the asker says so.
    pub workload: Option<Target>,
    /// What it consists of, each replica once.
    pub components: Vec<Component>,
}

impl From<Assumed> for estimate::Assumed {
    fn from(assumed: Assumed) -> Self {
        Self {
            namespace: assumed.namespace,
            workload: assumed.workload,
            components: assumed.components.into_iter().map(Into::into).collect(),
        }
    }
}
