//! How does all of it start and end together?

use crate::cluster::{Cluster, Failure};
use crate::control::run::Controllers;
use crate::host::SimulatedHost;
use crate::node::{Folders, Kubelets, Machines, NodeFolder, Shape, Sink};
use crate::observe::{Observer, Tally};
use crate::scenario::{self, Scenario};
use crate::tell::Teller;
use crate::workloads;
use jiff::SignedDuration;
use kube::Client;
use loadline_api::recommendation;
use loadline_api::scheduler::{Configuration, SchedulerProfile};
use loadline_core::load::policy::Rules;
use loadline_core::rebalance::Settings;
use loadline_core::view::Phase;
use loadline_services::agent::Looked;
use loadline_services::cluster::{Access, Recorder};
use loadline_services::ctx::{Ctx, Metrics, Notice, Notices};
use loadline_services::node::Runtime;
use loadline_services::node::local::{self, Local};
use loadline_services::reload::Source;
use loadline_services::sources::metrics_api;
use loadline_services::{agent, annotator, ask, rebalance, recommender, scheduler};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Pods that name nobody name this one.
const DEFAULT_SCHEDULER: &str = "default-scheduler";
/// Pods that name this one always come to ours.
pub const OWN_SCHEDULER: &str = "loadline";
/// No call to the runtime of a simulated node may take longer.
const RUNTIME_DEADLINE: Duration = Duration::from_secs(2);
/// Where the agent of a simulated node keeps its journal.
const JOURNAL: &str = "var/lib/loadline/agent";
/// For how long a node is left alone that gave up a pod.
const COOLING: Duration = Duration::from_secs(30);
/// Notices waiting to be read.
const WAITING_NOTICES: usize = 256;

/// What to simulate.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many nodes.
    pub nodes: usize,
    /// What nodes look like and pods use follows from it.
    pub seed: u64,
    /// What of that does not.
    pub machines: Machines,
    /// Whether Deployments, replica sets and disruption budgets are looked after, or somebody else does.
    pub controllers: bool,
    /// How many workloads are created, one by one, without anybody doing anything; with any, some nodes are busy
    /// from the start.
    pub workloads: usize,
    /// How pods are given nodes.
    pub scheduler: Scheduler,
    /// What is too much load.
    pub rules: Rules,
    /// Time between two looks at measurements.
    pub measure: Duration,
    /// Time between two looks of the agents that keep nodes from being overrun; none leaves that to somebody else.
    pub protect: Option<Duration>,
    /// Time between two looks at what pods use, to learn from; none learns nothing.
    pub learn: Option<Duration>,
    /// Is it planned, or even done, to move pods away from nodes over their line? None leaves that to somebody else.
    pub rebalance: Option<rebalance::Mode>,
    /// Is load written on nodes?
    pub annotate: bool,
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
    /// Lets nodes be looked into as real ones can; worlds of more than [`Folders::MOST_NODES`] have none that can.
    pub folders: Option<Folders>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: 10,
            seed: 1,
            machines: Machines::default(),
            controllers: true,
            workloads: 0,
            scheduler: Scheduler::LoadAware,
            rules: Rules::default(),
            measure: Duration::from_secs(2),
            protect: None,
            learn: None,
            rebalance: None,
            annotate: false,
            scenario: None,
            heartbeat: Duration::from_secs(10),
            figures: Duration::from_secs(5),
            pace: 60,
            start_after: Duration::ZERO,
            folders: None,
        }
    }
}

/// Who gives pods nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Ours, by load.
    LoadAware,
    /// Ours, by load, for pods that name it; somebody else for the others.
    LoadAwareIfNamed,
    /// Ours, by requests alone.
    RequestsOnly,
    /// Somebody else.
    Other,
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
    /// What the scheduler did.
    pub scheduler: scheduler::Metrics,
    /// What the agents did.
    pub agent: agent::Metrics,
    /// What was learned.
    pub recommender: recommender::Metrics,
    /// What was moved.
    pub rebalance: rebalance::Metrics,
    /// Pods started.
    pub started: Count,
    /// Pods that ended by themselves.
    pub succeeded: Count,
    /// Pods that ended because they were deleted.
    pub stopped: Count,
}

impl Options {
    /// The nodes there are.
    pub fn shapes(&self) -> impl Iterator<Item = Shape> {
        (0..self.nodes).map(|index| Shape::new(index, self.nodes, self.seed).on(&self.machines))
    }

    /// Where nodes can be looked into, if they can.
    pub(crate) fn folders(&self) -> Option<&Folders> {
        self.folders.as_ref().filter(|_| self.nodes <= Folders::MOST_NODES)
    }

