//! What is shown of a process, under which names and with which labels?
//!
//! Components register as with prometheus-client, whose registry writes what is served. Its registry cannot be asked what is in
//! it, and a family that has counted nothing yet is not served at all: so names, labels and texts are noted here as well. The
//! reference pages are made from that, and dashboards and alerts are held to it.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use std::fmt;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The metrics of a process.
#[derive(Clone, Debug, Default)]
pub struct Metrics(Arc<Mutex<Shown>>);

#[derive(Debug, Default)]
struct Shown {
    registry: Registry,
    described: Vec<Described>,
}

/// One metric, as somebody who queries it sees it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Described {
    /// As it is queried; a histogram without `_bucket`, `_sum` and `_count`.
    pub name: String,
    pub kind: Kind,
    /// Names of labels, in the order in which they are written.
    pub labels: Vec<String>,
    pub help: String,
}

/// What a metric does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Only grows, but for restarts.
    Counter,
    Gauge,
    Histogram,
}

impl Kind {
    /// Anything that is not counted or spread over buckets is a value of its moment.
    fn of(kind: MetricType) -> Self {
        match kind {
            MetricType::Counter => Self::Counter,
            MetricType::Histogram => Self::Histogram,
            _ => Self::Gauge,
        }
    }

    /// In the words of the text format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

impl Described {
    fn new(prefix: &str, name: &str, help: &str, kind: Kind, labels: Vec<String>) -> Self {
        let end = if kind == Kind::Counter { "_total" } else { "" };
        let between = if prefix.is_empty() { "" } else { "_" };
        Self {
            name: format!("{prefix}{between}{name}{end}"),
            kind,
            labels,
            help: help.trim_end_matches('.').into(),
        }
    }
}

impl Metrics {
    /// Adds metrics.
    pub fn register(&self, add: impl FnOnce(&mut Registrar<'_>)) {
        let mut shown = self.lock();
        let Shown { registry, described } = &mut *shown;
        add(&mut Registrar { registry, prefix: String::new(), described });
    }

    /// Everything, as `OpenMetrics` text.
    ///
    /// # Errors
    /// When something cannot be written.
    pub fn text(&self) -> Result<String, fmt::Error> {
        text(&self.lock().registry)
    }

    /// What has been registered, whether it has a value yet or not.
    #[must_use]
    pub fn described(&self) -> Vec<Described> {
        self.lock().described.clone()
    }

    fn lock(&self) -> MutexGuard<'_, Shown> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn text(registry: &Registry) -> Result<String, fmt::Error> {
    let mut out = String::new();
    prometheus_client::encoding::text::encode(&mut out, registry)?;
    Ok(out)
}

/// Where a component registers what it counts, below a prefix.
#[derive(Debug)]
pub struct Registrar<'a> {
    registry: &'a mut Registry,
    prefix: String,
    described: &'a mut Vec<Described>,
}

impl Registrar<'_> {
    /// The same below a prefix, such as `loadline_scheduler`.
    #[must_use]
    pub fn below(&mut self, prefix: &str) -> Registrar<'_> {
        let whole =
            if self.prefix.is_empty() { prefix.to_owned() } else { format!("{}_{prefix}", self.prefix) };
        Registrar {
            registry: self.registry.sub_registry_with_prefix(prefix),
            prefix: whole,
            described: self.described,
        }
    }

    /// Adds a metric. Its name is one without `_total`, which counters get when they are written.
    pub fn register<M: Labelled>(&mut self, name: &str, help: &str, metric: M) {
        let kind = Kind::of(EncodeMetric::metric_type(&metric));
        self.described.push(Described::new(&self.prefix, name, help, kind, M::labels()));
        self.registry.register(name, help, metric);
    }

    /// Adds metrics that are looked up when somebody asks for them. All of one collector have the same labels.
    pub fn register_collector<C: Collector + Clone>(&mut self, collector: &C, labels: &[&str]) {
        let mut asked = Registry::default();
        asked.register_collector(Box::new(collector.clone()));
        // What cannot be written now is not served either.
        let written = text(&asked).unwrap_or_default();
        let labels: Vec<String> = labels.iter().map(|&label| label.to_owned()).collect();
        for (name, help, kind) in described(&written) {
            self.described.push(Described::new(&self.prefix, name, help, kind, labels.clone()));
        }
        self.registry.register_collector(Box::new(collector.clone()));
    }
}

