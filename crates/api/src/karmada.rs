//! What is to be divided over which clusters? Karmada's clusters, bindings and policies.
//!
//! | object | what is read |
//! |---|---|
//! | `Cluster` | labels, place, taints, grades; from its status what it serves and has |
//! | `ResourceBinding`, `ClusterResourceBinding` | what is bound, how many, where it is, its placement |
//! | Deployment, `StatefulSet`, `ReplicaSet`, Job | the same, as Karmada would bind it |
//! | `PropagationPolicy`, `ClusterPropagationPolicy` | the placement, and what it is for |
//!
//! A policy gets the defaults that admission gives it. A binding passed none: what is missing there stays missing.
//! What a cluster's status says was observed, not written: what cannot be used of it is left out, with a warning.

mod binding;
mod cluster;
mod placement;
mod policy;
mod scheduling;

pub use binding::{applied, binding, workload};
pub use cluster::cluster;
pub use policy::{Policy, policy};
pub(crate) use scheduling::asks;
pub use scheduling::{Asks, DEFAULT_SCHEDULER, Reported, Scheduling, decided, scheduling};

/// What [`cluster`] reads.
pub const CLUSTER: (&str, &str) = ("cluster.karmada.io/v1alpha1", "Cluster");

/// What [`binding`] reads.
pub const BINDINGS: [(&str, &str); 2] =
    [("work.karmada.io/v1alpha2", "ResourceBinding"), ("work.karmada.io/v1alpha2", "ClusterResourceBinding")];

/// What [`workload`] reads.
pub const WORKLOADS: [(&str, &str); 4] =
    [("apps/v1", "Deployment"), ("apps/v1", "StatefulSet"), ("apps/v1", "ReplicaSet"), ("batch/v1", "Job")];

/// What [`policy`] reads.
pub const POLICIES: [(&str, &str); 2] = [
    ("policy.karmada.io/v1alpha1", "PropagationPolicy"),
    ("policy.karmada.io/v1alpha1", "ClusterPropagationPolicy"),
];
