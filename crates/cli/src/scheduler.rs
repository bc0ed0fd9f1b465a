//! `loadline scheduler`: gives pods nodes in a real cluster, by measured load.

pub mod args;
mod extender;
mod shadow;

use crate::up::load_rules;
use crate::{component, config};
use anyhow::{Context, Result};
use args::{RuleFlags, Scheduler};
use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_core::load::policy::Rules;
use loadline_services::ask;
use loadline_services::cluster::lease;
use loadline_services::reload::Source;
use loadline_services::scheduler::{self, Options, Phase, Status};
use loadline_services::serve::probes::Readiness;
use loadline_services::sources::metrics_api;

pub async fn run(args: &Scheduler) -> Result<()> {
    let configuration = match &args.rules.config {
        Some(path) => {
            // What is wrong at the start ends it; later the last good one stays.
            config::read(path)?;
            Source::File(path.clone(), config::parse)
        }
        None => Source::Fixed(Box::new(flags(&args.rules, args.shadow)?)),
    };
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-scheduler", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let options = Options {
        configuration,
        measure: metrics_api::Options { every: args.metrics_interval, ..metrics_api::Options::default() },
        lease,
        extender: args.extender.listen().await?,
        ..Options::new(cluster)
    };
    let status = options.status.clone();
    if args.shadow {
        return shadow::run(&identity, args.http_bind_address, options).await;
    }
    let (asker, questions) = ask::channel();
    let start = |ctx| scheduler::run_asked(ctx, options, questions);
    let more = crate::explain::router(asker.clone()).merge(crate::explain::decisions(asker));
    component::run_with(&identity, args.http_bind_address, move || readiness(&status), more, start).await
}

/// What the flags come to: the same rules for all names.
pub(crate) fn flags(args: &RuleFlags, shadow: bool) -> Result<Configuration> {
    let rules = match (&args.policy, args.requests_only) {
        (_, true) => None,
        (None, false) => Some(Rules::default()),
        (Some(path), false) => Some(load_rules(path)?),
    };
    let usual = if shadow { "default-scheduler" } else { loadline_api::scheduler::NAME };
    let names = if args.names.is_empty() { vec![usual.to_owned()] } else { args.names.clone() };
    let profiles = names.iter().map(|name| SchedulerProfile::new(name, rules.clone())).collect();
    Ok(Configuration { profiles, ..Configuration::default() })
}

pub(crate) fn readiness(status: &Status) -> Readiness {
    let (ready, progress) = match status.phase() {
        Phase::Reading => (false, "reading the cluster\n"),
        Phase::Standby => (true, "standing by: another one leads\n"),
        Phase::Active => (true, "active\n"),
    };
    let problem = status.problem().map(|problem| format!("configuration: {problem}\n"));
    Readiness { ready, progress: progress.to_owned() + &problem.unwrap_or_default() }
}
