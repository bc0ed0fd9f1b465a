//! What do all events together say of a member? Messages go in, a report comes out; nothing waits here.

use super::watched::{Message, Nodes, Pods};
use crate::cluster::watch::News;
use crate::cluster::{Event, Informer, Watched};
use crate::sources::metrics_api::Measurements;
use jiff::{SignedDuration, Timestamp};
use loadline_core::ledger::Sample;
use loadline_core::member::{Member, Rules, Summary};

/// A watch is heard of about once a minute even when nothing happens; one that is silent for longer than this is not healthy.
const SILENT: SignedDuration = SignedDuration::from_mins(2);

/// What is known of a member now.
#[derive(Clone, Debug)]
pub(super) struct Report {
    pub cluster: String,
    /// All of it, or why it is not known.
    pub summary: Result<Summary, String>,
    /// What else is wrong: why nothing is measured.
    pub problem: Option<String>,
    /// What has been read, such as `3 nodes, 20 pods`.
    pub read: String,
}

/// Everything known of a member, for the one task that follows it.
#[derive(Debug)]
pub(super) struct State {
    cluster: String,
    member: Member,
    nodes: Informer<()>,
    pods: Informer<()>,
    /// There is not even a client.
    unreachable: Option<String>,
    /// Why nothing is measured.
    problem: Option<String>,
    /// What was measured of nodes before they were read; without it, use would not be known for a while after each start.
    early: Vec<(String, Sample)>,
}

impl State {
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            member: Member::new(),
            nodes: Informer::new("nodes"),
            pods: Informer::new("pods"),
            unreachable: None,
            problem: None,
            early: Vec::new(),
        }
    }

    /// There is not even a client, or there is again.
    pub fn unreachable(&mut self, problem: Option<String>) {
        self.unreachable = problem;
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
            Message::Measured(measurements) => {
                self.take_samples(measurements, now);
                News::Change
            }
        }
    }

    fn take_node(&mut self, event: Event<<Nodes as Watched>::Facts>, now: Timestamp) {
        let change = self.nodes.apply(event, now);
        for (meta, ()) in &change.deleted {
            self.member.remove_node(&meta.key.name);
        }
        match change.applied {
            Some((_, Some(read))) => self.member.set_node(&read.0, read.1),
            // What cannot be read must not look free: it is as if it were not there.
            Some((meta, None)) => self.member.remove_node(&meta.key.name),
            None => {}
        }
        self.count(now);
    }

    fn take_pod(&mut self, event: Event<<Pods as Watched>::Facts>, now: Timestamp) {
        let change = self.pods.apply(event, now);
        for (meta, ()) in &change.deleted {
            self.member.remove_pod(&meta.uid, now);
        }
        // One that was readable before counts as it was then.
        if let Some(pod) = change.facts() {
            self.member.set_pod(&pod, now);
        }
    }

    fn take_samples(&mut self, measurements: Measurements, now: Timestamp) {
        match measurements {
            Ok(measured) => {
                if self.problem.take().is_some() {
                    tracing::info!(cluster = self.cluster, "measurements are back");
                }
                self.early = measured.nodes;
                self.count(now);
            }
            Err(problem) => {
                if self.problem.is_none() {
                    tracing::warn!(cluster = self.cluster, problem, "no measurements; use will not be known");
                }
                self.problem = Some(problem);
            }
        }
    }

    /// Counts what was measured, once it is known of what.
    fn count(&mut self, now: Timestamp) {
        if self.nodes.is_listed() {
            for (node, sample) in self.early.drain(..) {
                self.member.sample(&node, sample, now);
            }
        }
    }

    /// Is everything there, and not being replaced at this moment?
    pub fn is_whole(&self) -> bool {
        [&self.nodes, &self.pods].into_iter().all(|one| one.is_listed() && !one.is_replacing())
    }

    /// What is known now.
    pub fn report(&self, now: Timestamp, rules: &Rules) -> Report {
        let summary = match self.away(now) {
            Some(problem) => Err(problem),
            None => Ok(self.member.summary(now, rules)),
        };
        Report {
            cluster: self.cluster.clone(),
            summary,
            problem: self.problem.clone(),
            read: format!("{} nodes, {} pods", self.nodes.count(), self.pods.count()),
        }
    }

    /// Why what is known may not be so any more.
    fn away(&self, now: Timestamp) -> Option<String> {
        if let Some(problem) = &self.unreachable {
            return Some(problem.clone());
        }
        let informers = [&self.nodes, &self.pods];
        if let Some((problem, _)) = informers.iter().find_map(|one| one.trouble()) {
            return Some(problem.clone());
        }
        let unread: Vec<&str> =
            informers.iter().filter(|one| !one.is_listed()).map(|one| one.name()).collect();
        if !unread.is_empty() {
            return Some(format!("still reading {}", unread.join(" and ")));
        }
        let silent = informers.iter().filter_map(|one| Some((one.name(), now.duration_since(one.heard()?))));
        let (name, silent) = silent.max_by_key(|(_, silent)| *silent)?;
        (silent > SILENT).then(|| format!("nothing heard of {name} for {} s", silent.as_secs()))
    }
}
