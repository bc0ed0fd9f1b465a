//! What do all events together say of a member?

use super::follow::{Message, Options};
use super::load::Load;
use super::watched::{Deployments, Nodes, Pods, Quotas, ReplicaSets};
use super::{Known, Member, Status};
use crate::cluster::watch::News;
use crate::cluster::{Event, Informer, Watched};
use jiff::Timestamp;
use loadline_core::estimate::{Index, Waiting};
use loadline_core::load::recommend::WorkloadRef;
use std::time::Duration;

/// How many problems a status names; the rest are counted.
const NAMED: usize = 2;

/// Everything known of a member, for the one task that keeps it.
#[derive(Debug)]
pub(super) struct State {
    cluster: String,
    index: Index,
    waiting: Waiting,
    load: Option<Load>,
    nodes: Informer<()>,
    pods: Informer<()>,
    replica_sets: Informer<()>,
    deployments: Informer<()>,
    /// `None` if quotas are not watched.
    quotas: Option<Informer<()>>,
    unreachable: Option<(String, Timestamp)>,
    /// Is there something readers have not seen?
    is_new: bool,
    is_published: bool,
}

fn informer<W: Watched>() -> Informer<()> {
    Informer::new(W::RESOURCE.plural)
}

impl State {
    /// Nothing is known yet.
    pub fn new(cluster: &str, options: &Options, now: Timestamp) -> Self {
        Self {
            cluster: cluster.to_owned(),
            index: Index::new(),
            waiting: Waiting::new(),
            load: options.load.as_ref().map(|load| Load::new(load, now)),
            nodes: informer::<Nodes>(),
            pods: informer::<Pods>(),
            replica_sets: informer::<ReplicaSets>(),
            deployments: informer::<Deployments>(),
            quotas: options.quotas.then(informer::<Quotas>),
            unreachable: None,
            is_new: false,
            is_published: false,
        }
    }

    /// There is not even a client.
    pub fn unreachable(&mut self, problem: String, now: Timestamp) {
        let since = self.unreachable.take().map_or(now, |(_, since)| since);
        self.unreachable = Some((problem, since));
    }

    /// There is one.
    pub fn reachable(&mut self) {
        self.unreachable = None;
    }

    /// Takes one message in; says what it was.
    pub fn take(&mut self, message: Message, now: Timestamp) -> News {
        match message {
            Message::Node(event) => {
                let news = event.news();
                self.take_node(event, now);
                news
            }
            Message::Pod(event) => {
                let news = event.news();
                self.take_pod(event, now);
                news
            }
            Message::ReplicaSet(event) => {
                let news = event.news();
                self.take_replica_set(event, now);
                news
            }
            Message::Deployment(event) => {
                let news = event.news();
                let change = self.deployments.apply(event, now);
                self.is_new |= !change.is_empty();
                for (meta, ()) in &change.deleted {
                    self.waiting.remove_deployment(&meta.key);
                }
                if let Some(deployment) = change.facts() {
                    self.waiting.set_deployment(deployment);
                }
                news
            }
            Message::Quota(event) => {
                let news = event.news();
                let Some(quotas) = &mut self.quotas else { return news };
                let change = quotas.apply(event, now);
                self.is_new |= !change.is_empty();
                for (meta, ()) in &change.deleted {
                    self.index.remove_quota(&meta.key);
                }
                if let Some(quota) = change.facts() {
                    self.index.set_quota(quota);
                }
                news
            }
            Message::Measured(measurements) => {
                if let Some(load) = &mut self.load {
                    load.measured(&self.cluster, measurements, now);
                }
                News::Change
            }
            Message::Policy(read) => {
                if let Some(load) = &mut self.load {
                    load.reread(read);
                }
                News::Change
            }
        }
    }

    fn take_node(&mut self, event: Event<<Nodes as Watched>::Facts>, now: Timestamp) {
        let change = self.nodes.apply(event, now);
        self.is_new |= !change.is_empty();
        let mut gone: Vec<_> = change.deleted.into_iter().map(|(meta, ())| meta.key.name).collect();
        let mut facts = None;
        match change.applied {
            Some((_, Some(read))) => facts = Some(read),
            // What cannot be read must not look free: it is as if it were not there.
            Some((meta, None)) => gone.push(meta.key.name),
            None => {}
        }
        for name in gone {
            self.index.remove_node(&name);
            if let Some(load) = &mut self.load {
                load.cluster.remove_node(&name);
            }
        }
        let Some(facts) = facts else { return };
        self.index.set_node(&facts);
        if let Some(load) = &mut self.load {
            load.cluster.set_node(&facts);
        }
    }

