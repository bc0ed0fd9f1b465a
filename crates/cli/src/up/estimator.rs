//! The estimator of a fleet: one server that answers for all clusters of `up`.

use super::site::Site;
use anyhow::{Context, Result};
use loadline_core::estimate::{Ask, Given};
use loadline_core::resources::List;
use loadline_services::estimator::feed::{self, Source};
use loadline_services::estimator::metrics::Metrics;
use loadline_services::estimator::{Member, Members, server};
use loadline_services::serve;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The port Karmada's schedulers look for.
const PORT: u16 = 10352;

/// A running estimator.
pub struct Estimator {
    address: SocketAddr,
    members: Arc<Members>,
    ask: Ask,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl Estimator {
    /// Starts it and returns when it can answer for every cluster.
    pub async fn start(sites: &[Site]) -> Result<Self> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let members: Members =
            sites.iter().map(|site| (site.name.clone(), Arc::new(Member::default()))).collect();
        let members = Arc::new(members);
        for site in sites {
            let client = kube::Client::new(site.server.clone(), "default");
            let Some(member) = members.get(&site.name).cloned() else { continue };
            let options = feed::Options { quotas: true, load: None };
            tasks.spawn(feed::run(site.name.clone(), member, Source::Client(client), options, stop.clone()));
        }
        let listening = match serve::listen(at(PORT), None, false).await {
            // Somebody has it already, perhaps another `up`.
            Err(serve::Error::Bind { .. }) => serve::listen(at(0), None, false).await,
            other => other,
        };
        let listening = listening.context("cannot start the estimator")?;
        let address = listening.address();
        let routes = server::routes(members.clone(), server::Options::default(), Metrics::new(&members));
        tasks.spawn(serve::run(listening, routes, stop.clone()));
        for member in members.values() {
            let mut changes = member.changes();
            while member.known().is_none() {
                changes.changed().await.context("nobody follows the cluster")?;
            }
        }
        Ok(Self { address, members, ask: example(), tasks, stop })
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
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a task ended badly");
            }
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
