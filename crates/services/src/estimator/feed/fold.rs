//! What do all news together say?

use super::super::load::Load;
use super::super::{Known, Member, Status};
use super::kinds::{Nodes, Pods, ReplicaSets};
use super::{Item, Options};
use crate::watch::{Kind, Meta, News, Roster};
use jiff::Timestamp;
use loadline_api::Error;
use loadline_core::estimate::{Index, Waiting};
use loadline_core::load::recommend::Target;
use std::collections::BTreeSet;
use std::time::Duration;

/// How many problems a status names; the rest are counted.
const NAMED: usize = 2;

/// What a message was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heard {
    /// Anything else.
    News,
    /// A list is complete.
    Listed,
    /// Something is wrong.
    Trouble,
}

/// How following one kind is going.
#[expect(clippy::struct_excessive_bools, reason = "different news change each")]
#[derive(Debug, Default)]
struct Standing {
    roster: Roster,
    /// Has it been read completely once?
    listed: bool,
    /// Is it being read?
    reading: bool,
    /// Did reading fail, and has not begun again?
    stuck: bool,
    /// May it not be read?
    forbidden: bool,
    /// When it was last known to be current.
    heard: Option<Timestamp>,
    /// What is wrong, and since when.
    trouble: Option<(String, Timestamp)>,
    /// Objects that are there and cannot be read.
    unreadable: BTreeSet<Meta>,
}

impl Standing {
    /// Is what is known being replaced at this moment?
    fn is_replacing(&self) -> bool {
        self.listed && self.reading && !self.stuck
    }

    /// Takes note; gives what is gone and what is there.
    fn hear<T>(&mut self, news: News<T>, now: Timestamp) -> (Vec<Meta>, Option<(Meta, T)>) {
        let (mut gone, mut there) = (Vec::new(), None);
        self.forbidden |= matches!(news, News::Forbidden(_));
        match news {
            News::Restart => {
                (self.reading, self.stuck) = (true, false);
                self.roster.restart();
                return (gone, there);
            }
            News::Trouble(what) | News::Forbidden(what) => {
                let since = self.trouble.take().map_or(now, |(_, since)| since);
                self.trouble = Some((what, since));
                self.stuck = true;
                return (gone, there);
            }
            News::Set(meta, facts) => {
                gone.extend(self.roster.set(&meta));
                there = Some((meta, facts));
            }
            News::Gone(meta) => {
                if self.roster.gone(&meta) {
                    gone.push(meta);
                }
            }
            News::Listed => {
                gone = self.roster.listed();
                (self.listed, self.reading, self.forbidden) = (true, false, false);
            }
            News::Heard => {}
        }
        for meta in &gone {
            self.unreadable.remove(meta);
        }
        // A list is current only as a whole.
        if !self.reading {
            self.heard = Some(now);
            self.trouble = None;
        }
        (gone, there)
    }

    /// What was read, if it could be. Otherwise that is noted, and told once.
    fn readable<T>(&mut self, cluster: &str, meta: &Meta, read: Result<T, Error>) -> Option<T> {
        match read {
            Ok(read) => {
                self.unreadable.remove(meta);
                Some(read)
            }
            Err(error) => {
                if self.unreadable.insert(meta.clone()) {
                    tracing::warn!(cluster, %error, "left out an object that cannot be read");
                }
                None
            }
        }
    }
}

/// Everything known of a member, for the one task that keeps it.
#[derive(Debug)]
pub struct Fold {
    name: String,
    index: Index,
    waiting: Waiting,
    load: Option<Load>,
    nodes: Standing,
    pods: Standing,
    sets: Standing,
    deployments: Standing,
    /// `None` if quotas are not followed.
    quotas: Option<Standing>,
    unreachable: Option<(String, Timestamp)>,
    /// Is there something readers have not seen?
    is_new: bool,
    is_published: bool,
}

