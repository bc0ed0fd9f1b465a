//! Where does a new pod go? The load-aware scheduler of `core`, in a plain loop.
//!
//! One task owns everything that is known (`state`) and decides one pod after the other; each is reserved on its node
//! before the next is looked at. Around it, messages come in (`watched`) and writes go out (`execute`), several at a time.
//! A write that fails is taken back and tried again. Of several schedulers one leads; the others know everything, too, and
//! write nothing.
//!
//! | what it does | |
//! |---|---|
//! | watches | nodes, pods, namespaces, priority classes, claims, volumes, storage classes, CSI nodes, CSI drivers and what room they have, budgets, services, who made whose pods; by load also Recommendations, and `NodeQOS` and `AvoidanceAction` for what agents do |
//! | polls | measurements of nodes and pods, from the metrics API |
//! | asks | [`loadline_core::cluster::Cluster`] |
//! | answers | another scheduler's questions about load, if wanted ([`extender`]) |
//! | writes | bindings; which claim a volume is for, and which node a claim's volume is to be made for; the condition and the nominated node of pods that wait; evictions for more important pods; its lease |
//! | tells | Events on pods and on `NodeQOS`, notices, metrics |

mod advice;
mod agree;
mod counted;
mod execute;
pub mod explain;
pub mod extender;
pub mod heat;
mod metrics;
mod profiles;
mod queue;
mod retell;
pub mod shadow;
pub(crate) mod state;
mod volumes;
pub(crate) mod watched;

pub use metrics::Metrics;

use crate::agent::watched::NODE_QOS;
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::leading::Leading;
use crate::cluster::lease;
use crate::cluster::resource::PODS;
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Connection, Recorder};
use crate::ctx::{Ctx, Notices, Now};
use crate::reload::{Reloaded, Source, reread};
use crate::sources::metrics_api;
use execute::{Action, Executor, Outcome};
use loadline_api::scheduler::Configuration;
use metrics::Attempt;
use queue::Pending;
use state::State;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use watched::{
    Actions, AdviceMessage, Budgets, Claims, CsiDrivers, CsiNodes, Deployments, Jobs, LinesMessage, Message,
    Namespaces, NodeRules, Nodes, Pods, PriorityClasses, Recommendations, ReplicaSets,
    ReplicationControllers, Services, StatefulSets, StorageCapacities, StorageClasses, StorageMessage,
    Volumes,
};

/// What events and field managers call us.
const COMPONENT: &str = "loadline-scheduler";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);

/// How pods are given nodes.
#[derive(Debug)]
pub struct Options {
    pub cluster: Access,
    /// Whose pods, by `spec.schedulerName`, and by which rules.
    pub configuration: Source<Configuration>,
    /// How measurements are asked for.
    pub measure: metrics_api::Options,
    /// What is counted; whoever has a clone can read it.
    pub metrics: Metrics,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    /// Is everything read, and does it lead? Whoever has a clone can ask.
    pub status: Status,
    /// Where another scheduler may ask about load.
    pub extender: Option<extender::Options>,
}

impl Options {
    /// A scheduler of pods that ask for `loadline`, by crane's default policy.
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            configuration: Source::Fixed(Box::default()),
            measure: metrics_api::Options::default(),
            metrics: Metrics::default(),
            lease: None,
            status: Status::default(),
            extender: None,
        }
    }
}

/// How a scheduler is doing.
#[derive(Clone, Debug, Default)]
pub struct Status(Arc<(AtomicU8, Mutex<Option<String>>)>);

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
        match self.0.0.load(Ordering::Relaxed) {
            0 => Phase::Reading,
            1 => Phase::Standby,
            _ => Phase::Active,
        }
    }

    /// What is wrong with the newest configuration; one before it is in force.
    #[must_use]
    pub fn problem(&self) -> Option<String> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn configuration(&self, problem: Option<&str>) {
        *self.0.1.lock().unwrap_or_else(PoisonError::into_inner) = problem.map(str::to_owned);
    }

    fn set(&self, phase: Phase) {
        if self.0.0.swap(phase as u8, Ordering::Relaxed) != phase as u8 {
            tracing::info!(?phase, "scheduler changed its phase");
        }
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
    run_asked(ctx, options, explain::Asked::default()).await
}

