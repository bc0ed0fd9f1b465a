//! What is known of every node, and what should be written on it? Messages go in, patches come out; nothing waits here.

mod past;
mod taints;

use super::taint::{Tainted, Tainting};
use super::watched::{Binding, Message, Node};
use crate::cluster::events::{Happened, Severity};
use crate::cluster::{Change, Event, Informer};
use crate::ctx::Now;
use crate::reload::Reloaded;
use crate::sources::metrics_api::Measurements;
use crate::sources::prometheus::{self, Answered, Problem};
use jiff::{SignedDuration, Timestamp};
use loadline_core::ledger::{self, Ledger, Uid};
use loadline_core::load::hot::Bindings;
use loadline_core::load::join::{self, Found, Joined, Names, Series, Value};
use loadline_core::load::policy::{NodeRules, Rules};
use loadline_core::load::publish::{self, Known, Update, Urgency, Written};
use loadline_core::load::taints::{Heat, Options as TaintOptions};
use loadline_core::load::term::{Derived, RECENT};
use loadline_core::object::{Key, Meta};
use loadline_core::view::NodeId;
use past::History;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How soon after a patch of ours a node may get the next, by how urgent it is. The hot value may change with every pod.
const APART: [Duration; 3] = [Duration::from_secs(5), Duration::from_secs(30), Duration::from_mins(1)];
/// How long a node is left alone after a patch that failed, doubled each time.
const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(5));

/// How good what is known of a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Quality {
    /// Nothing can be written, and perhaps never could.
    #[default]
    Unknown,
    /// The newest sample is not older than three times the resolution, or 90 s.
    Fresh,
    /// Older, but of the last five minutes; or only monitoring knows.
    Late,
    /// It was known, and is not any more.
    Lost,
}

/// What is remembered of a node.
#[derive(Debug)]
struct Entry {
    id: NodeId,
    meta: Meta,
    node: Box<Node>,
    rules: NodeRules,
    written_on_it: Written,
    quality: Quality,
    warming_up: bool,
    /// The metric that is nearest to its limit, of those that are known.
    heat: Option<Heat>,
    /// When we last wrote, and from when on we may after a failure.
    written: Option<Instant>,
    failures: u32,
    not_before: Option<Instant>,
    in_flight: bool,
}

/// A patch to send.
#[derive(Clone, Debug)]
pub(super) struct Due {
    pub node: Meta,
    pub update: Update,
    pub taint: Option<Tainting>,
}

/// What is known of what a source says.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// When it last answered.
    pub at: Option<Timestamp>,
    /// What is wrong with it, by what was asked for; with nothing named, nobody answers at all.
    problems: BTreeMap<Arc<str>, String>,
}

impl Heard {
    /// It answered.
    fn well(&mut self, source: &str, about: &str, at: Timestamp) {
        self.at = Some(at);
        for about in ["", about] {
            if self.problems.remove(about).is_some() {
                tracing::info!(source, about, "source answers again");
            }
        }
    }

    /// It did not; told once as long as it is the same.
    fn badly(&mut self, source: &str, about: &Arc<str>, problem: String) {
        if self.problems.get(about) != Some(&problem) {
            tracing::warn!(source, about = &**about, problem, "source has no answer");
        }
        self.problems.insert(about.clone(), problem);
    }

    /// What is wrong, in one line.
    pub fn problem(&self) -> Option<String> {
        let told = |(about, problem): (&Arc<str>, &String)| {
            if about.is_empty() { problem.clone() } else { format!("{about}: {problem}") }
        };
        (!self.problems.is_empty()).then(|| self.problems.iter().map(told).collect::<Vec<_>>().join("; "))
    }
}

/// What monitoring says of a metric.
#[derive(Debug, Default)]
struct Monitored {
    /// Series that are not joined: new ones, or such as belong to no node, which may come later.
    series: Vec<Series>,
    /// Is it time to look whose they are?
    unjoined: bool,
    /// Do they come from a new answer, in place of those before?
    fresh: bool,
    /// What came of joining, by the ids of nodes.
    joined: Joined,
    /// Series without a label that could say whose they are.
    unlabelled: usize,
}