impl Fold {
    /// Nothing is known yet.
    pub fn new(name: &str, options: &Options, now: Timestamp) -> Self {
        Self {
            name: name.to_owned(),
            index: Index::new(),
            waiting: Waiting::new(),
            load: options.load.as_ref().map(|load| Load::new(load, now)),
            nodes: Standing::default(),
            pods: Standing::default(),
            sets: Standing::default(),
            deployments: Standing::default(),
            quotas: options.quotas.then(Standing::default),
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

    /// Folds one message in.
    pub fn hear(&mut self, item: Item, now: Timestamp) -> Heard {
        match item {
            Item::Node(news) => {
                let heard = heard(&news);
                self.hear_node(news, now);
                heard
            }
            Item::Pod(news) => {
                let heard = heard(&news);
                self.hear_pod(news, now);
                heard
            }
            Item::ReplicaSet(news) => {
                let heard = heard(&news);
                self.hear_set(news, now);
                heard
            }
            Item::Deployment(news) => {
                let heard = heard(&news);
                let (gone, there) = self.deployments.hear(news, now);
                self.is_new |= !gone.is_empty() || there.is_some();
                for meta in gone {
                    self.waiting.remove_deployment(&meta.namespace, &meta.name);
                }
                if let Some((meta, read)) = there
                    && let Some(deployment) = self.deployments.readable(&self.name, &meta, read)
                {
                    self.waiting.set_deployment(deployment);
                }
                heard
            }
            Item::Quota(news) => {
                let heard = heard(&news);
                let Some(quotas) = &mut self.quotas else { return heard };
                let (gone, there) = quotas.hear(news, now);
                self.is_new |= !gone.is_empty() || there.is_some();
                for meta in gone {
                    self.index.remove_quota(&meta.namespace, &meta.name);
                }
                if let Some((meta, read)) = there
                    && let Some(quota) = quotas.readable(&self.name, &meta, read)
                {
                    self.index.set_quota(quota);
                }
                heard
            }
            Item::Figures(figures) => {
                if let Some(load) = &mut self.load {
                    load.measured(&self.name, figures, now);
                }
                Heard::News
            }
        }
    }

    fn hear_node(&mut self, news: News<<Nodes as Kind>::Facts>, now: Timestamp) {
        let (gone, there) = self.nodes.hear(news, now);
        self.is_new |= !gone.is_empty() || there.is_some();
        for meta in gone {
            self.remove_node(&meta.name);
        }
        let Some((meta, read)) = there else { return };
        // What cannot be read must not look free: it is as if it were not there.
        let Some(facts) = self.nodes.readable(&self.name, &meta, read) else {
            return self.remove_node(&meta.name);
        };
        self.index.set_node(&facts);
        if let Some(load) = &mut self.load {
            load.cluster.set_node(&facts);
        }
    }

    fn remove_node(&mut self, name: &str) {
        self.index.remove_node(name);
        if let Some(load) = &mut self.load {
            load.cluster.remove_node(name);
        }
    }

    fn hear_pod(&mut self, news: News<<Pods as Kind>::Facts>, now: Timestamp) {
        let (gone, there) = self.pods.hear(news, now);
        self.is_new |= !gone.is_empty() || there.is_some();
        for meta in gone {
            self.index.remove_pod(&meta.uid);
            self.waiting.remove_pod(&meta.namespace, &meta.uid);
            if let Some(load) = &mut self.load {
                load.cluster.remove_pod(&meta.uid);
            }
        }
        // One that was readable before counts as it was then.
        let Some((meta, read)) = there else { return };
        let Some(read) = self.pods.readable(&self.name, &meta, read) else { return };
        let (facts, unplaced) = *read;
        self.index.set_pod(&facts);
        if let Some(load) = &mut self.load {
            load.cluster.set_pod(&facts);
        }
        match unplaced {
            Some(pod) => self.waiting.set_pod(pod),
            None => self.waiting.remove_pod(&meta.namespace, &meta.uid),
        }
    }

    fn hear_set(&mut self, news: News<<ReplicaSets as Kind>::Facts>, now: Timestamp) {
        let (gone, there) = self.sets.hear(news, now);
        self.is_new |= !gone.is_empty() || there.is_some();
        for meta in gone {
            self.waiting.remove_replica_set(&meta.namespace, &meta.name);
            let target = Target {
                group: "apps".into(),
                kind: "ReplicaSet".into(),
                namespace: meta.namespace.into(),
                name: meta.name.into(),
            };
            self.index.controlled(target, None);
        }
        if let Some((meta, read)) = there
            && let Some((set, target, owner)) = self.sets.readable(&self.name, &meta, read)
        {
            self.waiting.set_replica_set(set);
            self.index.controlled(target, owner);
        }
    }

    /// How long nothing changes by time alone; `None` for as long as there is no news.
    pub fn due(&self, now: Timestamp) -> Option<Duration> {
        self.load.as_ref().and_then(|load| load.due(now))
    }

    /// Lets readers see what is new, if everything is there.
    pub fn publish(&mut self, member: &Member, now: Timestamp) {
        if let Some(load) = &mut self.load {
            self.is_new |= load.fill(&mut self.index, now);
        }
        let complete = self.standings().all(|(kind, standing)| standing.listed || is_spared(kind, standing));
        let replacing = self.standings().any(|(_, standing)| standing.is_replacing());
        if !complete || replacing || (self.is_published && !self.is_new) {
            return;
        }
        member.publish(Known { view: self.index.publish(), waiting: self.waiting.clone() });
        if !self.is_published {
            let (nodes, pods) = (self.nodes.roster.len(), self.pods.roster.len());
            tracing::info!(cluster = self.name, nodes, pods, "everything has been read");
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
            (None, Some(problem)) => tracing::warn!(cluster = self.name, problem, "answers may be old"),
            (Some(_), Some(problem)) => tracing::debug!(cluster = self.name, problem, "still not well"),
            (Some(_), None) => tracing::info!(cluster = self.name, "all is well again"),
            (None, None) => {}
        }
        member.tell(status);
    }

    fn standings(&self) -> impl Iterator<Item = (&'static str, &Standing)> {
        let always = [
            ("nodes", &self.nodes),
            ("pods", &self.pods),
            ("replicasets", &self.sets),
            ("deployments", &self.deployments),
        ];
        always.into_iter().chain(self.quotas.as_ref().map(|quotas| ("resourcequotas", quotas)))
    }

    fn status(&self) -> Status {
        let (nodes, pods) = (self.nodes.roster.len(), self.pods.roster.len());
        let open: Vec<&str> = self.standings().filter(|(_, s)| !s.listed).map(|(name, _)| name).collect();
        let reading =
            if open.is_empty() { String::new() } else { format!(" (still reading {})", open.join(", ")) };
        let troubles = self.standings().filter_map(|(_, standing)| standing.trouble.as_ref());
        let troubles: Vec<&(String, Timestamp)> = self.unreachable.iter().chain(troubles).collect();
        let named: Vec<&str> = troubles.iter().take(NAMED).map(|(what, _)| what.as_str()).collect();
        let more = troubles.len().saturating_sub(NAMED);
        let mut problem = named.join("; ");
        if more > 0 {
            problem = format!("{problem}; and {more} more");
        }
        Status {
            progress: format!("nodes {nodes}, pods {pods}{reading}"),
            heard: self
                .standings()
                .filter(|(kind, standing)| !is_spared(kind, standing))
                .map(|(_, s)| s.heard)
                .min()
                .flatten(),
            problem: (!troubles.is_empty()).then_some(problem),
            since: troubles.iter().map(|(_, since)| *since).min(),
            unreadable: self.standings().map(|(_, s)| s.unreadable.len()).sum(),
        }
    }
}

/// Is it something an account may not read, and that estimates can do without? Accounts made for other estimators may
/// not be allowed to read quotas. The status says that they do not count then.
fn is_spared(kind: &str, standing: &Standing) -> bool {
    standing.forbidden && !standing.listed && !matches!(kind, "nodes" | "pods")
}

fn heard<T>(news: &News<T>) -> Heard {
    match news {
        News::Listed => Heard::Listed,
        News::Trouble(_) | News::Forbidden(_) => Heard::Trouble,
        _ => Heard::News,
    }
}

#[cfg(test)]
mod tests;
