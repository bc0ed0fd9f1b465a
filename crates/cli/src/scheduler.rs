//! `loadline scheduler`: gives pods nodes in a real cluster, by measured load.

pub mod args;

use crate::signal;
use crate::up::load_rules;
use anyhow::{Context, Result};
use args::Scheduler;
use loadline_core::load::policy::Rules;
use loadline_services::Ctx;
use loadline_services::cluster::{Access, lease};
use loadline_services::scheduler::{self, Options, Phase, Status};
use loadline_services::serve::probes::{self, Readiness};
use loadline_services::serve::{self, Listening};
use loadline_services::sources::metrics_api;
use tokio_util::sync::CancellationToken;

pub async fn run(args: &Scheduler) -> Result<()> {
    let rules = match (&args.policy, args.requests_only) {
        (_, true) => None,
        (None, false) => Some(Rules::default()),
        (Some(path), false) => Some(load_rules(path)?),
    };
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-scheduler", &identity)?;
    let cluster = args.kubeconfig.clone().map_or(Access::InCluster, Access::Kubeconfig);
    let hint = if args.kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
    cluster.connect().await.map_err(|problem| anyhow::anyhow!("{problem}{hint}"))?;
    let options = Options {
        names: args.names.clone(),
        rules,
        measure: metrics_api::Options { every: args.metrics_interval, ..metrics_api::Options::default() },
        lease,
        ..Options::new(cluster)
    };
    let stop = CancellationToken::new();
    let ctx = Ctx::new(&identity, stop.clone());
    let http = match args.http_bind_address {
        Some(address) => Some(serve::listen(address, None, true).await?),
        None => None,
    };
    if let Some(http) = http {
        tokio::spawn(serve_probes(http, options.status.clone(), ctx.clone()));
    }
    signal::until_ended(scheduler::run(ctx, options), &stop).await
}

async fn serve_probes(http: Listening, status: Status, ctx: Ctx) {
    tracing::info!(http = %http.address(), "listening");
    let readiness = move || match status.phase() {
        Phase::Reading => Readiness { ready: false, progress: "reading the cluster\n".to_owned() },
        Phase::Standby => Readiness { ready: true, progress: "standing by: another one leads\n".to_owned() },
        Phase::Active => Readiness { ready: true, progress: "active\n".to_owned() },
    };
    serve::run(http, probes::router(readiness, ctx.metrics.clone()), ctx.stop.clone()).await;
}
