//! What does a fleet scheduler ask about a cluster? The messages of the estimator, and what they mean.
//!
//! Requests come in three dialects, one per generation of Karmada, and mean the same in each: what used to be an
//! embedded message became bytes under a new number, and one release writes both. We read the new form if it
//! carries anything, else the old one, and write both. The schema is in `proto/`; [`pb`] and [`service`] are made
//! from it by `cargo xtask codegen`.
//!
//! ```text
//! Replica ──write──► request (pb) ──read──► Ask, Component, Assumed (core)
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
pub use write::{Replica, assumed_workload, replicas_request, sets_request};

/// The schema of [`pb`] and [`service`], for servers that tell about themselves.
pub const DESCRIPTORS: &[u8] = include_bytes!("estimator/generated/descriptors.bin");

/// The components and assumed workloads one request may have, all together.
///
/// It is far beyond what is real (components are pod templates, and the largest workloads have a handful), and bounds
/// what one request can cost.
pub const MOST_COMPONENTS: usize = 100_000;
