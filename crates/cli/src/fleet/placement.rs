//! `loadline fleet --api ocm`: which clusters placements select.

use super::args::Fleet;
use crate::args::PlaceRules;
use crate::component;
use anyhow::{Context, Result};
use clap::Args;
use loadline_services::cluster::lease;
use loadline_services::fleet::placement::{self, Options};

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
    let status = options.status.clone();
    let start = |ctx| placement::run(ctx, options);
    component::run(&identity, args.http_bind_address, move || status.readiness(), start).await
}
