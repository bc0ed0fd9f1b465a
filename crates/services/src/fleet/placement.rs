//! Which clusters do placements select? Open Cluster Management's Placements, decided and published.
//!
//! One task owns what is known (`state`). Whatever changes is held against what each placement reads; those it touches are
//! decided one after the other, each seeing what the ones before it are about to publish, and written side by side (`job`).
//!
//! | what it does | |
//! |---|---|
//! | watches | clusters, sets, bindings, scores, placements and decisions |
//! | asks | [`loadline_core::place`] |
//! | writes | `PlacementDecision`s, the status of Placements, its lease |
//! | tells | Events in the words of OCM's controller; metrics; readiness; why, to who asks ([`Asker`]) |
//!
//! Nothing is decided before everything was read once, and while something cannot be read what was known counts: what is
//! published stays.

pub mod explain;
mod job;
mod metrics;
mod onlook;
mod state;
mod watched;

pub use metrics::Metrics;
pub use onlook::{Onlooker, Seen};

use crate::ask;
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::{PLACEMENT_DECISIONS, PLACEMENTS};
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Calls, Connection, Recorder};
use crate::ctx::{Ctx, Now};
use crate::serve::probes::{Readiness, Status};
use job::{Done, Job};
use loadline_core::object::{Key, Meta};
use loadline_core::place::{self, Placement, Report};
use state::State;
use std::fmt::Write as _;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};
use watched::{Bindings, Clusters, Decisions, Message, Placements, Scores, Sets};

/// What it is called.
pub const COMPONENT: &str = "loadline-placement";
/// The name OCM's controller reports under.
const CONTROLLER: &str = "placement-controller";
/// Placements being written at a time.
const JOBS: usize = 32;
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);
/// The longest without a look at the clock, which somebody may set.
const LOOK: Duration = Duration::from_secs(30);
/// Placements with a problem, and selected clusters, that are named.
const NAMED: usize = 5;

/// How placements are decided.
#[derive(Debug)]
pub struct Options {
    pub cluster: Access,
    pub place: place::Options,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
    /// What is asked of the hub is counted there.
    pub calls: Calls,
    /// Where questions come from.
    pub asked: Asked,
}

impl Options {
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            place: place::Options::default(),
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
            calls: Calls::default(),
            asked: Asked::default(),
        }
    }
}

/// What somebody wants to know.
#[derive(Clone, Debug)]
pub enum Subject {
    /// Why a placement gets whom it gets.
    There(Key),
    /// Whom one would get that is not there, or not so.
    Wished(Box<Placement>),
}

/// Where a running controller is asked; nothing is answered if there is no such placement.
pub type Asker = ask::Asker<Subject, Option<Report>>;

/// Where it hears of that.
pub type Asked = ask::Asked<Subject, Option<Report>>;

/// Why a controller could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Decides and publishes until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::counted(client, options.calls).named(COMPONENT).spread(ctx.seed());
    options.metrics.register(&ctx);

    let (_watches, mut messages) = watches(&connection);
    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);
    let events = lead.events.reporting_as(CONTROLLER, &ctx.identity);

    let mut state = State::new(options.place, options.metrics.clone());
    let mut asked = options.asked;
    let (mut batch, mut ended_jobs) = (Vec::new(), Vec::new());
    let mut in_flight: JoinSet<(Job, Done, Instant)> = JoinSet::new();
    let mut wait = Instant::now();
    loop {
        tokio::select! {
            biased;
            () = ctx.stop.cancelled() => break,
            // What changed while another one led, or nobody did, waits for nothing else.
            () = lead.leadership.acquired(), if !lead.leadership.may_write() => {}
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            Some(ended) = in_flight.join_next() => ended_jobs.push(ended),
            question = asked.next() => {
                if state.is_ready() {
                    let report = state.report(&question.about, ctx.now().clock);
                    question.answer(report);
                } else {
                    question.too_early();
                }
            }
            () = sleep_until(wait) => {}
        }
        // Whatever woke it, everything that is there is taken.
        ended_jobs.extend(std::iter::from_fn(|| in_flight.try_join_next()));
        for (job, done, begun) in ended_jobs.drain(..).flatten() {
            options.metrics.bound(begun.elapsed());
            finish(&mut state, &events, (&job, done), &ctx);
        }
        let Now { clock: now, at } = ctx.now();
        for message in batch.drain(..) {
            state.take(message, now);
        }
        let leads = lead.leadership.may_write();
        let mut more = false;
        if leads && state.is_ready() {
            let jobs;
            (jobs, more) = state.jobs(JOBS - in_flight.len(), now, at);
            for job in jobs {
                let writer = lead.writer.clone();
                in_flight.spawn(async move {
                    let begun = Instant::now();
                    let (job, done) = job.run(writer).await;
                    (job, done, begun)
                });
            }
        }
        let due = state.wake(now, at).filter(|_| in_flight.len() < JOBS);
        wait = due.map_or(at + LOOK, |due| due.clamp(at + Duration::from_millis(1), at + LOOK));
        if more && in_flight.len() < JOBS {
            wait = at;
            // Writes go out before the next are decided.
            tokio::task::yield_now().await;
        }
        options.metrics.count(&state.kinds());
        options.status.set(readiness(&state, leads, in_flight.len()));
    }
    let _ = tokio::time::timeout(GOODBYE, async { while in_flight.join_next().await.is_some() {} }).await;
    lead.end().await;
    Ok(())
}

