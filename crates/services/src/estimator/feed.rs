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

mod fold;
mod kinds;
mod source;

pub use source::Source;

use super::Member;
use super::load;
use crate::watch::{Kind, News, follow};
use fold::Fold;
use jiff::Timestamp;
use kinds::{Deployments, Nodes, Pods, Quotas, ReplicaSets};
use kube::Client;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How many messages may wait to be folded in: whoever brings more waits.
const WAITING: usize = 512;
/// Pauses between attempts to make a client grow from the first to the second.
const PAUSES: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// What is read of a member.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Are quotas followed?
    pub quotas: bool,
    /// Is load followed, and by which rules?
    pub load: Option<load::Options>,
}

/// A message to the one who folds.
#[derive(Debug)]
enum Item {
    Node(News<<Nodes as Kind>::Facts>),
    Pod(News<<Pods as Kind>::Facts>),
    ReplicaSet(News<<ReplicaSets as Kind>::Facts>),
    Deployment(News<<Deployments as Kind>::Facts>),
    Quota(News<<Quotas as Kind>::Facts>),
    Figures(load::Figures),
}

/// Follows a member until told to stop. Never fails: what is wrong is in the member's status, and tried again.
pub async fn run(
    name: String,
    member: Arc<Member>,
    source: Source,
    options: Options,
    stop: CancellationToken,
) {
    let work = async {
        let mut fold = Fold::new(&name, &options, Timestamp::now());
        let mut pause = PAUSES.0;
        loop {
            let (client, used) = match source.connect().await {
                Ok(made) => made,
                Err(problem) => {
                    tracing::warn!(cluster = name, problem, "the cluster cannot be followed; trying again");
                    fold.unreachable(problem, Timestamp::now());
                    fold.tell(&member);
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(PAUSES.1);
                    continue;
                }
            };
            pause = PAUSES.0;
            fold.reachable();
            gather(&client, &mut fold, &member, &options, (&source, &used)).await;
            tracing::info!(cluster = name, "the kubeconfig is another; connecting again");
        }
    };
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Follows everything by one client, until something is wrong and there is reason to make another.
async fn gather(
    client: &Client,
    fold: &mut Fold,
    member: &Member,
    options: &Options,
    (source, used): (&Source, &str),
) {
    let (sender, mut news) = mpsc::channel(WAITING);
    // Ended when this returns.
    let mut tasks = JoinSet::new();
    tasks.spawn(follow::<Nodes, _>(client.clone(), sender.clone(), Item::Node));
    tasks.spawn(follow::<Pods, _>(client.clone(), sender.clone(), Item::Pod));
    tasks.spawn(follow::<ReplicaSets, _>(client.clone(), sender.clone(), Item::ReplicaSet));
    tasks.spawn(follow::<Deployments, _>(client.clone(), sender.clone(), Item::Deployment));
    if options.quotas {
        tasks.spawn(follow::<Quotas, _>(client.clone(), sender.clone(), Item::Quota));
    }
    if let Some(load) = &options.load {
        tasks.spawn(load::measure(client.clone(), load.every, sender.clone(), Item::Figures));
    }
    drop(sender);
    let mut batch = Vec::with_capacity(WAITING);
    loop {
        // What load rules say changes by time alone, too.
        let due = fold.due(Timestamp::now());
        let waited = tokio::select! {
            count = news.recv_many(&mut batch, WAITING) => count == 0,
            () = tokio::time::sleep(due.unwrap_or_default()), if due.is_some() => false,
        };
        if waited {
            return;
        }
        let (now, mut trouble) = (Timestamp::now(), false);
        for item in batch.drain(..) {
            let heard = fold.hear(item, now);
            trouble |= heard == fold::Heard::Trouble;
            // The next list may have begun within the same batch.
            if heard == fold::Heard::Listed {
                fold.publish(member, now);
            }
        }
        fold.publish(member, now);
        fold.tell(member);
        if trouble && source.is_other(used).await {
            return;
        }
    }
}
