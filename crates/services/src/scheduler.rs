//! Where does a new pod go? The load-aware scheduler of `core`, in a plain loop.
//!
//! One task owns everything that is known (`state`) and decides one pod after the other; each is reserved on its node
//! before the next is looked at. Around it, messages come in (`watched`) and writes go out (`execute`), several at a time.
//! A write that fails is taken back and tried again. Of several schedulers one leads; the others know everything, too, and
//! write nothing.
//!
//! | what it does | |
//! |---|---|
//! | watches | nodes, pods, namespaces, priority classes, claims, volumes, storage classes, CSI nodes, budgets, services, who made whose pods; by load also Recommendations |
//! | polls | measurements of nodes and pods, from the metrics API |
//! | asks | [`loadline_core::cluster::Cluster`] |
//! | writes | bindings; the condition and the nominated node of pods that wait; evictions for more important pods; its lease |
//! | tells | Events on pods, notices, metrics |

mod advice;
mod execute;
pub mod heat;
mod queue;
mod state;
mod watched;

use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::PODS;
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection, Recorder};
use crate::ctx::{Ctx, Notices, Now};
use crate::sources::metrics_api;
use execute::{Action, Executor, Outcome};
use loadline_core::load::policy::Rules;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use queue::Pending;
use state::State;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;
use tokio::task::{JoinError, JoinSet};
use watched::{
    AdviceMessage, Budgets, Claims, CsiNodes, Deployments, Jobs, Message, Namespaces, Nodes, Pods,
    PriorityClasses, Recommendations, ReplicaSets, ReplicationControllers, Services, StatefulSets,
    StorageClasses, Volumes,
};

/// What events and field managers call us.
const COMPONENT: &str = "loadline-scheduler";
/// Writes under way at a time.
const WRITES: usize = 32;
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// How pods are given nodes.
#[derive(Clone, Debug)]
pub struct Options {
    pub cluster: Access,
    /// Whose pods, by `spec.schedulerName`.
    pub names: Vec<String>,
    /// What is too much load. Without, load does not count: pods go by what they request, as kube-scheduler has it.
    pub rules: Option<Rules>,
    /// How measurements are asked for.
    pub measure: metrics_api::Options,
    /// What is counted; whoever has a clone can read it.
    pub metrics: Metrics,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    /// Is everything read, and does it lead? Whoever has a clone can ask.
    pub status: Status,
}

impl Options {
    /// A scheduler of pods that ask for `loadline`, by crane's default policy.
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            names: vec!["loadline".to_owned()],
            rules: Some(Rules::default()),
            measure: metrics_api::Options::default(),
            metrics: Metrics::default(),
            lease: None,
            status: Status::default(),
        }
    }
}

/// How a scheduler is doing.
#[derive(Clone, Debug, Default)]
pub struct Status(Arc<AtomicU8>);

/// What a scheduler is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// It has not read everything yet.
    Reading = 0,
    /// It is ready to take over, and somebody else leads.
    Standby = 1,
    /// It gives pods nodes.
    Active = 2,
}

impl Status {
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self.0.load(Ordering::Relaxed) {
            0 => Phase::Reading,
            1 => Phase::Standby,
            _ => Phase::Active,
        }
    }

    fn set(&self, phase: Phase) {
        if self.0.swap(phase as u8, Ordering::Relaxed) != phase as u8 {
            tracing::info!(?phase, "scheduler changed its phase");
        }
    }
}

/// What came of it so far.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Pods bound.
    pub bound: Counter,
    /// Bindings that failed.
    pub bind_failures: Counter,
    /// Pods that fitted nowhere at first.
    pub unschedulable: Counter,
    /// Pods that have no node now because they fitted nowhere.
    pub pending: Gauge,
    /// Pods evicted for more important ones.
    pub preempted: Counter,
    /// Nodes annotated by another policy than ours.
    pub foreign: Gauge,
}

impl Metrics {
    fn register(&self, ctx: &Ctx) {
        ctx.metrics.register(|registry| {
            let own = registry.sub_registry_with_prefix("loadline_scheduler");
            own.register("pods_bound", "Pods bound to a node", self.bound.clone());
            own.register(
                "bind_failures",
                "Bindings the API server refused or did not answer",
                self.bind_failures.clone(),
            );
            own.register(
                "pods_unschedulable",
                "Pods that fitted nowhere at first",
                self.unschedulable.clone(),
            );
            own.register("pending_pods", "Pods that wait because they fit nowhere", self.pending.clone());
            own.register("pods_preempted", "Pods evicted for more important ones", self.preempted.clone());
            own.register(
                "nodes_of_another_policy",
                "Nodes whose annotations were written by another load policy than ours",
                self.foreign.clone(),
            );
        });
    }
}

