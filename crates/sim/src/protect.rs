//! Who keeps a node from being overrun? An agent per node: it slows pods down, asks them to go, and gives back.
//!
//! What is done is decided by [`plan`](fn@loadline_core::qos::plan); here is what it takes to ask it and to do it. One task
//! plays the agents of all nodes. Everything they need but usage and quotas comes from the API server, and everything
//! others should know goes there: a taint, a condition and a [mark](crate::bind::COOLING) on the node, events, and
//! evictions, which the API server may refuse.
//!
//! | question | module |
//! |---|---|
//! | what was asked for | `asked` |
//! | which pods are there | `guest` |
//! | what is used | `look` |
//! | what the node says | `close` |
//! | what is told | `say` |

mod asked;
mod close;
mod guest;
mod look;
mod say;
#[cfg(test)]
mod tests;

use crate::cluster::{Cluster, Error, Node, Shelf};
use crate::node::Kubelets;
use crate::tell::Teller;
use crate::world::Counts;
use asked::Asked;
use guest::Guest;
use jiff::Timestamp;
use loadline_api::qos::write;
use loadline_core::object::Key;
use loadline_core::qos::policy::Policy;
use loadline_core::qos::{self, Plan, Reply, Results, Snapshot, State, Victim};
use look::Look;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How often other pods are looked for in one cycle because somebody may not go.
const TRIES: usize = 3;

/// Warnings remembered, so that each is given once; there may not be so many.
const WARNINGS: usize = 256;

/// How nodes are protected.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time between two looks.
    pub every: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { every: Duration::from_secs(2) }
    }
}

/// The agents of all nodes.
pub(crate) struct Agents {
    cluster: Arc<Cluster>,
    kubelets: Arc<Kubelets>,
    asked: Asked,
    /// Followed only once there is a rule.
    guests: Arc<Shelf<Guest>>,
    tell: Teller,
    counts: Arc<Counts>,
    every: Duration,
    /// What each agent remembers, by node.
    memory: BTreeMap<String, Memory>,
    /// Warnings that were told.
    warned: BTreeSet<String>,
}

/// What an agent remembers.
#[derive(Debug)]
struct Memory {
    state: State,
    /// Pods that may not go, as was told.
    blocked: BTreeSet<Key>,
}

impl Default for Memory {
    fn default() -> Self {
        Self { state: State { cycles: Some(0), ..State::default() }, blocked: BTreeSet::new() }
    }
}

impl Memory {
    /// Is there anything to look after?
    fn is_idle(&self) -> bool {
        self.state.throttled.is_empty() && self.state.rules.values().all(|rule| !rule.active)
    }
}

impl Agents {
    pub fn new(
        cluster: Arc<Cluster>,
        kubelets: Arc<Kubelets>,
        options: &Options,
        tell: Teller,
        counts: Arc<Counts>,
    ) -> Self {
        Self {
            cluster,
            kubelets,
            asked: Asked::default(),
            guests: Arc::default(),
            tell,
            counts,
            every: options.every,
            memory: BTreeMap::new(),
            warned: BTreeSet::new(),
        }
    }

