//! What do the pods of a workload really use? Learned from the metrics API, published as Recommendations.
//!
//! One task owns what is known (`state`): pods and who made them, and what each of their containers was measured to use.
//! What it learned is written into crane's Recommendation objects, one per workload, and so is what it learned from: a
//! restart goes on where the last one ended. Schedulers that read Recommendations charge a new replica what its siblings use.
//!
//! | what it does | |
//! |---|---|
//! | watches | pods; replica sets and jobs, for who made them; Recommendations, for its own |
//! | polls | measurements of pods from the metrics API |
//! | asks | [`loadline_core::learn`] |
//! | writes | Recommendations; its lease |
//! | tells | metrics; readiness with the age of data |

mod state;
mod watched;

use crate::cluster::connection::Cause;
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::pace::Pace;
use crate::cluster::resource::RECOMMENDATIONS;
use crate::cluster::watch::Watches;
use crate::cluster::write::Patch;
use crate::cluster::{Access, Connection, Writer};
use crate::ctx::{Ctx, Now};
use crate::serve::probes::{Readiness, Status};
use crate::sources::metrics_api;
use jiff::Timestamp;
use loadline_api::recommendation::{self, Learned as Write};
use loadline_core::learn::{self, Learned};
use loadline_core::object::Key;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use state::{Due, State};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use watched::{Jobs, Message, Pods, Recommendations, ReplicaSets};

const COMPONENT: &str = "loadline-recommender";
/// Writes under way at a time; the answer to one lets the next go.
const WRITES: usize = 8;
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// How is learned.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    pub learn: learn::Options,
    /// How often the metrics API is asked, and what is new is published.
    pub every: Duration,
    /// Objects written per second, on average.
    pub rate: f64,
    /// Create the kind of the objects if the cluster does not know it?
    pub define: bool,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
}

impl Options {
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            learn: learn::Options::default(),
            every: metrics_api::Options::default().every,
            rate: 25.0,
            define: false,
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
        }
    }
}

/// What is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub workloads: Gauge,
    pub published: Counter,
    pub failures: Counter,
    /// Time since the metrics API last answered, in seconds.
    pub age: Gauge,
}

impl Metrics {
    fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_recommender");
            own.register("workloads", "Workloads something is known of", self.workloads.clone());
            own.register("published", "Recommendations written", self.published.clone());
            own.register(
                "publish_failures",
                "Recommendations that could not be written",
                self.failures.clone(),
            );
            own.register("source_age_seconds", "Time since the metrics API last answered", self.age.clone());
        });
    }
}

/// Why a recommender could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Learns and publishes until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named(COMPONENT);
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Pods>(Message::Pod);
    watches.add::<ReplicaSets>(Message::ReplicaSet);
    watches.add::<Jobs>(Message::Job);
    watches.add::<Recommendations>(Message::Recommendation);
    let measure = metrics_api::Options { every: options.every, of: metrics_api::Of::Containers };
    watches.spawn(|connection, events| metrics_api::poll(connection, measure, events, Message::Measured));

    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);

    let mut state = State::new(&options.learn);
    let mut look = interval(options.every);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let (mut batch, mut due) = (Vec::new(), VecDeque::new());
    let mut in_flight: JoinSet<Written> = JoinSet::new();
    let mut defined = !options.define;
    let mut pace = Pace::new(options.rate, ctx.now().at);
    let mut wait = None;
    loop {
        let looks = tokio::select! {
            () = ctx.stop.cancelled() => break,
            _ = look.tick() => true,
            count = messages.recv_many(&mut batch, WAITING) => {
                if count == 0 { break }
                // New measurements are worth a look at once.
                batch.iter().any(|message| matches!(message, Message::Measured(Ok(_))))
            }
            Some(ended) = in_flight.join_next() => {
                if let Ok(written) = ended {
                    tell(&options.metrics, &written);
                    state.done(&written.key, written.learned.as_deref());
                }
                false
            }
            () = sleep_until(wait.unwrap_or_else(|| ctx.now().at)), if wait.is_some() => false,
        };
        let Now { clock: now, at } = ctx.now();
        for message in batch.drain(..) {
            state.take(message, now);
        }
        let leads = lead.leadership.may_write();
        if !defined && leads {
            defined = define(&lead.writer).await;
        }
        if looks {
            due = if leads && state.is_ready() { state.due(now).into() } else { VecDeque::new() };
            options.metrics.workloads.set(i64::try_from(state.counts()[0].1).unwrap_or(i64::MAX));
            options.metrics.age.set(state.measured.map_or(-1, |at| now.duration_since(at).as_secs()));
            options.status.set(readiness(&state, leads, due.len(), now));
        }
        wait = None;
        while leads && in_flight.len() < WRITES && !due.is_empty() {
            if let Err(later) = pace.take(at) {
                wait = Some(later);
                break;
            }
            let Some(next) = due.pop_front() else { break };
            state.sent(next.key());
            in_flight.spawn(write(lead.writer.clone(), next, now));
        }
    }
    let _ = tokio::time::timeout(GOODBYE, async { while in_flight.join_next().await.is_some() {} }).await;
    lead.end().await;
    Ok(())
}

