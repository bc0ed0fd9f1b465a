//! One cluster of `up`: an API server on a port of this machine, and the world behind it.

use super::{exporter, metrics};
use crate::args::{Component, Up};
use anyhow::{Context, Result};
use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_apiserver::{ApiServer, Config, listen};
use loadline_services::cluster::Access;
use loadline_services::dashboard::{self, Begin, Beside, Guard};
use loadline_services::reload::Source;
use loadline_services::sources::metrics_api;
use loadline_services::{Ctx, ask, scheduler, serve};
use loadline_sim::node::Exporters;
use loadline_sim::world::Scheduler;
use loadline_sim::{Options, World};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);
/// Time between two points of the dashboard's plots; time passes faster here.
const DASHBOARD_STEP: Duration = Duration::from_secs(5);
/// Up to so many nodes, the dashboard looks from the beginning.
const SMALL: usize = 200;

/// One cluster.
pub struct Site {
    /// What kubectl and the estimator call it.
    pub name: String,
    pub url: String,
    pub port: u16,
    /// Where what nodes export can be scraped.
    pub monitored_at: SocketAddr,
    /// Where its dashboard is, if there is one.
    pub shown_at: Option<SocketAddr>,
    pub server: ApiServer,
    pub world: World,
    serving: JoinHandle<Result<(), listen::Error>>,
    stop: CancellationToken,
}

impl Site {
    /// Starts a cluster and returns when its nodes are there. Every one looks a little different.
    pub async fn start(
        args: &Up,
        options: &Options,
        (number, name): (u16, String),
        beside: Beside,
    ) -> Result<Self> {
        let server = ApiServer::new(Config {
            seed: args.seed.map(|seed| seed.wrapping_add(u64::from(number))),
            ..Config::default()
        });
        let port =
            if args.port == 0 { 0 } else { args.port.checked_add(number).context("--port is too high")? };
        let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).await?;
        let (url, port) = (listening.url(), listening.address().port());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listening.serve(stop.clone().cancelled_owned()));
        let client = kube::Client::new(server.clone(), "default");
        let options = Options { seed: options.seed.wrapping_add(u64::from(number)), ..options.clone() };
        let exporters = Arc::new(Exporters::new(options.shapes()));
        let monitored = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, false).await?;
        let monitored_at = monitored.address();
        tokio::spawn(serve::run(monitored, exporter::router(exporters.clone(), monitored_at), stop.clone()));
        let sink = metrics(&server).and(move |figures| exporters.take(figures));
        let world = World::start(client, &options, sink).await.context("cannot start the nodes")?;
        let shown_at = if args.without.contains(&Component::Dashboard) {
            None
        } else {
            Some(dashboard(&name, &server, &options, (&world, beside), stop.clone()).await?)
        };
        Ok(Self { name, url, port, monitored_at, shown_at, server, world, serving, stop })
    }

    /// Ends it. Whoever keeps a connection open does not keep us.
    pub async fn stop(self) -> Result<()> {
        self.world.stop().await;
        self.stop.cancel();
        if let Ok(served) = tokio::time::timeout(GOODBYE, self.serving).await {
            served.context("the API server ended badly")??;
        }
        Ok(())
    }
}

/// Shows a cluster to this machine, by what its scheduler goes by; says where.
async fn dashboard(
    name: &str,
    server: &ApiServer,
    options: &Options,
    (world, beside): (&World, Beside),
    stop: CancellationToken,
) -> Result<SocketAddr> {
    let access = Access::Client(kube::Client::new(server.clone(), "default"));
    let rules = (options.scheduler != Scheduler::RequestsOnly).then(|| options.rules.clone());
    let profiles = ["default-scheduler", loadline_api::scheduler::NAME];
    let configuration = Configuration {
        profiles: profiles.map(|name| SchedulerProfile::new(name, rules.clone())).into(),
        ..Configuration::default()
    };
    let scheduler = scheduler::Options {
        configuration: Source::Fixed(Box::new(configuration)),
        measure: metrics_api::Options { every: options.measure, of: metrics_api::Of::NodesAndPods },
        ..scheduler::Options::new(access.clone())
    };
    let shown = dashboard::Options {
        scheduler,
        step: DASHBOARD_STEP,
        // Large worlds are there to be measured: nobody is to pay for a page nobody looks at.
        begin: if options.nodes > SMALL { Begin::WhenAsked } else { Begin::AtOnce },
        ..dashboard::Options::new(name, access)
    };
    let (asker, questions) = ask::channel();
    let beside = Beside { scheduler: world.scheduler().cloned(), agents: world.looked().clone(), ..beside };
    let router = dashboard::router(asker, shown.happenings.clone(), Guard::default(), beside);
    let listening = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, false).await?;
    let address = listening.address();
    tokio::spawn(serve::run(listening, router, stop.clone()));
    tokio::spawn(async move {
        if let Err(error) = dashboard::run(Ctx::new("loadline-dashboard", stop), shown, questions).await {
            tracing::error!(%error, "dashboard ended");
        }
    });
    Ok(address)
}
