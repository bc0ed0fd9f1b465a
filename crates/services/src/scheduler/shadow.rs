//! What would we have done? Decides beside whatever schedules the cluster, and writes nothing at all.
//!
//! Every new pod is decided on as if it were ours, in a world in which our decisions were carried out (`world`). Told is
//! where each would have gone, and what that would have changed: how long nodes were over their targets, and how many
//! pods are on such nodes, in reality and in ours.
//!
//! | what it does | |
//! |---|---|
//! | watches, polls, asks | as the scheduler does |
//! | writes | nothing |
//! | tells | metrics, a report, notices |

mod world;

use super::execute::{Action, Outcome};
use super::state::State;
use super::{Error, Options, Phase, WAITING, watches};
use crate::cluster::{Calls, Connection};
use crate::ctx::{Ctx, Now};
use crate::reload::Reloaded;
use jiff::Timestamp;
use loadline_core::load::policy::Rules;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::{MissedTickBehavior, interval};
use world::{Difference, Worlds};

/// Differences that are remembered.
const REMEMBERED: usize = 100;
/// How often the report is brought up to date.
const EVERY: Duration = Duration::from_secs(1);

/// What came of it so far. Field names are a promise.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Since when it looks on.
    pub since: Option<Timestamp>,
    /// Up to when.
    pub until: Option<Timestamp>,
    /// Pods both would have sent to the same node.
    pub pods_same: u64,
    /// Pods we would have sent elsewhere.
    pub pods_elsewhere: u64,
    /// Pods that run, and would wait for room under the lines if we had to place them.
    pub pods_waiting: usize,
    /// As it is.
    pub actual: World,
    /// As it would be.
    pub shadow: World,
    /// The newest pods that we would have sent elsewhere.
    pub differences: VecDeque<Elsewhere>,
}

/// How one world is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct World {
    /// Measured seconds over target, summed over nodes.
    pub node_seconds_over_target: u64,
    /// Nodes over their target when they were last measured.
    pub hot_nodes: usize,
    /// Pods on these.
    pub pods_on_hot_nodes: usize,
    /// The highest share of what a node has for pods that was measured, in percent, and on which node.
    pub peak_percent: Option<i64>,
    pub peak_node: Option<String>,
}

/// A pod, where it is, and where we would have sent it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Elsewhere {
    pub pod: String,
    pub actual: String,
    pub shadow: String,
}

/// Where the report is; whoever has a clone can read it.
#[derive(Clone, Debug, Default)]
pub struct Reported(Arc<Mutex<Report>>);

impl Reported {
    #[must_use]
    pub fn get(&self) -> Report {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Newer figures; since when it looks on stays.
    fn set(&self, report: Report) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *held = Report { since: held.since.or(report.until), ..report };
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByWorld {
    world: &'static str,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ByDecision {
    decision: &'static str,
}

/// The report as metrics.
#[derive(Clone, Debug, Default)]
struct Metrics {
    decisions: Family<ByDecision, Gauge>,
    node_seconds: Family<ByWorld, Gauge>,
    hot_nodes: Family<ByWorld, Gauge>,
    on_hot: Family<ByWorld, Gauge>,
}

impl Metrics {
    fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_shadow");
            let pods = "New pods by what we would have done: same, elsewhere, or wait";
            own.register("pods", pods, self.decisions.clone());
            let seconds = "Measured seconds over target, summed over nodes";
            own.register("node_seconds_over_target", seconds, self.node_seconds.clone());
            own.register("hot_nodes", "Nodes over their target", self.hot_nodes.clone());
            own.register("pods_on_hot_nodes", "Pods on nodes over their target", self.on_hot.clone());
        });
    }

    fn set(&self, report: &Report) {
        let whole = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let long = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        for (decision, count) in [
            ("same", long(report.pods_same)),
            ("elsewhere", long(report.pods_elsewhere)),
            ("wait", whole(report.pods_waiting)),
        ] {
            self.decisions.get_or_create(&ByDecision { decision }).set(count);
        }
        for (world, of) in [("actual", &report.actual), ("shadow", &report.shadow)] {
            let by = ByWorld { world };
            self.node_seconds.get_or_create(&by).set(long(of.node_seconds_over_target));
            self.hot_nodes.get_or_create(&by).set(whole(of.hot_nodes));
            self.on_hot.get_or_create(&by).set(whole(of.pods_on_hot_nodes));
        }
    }
}

