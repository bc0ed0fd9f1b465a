//! How is it going? Events, metrics, and readiness with the age of what is known.

use super::Patched;
use super::regarding;
use super::state::{Heard, Quality, State, label};
use super::taint::{Tainted, Tainting};
use super::watched::Message;
use crate::cluster::Recorder;
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::resource::CONFIG_MAPS;
use crate::ctx::{Ctx, Now};
use crate::serve::probes::{Readiness, Status};
use jiff::Timestamp;
use loadline_core::object::Meta;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use std::sync::atomic::AtomicU64;

/// By where data come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct BySource {
    pub source: &'static str,
}

/// By where data come from, and what came of asking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByOutcome {
    pub source: &'static str,
    pub outcome: &'static str,
}

/// By how urgent a patch was, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByUrgency {
    pub urgency: &'static str,
    pub outcome: &'static str,
}

/// By how good the data of nodes are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByQuality {
    pub quality: &'static str,
}

/// By what their load taint says; `spared` are those that have none because enough others do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByGrade {
    pub grade: &'static str,
}

/// By why a series is not used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ByReason {
    pub reason: &'static str,
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// How long ago each source answered, in seconds.
    pub age: Family<BySource, Gauge<f64, AtomicU64>>,
    pub queries: Family<ByOutcome, Counter>,
    pub patches: Family<ByUrgency, Counter>,
    /// Patches that wait for their turn.
    pub waiting: Gauge,
    pub nodes: Family<ByQuality, Gauge>,
    pub warming_up: Gauge,
    pub ignored: Family<ByReason, Gauge>,
    pub tainted: Family<ByGrade, Gauge>,
    pub policy_failures: Counter,
}

impl Metrics {
    pub(super) fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_annotator");
            own.register("source_age_seconds", "Time since a source last answered", self.age.clone());
            own.register("queries", "Questions to a source by what came of them", self.queries.clone());
            own.register(
                "patches",
                "Patches of nodes by urgency and what came of them",
                self.patches.clone(),
            );
            own.register("patches_waiting", "Patches that wait for their turn", self.waiting.clone());
            own.register("nodes", "Nodes by how good what is known of them is", self.nodes.clone());
            own.register(
                "nodes_warming_up",
                "Nodes with a metric that looks back further than there are measurements",
                self.warming_up.clone(),
            );
            own.register(
                "series_ignored",
                "Series of the newest answers by why they are not used",
                self.ignored.clone(),
            );
            own.register("nodes_tainted", "Nodes by what their load taint says", self.tainted.clone());
            own.register("policy_failures", "Policies that could not be used", self.policy_failures.clone());
        });
    }
}

/// Tells whoever looks.
pub(super) struct Teller {
    pub events: Recorder,
    pub metrics: Metrics,
    pub status: Status,
}

const METRICS_API: &str = "metrics-api";
const PROMETHEUS: &str = "prometheus";

impl Teller {
    pub fn message(&self, message: &Message) {
        let (source, answered) = match message {
            Message::Measured(read) => (METRICS_API, read.is_ok()),
            Message::Answered(answered) => {
                for warning in answered.answer.iter().flat_map(|answer| &answer.warnings) {
                    tracing::warn!(metric = %answered.metric, warning, "prometheus has a warning about an answer");
                }
                (PROMETHEUS, answered.answer.is_ok())
            }
            _ => return,
        };
        let outcome = if answered { "answered" } else { "failed" };
        self.metrics.queries.get_or_create(&ByOutcome { source, outcome }).inc();
    }

    pub fn patched(&self, patched: &Patched, now: Timestamp) {
        let outcome = match (&patched.wrote, &patched.problem) {
            (Some(_), _) => {
                if let Some(taint) = &patched.taint {
                    self.tainted(&patched.node, taint, now);
                }
                "written"
            }
            (None, None) => "gone",
            (None, Some(problem)) => {
                tracing::warn!(node = %patched.node.key.name, problem, "node cannot be annotated");
                "failed"
            }
        };
        let urgency = label(patched.urgency);
        self.metrics.patches.get_or_create(&ByUrgency { urgency, outcome }).inc();
    }

    fn tainted(&self, node: &Meta, taint: &Tainting, now: Timestamp) {
        let happened = taint.happened();
        tracing::info!(node = %node.key.name, reason = happened.reason, note = happened.note, "load taint changed");
        self.events.record(regarding(node), happened, now);
    }