/// Names, texts and types of what is in a text. Each begins with `# HELP`, and `# TYPE` follows.
fn described(text: &str) -> Vec<(&str, &str, Kind)> {
    let mut found = Vec::new();
    let mut help = None;
    for line in text.lines() {
        if let Some((name, said)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            help = Some((name, said));
        } else if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' '))
            && let Some((name, help)) = help.take()
        {
            let kind = match kind {
                "counter" => Kind::Counter,
                "histogram" => Kind::Histogram,
                _ => Kind::Gauge,
            };
            found.push((name, help, kind));
        }
    }
    found
}

/// A metric whose labels are known before it has a value.
pub trait Labelled: Metric {
    #[must_use]
    fn labels() -> Vec<String> {
        Vec::new()
    }
}

impl<N, A> Labelled for Counter<N, A> where Self: Metric {}
impl<N, A> Labelled for Gauge<N, A> where Self: Metric {}
impl Labelled for Histogram {}

impl<L, M, C> Labelled for Family<L, M, C>
where
    Self: Metric,
    L: Clone + Default + Eq + Hash + EncodeLabelSet + fmt::Debug + Send + Sync + 'static,
{
    /// Written once for an empty set of labels: their names can be had in no other way.
    fn labels() -> Vec<String> {
        let one = Family::<L, Counter>::default();
        drop(one.get_or_create(&L::default()));
        let mut registry = Registry::default();
        registry.register("one", "", one);
        let written = text(&registry).unwrap_or_default();
        let labels = written.lines().find_map(|line| line.strip_prefix("one_total{")?.split_once('}'));
        let pairs = labels.map_or("", |(labels, _)| labels).split(',');
        pairs.filter_map(|pair| Some(pair.split_once('=')?.0.to_owned())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet};
    use prometheus_client::metrics::gauge::ConstGauge;
    use prometheus_client::metrics::histogram::exponential_buckets;

    #[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
    struct By {
        result: &'static str,
        r#type: String,
    }

    #[derive(Clone, Debug)]
    struct Looked;

    impl Collector for Looked {
        fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
            let mut metric = encoder.encode_descriptor("nodes", "Nodes known", None, MetricType::Gauge)?;
            ConstGauge::new(1_i64).encode(metric.encode_family(&[("cluster", "a")])?)
        }
    }

    #[test]
    fn what_has_no_value_yet_is_described_and_not_served() {
        let metrics = Metrics::default();
        metrics.register(|registry| {
            let bare: Gauge = Gauge::default();
            registry.register("bare", "Without a prefix", bare);
            let mut own = registry.below("loadline_x");
            own.register("requests", "Requests", Family::<By, Counter>::default());
            own.register("seconds", "Time", Histogram::new(exponential_buckets(1.0, 2.0, 2)));
            own.register_collector(&Looked, &["cluster"]);
            let deeper: Counter = Counter::default();
            own.below("y").register("deeper", "Two prefixes", deeper);
        });
        let told = metrics.described();
        let told: Vec<_> =
            told.iter().map(|m| (m.name.as_str(), m.kind, m.labels.join(","), m.help.as_str())).collect();
        let want = [
            ("bare", Kind::Gauge, String::new(), "Without a prefix"),
            ("loadline_x_requests_total", Kind::Counter, "result,type".into(), "Requests"),
            ("loadline_x_seconds", Kind::Histogram, String::new(), "Time"),
            ("loadline_x_nodes", Kind::Gauge, "cluster".into(), "Nodes known"),
            ("loadline_x_y_deeper_total", Kind::Counter, String::new(), "Two prefixes"),
        ];
        assert_eq!(told, want);
        let served = metrics.text().unwrap();
        assert!(!served.contains("loadline_x_requests"), "{served}");
        for name in ["bare 0", "loadline_x_nodes{cluster=\"a\"} 1", "loadline_x_y_deeper_total 0"] {
            assert!(served.contains(name), "{name} in {served}");
        }
    }
}