/// Looks on until told to stop. Every new pod of the names that are configured is decided on; nothing is written.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options, reported: Reported) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named("loadline-shadow");
    let metrics = Metrics::default();
    metrics.register(&ctx);
    ctx.metrics.register(|registry| {
        let mut own = registry.below("loadline_shadow");
        own.register_collector(connection.calls(), &Calls::LABELS);
    });
    let (_watches, mut messages) = watches(&connection, &options);
    let mut configuration = Reloaded::new("configuration", options.configuration.clone());
    let now = ctx.now();
    let mut state = State::new(configuration.current(), now);
    let mut worlds = Worlds::new(rules(&state));
    reported.set(Report { until: Some(now.clock), ..Report::default() });
    let (mut batch, mut differences) = (Vec::new(), VecDeque::new());
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let now = ctx.now();
        for message in batch.drain(..) {
            if let super::Message::Configuration(read) = message {
                if configuration.take_text(read) {
                    state.configure(configuration.current(), now);
                    worlds.configure(rules(&state), state.cluster().snapshot());
                }
                continue;
            }
            // Nobody can say yet whether it is much.
            if matches!(message, super::Message::Measured(_)) && !configuration.is_loaded() {
                continue;
            }
            let message = worlds.translate(message, |name| state.serves(name));
            state.take(message, now);
        }
        state.advance(now);
        let is_ready = state.is_ready() && configuration.is_loaded();
        options.status.set(if is_ready { Phase::Active } else { Phase::Reading });
        while is_ready && let Some(action) = state.next(now) {
            decide(&mut state, &mut worlds, action, now);
        }
        for (from, about, what) in state.notices() {
            ctx.notices.tell(from, about, what);
        }
        for (meta, what) in state.disagreements() {
            ctx.notices.tell("scheduler", &meta.key, format!("lines disagree: {what}"));
        }
        for Difference { pod, real, ours } in worlds.differences() {
            tracing::info!(%pod, actual = %real, shadow = %ours, "pod would have gone elsewhere");
            let one = Elsewhere { pod: pod.to_string(), actual: real.to_string(), shadow: ours.to_string() };
            differences.push_front(one);
            differences.truncate(REMEMBERED);
        }
        // Before everything is known nothing is done: what is due would be due again at once.
        let due = state.due(now).filter(|_| is_ready);
        tokio::select! {
            () = ctx.stop.cancelled() => break,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            _ = ticks.tick() => {
                let report = Report { differences: differences.clone(), ..report(&mut state, &worlds, now) };
                metrics.set(&report);
                reported.set(report);
            }
            () = tokio::time::sleep_until(due.unwrap_or(now.at)), if due.is_some() => {}
        }
    }
    reported.set(Report { differences, ..report(&mut state, &worlds, ctx.now()) });
    Ok(())
}

/// What we would have done is done, in our world.
fn decide(state: &mut State, worlds: &mut Worlds, action: Action, now: Now) {
    match action {
        // A volume would come with it.
        Action::Bind { pod, node, .. } | Action::Provide { pod, node, .. } => {
            worlds.decided(&pod.meta.uid, &node);
            state.placed(&pod, &node, now);
        }
        // Nobody is evicted here, and who waits is not told.
        Action::Refuse { pod, helps, .. } | Action::Preempt { pod, helps, .. } => {
            state.done(Outcome::Refused { pod, helps }, now);
        }
    }
}

/// By which both worlds are judged.
fn rules(state: &State) -> Rules {
    state.rules().cloned().unwrap_or_else(Rules::default)
}

/// How things stand.
fn report(state: &mut State, worlds: &Worlds, now: Now) -> Report {
    let agreement = worlds.agreement();
    let pods = state.pods_by_node();
    let mut out = Report {
        until: Some(now.clock),
        pods_same: agreement.same,
        pods_elsewhere: agreement.elsewhere,
        pods_waiting: agreement.waiting,
        ..Report::default()
    };
    let Some(ours) = state.heat() else { return out };
    let (real_on_hot, ours_on_hot) = worlds.on_hot(&pods, ours);
    for (world, heat, on_hot) in
        [(&mut out.actual, &worlds.real, real_on_hot), (&mut out.shadow, ours, ours_on_hot)]
    {
        let peak = heat.peak();
        *world = World {
            node_seconds_over_target: heat.node_seconds(),
            hot_nodes: heat.hot(),
            pods_on_hot_nodes: on_hot,
            peak_percent: peak.map(|peak| peak.share.nano().div_euclid(10_000_000)),
            peak_node: peak.map(|peak| peak.node.clone()),
        };
    }
    out
}
