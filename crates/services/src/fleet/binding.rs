//! Which clusters get how many replicas? Karmada's bindings, divided and written.
//!
//! One task owns what is known (`state`). Decisions are made one after the other, for each counts on the room the last one
//! left; what was assigned is promised until it is to be seen in its cluster. Estimators are asked all at once, meanwhile it is
//! the turn of those that go to other clusters (`turns`), and decisions are written several at a time.
//!
//! | what it does | |
//! |---|---|
//! | watches | clusters; `ResourceBindings` and `ClusterResourceBindings` |
//! | asks | estimators of clusters ([`super::estimators`]); [`loadline_core::divide`] |
//! | writes | `spec.clusters` and the status of bindings that name this scheduler; its lease |
//! | tells | Events on bindings and what they bind; metrics; readiness; why, when asked ([`explain`]) |

mod deschedule;
pub mod explain;
mod metrics;
mod onlook;
mod queue;
mod state;
mod tell;
mod turns;
mod watched;
mod write;

pub use deschedule::Deschedule;
pub use metrics::Metrics;
pub use onlook::{Onlooker, Seen, once};

use super::estimators::{self, Estimators, Said};
use crate::ask::Question;
use crate::cluster::connection::{Cause, Failure};
use crate::cluster::leading::Leading;
use crate::cluster::watch::Watches;
use crate::cluster::{Access, Calls, Connection, Resource, lease};
use crate::ctx::{Ctx, Notices, Now};
use crate::jumps::Jumps;
use crate::serve::probes::{Readiness, Status};
use deschedule::{Lowered, Passes};
use explain::Asked;
use loadline_core::divide::{self, Failure as Refused, Retry};
use loadline_core::object::Key;
use metrics::Incoming;
use serde_json::Value;
use state::{Attempt, Decided, Settings, State, Step};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tell::Teller;
use tokio::sync::mpsc;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use turns::Turns;
use watched::{Bindings, ClusterBindings, Clusters, Message};
use write::{Job, Written, write};

/// Who we are, for Events, leases and field managers.
pub const COMPONENT: &str = "loadline-fleet";
/// Messages waiting to be taken in; whoever brings more waits.
const WAITING: usize = 1024;
/// Decisions being written at a time: what is written at once is stored at once.
const WRITES: usize = 32;
/// Bindings looked at before anything else has its turn.
const IN_A_ROW: usize = 32;
/// How often it is looked whether promises are over and who leads.
const LOOK: Duration = Duration::from_secs(1);
/// How long writes under way may hold up the end.
const GOODBYE: Duration = Duration::from_secs(5);
/// Estimators in trouble, or clusters, that are named where there may be many.
const NAMED: usize = 5;

/// How is decided.
#[derive(Debug)]
pub struct Options {
    pub cluster: Access,
    /// Whose bindings are ours: those that name this scheduler.
    pub scheduler: String,
    pub divide: divide::Options,
    /// How estimators are asked; without, clusters are taken at their word.
    pub estimators: Option<estimators::Options>,
    /// Are estimators of clusters asked that fetch their work themselves?
    pub pulling: bool,
    /// How long room is kept for what was assigned and is not to be seen in its cluster.
    pub promise: Duration,
    /// How long a binding that lacks room waits if nothing is heard of any.
    pub patience: Duration,
    /// Are replicas taken away that have no node?
    pub deschedule: Option<Deschedule>,
    /// By which lease one of several is chosen; without, this is the only one.
    pub lease: Option<lease::Checked>,
    pub metrics: Metrics,
    pub status: Status,
    /// What is asked of the hub is counted there.
    pub calls: Calls,
    /// Where questions come from.
    pub asked: Asked,
}

impl Options {
    #[must_use]
    pub fn new(cluster: Access) -> Self {
        Self {
            cluster,
            scheduler: loadline_api::karmada::DEFAULT_SCHEDULER.to_owned(),
            divide: divide::Options::default(),
            estimators: None,
            pulling: true,
            promise: Duration::from_mins(5),
            patience: Duration::from_mins(1),
            deschedule: None,
            lease: None,
            metrics: Metrics::default(),
            status: Status::default(),
            calls: Calls::default(),
            asked: Asked::default(),
        }
    }
}

/// Why it could not start.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(String);

