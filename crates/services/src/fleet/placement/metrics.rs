//! What is counted? Under the names of OCM's controller where it has one.

use crate::ctx::Ctx;
use loadline_core::place::{Book, ClusterFacts, Judge, Plugin, Ruling};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::borrow::Cow;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// All of them have this label.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Name {
    name: &'static str,
}
const NAME: Name = Name { name: "placement_scheduling" };

/// The same for filters and prioritizers, with which of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByPlugin {
    name: &'static str,
    plugin_type: &'static str,
    plugin_name: Cow<'static, str>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByResource {
    resource: &'static str,
}

type Named = Family<Name, Histogram, fn() -> Histogram>;
type Plugins = Family<ByPlugin, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug)]
pub struct Metrics {
    /// Deciding one placement, in seconds.
    scheduling: Named,
    /// Writing one placement, in seconds.
    bind: Named,
    /// One filter or prioritizer of one placement, in seconds.
    plugin: Plugins,
    /// Answering the expressions of one cluster, in seconds.
    cel: Named,
    pub decided: Counter,
    pub failures: Counter,
    /// How many there are of each kind.
    objects: Family<ByResource, Gauge>,
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
            plugin: Plugins::new_with_constructor(histogram as fn() -> Histogram),
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
                "scheduling_plugin_duration_seconds",
                "Time of a filter or prioritizer for a placement",
                self.plugin.clone(),
            );
            registry.register(
                "scheduling_cel_runtime_duration_seconds",
                "Time to answer expressions for a cluster",
                self.cel.clone(),
            );
            let mut own = registry.below("loadline_placement");
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
            self.objects.get_or_create(&ByResource { resource: kind }).set(count);
        }
    }

    /// What was decided was written in this time.
    pub(super) fn bound(&self, took: Duration) {
        self.bind.get_or_create(&NAME).observe(took.as_secs_f64());
    }
}

/// A judge whose time is taken, and that of everything else that decides.
pub(super) struct Timed<'a> {
    judge: &'a dyn Judge,
    metrics: &'a Metrics,
    /// When the filter or prioritizer that is at work began.
    since: Cell<Instant>,
}

impl<'a> Timed<'a> {
    pub fn new(judge: &'a dyn Judge, metrics: &'a Metrics) -> Self {
        Self { judge, metrics, since: Cell::new(Instant::now()) }
    }
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

    fn begins(&self) {
        self.since.set(Instant::now());
    }

    fn ended(&self, plugin: Plugin<'_>) {
        let took = self.since.get().elapsed();
        let (kind, name): (_, Cow<'static, str>) = match plugin {
            Plugin::Filter(name) => ("filter", name.into()),
            Plugin::Prioritizer(prioritizer) => ("prioritizer", prioritizer.to_string().into()),
        };
        let labels = ByPlugin { name: NAME.name, plugin_type: kind, plugin_name: name };
        self.metrics.plugin.get_or_create(&labels).observe(took.as_secs_f64());
    }
}