/// Everything.
#[derive(Debug)]
pub(super) struct State {
    pub policies: Reloaded<Rules>,
    options: publish::Options,
    /// By which lines nodes are tainted, if they are.
    taints: Option<TaintOptions>,
    nodes: Informer<()>,
    pods: Informer<()>,
    entries: BTreeMap<Arc<str>, Entry>,
    ids: Vec<NodeId>,
    width: u32,
    ledger: Ledger,
    bindings: Bindings<Uid>,
    /// Bindings to nodes that are not known yet, so that no order of arrival loses one.
    early: HashMap<String, Vec<(Uid, Timestamp)>>,
    monitored: BTreeMap<Arc<str>, Monitored>,
    pub metrics_api: Heard,
    pub prometheus: Heard,
    resolution: SignedDuration,
    /// Is Prometheus asked at all?
    monitors: bool,
    happened: Vec<(Meta, Happened)>,
    pub tainted: Tainted,
    history: History,
}

impl State {
    pub fn new(policies: Reloaded<Rules>, options: &super::Options) -> Self {
        let resolution = options.measure.map_or(prometheus::Options::EVERY, |measure| measure.every);
        Self {
            policies,
            options: options.publish,
            taints: options.taints,
            nodes: Informer::new("nodes"),
            pods: Informer::new("pods"),
            entries: BTreeMap::new(),
            ids: Vec::new(),
            width: 0,
            ledger: Ledger::new(ledger::Options::default()),
            bindings: Bindings::new(),
            early: HashMap::new(),
            monitored: BTreeMap::new(),
            metrics_api: Heard::default(),
            prometheus: Heard::default(),
            resolution: SignedDuration::try_from(resolution).unwrap_or(SignedDuration::from_secs(15)),
            monitors: options.prometheus.is_some(),
            happened: Vec::new(),
            tainted: Tainted::default(),
            history: History::default(),
        }
    }

    /// Takes one message in.
    pub fn take(&mut self, message: Message, now: Now) {
        match message {
            Message::Node(event) => {
                let change = self.nodes.apply(event, now.clock);
                self.take_node(change, now.clock);
            }
            Message::Pod(event) => self.take_pod(event, now.clock),
            Message::Policy(event) => {
                if self.policies.take_map(event) {
                    self.reread();
                }
            }
            Message::File(read) => {
                if self.policies.take_text(read) {
                    self.reread();
                }
            }
            Message::Measured(measurements) => self.take_samples(measurements, now.clock),
            Message::Answered(answered) => self.take_answer(answered),
            Message::History(read) => self.take_history(read, now.clock),
        }
    }

    fn take_node(&mut self, change: Change<Box<Node>, ()>, now: Timestamp) {
        for (meta, ()) in &change.deleted {
            self.remove(&meta.key.name);
        }
        let Some((meta, Some(node))) = change.applied else { return };
        let (rules, warnings) = self.policies.current().node(&node.labels, &node.annotations);
        for warning in warnings {
            tracing::debug!(node = %meta.key.name, warning, "annotation of a node has a problem");
        }
        let name = meta.key.name.clone();
        let written_on_it = Written::read(self.policies.current(), &name, &node.annotations);
        if let Some(entry) = self.entries.get_mut(&name) {
            let moved = entry.node.addresses != node.addresses;
            (entry.meta, entry.node, entry.rules, entry.written_on_it) = (meta, node, rules, written_on_it);
            if moved {
                self.join_again();
            }
            return;
        }
        let id = self.ids.pop().unwrap_or_else(|| {
            self.width += 1;
            NodeId(self.width - 1)
        });
        self.ledger.node(id);
        for (pod, at) in self.early.remove(&*name).unwrap_or_default() {
            self.bindings.bind(id, pod, at, at);
        }
        let entry = Entry {
            id,
            meta,
            node,
            rules,
            written_on_it,
            quality: Quality::Unknown,
            warming_up: false,
            heat: None,
            written: None,
            failures: 0,
            not_before: None,
            in_flight: false,
        };
        self.entries.insert(name.clone(), entry);
        self.recall(&name, now);
        self.join_again();
    }