/// Why a scheduler could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Gives pods nodes until told to stop.
///
/// # Errors
/// When the cluster cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client);
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    watches.add::<Namespaces>(Message::Namespace);
    watches.add::<PriorityClasses>(Message::PriorityClass);
    watches.add::<Claims>(Message::Claim);
    watches.add::<Volumes>(Message::Volume);
    watches.add::<StorageClasses>(Message::StorageClass);
    watches.add::<CsiNodes>(Message::CsiNode);
    watches.add::<Budgets>(Message::Budget);
    watches.add::<Services>(Message::Service);
    watches
        .add::<ReplicationControllers>(|event| Message::Advice(AdviceMessage::ReplicationController(event)));
    watches.add::<ReplicaSets>(|event| Message::Advice(AdviceMessage::ReplicaSet(event)));
    watches.add::<StatefulSets>(|event| Message::Advice(AdviceMessage::StatefulSet(event)));
    if options.rules.is_some() {
        watches.add::<Recommendations>(|event| Message::Advice(AdviceMessage::Recommendation(event)));
        watches.add::<Deployments>(|event| Message::Advice(AdviceMessage::Deployment(event)));
        watches.add::<Jobs>(|event| Message::Advice(AdviceMessage::Job(event)));
    }
    let measure = options.measure;
    watches.spawn(|connection, events| metrics_api::poll(connection, measure, events, Message::Measured));

    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);
    let executor = Executor { writer: lead.writer.clone(), metrics: options.metrics.clone() };
    let teller =
        Teller { events: lead.events.clone(), notices: ctx.notices.clone(), metrics: options.metrics };

    let mut state = State::new(options.names, options.rules, Now::read());
    let (mut batch, mut done) = (Vec::new(), Vec::new());
    let mut in_flight: JoinSet<Outcome> = JoinSet::new();
    loop {
        let now = Now::read();
        // What is known goes in before anything is decided.
        for message in batch.drain(..) {
            state.take(message, now);
        }
        for outcome in done.drain(..) {
            teller.outcome(&outcome, now);
            state.done(outcome, now);
        }
        state.advance(now);
        let leads = lead.leadership.may_write();
        options.status.set(match (state.is_ready(), leads) {
            (false, _) => Phase::Reading,
            (true, false) => Phase::Standby,
            (true, true) => Phase::Active,
        });
        while leads
            && in_flight.len() < WRITES
            && let Some(action) = state.next(now)
        {
            teller.action(&action, now);
            in_flight.spawn(executor.clone().run(action, now.clock));
        }
        teller.notices(&mut state);
        // With all hands full there is nothing to do in time.
        let due = state.due(now).filter(|_| leads && in_flight.len() < WRITES);
        tokio::select! {
            () = ctx.stop.cancelled() => break,
            () = lead.leadership.acquired(), if !leads => {}
            () = lead.leadership.lost(), if leads => {}
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            Some(ended) = in_flight.join_next() => done.extend(outcome(ended)),
            () = tokio::time::sleep_until(due.unwrap_or(now.at)), if due.is_some() => {}
        }
        while let Some(ended) = in_flight.try_join_next() {
            done.extend(outcome(ended));
        }
    }
    // What was decided is carried out, within bounds.
    let _ = tokio::time::timeout(GOODBYE, async { while in_flight.join_next().await.is_some() {} }).await;
    lead.end().await;
    Ok(())
}

fn outcome(ended: Result<Outcome, JoinError>) -> Option<Outcome> {
    ended.inspect_err(|error| tracing::error!(%error, "write ended badly")).ok()
}

/// Tells whoever looks.
struct Teller {
    events: Recorder,
    notices: Notices,
    metrics: Metrics,
}

impl Teller {
    /// Of a refusal, once for each reason.
    fn action(&self, action: &Action, now: Now) {
        let Some((pod, why)) = action.refusal() else { return };
        if let Action::Preempt { node, victims, .. } = action
            && !victims.is_empty()
        {
            let names: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
            let what = format!("less important pods are evicted from {node} for it: {}", names.join(", "));
            self.notices.tell("scheduler", &pod.meta.key, what);
        }
        if pod.pod.unschedulable.as_deref() == Some(why) {
            return;
        }
        if pod.pod.unschedulable.is_none() {
            self.metrics.unschedulable.inc();
            self.notices.tell("pod", &pod.meta.key, format!("waits: {why}"));
        }
        self.event(pod, Severity::Warning, "FailedScheduling", "Scheduling", why.to_owned(), now);
    }

    fn outcome(&self, outcome: &Outcome, now: Now) {
        let Outcome::Bound { pod, node } = outcome else { return };
        self.metrics.bound.inc();
        let note = format!("Successfully assigned {} to {node}", pod.meta.key);
        self.event(pod, Severity::Normal, "Scheduled", "Binding", note, now);
    }

    fn notices(&self, state: &mut State) {
        self.metrics.pending.set(i64::try_from(state.unschedulable()).unwrap_or(i64::MAX));
        self.metrics.foreign.set(i64::try_from(state.foreign()).unwrap_or(i64::MAX));
        for (from, about, what) in state.notices() {
            self.notices.tell(from, about, what);
        }
    }

    fn event(
        &self,
        pod: &Pending,
        severity: Severity,
        reason: &'static str,
        action: &'static str,
        note: String,
        now: Now,
    ) {
        let happened = Happened { severity, reason, action, note };
        self.events.record(Regarding::new(PODS, &pod.meta), happened, now.clock);
    }
}
