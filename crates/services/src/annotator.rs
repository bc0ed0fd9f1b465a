//! What do nodes bear for schedulers that read annotations? Their load, measured and stamped, and how hot they are.
//!
//! One task owns what is known (`state`); measurements, answers of Prometheus, nodes and pods come in as messages, and
//! patches go out at a limited rate, the most urgent first. No source and no write ever holds up another: a Prometheus
//! that hangs leaves the hot value and what the metrics API says as they are.
//!
//! | what it does | |
//! |---|---|
//! | watches | nodes; pods, for when they were bound; the `ConfigMap` of the policy, if it is in one |
//! | polls | measurements of nodes from the metrics API; Prometheus, one query per metric |
//! | asks | [`loadline_core::load::publish`], [`loadline_core::load::join`], [`loadline_core::ledger`], [`loadline_core::load::hot`], [`loadline_core::load::taints`] |
//! | writes | annotations and, if wanted, taints of nodes, one patch with everything that is due; the past of nodes; its lease |
//! | tells | Events on nodes whose data are lost and found, and on the policy; metrics; readiness with the age of data |

pub mod history;
mod pace;
pub mod policy;
mod state;
mod taint;
mod tell;
mod watched;

pub use tell::{ByOutcome, Metrics, Status};

use crate::cluster::connection::Cause;
use crate::cluster::events::Regarding;
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::NODES;
use crate::cluster::watch::Watches;
use crate::cluster::write::Patch;
use crate::cluster::{Access, Connection, Writer};
use crate::ctx::{Ctx, Now};
use crate::sources::{metrics_api, prometheus};
use loadline_core::load::{publish, taints};
use loadline_core::object::Meta;
use pace::Pace;
use policy::{Policies, Source};
use serde_json::json;
use state::{Due, State};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;
use taint::Tainting;
use tell::Teller;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};
use watched::{ConfigMaps, Message, Node, Nodes, Pods};

const COMPONENT: &str = "loadline-annotator";
/// Patches under way at a time.
const WRITES: usize = 16;
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long patches under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(10);
/// How often all nodes are looked at: what is new comes at the resolution of the sources, bindings at any time.
const LOOK: Duration = Duration::from_secs(2);
/// How often the file of the policy is read.
const REREAD: Duration = Duration::from_secs(5);

/// How nodes are annotated.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    /// Which metrics are written, and by which limits a change is urgent.
    pub policy: Source,
    /// How the metrics API is asked; not at all if `None`.
    pub measure: Option<metrics_api::Options>,
    /// How Prometheus is asked, if at all; the queries are made from the policy.
    pub prometheus: Option<Monitoring>,
    pub publish: publish::Options,
    /// Where the past of nodes is kept for the next start; forgotten without.
    pub history: Option<history::Options>,
    /// By which lines nodes bear taints for their load; none do without.
    pub taints: Option<taints::Options>,
    /// Patches a second, on average.
    pub rate: f64,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
}

impl Options {
    /// By crane's default policy, from the metrics API alone.
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            policy: Source::Fixed(Box::default()),
            measure: Some(metrics_api::Options {
                of: metrics_api::Of::Nodes,
                ..metrics_api::Options::default()
            }),
            prometheus: None,
            publish: publish::Options::default(),
            history: None,
            taints: None,
            rate: 25.0,
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
        }
    }
}

/// How Prometheus is asked for the metrics of the policy.
#[derive(Clone, Debug)]
pub struct Monitoring {
    pub target: prometheus::Target,
    pub every: Duration,
    pub timeout: Duration,
    pub label: Option<String>,
    /// Matchers for series asked for by name, such as `cluster="a"`.
    pub matchers: Vec<String>,
    /// Expressions in place of the series of that name.
    pub expressions: Vec<(String, String)>,
}

impl Monitoring {
    /// What is asked for the metrics of a policy.
    fn options(&self, rules: &loadline_core::load::policy::Rules) -> prometheus::Options {
        let fetched = rules.metrics().iter().filter(|metric| metric.period.is_some());
        let query = |name: &str| match self.expressions.iter().find(|(metric, _)| metric == name) {
            Some((_, text)) => loadline_api::prometheus::Query::Expression(text.clone()),
            None => loadline_api::prometheus::Query::Rule {
                name: name.to_owned(),
                matchers: self.matchers.clone(),
            },
        };
        prometheus::Options {
            target: self.target.clone(),
            every: self.every,
            timeout: self.timeout,
            label: self.label.clone(),
            queries: fetched.map(|metric| (metric.name.clone(), query(&metric.name))).collect(),
        }
    }
}

