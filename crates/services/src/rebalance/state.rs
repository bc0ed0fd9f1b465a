//! What is known? What the scheduler knows, how it was of late, and what was moved. Nothing waits here.

use crate::cluster::{Event, Informer};
use crate::ctx::Now;
use crate::rebalance::act::KEY;
use crate::scheduler::state::State as Scheduler;
use crate::scheduler::watched::Message;
use crate::sources::metrics_api::Measured;
use jiff::{SignedDuration, Timestamp};
use loadline_api::node::COOLING;
use loadline_api::rebalance::{MOVED, moved};
use loadline_api::scheduler::Configuration;
use loadline_core::ledger::{Sample, Uid};
use loadline_core::load::Load;
use loadline_core::load::term::AHEAD;
use loadline_core::object::Key;
use loadline_core::rebalance::{Closing, Input, Move, Moves, Off, Plan, Recent, Settings, plan};
use loadline_core::select::Lookup;
use loadline_core::view::NodeId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long a pod that may not go is not asked again, at first.
const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(30);
/// And at most.
const LAST_PAUSE: SignedDuration = SignedDuration::from_mins(15);

/// Pods that went from a node, to be measured.
#[derive(Clone, Debug)]
struct Relief {
    since: Timestamp,
    before: Load,
    predicted: Load,
    uids: Vec<Arc<str>>,
}

/// A pod the API server did not let go.
#[derive(Clone, Copy, Debug)]
struct Blocked {
    until: Timestamp,
    pause: SignedDuration,
}

/// Everything.
pub(super) struct State {
    scheduler: Scheduler,
    settings: Arc<Settings>,
    recent: Recent,
    /// Which node a number was, when it was last measured.
    names: BTreeMap<NodeId, Arc<str>>,
    pub moves: Moves,
    /// Has what nodes say was moved been read?
    remembered: bool,
    switches: Informer<bool>,
    blocked: BTreeMap<Arc<str>, Blocked>,
    reliefs: BTreeMap<Arc<str>, Relief>,
    /// Pods that were asked to go and will, by uid.
    gone: BTreeSet<Arc<str>>,
    /// Nodes that say of somebody that it was moved who was not.
    pub untrue: BTreeSet<Arc<str>>,
    /// Nodes this one put a taint on, whether that is seen yet or not.
    pub tainted: BTreeSet<Arc<str>>,
    /// Why there are no measurements.
    pub problem: Option<String>,
}

impl State {
    pub fn new(configuration: &Configuration, settings: &Arc<Settings>, now: Now) -> Self {
        Self {
            scheduler: Scheduler::new(configuration, now),
            settings: settings.clone(),
            recent: Recent::new(settings),
            names: BTreeMap::new(),
            moves: Moves::default(),
            remembered: false,
            switches: Informer::new("namespaces"),
            blocked: BTreeMap::new(),
            reliefs: BTreeMap::new(),
            gone: BTreeSet::new(),
            untrue: BTreeSet::new(),
            tainted: BTreeSet::new(),
            problem: None,
        }
    }

    /// Goes by other settings from now on. Another length of the past is looked at from now on, too.
    pub fn set_settings(&mut self, settings: &Arc<Settings>) {
        if (settings.over_for, settings.high_for) != (self.settings.over_for, self.settings.high_for) {
            self.recent = Recent::new(settings);
        }
        self.settings = settings.clone();
    }

    /// The scheduler goes by other rules from now on.
    pub fn configure(&mut self, configuration: &Configuration, now: Now) {
        self.scheduler.configure(configuration, now);
    }

    /// No more than so many within an hour.
    pub fn limit(&mut self, most: Option<u32>) {
        if let Some(most) = most.filter(|most| *most != self.settings.per_hour) {
            Arc::make_mut(&mut self.settings).per_hour = most;
        }
    }

    pub fn is_ready(&self) -> bool {
        let switches = self.switches.is_listed() || self.switches.is_denied();
        self.scheduler.is_ready() && switches
    }

    pub fn take_switch(&mut self, event: Event<bool>, now: Now) {
        let change = self.switches.apply(event, now.clock);
        if let Some((meta, Some(off))) = change.applied
            && let Some(held) = self.switches.value_mut(&meta.key)
        {
            *held = off;
        }
    }

    /// Takes a message in; says whether it was a measurement.
    pub fn take(&mut self, message: Message, now: Now) -> bool {
        let samples = match &message {
            Message::Measured(Ok(measured)) => {
                self.problem = None;
                Some(measured.clone())
            }
            Message::Measured(Err(problem)) => {
                self.problem = Some(problem.clone());
                None
            }
            _ => None,
        };
        self.scheduler.take(message, now);
        if let Some(samples) = &samples {
            self.look_back(samples, now.clock);
        }
        samples.is_some()
    }

    fn look_back(&mut self, measured: &Measured, now: Timestamp) {
        let cluster = self.scheduler.cluster();
        for (key, sample) in &measured.pods {
            if let Some(uid) = cluster.uid(key).filter(|_| sample.at.duration_since(now) <= AHEAD) {
                self.recent.pod(Uid::new(uid), *sample);
            }
        }
        for (name, sample) in &measured.nodes {
            let Some(node) = cluster.find_node(name).filter(|_| sample.at.duration_since(now) <= AHEAD)
            else {
                continue;
            };
            // The number may have been another node's.
            let before = self.names.insert(node.id, node.name.clone());
            if before.is_some_and(|before| before != node.name) {
                self.recent.forget_node(node.id);
            }
            self.recent.node(node.id, *sample);
        }
        self.recent.expire(now, self.settings.high_for);
    }