/// Everything that is looked at, and where it comes from.
fn watches(connection: &Connection) -> (Watches<Message>, mpsc::Receiver<Message>) {
    let (mut watches, messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Clusters>(Message::Cluster);
    watches.add::<Sets>(Message::Set);
    watches.add::<Bindings>(Message::Binding);
    watches.add::<Scores>(Message::Scores);
    watches.add::<Placements>(Message::Placement);
    watches.add::<Decisions>(Message::Decision);
    (watches, messages)
}

/// A job is over: what there is now is taken in, and what was done is told.
fn finish(state: &mut State, events: &Recorder, (job, done): (&Job, Done), ctx: &Ctx) {
    let Now { clock: now, at } = ctx.now();
    let regarding = Regarding::new(PLACEMENTS, &job.placement);
    let uid_of = |name: &str| {
        let written = done.slices.iter().map(|(meta, _)| meta).chain(&done.deleted);
        written
            .filter(|meta| &*meta.key.name == name)
            .map(|meta| meta.uid.clone())
            .next_back()
            .unwrap_or_default()
    };
    for event in &job.outcome.events {
        let related = event.slice.as_ref().map(|name| {
            let key = Key::new(job.placement.key.namespace.clone(), name.clone());
            Regarding::new(PLACEMENT_DECISIONS, &Meta { key, uid: uid_of(name), revision: None })
        });
        if event.slice.as_ref().is_some_and(|name| !done.written.contains(name)) {
            continue;
        }
        let severity = if event.warning { Severity::Warning } else { Severity::Normal };
        let (reason, action, note) = (event.reason, event.action, event.note.to_string());
        events.record_with(regarding.clone(), related, Happened { severity, reason, action, note }, now);
    }
    let key = &job.placement.key;
    match &done.failure {
        Some(problem) => tracing::warn!(placement = %key, problem, "placement cannot be published"),
        None if !done.written.is_empty() => {
            ctx.notices.tell("placement", key, selection(&job.outcome));
        }
        None => {}
    }
    if done.scores_dropped {
        tracing::warn!("the API server does not keep scores of decisions; they are not published any more");
        state.without_scores();
    }
    state.done(done, at);
}

/// Who is selected, in a few words.
fn selection(outcome: &place::Outcome) -> String {
    let all: Vec<&str> = outcome.selected.iter().map(|chosen| chosen.cluster).collect();
    match all.as_slice() {
        [] => format!("{} clusters stay selected", outcome.number_selected()),
        few if few.len() <= NAMED => format!("selects {}", few.join(", ")),
        many => format!("selects {} and {} more", many[..NAMED].join(", "), many.len() - NAMED),
    }
}

fn readiness(state: &State, leads: bool, writing: usize) -> Readiness {
    let ready = state.is_ready();
    let mut text = match (ready, leads) {
        (false, _) => "reading the hub",
        (true, false) => "standing by: another one leads",
        (true, true) => "active",
    }
    .to_owned()
        + "\n";
    for (name, count, trouble) in state.kinds() {
        let _ = write!(text, "{name}: {count}");
        if let Some(trouble) = trouble {
            let _ = write!(text, "; {trouble}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "placements being written: {writing}");
    for (key, problem) in state.problems().iter().take(NAMED) {
        let _ = writeln!(text, "placement {key}: {problem}");
    }
    Readiness { ready, progress: text }
}