/// Decides until told to stop.
///
/// # Errors
/// When the hub cannot be reached at all: a kubeconfig that cannot be read. A server that is away is waited for.
pub async fn run(ctx: Ctx, options: Options) -> Result<(), Error> {
    let (client, _) = options.cluster.connect().await.map_err(Error)?;
    let connection = Connection::counted(client, options.calls).named(COMPONENT).spread(ctx.seed());
    options.metrics.register(&ctx);

    let (mut watches, mut messages) = watches(&connection);
    let settings = Settings {
        scheduler: options.scheduler,
        divide: options.divide,
        estimators: options.estimators.is_some(),
        pulling: options.pulling,
        promise: options.promise,
        patience: options.patience,
    };
    let asking = options.estimators.unwrap_or_default();
    let (estimators, mut recovered) =
        Estimators::new(asking, connection.clone(), options.metrics.estimators.clone(), ctx.clock.clone());
    watches.spawn(|_, events| async move {
        while let Some(cluster) = recovered.recv().await {
            if events.send(Message::Recovered(cluster)).await.is_err() {
                return;
            }
        }
    });
    let lead = Leading::start(&ctx, &connection, COMPONENT, options.lease);
    let mut asked = options.asked;
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut passes = options.deschedule.map(|deschedule| Passes::new(deschedule, Instant::now()));
    let mut this = Controller {
        state: State::new(settings, options.metrics.clone()),
        estimators,
        teller: Teller::new(lead.events.clone()),
        notices: ctx.notices.clone(),
        metrics: options.metrics,
        deciding: JoinSet::new(),
        turns: Turns::default(),
        writing: JoinSet::new(),
        lead,
    };
    let mut batch = Vec::new();
    let (mut wait, mut jumps): (Option<Instant>, _) = (None, Jumps::default());
    loop {
        let (mut looks, mut decided, mut written) = (false, None, None);
        tokio::select! {
            biased;
            () = ctx.stop.cancelled() => break,
            _ = look.tick() => looks = true,
            count = messages.recv_many(&mut batch, WAITING) => if count == 0 { break },
            Some(ended) = this.deciding.join_next() => decided = Some(ended),
            Some(ended) = this.writing.join_next() => written = Some(ended),
            question = asked.next() => this.answer(question, ctx.now()),
            ended = lowered(passes.as_mut()) => if let Some(ended) = ended {
                this.lowered(&ended, ctx.now());
            },
            () = sleep_until(wait.unwrap_or_else(Instant::now)), if wait.is_some() => {}
        }
        let now = ctx.now();
        // Before anything is promised by the new time.
        if let Some(by) = jumps.set_by(now) {
            tracing::warn!(
                seconds = by.as_secs(),
                "the clock was set: promises last as long as they would have"
            );
            this.state.clock_set(by);
        }
        // Whatever woke it, everything that is there is taken.
        this.take_ended(decided, written, now);
        for message in batch.drain(..) {
            this.state.take(message, now);
        }
        for cluster in this.state.settle(now) {
            this.estimators.stale(&cluster);
        }
        let leads = this.lead.leadership.may_write() && this.state.is_ready();
        wait = None;
        if leads {
            // Others have their say in between.
            wait = if this.go_on(now) { Some(now.at) } else { this.state.queue.due() };
            if let Some(passes) = &mut passes {
                let later = passes.go_on(&this.state, &this.estimators, &this.lead.writer, now);
                wait = Some(wait.map_or(later, |due| due.min(later)));
            }
        }
        if looks {
            let fleet = this.state.fleet();
            let names: BTreeSet<Arc<str>> = fleet.members.iter().map(|member| member.name.clone()).collect();
            this.estimators.retain(&names);
            this.estimators.probe();
            this.metrics.show(&this.state);
            options.status.set(this.readiness());
        }
    }
    let writes = async { while this.writing.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(GOODBYE, writes).await;
    this.lead.end().await;
    Ok(())
}

/// Everything that is looked at, and where it comes from.
fn watches(connection: &Connection) -> (Watches<Message>, mpsc::Receiver<Message>) {
    let (mut watches, messages) = Watches::new(connection.clone(), WAITING);
    watches.add::<Clusters>(Message::Cluster);
    watches.add::<Bindings>(Message::Binding);
    watches.add::<ClusterBindings>(Message::ClusterBinding);
    (watches, messages)
}

async fn lowered(passes: Option<&mut Passes>) -> Option<Lowered> {
    match passes {
        Some(passes) => passes.ended().await,
        None => std::future::pending().await,
    }
}

/// A task that is over, well or not.
type Ended<T> = Result<T, JoinError>;

/// What was being written about.
enum About {
    Decision(Decided),
    /// Nothing was decided: what is told is brought up to date.
    Told(Arc<state::Known>),
}

struct Controller {
    state: State,
    estimators: Estimators,
    teller: Teller,
    notices: Notices,
    metrics: Metrics,
    /// Those estimators are asked for. No two may go to the same cluster: the next counts on the room this one leaves.
    deciding: JoinSet<(Box<Attempt>, Vec<Said>)>,
    turns: Turns,
    writing: JoinSet<(About, Written)>,
    lead: Leading,
}

impl Controller {
    /// Takes what has ended, and everything that ended meanwhile.
    fn take_ended(
        &mut self,
        mut decided: Option<Ended<(Box<Attempt>, Vec<Said>)>>,
        mut written: Option<Ended<(About, Written)>>,
        now: Now,
    ) {
        while let Some(ended) = decided.take().or_else(|| self.deciding.try_join_next()) {
            if let Ok((attempt, said)) = ended {
                for waited in self.turns.asked(&attempt.known) {
                    self.state.queue.put_back(&waited.meta.key);
                }
                self.decide(*attempt, said, now);
            }
        }
        while let Some(ended) = written.take().or_else(|| self.writing.try_join_next()) {
            if let Ok(ended) = ended {
                self.finish(ended, now);
            }
        }
    }

    /// Takes up whoever's turn it is, as long as nobody has to be waited for. Says whether there may be more to do at once.
    fn go_on(&mut self, now: Now) -> bool {
        for _ in 0..IN_A_ROW {
            if self.turns.are_full() || self.writing.len() >= WRITES {
                return false;
            }
            match self.state.next(&mut self.turns, now) {
                None => return false,
                Some(Step::Behind) => {}
                Some(Step::Settled(known)) => {
                    let job = Job::settled(&known);
                    self.write(About::Told(known), job, now);
                }
                Some(Step::Unreadable(known, problem)) => {
                    let job = Job::unreadable(&known, problem);
                    self.write(About::Told(known), job, now);
                }
                Some(Step::Attempt(attempt)) if attempt.asked.is_empty() => {
                    self.decide(*attempt, Vec::new(), now);
                }
                Some(Step::Attempt(attempt)) => {
                    self.turns.asks(&attempt.known, &attempt.fleet, attempt.reach.clone());
                    let estimators = self.estimators.clone();
                    self.deciding.spawn(async move {
                        let said = estimators.ask(&attempt.asked, &attempt.question).await;
                        (attempt, said)
                    });
                }
            }
        }
        true
    }

    fn answer(&mut self, question: Question<Key, Option<Value>>, now: Now) {
        if self.state.is_ready() {
            let answer = self.state.explain(&question.about, now);
            question.answer(answer);
        } else {
            question.too_early();
        }
    }

    fn decide(&mut self, attempt: Attempt, said: Vec<Said>, now: Now) {
        let Some(decided) = self.state.decide(attempt, said, now.clock) else { return };
        self.state.decisions.keep(&decided, now.clock);
        let job = Job::of(&decided);
        tracing::debug!(binding = %decided.known.meta.key, due = ?decided.due, reason = job.condition.reason,
            message = job.condition.message, "decided");
        self.write(About::Decision(decided), job, now);
    }

    fn write(&mut self, about: About, job: Job, now: Now) {
        if !job.is_needed(now.clock) {
            let condition = job.condition;
            let nothing = Written { latest: None, placed: false, changed: false, condition, failure: None };
            self.finish((about, nothing), now);
            return;
        }
        let writer = self.lead.writer.clone();
        self.writing.spawn(async move { (about, write(writer, job, now.clock).await) });
    }

    /// What came of it: it is told, and the binding is done with or waits.
    fn finish(&mut self, (about, written): (About, Written), now: Now) {
        let known = match &about {
            About::Decision(decided) => decided.known.clone(),
            About::Told(known) => known.clone(),
        };
        let (key, of) = (known.meta.key.clone(), known.of);
        if let Some((meta, facts)) = written.latest {
            self.state.wrote(of, meta, *facts);
        }
        let (failure, condition) = (written.failure, written.condition);
        match about {
            About::Told(known) => {
                if failure.is_none() && written.changed && !condition.status {
                    self.teller.failed(&known, &condition.message, now.clock);
                }
                self.wait(&key, of, failure.as_ref(), None, now);
            }
            About::Decision(decided) => {
                let Decided { known, due, answer, began, before, .. } = decided;
                self.state.write_ended(&known);
                if let Some(failure) = failure.as_ref().filter(|_| !written.placed) {
                    self.state.not_written(&known, before, failure.cause, now.clock);
                }
                let failed = failure.is_some() || matches!(&answer.failure, Some(why) if !fits_nowhere(why));
                self.metrics.attempted(due, failed, now.at.duration_since(began));
                if failure.is_none() || !condition.status {
                    self.metrics.decided(condition.reason);
                }
                if written.changed {
                    self.teller.decided(&known, &answer, &condition, now.clock);
                    self.notices.tell("binding", &key, division(&answer, &condition));
                }
                self.wait(&key, of, failure.as_ref(), answer.failure.as_ref(), now);
            }
        }
    }

    /// When is it looked at again?
    fn wait(
        &mut self,
        key: &Key,
        of: Resource,
        failure: Option<&Failure>,
        refused: Option<&Refused>,
        now: Now,
    ) {
        match (failure, refused) {
            (Some(failure), _) if failure.cause == Cause::NotFound => self.state.queue.remove(key),
            (Some(failure), _) => {
                self.metrics.write_failures.inc();
                self.metrics.incoming(Incoming::Failed);
                tracing::debug!(kind = of.kind, binding = %key, %failure, "decision not written");
                self.state.queue.backoff(key, now.at);
            }
            (None, Some(refused)) if refused.retry() == Retry::Room => {
                self.metrics.incoming(Incoming::Failed);
                let patience = self.state.patience();
                self.state.queue.park(key, patience, now.at);
            }
            (None, _) => self.state.queue.done(key),
        }
    }

    /// What came of looking for replicas that wait in vain.
    fn lowered(&mut self, Lowered { known, replicas, outcome, applied }: &Lowered, now: Now) {
        if *applied {
            if outcome.is_ok() {
                self.metrics.descheduled.inc_by(u64::try_from(*replicas).unwrap_or_default());
            }
            self.teller.descheduled(known, outcome.as_deref().map_err(String::as_str), now.clock);
        } else if let Ok(told) = outcome {
            tracing::info!(binding = %known.meta.key, replicas, "would be descheduled: {told}");
        }
    }

    fn readiness(&self) -> Readiness {
        let (ready, leads) = (self.state.is_ready(), self.lead.leadership.may_write());
        let mut lines = vec![
            match (ready, leads) {
                (false, _) => "reading the hub",
                (true, false) => "standing by: another one leads",
                (true, true) => "active",
            }
            .to_owned(),
        ];
        let counts: Vec<String> =
            self.state.counts().iter().map(|(what, count)| format!("{what} {count}")).collect();
        lines.push(counts.join(", "));
        let [active, backoff, unschedulable] = self.state.queue.counts();
        lines.push(format!("queue: active {active}, backoff {backoff}, unschedulable {unschedulable}"));
        lines.extend(self.state.troubles());
        let troubles = self.estimators.troubles();
        for (cluster, trouble) in troubles.iter().take(NAMED) {
            lines.push(format!("estimator of {cluster}: {trouble}"));
        }
        if troubles.len() > NAMED {
            lines.push(format!("and {} more estimators in trouble", troubles.len() - NAMED));
        }
        Readiness { ready, progress: lines.join("\n") + "\n" }
    }
}

/// Who gets how many, in a few words; or why nobody gets any.
fn division(answer: &divide::Answer, condition: &divide::Condition) -> String {
    if !condition.status {
        return condition.message.clone();
    }
    let count = |replicas: Option<i32>| replicas.map_or_else(String::new, |count| format!(" {count}"));
    let few = answer.clusters.iter().take(NAMED).map(|t| format!("{}{}", t.name, count(t.replicas)));
    let few = few.collect::<Vec<_>>().join(", ");
    match answer.clusters.len().saturating_sub(NAMED) {
        0 => format!("goes to {few}"),
        more => format!("goes to {few} and {more} more"),
    }
}

/// In Karmada's count that is a success: nothing more can be done about it.
fn fits_nowhere(why: &Refused) -> bool {
    matches!(why, Refused::NoFit { .. })
}
