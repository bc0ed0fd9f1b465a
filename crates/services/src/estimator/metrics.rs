//! What has been asked, how long did answers take, and how much is known?
//!
//! What Karmada's estimator tells is told under its names; dashboards go on working. Its shortest interval is a
//! millisecond, in which nearly all of our answers fall: `loadline_estimator_answer_seconds` looks closer. What is known
//! is looked up when somebody asks for the metrics.

use super::Members;
use crate::ctx;
use crate::metrics::Registrar;
use crate::serve::Certificates;
use jiff::Timestamp;
use loadline_core::estimate::{Answer, View};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeGaugeValue, EncodeLabelSet, EncodeLabelValue, EncodeMetric,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelValue)]
pub(super) enum Method {
    #[default]
    MaxAvailableReplicas,
    MaxAvailableComponentSets,
    GetUnschedulableReplicas,
    /// A method there is not. Callers make up names; there is one place for all of them.
    Unknown,
}

impl Method {
    /// The method of a path.
    pub(super) fn of(path: &str) -> Self {
        match path.rsplit('/').next() {
            Some("MaxAvailableReplicas") => Self::MaxAvailableReplicas,
            Some("MaxAvailableComponentSets") => Self::MaxAvailableComponentSets,
            Some("GetUnschedulableReplicas") => Self::GetUnschedulableReplicas,
            _ => Self::Unknown,
        }
    }