    fn take_pod(&mut self, event: Event<<Pods as Watched>::Facts>, now: Timestamp) {
        let change = self.pods.apply(event, now);
        self.is_new |= !change.is_empty();
        for (meta, ()) in &change.deleted {
            self.index.remove_pod(&meta.uid);
            self.waiting.remove_pod(&meta.key.namespace, &meta.uid);
            if let Some(load) = &mut self.load {
                load.cluster.remove_pod(&meta.uid);
            }
        }
        // One that was readable before counts as it was then.
        let Some((meta, Some(read))) = change.applied else { return };
        let (facts, unplaced) = *read;
        self.index.set_pod(&facts);
        if let Some(load) = &mut self.load {
            load.cluster.set_pod(&facts);
        }
        match unplaced {
            Some(pod) => self.waiting.set_pod(pod),
            None => self.waiting.remove_pod(&meta.key.namespace, &meta.uid),
        }
    }

    fn take_replica_set(&mut self, event: Event<<ReplicaSets as Watched>::Facts>, now: Timestamp) {
        let change = self.replica_sets.apply(event, now);
        self.is_new |= !change.is_empty();
        for (meta, ()) in &change.deleted {
            self.waiting.remove_replica_set(&meta.key);
            let target =
                WorkloadRef { group: "apps".into(), kind: "ReplicaSet".into(), key: meta.key.clone() };
            self.index.controlled(target, None);
        }
        if let Some((set, target, owner)) = change.facts() {
            self.waiting.set_replica_set(set);
            self.index.controlled(target, owner);
        }
    }

    /// How long nothing changes by time alone; `None` for as long as there is no event.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        self.load.as_ref().and_then(|load| load.due(now))
    }

    /// Lets readers see what is new, if everything is there.
    pub fn publish(&mut self, member: &Member, now: Timestamp) {
        if let Some(load) = &mut self.load {
            self.is_new |= load.fill(&mut self.index, now);
        }
        let complete = self.informers().all(|informer| informer.is_listed() || is_spared(informer));
        let replacing = self.informers().any(Informer::is_replacing);
        if !complete || replacing || (self.is_published && !self.is_new) {
            return;
        }
        member.publish(Known {
            view: self.index.publish(),
            waiting: self.waiting.clone(),
            ..Known::default()
        });
        if !self.is_published {
            let (nodes, pods) = (self.nodes.store().len(), self.pods.store().len());
            tracing::info!(cluster = self.cluster, nodes, pods, "cluster read completely");
        }
        (self.is_new, self.is_published) = (false, true);
    }

    /// Says how it is going.
    pub fn tell(&self, member: &Member) {
        let status = self.status();
        let before = member.status();
        if *before == status {
            return;
        }
        match (&before.problem, &status.problem) {
            (None, Some(problem)) => tracing::warn!(
                cluster = self.cluster,
                problem,
                "cluster cannot be followed, answers may be old"
            ),
            (Some(_), Some(problem)) => {
                tracing::debug!(cluster = self.cluster, problem, "cluster still cannot be followed");
            }
            (Some(_), None) => tracing::info!(cluster = self.cluster, "cluster followed again"),
            (None, None) => {}
        }
        member.tell(status);
    }

    fn informers(&self) -> impl Iterator<Item = &Informer<()>> {
        let always = [&self.nodes, &self.pods, &self.replica_sets, &self.deployments];
        always.into_iter().chain(self.quotas.as_ref())
    }

    fn status(&self) -> Status {
        let (nodes, pods) = (self.nodes.store().len(), self.pods.store().len());
        let open: Vec<&str> = self.informers().filter(|i| !i.is_listed()).map(Informer::name).collect();
        let reading =
            if open.is_empty() { String::new() } else { format!(" (still reading {})", open.join(", ")) };
        let troubles = self.informers().filter_map(Informer::trouble);
        let troubles: Vec<&(String, Timestamp)> = self.unreachable.iter().chain(troubles).collect();
        let named: Vec<&str> = troubles.iter().take(NAMED).map(|(what, _)| what.as_str()).collect();
        let more = troubles.len().saturating_sub(NAMED);
        let mut problem = named.join("; ");
        if more > 0 {
            problem = format!("{problem}; and {more} more");
        }
        let policy = self.load.as_ref().and_then(|load| load.policy.problem());
        let policy = policy.map(|problem| format!(", policy: {problem}")).unwrap_or_default();
        Status {
            progress: format!("nodes {nodes}, pods {pods}{reading}{policy}"),
            heard: self.informers().filter(|i| !is_spared(i)).map(Informer::heard).min().flatten(),
            problem: (!troubles.is_empty()).then_some(problem),
            since: troubles.iter().map(|(_, since)| *since).min(),
            unreadable: self.informers().map(Informer::unreadable).sum(),
        }
    }
}

/// Is it something an account may not read, and that estimates can do without? Accounts made for other estimators may
/// not be allowed to read quotas. The status says that they do not count then.
fn is_spared(informer: &Informer<()>) -> bool {
    informer.is_denied() && !matches!(informer.name(), "nodes" | "pods")
}

#[cfg(test)]
mod tests;
