//! `loadline rebalance`: moves pods away from nodes that are over their line, or says which it would move.

pub mod args;

use crate::component;
use crate::up::{load_rules, rules};
use anyhow::{Context, Result};
use args::Rebalance;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use loadline_core::load::policy::Rules;
use loadline_core::rebalance::Settings;
use loadline_manifests::{Manifests, RebalanceSettingsInput};
use loadline_services::cluster::lease;
use loadline_services::rebalance::{self, Last, Mode, Options, configuration};
use loadline_services::reload::Source;
use loadline_services::sources::metrics_api;

pub async fn run(args: &Rebalance) -> Result<()> {
    let settings = match &args.settings {
        Some(path) => {
            // What is wrong at the start ends it; later the last good ones stay.
            let manifests = Manifests::read(std::slice::from_ref(path), RebalanceSettingsInput::KINDS);
            RebalanceSettingsInput::read(manifests)?;
            Source::file(path, parse)
        }
        None => Source::Fixed(Box::default()),
    };
    let read = match (&args.policy, args.requests_only) {
        (_, true) => None,
        (None, false) => Some(Rules::default()),
        (Some(path), false) => Some(load_rules(path)?),
    };
    let rules = match &args.policy {
        // What comes through a pipe is there once.
        Some(path) if path.is_file() => {
            Source::file(path, |text: &str| Ok(configuration(Some(rules(text)?))))
        }
        _ => Source::Fixed(Box::new(configuration(read))),
    };
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-rebalance", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    if !args.act {
        tracing::warn!("preview: plans are told and nothing is moved; --act makes it act");
    }
    let options = Options {
        rules,
        settings,
        most: args.max_moves_per_hour,
        mode: if args.act { Mode::Act } else { Mode::Preview },
        cooling: args.cooling,
        measure: metrics_api::Options { every: args.metrics_interval, ..metrics_api::Options::default() },
        lease,
        ..Options::new(cluster)
    };
    let status = options.status.clone();
    let more = router(options.last.clone());
    let start = |ctx| rebalance::run(ctx, options);
    component::run_with(&identity, args.http_bind_address, move || status.readiness(), more, start).await
}

/// Settings from a text.
fn parse(text: &str) -> Result<Settings, String> {
    let manifests = Manifests::parse("settings", text, RebalanceSettingsInput::KINDS);
    Ok(RebalanceSettingsInput::read(manifests).map_err(|problems| problems.to_string())?.settings)
}

/// The last plan.
fn router(last: Last) -> Router {
    let plan = get(move || async move {
        let plan = last.get().ok_or((StatusCode::SERVICE_UNAVAILABLE, "there is no plan yet\n"))?;
        Ok::<_, (StatusCode, &str)>(([(header::CONTENT_TYPE, "application/json")], plan.to_string()))
    });
    Router::new().route("/debug/rebalance", plan)
}
