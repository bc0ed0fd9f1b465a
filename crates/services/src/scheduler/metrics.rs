//! What is counted? What kube-scheduler counts, under its names, so that dashboards and alerts made for it work here;
//! and what only a scheduler that knows load can count, under ours.

use super::counted::Counted;
use super::execute::Outcome;
use super::state::State;
use crate::ctx::Ctx;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::time::Duration;
use tokio::time::Instant;

/// Of one profile, by what came of it: `scheduled`, `unschedulable` or `error`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
    profile: String,
}

/// By queue: `active`, `backoff`, `unschedulable`, `gated`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByQueue {
    queue: &'static str,
}

/// What is held: `nodes`, `pods`, `assumed_pods`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByType {
    r#type: &'static str,
}

/// By queue and by what brought pods there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEvent {
    queue: &'static str,
    event: &'static str,
}

/// By the plugin that keeps pods from nodes, and their profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPlugin {
    plugin: &'static str,
    profile: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByAttempts {
    attempts: String,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// What came of it so far.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// Pods bound.
    pub bound: Counter,
    /// Bindings that failed.
    pub bind_failures: Counter,
    /// Pods that fitted nowhere at first.
    pub unschedulable: Counter,
    /// Pods that have no node now because they fitted nowhere.
    pub pending: Gauge,
    /// Pods evicted for more important ones.
    pub preempted: Counter,
    /// Pods bound to a node over its limits, because all were.
    pub least_bad: Counter,
    /// Nodes annotated by another policy than ours.
    pub foreign: Gauge,
    /// Nodes on which a target is above the line of an agent.
    pub lines_disagree: Gauge,
    /// Configurations that could not be used.
    pub configuration_failures: Counter,
    attempts: Family<ByResult, Counter>,
    attempt_duration: Histograms<ByResult>,
    algorithm_duration: Histogram,
    pod_attempts: Histogram,
    pod_duration: Histograms<ByAttempts>,
    queues: Family<ByQueue, Gauge>,
    incoming: Family<ByEvent, Counter>,
    kept: Family<ByPlugin, Gauge>,
    preemptions: Counter,
    victims: Histogram,
    cache: Family<ByType, Gauge>,
    /// Those of the families above, found once: they are set at every turn of the loop.
    each_queue: [Gauge; QUEUES.len()],
    each_type: [Gauge; TYPES.len()],
}

/// In the order of [`State::queues`].
const QUEUES: [&str; 4] = ["active", "backoff", "unschedulable", "gated"];
/// In the order of [`State::held`].
const TYPES: [&str; 3] = ["nodes", "pods", "assumed_pods"];

/// From a millisecond to 16 seconds, as kube-scheduler has it.
fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

/// From ten milliseconds to an hour and a half.
fn long() -> Histogram {
    Histogram::new(exponential_buckets(0.01, 2.0, 20))
}

