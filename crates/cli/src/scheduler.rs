//! `loadline scheduler`: gives pods nodes in a real cluster, by measured load.

pub mod args;

use crate::component;
use crate::up::load_rules;
use anyhow::{Context, Result};
use args::Scheduler;
use loadline_core::load::policy::Rules;
use loadline_services::cluster::lease;
use loadline_services::scheduler::{self, Options, Phase, Status};
use loadline_services::serve::probes::Readiness;
use loadline_services::sources::metrics_api;

pub async fn run(args: &Scheduler) -> Result<()> {
    let rules = match (&args.policy, args.requests_only) {
        (_, true) => None,
        (None, false) => Some(Rules::default()),
        (Some(path), false) => Some(load_rules(path)?),
    };
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-scheduler", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let options = Options {
        names: args.names.clone(),
        rules,
        measure: metrics_api::Options { every: args.metrics_interval, ..metrics_api::Options::default() },
        lease,
        ..Options::new(cluster)
    };
    let status = options.status.clone();
    let start = |ctx| scheduler::run(ctx, options);
    component::run(&identity, args.http_bind_address, move || readiness(&status), start).await
}

fn readiness(status: &Status) -> Readiness {
    let (ready, progress) = match status.phase() {
        Phase::Reading => (false, "reading the cluster\n"),
        Phase::Standby => (true, "standing by: another one leads\n"),
        Phase::Active => (true, "active\n"),
    };
    Readiness { ready, progress: progress.to_owned() }
}
