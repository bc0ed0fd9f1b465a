//! What is counted? Under the names of OCM's controller where it has one.

use crate::ctx::Ctx;
use loadline_core::place::{Book, ClusterFacts, Judge, Ruling};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::time::{Duration, Instant};

/// All of them have this label.
type Named = Family<[(&'static str, &'static str); 1], Histogram, fn() -> Histogram>;
const NAME: [(&str, &str); 1] = [("name", "placement_scheduling")];

#[derive(Clone, Debug)]
pub struct Metrics {
    /// Deciding one placement, in seconds.
    scheduling: Named,
    /// Writing one placement, in seconds.
    bind: Named,
    /// Answering the expressions of one cluster, in seconds.
    cel: Named,
    pub decided: Counter,
    pub failures: Counter,
    /// How many there are of each kind.
    objects: Family<[(&'static str, &'static str); 1], Gauge>,
}

/// From a microsecond to a quarter of an hour.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 10.0, 10))
}

impl Default for Metrics {
    fn default() -> Self {
        let named = || Named::new_with_constructor(histogram as fn() -> Histogram);
        Self {
            scheduling: named(),
            bind: named(),
            cel: named(),
            decided: Counter::default(),
            failures: Counter::default(),
            objects: Family::default(),
        }
    }
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            registry.register(
                "scheduling_scheduling_duration_seconds",
                "Time to decide a placement",
                self.scheduling.clone(),
            );
            registry.register(
                "scheduling_bind_duration_seconds",
                "Time to write what was decided",
                self.bind.clone(),
            );
            registry.register(
                "scheduling_cel_runtime_duration_seconds",
                "Time to answer expressions for a cluster",
                self.cel.clone(),
            );
            let own = registry.sub_registry_with_prefix("loadline_placement");
            own.register("decisions", "Placements decided", self.decided.clone());
            own.register("write_failures", "Placements that could not be written", self.failures.clone());
            own.register("objects", "Objects there are, by kind", self.objects.clone());
        });
    }

    /// A placement was decided in this time.
    pub(super) fn decided(&self, took: Duration) {
        self.decided.inc();
        self.scheduling.get_or_create(&NAME).observe(took.as_secs_f64());
    }

    /// So many there are of each kind.
    pub(super) fn count(&self, kinds: &[(&'static str, usize, Option<&str>)]) {
        for (kind, count, _) in kinds {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            self.objects.get_or_create(&[("resource", *kind)]).set(count);
        }
    }

    /// What was decided was written in this time.
    pub(super) fn bound(&self, took: Duration) {
        self.bind.get_or_create(&NAME).observe(took.as_secs_f64());
    }
}

/// A judge whose time is taken.
pub(super) struct Timed<'a> {
    pub judge: &'a dyn Judge,
    pub metrics: &'a Metrics,
}

impl Judge for Timed<'_> {
    fn problem(&self, expression: &str) -> Option<String> {
        self.judge.problem(expression)
    }

    fn judge(&self, expressions: &[String], cluster: &ClusterFacts, scores: &Book<'_>) -> Ruling {
        let begun = Instant::now();
        let ruling = self.judge.judge(expressions, cluster, scores);
        self.metrics.cel.get_or_create(&NAME).observe(begun.elapsed().as_secs_f64());
        ruling
    }
}
