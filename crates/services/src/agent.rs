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
//! | writes | its journal; CPU quotas and requests for page cache, to its host; evictions; taint, condition and cooling mark of the node |
//! | tells | Events on nodes and pods, notices, metrics |

mod act;
mod agree;
mod doubt;
pub mod explain;
pub mod host;
mod journal;
mod onlook;
mod state;
mod tell;
#[cfg(test)]
mod tests;
pub mod watched;

pub use explain::Looked;
pub use host::Host;
pub use onlook::{Onlooker, once};

use crate::cluster::watch::Watches;
use crate::cluster::{Access, Calls, Connection, Recorder, Writer};
use crate::ctx::Ctx;
use crate::jumps::Jumps;
use crate::reload::{Source, reread};
use crate::serve::probes::{Readiness, Status};
use act::Agent;
use agree::Agreement;
use journal::Journal;
use loadline_core::load::policy::Rules;
use loadline_core::qos;
use loadline_core::qos::audit::Audit;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::Value;
use state::State;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tell::Teller;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};
use watched::{Actions, Message, NodeRules, Pods, Scopes};

/// What events and field managers call us.
const COMPONENT: &str = "loadline-agent";
/// What it is called while it only looks: its account may do less.
const PREVIEW: &str = "loadline-agent-preview";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// The API server may take so long for one request of a cycle.
const LONGEST_CALL: Duration = Duration::from_secs(5);
/// How often is looked whether another agent has ended?
const LOCK_EVERY: Duration = Duration::from_secs(1);

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
    /// Time between two looks. One that would begin before the last has ended is left out.
    pub every: Duration,
    pub host: Arc<dyn Host>,
    /// How to plan.
    pub planning: qos::Options,
    /// The folder of the journal, which an agent of one node keeps for the next; without, nothing is kept.
    pub journal: Option<PathBuf>,
    /// Is everything given back at the end? An agent that only looks, and one of a node in preview, leaves it as it is.
    pub restore_on_exit: bool,
    /// Are the kinds it reads made known to the cluster if they are not?
    pub define: bool,
    /// Is what is taken beyond the gap adapted to what acts released?
    pub tune: bool,
    /// What the scheduler goes by: where it fills nodes above a line of ours, that is told.
    pub targets: Option<Source<Rules>>,
    /// What is counted; whoever has a clone can read it.
    pub metrics: Metrics,
    /// Is it at work, and what is in its way? Whoever has a clone can ask.
    pub status: Status,
    /// What the last cycle knew, for whoever asks.
    pub looked: Looked,
}

impl Options {
    /// An agent that keeps no journal.
    #[must_use]
    pub fn new(cluster: Access, nodes: Nodes, host: Arc<dyn Host>) -> Self {
        Self {
            cluster,
            nodes,
            every: Duration::from_secs(10),
            host,
            planning: qos::Options::default(),
            journal: None,
            restore_on_exit: false,
            define: false,
            tune: false,
            targets: None,
            metrics: Metrics::default(),
            status: Status::default(),
            looked: Looked::default(),
        }
    }
}

/// What came of it so far.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Looks that were taken.
    pub cycles: Counter,
    /// Looks that were left out because the one before took too long.
    pub skipped: Counter,
    /// Containers that were slowed down, each time.
    pub throttled: Counter,
    /// Containers that got something back, each time.
    pub restored: Counter,
    /// Pods evicted.
    pub evicted: Counter,
    /// Quotas that could not be written.
    pub failed_writes: Counter,
    /// Pods whose page cache was asked back, each time.
    pub reclaimed: Counter,
    /// Times that was not possible.
    pub failed_reclaims: Counter,
    /// Containers that are slowed down now.
    pub held: Gauge,
    /// Rules that act on a node before it is as full as the scheduler makes it.
    pub lines_disagree: Gauge,
    /// Nodes that cannot be marked, and so nobody is evicted from them.
    pub unmarked_nodes: Gauge,
    /// 1 while the journal cannot be written.
    pub journal_broken: Gauge,
    /// Rules without a usable sample for two looks or more.
    pub rules_in_error: Gauge,
    /// What acts that were measured had been expected to release, what they released, and how far each was off.
    pub predicted: Family<Release, Gauge<f64, AtomicU64>>,
    pub released: Family<Release, Gauge<f64, AtomicU64>>,
    pub off: Family<Release, Gauge<f64, AtomicU64>>,
}

/// What was released, and by what.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Release {
    pub act: &'static str,
    pub resource: &'static str,
}

