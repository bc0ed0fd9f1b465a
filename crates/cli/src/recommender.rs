//! `loadline recommender`: learns what the pods of each workload really use.

pub mod args;

use crate::component;
use anyhow::{Context, Result};
use args::{Like, Recommender};
use loadline_core::learn;
use loadline_core::load::Both;
use loadline_services::cluster::lease;
use loadline_services::recommender::{self, Options};

pub async fn run(args: &Recommender) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-recommender", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
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
    let status = options.status.clone();
    let start = |ctx| recommender::run(ctx, options);
    component::run(&identity, args.http_bind_address, move || status.readiness(), start).await
}
