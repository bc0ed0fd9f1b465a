//! `loadline fleet --api ocm`: which clusters placements select.

use super::args::Fleet;
use anyhow::{Result, bail};
use clap::Args;

/// The flags of `--api ocm`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Placements (--api ocm)")]
pub struct Placements {}

#[expect(clippy::unused_async, reason = "it will wait")]
pub async fn run(_: &Fleet) -> Result<()> {
    bail!("--api ocm is not there yet")
}
