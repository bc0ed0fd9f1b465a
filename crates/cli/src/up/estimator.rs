//! The estimator of a fleet: one server that answers for all clusters of `up`.

use super::site::Site;
use anyhow::{Context, Result};
use loadline_core::estimate::{Ask, Given};
use loadline_core::resources::List;
use loadline_services::Ctx;
use loadline_services::cluster::Access;
use loadline_services::estimator::{self, Members, Options};
use loadline_services::serve;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The port Karmada's schedulers look for.
const PORT: u16 = 10352;

/// A running estimator.
pub struct Estimator {
    address: SocketAddr,
    members: Arc<Members>,
    ask: Ask,
    task: JoinHandle<Result<(), estimator::Error>>,
    stop: CancellationToken,
}

impl Estimator {
    /// Starts it and returns when it can answer for every cluster.
    pub async fn start(sites: &[Site]) -> Result<Self> {
        let listening = match serve::listen(at(PORT), None, false).await {
            // Somebody has it already, perhaps another `up`.
            Err(serve::Error::Bind { .. }) => serve::listen(at(0), None, false).await,
            other => other,
        };
        let listening = listening.context("cannot start the estimator")?;
        let address = listening.address();
        let client = |site: &Site| Access::Client(kube::Client::new(site.server.clone(), "default"));
        let clusters = sites.iter().map(|site| (site.name.clone(), client(site))).collect();
        let options = Options::new(clusters, listening);
        let (members, stop) = (options.members.clone(), CancellationToken::new());
        let task = tokio::spawn(estimator::run(Ctx::new("", stop.clone()), options));
        for member in members.values() {
            let mut changes = member.changes();
            while member.known().is_none() {
                changes.changed().await.context("nobody follows the cluster")?;
            }
        }
        Ok(Self { address, members, ask: example(), task, stop })
    }

    /// Where it answers.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many pods of a common size would fit in each cluster, in one line.
    pub fn room(&self) -> Option<String> {
        let mut parts = Vec::new();
        for (name, member) in self.members.iter() {
            let answer = member.known()?.view.replicas(&self.ask, &Given::default()).ok()?;
            parts.push(format!("{name} {}", answer.most));
        }
        Some(format!("room for pods of 1 cpu and 2Gi: {}", parts.join(", ")))
    }

    /// Ends it and waits for it.
    pub async fn stop(self) {
        self.stop.cancel();
        match self.task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(%error, "estimator ended"),
            Err(error) => tracing::error!(%error, "estimator ended badly"),
        }
    }
}

fn at(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A pod of a common size.
fn example() -> Ask {
    let amount = |text: &str| text.parse().unwrap_or_default();
    let requests = List::from([("cpu".to_owned(), amount("1")), ("memory".to_owned(), amount("2Gi"))]);
    Ask { requests, ..Ask::default() }
}
