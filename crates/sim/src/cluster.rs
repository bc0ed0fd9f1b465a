//! What is in the cluster now? One watch per kind, shared by everything that simulates.

mod meta;
mod pod;
mod workload;

pub use loadline_core::object::{Key, Meta};
pub use loadline_services::cluster::write::{Patch, Writer};
pub use loadline_services::cluster::{Failure, SharedStore, resource};
pub use meta::{ObjectMeta, Owner};
pub use pod::{Container, Node, Pod};
pub use workload::{
    Amount, Budget, Condition, Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus, Strategy,
};

use loadline_services::cluster::{Connection, Watched};
use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The name simulated nodes and controllers write under.
const MANAGER: &str = "loadline-sim";

/// Everything that is watched, and a way to write.
#[derive(Debug)]
pub struct Cluster {
    /// How to write.
    pub write: Writer,
    /// Pods of all namespaces, also by the identity of their controller.
    pub pods: Arc<SharedStore<Pod>>,
    pub nodes: Arc<SharedStore<Node>>,
    /// Replica sets of all namespaces, also by the identity of their controller.
    pub sets: Arc<SharedStore<ReplicaSet>>,
    /// Deployments of all namespaces.
    pub deployments: Arc<SharedStore<Deployment>>,
    /// Disruption budgets of all namespaces.
    pub budgets: Arc<SharedStore<Budget>>,
}

impl Cluster {
    /// Nothing is watched yet: listeners are added first, so that they miss nothing.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self {
            write: Writer::new(Connection::new(client), MANAGER),
            pods: Arc::new(SharedStore::indexed(|pod: &Pod| controller(&pod.meta))),
            nodes: Arc::default(),
            sets: Arc::new(SharedStore::indexed(|set: &ReplicaSet| controller(&set.meta))),
            deployments: Arc::default(),
            budgets: Arc::default(),
        }
    }

    /// Starts the watches nodes and controllers need: nodes and pods.
    pub fn follow_pods(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        self.follow(&self.nodes, tasks, stop);
        self.follow(&self.pods, tasks, stop);
    }

    /// Starts the watches the controllers need beyond pods.
    pub fn follow_workloads(&self, tasks: &mut JoinSet<()>, stop: &CancellationToken) {
        self.follow(&self.sets, tasks, stop);
        self.follow(&self.deployments, tasks, stop);
        self.follow(&self.budgets, tasks, stop);
    }

    fn follow<W: Watched<Facts: Sync>>(
        &self,
        store: &Arc<SharedStore<W>>,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) {
        tasks.spawn(store.clone().follow(self.write.connection().clone(), stop.clone()));
    }
}

fn controller(meta: &ObjectMeta) -> Option<&Arc<str>> {
    meta.owner.as_ref().map(|owner| &owner.uid)
}