    fn remove(&mut self, name: &str) {
        if let Some(entry) = self.entries.remove(name) {
            self.ledger.remove_node(entry.id);
            self.bindings.clear(entry.id);
            self.ids.push(entry.id);
            for one in self.monitored.values_mut() {
                // Its number will be another's.
                one.joined.values.get_mut(entry.id.index()).map(Option::take);
            }
        }
    }

    fn take_pod(&mut self, event: Event<Option<Binding>>, now: Timestamp) {
        // That a pod is gone does not undo that it was bound.
        let Some((meta, Some(Some(binding)))) = self.pods.apply(event, now).applied else { return };
        let longest = self.policies.current().policy().hot.iter().map(|bucket| bucket.range).max();
        if longest.is_none_or(|longest| now.duration_since(binding.at) > longest) {
            return;
        }
        let uid = Uid::new(&meta.uid);
        match self.entries.get(&*binding.node) {
            Some(entry) => {
                self.bindings.bind(entry.id, uid, binding.at, now);
            }
            None => self.early.entry(binding.node).or_default().push((uid, binding.at)),
        }
    }

    fn take_samples(&mut self, measurements: Measurements, now: Timestamp) {
        let measured = match measurements {
            Ok(measured) => measured,
            Err(problem) => {
                self.metrics_api.badly("metrics API", &"".into(), problem);
                return;
            }
        };
        self.metrics_api.well("metrics API", "", now);
        for (name, sample) in measured.nodes {
            // One from the future would keep all others out until then.
            let Some(entry) = self.entries.get(&*name).filter(|_| sample.at.duration_since(now) <= AHEAD)
            else {
                continue;
            };
            self.ledger.sample(entry.id, sample);
        }
    }

    fn take_answer(&mut self, answered: Answered) {
        let Answered { metric, answer, at } = answered;
        match answer {
            Ok(answer) => {
                self.prometheus.well("prometheus", &metric, at);
                let held = self.monitored.entry(metric).or_default();
                (held.series, held.unlabelled) = (answer.series, answer.unlabelled);
                (held.unjoined, held.fresh) = (true, true);
            }
            Err(problem) => {
                let nobody = matches!(problem, Problem::Away(_));
                let about = if nobody { "".into() } else { metric };
                self.prometheus.badly("prometheus", &about, problem.to_string());
            }
        }
    }

    /// A node came, or has other addresses: series that were nobody's may be its own.
    fn join_again(&mut self) {
        for one in self.monitored.values_mut() {
            one.unjoined |= !one.series.is_empty();
        }
    }

    /// The policy is another one.
    fn reread(&mut self) {
        let rules = self.policies.current().clone();
        for entry in self.entries.values_mut() {
            entry.rules = rules.node(&entry.node.labels, &entry.node.annotations).0;
            entry.written_on_it = Written::read(&rules, &entry.meta.key.name, &entry.node.annotations);
        }
        self.monitored.retain(|metric, _| rules.metrics().iter().any(|known| known.name == *metric));
    }

    /// Has everything been read?
    pub fn is_ready(&self) -> bool {
        self.policies.is_loaded()
            && self.nodes.is_listed()
            && self.pods.is_listed()
            && !self.nodes.is_replacing()
    }

