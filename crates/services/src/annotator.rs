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
mod monitoring;
mod patches;
mod state;
mod taint;
mod tell;
mod watched;

pub use monitoring::Monitoring;
pub use tell::{ByOutcome, Metrics};

use crate::cluster::events::Regarding;
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::NODES;
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection};
use crate::ctx::Ctx;
use crate::reload::{Reloaded, Source, reread};
use crate::serve::probes::Status;
use crate::sources::metrics_api;
use history::{Keeper, Turn};
use loadline_core::load::policy::Rules;
use loadline_core::load::{publish, taints};
use loadline_core::object::Meta;
use monitoring::Asking;
use patches::{Patched, Patches};
use state::State;
use std::time::Duration;
use tell::Teller;
use tokio::time::{MissedTickBehavior, interval, timeout};
use watched::{ConfigMaps, Message, Nodes, Pods};

const COMPONENT: &str = "loadline-annotator";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long patches under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(10);
/// How often all nodes are looked at: what is new comes at the resolution of the sources, bindings at any time.
const LOOK: Duration = Duration::from_secs(2);

/// How nodes are annotated.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    /// Which metrics are written, and by which limits a change is urgent.
    pub policy: Source<Rules>,
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
    let connection = Connection::new(client).named(COMPONENT);
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    match &options.policy {
        Source::Fixed(_) => {}
        Source::File(path, _) => watches.spawn(|_, events| reread(path.clone(), events, Message::File)),
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

    // Of several, another goes on from the taints that are there: taken away, they would all be missing until it had put them back.
    let is_last = options.lease.is_none();
    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease.clone());
    let teller = Teller {
        events: lead.events.clone(),
        metrics: options.metrics.clone(),
        status: options.status.clone(),
    };

    let mut state = State::new(Reloaded::new("policy", options.policy.clone()), &options);
    let mut asking = Asking::new(options.prometheus);
    let mut patches = Patches::new(&lead, options.rate);
    let mut keeper = Keeper::new(options.history);
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::new();
    loop {
        let mut looks = false;
        tokio::select! {
            () = ctx.stop.cancelled() => break,
            _ = look.tick() => looks = true,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            ended = patches.next() => {
                let now = ctx.now();
                if let Some(patched) = ended {
                    teller.patched(&patched, now.clock);
                    state.done(&patched.node.key, patched.wrote, now);
                }
            }
            turn = keeper.turn() => match (turn, state.history()) {
                (Turn::Kept(kept), _) => state.kept(kept),
                (Turn::Due, Some(parts)) if lead.leadership.may_write() => keeper.keep(&lead.writer, parts),
                (Turn::Due, _) => {}
            },
        }
        let now = ctx.now();
        for message in batch.drain(..) {
            teller.message(&message);
            state.take(message, now);
        }
        if state.policies.is_loaded() {
            asking.follow(state.rules(), &ctx, || watches.events());
        }
        if looks {
            patches.set(if state.is_ready() { state.due(now) } else { Vec::new() });
            teller.state(&mut state, lead.leadership.may_write(), patches.waiting(), now);
        }
        patches.send(&mut state, now);
    }
    drop(asking);
    let goodbye = async {
        let last = |state: &mut State| {
            if is_last && options.taints.is_some() { state.withdraw(ctx.now()) } else { Vec::new() }
        };
        patches.finish(&mut state, last, |patched| teller.patched(patched, ctx.now().clock)).await;
        keeper.finish(&lead.writer, state.history()).await;
    };
    if timeout(GOODBYE, goodbye).await.is_err() {
        tracing::warn!("some writes had not ended in time; taints that are left go with the next start");
    }
    lead.end().await;
    Ok(())
}

/// About a node.
fn regarding(node: &Meta) -> Regarding {
    Regarding::new(NODES, node)
}