impl Metrics {
    fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let mut own = registry.below("loadline_agent");
            own.register("cycles", "Looks at the node", self.cycles.clone());
            own.register(
                "cycles_skipped",
                "Looks left out because the one before took longer than the interval",
                self.skipped.clone(),
            );
            own.register("throttled", "Containers slowed down, each time", self.throttled.clone());
            own.register("restored", "Containers that got something back, each time", self.restored.clone());
            own.register("evicted", "Pods evicted to relieve their node", self.evicted.clone());
            own.register("failed_writes", "Quotas that could not be written", self.failed_writes.clone());
            own.register("reclaimed", "Pods whose page cache was asked back, each time", self.reclaimed.clone());
            own.register(
                "failed_reclaims",
                "Times page cache could not be asked back",
                self.failed_reclaims.clone(),
            );
            own.register("throttled_containers", "Containers that are slowed down now", self.held.clone());
            own.register(
                "lines_disagree",
                "Rules that act below the scheduler's target: it fills what they empty",
                self.lines_disagree.clone(),
            );
            own.register(
                "unmarked_nodes",
                "Nodes that cannot be marked: nobody is evicted from them, or whoever was would come straight back",
                self.unmarked_nodes.clone(),
            );
            own.register(
                "journal_broken",
                "1 while the journal cannot be written, and so nothing is done",
                self.journal_broken.clone(),
            );
            own.register(
                "rules_in_error",
                "Rules that had no usable sample for two looks or more: they neither act nor give back; look at the Events of the node",
                self.rules_in_error.clone(),
            );
            own.register(
                "release_predicted",
                "What measured acts were expected to release, in millicores or bytes",
                self.predicted.clone(),
            );
            own.register("release_measured", "What they released", self.released.clone());
            own.register(
                "release_error",
                "By how much each was off, whichever way, added up: against release_predicted, how precise it is",
                self.off.clone(),
            );
        });
    }

    fn releases(&self, audit: &Audit) {
        for ((kind, resource), tally) in audit.tallies() {
            let of = Release { act: kind.as_str(), resource: resource.0 };
            self.predicted.get_or_create(&of).set(tally.predicted.to_f64());
            self.released.get_or_create(&of).set(tally.released.to_f64());
            self.off.get_or_create(&of).set(tally.off.to_f64());
        }
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
    let component = if options.planning.dry_run { PREVIEW } else { COMPONENT };
    let connection = Connection::new(client).named(component).spread(ctx.seed());
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = follow(connection.clone(), &options);

    // A cycle that waits for a server that is away would hold up the next one, and throttling with it.
    let patience = options.every.clamp(Duration::from_secs(1), LONGEST_CALL);
    let writer = Writer::new(connection.clone(), COMPONENT).permitted(Arc::new(move || Some(patience)));
    let (events, recording) = Recorder::of(&ctx, writer.clone(), COMPONENT);
    ctx.metrics.register(|registry| {
        let mut own = registry.below("loadline_agent");
        own.register_collector(connection.calls(), &Calls::LABELS);
        events.counts().register(&mut own);
    });
    if options.define {
        for definition in definitions() {
            writer.define(&definition).await.map_err(|failure| Error(failure.to_string()))?;
        }
    }
    let recording = tokio::spawn(recording);
    let teller = Teller { events, notices: ctx.notices.clone(), metrics: options.metrics.clone() };
    let mut state = State::new();
    let Some((journal, adopting)) = remember(&ctx, &options, &mut state).await else { return Ok(()) };
    let mut agent = Agent {
        writer,
        host: options.host.clone(),
        teller,
        metrics: options.metrics.clone(),
        every: options.every,
        planning: options.planning.clone(),
        journal,
        adopting,
        looked: options.looked.clone(),
        tune: options.tune,
        agreement: Agreement::new(options.targets.clone()),
        unmarked: BTreeSet::new(),
        failure: None,
    };

    let mut batch = Vec::new();
    let mut ticks = interval(options.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let (mut watching_pods, mut jumps, mut claimed) = (false, Jumps::default(), None);
    loop {
        let due = tokio::select! {
            biased;
            () = ctx.stop.cancelled() => break,
            tick = ticks.tick() => Some(tick),
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break } else { None },
        };
        let read = ctx.now();
        let now = read.clock;
        if let Some(by) = jumps.set_by(read) {
            tracing::warn!(seconds = by.as_secs(), "the clock was set: nobody is evicted for some cycles");
            state.clock_set(by);
        }
        for message in batch.drain(..) {
            match message {
                Message::Targets(read) => agent.agreement.reread(read),
                message => state.take(message, now),
            }
        }
        // What was taken before is given back to pods, too, though no rule may be left.
        if (state.has_rules() || state.remembers() || agent.adopting > 0) && !watching_pods {
            watching_pods = true;
            follow_pods(&mut watches, &options.nodes);
        }
        if due.is_some() && !options.planning.dry_run {
            claim(&options, &mut claimed);
        }
        if claimed == Some(false) {
            options.status.set(standby());
            continue;
        }
        let is_ready = state.is_ready(watching_pods);
        if let Some(tick) = due
            && is_ready
        {
            // To its end, which is never far: what was begun is not left half done.
            agent.cycle(&mut state, now).await;
            let missed = missed(tick.elapsed(), options.every);
            if missed > 0 {
                options.metrics.skipped.inc_by(missed.into());
                // The first of them would be made up for at once.
                ticks.reset_at(tick + options.every.saturating_mul(missed.saturating_add(1)));
            }
        }
        options.metrics.held.set(i64::try_from(state.throttled()).unwrap_or(i64::MAX));
        options.status.set(readiness(&options, is_ready, &state, &agent));
    }
    if options.restore_on_exit && claimed == Some(true) {
        agent.restore(&mut state, ctx.clock.now()).await;
    }
    let _ = recording.await;
    Ok(())
}

