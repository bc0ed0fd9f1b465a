//! `loadline dashboard`: shows a cluster to whoever looks, and changes nothing.

pub mod args;

use crate::scheduler::configuration;
use crate::signal::{self, End};
use crate::{component, debug};
use anyhow::{Context, Result, anyhow, bail};
use args::Dashboard;
use loadline_services::dashboard::{self, Beside, Guard, Options};
use loadline_services::serve::{self, Clients, Error, Listening, Tls, probes};
use loadline_services::sources::metrics_api;
use loadline_services::{ask, scheduler};
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// No token that could be guessed.
const SHORTEST_TOKEN: usize = 16;

pub async fn run(args: &Dashboard) -> Result<()> {
    let configuration = configuration(&args.rules, true)?;
    let guard = guard(args)?;
    let listening = listen(args).await?;
    let cluster = component::access(args.kubeconfig.as_deref()).await?;
    let measure = metrics_api::Options { every: args.metrics_interval, of: metrics_api::Of::NodesAndPods };
    let options = Options {
        scheduler: scheduler::Options { configuration, measure, ..scheduler::Options::new(cluster.clone()) },
        onlook: true,
        ..Options::new(&args.name, cluster)
    };
    let (ended, stop) = (signal::ended(), CancellationToken::new());
    let ctx = component::ctx("loadline-dashboard", &stop);
    let status = options.status.clone();
    let (asker, questions) = ask::channel();
    let (fleet, about_fleet) = ask::channel();
    let hub = match args.hub_kubeconfig.as_deref() {
        Some(path) => component::access(Some(path)).await?,
        None => options.scheduler.cluster.clone(),
    };
    let looks = dashboard::fleet::run(ctx.clone(), dashboard::fleet::Options { hub }, about_fleet);
    tokio::spawn(async move {
        if let Err(error) = looks.await {
            tracing::error!(%error, "the fleet is not shown");
        }
    });
    let beside = Beside {
        fleet: Some(fleet),
        scheduler: args.scheduler.clone().map(crate::explain::remote),
        ..Beside::default()
    };
    let readiness = probes::until(ctx.leaving.clone(), move || status.readiness());
    let others = probes::router(readiness, ctx.metrics.clone()).merge(debug::router());
    let others = dashboard::beside(others, args.listen.ip().is_loopback());
    let shown = dashboard::router(asker, options.happenings.clone(), guard, beside);
    let router = others.merge(shown);
    let scheme = if args.cert.is_some() { "https" } else { "http" };
    tracing::info!(url = format!("{scheme}://{}", listening.address()), "listening");
    tokio::spawn(serve::run(listening, router, stop.clone()));
    let end = End { delay: args.shutdown.shutdown_delay_duration, ..End::of(&ctx) };
    signal::until_ended(Box::pin(dashboard::run(ctx, options, questions)), &end, ended).await
}

/// Who may look: whoever is on this machine, or whoever has the token.
fn guard(args: &Dashboard) -> Result<Guard> {
    let tls = args.cert.is_some();
    let Some(path) = &args.token_file else {
        if !args.listen.ip().is_loopback() {
            bail!(
                "refusing to show the cluster on {} to everybody: give --token-file, or listen on 127.0.0.1",
                args.listen
            );
        }
        return Ok(Guard { token: None, tls });
    };
    token(path).map(|token| Guard { token: Some(token.into()), tls })
}

fn token(path: &Path) -> Result<String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
    let token = text.trim();
    let fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    if token.len() < SHORTEST_TOKEN || !token.bytes().all(fine) {
        bail!("{shown}: expected a token of {SHORTEST_TOKEN} letters, digits or -._~ at least");
    }
    Ok(token.to_owned())
}

async fn listen(args: &Dashboard) -> Result<Listening> {
    let tls = args.cert.clone().zip(args.key.clone()).map(|(certificate, key)| Tls {
        certificate,
        key,
        clients: Clients::Anyone,
        every: Tls::EVERY,
    });
    serve::listen(args.listen, tls, false).await.map_err(|error| match error {
        Error::Plaintext(address) => anyhow!(
            "refusing to show the cluster on {address} without TLS: give --cert and --key, or listen on 127.0.0.1"
        ),
        other => other.into(),
    })
}
