//! An estimator that answers on a real socket, from clusters made up in a few words.

#![allow(dead_code, reason = "each test program uses a part of it")]

use loadline_api::estimator::service::estimator_client::EstimatorClient;
use loadline_core::estimate::Index;
use loadline_core::view::build;
use loadline_services::ctx;
use loadline_services::estimator::metrics::Metrics;
use loadline_services::estimator::server::{Options, routes};
use loadline_services::estimator::{Known, Member, Members};
use loadline_services::serve::{self, Limits, Listening, Tls};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tonic::transport::{Channel, Endpoint};

/// Members of these names, of which nothing is known yet.
pub fn members(names: &[&str]) -> Arc<Members> {
    Arc::new(names.iter().map(|name| ((*name).to_owned(), Arc::new(Member::default()))).collect())
}

/// A cluster of so many nodes of that many cores, with these labels.
pub fn cluster(nodes: usize, cores: &str, labels: &[(&str, &str)]) -> Index {
    let mut index = Index::new();
    for i in 0..nodes {
        let node = build::node(&format!("n{i}")).cpu(cores).memory("64Gi");
        let node = labels.iter().fold(node, |node, (key, value)| node.label(key, value));
        index.set_node(&node.facts());
    }
    index
}

/// Makes a cluster known.
pub fn publish(members: &Members, name: &str, index: &Index) {
    members[name].publish(Known { view: index.publish(), ..Known::default() });
}

/// An estimator on loopback.
pub struct Serving {
    pub address: SocketAddr,
    pub metrics: ctx::Metrics,
    pub estimator: Arc<Metrics>,
    pub stop: CancellationToken,
    pub task: JoinHandle<()>,
    pub certificates: Option<Arc<serve::Certificates>>,
}

impl Serving {
    pub async fn start(members: &Arc<Members>, options: Options) -> Self {
        Self::with(members, options, None, Limits::default()).await
    }

    pub async fn with(members: &Arc<Members>, options: Options, tls: Option<Tls>, limits: Limits) -> Self {
        let any_port = SocketAddr::from(([127, 0, 0, 1], 0));
        let listening: Listening = serve::listen(any_port, tls, false).await.expect("a free port");
        let listening = listening.limited(limits);
        let (metrics, stop) = (ctx::Metrics::default(), CancellationToken::new());
        let estimator = Metrics::new(members, &metrics);
        let router = routes(members.clone(), options, estimator.clone());
        let (address, certificates) = (listening.address(), listening.certificates());
        let task = tokio::spawn(serve::run(listening, router, stop.clone()));
        Self { address, metrics, estimator, stop, task, certificates }
    }

    pub async fn channel(&self) -> Channel {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address)).expect("an address");
        endpoint.connect().await.expect("a connection")
    }

    pub async fn client(&self) -> EstimatorClient<Channel> {
        EstimatorClient::new(self.channel().await)
    }

    /// Tells it to stop and waits until it has.
    pub async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("an orderly end");
    }
}
