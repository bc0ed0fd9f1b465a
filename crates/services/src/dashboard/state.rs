//! What is known? What the scheduler knows, what pods used, and how it was in the last hour. Nothing waits here.

use super::Subject;
use super::agents::Agents;
use super::happenings::{Happening, Happenings};
use super::history::{History, OfNode, Point};
use super::row::{PodRow, Row, Targets, pods, share};
use crate::ctx::Now;
use crate::scheduler::state::State as Scheduler;
use crate::scheduler::watched::Message;
use jiff::Timestamp;
use loadline_api::explain::{TermResult, term_result};
use loadline_api::scheduler::Configuration;
use loadline_core::load::{Load, Metered};
use loadline_core::object::Key;
use loadline_core::view::NodeId;
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};

/// Happenings that are shown with a node.
const SHOWN: usize = 50;

/// How fresh something is that figures come from. Field names are a promise.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Source {
    name: &'static str,
    age_seconds: Option<i64>,
    problem: Option<String>,
}

/// Everything at once. Field names are a promise.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Shown<'a> {
    cluster: &'a str,
    at: Timestamp,
    ready: bool,
    sources: Vec<Source>,
    targets: Targets,
    waiting_pods: usize,
    nodes: Vec<Row>,
}

/// One node. Field names are a promise.
#[derive(Serialize)]
struct ShownNode<'a> {
    node: Row,
    terms: Vec<TermResult<'a>>,
    reasons: Vec<String>,
    warnings: &'a [String],
    pods: Vec<PodRow>,
    history: Timed<OfNode>,
    happenings: Vec<Happening>,
    /// What its agent sees, or would; `null` where no rule is known.
    protection: Option<Value>,
}

/// Points over time. Field names are a promise.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Timed<T> {
    step_seconds: u64,
    end: Option<Timestamp>,
    #[serde(flatten)]
    points: T,
}

/// Everything.
pub(super) struct State {
    name: String,
    step_seconds: u64,
    scheduler: Scheduler,
    /// What pods used when they were last measured.
    used: HashMap<Key, Load>,
    /// Why there are no measurements.
    problem: Option<String>,
    /// Of when the newest sample of a node is, and that of a pod.
    newest: [Option<Timestamp>; 2],
    history: History,
    remembered: Option<Timestamp>,
}

impl State {
    pub fn new(name: &str, configuration: &Configuration, step_seconds: u64, now: Now) -> Self {
        Self {
            name: name.to_owned(),
            step_seconds,
            scheduler: Scheduler::new(configuration, now),
            used: HashMap::new(),
            problem: None,
            newest: [None; 2],
            history: History::default(),
            remembered: None,
        }
    }

    pub fn configure(&mut self, configuration: &Configuration, now: Now) {
        self.scheduler.configure(configuration, now);
    }

    pub fn is_ready(&self) -> bool {
        self.scheduler.is_settled()
    }

    /// Is there something to say: everything was read, or why not?
    pub fn can_answer(&self) -> bool {
        self.is_ready() || !self.scheduler.troubles().is_empty()
    }

    pub fn take(&mut self, message: Message, now: Now) {
        match &message {
            Message::Measured(Ok(measured)) => {
                self.problem = None;
                let nodes = measured.nodes.iter().map(|(_, sample)| sample.at).max();
                let pods = measured.pods.iter().map(|(_, sample)| sample.at).max();
                self.newest = [nodes.max(self.newest[0]), pods.max(self.newest[1])];
                self.used = measured.pods.iter().map(|(key, sample)| (key.clone(), sample.usage)).collect();
            }
            Message::Measured(Err(problem)) => self.problem = Some(problem.clone()),
            _ => {}
        }
        self.scheduler.take(message, now);
    }

    pub fn advance(&mut self, now: Now) {
        self.scheduler.advance(now);
        // What is worth telling about scheduling is told by who schedules.
        drop(self.scheduler.notices());
        drop(self.scheduler.disagreements());
    }

    /// Adds a point to the plots.
    pub fn remember(&mut self, now: Timestamp) {
        if !self.is_ready() {
            return;
        }
        let rows = self.rows(now);
        let point = point(&rows, self.waiting());
        let of_nodes = rows.iter().map(|row| {
            (row.name.as_str().into(), Metered::ALL.map(|resource| row.amount(resource).measured_share()))
        });
        self.history.push(point, of_nodes);
        self.remembered = Some(now);
    }

    /// What somebody wants to see.
    pub fn answer(
        &mut self,
        subject: &Subject,
        now: Now,
        happenings: &Happenings,
        agents: &mut Agents,
    ) -> Option<Value> {
        let document = match subject {
            Subject::Cluster => serde_json::to_value(self.cluster(now.clock, happenings)),
            Subject::History => serde_json::to_value(self.timed(self.history.whole())),
            Subject::Node(name) => return self.node(name, now.clock, happenings, agents),
            Subject::Pod { pod, most } => {
                let ready = self.is_ready();
                return self.scheduler.explain(pod, *most, now).filter(|_| ready);
            }
        };
        document.inspect_err(|error| tracing::error!(%error, "document cannot be written")).ok()
    }

