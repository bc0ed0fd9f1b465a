//! What do all components need of the command line? A way to their cluster, and somewhere to say how they are.

use crate::debug;
use crate::signal::{self, End};
use anyhow::{Result, anyhow};
use axum::Router;
use loadline_services::Ctx;
use loadline_services::cluster::Access;
use loadline_services::serve;
use loadline_services::serve::probes::{self, Readiness};
use loadline_services::serve::process::Figures;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How the cluster is reached.
///
/// # Errors
/// When there is no way: a kubeconfig that cannot be read, or none outside of a cluster.
pub async fn access(kubeconfig: Option<&Path>) -> Result<Access> {
    let access = kubeconfig.map_or(Access::InCluster, |file| Access::Kubeconfig(file.to_owned()));
    let hint = if kubeconfig.is_none() { "; give --kubeconfig" } else { "" };
    access.connect().await.map_err(|problem| anyhow!("{problem}{hint}"))?;
    Ok(access)
}

/// What the one component of this process runs in. What the process uses is shown with what the component counts.
pub fn ctx(identity: &str, stop: &CancellationToken) -> Ctx {
    let ctx = Ctx::new(identity, stop.clone());
    ctx.metrics.register(|registry| registry.register_collector(&Figures::default(), &[]));
    ctx
}

/// Runs a component until it is told to end, with `/healthz`, `/readyz` and `/metrics` at an address if there is one; and, for this
/// machine, what [`debug`] has.
///
/// # Errors
/// When the address cannot be had, or the component ends by itself.
pub async fn run<E, F>(
    identity: &str,
    address: Option<SocketAddr>,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
    component: impl FnOnce(Ctx) -> F,
) -> Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    run_with(identity, address, readiness, Router::new(), component).await
}

/// The same, with more to ask for at that address.
///
/// # Errors
/// As [`run`].
pub async fn run_with<E, F>(
    identity: &str,
    address: Option<SocketAddr>,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
    more: Router,
    component: impl FnOnce(Ctx) -> F,
) -> Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    run_for(identity, address, readiness, more, Duration::ZERO, component).await
}

/// The same for what others ask: it goes on for so long after it was told to end, not ready any more.
///
/// # Errors
/// As [`run`].
pub async fn run_for<E, F>(
    identity: &str,
    address: Option<SocketAddr>,
    readiness: impl Fn() -> Readiness + Send + Sync + 'static,
    more: Router,
    delay: Duration,
    component: impl FnOnce(Ctx) -> F,
) -> Result<()>
where
    E: std::error::Error + Send + Sync + 'static,
    F: Future<Output = Result<(), E>>,
{
    let (ended, stop) = (signal::ended(), CancellationToken::new());
    let ctx = ctx(identity, &stop);
    if let Some(address) = address {
        let http = serve::listen(address, None, true).await?;
        tracing::info!(http = %http.address(), "listening");
        let readiness = probes::until(ctx.leaving.clone(), readiness);
        let router = probes::router(readiness, ctx.metrics.clone()).merge(more).merge(debug::router());
        tokio::spawn(serve::run(http, router, ctx.stop.clone()));
    }
    let end = End { delay, ..End::of(&ctx) };
    signal::until_ended(Box::pin(component(ctx)), &end, ended).await
}
