//! Simulated nodes, workloads and load: a small cluster around any Kubernetes API server.
//!
//! Everything here is a client. The same nodes and controllers run against the in-memory API server of
//! `loadline up` and against a real kube-apiserver, which is how tests hold the two to each other.
//!
//! | question | module |
//! |---|---|
//! | what is in the cluster now, and what changed | [`cluster`] |
//! | what a node does with the pods bound to it, and what they use | [`node`] |
//! | which pods and replica sets a workload needs next | [`control`] |
//! | what came of it | [`observe`] |
//! | what runs without anybody doing anything | `workloads` |
//! | what can be made to happen | `scenario` |
//! | how all of it starts and ends together | [`world`] |
//!
//! Who places pods and who protects nodes are no simulations: they are the components of `services`, started as they
//! are in a real cluster. Decisions are pure functions: objects and the time go in, actions come out. The loops around
//! them only read, write and try again.

pub mod cluster;
pub mod control;
mod host;
pub mod node;
pub mod observe;
mod scenario;
mod tell;
mod workloads;
pub mod world;

pub use scenario::Scenario;
pub use world::{Counts, Options, World};