/// The same, and answers questions about pods.
///
/// # Errors
/// As [`run`].
pub async fn run_asked(ctx: Ctx, options: Options, mut asked: explain::Asked) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::new(client).named(COMPONENT).spread(ctx.seed());
    options.metrics.register(&ctx);
    ctx.metrics.register(|registry| connection.rest().register(registry));

    let (_watches, mut messages) = watches(&connection, &options);
    let mut configuration = Reloaded::new("configuration", options.configuration.clone());

    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);
    let executor = Executor {
        writer: lead.writer.clone(),
        metrics: options.metrics.clone(),
        events: lead.events.clone(),
    };
    let teller =
        Teller { events: lead.events.clone(), notices: ctx.notices.clone(), metrics: options.metrics };

    let mut asks = extender::start(&ctx, options.extender, &executor, &lead.leadership);
    let mut state = State::new(configuration.current(), ctx.now());
    let (mut batch, mut done, mut to_answer) = (Vec::new(), Vec::new(), Vec::new());
    let mut in_flight: JoinSet<(Outcome, Attempt)> = JoinSet::new();
    loop {
        let now = ctx.now();
        // What is known goes in before anything is decided.
        for message in batch.drain(..) {
            match message {
                Message::Configuration(read) => {
                    if configuration.take_text(read) {
                        state.configure(configuration.current(), now);
                    }
                    teller.configuration(&configuration, &options.status);
                }
                other => state.take(other, now),
            }
        }
        for (outcome, attempt) in done.drain(..) {
            teller.outcome(&outcome, &attempt, now);
            state.done(outcome, now);
        }
        state.advance(now);
        for ask in to_answer.drain(..) {
            state.answer(ask, now);
        }
        asks.tell(&state);
        let writes = configuration.current().parallel_writes;
        let leads = lead.leadership.may_write() && configuration.is_loaded();
        options.status.set(match (state.is_ready(), leads) {
            (false, _) => Phase::Reading,
            (true, false) => Phase::Standby,
            (true, true) => Phase::Active,
        });
        while leads
            && in_flight.len() < writes
            && let Some((action, attempt)) = teller.timed(|| state.next(now)).map(|a| state.attempt(a, now))
        {
            teller.action(&action, now);
            let run = executor.clone().run(action, now.clock);
            in_flight.spawn(async move { (run.await, attempt) });
        }
        teller.notices(&mut state);
        if leads {
            teller.disagreements(&mut state, now);
        }
        // With all hands full there is nothing to do in time, nor before everything is known: what is due would be due again
        // at once.
        let due = state.due(now).filter(|_| leads && state.is_ready() && in_flight.len() < writes);
        // Whatever wakes it, everything is looked at: the order says nothing about who waits.
        tokio::select! {
            biased;
            () = ctx.stop.cancelled() => break,
            () = lead.leadership.acquired(), if !lead.leadership.may_write() => {}
            () = lead.leadership.lost(), if lead.leadership.may_write() => {}
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            () = asks.receive(&mut to_answer) => {}
            question = asked.next() => {
                let answer = match &question.about {
                    explain::Subject::Pod { pod, most } if state.is_ready() => state.explain(pod, *most, now),
                    explain::Subject::Pod { .. } => None,
                    explain::Subject::Decisions { most } => Some(state.decisions(*most)),
                };
                question.answer(answer);
            }
            Some(ended) = in_flight.join_next() => done.extend(outcome(ended)),
            () = tokio::time::sleep_until(due.unwrap_or(now.at)), if due.is_some() => {}
        }
        while let Some(ended) = in_flight.try_join_next() {
            done.extend(outcome(ended));
        }
    }
    // What was decided is carried out, within bounds.
    let _ = tokio::time::timeout(GOODBYE, async { while in_flight.join_next().await.is_some() {} }).await;
    asks.end().await;
    lead.end().await;
    Ok(())
}