    fn cluster(&mut self, now: Timestamp, happenings: &Happenings) -> Shown<'_> {
        let nodes = self.rows(now);
        let sources = self.sources(now, happenings);
        let targets = self.scheduler.rules().map_or_else(Targets::default, |rules| {
            // What holds for a node that says nothing about itself.
            let nothing = BTreeMap::<String, String>::new();
            let targets = rules.node(&nothing, &nothing).0.targets;
            Targets { cpu: targets.cpu.map(share), memory: targets.memory.map(share) }
        });
        Shown {
            at: now,
            ready: self.is_ready(),
            sources,
            targets,
            waiting_pods: self.waiting(),
            nodes,
            cluster: &self.name,
        }
    }

    /// How old each thing is that figures come from: what was measured, what was written on nodes, what was watched.
    fn sources(&mut self, now: Timestamp, happenings: &Happenings) -> Vec<Source> {
        let age = |at: Option<Timestamp>| at.map(|at| now.duration_since(at).as_secs().max(0));
        let source = |name, at, problem| Source { name, age_seconds: age(at), problem };
        let [nodes, pods] = self.newest;
        let mut all = vec![source("measurements", nodes, self.problem.clone())];
        // One answer brings both: why there is none is said once.
        if pods.is_some() {
            all.push(source("measurements of pods", pods, None));
        }
        // Where nobody writes them there is nothing to be old.
        if let Some(written) = self.scheduler.annotated() {
            all.push(source("annotations", Some(written), None));
        }
        let watched = self.scheduler.freshness().into_iter();
        all.extend(watched.map(|of| source(of.name, of.heard, of.problem.map(str::to_owned))));
        let (heard, problem) = happenings.freshness();
        all.push(source("events", heard, problem));
        all
    }

    fn node(
        &mut self,
        name: &str,
        now: Timestamp,
        happenings: &Happenings,
        agents: &mut Agents,
    ) -> Option<Value> {
        let history = self.timed(self.history.of_node(name));
        let cluster = self.scheduler.cluster();
        let id = cluster.find_node(name)?.id;
        let row = Row::of(cluster, id, now);
        let measured = cluster.figures(id).newest.map(|newest| (newest.usage, newest.at));
        let protection = agents.protection(name, measured, &self.used, now);
        let pods = pods(cluster, id, &self.used);
        let there = cluster.node(id).pods.iter().map(|pod| pod.key.to_string()).collect();
        let by_load = cluster.is_load_aware();
        let load = cluster.load(id).filter(|_| by_load);
        let mut reasons: Vec<String> =
            load.iter().flat_map(|load| &load.filtered.reasons).map(ToString::to_string).collect();
        if let Some(until) = row.cooling_until {
            reasons.push(loadline_core::explain::Reason::Cooling { until }.to_string());
        }
        let shown = ShownNode {
            node: row,
            terms: load.iter().flat_map(|load| &load.terms.terms).map(term_result).collect(),
            reasons,
            warnings: load.map_or(&[], |load| &load.warnings),
            pods,
            history,
            happenings: happenings.about(name, &there, SHOWN),
            protection,
        };
        serde_json::to_value(shown).ok()
    }

    fn timed<T>(&self, points: T) -> Timed<T> {
        Timed { step_seconds: self.step_seconds, end: self.remembered, points }
    }

    /// Pods without a node.
    fn waiting(&self) -> usize {
        self.scheduler.queues().into_iter().sum()
    }

    fn rows(&mut self, now: Timestamp) -> Vec<Row> {
        let cluster = self.scheduler.cluster();
        let ids: Vec<NodeId> =
            cluster.snapshot().nodes().filter(|node| node.present).map(|node| node.id).collect();
        ids.into_iter().map(|id| Row::of(cluster, id, now)).collect()
    }
}

/// The whole cluster, added up. What is not known of a node leaves it out of the sum.
fn point(rows: &[Row], waiting: usize) -> Point {
    let sums = Metered::ALL.map(|resource| {
        let mut sum = Sum::default();
        for row in rows {
            sum.add(row.amount(resource));
        }
        sum
    });
    let of = |pick: fn(&Sum) -> Option<f64>| [pick(&sums[0]), pick(&sums[1])];
    let count = |is: &dyn Fn(&Row) -> bool| {
        u32::try_from(rows.iter().filter(|row| is(row)).count()).unwrap_or(u32::MAX)
    };
    Point {
        measured: of(|sum| share_of(sum.measured, sum.measured_of)),
        requested: of(|sum| share_of(sum.requested, sum.all)),
        expected: of(|sum| share_of(sum.expected, sum.measured_of)),
        worst: of(|sum| sum.worst),
        over_line: Metered::ALL.map(|resource| count(&|row| row.amount(resource).is_over())),
        closed: count(&|row| row.closed.is_some()),
        waiting: u32::try_from(waiting).unwrap_or(u32::MAX),
    }
}

#[derive(Default)]
struct Sum {
    all: f64,
    requested: f64,
    measured: f64,
    expected: f64,
    /// What the nodes have that were measured.
    measured_of: f64,
    worst: Option<f64>,
}

impl Sum {
    fn add(&mut self, amount: &super::row::Amount) {
        let Some(all) = amount.allocatable else { return };
        self.all += all;
        self.requested += amount.requested;
        if let (Some(measured), Some(used)) = (amount.measured_share(), amount.expected_share()) {
            self.measured += measured * all;
            self.expected += used * all;
            self.measured_of += all;
            self.worst = Some(self.worst.map_or(measured, |worst| worst.max(measured)));
        }
    }
}

fn share_of(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}
