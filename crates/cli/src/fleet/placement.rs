//! `loadline fleet --api ocm`: which clusters placements select.

use super::args::Fleet;
use crate::args::PlaceRules;
use crate::component;
use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse as _;
use axum::routing::get;
use clap::Args;
use loadline_api::ocm::debug;
use loadline_core::object::Key;
use loadline_services::cluster::lease;
use loadline_services::fleet::placement::{self, Options, Questions};

/// The flags of `--api ocm`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Placements (--api ocm)")]
pub struct Placements {
    #[command(flatten)]
    pub rules: PlaceRules,
}

pub async fn run(args: &Fleet) -> Result<()> {
    let identity = lease::identity().context("this machine has no name")?;
    let lease = args.election.lease("loadline-placement", &identity)?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let options = Options { place: args.placements.rules.options(), lease, ..Options::new(cluster) };
    let (status, why) = (options.status.clone(), router(options.questions.clone()));
    let start = |ctx| placement::run(ctx, options);
    component::run_with(&identity, args.http_bind_address, move || status.readiness(), why, start).await
}

/// Answers as OCM's debug endpoint does, for placements that are there. Who may reach the address may ask.
fn router(questions: Questions) -> Router {
    let explain = move |Path((namespace, name)): Path<(String, String)>| {
        let questions = questions.clone();
        async move {
            let key = Key::new(namespace, name);
            match questions.ask(key.clone()).await {
                Some(report) => {
                    let kind = [(header::CONTENT_TYPE, "application/json")];
                    (kind, debug::document(&key, &report).to_string()).into_response()
                }
                None => {
                    (StatusCode::NOT_FOUND, format!("placement '{}' not found\n", key.name)).into_response()
                }
            }
        }
    };
    Router::new().route("/debug/placements/{namespace}/{name}", get(explain))
}
