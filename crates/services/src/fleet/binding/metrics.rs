//! What is counted? What karmada-scheduler counts, under its names, so that dashboards and alerts made for it work here; and
//! what only ours has to tell, under ours.

use super::state::State;
use crate::ctx::Ctx;
use crate::fleet::estimators;
use loadline_core::divide::due::Due;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::time::Duration;

/// By what came of it, `scheduled` or `error`, and why it was tried.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResult {
    result: &'static str,
    schedule_type: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByEvent {
    event: &'static str,
}

/// By queue: `active`, `backoff`, `unschedulable`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByQueue {
    queue: &'static str,
}

/// By the reason of the condition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByReason {
    reason: &'static str,
}

/// Why a binding comes into the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incoming {
    Added,
    Updated,
    ClusterChanged,
    Failed,
}

impl Incoming {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "BindingAdd",
            Self::Updated => "BindingUpdate",
            Self::ClusterChanged => "ClusterChanged",
            Self::Failed => "ScheduleAttemptFailure",
        }
    }
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// What came of it so far.
#[derive(Clone, Debug)]
pub struct Metrics {
    attempts: Family<ByResult, Counter>,
    duration: Histograms<ByResult>,
    incoming: Family<ByEvent, Counter>,
    decisions: Family<ByReason, Counter>,
    queues: Family<ByQueue, Gauge>,
    promises: Gauge,
    pub write_failures: Counter,
    pub descheduled: Counter,
    pub estimators: estimators::Metrics,
}

fn short() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 15))
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            attempts: Family::default(),
            duration: Family::new_with_constructor(short as fn() -> Histogram),
            incoming: Family::default(),
            decisions: Family::default(),
            queues: Family::default(),
            promises: Gauge::default(),
            write_failures: Counter::default(),
            descheduled: Counter::default(),
            estimators: estimators::Metrics::default(),
        }
    }
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut theirs = registry.below("karmada_scheduler");
            theirs.register(
                "schedule_attempts",
                "Number of attempts to schedule a ResourceBinding or ClusterResourceBinding",
                self.attempts.clone(),
            );
            theirs.register(
                "e2e_scheduling_duration_seconds",
                "E2e scheduling latency in seconds",
                self.duration.clone(),
            );
            theirs.register(
                "queue_incoming_bindings",
                "Number of ResourceBinding and ClusterResourceBinding objects added to scheduling queues by event type",
                self.incoming.clone(),
            );
            let mut own = registry.below("loadline_fleet");
            own.register("decisions", "Decisions, by the reason of the condition", self.decisions.clone());
            own.register("queued_bindings", "Bindings in the queue", self.queues.clone());
            own.register(
                "promises",
                "Assignments whose replicas are not to be seen in their cluster yet",
                self.promises.clone(),
            );
            own.register(
                "write_failures",
                "Decisions the API server refused or did not answer",
                self.write_failures.clone(),
            );
            own.register(
                "descheduled_replicas",
                "Replicas taken from clusters that have no node for them",
                self.descheduled.clone(),
            );
            self.estimators.register(&mut own);
        });
    }

    pub(super) fn incoming(&self, why: Incoming) {
        self.incoming.get_or_create(&ByEvent { event: why.as_str() }).inc();
    }

    /// An attempt is over. In Karmada's count one for which no cluster fits has been scheduled, to none.
    pub(super) fn attempted(&self, due: Due, failed: bool, took: Duration) {
        let schedule_type = if due == Due::Replicas { "ScaleSchedule" } else { "ReconcileSchedule" };
        let labels = ByResult { result: if failed { "error" } else { "scheduled" }, schedule_type };
        self.attempts.get_or_create(&labels).inc();
        self.duration.get_or_create(&labels).observe(took.as_secs_f64());
    }

    pub(super) fn decided(&self, reason: &'static str) {
        self.decisions.get_or_create(&ByReason { reason }).inc();
    }

    /// So many decisions with that reason.
    #[must_use]
    pub fn decisions(&self, reason: &'static str) -> u64 {
        self.decisions.get_or_create(&ByReason { reason }).get()
    }

    pub(super) fn show(&self, state: &State) {
        let queues = ["active", "backoff", "unschedulable"].into_iter().zip(state.queue.counts());
        for (queue, count) in queues {
            self.queues.get_or_create(&ByQueue { queue }).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let promises = state.counts().iter().find(|(what, _)| *what == "promises").map_or(0, |(_, n)| *n);
        self.promises.set(i64::try_from(promises).unwrap_or(i64::MAX));
    }
}
