//! How many more would really fit? Replicas, and complete sets of components, counted node by node.
//!
//! A total says little: ten nodes with 8 free cores each take no pod of 12. What counts is, over the nodes the
//! replicas may go to,
//!
//! ```text
//! fit(node) = min( free pods, min over requested r of floor( free(r) / request(r) ) )
//! answer    = min( Σ fit(node), what quotas leave )                       at most 2147483647
//! ```
//!
//! with `free(r) = max(0, allocatable(r) − requested(r))`. An [`Index`] folds in events about nodes and pods and
//! publishes a [`View`], which never changes and answers questions ([`Ask`]) without locks. The cost of an answer
//! follows how many *different* nodes there are, not how many: nodes with the same labels, taints and free
//! resources are counted together.

mod asked;
mod chunks;
mod field;
mod index;
mod kinds;
mod owners;
mod quota;
mod rows;
mod sets;
mod view;
pub mod waiting;

pub use index::Index;
pub use quota::{Allowance, Quota, Scope};
pub use view::View;
pub use waiting::Waiting;

use crate::explain::Reason;
use crate::load::Load;
use crate::load::recommend::WorkloadRef;
use crate::resources::List;
use crate::select::Toleration;
use crate::select::node::Required;

/// The answer where nothing limits.
pub const UNCONSTRAINED: i32 = i32::MAX;

/// What one replica asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ask {
    /// What it demands of its node.
    pub required: Required,
    /// What it puts up with.
    pub tolerations: Vec<Toleration>,
    /// What it requests. Each replica costs one of `pods`, whatever is written here.
    pub requests: List,
    /// What it may not exceed, where the asker knows: quotas may count it.
    pub limits: Option<List>,
    /// Whose quotas bind it; empty for none.
    pub namespace: String,
    /// The name of its priority class; empty for none.
    pub priority_class: String,
    /// Its priority: pods of a lower one might be evicted for it.
    pub priority: Option<i32>,
    /// What it is expected to use; without it, what it requests is.
    pub load: Option<Load>,
}

/// One pod template of a set, and how often a set has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Component {
    pub name: String,
    /// How many a set has.
    pub replicas: i32,
    /// What each asks for.
    pub ask: Ask,
}

/// Something assigned to the cluster whose pods are not all to be seen there yet.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assumed {
    pub namespace: String,
    /// What it is, where the asker says so: pods of it that are on nodes already are not counted twice.
    pub workload: Option<WorkloadRef>,
    /// What it consists of, each replica once.
    pub components: Vec<Component>,
}

/// Under which circumstances a question is asked.
#[expect(clippy::struct_excessive_bools, reason = "each is asked for on its own")]
#[derive(Clone, Copy)]
pub struct Given<'a> {
    /// What is on its way here, placed before anything is counted.
    pub assumed: &'a [Assumed],
    /// Do quotas bind?
    pub quotas: bool,
    /// Are pods without a node placed first, too?
    pub pending: bool,
    /// Is the load line asked about?
    pub load: bool,
    /// Are replicas that would fit by evicting pods of lower priority asked about?
    pub preempting: bool,
    /// No more than so many are of interest: counting sets may stop there.
    pub enough: Option<i32>,
    /// Asked now and then while computing: is the answer still wanted?
    pub wanted: &'a dyn Fn() -> bool,
}

impl Default for Given<'_> {
    fn default() -> Self {
        Self {
            assumed: &[],
            quotas: true,
            pending: false,
            load: false,
            preempting: false,
            enough: None,
            wanted: &|| true,
        }
    }
}

/// Nobody wanted the answer any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer was not wanted any more")]
pub struct Unwanted;

/// How many would fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// How many, everything considered: the least of the figures below but the last. 2147483647 if nothing limits.
    pub most: i32,
    /// How many by the nodes' free resources.
    pub by_nodes: i32,
    /// The tightest quota; `None` if none binds at all.
    pub by_quota: Option<Allowance>,
    /// How many by free resources and load line; `None` if not asked or nothing is known of load.
    pub by_load: Option<i32>,
    /// How many by nodes if pods of lower priority were evicted; `None` if not asked or no priority is known.
    pub by_preempting: Option<i32>,
}

/// What one node takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAnswer {
    /// Which.
    pub node: String,
    /// How many replicas.
    pub replicas: i32,
    /// The resource that ends first.
    pub limited_by: Option<String>,
    /// Why none.
    pub reason: Option<Reason>,
    /// How many under the load line as well; `None` if not asked.
    pub by_load: Option<i32>,
}

/// How much more load a node takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// How much of each metered resource may come; negative where the line is passed already.
    pub head: Load,
    /// Why nothing at all is to come, if so.
    pub closed: Option<Reason>,
}

#[cfg(test)]
pub(crate) mod tests;
