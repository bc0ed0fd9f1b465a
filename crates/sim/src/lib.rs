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
//! | where a new pod goes | [`bind`] |
//! | what keeps a node from being overrun | [`protect`] |
//! | what runs without anybody doing anything | `workloads` |
//! | what can be made to happen | `scenario` |
//! | how all of it starts and ends together | [`world`] |
//!
//! Decisions are pure functions: objects and the time go in, actions come out. The loops around them only
//! read, write and try again.

pub mod bind;
pub mod cluster;
pub mod control;
pub mod node;
pub mod protect;
mod scenario;
mod tell;
mod work;
mod workloads;
pub mod world;

pub use scenario::Scenario;
pub use tell::Notice;
pub use world::{Counts, Options, World};
