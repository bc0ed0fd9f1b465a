//! Wire types and their conversion to the views of core.
//!
//! Objects come as JSON, from a cluster or from files, and become facts here, once. What is wrong with an
//! object is told with the path to it, all at once, see [`Error`]; what can be done without is left out with
//! a [`Warning`]. Nothing unknown ever becomes a zero.
//!
//! What the API server fills in on creation is filled in here, too, where it matters: objects from files then
//! mean the same as those from a cluster.
//!
//! | what | module |
//! |---|---|
//! | nodes | [`node`] |
//! | pods, and what they refer to | [`pod`], [`context`] |
//! | policy and settings of the load rules | [`policy`] |
//! | whose pods a scheduler places, and by which rules | [`scheduler`] |
//! | namespaces, disruption budgets | [`cluster`] |
//! | what was found about nodes for a pod | [`explain`] |
//! | measured load | [`metrics`] |
//! | who was placed where, and when | [`event`] |
//! | what a fleet scheduler asks, over gRPC | [`estimator`] |
//! | what a container runtime is asked, over gRPC | [`cri`] |
//! | what kube-scheduler asks, over HTTP | [`extender`] |
//! | clusters, bindings and policies of a fleet | [`karmada`] |
//! | pods that wait in vain | [`waiting`] |
//! | placements of Open Cluster Management, and their fleet | [`ocm`] |
//! | when a node is in trouble, and who may be disturbed for it | [`qos`] |
//! | who made whom | [`owners`] |
//! | recommended requests | [`recommendation`] |
//! | what quotas leave | [`quota`] |
//! | what is moved, how much at most, and what was | [`rebalance`] |
//! | what is to be counted, and what is on its way | [`workload`] |
//! | what is looked at to find what is wrong | [`doctor`], [`certificate`] |
//! | spans of time as Go writes them | [`duration`] |
//! | which object it is | [`object`] |
//! | the text of objects, and what else they come as | [`json`], [`protobuf`] |

pub mod certificate;
pub mod cluster;
pub mod condition;
pub mod context;
pub mod cri;
pub mod doctor;
pub mod duration;
pub mod estimator;
pub mod event;
pub mod explain;
pub mod extender;
#[cfg(any(test, feature = "test-util"))]
pub mod fuzz;
pub mod karmada;
pub mod learn;
pub mod metrics;
pub mod node;
pub mod object;
pub mod ocm;
pub mod owners;
pub mod pod;
pub mod policy;
pub mod prometheus;
pub mod qos;
pub mod quota;
mod read;
pub mod rebalance;
pub mod recommendation;
pub mod scheduler;
#[cfg(feature = "schema")]
pub mod schema;
pub mod time;
pub mod waiting;
pub mod workload;

pub use context::Context;
pub use loadline_machinery::{json, protobuf};
pub use read::{Error, Problem, Warning};