    /// How our scheduler is started, if it is.
    fn scheduler(&self, cluster: Access, counts: &Counts) -> Option<scheduler::Options> {
        if self.scheduler == Scheduler::Other {
            return None;
        }
        let measure = metrics_api::Options { every: self.measure, of: metrics_api::Of::NodesAndPods };
        let rules = (self.scheduler != Scheduler::RequestsOnly).then(|| self.rules.clone());
        let is_named = self.scheduler == Scheduler::LoadAwareIfNamed;
        let names = if is_named { vec![OWN_SCHEDULER] } else { vec![DEFAULT_SCHEDULER, OWN_SCHEDULER] };
        Some(scheduler::Options {
            configuration: Source::Fixed(Box::new(Configuration {
                profiles: names.into_iter().map(|name| SchedulerProfile::new(name, rules.clone())).collect(),
                ..Configuration::default()
            })),
            measure,
            metrics: counts.scheduler.clone(),
            ..scheduler::Options::new(cluster)
        })
    }
}

/// Time passes faster here, so a minute is long.
fn moving() -> Settings {
    Settings {
        // So small a world has no load to spare: every node over its line is to be seen to give up pods.
        slack: loadline_core::load::ratio::Ratio::ZERO,
        over_for: SignedDuration::from_secs(10),
        high_for: SignedDuration::from_mins(5),
        dwell: SignedDuration::from_mins(5),
        warm_up: SignedDuration::from_secs(15),
        ..Settings::default()
    }
}

/// One agent for each node that can be looked into, as on real ones; else one for all, which is told what they use.
fn agents(
    world: &Options,
    every: Duration,
    client: &Client,
    (cluster, kubelets): (&Arc<Cluster>, Arc<Kubelets>),
    counts: &Counts,
) -> Vec<agent::Options> {
    let one = |nodes: agent::Nodes, host: Arc<dyn agent::Host>| agent::Options {
        every,
        metrics: counts.agent.clone(),
        ..agent::Options::new(Access::Client(client.clone()), nodes, host)
    };
    let Some(folders) = world.folders() else {
        return vec![one(agent::Nodes::All, Arc::new(SimulatedHost::new(cluster.clone(), kubelets)))];
    };
    let of_node = |node: Arc<str>| {
        let folder = folders.of(&node);
        // The path was tried when the folders were made.
        let runtime = Runtime::at(folder.socket(), RUNTIME_DEADLINE).ok()?;
        let host = Local::new(local::Options {
            node: node.clone(),
            root: folder.root().to_owned(),
            cgroup_root: String::new(),
            interfaces: Vec::new(),
            count_iowait: false,
            longest: every.saturating_mul(3),
            actuator: local::Actuator::Runtime(Box::new(runtime)),
        });
        let journal = Some(folder.root().join(JOURNAL));
        Some(agent::Options { journal, ..one(agent::Nodes::One(node.to_string()), Arc::new(host)) })
    };
    let nodes = cluster.nodes.all();
    nodes.iter().filter_map(|node| of_node(node.meta.id.key.name.clone())).collect()
}

/// Runs a component that is to run until the end.
async fn component<E: std::error::Error>(
    name: &'static str,
    running: impl Future<Output = Result<(), E>>,
    stop: CancellationToken,
) {
    let ended = running.await;
    if !stop.is_cancelled() {
        let error = ended.err().map(|error| error.to_string());
        tracing::error!(component = name, error, "component ended");
    }
}

/// A running simulation. [`World::stop`] ends it; dropping it ends it, too, without waiting.
#[derive(Debug)]
pub struct World {
    cluster: Arc<Cluster>,
    counts: Arc<Counts>,
    notices: Option<mpsc::Receiver<Notice>>,
    observer: Arc<Observer>,
    folders: Option<Folders>,
    asker: Option<scheduler::explain::Asker>,
    looked: Arc<BTreeMap<String, Looked>>,
    tasks: JoinSet<()>,
    stop: CancellationToken,
}

