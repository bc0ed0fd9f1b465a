//! `loadline scheduler`: gives pods nodes in a real cluster, by measured load.

pub mod args;
mod extender;
mod shadow;

use crate::up::{load_rules, rules};
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
    let configuration = configuration(&args.rules, args.shadow)?;
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
    let delay = args.shutdown.shutdown_delay_duration;
    component::run_for(&identity, args.http_bind_address, move || readiness(&status), more, delay, start)
        .await
}

/// By what is decided: a configuration, a policy for all names, or neither. What is wrong with a file at the start ends it; later
/// the last good one stays.
pub(crate) fn configuration(args: &RuleFlags, shadow: bool) -> Result<Source<Configuration>> {
    if let Some(path) = &args.config {
        config::read(path)?;
        return Ok(Source::file(path, config::parse));
    }
    let read = flags(args, shadow)?;
    Ok(match &args.policy {
        // What comes through a pipe is there once.
        Some(path) if path.is_file() => {
            let names = names(args, shadow);
            Source::file(path, move |text: &str| Ok(alike(&names, Some(&rules(text)?))))
        }
        _ => Source::Fixed(Box::new(read)),
    })
}

/// What the flags come to now.
pub(crate) fn flags(args: &RuleFlags, shadow: bool) -> Result<Configuration> {
    let rules = match (&args.policy, args.requests_only) {
        (_, true) => None,
        (None, false) => Some(Rules::default()),
        (Some(path), false) => Some(load_rules(path)?),
    };
    Ok(alike(&names(args, shadow), rules.as_ref()))
}

fn names(args: &RuleFlags, shadow: bool) -> Vec<String> {
    let usual = if shadow { "default-scheduler" } else { loadline_api::scheduler::NAME };
    if args.names.is_empty() { vec![usual.to_owned()] } else { args.names.clone() }
}

/// The same rules for all names.
fn alike(names: &[String], rules: Option<&Rules>) -> Configuration {
    let profiles = names.iter().map(|name| SchedulerProfile::new(name, rules.cloned())).collect();
    Configuration { profiles, ..Configuration::default() }
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