impl Default for Metrics {
    fn default() -> Self {
        let (queues, cache) = (Family::<ByQueue, Gauge>::default(), Family::<ByType, Gauge>::default());
        Self {
            each_queue: QUEUES.map(|queue| queues.get_or_create(&ByQueue { queue }).clone()),
            each_type: TYPES.map(|r#type| cache.get_or_create(&ByType { r#type }).clone()),
            bound: Counter::default(),
            bind_failures: Counter::default(),
            unschedulable: Counter::default(),
            pending: Gauge::default(),
            preempted: Counter::default(),
            least_bad: Counter::default(),
            foreign: Gauge::default(),
            lines_disagree: Gauge::default(),
            configuration_failures: Counter::default(),
            attempts: Family::default(),
            attempt_duration: Family::new_with_constructor(short as fn() -> Histogram),
            algorithm_duration: short(),
            pod_attempts: Histogram::new(exponential_buckets(1.0, 2.0, 5)),
            pod_duration: Family::new_with_constructor(long as fn() -> Histogram),
            queues,
            incoming: Family::default(),
            kept: Family::default(),
            preemptions: Counter::default(),
            victims: Histogram::new(exponential_buckets(1.0, 2.0, 7)),
            cache,
        }
    }
}

/// One try to place a pod, from its turn to the answer of the API server.
#[derive(Clone, Debug)]
pub(super) struct Attempt {
    pub profile: String,
    pub began: Instant,
    /// When the pod came into the queue.
    pub queued: Instant,
    /// Which try it is, from 1 on.
    pub number: u32,
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_scheduler");
            own.register("pods_bound", "Pods bound to a node", self.bound.clone());
            own.register(
                "bind_failures",
                "Bindings the API server refused or did not answer",
                self.bind_failures.clone(),
            );
            own.register(
                "pods_unschedulable",
                "Pods that fitted nowhere at first",
                self.unschedulable.clone(),
            );
            own.register("pending_pods", "Pods that wait because they fit nowhere", self.pending.clone());
            own.register("pods_preempted", "Pods evicted for more important ones", self.preempted.clone());
            own.register(
                "pods_least_bad",
                "Pods bound to a node over its load limits, because all were",
                self.least_bad.clone(),
            );
            own.register(
                "nodes_of_another_policy",
                "Nodes whose annotations were written by another load policy than ours",
                self.foreign.clone(),
            );
            own.register(
                "lines_disagree",
                "Nodes that are filled above a line from which an agent takes load off again",
                self.lines_disagree.clone(),
            );
            own.register(
                "configuration_failures",
                "Configurations that could not be used; the last good one stayed",
                self.configuration_failures.clone(),
            );
        });
        ctx.metrics.register(|registry| {
            let mut as_there = registry.below("scheduler");
            as_there.register("schedule_attempts", "Tries to place a pod, by result", self.attempts.clone());
            as_there.register(
                "scheduling_attempt_duration_seconds",
                "From a pod's turn to the end of its binding",
                self.attempt_duration.clone(),
            );
            as_there.register(
                "scheduling_algorithm_duration_seconds",
                "How long a decision took",
                self.algorithm_duration.clone(),
            );
            as_there.register(
                "pod_scheduling_attempts",
                "Tries until a pod was placed",
                self.pod_attempts.clone(),
            );
            as_there.register(
                "pod_scheduling_sli_duration_seconds",
                "From a pod's coming into the queue to the end of its binding",
                self.pod_duration.clone(),
            );
            as_there.register(
                "queue_incoming_pods",
                "Pods that came into a queue, by what brought them there",
                self.incoming.clone(),
            );
            as_there.register(
                "unschedulable_pods",
                "Pods without a node, by what keeps them from nodes: one counts for each plugin",
                self.kept.clone(),
            );
            as_there.register("pending_pods", "Pods without a node, by queue", self.queues.clone());
            as_there.register(
                "preemption_attempts",
                "Times others were evicted for a pod",
                self.preemptions.clone(),
            );
            as_there.register("preemption_victims", "Pods chosen to go at a time", self.victims.clone());
            as_there.register("cache_size", "Nodes, pods and reservations held", self.cache.clone());
        });
    }

    /// A decision took so long.
    pub(super) fn decided(&self, took: Duration) {
        self.algorithm_duration.observe(took.as_secs_f64());
    }

    /// So many are to go for a pod.
    pub(super) fn preempts(&self, victims: usize) {
        self.preemptions.inc();
        self.victims.observe(f64::from(u32::try_from(victims).unwrap_or(u32::MAX)));
    }

    /// What came of a try.
    pub(super) fn tried(&self, outcome: &Outcome, attempt: &Attempt, now: Instant) {
        let result = match outcome {
            Outcome::Bound { .. } => "scheduled",
            Outcome::Refused { .. } => "unschedulable",
            Outcome::Provided { failed: None, .. } => return,
            Outcome::Provided { .. } | Outcome::Unbound { .. } | Outcome::Untold { .. } => "error",
        };
        let by = ByResult { result, profile: attempt.profile.clone() };
        self.attempts.get_or_create(&by).inc();
        let took = now.duration_since(attempt.began).as_secs_f64();
        self.attempt_duration.get_or_create(&by).observe(took);
        if result == "scheduled" {
            self.pod_attempts.observe(f64::from(attempt.number));
            // Few different ones, however often it was tried.
            let attempts = if attempt.number < 16 { attempt.number.to_string() } else { "16+".to_owned() };
            let since = now.duration_since(attempt.queued).as_secs_f64();
            self.pod_duration.get_or_create(&ByAttempts { attempts }).observe(since);
        }
    }

    /// What was counted of pods that wait.
    pub(super) fn counted(&self, counted: Counted) {
        for ((queue, event), count) in counted.incoming {
            self.incoming.get_or_create(&ByEvent { queue, event: event.label() }).inc_by(count);
        }
        for ((plugin, profile), by) in counted.kept {
            self.kept.get_or_create(&ByPlugin { plugin, profile }).inc_by(by);
        }
    }

    /// How things stand.
    pub(super) fn state(&self, state: &State) {
        let set = |gauge: &Gauge, count: usize| {
            gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
        };
        set(&self.pending, state.unschedulable());
        set(&self.foreign, state.foreign());
        set(&self.lines_disagree, state.disagreeing());
        self.each_queue.iter().zip(state.queues()).for_each(|(gauge, count)| set(gauge, count));
        self.each_type.iter().zip(state.held()).for_each(|(gauge, count)| set(gauge, count));
    }
}
