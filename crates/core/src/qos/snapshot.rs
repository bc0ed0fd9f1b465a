//! What was measured, what is remembered, and how to plan.

use super::level::Level;
use super::pod::{Node, Pod};
use super::state::State;
use crate::object::Key;
use crate::select::taint::Effect;
use crate::view::{Budget, Labels};
use jiff::Timestamp;
use std::sync::Arc;

/// One series of a metric: its last sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// The metric.
    pub name: Arc<str>,
    /// Which one of it, such as the disk.
    pub labels: Labels,
    /// The value in the metric's unit; none if it is no number that could be measured.
    pub value: Option<Level>,
    /// When it was measured.
    pub at: Timestamp,
}

/// A metric read again just before acting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latest {
    /// The metric.
    pub name: Arc<str>,
    /// Which one of it.
    pub labels: Labels,
    /// The value; none if it could not be read.
    pub value: Option<Level>,
}

/// Who goes first: what people said, or what Kubernetes derived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The lower priority first, then the lower class.
    #[default]
    PriorityFirst,
    /// The lower class first, then the lower priority.
    ClassFirst,
}

/// How victims are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Planner {
    /// One after the other until the gap is closed.
    #[default]
    Greedy,
    /// The fewest that close all gaps, none more important than needed.
    Minimal,
}

/// What is done when nobody can tell how much would be enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Missing {
    /// Every candidate is acted on.
    ActAll,
    /// One pod at a time.
    Paced,
    /// Nothing is done, and said.
    Skip,
}

/// How to plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much more than the gap is taken, in billionths: so that it does not open again at once.
    pub excess: i64,
    /// How far below the line giving back ends, in billionths of the line.
    pub restore_margin: i64,
    /// Who goes first.
    pub order: Order,
    /// How victims are found.
    pub planner: Planner,
    /// What throttling does without figures.
    pub missing_throttle: Missing,
    /// What evicting does without figures.
    pub missing_evict: Missing,
    /// How many pods may be evicted in one cycle; 0: any number.
    pub max_per_cycle: usize,
    /// How many in an hour; 0: any number.
    pub max_per_hour: usize,
    /// Seconds between two cycles.
    pub interval_seconds: i64,
    /// How old a pod must be to be evicted, in seconds.
    pub min_age_seconds: i64,
    /// In how many cycles after the start nobody is evicted.
    pub grace_cycles: u64,
    /// Whose pods are never touched.
    pub protected_namespaces: Vec<Arc<str>>,
    /// The agent's own pod.
    pub agent: Option<Key>,
    /// How new pods are kept away.
    pub taint: Effect,
    /// Every rule is a preview.
    pub dry_run: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            excess: 100_000_000,
            restore_margin: 0,
            order: Order::default(),
            planner: Planner::default(),
            missing_throttle: Missing::ActAll,
            missing_evict: Missing::Paced,
            max_per_cycle: 5,
            max_per_hour: 60,
            interval_seconds: 10,
            min_age_seconds: 0,
            grace_cycles: 3,
            protected_namespaces: vec!["kube-system".into()],
            agent: None,
            taint: Effect::PreferNoSchedule,
            dry_run: false,
        }
    }
}

/// One moment of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSnapshot {
    pub now: Timestamp,
    pub node: Node,
    /// What was measured.
    pub series: Vec<Series>,
    /// What was read again just before acting, if anything was.
    pub latest: Vec<Latest>,
    /// The pods on the node.
    pub pods: Vec<Pod>,
    /// How many pods may be disrupted.
    pub budgets: Vec<Budget>,
    /// What earlier cycles left.
    pub state: State,
    /// How to plan.
    pub options: Options,
}
