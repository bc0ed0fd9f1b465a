//! `loadline fleet --api karmada`: which clusters get how many replicas.

use super::args::Fleet;
use anyhow::{Result, bail};
use clap::Args;

/// The flags of `--api karmada`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Bindings (--api karmada)")]
pub struct Bindings {}

#[expect(clippy::unused_async, reason = "it will wait")]
pub async fn run(_: &Fleet) -> Result<()> {
    bail!("--api karmada is not there yet")
}