    /// What should be written, the most urgent first; looks at every node.
    pub fn due(&mut self, now: Now) -> Vec<Due> {
        let rules = self.policies.current().clone();
        self.bindings.prune(now.clock, &rules.policy().hot);
        self.early.retain(|_, all| {
            all.retain(|(_, at)| now.clock.duration_since(*at) < SignedDuration::from_mins(5));
            !all.is_empty()
        });
        self.join();
        let columns: Vec<Option<&Joined>> = rules
            .metrics()
            .iter()
            .map(|metric| self.monitored.get(&metric.name).map(|one| &one.joined))
            .collect();
        let mut due = Vec::new();
        let mut known: Vec<Option<Known>> = Vec::new();
        for entry in self.entries.values_mut() {
            let derived = self.ledger.history(entry.id).map(|h| Derived::new(&h, entry.node.capacity));
            known.clear();
            known.extend(rules.metrics().iter().zip(&columns).map(|(metric, column)| {
                let monitored: Option<Value> =
                    column.and_then(|joined| *joined.values.get(entry.id.index())?);
                publish::choose(metric, derived.as_ref(), monitored, now.clock)
            }));
            entry.warming_up = known.iter().flatten().any(|known| known.warming_up);
            let newest = Newest {
                sample: derived.map(|derived| derived.at),
                any: known.iter().flatten().map(|known| known.value.at).max(),
            };
            let quality = quality(newest, self.resolution, now.clock, entry.quality);
            self.happened.extend(news(entry, quality).map(|happened| (entry.meta.clone(), happened)));
            entry.quality = quality;
            entry.heat = self.taints.and_then(|_| Heat::of_known(&rules, &entry.rules, &known));
            if entry.in_flight || entry.not_before.is_some_and(|at| now.at < at) {
                continue;
            }
            let node = publish::Node {
                rules: &entry.rules,
                annotations: &entry.node.annotations,
                written: &entry.written_on_it,
                known: &known,
                hot: self.bindings.hot(entry.id, now.clock, &rules.policy().hot),
            };
            let Some(update) = publish::update(&rules, &node, self.options, now.clock) else { continue };
            let apart = APART[update.urgency as usize];
            if entry.written.is_none_or(|at| now.at.duration_since(at) >= apart) {
                due.push(Due { node: entry.meta.clone(), update, taint: None });
            }
        }
        self.taint(&mut due, now);
        due.sort_by_key(|due| due.update.urgency);
        due
    }

    fn join(&mut self) {
        if !self.monitored.values().any(|one| one.unjoined) {
            return;
        }
        let nodes = self.entries.iter();
        let names = Names::at(nodes.map(|(name, e)| (e.id.index(), name, &e.node.addresses[..])));
        let width = usize::try_from(self.width).unwrap_or(usize::MAX);
        for (metric, one) in self.monitored.iter_mut().filter(|(_, one)| one.unjoined) {
            let joined = join::join(&names, width, &one.series);
            if one.fresh {
                tell(metric, one.series.len(), &joined);
                one.joined = joined;
            } else {
                one.joined.join_more(joined);
            }
            (one.unjoined, one.fresh) = (false, false);
            // The others are not needed any more, and there are many.
            one.series.retain(|series| !matches!(names.whose(series), Found::Node(_)));
            one.series.shrink_to_fit();
        }
    }

    /// A patch is on its way.
    pub fn sent(&mut self, node: &Meta, now: Now) {
        if let Some(entry) = self.entries.get_mut(&node.key.name) {
            (entry.in_flight, entry.written) = (true, Some(now.at));
        }
    }

    /// What came of a patch: the node as it is now, or nothing.
    pub fn done(&mut self, key: &Key, wrote: Option<(Meta, Option<Box<Node>>)>, now: Now) {
        if let Some(entry) = self.entries.get_mut(&key.name) {
            entry.in_flight = false;
            let pause = BACKOFF.0.saturating_mul(2_u32.saturating_pow(entry.failures)).min(BACKOFF.1);
            (entry.failures, entry.not_before) = if wrote.is_some() {
                (0, None)
            } else {
                (entry.failures.saturating_add(1), Some(now.at + pause))
            };
        }
        if let Some((meta, Some(node))) = wrote {
            let change = self.nodes.wrote(meta, Ok(node));
            self.take_node(change, now.clock);
        }
    }

    /// What happened to nodes that is worth an Event, since the last time.
    pub fn happened(&mut self) -> Vec<(Meta, Happened)> {
        std::mem::take(&mut self.happened)
    }

