//! Our estimator, whole: watches of real API servers, index, gRPC on a port of this machine.

use loadline_services::ctx;
use loadline_services::estimator::metrics::Metrics;
use loadline_services::estimator::server::{Options, routes};
use loadline_services::estimator::{Known, Member, Members, follow};
use loadline_services::serve::{self, Tls};
use loadline_testkit::ControlPlane;
use loadline_testkit::running::PATIENCE;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A running estimator of ours. Dropping it ends it.
pub struct Ours {
    members: Arc<Members>,
    port: u16,
    stop: CancellationToken,
    runtime: Runtime,
}

impl Ours {
    /// Answers for these clusters, each by its name, once everything has been read.
    pub fn start(clusters: &[(&str, &ControlPlane)], tls: Option<Tls>, options: Options) -> Self {
        let runtime = Runtime::new().expect("a runtime");
        let stop = CancellationToken::new();
        let member = |(name, _): &(&str, _)| ((*name).to_owned(), Arc::new(Member::default()));
        let members: Arc<Members> = Arc::new(clusters.iter().map(member).collect());
        let watched = follow::Options { quotas: options.quotas, ..follow::Options::default() };
        for (name, plane) in clusters {
            let source = loadline_services::cluster::Access::Kubeconfig(plane.kubeconfig());
            let member = members[*name].clone();
            runtime.spawn(follow::run((*name).to_owned(), member, source, watched.clone(), stop.clone()));
        }
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listening = runtime.block_on(serve::listen(address, tls, false)).expect("an address");
        let port = listening.address().port();
        let router = routes(members.clone(), options, Metrics::new(&members, &ctx::Metrics::default()));
        runtime.spawn(serve::run(listening, router, stop.clone()));
        let ours = Self { members, port, stop, runtime };
        for (name, _) in clusters {
            ours.wait(name, |_| true);
        }
        ours
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Waits until what is known of a cluster is so.
    pub fn wait(&self, cluster: &str, so: impl Fn(&Known) -> bool) {
        let member = &self.members[cluster];
        let mut changes = member.changes();
        let until = async {
            loop {
                // Marked as seen before the look, so that no change in between is missed.
                changes.borrow_and_update();
                if member.known().is_some_and(|known| so(&known)) {
                    return;
                }
                changes.changed().await.expect("the member is here");
            }
        };
        let known = self.runtime.block_on(async { timeout(PATIENCE, until).await });
        assert!(known.is_ok(), "{cluster} is not as expected: {:?}", member.status());
    }
}

impl Drop for Ours {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
