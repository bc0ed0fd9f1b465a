//! Who is told what happened? Whoever looks at an object, by Events (`events.k8s.io/v1`).
//!
//! Telling never holds up doing. An event costs the API server as much as a binding, and a burst of bindings brings as many
//! events: sent at once they would halve its pace. So events yield: while other requests of the same connection are
//! under way they wait until it is calm, for [`PATIENCE`] at most, and go one at a time then. A queue that is more than half
//! full is sent without regard, eight at a time; what does not even fit into that is dropped and counted.
//!
//! What happens again is not told again but counted in the series of the first event: the second time at once, after that
//! every [`FLUSH`] at most. Unlike in client-go, another text begins another event: that a pod fits nowhere for another
//! reason is news.

pub mod known;
mod series;

use crate::cluster::connection::Cause;
use crate::cluster::resource::{EVENTS, Resource};
use crate::cluster::write::{Patch, Writer};
use crate::ctx::{Clock, Ctx};
use crate::metrics::Registrar;
use jiff::Timestamp;
use loadline_core::object::{Key, Meta};
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};
use series::{Seen, Series, Step};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

/// Events that may wait to be sent: those of a burst of some thousand pods.
const WAITING: usize = 16_384;
/// Events being sent at a time.
const AT_ONCE: usize = 8;
/// The same while others have been at work for longer than [`PATIENCE`].
const TRICKLE: usize = 1;
/// How long events wait for others.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two updates of a series.
pub const FLUSH: Duration = Duration::from_secs(10);
/// How long the end may be held up by events that have not been sent.
const GOODBYE: Duration = Duration::from_secs(2);
/// The longest text the API takes, in bytes.
const LONGEST_NOTE: usize = 1024;

/// What an event is about.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Regarding {
    pub resource: Resource,
    pub key: Key,
    pub uid: Arc<str>,
}

impl Regarding {
    #[must_use]
    pub fn new(resource: Resource, meta: &Meta) -> Self {
        Self { resource, key: meta.key.clone(), uid: meta.uid.clone() }
    }
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    Normal,
    Warning,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Happened {
    pub severity: Severity,
    /// Why, such as `FailedScheduling`.
    pub reason: &'static str,
    /// What was being done, such as `Scheduling`.
    pub action: &'static str,
    pub note: String,
}

/// Who says it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Reporter {
    /// Such as `loadline-scheduler`.
    controller: Arc<str>,
    /// Which one of them.
    instance: Arc<str>,
}

/// An event before it is written.
#[derive(Clone, Debug)]
struct Item {
    by: Reporter,
    regarding: Regarding,
    related: Option<Regarding>,
    happened: Happened,
    at: Timestamp,
}

/// What became of events.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    /// Events that did not fit into the queue.
    pub dropped: Counter,
    /// Events the server did not take.
    pub failed: Counter,
}

impl Counts {
    /// Shows the counters among other metrics.
    pub fn register(&self, registry: &mut Registrar<'_>) {
        registry.register(
            "events_dropped",
            "Events dropped because too many were waiting",
            self.dropped.clone(),
        );
        registry.register("events_failed", "Events the API server did not take", self.failed.clone());
    }
}

/// Takes events from anywhere; clones feed the same queue.
#[derive(Clone, Debug)]
pub struct Recorder {
    by: Reporter,
    queue: mpsc::Sender<Item>,
    /// Told when the queue is more than half full.
    hurry: Arc<Notify>,
    counts: Counts,
}

impl Recorder {
    /// A recorder for a component, and what has to run for it.
    pub fn of(
        ctx: &Ctx,
        writer: Writer,
        controller: &str,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        Self::starting(ctx.clock.nanos(), writer, controller, &ctx.identity, ctx.stop.clone())
    }

    /// The same, by the system's clock.
    pub fn new(
        writer: Writer,
        controller: &str,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        Self::starting(Clock::default().nanos(), writer, controller, instance, stop)
    }