    /// Makes the kinds known and starts.
    ///
    /// # Errors
    /// When the server does not want to know the kinds.
    pub async fn start(self, tasks: &mut JoinSet<()>, stop: &CancellationToken) -> Result<(), Error> {
        asked::define(&self.cluster.write).await?;
        self.asked.follow(&self.cluster, tasks, stop);
        let stop = stop.clone();
        tasks.spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.run(&stop) => {}
            }
        });
        Ok(())
    }

    async fn run(mut self, stop: &CancellationToken) {
        self.asked.ready().await;
        let mut watches = JoinSet::new();
        let mut ticks = tokio::time::interval(self.every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if watches.is_empty() && self.asked.anything() {
                self.cluster.follow(&self.guests, &mut watches, stop);
                self.guests.ready().await;
            }
            self.cycle(Timestamp::now()).await;
        }
    }

    /// One look at every node, and what follows from it.
    async fn cycle(&mut self, now: Timestamp) {
        let policy = self.asked.policy();
        for warning in policy.warnings() {
            if self.warned.len() < WARNINGS && self.warned.insert(warning.clone()) {
                self.tell.notice("agent", "rules", warning);
            }
        }
        let nodes = self.cluster.nodes.all();
        self.memory.retain(|name, _| nodes.iter().any(|node| node.meta.key.name == *name));
        let anything = self.asked.anything();
        let due = |node: &&Arc<Node>| {
            let memory = self.memory.get(&node.meta.key.name);
            anything || memory.is_some_and(|memory| !memory.is_idle()) || says_something(node)
        };
        let due: Vec<Arc<Node>> = nodes.iter().filter(due).cloned().collect();
        if due.is_empty() {
            return;
        }
        let (cluster, kubelets) = (self.cluster.clone(), self.kubelets.clone());
        let look = Look::new((now, self.every), &cluster, &kubelets, self.guests.all());
        for node in due {
            let memory = self.memory.remove(&node.meta.key.name).unwrap_or_default();
            let Some(snapshot) = look.snapshot(&node, memory.state) else { continue };
            let memory = Memory { state: State::default(), ..memory };
            let memory =
                self.protect(&node, look.guests(&node.meta.key.name), &policy, snapshot, memory).await;
            self.memory.insert(node.meta.key.name.clone(), memory);
        }
    }

    /// One cycle of one node.
    async fn protect(
        &self,
        node: &Node,
        guests: &[Arc<Guest>],
        policy: &Policy,
        mut snapshot: Snapshot,
        mut memory: Memory,
    ) -> Memory {
        let mut plan = qos::plan(policy, &snapshot);
        let mut results = Results::default();
        // First the mark: who takes the place of a victim comes at once.
        if !snapshot.node.preview {
            self.close(node, &plan, snapshot.now).await;
        }
        for attempt in 1..=TRIES {
            results.replies = self.evict(node, guests, &plan, &snapshot).await;
            let all_went = results.replies.values().all(|reply| reply.is_granted() || reply.is_gone());
            if all_went || attempt == TRIES {
                break;
            }
            // From where this cycle began, but knowing who went and who may not.
            snapshot.state.evictions = plan.settle(&results).evictions;
            plan = qos::plan(policy, &snapshot);
        }
        for write in &plan.steps.writes {
            match snapshot.pods.iter().find(|pod| pod.key == write.pod) {
                Some(pod) => self.kubelets.quotas().set(&pod.uid, &write.container, write.quota),
                None => drop(results.unwritten.insert((write.pod.clone(), write.container.clone()))),
            }
        }
        self.tell_writes(node, &plan, &snapshot);
        self.tell_events(node, guests, &plan, &mut memory.blocked);
        memory.state = plan.settle(&results);
        memory
    }

    async fn close(&self, node: &Node, plan: &Plan, now: Timestamp) {
        match close::say(&self.cluster, node, &plan.closed, now).await {
            Ok(true) => self.tell_closed(node, &plan.closed),
            Ok(false) => {}
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                tracing::debug!(node = %node.meta.key, error, "could not mark a node");
            }
        }
    }

    /// Asks the victims of a plan to go; says what was replied.
    async fn evict(
        &self,
        node: &Node,
        guests: &[Arc<Guest>],
        plan: &Plan,
        snapshot: &Snapshot,
    ) -> BTreeMap<Key, Reply> {
        let mut replies = BTreeMap::new();
        for victim in &plan.steps.victims {
            let reply = self.ask(victim).await;
            if reply.is_granted() {
                self.counts.relieved.add();
                self.tell_evicted(node, guests, plan, victim, snapshot);
            }
            replies.insert(victim.pod.clone(), reply);
        }
        replies
    }

    /// What the API server replies.
    async fn ask(&self, victim: &Victim) -> Reply {
        let Key { namespace, name } = &victim.pod;
        let path = format!("/api/v1/namespaces/{namespace}/pods/{name}/eviction");
        match self.cluster.write.create_at(&path, &write::eviction(victim)).await {
            Ok(_) => Reply::Granted,
            Err(error) => {
                let reply = write::reply(error.code().unwrap_or(500));
                let error = &error as &dyn std::error::Error;
                tracing::debug!(pod = %victim.pod, error, "not evicted");
                reply
            }
        }
    }
}

/// Does a node say something an agent has to take back one day?
fn says_something(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.key == qos::taint::KEY)
        || node.meta.annotation(crate::bind::COOLING).is_some()
}