    pub fn advance(&mut self, now: Now) {
        self.scheduler.advance(now);
        // What is worth telling about scheduling is told by who schedules.
        drop(self.scheduler.notices());
        self.moves.expire(now.clock, self.settings.dwell);
        self.blocked.retain(|_, blocked| now.clock.duration_since(blocked.until) < LAST_PAUSE);
    }

    /// Reads what nodes say was moved: all of it by another one, as long as that leads, and once to begin with.
    pub fn remember(&mut self, leads: bool) {
        if leads && self.remembered {
            return;
        }
        self.remembered = leads;
        for node in self.scheduler.cluster().snapshot().nodes() {
            if let Some(text) = node.annotations.value(MOVED) {
                for one in moved(&node.name, text) {
                    self.moves.note(one);
                }
            }
        }
    }

    /// Forgets moves that were not made after all: whose node was measured since, and has the pod as if nobody had asked it to go.
    pub fn stayed(&mut self) {
        let cluster = self.scheduler.cluster();
        let mut stayed = Vec::new();
        self.gone.retain(|uid| self.moves.iter().any(|one| one.uid == *uid));
        for one in self.moves.iter().filter(|one| !self.gone.contains(&one.uid)) {
            let Some(node) = cluster.find_node(&one.from) else { continue };
            let there = node.pods.iter().any(|pod| pod.uid == one.uid && !pod.terminating);
            let newest = cluster.figures(node.id).newest;
            let since = |sample: &Sample| sample.at.checked_sub(sample.window).is_ok_and(|at| at >= one.at);
            if there && newest.as_ref().is_some_and(since) {
                stayed.push((one.uid.clone(), one.from.clone()));
            }
        }
        for (uid, from) in stayed {
            self.moves.forget(&uid);
            self.untrue.insert(from);
        }
    }

    /// Nodes that are there and do not say what was moved; they are expected to be told.
    pub fn take_untrue(&mut self) -> Vec<Arc<str>> {
        let cluster = self.scheduler.cluster();
        let all = std::mem::take(&mut self.untrue).into_iter();
        all.filter(|node| cluster.find_node(node).is_some()).collect()
    }

    pub fn plan(&mut self, now: Timestamp) -> Plan {
        let off = Off {
            namespaces: self
                .switches
                .store()
                .iter()
                .filter(|(.., off)| **off)
                .map(|(_, name, _)| name.into())
                .collect(),
            pods: self.blocked.iter().filter(|(_, b)| b.until > now).map(|(uid, _)| uid.clone()).collect(),
        };
        let Self { scheduler, settings, recent, moves, .. } = self;
        moves.follow(scheduler.cluster().snapshot());
        plan(scheduler.cluster(), &Input { settings, recent, moves, off: &off, soon: None })
    }

    /// A pod may not go; it is not asked again for a while.
    pub fn blocked(&mut self, uid: &Arc<str>, now: Timestamp) {
        let pause = self.blocked.get(uid).map_or(FIRST_PAUSE, |before| (before.pause * 2).min(LAST_PAUSE));
        let until = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.blocked.insert(uid.clone(), Blocked { until, pause });
    }

    /// Until when a node is left alone by what it says itself, and its identity.
    pub fn mark_of(&mut self, node: &str) -> (Option<Timestamp>, Key) {
        let until = self.scheduler.cluster().find_node(node);
        let until = until.and_then(|node| node.annotations.value(COOLING)?.parse().ok());
        (until, Key::new("", node))
    }

    /// What keeps new pods off a node that gave some up.
    pub fn closing(&self) -> Closing {
        self.settings.closing
    }

    /// Nodes that bear our taint and do not need it any more: their mark is over or gone, or taints are not wanted. Or all
    /// of them.
    pub fn due_to_open(&mut self, all: bool, now: Timestamp) -> Vec<Arc<str>> {
        let all = all || self.settings.closing != Closing::Taint;
        let mut out = Vec::new();
        for node in self.scheduler.cluster().snapshot().nodes() {
            let until = node.annotations.value(COOLING).and_then(|text| text.parse::<Timestamp>().ok());
            let over = all || until.is_none_or(|until| until <= now);
            let bears = node.taints.iter().any(|taint| taint.key == KEY);
            if over && (bears || (all && self.tainted.contains(&node.name))) {
                self.tainted.remove(&node.name);
                out.push(node.name.clone());
            }
        }
        out
    }

    /// A pod went: what that takes off its node is to be measured.
    pub fn went(&mut self, one: &Move, now: Timestamp) {
        self.gone.insert(one.uid.clone());
        let cluster = self.scheduler.cluster();
        let Some(newest) = cluster.find_node(&one.from).and_then(|node| cluster.figures(node.id).newest)
        else {
            return;
        };
        let relief = self.reliefs.entry(one.from.clone()).or_insert_with(|| Relief {
            since: now,
            before: newest.usage,
            predicted: Load::ZERO,
            uids: Vec::new(),
        });
        relief.since = now;
        relief.predicted = relief.predicted.plus(one.uses);
        relief.uids.push(one.uid.clone());
    }

    /// What moves took off nodes, as far as it has been measured since: node, expected, measured.
    pub fn measured(&mut self) -> Vec<(Arc<str>, Load, Load)> {
        let cluster = self.scheduler.cluster();
        let mut out = Vec::new();
        self.reliefs.retain(|name, relief| {
            let Some(node) = cluster.find_node(name) else { return false };
            let still = node.pods.iter().any(|pod| relief.uids.contains(&pod.uid));
            let newest = cluster.figures(node.id).newest;
            let seen = newest.filter(|one| one.at.checked_sub(one.window).is_ok_and(|at| at >= relief.since));
            match seen.filter(|_| !still) {
                Some(sample) => {
                    out.push((name.clone(), relief.predicted, relief.before.minus(sample.usage)));
                    false
                }
                None => true,
            }
        });
        out
    }
}