    fn starting(
        serial: u64,
        writer: Writer,
        controller: &str,
        instance: &str,
        stop: CancellationToken,
    ) -> (Self, impl Future<Output = ()> + Send + use<>) {
        let (queue, waiting) = mpsc::channel(WAITING);
        let (counts, hurry) = (Counts::default(), Arc::<Notify>::default());
        let by = Reporter { controller: controller.into(), instance: instance.into() };
        let sender = Sender {
            writer: writer.yielding(),
            counts: counts.clone(),
            series: Series::new(serial),
            due: VecDeque::new(),
            writes: JoinSet::new(),
            hurry: hurry.clone(),
            busy: None,
        };
        (Self { by, queue, hurry, counts }, sender.run(waiting, stop))
    }

    /// The same queue, for somebody else.
    #[must_use]
    pub fn reporting_as(&self, controller: &str, instance: &str) -> Self {
        let by = Reporter { controller: controller.into(), instance: instance.into() };
        Self { by, ..self.clone() }
    }

    #[must_use]
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Tells of something; never waits.
    pub fn record(&self, regarding: Regarding, happened: Happened, at: Timestamp) {
        self.record_with(regarding, None, happened, at);
    }

    /// Tells of something that has to do with another object, too; never waits.
    pub fn record_with(
        &self,
        regarding: Regarding,
        related: Option<Regarding>,
        happened: Happened,
        at: Timestamp,
    ) {
        debug_assert!(
            known::is_known(&self.by.controller, happened.reason),
            "{} is not among the Events of {} in events/known.rs",
            happened.reason,
            self.by.controller
        );
        let item = Item { by: self.by.clone(), regarding, related, happened, at };
        if self.queue.try_send(item).is_err() {
            self.counts.dropped.inc();
        }
        if is_crowded(WAITING - self.queue.capacity()) {
            self.hurry.notify_one();
        }
    }
}

/// Do so many events wait that they had better go?
fn is_crowded(waiting: usize) -> bool {
    waiting > WAITING / 2
}

/// What became of a write about an event.
struct Done {
    seen: Arc<Seen>,
    created: bool,
    cause: Option<Cause>,
}

