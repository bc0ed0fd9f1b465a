//! How much more load does each node of a member take?
//!
//! Beside what nodes have free by requests stands what they use. A [`Cluster`] of core holds both against each other
//! by the load rules; measurements come from the metrics API of the member, those of nodes only: figures of pods would
//! be many and change little. Where there are none the rules say what to assume, and that is never nothing.

use jiff::Timestamp;
use kube::Client;
use loadline_api as api;
use loadline_core::cluster::{self, Cluster, Mark};
use loadline_core::estimate::Index;
use loadline_core::load::policy::Rules;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};

/// How long measurements may take to come.
const PATIENCE: Duration = Duration::from_secs(10);
/// Not more often than this is looked whether time alone changed something.
const LEAST: Duration = Duration::from_secs(1);

/// How load is followed.
#[derive(Clone, Debug)]
pub struct Options {
    pub rules: Rules,
    /// How often measurements are asked for.
    pub every: Duration,
}

impl Default for Options {
    /// As often as the metrics server measures, by its defaults.
    fn default() -> Self {
        Self { rules: Rules::default(), every: Duration::from_secs(15) }
    }
}

/// What nodes used, or why that is not known.
pub(super) type Figures = Result<Vec<Value>, String>;

/// The load of a member.
#[derive(Debug)]
pub(super) struct Load {
    /// Knows nodes and pods.
    pub cluster: Cluster,
    seen: Mark,
    /// Did the last measurements fail?
    missing: bool,
}

impl Load {
    pub fn new(options: &Options, now: Timestamp) -> Self {
        let rules = Some(options.rules.clone());
        let options = cluster::Options { rules, ..cluster::Options::default() };
        Self { cluster: Cluster::new(options, now), seen: Mark::default(), missing: false }
    }

    /// Takes measurements in.
    pub fn measured(&mut self, cluster: &str, figures: Figures, now: Timestamp) {
        self.cluster.advance(now);
        let nodes = match figures {
            Ok(nodes) => nodes,
            Err(problem) => {
                if !std::mem::replace(&mut self.missing, true) {
                    tracing::warn!(cluster, problem, "no measurements: the settings decide what is assumed");
                }
                return;
            }
        };
        if std::mem::replace(&mut self.missing, false) {
            tracing::info!(cluster, "there are measurements again");
        }
        for value in &nodes {
            match api::metrics::node(value) {
                Ok((name, sample)) => drop(self.cluster.sample(&name, sample)),
                Err(error) => tracing::debug!(cluster, %error, "left out a measurement"),
            }
        }
    }

    /// Tells the index what changed; says whether anything did.
    pub fn fill(&mut self, index: &mut Index, now: Timestamp) -> bool {
        self.cluster.advance(now);
        let (seen, rooms) = self.cluster.rooms(self.seen);
        self.seen = seen;
        let any = !rooms.is_empty();
        for (node, room) in rooms {
            index.set_room(&node, Some(room));
        }
        any
    }

    /// How long nothing changes by time alone.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        let left = self.cluster.next_due()?.duration_since(now);
        Some(Duration::try_from(left).unwrap_or_default().max(LEAST))
    }
}

/// Asks for measurements until nobody listens any more. A failed request is made up for by the next.
pub(super) async fn measure<M: Send + 'static>(
    client: Client,
    every: Duration,
    news: mpsc::Sender<M>,
    wrap: fn(Figures) -> M,
) {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let figures = match timeout(PATIENCE, nodes(&client)).await {
            Ok(Ok(nodes)) => Ok(nodes),
            Ok(Err(error)) => Err(format!("measurements of nodes: {error}")),
            Err(_) => Err("measurements of nodes: no answer in time".to_owned()),
        };
        if news.send(wrap(figures)).await.is_err() {
            return;
        }
    }
}

async fn nodes(client: &Client) -> Result<Vec<Value>, kube::Error> {
    let request = http::Request::get("/apis/metrics.k8s.io/v1beta1/nodes")
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .map_err(kube::Error::HttpError)?;
    let mut answer: Value = client.request(request).await?;
    Ok(match answer["items"].take() {
        Value::Array(items) => items,
        _ => Vec::new(),
    })
}
