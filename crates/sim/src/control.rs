//! Which pods and replica sets does a workload need next?
//!
//! Deployments make replica sets, replica sets make pods, disruption budgets say how many pods may go. Each
//! decision is a pure function of what is there; the loops around them only read and write.

pub mod budget;
pub mod deployment;
pub mod replica_set;
pub(crate) mod run;
