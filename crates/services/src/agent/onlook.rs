//! What would the agent of a node know, for somebody who cannot ask it? The rules and pods it watches, with what the metrics API
//! says of them; what it did before, and how long it has been like this, only the agent knows.

use super::WAITING;
use super::explain::Look;
use super::host::{PodUsage, Usage};
use super::state::{State, snapshot};
use super::watched::{Actions, Message, NodeRules, Nodes, Pods, Scopes};
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection};
use crate::sources::metrics_api;
use jiff::Timestamp;
use loadline_core::load::Load;
use loadline_core::object::Key;
use loadline_core::qos::audit::Audit;
use loadline_core::qos::{self, Level, Options, Series};
use loadline_core::view::Labels;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Billionths of a core in a thousandth.
const NANO_IN_MILLI: i128 = 1_000_000;

/// Reads a cluster and says what the agent of a node would know there; nothing if there is no such node, or no rule.
///
/// # Errors
/// When the cluster cannot be read in time, and why.
pub async fn once(cluster: &Access, node: &str, patience: Duration) -> Result<Option<Look>, String> {
    let (client, _) = cluster.connect().await?;
    let connection = Connection::new(client).named("loadline-explain");
    let mut onlooker = Onlooker::new(&connection, node);
    let read = async {
        while !onlooker.state.is_ready(true) && onlooker.state.trouble().is_none() {
            onlooker.follow().await;
        }
    };
    let measured = metrics_api::once(&connection, metrics_api::Of::NodesAndPods);
    let (read, measured) = tokio::join!(timeout(patience, read), measured);
    if read.is_err() || !onlooker.state.is_ready(true) {
        let why = onlooker.state.trouble().map(|why| format!(": {why}")).unwrap_or_default();
        return Err(format!("the cluster could not be read within {} s{why}", patience.as_secs()));
    }
    // Without measurements there is something to say as well.
    let measured = measured.unwrap_or_default();
    let newest = measured.nodes.iter().find(|(name, _)| name == node);
    let newest = newest.map(|(_, sample)| (sample.usage, sample.at));
    let pods = measured.pods.into_iter().map(|(key, sample)| (key, sample.usage)).collect();
    Ok(onlooker.look(newest, &pods, Timestamp::now()))
}

/// Somebody who looks on.
pub struct Onlooker {
    node: String,
    state: State,
    messages: mpsc::Receiver<Message>,
    _watches: Watches<Message>,
}

impl Onlooker {
    /// Begins to look at a node.
    #[must_use]
    pub fn new(connection: &Connection, node: &str) -> Self {
        let (mut watches, messages) = Watches::new(connection.clone(), WAITING);
        watches.add_where::<Nodes>(format!("metadata.name={node}"), Message::Node);
        watches.add_where::<Pods>(format!("spec.nodeName={node}"), Message::Pod);
        watches.add::<NodeRules>(Message::NodeRules);
        watches.add::<Actions>(Message::Action);
        watches.add::<Scopes>(Message::Scope);
        Self { node: node.to_owned(), state: State::new(), messages, _watches: watches }
    }

    /// Waits for what is new, and takes it in. Nothing is lost if it is not waited for to the end.
    pub async fn follow(&mut self) {
        let mut batch = Vec::new();
        self.messages.recv_many(&mut batch, WAITING).await;
        let now = Timestamp::now();
        for message in batch {
            self.state.take(message, now);
        }
    }

    /// What its agent would know, with what was measured of the node and its pods; nothing before everything was read, or
    /// while no rule is there.
    pub fn look(
        &mut self,
        measured: Option<(Load, Timestamp)>,
        pods: &HashMap<Key, Load>,
        now: Timestamp,
    ) -> Option<Look> {
        if !self.state.is_ready(true) || !self.state.has_rules() {
            return None;
        }
        let (policy, _) = self.state.policy();
        let (_, node) = self.state.nodes().into_iter().find(|(meta, _)| *meta.key.name == *self.node)?;
        let there = self.state.pods_by_node().remove(&self.node).unwrap_or_default();
        let used = |load: &Load| PodUsage {
            cpu: Some(millicores(*load)),
            memory: Some(Level::whole(load.memory_bytes)),
            ..PodUsage::default()
        };
        let of_pods =
            there.iter().filter_map(|(meta, _)| Some((meta.uid.clone(), used(pods.get(&meta.key)?))));
        let of_node = measured.map(|(load, at)| (node.view.name.clone(), series(&node.view, load, at)));
        let usage = Usage { nodes: of_node.into_iter().collect(), pods: of_pods.collect() };
        let snapshot = snapshot(&node, &there, &usage, qos::State::default(), (now, Options::default()));
        Some(Look { policy, snapshot: Arc::new(snapshot), audit: Arc::new(Audit::new(1)) })
    }
}

fn millicores(load: Load) -> Level {
    Level::whole(load.cpu_nano).times(1, NANO_IN_MILLI)
}

/// In the units of the metrics: thousandths of a core, bytes, percent of what the node has in all, where it says so.
fn series(node: &qos::Node, used: Load, at: Timestamp) -> Vec<Series> {
    let (cpu, memory) = (millicores(used), Level::whole(used.memory_bytes));
    let percent = |used: Level, whole: Option<Level>| {
        whole
            .filter(|whole| whole.nano() > 0)
            .map(|whole| used.times(100, 1).times(Level::whole(1).nano(), whole.nano()))
    };
    [
        ("cpu_total_usage", Some(cpu)),
        ("memory_total_usage", Some(memory)),
        ("cpu_total_utilization", percent(cpu, node.cpu)),
        ("memory_total_utilization", percent(memory, node.memory)),
    ]
    .into_iter()
    .filter(|(_, value)| value.is_some())
    .map(|(name, value)| Series { name: name.into(), labels: Labels::default(), value, at })
    .collect()
}