/// Why an annotator could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Annotates nodes until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client);
    options.metrics.register(&ctx, &connection);

    let (mut watches, mut messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    match &options.policy {
        Source::Fixed(_) => {}
        Source::File(path, _) => watches.spawn(|_, events| reread(path.clone(), events)),
        Source::ConfigMap { key, .. } => {
            let fields = format!("metadata.namespace={},metadata.name={}", key.namespace, key.name);
            watches.add_where::<ConfigMaps>(fields, Message::Policy);
        }
    }
    if let Some(measure) = options.measure {
        watches.spawn(|connection, events| metrics_api::poll(connection, measure, events, Message::Measured));
    }

    if let Some(history) = options.history.clone() {
        watches.spawn(|connection, events| history::read(connection, history, events));
    }

    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease.clone());
    let teller = Teller {
        events: lead.events.clone(),
        metrics: options.metrics.clone(),
        status: options.status.clone(),
    };

    let mut state = State::new(Policies::new(options.policy.clone()), &options);
    let mut asking: Option<JoinSet<()>> = None;
    let mut asked: Option<prometheus::Options> = None;
    let mut pace = Pace::new(options.rate, Now::read().at);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keep = interval(options.history.as_ref().map_or(Duration::MAX, |history| history.every));
    keep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut keeping: JoinSet<Result<(), String>> = JoinSet::new();
    let (mut batch, mut due) = (Vec::new(), VecDeque::new());
    let mut in_flight: JoinSet<Patched> = JoinSet::new();
    let mut wait = None;
    loop {
        let looks = tokio::select! {
            () = ctx.stop.cancelled() => break,
            _ = look.tick() => true,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break } else { false },
            Some(ended) = in_flight.join_next() => {
                if let Ok(patched) = ended {
                    let now = Now::read();
                    teller.patched(&patched, now.clock);
                    state.done(&patched.node.key, patched.wrote, now);
                }
                false
            }
            _ = keep.tick() => {
                if let (Some(history), Some(parts)) = (&options.history, state.history())
                    && keeping.is_empty() && lead.leadership.may_write()
                {
                    keeping.spawn(history::write(lead.writer.clone(), history.clone(), parts));
                }
                false
            }
            Some(Ok(kept)) = keeping.join_next() => { state.kept(kept); false }
            () = sleep_until(wait.unwrap_or_else(|| Now::read().at)), if wait.is_some() => false,
        };
        let now = Now::read();
        for message in batch.drain(..) {
            teller.message(&message);
            state.take(message, now);
        }
        // Another policy is another set of queries.
        if let Some(monitoring) = &options.prometheus
            && state.policies.is_loaded()
        {
            let wanted = monitoring.options(state.rules());
            if asked.as_ref().is_none_or(|asked| asked.queries != wanted.queries) {
                let mut tasks = JoinSet::new();
                tasks.spawn(prometheus::poll(
                    wanted.clone(),
                    ctx.seed(),
                    watches.events(),
                    Message::Answered,
                ));
                (asking, asked) = (Some(tasks), Some(wanted));
            }
        }
        if looks {
            due = if state.is_ready() { state.due(now).into() } else { VecDeque::new() };
            teller.state(&mut state, lead.leadership.may_write(), due.len(), now);
        }
        wait = None;
        while lead.leadership.may_write() && in_flight.len() < WRITES && !due.is_empty() {
            if let Err(at) = pace.take(now.at) {
                wait = Some(at);
                break;
            }
            let Some(next) = due.pop_front() else { break };
            state.sent(&next.node, now);
            in_flight.spawn(patch(lead.writer.clone(), next));
        }
    }
    drop(asking);
    let goodbye = async {
        while let Some(ended) = in_flight.join_next().await {
            if let Ok(patched) = ended {
                state.done(&patched.node.key, patched.wrote, Now::read());
            }
        }
        if let (Some(history), Some(parts)) = (&options.history, state.history())
            && lead.leadership.may_write()
        {
            state.kept(history::write(lead.writer.clone(), history.clone(), parts).await);
        }
        if options.taints.is_none() || !lead.leadership.may_write() {
            return;
        }
        // Nobody is in a hurry to bring new load now: the rate is for those who stay.
        let mut leaving = VecDeque::from(state.withdraw(Now::read()));
        while !leaving.is_empty() || !in_flight.is_empty() {
            while in_flight.len() < WRITES
                && let Some(next) = leaving.pop_front()
            {
                in_flight.spawn(patch(lead.writer.clone(), next));
            }
            if let Some(Ok(patched)) = in_flight.join_next().await {
                teller.patched(&patched, Now::read().clock);
            }
        }
    };
    if tokio::time::timeout(GOODBYE, goodbye).await.is_err() {
        tracing::warn!("some writes had not ended in time; taints that are left go with the next start");
    }
    lead.end().await;
    Ok(())
}

/// Reads a file again and again. Mounted files change by their folder being exchanged: only the content tells.
async fn reread(path: PathBuf, events: mpsc::Sender<Message>) {
    let mut ticks = interval(REREAD);
    loop {
        tokio::select! {
            () = events.closed() => return,
            _ = ticks.tick() => {}
        }
        let read = tokio::fs::read_to_string(&path).await;
        let read = read.map_err(|error| format!("{}: {error}", path.display()));
        if events.send(Message::File(read)).await.is_err() {
            return;
        }
    }
}

/// What came of a patch.
struct Patched {
    node: Meta,
    urgency: publish::Urgency,
    taint: Option<Tainting>,
    wrote: Option<(Meta, Option<Box<Node>>)>,
    problem: Option<String>,
}

/// One patch for everything that is due on a node.
async fn patch(writer: Writer, due: Due) -> Patched {
    let Due { node, update, taint } = due;
    // Of another node of that name nothing is known: the uid makes sure that it is this one.
    let mut change = json!({"metadata": {"uid": &*node.uid, "annotations": update.annotations}});
    if let Some(taint) = &taint {
        // The list is replaced: if it is not the one that was read, somebody else's taint would be lost.
        change["metadata"]["resourceVersion"] = json!(node.revision.map(|revision| revision.to_string()));
        change["spec"] = json!({"taints": taint.taints});
    }
    let answer = writer.patch(NODES.whole(), &node.key, Patch::Merge, &change).await;
    let (wrote, problem) = match answer {
        Ok(written) => (written.read::<Nodes>().map(|(meta, read)| (meta, read.ok())), None),
        Err(failure) => {
            let gone = matches!(failure.cause, Cause::NotFound | Cause::Conflict);
            (None, (!gone).then_some(failure.message))
        }
    };
    Patched { node, urgency: update.urgency, taint, wrote, problem }
}

/// About a node.
fn regarding(node: &Meta) -> Regarding {
    Regarding::new(NODES, node)
}
