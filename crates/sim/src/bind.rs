//! Where does a new pod go? The load-aware scheduler of `core`, in a plain loop.
//!
//! One task owns everything that is known (`desk`) and decides one pod after the other; each is charged to its
//! node before the next is looked at. Around it, news come in (`news`) and writes go out (`act`), several at
//! a time. A write that fails is taken back and tried again.
//!
//! Everything comes from the API server, measurements included, as it would in a real cluster.

mod act;
mod desk;
mod heat;
mod news;
mod queue;

use crate::cluster::{Meta, Writer};
use crate::tell::{About, Event, Teller};
use crate::world::Counts;
use act::{Act, Done};
use desk::{Desk, Now};
use loadline_core::load::policy::Rules;
use loadline_core::view::PodFacts;
use news::News;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use heat::Peak;

/// Annotation of a node: until when no pod is sent there, because load was just taken off it by force. Whoever takes the
/// load off writes it, and schedulers read it, as two processes that know each other only by the API server.
pub const COOLING: &str = "loadline.dev/cooling-until";

/// Pods of these schedulers are given a node.
const SCHEDULERS: [&str; 2] = ["default-scheduler", "loadline"];
/// Who events come from.
const COMPONENT: &str = "loadline-scheduler";
/// Writes under way at a time.
const WRITES: usize = 32;
/// News waiting to be heard at a time; whoever brings more waits.
const NEWS: usize = 1024;

/// How pods are given nodes.
#[derive(Clone, Debug)]
pub struct Options {
    /// What is too much load.
    pub rules: Rules,
    /// Does load count? If not, pods go by what they request, as kube-scheduler has it, and load is only
    /// measured.
    pub aware: bool,
    /// Time between two looks at measurements.
    pub measure: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { rules: Rules::default(), aware: true, measure: Duration::from_secs(2) }
    }
}

/// What came of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pods without a node because they fit nowhere.
    pub pending: usize,
    /// The most there were of these.
    pub pending_most: usize,
    /// Pods sent to a node that was over its target when it was last measured.
    pub onto_hot: u64,
    /// Nodes over their target when they were last measured.
    pub hot: usize,
    /// Measured seconds over target, summed over nodes.
    pub node_seconds: u64,
    /// The worst that was measured.
    pub peak: Option<Peak>,
}

/// A pod without a node.
#[derive(Clone, Debug)]
struct Pending {
    meta: Meta,
    facts: PodFacts,
    /// Why it has none, as it was told last.
    told: Option<String>,
    /// All of it, if something it refers to is missing or it cannot be placed at all.
    held: Option<Value>,
}

impl Pending {
    /// Is what decisions depend on the same? Its status is not.
    fn wants_the_same(&self, other: &Self) -> bool {
        self.meta.generation == other.meta.generation && self.meta.labels == other.meta.labels
    }
}

/// The loop.
pub(crate) struct Scheduler {
    write: Writer,
    tell: Teller,
    counts: Arc<Counts>,
    options: Options,
}

impl Scheduler {
    pub fn new(write: Writer, options: &Options, tell: Teller, counts: Arc<Counts>) -> Self {
        Self { write, tell, counts, options: options.clone() }
    }

    /// Starts it. The figures it counts are there to be read at any time.
    pub fn start(self, tasks: &mut JoinSet<()>, stop: &CancellationToken) -> watch::Receiver<Tally> {
        let (send, news) = mpsc::channel(NEWS);
        news::gather(self.write.client(), self.options.measure, &send, tasks, stop);
        let (counted, tally) = watch::channel(Tally::default());
        let stop = stop.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.run(news, counted) => {}
            }
        });
        tally
    }

    async fn run(self, mut news: mpsc::Receiver<News>, counted: watch::Sender<Tally>) {
        let mut desk = Desk::new(self.options.rules.clone(), self.options.aware, Now::read());
        let mut writes = JoinSet::new();
        loop {
            let now = Now::read();
            // What is known goes in before anything is decided.
            for _ in 0..NEWS {
                let Ok(new) = news.try_recv() else { break };
                desk.hear(new, now);
            }
            while let Some(done) = writes.try_join_next() {
                self.finish(&mut desk, done, now);
            }
            desk.advance(now);
            while writes.len() < WRITES
                && let Some(act) = desk.next(now)
            {
                self.announce(&act);
                let write = self.write.clone();
                writes.spawn(async move { act::carry_out(act, &write).await });
            }
            for (from, about, what) in desk.said() {
                self.tell.notice(from, about, what);
            }
            counted.send_if_modified(|tally| {
                let new = desk.tally();
                std::mem::replace(tally, new) != *tally
            });
            // With all hands full there is nothing to do in time.
            let due = desk.due(now).filter(|_| writes.len() < WRITES);
            let timer = async {
                match due {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                new = news.recv() => match new {
                    Some(new) => desk.hear(new, Now::read()),
                    None => return,
                },
                Some(done) = writes.join_next() => self.finish(&mut desk, done, Now::read()),
                () = timer => {}
            }
        }
    }

    /// Tells of a refusal, once for each reason.
    fn announce(&self, act: &Act) {
        let Some((pod, why)) = act.refusal() else { return };
        if let Act::Preempt { node, victims, .. } = act
            && !victims.is_empty()
        {
            let names: Vec<String> = victims.iter().map(|(key, _)| key.to_string()).collect();
            let what = format!("less important pods are evicted from {node} for it: {}", names.join(", "));
            self.tell.notice("scheduler", &pod.meta.key, what);
        }
        if pod.told.as_deref() == Some(why) {
            return;
        }
        if pod.told.is_none() {
            self.counts.unschedulable.add();
            self.tell.notice("pod", &pod.meta.key, format!("waits: {why}"));
        }
        self.event(pod, true, "FailedScheduling", why.to_owned());
    }

    fn finish(&self, desk: &mut Desk, done: Result<Done, tokio::task::JoinError>, now: Now) {
        let done = match done {
            Ok(done) => done,
            Err(error) => {
                tracing::error!(%error, "a write ended badly");
                return;
            }
        };
        if let Done::Bound { pod, node } = &done {
            self.counts.bound.add();
            let message = format!("Successfully assigned {} to {node}", pod.meta.key);
            self.event(pod, false, "Scheduled", message);
        }
        if let Done::Refused { evicted, .. } = &done {
            self.counts.evicted.add_all(*evicted);
        }
        desk.done(&done, now);
    }

    fn event(&self, pod: &Pending, warning: bool, reason: &'static str, message: String) {
        let about = About { api_version: "v1", kind: "Pod", meta: &pod.meta };
        self.tell.event(&about, &Event { component: COMPONENT, host: None, warning, reason, message });
    }
}
