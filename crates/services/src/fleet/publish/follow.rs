//! What is going on in a member? Its watches and its measurements, summed up again and again.
//!
//! What the account must be allowed, and no more: list and watch `nodes` and `pods`; list `nodes.metrics.k8s.io`.

use super::state::{Report, State};
use super::watched::{Message, Nodes, Pods};
use crate::cluster::watch::{News, Watches};
use crate::cluster::{Access, Calls, Connection};
use crate::sources::metrics_api::{self, Of};
use jiff::Timestamp;
use loadline_core::member::Rules;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How many messages may wait to be folded in: whoever brings more waits.
const WAITING: usize = 512;
/// Backoff between attempts to make a client: the first, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// How a member is followed.
#[derive(Clone, Debug)]
pub(super) struct Options {
    pub every: Duration,
    pub rules: Rules,
    /// Where requests are counted.
    pub calls: Calls,
}

/// Follows a member until told to stop. Never fails: what is wrong is in its reports, and tried again.
pub(super) async fn run(
    name: String,
    access: Access,
    options: Options,
    reports: mpsc::Sender<Report>,
    stop: CancellationToken,
) {
    let work = async {
        let mut state = State::new(&name);
        let mut backoff = BACKOFF.0;
        loop {
            let (client, used) = match access.connect().await {
                Ok(made) => made,
                Err(problem) => {
                    tracing::warn!(cluster = name, problem, "member cannot be reached, trying again");
                    state.unreachable(Some(problem));
                    let report = state.report(Timestamp::now(), &options.rules);
                    if reports.send(report).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    continue;
                }
            };
            backoff = BACKOFF.0;
            state.unreachable(None);
            let connection =
                Connection::counted(client, options.calls.clone()).named("loadline-publish-member");
            if gather(connection, &mut state, &options, &reports, (&access, &used)).await.is_err() {
                return;
            }
            tracing::info!(cluster = name, "kubeconfig changed, connecting again");
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Nobody wants to hear of it any more.
struct Closed;

/// Follows everything by one connection, until something is wrong and there is reason to make another.
async fn gather(
    connection: Connection,
    state: &mut State,
    options: &Options,
    reports: &mpsc::Sender<Report>,
    (access, used): (&Access, &str),
) -> Result<(), Closed> {
    let (mut watches, mut messages) = Watches::new(connection, WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    let nodes = metrics_api::Options { every: options.every, of: Of::Nodes };
    watches.spawn(|connection, events| metrics_api::poll(connection, nodes, events, Message::Measured));
    let mut batch = Vec::with_capacity(WAITING);
    // The first report is made as soon as there is something to report on; later ones keep time with measurements.
    let (mut measured, mut reported) = (false, false);
    loop {
        messages.recv_many(&mut batch, WAITING).await;
        let (now, mut trouble, mut due) = (Timestamp::now(), false, false);
        for message in batch.drain(..) {
            // An answer of the metrics API, good or bad: time to sum up.
            due |= matches!(message, Message::Measured(_));
            trouble |= state.take(message, now) == News::Trouble;
        }
        measured |= due;
        let first = !reported && measured && state.is_whole();
        if due || trouble || first {
            let report = state.report(now, &options.rules);
            // While a list replaces what is known, it is neither what it was nor what it will be.
            if report.summary.is_err() || state.is_whole() {
                reported |= report.summary.is_ok();
                reports.send(report).await.map_err(|_| Closed)?;
            }
        }
        if trouble && access.is_other(used).await {
            return Ok(());
        }
    }
}
