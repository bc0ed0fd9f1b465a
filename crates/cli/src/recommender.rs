//! `loadline recommender`: learns what the pods of each workload really use.

pub mod args;

use crate::signal;
use anyhow::{Context, Result};
use args::{Like, Recommender};
use loadline_core::learn;
use loadline_core::load::Both;
use loadline_services::Ctx;
use loadline_services::cluster::{Access, lease};
use loadline_services::recommender::{self, Options};
use loadline_services::serve;
use loadline_services::serve::probes;
use tokio_util::sync::CancellationToken;

pub async fn run(args: &Recommender) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-recommender", &identity)?;
    let cluster = args.kubeconfig.clone().map_or(Access::InCluster, Access::Kubeconfig);
    let hint = if args.kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
    cluster.connect().await.map_err(|problem| anyhow::anyhow!("{problem}{hint}"))?;
    let like = match args.like {
        Like::Loadline => learn::Like::Loadline,
        Like::Crane => learn::Like::Crane(Both::default()),
    };
    let options = Options {
        learn: learn::Options { like, ..learn::Options::default() },
        every: args.metrics_interval,
        define: args.create_definition,
        lease,
        ..Options::new(cluster)
    };
    let stop = CancellationToken::new();
    let ctx = Ctx::new(&identity, stop.clone());
    if let Some(address) = args.http_bind_address {
        let http = serve::listen(address, None, true).await?;
        tracing::info!(http = %http.address(), "listening");
        let status = options.status.clone();
        let router = probes::router(move || status.readiness(), ctx.metrics.clone());
        tokio::spawn(serve::run(http, router, ctx.stop.clone()));
    }
    signal::until_ended(recommender::run(ctx, options), &stop).await
}