    /// How many nodes there are of each quality, and how many of them have ranges that are not filled yet.
    pub fn counts(&self) -> (BTreeMap<Quality, usize>, usize) {
        let mut counts = BTreeMap::new();
        for entry in self.entries.values() {
            *counts.entry(entry.quality).or_default() += 1;
        }
        (counts, self.entries.values().filter(|entry| entry.warming_up).count())
    }

    /// Series that were not used, by why, in the newest answers.
    pub fn ignored(&self) -> [(&'static str, usize); 5] {
        let joined = || self.monitored.values().map(|one| &one.joined);
        [
            ("nobodys", joined().map(|j| j.nobodys).sum()),
            ("shared_address", joined().map(|j| j.shared).sum()),
            ("repeated", joined().map(|j| j.repeated).sum()),
            ("invalid", joined().map(|j| j.invalid).sum()),
            ("unlabelled", self.monitored.values().map(|one| one.unlabelled).sum()),
        ]
    }

    /// The newest of what Prometheus says, for readiness: is it asked, and heard?
    pub fn monitors(&self) -> bool {
        self.monitors
    }

    /// Are nodes tainted?
    pub fn taints(&self) -> bool {
        self.taints.is_some()
    }

    pub fn rules(&self) -> &Arc<Rules> {
        self.policies.current()
    }
}

/// How far ahead of us a sample may be.
const AHEAD: SignedDuration = loadline_core::load::term::AHEAD;

/// What is worth telling about the series of a metric.
fn tell(metric: &str, series: usize, joined: &Joined) {
    let matched = joined.values.iter().flatten().count();
    let first = joined.first_nobodys.as_deref().unwrap_or_default();
    if series > 0 && matched == 0 {
        tracing::warn!(
            metric,
            series,
            first,
            "no series belongs to a node of this cluster; is it another cluster's, or is a label to be named?"
        );
    } else if joined.shared > 0 {
        tracing::warn!(
            metric,
            series = joined.shared,
            "several nodes have the address of a series, so none gets it"
        );
    } else {
        let (nobodys, repeated, invalid) = (joined.nobodys, joined.repeated, joined.invalid);
        tracing::debug!(metric, series, matched, nobodys, repeated, invalid, first, "series joined");
    }
}

/// When a node was last measured.
#[derive(Clone, Copy, Debug)]
struct Newest {
    /// By the metrics API.
    sample: Option<Timestamp>,
    /// By anybody.
    any: Option<Timestamp>,
}

fn quality(newest: Newest, resolution: SignedDuration, now: Timestamp, before: Quality) -> Quality {
    let fresh = (resolution * 3).max(SignedDuration::from_secs(90));
    let within = |at: Option<Timestamp>, age| at.is_some_and(|at| now.duration_since(at) <= age);
    if within(newest.sample, fresh) {
        Quality::Fresh
    } else if within(newest.sample.max(newest.any), RECENT) {
        Quality::Late
    } else if before == Quality::Unknown {
        Quality::Unknown
    } else {
        // A day's maximum may be good for hours yet; of the load now nobody knows anything.
        Quality::Lost
    }
}

/// An Event for data that are lost, and found again.
fn news(entry: &Entry, now: Quality) -> Option<Happened> {
    let happened = |severity, reason, note: &str| Happened {
        severity,
        reason,
        action: "Measuring",
        note: note.to_owned(),
    };
    match (entry.quality, now) {
        (Quality::Fresh | Quality::Late, Quality::Lost) => Some(happened(
            Severity::Warning,
            "LoadDataLost",
            "no source has measured this node for five minutes; what is written on it will expire",
        )),
        (Quality::Lost, Quality::Fresh | Quality::Late) => {
            Some(happened(Severity::Normal, "LoadDataFound", "this node is measured again"))
        }
        _ => None,
    }
}

/// Whether an update of this urgency is among those the rate is kept for.
#[must_use]
pub(super) fn label(urgency: Urgency) -> &'static str {
    match urgency {
        Urgency::Now => "now",
        Urgency::Expires => "expires",
        Urgency::Changed => "changed",
    }
}

#[cfg(test)]
mod tests;
