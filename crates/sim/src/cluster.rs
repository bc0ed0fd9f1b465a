//! What is in the cluster now? One watch per kind, shared by everything that simulates.

mod meta;
mod pod;
mod shelf;
mod workload;
mod write;

pub use meta::{Key, Meta, Owner};
pub use pod::{Container, Node, Pod};
pub use shelf::{Kept, Shelf};
pub use workload::{
    Amount, Budget, Condition, Deployment, DeploymentStatus, ReplicaSet, ReplicaSetStatus, Strategy,
};
pub use write::{Error, Patch, Writer};

use std::sync::Arc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Everything that is watched, and a way to write.
#[derive(Debug)]
pub struct Cluster {
    /// How to write.
    pub write: Writer,
    /// Pods of all namespaces.
    pub pods: Arc<Shelf<Pod>>,
    pub nodes: Arc<Shelf<Node>>,
    /// Replica sets of all namespaces.
    pub sets: Arc<Shelf<ReplicaSet>>,
    /// Deployments of all namespaces.
    pub deployments: Arc<Shelf<Deployment>>,
    /// Disruption budgets of all namespaces.
    pub budgets: Arc<Shelf<Budget>>,
}

impl Cluster {
    /// Nothing is watched yet: listeners are added first, so that they miss nothing.
    #[must_use]
    pub fn new(client: kube::Client) -> Self {
        Self {
            write: Writer::new(client),
            pods: Arc::default(),
            nodes: Arc::default(),
            sets: Arc::default(),
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

    /// Starts one watch.
    pub(crate) fn follow<T: Kept>(
        &self,
        kept: &Arc<Shelf<T>>,
        tasks: &mut JoinSet<()>,
        stop: &CancellationToken,
    ) {
        tasks.spawn(shelf::follow(self.write.client().clone(), kept.clone(), stop.clone()));
    }
}
