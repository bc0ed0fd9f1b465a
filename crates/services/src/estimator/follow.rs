//! What is going on in a member cluster? Its watches, folded into what answers are made from.
//!
//! One task per member: [`run`] connects, follows every kind that counts, folds each batch of news in and publishes.
//! Nothing is published until everything has been read once. From then on there is always an answer, from the last
//! state where the API server is away, and [`super::Status`] says how old it is and what is wrong.
//!
//! While a list replaces what is known, nothing is published: readers see the state before and then the state after,
//! never a mixture. Where such a list does not get on, other news are not held back any longer; what is known then is
//! the newest of each object.
//!
//! What the account of the kubeconfig must be allowed, and no more: list and watch `nodes`, `pods`,
//! `replicasets.apps` and `deployments.apps`; `resourcequotas` if quotas bind; list `nodes.metrics.k8s.io` if load
//! counts.

use super::state::State;
use super::watched::{Deployments, Nodes, Pods, Quotas, ReplicaSets};
use super::{Member, load};
use crate::cluster::watch::{News, Watches};
use crate::cluster::{Access, Calls, Connection, Event, Watched};
use crate::reload::{Source, reread};
use crate::sources::metrics_api::{self, Measurements, Of};
use jiff::Timestamp;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How many messages may wait to be folded in: whoever brings more waits.
const WAITING: usize = 512;
/// Backoff between attempts to make a client: the first, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What is read of a member.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Are quotas followed?
    pub quotas: bool,
    /// Is load followed, and by which rules?
    pub load: Option<load::Options>,
    /// Where requests are counted.
    pub calls: Calls,
}

/// A message to the one task that keeps a member.
#[derive(Debug)]
pub(super) enum Message {
    Node(Event<<Nodes as Watched>::Facts>),
    Pod(Event<<Pods as Watched>::Facts>),
    ReplicaSet(Event<<ReplicaSets as Watched>::Facts>),
    Deployment(Event<<Deployments as Watched>::Facts>),
    Quota(Event<<Quotas as Watched>::Facts>),
    Measured(Measurements),
    /// What the file of the load policy says.
    Policy(Result<String, String>),
}

/// Follows a member until told to stop. Never fails: what is wrong is in the member's status, and tried again.
pub async fn run(
    name: String,
    member: Arc<Member>,
    access: Access,
    options: Options,
    stop: CancellationToken,
) {
    let work = async {
        let mut state = State::new(&name, &options, Timestamp::now());
        let mut backoff = BACKOFF.0;
        loop {
            let (client, used) = match access.connect().await {
                Ok(made) => made,
                Err(problem) => {
                    tracing::warn!(cluster = name, problem, "cluster cannot be reached, trying again");
                    state.unreachable(problem, Timestamp::now());
                    state.tell(&member);
                    tokio::time::sleep(backoff).await;
                    backoff = (backoff * 2).min(BACKOFF.1);
                    continue;
                }
            };
            backoff = BACKOFF.0;
            state.reachable();
            let connection = Connection::counted(client, options.calls.clone()).named("loadline-estimator");
            gather(connection, &mut state, &member, &options, (&access, &used)).await;
            tracing::info!(cluster = name, "kubeconfig changed, connecting again");
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Follows everything by one connection, until something is wrong and there is reason to make another.
async fn gather(
    connection: Connection,
    state: &mut State,
    member: &Member,
    options: &Options,
    (access, used): (&Access, &str),
) {
    let (mut watches, mut messages) = Watches::new(connection, WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    watches.add::<ReplicaSets>(Message::ReplicaSet);
    watches.add::<Deployments>(Message::Deployment);
    if options.quotas {
        watches.add::<Quotas>(Message::Quota);
    }
    if let Some(load) = &options.load {
        let nodes = metrics_api::Options { every: load.every, of: Of::Nodes };
        watches.spawn(|connection, events| metrics_api::poll(connection, nodes, events, Message::Measured));
        if let Source::File(path, _) = &load.policy {
            watches.spawn(|_, events| reread(path.clone(), events, Message::Policy));
        }
    }
    let mut batch = Vec::with_capacity(WAITING);
    loop {
        // What load rules say changes by time alone, too.
        let due = state.due(Timestamp::now());
        tokio::select! {
            _ = messages.recv_many(&mut batch, WAITING) => {}
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => {}
        }
        let (now, mut trouble) = (Timestamp::now(), false);
        for message in batch.drain(..) {
            let news = state.take(message, now);
            trouble |= news == News::Trouble;
            // The next list may have begun within the same batch.
            if news == News::Listed {
                state.publish(member, now);
            }
        }
        state.publish(member, now);
        state.tell(member);
        if trouble && access.is_other(used).await {
            return;
        }
    }
}
