//! Who keeps a node from being overrun? An agent: it slows pods down, asks them to go, and gives back.
//!
//! What is done is decided by [`plan`](fn@loadline_core::qos::plan); here is what it takes to ask it and to do it. An agent
//! looks after one node, or after several where one process stands for them; what is used there and what containers are
//! held to it learns from its [`Host`].
//!
//! | what it does | |
//! |---|---|
//! | watches | its nodes, `NodeQOS`, `PodQOS`, `AvoidanceAction`; once there is a rule, the pods on its nodes |
//! | measures | what nodes, pods and containers use, every [`Options::every`], from its host |
//! | asks | [`loadline_core::qos`] |
//! | writes | CPU quotas, to its host; evictions; taint, condition and cooling mark of the node |
//! | tells | Events on nodes and pods, notices, metrics |

mod act;
pub mod host;
mod state;
mod tell;
#[cfg(test)]
mod tests;
pub mod watched;

pub use host::Host;

use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection, Recorder, Writer};
use crate::ctx::Ctx;
use act::Agent;
use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use serde_json::Value;
use state::State;
use std::sync::Arc;
use std::time::Duration;
use tell::Teller;
use tokio::time::{MissedTickBehavior, interval};
use watched::{Actions, Message, NodeRules, Pods, Scopes};

/// What events and field managers call us.
const COMPONENT: &str = "loadline-agent";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;

/// Which nodes an agent looks after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Nodes {
    /// All its host knows.
    All,
    /// The one of that name.
    One(String),
}

/// How nodes are protected.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    pub nodes: Nodes,
    /// Time between two looks. A look that takes longer delays the next; none is made up for.
    pub every: Duration,
    pub host: Arc<dyn Host>,
    /// What is counted; whoever has a clone can read it.
    pub metrics: Metrics,
}

/// What came of it so far.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Containers that were slowed down, each time.
    pub throttled: Counter,
    /// Containers that got something back, each time.
    pub restored: Counter,
    /// Pods evicted.
    pub evicted: Counter,
    /// Quotas that could not be written.
    pub failed_writes: Counter,
}

impl Metrics {
    fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let own = registry.sub_registry_with_prefix("loadline_agent");
            own.register("throttled", "Containers slowed down, each time", self.throttled.clone());
            own.register("restored", "Containers that got something back, each time", self.restored.clone());
            own.register("evicted", "Pods evicted to relieve their node", self.evicted.clone());
            own.register("failed_writes", "Quotas that could not be written", self.failed_writes.clone());
        });
    }
}

/// Why an agent could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// The kinds an agent reads, as definitions to apply to a cluster.
pub fn definitions() -> impl Iterator<Item = Value> {
    loadline_api::qos::DEFINITIONS.iter().filter_map(|text| serde_saphyr::from_str(text).ok())
}

/// Protects nodes until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client);
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = Watches::new(connection.clone(), WAITING);
    match &options.nodes {
        Nodes::All => watches.add::<watched::Nodes>(Message::Node),
        Nodes::One(name) => {
            watches.add_where::<watched::Nodes>(format!("metadata.name={name}"), Message::Node);
        }
    }
    watches.add::<NodeRules>(Message::NodeRules);
    watches.add::<Actions>(Message::Action);
    watches.add::<Scopes>(Message::Scope);

    let writer = Writer::new(connection.clone(), COMPONENT);
    let (events, recording) = Recorder::new(writer.clone(), COMPONENT, &ctx.identity, ctx.stop.clone());
    ctx.metrics.register(|registry| {
        let own = registry.sub_registry_with_prefix("loadline_agent");
        own.register_collector(Box::new(connection.calls().clone()));
        events.counts().register(own);
    });
    let recording = tokio::spawn(recording);
    let teller = Teller { events, notices: ctx.notices.clone(), metrics: options.metrics.clone() };
    let agent = Agent { writer, host: options.host, teller, metrics: options.metrics, every: options.every };

    let mut state = State::new();
    let mut batch = Vec::new();
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watching_pods = false;
    loop {
        let is_due = tokio::select! {
            () = ctx.stop.cancelled() => break,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break } else { false },
            _ = ticks.tick() => true,
        };
        let now = Timestamp::now();
        for message in batch.drain(..) {
            state.take(message, now);
        }
        if state.has_rules() && !watching_pods {
            watching_pods = true;
            match &options.nodes {
                Nodes::All => watches.add::<Pods>(Message::Pod),
                Nodes::One(name) => watches.add_where::<Pods>(format!("spec.nodeName={name}"), Message::Pod),
            }
        }
        if is_due && state.is_ready(watching_pods) {
            tokio::select! {
                () = ctx.stop.cancelled() => break,
                () = agent.cycle(&mut state, now) => {}
            }
        }
    }
    let _ = recording.await;
    Ok(())
}