    /// Where upstream's framework would have been.
    fn point(self) -> Option<&'static str> {
        match self {
            Self::MaxAvailableReplicas => Some("estimate_replicas"),
            Self::MaxAvailableComponentSets => Some("estimate_components"),
            Self::GetUnschedulableReplicas | Self::Unknown => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    result: &'static str,
    r#type: Method,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stepped {
    result: &'static str,
    r#type: Method,
    step: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct At {
    estimating_plugin_extension_point: &'static str,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Plugged {
    estimating_plugin: &'static str,
    estimating_plugin_extension_point: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct By {
    cluster: String,
    by: &'static str,
}

type Histograms<L> = Family<L, Histogram, fn() -> Histogram>;

/// The estimator's metrics.
#[derive(Debug)]
pub struct Metrics {
    requests: Family<Asked, Counter>,
    steps: Histograms<Stepped>,
    points: Histograms<At>,
    plugins: Histograms<Plugged>,
    answers: Histograms<Asked>,
    last: Family<By, Gauge>,
    reused: Counter,
    certificates: Arc<Mutex<Vec<Arc<Certificates>>>>,
}

impl Metrics {
    /// Metrics of an estimator for these clusters, shown among those of its process.
    #[must_use]
    pub fn new(members: &Arc<Members>, process: &ctx::Metrics) -> Arc<Self> {
        // 1 ms to 0.5 s.
        let upstream: fn() -> Histogram = || Histogram::new(exponential_buckets(0.001, 2.0, 10));
        // 4 µs to 4 s.
        let ours: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_004, 4.0, 11));
        let metrics = Self {
            requests: Family::default(),
            steps: Family::new_with_constructor(upstream),
            points: Family::new_with_constructor(upstream),
            plugins: Family::new_with_constructor(upstream),
            answers: Family::new_with_constructor(ours),
            last: Family::default(),
            reused: Counter::default(),
            certificates: Arc::default(),
        };
        process.register(|registry| metrics.register(registry, members));
        Arc::new(metrics)
    }

    fn register(&self, registry: &mut Registrar<'_>, members: &Arc<Members>) {
        let mut theirs = registry.below("karmada_scheduler_estimator");
        theirs.register("estimating_request", "Requests", self.requests.clone());
        theirs.register("estimating_algorithm_duration_seconds", "Time per request", self.steps.clone());
        theirs.register(
            "estimating_plugin_extension_point_duration_seconds",
            "Time per request for replicas or sets",
            self.points.clone(),
        );
        theirs.register(
            "estimating_plugin_execution_duration_seconds",
            "Time per request for replicas or sets; nodes and quotas are looked at together",
            self.plugins.clone(),
        );
        let mut own = registry.below("loadline_estimator");
        own.register("answer_seconds", "Time per request", self.answers.clone());
        own.register(
            "last_replicas",
            "The newest answer about replicas, by requests and by load as well",
            self.last.clone(),
        );
        own.register(
            "reused_answers",
            "Answers given before, to the same question, with nothing new heard since",
            self.reused.clone(),
        );
        own.register_collector(&Clusters(members.clone()), &["cluster"]);
        own.register_collector(&Reloads(self.certificates.clone()), &["result"]);
    }

    /// Tells about these certificates, too.
    pub fn watch(&self, certificates: Arc<Certificates>) {
        self.certificates.lock().unwrap_or_else(PoisonError::into_inner).push(certificates);
    }

    /// A request was answered, for better or worse.
    pub(super) fn answered(&self, method: Method, fine: bool, took: Duration) {
        let result = if fine { "success" } else { "error" };
        let asked = Asked { result, r#type: method };
        let seconds = took.as_secs_f64();
        self.requests.get_or_create(&asked).inc();
        self.answers.get_or_create(&asked).observe(seconds);
        let step = Stepped { result, r#type: method, step: "Total" };
        self.steps.get_or_create(&step).observe(seconds);
        if let Some(point) = method.point().filter(|_| fine) {
            self.points.get_or_create(&At { estimating_plugin_extension_point: point }).observe(seconds);
            let plugged = Plugged {
                estimating_plugin: "NodeResourceEstimator",
                estimating_plugin_extension_point: point,
            };
            self.plugins.get_or_create(&plugged).observe(seconds);
        }
    }

    /// An answer was given that was known already.
    pub(super) fn reused(&self) {
        self.reused.inc();
    }

    /// Replicas were estimated.
    pub(super) fn estimated(&self, cluster: &str, answer: &Answer) {
        let tell = |by, count: i32| {
            self.last.get_or_create(&By { cluster: cluster.into(), by }).set(count.into());
        };
        tell("requests", answer.by_nodes);
        if let Some(by_load) = answer.by_load {
            tell("load", by_load);
        }
    }
}

/// The labels of a cluster.
type Cluster<'a> = [(&'static str, &'a str); 1];

/// What is known of each cluster.
#[derive(Clone, Debug)]
struct Clusters(Arc<Members>);

impl Collector for Clusters {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let mut known = Vec::new();
        for (cluster, member) in &*self.0 {
            known.push(([("cluster", cluster.as_str())], member.known(), member.status()));
        }
        let number = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        let views = || known.iter().filter_map(|(c, k, _)| Some((c, &k.as_ref()?.view)));
        let counts =
            |count: fn(&View) -> usize| views().map(move |(cluster, view)| (cluster, number(count(view))));
        gauges(&mut encoder, "nodes", "Nodes known", counts(View::node_count))?;
        let help = "Kinds of nodes: those with the same labels, taints and cordon are of one";
        gauges(&mut encoder, "node_kinds", help, counts(View::kind_count))?;
        let help = "Classes of nodes: those of one kind with the same free resources are of one";
        gauges(&mut encoder, "node_classes", help, counts(View::class_count))?;
        gauges(&mut encoder, "pods", "Pods known that are not over", counts(View::pod_count))?;
        gauges(&mut encoder, "pending_pods", "Pods without a node", counts(View::pending_count))?;
        let ready = known.iter().map(|(cluster, known, _)| (cluster, i64::from(known.is_some())));
        gauges(&mut encoder, "ready", "1 if the cluster has been read completely", ready)?;
        let broken = known.iter().map(|(cluster, _, status)| (cluster, i64::from(status.problem.is_some())));
        gauges(&mut encoder, "problem", "1 if the cluster cannot be followed now", broken)?;
        let now = Timestamp::now();
        let ages = known.iter().filter_map(|(cluster, _, status)| {
            Some((cluster, now.duration_since(status.heard?).as_secs_f64().max(0.0)))
        });
        gauges(&mut encoder, "age_seconds", "Time since the cluster was last heard of", ages)
    }
}

fn gauges<'a, V: EncodeGaugeValue>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    values: impl Iterator<Item = (&'a Cluster<'a>, V)>,
) -> Result<(), fmt::Error> {
    let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
    for (cluster, value) in values {
        ConstGauge::new(value).encode(metric.encode_family(cluster)?)?;
    }
    Ok(())
}

/// How certificates were taken over.
#[derive(Clone, Debug)]
struct Reloads(Arc<Mutex<Vec<Arc<Certificates>>>>);

impl Collector for Reloads {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let help = "Certificates that changed on disk, and were taken over or could not be used";
        let mut metric = encoder.encode_descriptor("certificate_reloads", help, None, MetricType::Counter)?;
        let taken: u64 = all.iter().map(|certificates| certificates.reloads()).sum();
        let refused: u64 = all.iter().map(|certificates| certificates.failures()).sum();
        for (result, count) in [("success", taken), ("error", refused)] {
            ConstCounter::new(count).encode(metric.encode_family(&[("result", result)])?)?;
        }
        Ok(())
    }
}