/// Sends events.
struct Sender {
    writer: Writer,
    counts: Counts,
    series: Series,
    /// Series of which there is more than the server knows.
    due: VecDeque<Arc<Seen>>,
    writes: JoinSet<Done>,
    hurry: Arc<Notify>,
    /// Since when others have been at work without a pause.
    busy: Option<Instant>,
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Item>, stop: CancellationToken) {
        let mut flush = interval(FLUSH);
        flush.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let (at_once, until) = self.at_once(waiting.len(), Instant::now());
            while self.writes.len() < at_once
                && let Some(seen) = self.due.pop_front()
            {
                self.update(seen);
            }
            let yields = at_once < AT_ONCE;
            tokio::select! {
                biased;
                () = stop.cancelled() => break,
                _ = flush.tick() => self.due.extend(self.series.due(Instant::now())),
                item = waiting.recv(), if self.writes.len() < at_once => match item {
                    Some(item) => self.take(item, Instant::now()),
                    None => break,
                },
                Some(done) = self.writes.join_next() => self.finish(done),
                // How many may go now is looked at anew.
                () = self.hurry.notified(), if yields => {}
                () = self.writer.connection().calm(), if yields => {}
                () = sleep_until(until.unwrap_or_else(Instant::now)), if until.is_some() => {}
            }
        }
        let rest = async {
            while let Ok(item) = waiting.try_recv() {
                while self.writes.len() >= AT_ONCE {
                    if let Some(done) = self.writes.join_next().await {
                        self.finish(done);
                    }
                }
                self.take(item, Instant::now());
            }
            while let Some(done) = self.writes.join_next().await {
                self.finish(done);
            }
        };
        if timeout(GOODBYE, rest).await.is_err() {
            let left = waiting.len() + self.writes.len();
            tracing::warn!(left, "events not sent before the end");
        }
    }

    /// How many may be under way, with so many that wait; and until when at most.
    fn at_once(&mut self, waiting: usize, now: Instant) -> (usize, Option<Instant>) {
        if !self.writer.connection().is_busy() {
            self.busy = None;
            return (AT_ONCE, None);
        }
        let since = *self.busy.get_or_insert(now);
        if is_crowded(waiting) {
            return (AT_ONCE, None);
        }
        let end = since + PATIENCE;
        if now < end { (0, Some(end)) } else { (TRICKLE, None) }
    }

    fn take(&mut self, item: Item, now: Instant) {
        let Item { by, regarding, related, happened, at } = item;
        let seen = Seen { by, regarding, related, happened };
        match self.series.add(seen, at, now) {
            Step::Create(seen, name) => self.create(seen, &name, at),
            Step::Update(seen) => self.update(seen),
            Step::Wait => {}
        }
    }

    fn create(&mut self, seen: Arc<Seen>, name: &str, at: Timestamp) {
        let (writer, event) = (self.writer.clone(), event(&seen, name, at));
        self.writes.spawn(async move {
            let done = writer.create(EVENTS, home(&seen.regarding), &event).await;
            Done { seen, created: true, cause: done.err().map(|failure| failure.cause) }
        });
    }

    fn update(&mut self, seen: Arc<Seen>) {
        let Some((name, count, last)) = self.series.state(&seen) else { return };
        let patch = json!({"series": {"count": count, "lastObservedTime": micros(last)}});
        let (writer, key) = (self.writer.clone(), Key::new(home(&seen.regarding), name));
        self.writes.spawn(async move {
            let done = writer.patch(EVENTS.whole(), &key, Patch::Merge, &patch).await;
            Done { seen, created: false, cause: done.err().map(|failure| failure.cause) }
        });
    }

    fn finish(&mut self, done: Result<Done, tokio::task::JoinError>) {
        let Ok(Done { seen, created, cause }) = done else { return };
        match cause {
            None => self.series.written(&seen),
            // Events are deleted after an hour; the next of the series begins another.
            Some(Cause::NotFound) if !created => self.series.forget(&seen),
            Some(cause) => {
                self.counts.failed.inc();
                tracing::debug!(?cause, object = %seen.regarding.key, reason = seen.happened.reason, "event not sent");
                if created {
                    self.series.forget(&seen);
                }
            }
        }
    }
}

/// Events about what is in no namespace live in this one.
fn home(regarding: &Regarding) -> &str {
    if regarding.key.namespace.is_empty() { "default" } else { &regarding.key.namespace }
}

fn event(seen: &Seen, name: &str, at: Timestamp) -> Value {
    let Seen { by, regarding, related, happened } = seen;
    let mut event = json!({
        "apiVersion": EVENTS.api_version(), "kind": EVENTS.kind,
        "metadata": {"namespace": home(regarding), "name": name},
        "eventTime": micros(at), "regarding": reference(regarding),
        "reportingController": &*by.controller, "reportingInstance": &*by.instance,
        "type": match happened.severity { Severity::Normal => "Normal", Severity::Warning => "Warning" },
        "reason": happened.reason, "action": happened.action, "note": shortened(&happened.note),
    });
    if let Some(related) = related {
        event["related"] = reference(related);
    }
    event
}

fn reference(to: &Regarding) -> Value {
    let mut out = json!({
        "apiVersion": to.resource.api_version(), "kind": to.resource.kind, "name": &*to.key.name, "uid": &*to.uid,
    });
    if !to.key.namespace.is_empty() {
        out["namespace"] = json!(&*to.key.namespace);
    }
    out
}

fn shortened(note: &str) -> &str {
    let mut end = note.len().min(LONGEST_NOTE);
    while !note.is_char_boundary(end) {
        end -= 1;
    }
    &note[..end]
}

/// As the API has times with fractions.
fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_cut_between_characters() {
        assert_eq!(shortened("short"), "short");
        let long = "é".repeat(600);
        assert_eq!(shortened(&long).len(), 1024);
        assert_eq!(shortened(&format!("a{long}")).len(), 1023);
    }
}
