//! One cluster of `up`: an API server on a port of this machine, and the world behind it.

use super::{exporter, metrics};
use crate::args::Up;
use anyhow::{Context, Result};
use loadline_apiserver::{ApiServer, Config, listen};
use loadline_services::serve;
use loadline_sim::node::Exporters;
use loadline_sim::{Options, World};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// How long open requests may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// One cluster.
pub struct Site {
    /// What kubectl and the estimator call it.
    pub name: String,
    pub url: String,
    pub port: u16,
    /// Where what nodes export can be scraped.
    pub monitored_at: SocketAddr,
    pub server: ApiServer,
    pub world: World,
    serving: JoinHandle<Result<(), listen::Error>>,
    stop: CancellationToken,
}

impl Site {
    /// Starts a cluster and returns when its nodes are there. Every one looks a little different.
    pub async fn start(args: &Up, options: &Options, number: u16) -> Result<Self> {
        let name = if args.clusters > 1 { format!("member{}", number + 1) } else { "loadline".to_owned() };
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
        let exporters = Arc::new(Exporters::new(options.nodes, options.seed));
        let monitored = serve::listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), None, false).await?;
        let monitored_at = monitored.address();
        tokio::spawn(serve::run(monitored, exporter::router(exporters.clone(), monitored_at), stop.clone()));
        let sink = metrics(&server).and(move |figures| exporters.take(figures));
        let world = World::start(client, &options, sink).await.context("cannot start the nodes")?;
        Ok(Self { name, url, port, monitored_at, server, world, serving, stop })
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