impl World {
    /// Starts everything and returns when all nodes are registered.
    ///
    /// # Errors
    /// When a node cannot be registered, or the kinds of protection not be defined.
    pub async fn start(client: Client, options: &Options, sink: Sink) -> Result<Self, Failure> {
        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let cluster = Arc::new(Cluster::new(client.clone()));
        let counts = Arc::<Counts>::default();
        let (listener, notices) = mpsc::channel(WAITING_NOTICES);
        let ctx = Ctx { notices: Notices::to(listener), ..Ctx::new("loadline", stop.clone()) };
        let (events, recording) =
            Recorder::new(cluster.write.clone(), "loadline-sim", "loadline", stop.clone());
        tasks.spawn(recording);
        let tell = Teller { events, notices: ctx.notices.clone() };
        // Everybody listens before anything is watched, so nobody misses anything.
        let observer = Observer::new(&cluster, options.rules.clone());
        let kubelets =
            Kubelets::new(cluster.clone(), options, (sink, observer.clone()), tell.clone(), counts.clone());
        let controllers =
            options.controllers.then(|| Controllers::new(cluster.clone(), tell.clone(), counts.clone()));
        cluster.follow_pods(&mut tasks, &stop);
        cluster.nodes.ready().await;
        cluster.pods.ready().await;
        kubelets.start(&mut tasks, &stop).await?;
        if let Some(every) = options.learn {
            // The kind is there before anybody looks for it.
            if let Ok(definition) = serde_saphyr::from_str(recommendation::DEFINITION) {
                cluster.write.define(&definition).await?;
            }
            let options = recommender::Options {
                every,
                metrics: counts.recommender.clone(),
                ..recommender::Options::new(Access::Client(client.clone()))
            };
            tasks.spawn(component("recommender", recommender::run(ctx.clone(), options), stop.clone()));
        }
        if options.annotate {
            let measure = metrics_api::Options { every: options.measure, of: metrics_api::Of::Nodes };
            let options = annotator::Options {
                policy: Source::Fixed(Box::new(options.rules.clone())),
                measure: Some(measure),
                ..annotator::Options::new(Access::Client(client.clone()))
            };
            tasks.spawn(component("annotator", annotator::run(ctx.clone(), options), stop.clone()));
        }
        let mut asked_by = None;
        if let Some(options) = options.scheduler(Access::Client(client.clone()), &counts) {
            let (asker, questions) = ask::channel();
            asked_by = Some(asker);
            tasks.spawn(component(
                "scheduler",
                scheduler::run_asked(ctx.clone(), options, questions),
                stop.clone(),
            ));
        }
        if let Some(mode) = options.rebalance {
            let measure = metrics_api::Options { every: options.measure, of: metrics_api::Of::NodesAndPods };
            let options = rebalance::Options {
                rules: Source::Fixed(Box::new(rebalance::configuration(
                    (options.scheduler != Scheduler::RequestsOnly).then(|| options.rules.clone()),
                ))),
                settings: Source::Fixed(Box::new(moving())),
                mode,
                cooling: COOLING,
                measure,
                metrics: counts.rebalance.clone(),
                ..rebalance::Options::new(Access::Client(client.clone()))
            };
            tasks.spawn(component("rebalance", rebalance::run(ctx.clone(), options), stop.clone()));
        }
        if let Some(controllers) = controllers {
            cluster.follow_workloads(&mut tasks, &stop);
            cluster.sets.ready().await;
            cluster.deployments.ready().await;
            cluster.budgets.ready().await;
            controllers.start(&mut tasks, &stop);
        }
        let mut looked = BTreeMap::new();
        if let Some(every) = options.protect {
            for definition in agent::definitions() {
                cluster.write.define(&definition).await?;
            }
            for one in agents(options, every, &client, (&cluster, kubelets), &counts) {
                if let agent::Nodes::One(node) = &one.nodes {
                    looked.insert(node.clone(), one.looked.clone());
                }
                // Each has metrics of its own, as it would on a node of its own.
                let ctx = Ctx { metrics: Metrics::default(), ..ctx.clone() };
                tasks.spawn(component("agent", agent::run(ctx, one), stop.clone()));
            }
        }
        if let Some(scenario) = options.scenario {
            let (world, cluster, stop) = (options.clone(), cluster.clone(), stop.clone());
            tasks.spawn(async move { scenario::play(scenario, &world, &cluster, tell, stop).await });
        }
        let write = cluster.write.clone();
        let (count, nodes, seed) = (options.workloads, options.nodes, options.seed);
        tasks.spawn(workloads::create(count, nodes, seed, write, stop.clone()));
        let folders = options.folders().cloned();
        let looked = Arc::new(looked);
        let (notices, asker) = (Some(notices), asked_by);
        Ok(Self { cluster, counts, notices, observer, folders, asker, looked, tasks, stop })
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// What came of scheduling so far, whoever does it.
    #[must_use]
    pub fn tally(&self) -> Tally {
        self.observer.tally()
    }

    /// What is in the cluster, as the watches told last.
    #[must_use]
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Where a node can be looked into, if it can and while it is there.
    #[must_use]
    pub fn folder(&self, node: &str) -> Option<NodeFolder> {
        self.folders.as_ref().map(|folders| folders.of(node))
    }

    /// Where our scheduler is asked why, if it runs.
    #[must_use]
    pub fn scheduler(&self) -> Option<&scheduler::explain::Asker> {
        self.asker.as_ref()
    }

    /// What the agents of nodes knew in their last cycle, by node; none where one agent stands for all.
    #[must_use]
    pub fn looked(&self) -> &Arc<BTreeMap<String, Looked>> {
        &self.looked
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
                tracing::error!(%error, "task ended badly");
            }
        }
    }
}
