//! How much of a member is requested and used? Told to the hub, as an annotation our placements read and as scores that
//! everybody's placements weigh.
//!
//! One task per member follows it and sums it up ([`loadline_core::member`]); one task owns what the hub was told
//! (`books`) and writes what is worth it. It runs in a member, for that one, or in the hub, for many. Nothing is watched in
//! the hub: an account of a member needs to see no other's objects.
//!
//! | what it does | |
//! |---|---|
//! | watches | nodes and pods of each member |
//! | polls | measurements of nodes from the member's metrics API; each answer, good or bad, is also its clock |
//! | asks | [`loadline_core::member`] |
//! | writes | an annotation of the `ManagedCluster`, the status of an `AddOnPlacementScore`; its lease, in the hub |
//! | tells | metrics; readiness with the age of what is known of each member |
//!
//! Nothing is pretended. What is told carries the moment it was measured and expires on its own: a member that is away is
//! not told of any more, a hub that is away is tried again with what is known by then, and what has expired is not told.

mod books;
mod follow;
mod state;
mod tell;
mod watched;
mod write;

pub use tell::{ByCluster, ByObject, ByOutcome, Metrics};

use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::pace::Pace;
use crate::cluster::{Access, Calls, Connection};
use crate::ctx::Ctx;
use crate::serve::probes::Status;
use books::Books;
use loadline_core::member::Rules;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

const COMPONENT: &str = "loadline-publish";
/// Writes under way at a time; the answer to one lets the next go.
const WRITES: usize = 8;
/// Reports waiting to be taken in; whoever brings more waits.
const WAITING: usize = 256;
/// How often it is told how members are, at least.
const TELL: Duration = Duration::from_secs(1);
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// What is told, of whom, and how often.
#[derive(Clone, Debug)]
pub struct Options {
    pub hub: Access,
    /// By the names of their `ManagedCluster`s.
    pub members: BTreeMap<String, Access>,
    /// How often each member is measured and summed up.
    pub every: Duration,
    /// What is summed up, and when it is worth a write.
    pub rules: Rules,
    /// Name of the `AddOnPlacementScore`s.
    pub score_name: String,
    /// Objects written per second, on average.
    pub rate: f64,
    /// By which lease in the hub one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
}

impl Options {
    #[must_use]
    pub fn new(hub: Access, members: BTreeMap<String, Access>) -> Self {
        Self {
            hub,
            members,
            every: Duration::from_secs(30),
            rules: Rules::default(),
            score_name: "loadline".to_owned(),
            rate: 10.0,
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
        }
    }
}

/// Why it could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Follows members and tells the hub until told to stop.
///
/// # Errors
/// When there is no way to the hub: a kubeconfig that cannot be read, or credentials that have not been accepted for half of
/// the time that summaries hold. A hub that is away is waited for, and so is a member.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.hub.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named(COMPONENT);
    let calls = Calls::default();
    options.metrics.register(&ctx, &calls);
    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);

    let (send, mut reports) = mpsc::channel(WAITING);
    let mut follows = JoinSet::new();
    let followed = follow::Options { every: options.every, rules: options.rules, calls };
    let mut books = Books::new(options.members.keys().map(|name| &**name), options.rules, options.every);
    for (name, access) in options.members {
        follows.spawn(follow::run(name, access, followed.clone(), send.clone(), ctx.stop.clone()));
    }
    drop(send);

    let mut tick = interval(options.every.min(TELL));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut in_flight = JoinSet::new();
    let patience = Duration::try_from(options.rules.recent()).unwrap_or_default();
    let mut pace = Pace::new(options.rate, ctx.now().at);
    let (mut wait, mut refused) = (None, None);
    let ended = loop {
        let (mut came, mut tells) = (None, false);
        tokio::select! {
            () = ctx.stop.cancelled() => break Ok(()),
            _ = tick.tick() => tells = true,
            Some(report) = reports.recv() => came = Some(report),
            Some(ended) = in_flight.join_next() => {
                if let Ok(written) = ended {
                    tell::written(&options.metrics, &written);
                    refused = written.refused(refused, ctx.now().at);
                    books.done(written, ctx.now());
                }
            }
            () = sleep_until(wait.unwrap_or_else(|| ctx.now().at)), if wait.is_some() => {}
        }
        let now = ctx.now();
        let leads = lead.leadership.may_write();
        if !leads {
            // Whoever leads tells the hub something else by now.
            books.forget();
        }
        if let Some(report) = came
            && books.take(report, leads, now) == books::Worth::Nothing
        {
            options.metrics.spared.inc();
        }
        books.look(leads, now);
        wait = books.next_retry();
        while leads && in_flight.len() < WRITES && books.is_waiting() {
            if let Err(later) = pace.take(now.at) {
                wait = Some(wait.map_or(later, |retry| retry.min(later)));
                break;
            }
            let Some(job) = books.next(now) else { break };
            in_flight.spawn(write::write(
                lead.writer.clone(),
                options.score_name.clone(),
                options.rules,
                job,
            ));
        }
        if tells {
            tell::members(&options.metrics, &books, now.clock);
            options.status.set(tell::readiness(&books, leads, now.clock));
        }
        // Certificates are renewed in their files, which are read at the start: whoever started us does it again.
        if refused.is_some_and(|since| now.at.duration_since(since) >= patience) {
            break Err(Error(
                "the hub has not accepted our credentials for long; start anew to read them again".into(),
            ));
        }
    };
    ctx.stop.cancel();
    let _ = tokio::time::timeout(GOODBYE, async {
        while in_flight.join_next().await.is_some() {}
        while follows.join_next().await.is_some() {}
    })
    .await;
    lead.end().await;
    ended
}
