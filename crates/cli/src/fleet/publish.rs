//! `loadline fleet --publish`: how much of a member is requested and used.

use super::args::Fleet;
use anyhow::{Result, bail};
use clap::Args;

/// The flags of `--publish`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Publishing (--publish)")]
pub struct Publish {}

#[expect(clippy::unused_async, reason = "it will wait")]
pub async fn run(_: &Fleet) -> Result<()> {
    bail!("--publish is not there yet")
}
