//! Whose load is taken off a node that has too much, and how much? The least that closes the gap, least important
//! first; and it is given back.
//!
//! A **rule** draws a **waterline** through a metric of the node: CPU or memory in use, or anything else that is
//! measured. A line that is passed often enough in a row triggers the rule's **action**: pods are slowed down (**throttle**),
//! **evicted**, or only kept from coming. A line that is not passed for long enough restores: what was taken is given
//! back.
//!
//! [`plan`] is one cycle of that, as a value: a [`NodeSnapshot`] of what was measured and remembered in, a [`Plan`] with
//! every step, its reason and what it is expected to release out. It touches nothing, so the same call serves the live
//! loop, a preview and a question on the command line. Once it is told what came of it ([`Plan::settle`]), it gives the
//! [`State`] of the next snapshot.
//!
//! | question | module |
//! |---|---|
//! | How is a metric measured? | [`collect`] |
//! | What can be measured, who goes first by it, what does acting on it release? | [`metric`] |
//! | What was asked for? Which pods may be touched? | [`policy`], [`scope`] |
//! | Is a rule idle, triggered, holding, restored? | [`phase`] |
//! | How far is it to the line? | [`gap`] |
//! | Who may be touched, and who comes first? | [`candidate`], [`order`] |
//! | How far is a container slowed down or raised? | [`throttle`] |
//! | What does the node say to schedulers? | [`taint`] |
//! | Where is a pod in the cgroup tree, and what do the files there say? | [`cgroup`] |
//! | Does the scheduler fill nodes that are emptied here? | [`agree`] |
//! | What did acting release, compared with what was predicted? | [`audit`] |
//!
//! Amounts are exact ([`Level`]). Unknown is never nothing: a rule without a usable sample is in error and keeps what it
//! has; a pod whose usage nobody knows is not touched for it.

mod adopt;
pub mod agree;
pub mod audit;
pub mod candidate;
pub mod cgroup;
pub mod collect;
pub mod event;
mod evict;
pub mod gap;
mod held;
mod level;
pub mod metric;
mod minimal;
mod naive;
pub mod order;
pub mod phase;
mod plan;
mod pod;
pub mod policy;
mod reclaim;
mod restore;
pub mod scope;
mod settle;
mod slow;
mod snapshot;
mod state;
pub mod taint;
pub mod throttle;

pub use adopt::adopt;
pub use evict::Block;
pub use level::Level;
pub use plan::{Blocked, Credited, Mode, Naive, Plan, RuleReport, Steps, Unclosed, Victim, Write, plan};
pub use pod::{Class, Container, CpuQuota, Node, Origin, PERIOD_US, Pod};
pub use reclaim::Reclaim;
pub use settle::Results;
pub use snapshot::{Latest, Missing, NodeSnapshot, Options, Order, Planner, Series};
pub use state::{Departure, Eviction, Leaving, Reply, RuleState, State, Throttled};

#[cfg(test)]
mod tests;