fn follow_pods(watches: &mut Watches<Message>, nodes: &Nodes) {
    match nodes {
        Nodes::All => watches.add::<Pods>(Message::Pod),
        Nodes::One(name) => watches.add_where::<Pods>(format!("spec.nodeName={name}"), Message::Pod),
    }
}

/// Everything that is followed from the beginning; pods are not before there is a rule.
fn follow(connection: Connection, options: &Options) -> (Watches<Message>, mpsc::Receiver<Message>) {
    let (mut watches, messages) = Watches::new(connection, WAITING);
    match &options.nodes {
        Nodes::All => watches.add::<watched::Nodes>(Message::Node),
        Nodes::One(name) => {
            watches.add_where::<watched::Nodes>(format!("metadata.name={name}"), Message::Node);
        }
    }
    if let Some(Source::File(path, _)) = &options.targets {
        watches.spawn(|_, events| reread(path.clone(), events, Message::Targets));
    }
    watches.add::<NodeRules>(Message::NodeRules);
    watches.add::<Actions>(Message::Action);
    watches.add::<Scopes>(Message::Scope);
    (watches, messages)
}

/// Asks for the node, and tells when it begins to be another's.
fn claim(options: &Options, claimed: &mut Option<bool>) {
    let before = claimed.replace(options.host.claim());
    if before != Some(false) && *claimed == Some(false) {
        tracing::warn!("another agent is at work on this node, waiting for its end");
    }
}

/// How many looks were due while one was under way.
fn missed(took: Duration, every: Duration) -> u32 {
    u32::try_from(took.as_nanos() / every.as_nanos().max(1)).unwrap_or(u32::MAX)
}

/// Goes on from what an earlier agent left, once it has ended; none if it is told to stop before.
async fn remember(ctx: &Ctx, options: &Options, state: &mut State) -> Option<(Option<Journal>, u32)> {
    let (Some(folder), Nodes::One(node)) = (&options.journal, &options.nodes) else {
        return Some((None, 0));
    };
    let mut told = false;
    let mut journal = loop {
        match Journal::open(folder, node) {
            Some(journal) => break journal,
            None if !told => {
                told = true;
                tracing::info!(folder = %folder.display(), "another agent is at work on this node, waiting for its end");
                options.status.set(standby());
            }
            None => {}
        }
        tokio::select! {
            biased;
            () = ctx.stop.cancelled() => return None,
            () = tokio::time::sleep(LOCK_EVERY) => {}
        }
    };
    if !options.planning.dry_run && !journal.can_keep() {
        options.metrics.journal_broken.set(1);
    }
    let left = journal.read().unwrap_or_default();
    state.remember(node, left.state, ctx.clock.now());
    Some((Some(journal), left.adopting))
}

fn standby() -> Readiness {
    Readiness { ready: false, progress: "standby: another agent is at work on this node\n".to_owned() }
}

fn readiness(options: &Options, is_ready: bool, state: &State, agent: &Agent) -> Readiness {
    let mut lines = vec![if is_ready { "active" } else { "reading" }.to_owned()];
    if options.planning.dry_run {
        lines.push("preview: plans are told, and nothing is changed".to_owned());
    }
    let rules = if state.has_rules() { "there are" } else { "there are none" };
    lines.push(format!("rules: {rules}"));
    lines.push(format!("throttled containers: {}", state.throttled()));
    // Only what is said of it depends on it.
    lines.extend(agent.agreement.problem().map(|problem| format!("policy: {problem}")));
    let problem = options.host.problem();
    if options.metrics.journal_broken.get() > 0 {
        lines.push("journal: cannot be written, so nothing is done".to_owned());
    }
    if options.metrics.unmarked_nodes.get() > 0 {
        lines.push("node: cannot be marked, so nobody is evicted".to_owned());
    }
    let in_error = options.metrics.rules_in_error.get();
    if in_error > 0 {
        lines.push(format!("rules in error: {in_error}"));
    }
    if let Some(failure) = &agent.failure {
        lines.push(format!("quotas: the last could not be written: {failure}"));
    }
    if let Some(problem) = &problem {
        lines.push(format!("host: {problem}"));
    }
    Readiness { ready: is_ready && problem.is_none(), progress: lines.join("\n") + "\n" }
}