/// Everything a decision depends on, as messages.
pub(crate) fn watches(
    connection: &Connection,
    options: &Options,
) -> (Watches<Message>, mpsc::Receiver<Message>) {
    let (mut watches, messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Nodes>(Message::Node);
    watches.add::<Pods>(Message::Pod);
    watches.add::<Namespaces>(Message::Namespace);
    watches.add::<PriorityClasses>(Message::PriorityClass);
    watches.add::<Claims>(|event| Message::Storage(StorageMessage::Claim(event)));
    watches.add::<Volumes>(|event| Message::Storage(StorageMessage::Volume(event)));
    watches.add::<StorageClasses>(|event| Message::Storage(StorageMessage::Class(event)));
    watches.add::<CsiNodes>(Message::CsiNode);
    watches.add::<CsiDrivers>(|event| Message::Storage(StorageMessage::Driver(event)));
    watches.add::<StorageCapacities>(|event| Message::Storage(StorageMessage::Capacity(event)));
    watches.add::<Budgets>(Message::Budget);
    watches.add::<Services>(Message::Service);
    watches
        .add::<ReplicationControllers>(|event| Message::Advice(AdviceMessage::ReplicationController(event)));
    watches.add::<ReplicaSets>(|event| Message::Advice(AdviceMessage::ReplicaSet(event)));
    watches.add::<StatefulSets>(|event| Message::Advice(AdviceMessage::StatefulSet(event)));
    // Who may look at load one day reads what is recommended from the beginning.
    let by_load = |all: &Configuration| all.profiles.iter().any(|one| one.profile.rules.is_some());
    if !matches!(&options.configuration, Source::Fixed(fixed) if !by_load(fixed)) {
        watches.add::<Recommendations>(|event| Message::Advice(AdviceMessage::Recommendation(event)));
        watches.add::<Deployments>(|event| Message::Advice(AdviceMessage::Deployment(event)));
        watches.add::<Jobs>(|event| Message::Advice(AdviceMessage::Job(event)));
        watches.add::<NodeRules>(|event| Message::Lines(LinesMessage::NodeRules(event)));
        watches.add::<Actions>(|event| Message::Lines(LinesMessage::Action(event)));
    }
    if let Source::File(path, _) = &options.configuration {
        watches.spawn(|_, events| reread(path.clone(), events, Message::Configuration));
    }
    let measure = options.measure;
    watches.spawn(|connection, events| metrics_api::poll(connection, measure, events, Message::Measured));
    (watches, messages)
}

fn outcome<T>(ended: Result<T, JoinError>) -> Option<T> {
    ended.inspect_err(|error| tracing::error!(%error, "write ended badly")).ok()
}

/// Tells whoever looks.
struct Teller {
    events: Recorder,
    notices: Notices,
    metrics: Metrics,
}

impl Teller {
    /// Decides, and notes how long it took if there was something to decide.
    fn timed(&self, decide: impl FnOnce() -> Option<Action>) -> Option<Action> {
        let began = std::time::Instant::now();
        decide().inspect(|_| self.metrics.decided(began.elapsed()))
    }

    fn configuration(&self, configuration: &Reloaded<Configuration>, status: &Status) {
        let failures = configuration.failures.saturating_sub(self.metrics.configuration_failures.get());
        self.metrics.configuration_failures.inc_by(failures);
        status.configuration(configuration.problem());
    }

    /// Of a refusal, if it is news.
    fn action(&self, action: &Action, now: Now) {
        let Some((pod, why)) = action.refusal() else { return };
        if let Action::Preempt { node, victims, .. } = action
            && !victims.is_empty()
        {
            self.metrics.preempts(victims.len());
            let names: Vec<String> = victims.iter().map(|victim| victim.key.to_string()).collect();
            let what = format!("less important pods are evicted from {node} for it: {}", names.join(", "));
            self.notices.tell("scheduler", &pod.meta.key, what);
        }
        if !action.is_news() {
            return;
        }
        if pod.pod.unschedulable.is_none() {
            self.metrics.unschedulable.inc();
            self.notices.tell("pod", &pod.meta.key, format!("waits: {why}"));
        }
        self.event(pod, Severity::Warning, "FailedScheduling", "Scheduling", why.to_owned(), now);
    }

    fn outcome(&self, outcome: &Outcome, attempt: &Attempt, now: Now) {
        self.metrics.tried(outcome, attempt, now.at);
        let Outcome::Bound { pod, node, remark } = outcome else { return };
        self.metrics.bound.inc();
        let mut told = format!("Successfully assigned {} to {node}", pod.meta.key);
        if let Some(remark) = remark {
            self.metrics.least_bad.inc();
            self.notices.tell("scheduler", &pod.meta.key, format!("to {node}: {remark}"));
            told = format!("{told}: {remark}");
        }
        self.event(pod, Severity::Normal, "Scheduled", "Binding", told, now);
    }

    /// Whoever drew a line that is below our targets is told, once.
    fn disagreements(&self, state: &mut State, now: Now) {
        for (meta, note) in state.disagreements() {
            self.notices.tell("scheduler", &meta.key, format!("lines disagree: {note}"));
            let happened =
                Happened { severity: Severity::Warning, reason: "LinesDisagree", action: "Scheduling", note };
            self.events.record(Regarding::new(NODE_QOS, &meta), happened, now.clock);
        }
    }

    fn notices(&self, state: &mut State) {
        self.metrics.state(state);
        self.metrics.counted(state.counted());
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