/// Makes the kind known; says whether it is.
async fn define(writer: &Writer) -> bool {
    let Ok(definition) = serde_saphyr::from_str(recommendation::DEFINITION) else { return true };
    let made = writer.define(&definition).await;
    made.inspect_err(|failure| tracing::warn!(%failure, "recommendations cannot be defined")).is_ok()
}

/// What came of a write.
struct Written {
    key: Key,
    learned: Option<Box<Learned>>,
    problem: Option<String>,
}

async fn write(writer: Writer, due: Due, now: Timestamp) -> Written {
    let key = due.key();
    let (answer, learned) = match due {
        Due::Create(learned, checkpoint) => {
            let object = recommendation::object(&form(&learned, &checkpoint, now));
            let made = writer.create(RECOMMENDATIONS, &key.namespace, &object).await;
            // One that is there, whoever wrote it, is told by the watch and changed then.
            (made.map(drop), Some(learned))
        }
        Due::Patch(meta, learned, checkpoint) => {
            let mut change = recommendation::change(&form(&learned, &checkpoint, now));
            change["metadata"]["uid"] = serde_json::json!(&*meta.uid);
            let made = writer.patch(RECOMMENDATIONS.whole(), &key, Patch::Merge, &change).await;
            (made.map(drop), Some(learned))
        }
        Due::Delete(meta) => (writer.delete(RECOMMENDATIONS, &meta, None).await.map(drop), None),
    };
    match answer {
        Ok(()) => Written { key, learned, problem: None },
        Err(failure) => {
            let passing = matches!(failure.cause, Cause::NotFound | Cause::Conflict | Cause::AlreadyExists);
            Written { key, learned: None, problem: (!passing).then_some(failure.message) }
        }
    }
}

fn form<'a>(learned: &'a Learned, checkpoint: &'a [u8], at: Timestamp) -> Write<'a> {
    let confidence = learned.containers.values().map(|one| one.confidence).min().unwrap_or_default();
    Write {
        target: &learned.workload,
        containers: learned.advice(),
        confidence: format!("{:.3}", confidence.to_f64()),
        checkpoint,
        at,
    }
}

fn tell(metrics: &Metrics, written: &Written) {
    if let Some(problem) = &written.problem {
        metrics.failures.inc();
        tracing::warn!(recommendation = %written.key, problem, "recommendation cannot be written");
    } else if written.learned.is_some() {
        metrics.published.inc();
    }
}

fn readiness(state: &State, leads: bool, waiting: usize, now: Timestamp) -> Readiness {
    let ready = state.is_ready();
    let mut lines = vec![
        match (ready, leads) {
            (false, _) => "reading the cluster",
            (true, false) => "standing by: another one leads",
            (true, true) => "active",
        }
        .to_owned(),
    ];
    lines.push(match state.measured {
        Some(at) => format!("metrics API: answered {} s ago", now.duration_since(at).as_secs().max(0)),
        None => "metrics API: has not answered yet".to_owned(),
    });
    lines.extend(state.problem.iter().map(|problem| format!("metrics API: {problem}")));
    lines.extend(state.trouble().map(|trouble| format!("recommendations: {trouble}")));
    let counts: Vec<String> = state.counts().iter().map(|(what, count)| format!("{what} {count}")).collect();
    lines.push(counts.join(", "));
    lines.push(format!("waiting to be written: {waiting}"));
    Readiness { ready, progress: lines.join("\n") + "\n" }
}
