//! How is it going? Metrics, and readiness with the age of what is known of each member.

use super::books::{Book, Books, Object};
use super::write::Written;
use crate::cluster::Calls;
use crate::ctx::Ctx;
use crate::serve::probes::Readiness;
use jiff::Timestamp;
use loadline_core::member::Rules;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;

/// By what was written, and why.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByObject {
    pub object: &'static str,
    /// `first`, `changed` or `renewal`.
    pub reason: &'static str,
}

/// By what could not be written, and why not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByOutcome {
    pub object: &'static str,
    /// `missing`, `foreign`, `conflict`, `forbidden`, `unreachable`, `not_leading` or `refused`.
    pub reason: &'static str,
}

/// By member.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByCluster {
    pub cluster: String,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub writes: Family<ByObject, Counter>,
    pub failures: Family<ByOutcome, Counter>,
    /// Summaries in which nothing was worth a write.
    pub spared: Counter,
    /// Time since the moment the newest summary is of, in seconds; -1 while there is none.
    pub age: Family<ByCluster, Gauge>,
    pub nodes: Family<ByCluster, Gauge>,
    pub measured_nodes: Family<ByCluster, Gauge>,
    /// 1 where scores in the hub hold no more, or there are none, as far as is known here.
    pub expired: Family<ByCluster, Gauge>,
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx, calls: &Calls) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_publish");
            own.register("writes", "Objects written in the hub, and why", self.writes.clone());
            own.register("failures", "Objects that could not be written, and why not", self.failures.clone());
            own.register("spared", "Summaries in which nothing was worth a write", self.spared.clone());
            own.register(
                "summary_age_seconds",
                "Time since the moment the newest summary of a member is of; -1 while there is none",
                self.age.clone(),
            );
            own.register("nodes", "Nodes of a member that count", self.nodes.clone());
            own.register("measured_nodes", "How many of them are measured", self.measured_nodes.clone());
            own.register(
                "expired",
                "1 where the hub has no scores of a member that hold",
                self.expired.clone(),
            );
            let mut members = registry.below("loadline_publish_member");
            members.register_collector(calls, &Calls::LABELS);
        });
    }
}

/// What came of a write.
pub(super) fn written(metrics: &Metrics, written: &Written) {
    let object = written.job.object.name();
    match &written.outcome {
        Ok(_) => {
            let reason = written.job.why.name();
            metrics.writes.get_or_create(&ByObject { object, reason }).inc();
        }
        Err(problem) => {
            metrics.failures.get_or_create(&ByOutcome { object, reason: problem.name() }).inc();
        }
    }
}

/// How members are.
pub(super) fn members(metrics: &Metrics, books: &Books, now: Timestamp) {
    let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
    for (name, book) in books.members() {
        let by = ByCluster { cluster: name.to_string() };
        let summary = book.summary();
        let age = summary.map_or(-1, |summary| now.duration_since(summary.at).as_secs().max(0));
        metrics.age.get_or_create(&by).set(age);
        metrics.nodes.get_or_create(&by).set(summary.map_or(0, |summary| count(summary.nodes)));
        let measured = summary.map_or(0, |summary| count(summary.measured_nodes));
        metrics.measured_nodes.get_or_create(&by).set(measured);
        metrics.expired.get_or_create(&by).set(i64::from(!holds(book, Object::Scores, books.rules(), now)));
    }
}

/// Does what was told in an object still hold?
fn holds(book: &Book, object: Object, rules: &Rules, now: Timestamp) -> bool {
    book.of(object).summary.as_ref().is_some_and(|told| now <= told.valid_until(rules.validity))
}

/// Ready once every member is either known or known to be away, and somebody was told of one; standing by is ready, too.
pub(super) fn readiness(books: &Books, leads: bool, now: Timestamp) -> Readiness {
    let settled = books.members().all(|(_, book)| book.report.is_some());
    let told = books
        .members()
        .any(|(_, book)| Object::ALL.into_iter().any(|object| book.of(object).summary.is_some()));
    let ready = settled && (told || !leads);
    let mut lines = vec![
        match (leads, ready) {
            (false, _) => "standing by: another one leads",
            (true, false) => "not ready: no member has been told of yet",
            (true, true) => "active",
        }
        .to_owned(),
    ];
    lines.extend(books.members().map(|(name, book)| line(name, book, books.rules(), now)));
    Readiness { ready, progress: lines.join("\n") + "\n" }
}

/// Such as `m1: 3 nodes, 20 pods, measured 12 s ago (3 of 3 nodes); annotation told 4 s ago, scores told 4 s ago`.
fn line(name: &str, book: &Book, rules: &Rules, now: Timestamp) -> String {
    let age = |at: Timestamp| now.duration_since(at).as_secs().max(0);
    let mut parts = Vec::new();
    let Some(report) = &book.report else { return format!("{name}: not heard of yet") };
    parts.push(match &report.summary {
        Err(problem) => format!("away: {problem}"),
        Ok(summary) => {
            let nodes = format!("{} of {} nodes", summary.measured_nodes, summary.nodes);
            if summary.is_measured() {
                format!("{}, measured {} s ago ({nodes})", report.read, age(summary.at))
            } else {
                format!("{}, use not known ({nodes} measured)", report.read)
            }
        }
    });
    parts.extend(report.problem.iter().cloned());
    for object in Object::ALL {
        let told = book.of(object);
        let what = object.name();
        parts.push(match (&told.problem, &told.summary) {
            (Some(problem), _) => format!("{what}: {problem}"),
            (None, None) => format!("{what}: not told yet"),
            (None, Some(summary)) if !holds(book, object, rules, now) => {
                format!("{what}: expired, it is of {} s ago", age(summary.at))
            }
            (None, Some(summary)) => format!("{what}: told, of {} s ago", age(summary.at)),
        });
    }
    format!("{name}: {}", parts.join("; "))
}
