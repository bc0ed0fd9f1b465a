//! How many replicas would really fit in a cluster? A gRPC server that answers for one or many clusters.
//!
//! | what it does | with |
//! |---|---|
//! | watches each cluster: nodes, pods, replica sets, Deployments, quotas, measured load | [`follow`] |
//! | keeps an index per cluster and publishes a view that never changes | `state`, [`Member`] |
//! | answers from the newest view | [`server`] |
//! | says how it is | [`health`], [`metrics`] |
//!
//! It writes nothing to any cluster.

pub mod follow;
pub mod health;
pub mod load;
mod member;
pub mod metrics;
mod remember;
pub mod server;
mod state;
mod watched;

pub use member::{Known, Member, Members, Status};

use crate::cluster::{Access, Calls};
use crate::ctx::Ctx;
use crate::serve::{self, Leaving, Listening};
use axum::{Extension, Router};
use metrics::Metrics;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;

/// How often to say how far reading is.
const PROGRESS: Duration = Duration::from_secs(2);
/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// What an estimator is started with.
#[derive(Debug)]
pub struct Options {
    /// Which clusters, by name, and how each is reached.
    pub clusters: BTreeMap<String, Access>,
    /// What is counted.
    pub counting: server::Options,
    /// Is load followed, and by which rules?
    pub load: Option<load::Options>,
    /// Where questions come in.
    pub grpc: Listening,
    /// Where health and metrics are served.
    pub http: Vec<Listening>,
    /// What is answered there as well.
    pub more: Router,
    /// What is known of the clusters; whoever has a clone can look at it.
    pub members: Arc<Members>,
}

impl Options {
    /// For these clusters, on that address.
    #[must_use]
    pub fn new(clusters: BTreeMap<String, Access>, grpc: Listening) -> Self {
        let members: Members = clusters.keys().map(|name| (name.clone(), Arc::default())).collect();
        Self {
            clusters,
            counting: server::Options::default(),
            load: None,
            grpc,
            http: Vec::new(),
            more: Router::new(),
            members: Arc::new(members),
        }
    }
}

/// Why an estimator ended that nobody told to.
#[derive(Debug, thiserror::Error)]
#[error("a server ended by itself")]
pub struct Error;

/// Answers until told to stop.
///
/// # Errors
/// When a server breaks: whoever started it is to know, and start it again.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let Options { clusters, counting, load, grpc, http, more, members } = options;
    let metrics = Metrics::new(&members, &ctx.metrics);
    if let Some(certificates) = grpc.certificates() {
        metrics.watch(certificates);
    }
    log_addresses(&grpc, &http);

    let followed = follow::Options { quotas: counting.quotas, load, calls: Calls::default() };
    ctx.metrics.register(|registry| {
        let mut own = registry.below("loadline_estimator");
        own.register_collector(&followed.calls, &Calls::LABELS);
    });
    let mut follows = JoinSet::new();
    for (name, access) in clusters {
        let Some(member) = members.get(&name).cloned() else { continue };
        follows.spawn(follow::run(name, member, access, followed.clone(), ctx.stop.clone()));
    }
    let mut servers = JoinSet::new();
    let answers = server::routes(members.clone(), counting, metrics);
    let answers = answers.layer(Extension(Leaving(ctx.leaving.clone())));
    servers.spawn(serve::run(grpc, answers, ctx.stop.clone()));
    for listening in http {
        let health = health::router(members.clone(), ctx.metrics.clone(), ctx.leaving.clone());
        let router = health.merge(more.clone());
        servers.spawn(serve::run(listening, router, ctx.stop.clone()));
    }
    let ended = tokio::select! {
        () = ctx.stop.cancelled() => Ok(()),
        () = log_progress(&members) => Ok(()),
        Some(_) = servers.join_next() => if ctx.stop.is_cancelled() { Ok(()) } else { Err(Error) },
    };
    ctx.stop.cancel();
    // Whoever keeps a connection open does not keep us.
    let _ = tokio::time::timeout(GOODBYE, async {
        while servers.join_next().await.is_some() {}
        while follows.join_next().await.is_some() {}
    })
    .await;
    ended
}

fn log_addresses(grpc: &Listening, http: &[Listening]) {
    let http: Vec<String> = http.iter().map(|listening| listening.address().to_string()).collect();
    let tls = grpc.certificates().is_some();
    tracing::info!(grpc = %grpc.address(), tls, http = http.join(","), "listening");
}

/// Says how far reading is until everything has been read, then once more. Never ends.
async fn log_progress(members: &Members) {
    let mut unread = JoinSet::new();
    for member in members.values() {
        let (member, mut changes) = (member.clone(), member.changes());
        unread.spawn(async move { while member.known().is_none() && changes.changed().await.is_ok() {} });
    }
    let mut ticks = tokio::time::interval(PROGRESS);
    ticks.tick().await;
    let mut last = String::new();
    loop {
        tokio::select! {
            read = unread.join_next() => if read.is_none() { break },
            _ = ticks.tick() => {
                let progress = progress(members);
                if !progress.is_empty() && progress != last {
                    tracing::info!(progress, "reading clusters");
                    last = progress;
                }
            }
        }
    }
    let views = || members.values().filter_map(|member| member.known());
    let nodes: usize = views().map(|known| known.view.node_count()).sum();
    let pods: usize = views().map(|known| known.view.pod_count()).sum();
    tracing::info!(clusters = members.len(), nodes, pods, "ready");
    std::future::pending::<()>().await;
}

/// How far those are that are getting on; what is wrong with others has been logged.
fn progress(members: &Members) -> String {
    let reading = members
        .iter()
        .filter(|(_, member)| member.known().is_none() && member.status().problem.is_none())
        .map(|(name, member)| format!("{name}: {}", member.status().progress));
    reading.collect::<Vec<_>>().join("; ")
}
