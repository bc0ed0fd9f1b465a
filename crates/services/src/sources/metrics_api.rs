//! What do nodes and pods use, as the metrics API says?
//!
//! Late, and sometimes not at all: a request that fails is told and made up for by the next. No request ever holds up a
//! decision: measurements come as messages, like everything else.

use crate::cluster::connection::{Ask, Connection, Verb};
use crate::cluster::resource::{NODE_METRICS, POD_METRICS, Resource};
use loadline_api::json::Tree;
use loadline_api::{Error, metrics};
use loadline_core::ledger::Sample;
use loadline_core::object::Key;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// How long measurements may take to come, where they are asked for more often than that.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often the metrics API is asked, and for what.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// As often as the metrics server measures, by its defaults.
    pub every: Duration,
    pub of: Of,
}

impl Default for Options {
    fn default() -> Self {
        Self { every: Duration::from_secs(15), of: Of::NodesAndPods }
    }
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// Figures of pods are many and change little.
    Nodes,
    NodesAndPods,
    /// Pods alone, container by container.
    Containers,
}

/// What was measured.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub nodes: Vec<(String, Sample)>,
    pub pods: Vec<(Key, Sample)>,
    /// Of each pod, its containers.
    pub containers: Vec<(Key, Vec<(String, Sample)>)>,
}

/// What was measured, or why that is not known.
pub type Measurements = Result<Measured, String>;

/// Asks until nobody listens any more.
pub async fn poll<M: Send + 'static>(
    connection: Connection,
    options: Options,
    events: mpsc::Sender<M>,
    wrap: fn(Measurements) -> M,
) {
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = events.closed() => return,
            _ = ticks.tick() => {}
        }
        if events.send(wrap(measure(&connection, options).await)).await.is_err() {
            return;
        }
    }
}

async fn measure(connection: &Connection, options: Options) -> Measurements {
    let timeout = options.every.max(TIMEOUT);
    if options.of == Of::Containers {
        let containers = list(connection, POD_METRICS, timeout, metrics::containers).await?;
        return Ok(Measured { containers, ..Measured::default() });
    }
    let nodes = list(connection, NODE_METRICS, timeout, metrics::node);
    if options.of == Of::Nodes {
        return Ok(Measured { nodes: nodes.await?, ..Measured::default() });
    }
    let pods = list(connection, POD_METRICS, timeout, metrics::pod);
    let (nodes, pods) = tokio::join!(nodes, pods);
    let pods = pods.inspect_err(|problem| tracing::debug!(problem, "no measurements of pods"));
    Ok(Measured { nodes: nodes?, pods: pods.unwrap_or_default(), ..Measured::default() })
}

async fn list<T>(
    connection: &Connection,
    of: Resource,
    timeout: Duration,
    read: impl Fn(&Tree<'_>) -> Result<T, Error>,
) -> Result<Vec<T>, String> {
    let failed = |why: &dyn std::fmt::Display| format!("measurements of {}: {why}", of.plural);
    let ask = Ask::read(Verb::List, of, of.collection(""));
    let text = connection.call(ask, timeout).await.map_err(|failure| failed(&failure.message))?;
    let list: List<'_> = serde_json::from_slice(&text).map_err(|error| failed(&error))?;
    let sample = |value: &Tree<'_>| {
        read(value).inspect_err(|error| tracing::debug!(%error, "measurement cannot be read")).ok()
    };
    Ok(list.items.iter().flatten().filter_map(sample).collect())
}

#[derive(serde::Deserialize)]
struct List<'a> {
    #[serde(borrow)]
    items: Option<Vec<Tree<'a>>>,
}
