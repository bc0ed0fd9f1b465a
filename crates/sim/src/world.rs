//! How does all of it start and end together?

use crate::bind::{self, Scheduler, Tally};
use crate::cluster::{Cluster, Error};
use crate::control::run::Controllers;
use crate::node::{Kubelets, Sink};
use crate::protect::{self, Agents};
use crate::scenario::{self, Scenario};
use crate::tell::{Notice, Teller};
use crate::workloads;
use kube::Client;
use loadline_core::view::Phase;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many nodes.
    pub nodes: usize,
    /// What nodes look like and pods use follows from it.
    pub seed: u64,
    /// Whether Deployments, replica sets and disruption budgets are looked after, or somebody else does.
    pub controllers: bool,
    /// How many workloads are created, one by one, without anybody doing anything; with any, some nodes are busy
    /// from the start.
    pub workloads: usize,
    /// How pods are given nodes; none leaves that to somebody else.
    pub scheduler: Option<bind::Options>,
    /// How nodes are kept from being overrun; none leaves that to somebody else.
    pub protect: Option<protect::Options>,
    /// What is made to happen, if anything.
    pub scenario: Option<Scenario>,
    /// Time between two heartbeats of a node.
    pub heartbeat: Duration,
    /// Time between two reports of what is used.
    pub figures: Duration,
    /// How many times as fast time passes in the traces of what pods use: 60 makes a day of 24 minutes.
    pub pace: u32,
    /// How long containers take to start.
    pub start_after: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 10,
            seed: 1,
            controllers: true,
            workloads: 0,
            scheduler: Some(bind::Options::default()),
            protect: None,
            scenario: None,
            heartbeat: Duration::from_secs(10),
            figures: Duration::from_secs(5),
            pace: 60,
            start_after: Duration::ZERO,
        }
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self) {
        self.add_all(1);
    }

    pub(crate) fn add_all(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    /// How many so far.
    #[must_use]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What happened so far.
#[derive(Debug, Default)]
pub struct Counts {
    /// Pods made by replica sets.
    pub made: Count,
    /// Pods bound to a node.
    pub bound: Count,
    /// Pods that at first fitted nowhere.
    pub unschedulable: Count,
    /// Pods evicted for more important ones.
    pub evicted: Count,
    /// Containers that were slowed down to relieve their node, each time.
    pub throttled: Count,
    /// Containers that got something back, each time.
    pub restored: Count,
    /// Pods evicted to relieve their node.
    pub relieved: Count,
    /// Pods started.
    pub started: Count,
    /// Pods that ended by themselves.
    pub succeeded: Count,
    /// Pods that ended because they were deleted.
    pub stopped: Count,
}

/// A running simulation. [`World::stop`] ends it; dropping it ends it, too, without waiting.
#[derive(Debug)]
pub struct World {
    cluster: Arc<Cluster>,
    counts: Arc<Counts>,
    notices: Option<mpsc::Receiver<Notice>>,
    tally: Option<watch::Receiver<Tally>>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl World {
    /// Starts everything and returns when all nodes are registered.
    ///
    /// # Errors
    /// When a node cannot be registered, or protection not be set up.
    pub async fn start(client: Client, options: &Options, sink: Sink) -> Result<Self, Error> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let cluster = Arc::new(Cluster::new(client));
        let counts = Arc::<Counts>::default();
        let (tell, notices) = Teller::start(cluster.write.clone(), &mut tasks, &stop);
        // Everybody listens before anything is watched, so nobody misses anything.
        let kubelets = Kubelets::new(cluster.clone(), options, sink, tell.clone(), counts.clone());
        let scheduler = options
            .scheduler
            .as_ref()
            .map(|options| Scheduler::new(cluster.write.clone(), options, tell.clone(), counts.clone()));
        let agents = options.protect.as_ref().map(|options| {
            Agents::new(cluster.clone(), kubelets.clone(), options, tell.clone(), counts.clone())
        });
        let controllers =
            options.controllers.then(|| Controllers::new(cluster.clone(), tell.clone(), counts.clone()));
        cluster.follow_pods(&mut tasks, &stop);
        cluster.nodes.ready().await;
        cluster.pods.ready().await;
        kubelets.start(&mut tasks, &stop).await?;
        let tally = scheduler.map(|scheduler| scheduler.start(&mut tasks, &stop));
        if let Some(controllers) = controllers {
            cluster.follow_workloads(&mut tasks, &stop);
            cluster.sets.ready().await;
            cluster.deployments.ready().await;
            cluster.budgets.ready().await;
            controllers.start(&mut tasks, &stop);
        }
        if let Some(agents) = agents {
            agents.start(&mut tasks, &stop).await?;
        }
        if let Some(scenario) = options.scenario {
            let write = cluster.write.clone();
            tasks.spawn(scenario::play(scenario, (options.nodes, options.seed), write, tell, stop.clone()));
        }
        let write = cluster.write.clone();
        let (count, nodes, seed) = (options.workloads, options.nodes, options.seed);
        tasks.spawn(workloads::create(count, nodes, seed, write, stop.clone()));
        Ok(Self { cluster, counts, notices: Some(notices), tally, tasks, stop })
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What came of scheduling so far; nothing if somebody else does it.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.tally.as_ref().map(|tally| tally.borrow().clone()).unwrap_or_default()
    }

    /// What is in the cluster, as the watches told last.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Pods that run now.
    #[must_use]
    pub fn running(&self) -> usize {
        self.cluster.pods.count(|pod| pod.phase == Phase::Running && !pod.meta.is_deleted())
    }

    /// What a person watching would want to know; there is one listener.
    #[must_use]
    pub fn notices(&mut self) -> Option<mpsc::Receiver<Notice>> {
        self.notices.take()
    }

    /// Ends everything and waits for it.
    pub async fn stop(mut self) {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a task ended badly");
            }
        }
    }
}