    pub fn state(&self, state: &mut State, leads: bool, waiting: usize, now: Now) {
        let (counts, warming_up) = state.counts();
        let count = |quality| i64::try_from(counts.get(&quality).copied().unwrap_or(0)).unwrap_or(i64::MAX);
        for (quality, name) in QUALITIES {
            self.metrics.nodes.get_or_create(&ByQuality { quality: name }).set(count(quality));
        }
        self.metrics.warming_up.set(i64::try_from(warming_up).unwrap_or(i64::MAX));
        self.metrics.waiting.set(i64::try_from(waiting).unwrap_or(i64::MAX));
        let Tainted { high, over, spared } = state.tainted;
        for (grade, count) in [("high", high), ("over", over), ("spared", spared)] {
            let count = i64::try_from(count).unwrap_or(i64::MAX);
            self.metrics.tainted.get_or_create(&ByGrade { grade }).set(count);
        }
        for (reason, count) in state.ignored() {
            self.metrics
                .ignored
                .get_or_create(&ByReason { reason })
                .set(i64::try_from(count).unwrap_or(i64::MAX));
        }
        let failures = state.policies.failures;
        self.metrics.policy_failures.inc_by(failures.saturating_sub(self.metrics.policy_failures.get()));
        for (source, heard) in [(METRICS_API, &state.metrics_api), (PROMETHEUS, &state.prometheus)] {
            if let Some(at) = heard.at {
                let age = now.clock.duration_since(at).as_secs_f64();
                self.metrics.age.get_or_create(&BySource { source }).set(age);
            }
        }
        for (node, happened) in state.happened() {
            self.events.record(regarding(&node), happened, now.clock);
        }
        if let Some((map, read)) = state.policies.news() {
            let (severity, reason, note) = match read {
                Ok(()) => (Severity::Normal, "PolicyLoaded", "the load policy is in force".to_owned()),
                Err(problem) => {
                    (Severity::Warning, "PolicyRefused", format!("the last good one stays: {problem}"))
                }
            };
            let happened = Happened { severity, reason, action: "Loading", note };
            self.events.record(Regarding::new(CONFIG_MAPS, &map), happened, now.clock);
        }
        self.status.set(readiness(state, leads, waiting, now.clock));
    }
}

const QUALITIES: [(Quality, &str); 4] = [
    (Quality::Fresh, "fresh"),
    (Quality::Late, "late"),
    (Quality::Lost, "lost"),
    (Quality::Unknown, "unknown"),
];

/// Ready once the cluster is read and a policy is in force; what is late or lost is said, not held against it: the others
/// would not do better.
fn readiness(state: &State, leads: bool, waiting: usize, now: Timestamp) -> Readiness {
    let ready = state.is_ready();
    let (counts, warming_up) = state.counts();
    let mut lines = vec![match (ready, leads) {
        (false, _) => "reading the cluster".to_owned(),
        (true, false) => "standing by: another one leads".to_owned(),
        (true, true) => "active".to_owned(),
    }];
    lines.push(source("metrics API", &state.metrics_api, now));
    if state.monitors() {
        lines.push(source("prometheus", &state.prometheus, now));
    }
    let nodes: Vec<String> = QUALITIES
        .iter()
        .filter_map(|(quality, name)| counts.get(quality).map(|count| format!("{count} {name}")))
        .collect();
    lines.push(format!("nodes: {}", if nodes.is_empty() { "none".to_owned() } else { nodes.join(", ") }));
    if warming_up > 0 {
        lines.push(format!(
            "warming up: {warming_up} nodes have not been measured for as long as a metric looks back"
        ));
    }
    let Tainted { high, over, spared } = state.tainted;
    if state.taints() || high + over > 0 {
        lines.push(format!("taints: {high} high, {over} over, {spared} spared"));
    }
    lines.extend(state.not_kept().map(|problem| format!("history: {problem}")));
    lines.push(format!("patches waiting: {waiting}"));
    match state.policies.problem() {
        Some(problem) => lines.push(format!("policy: the last good one is in force; {problem}")),
        None if state.policies.is_loaded() => {}
        None => lines.push("policy: not read yet".to_owned()),
    }
    Readiness { ready, progress: lines.join("\n") + "\n" }
}

fn source(name: &str, heard: &Heard, now: Timestamp) -> String {
    let age = match heard.at {
        Some(at) => format!("answered {} s ago", now.duration_since(at).as_secs().max(0)),
        None => "has not answered yet".to_owned(),
    };
    match heard.problem() {
        Some(problem) => format!("{name}: {age}; {problem}"),
        None => format!("{name}: {age}"),
    }
}
