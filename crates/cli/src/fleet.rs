//! `loadline fleet`: decides for a whole fleet, in a hub cluster; or tells the hub how loaded a member is.

pub mod args;
pub mod binding;
mod placement;
mod publish;

use anyhow::Result;
use args::{Api, Fleet};

pub async fn run(args: &Fleet) -> Result<()> {
    match args.api {
        Some(Api::Ocm) => placement::run(args).await,
        Some(Api::Karmada) => binding::run(args).await,
        None => publish::run(args).await,
    }
}
