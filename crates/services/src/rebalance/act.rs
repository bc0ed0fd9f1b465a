//! How is a plan carried out? A node is marked before its pods are asked to go, and what came of each is told.
//!
//! Where the settings say so the mark comes with a [taint](KEY), which every scheduler heeds. It is taken off when the mark is
//! over, when the settings say so no more, and when the one who leads ends; whoever comes after a crash finds it on the node.

use super::state::State;
use super::{COMPONENT, Last, Metrics, Mode, Nodes};
use crate::cluster::connection::{Call, Verb};
use crate::cluster::events::{Happened, Regarding, Severity};
use crate::cluster::resource::{NODES, PODS};
use crate::cluster::write::Patch;
use crate::cluster::{Cause, Failure, Recorder, Writer};
use crate::ctx::{Notices, Now};
use crate::rebalance::metrics::Because;
use crate::scheduler::explain::goes;
use jiff::{SignedDuration, Timestamp};
use loadline_api::node::COOLING;
use loadline_api::rebalance::{MOVED, of, written};
use loadline_core::object::{Key, Meta};
use loadline_core::rebalance::{Closing, Move, Pause, Plan};
use loadline_core::select::taint::{Effect, Taint};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// How often others are looked for in one round because somebody may not go.
const PLANS: usize = 3;
/// How often a node is read again because somebody else wrote it meanwhile.
const MARKS: usize = 5;

/// The key of the taint of a node that gave up pods.
pub const KEY: &str = loadline_core::rebalance::COOLING_TAINT;

/// What carrying out takes.
pub(super) struct Actor {
    pub writer: Writer,
    pub events: Recorder,
    pub notices: Notices,
    pub metrics: Metrics,
    pub mode: Mode,
    pub cooling: Duration,
    pub last: Last,
    /// Moves that were told of in preview, by uid.
    pub told: BTreeSet<Arc<str>>,
    /// Why nothing is moved, as of the last plan.
    pub pause: Option<Pause>,
}

/// For how long is a node that is written on left alone?
#[derive(Clone, Copy, PartialEq, Eq)]
enum Length {
    /// From now on.
    Anew,
    /// As it was.
    Same,
}

/// What became of a request to go.
enum Reply {
    Went,
    /// A budget says no for now.
    Kept,
    /// It may not be asked to go, or not so.
    Denied,
    /// It is not there any more.
    Gone,
    /// Nobody may be asked now: the server has too much to do, or somebody else leads.
    Later,
    /// Nobody knows.
    Unknown,
}

impl Reply {
    fn of(cause: Cause) -> Self {
        match cause {
            Cause::NotFound | Cause::Conflict | Cause::AlreadyExists => Self::Gone,
            Cause::Budget => Self::Kept,
            Cause::TooManyRequests { .. } | Cause::NotLeading | Cause::Unauthorized => Self::Later,
            _ if cause.may_have_arrived() => Self::Unknown,
            _ => Self::Denied,
        }
    }
}

impl Actor {
    /// One look at everything, and what follows from it.
    pub async fn round(&mut self, state: &mut State, leads: bool, now: Now) {
        for (node, predicted, measured) in state.measured() {
            self.metrics.relief(predicted, measured);
            tracing::info!(%node, ?predicted, ?measured, "moves measured");
        }
        let acts = self.mode == Mode::Act && leads;
        if acts {
            state.stayed();
            self.correct(state, now.clock).await;
        }
        let mut plan = self.look(state, now.clock);
        if !acts {
            self.preview(&plan);
            return;
        }
        for attempt in 1..=PLANS {
            let refused = self.make(&plan, state, now.clock).await;
            if !refused || attempt == PLANS {
                break;
            }
            plan = self.look(state, now.clock);
        }
    }

    /// What should be done now, for everybody to see. Nothing is done about it.
    pub fn look(&mut self, state: &mut State, now: Timestamp) -> Plan {
        let plan = state.plan(now);
        self.show(&plan);
        if let Some(pause) = plan.pause.filter(|pause| self.pause != Some(*pause)) {
            tracing::info!(reason = %pause, "nothing is moved");
        }
        self.pause = plan.pause;
        plan
    }

    fn show(&self, plan: &Plan) {
        self.metrics.plans.inc();
        let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        self.metrics.over.set(count(plan.nodes.len()));
        self.metrics.planned.set(count(plan.moves.len()));
        if let Ok(document) = serde_json::to_value(of(plan)) {
            self.last.set(document);
        }
    }

    /// Says what would be done, once.
    fn preview(&mut self, plan: &Plan) {
        for one in plan.moves.iter().filter(|one| !self.told.contains(&one.uid)) {
            self.notices.tell(
                "rebalance",
                &one.pod,
                format!("would go from {} to {}: {one}", one.from, one.to),
            );
        }
        self.told = plan.moves.iter().map(|one| one.uid.clone()).collect();
    }

    /// Makes the moves of a plan; says whether somebody may not go, so that others have to.
    async fn make(&mut self, plan: &Plan, state: &mut State, now: Timestamp) -> bool {
        let (mut refused, mut stop) = (false, false);
        let mut nodes: Vec<&Arc<str>> = Vec::new();
        for one in &plan.moves {
            if !nodes.contains(&&one.from) {
                nodes.push(&one.from);
            }
        }
        for node in nodes {
            let moves: Vec<&Move> = plan.moves.iter().filter(|one| one.from == *node).collect();
            for one in &moves {
                state.moves.note(one.moved(now));
            }
            // First the mark: whoever takes the place of a victim comes at once, and whoever comes after us has to know.
            if !self.mark(state, node, now, Length::Anew).await {
                for one in &moves {
                    state.moves.forget(&one.uid);
                }
                // It may have been written, and only the answer is lost.
                state.untrue.insert(node.clone());
                continue;
            }
            let mut untrue = false;
            let mut asked = 0;
            for one in &moves {
                asked += 1;
                let reply = self.ask(one).await;
                match reply {
                    Reply::Went => self.went(state, one, now),
                    Reply::Kept => {
                        self.metrics.refused.inc();
                        self.tell(one, Severity::Warning, "RebalanceBlocked", "may not go now", now);
                    }
                    Reply::Denied | Reply::Later | Reply::Unknown => {
                        self.metrics.failures.inc();
                    }
                    Reply::Gone => {}
                }
                // Of an unknown one it may be that it went: it counts as if it had until it is seen to have stayed.
                if !matches!(reply, Reply::Went | Reply::Unknown) {
                    state.moves.forget(&one.uid);
                    untrue = true;
                }
                if matches!(reply, Reply::Kept | Reply::Denied | Reply::Unknown) {
                    state.blocked(&one.uid, now);
                }
                refused |= matches!(reply, Reply::Kept | Reply::Denied);
                if matches!(reply, Reply::Later | Reply::Unknown) {
                    stop = true;
                    break;
                }
            }
            // Who was not asked is not to be taken for one that went.
            for one in &moves[asked..] {
                state.moves.forget(&one.uid);
                untrue = true;
            }
            if untrue {
                state.untrue.insert(node.clone());
            }
            if stop {
                break;
            }
        }
        self.correct(state, now).await;
        refused && !stop
    }

    /// Writes anew what nodes say was moved, where that is not so. What fails is tried again with the next look.
    async fn correct(&self, state: &mut State, now: Timestamp) {
        for node in state.take_untrue() {
            if !self.mark(state, &node, now, Length::Same).await {
                state.untrue.insert(node);
            }
        }
    }

    /// Takes the taint off nodes that do not need it any more; off all of them, if told to.
    pub async fn open(&self, state: &mut State, all: bool, now: Timestamp) {
        for node in state.due_to_open(all, now) {
            match self.retaint(&Key::new("", node.clone()), &json!({}), false).await {
                Ok(()) => {
                    tracing::info!(%node, "node open again");
                    self.notices.tell("rebalance", &node, "takes pods again".to_owned());
                }
                // It is tried again with the next look.
                Err(error) => {
                    self.metrics.failures.inc();
                    tracing::warn!(%node, %error, "taint not taken off");
                }
            }
        }
    }

    /// Writes annotations of a node, and its taints with ours or without it. Others' taints stay as they are, also those that
    /// come meanwhile: the list can only be replaced as a whole, so it is read before.
    async fn retaint(&self, key: &Key, annotations: &Value, closed: bool) -> Result<(), Failure> {
        for attempt in 1.. {
            let (meta, read) = self.writer.get::<Nodes>(key).await?;
            let revision = meta.revision.map(|revision| revision.to_string());
            let mut patch = json!({"metadata": {"resourceVersion": revision, "annotations": annotations}});
            match read {
                Ok(facts) => {
                    let mut taints: Vec<Taint> = facts.taints;
                    let before = taints.len();
                    taints.retain(|taint| taint.key != KEY);
                    if closed {
                        taints.push(Taint {
                            key: KEY.to_owned(),
                            value: String::new(),
                            effect: Effect::NoSchedule,
                            time_added: None,
                        });
                    }
                    if closed || taints.len() < before {
                        patch["spec"] = json!({"taints": taints});
                    }
                }
                // It has taints nobody knows, so none can be added, and whoever went from it could come straight back.
                Err(error) if closed => {
                    let call = Call { verb: Verb::Get, resource: NODES, subresource: "" };
                    let message = format!("its taints cannot be read: {error}");
                    return Err(Failure { call, path: NODES.object(key), cause: Cause::Malformed, message });
                }
                // They are left alone.
                Err(_) => {}
            }
            match self.writer.patch(NODES.whole(), key, Patch::Merge, &patch).await {
                Ok(_) => break,
                Err(error) if error.is_conflict() && attempt < MARKS => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes on a node that it is to be left alone, and what was moved from it.
    async fn mark(&self, state: &mut State, node: &Arc<str>, now: Timestamp, length: Length) -> bool {
        let (said, key) = state.mark_of(node);
        let moves = written(state.moves.iter().filter(|one| one.from == *node));
        let mut annotations = json!({MOVED: moves});
        if length == Length::Anew {
            let length = SignedDuration::try_from(self.cooling).unwrap_or(SignedDuration::MAX);
            let until = now.checked_add(length).unwrap_or(Timestamp::MAX);
            let until = said.map_or(until, |said| said.max(until));
            annotations[COOLING] = loadline_api::time::text(until).into();
        }
        let written = match state.closing() {
            closing if closing == Closing::Mark || length == Length::Same => {
                let patch = json!({"metadata": {"annotations": annotations}});
                self.writer.patch(NODES.whole(), &key, Patch::Merge, &patch).await.map(drop)
            }
            _ => {
                state.tainted.insert(node.clone());
                self.retaint(&key, &annotations, true).await
            }
        };
        match written {
            Ok(()) => true,
            Err(error) => {
                self.metrics.failures.inc();
                match length {
                    Length::Anew => {
                        tracing::warn!(%node, %error, "node not marked, so nothing is moved from it");
                    }
                    Length::Same => {
                        tracing::warn!(%node, %error, "what the node says was moved is not corrected");
                    }
                }
                false
            }
        }
    }

    async fn ask(&self, one: &Move) -> Reply {
        let pod = Meta { key: one.pod.clone(), uid: one.uid.clone(), revision: None };
        match self.writer.evict(&pod, None).await {
            Ok(()) => Reply::Went,
            Err(error) => {
                let reply = Reply::of(error.cause);
                if matches!(reply, Reply::Kept | Reply::Gone) {
                    tracing::info!(pod = %one.pod, %error, "pod not evicted");
                } else {
                    tracing::warn!(pod = %one.pod, %error, "pod not evicted");
                }
                reply
            }
        }
    }

    fn went(&self, state: &mut State, one: &Move, now: Timestamp) {
        state.went(one, now);
        self.metrics.moves.get_or_create(&Because::of(one.resource)).inc();
        self.notices.tell("rebalance", &one.pod, format!("goes from {} to {}: {one}", one.from, one.to));
        self.tell(one, Severity::Normal, "Rebalanced", &goes(&one.to), now);
    }

    /// On the pod, and on the node it leaves.
    fn tell(&self, one: &Move, severity: Severity, reason: &'static str, what: &str, now: Timestamp) {
        let pod = Meta { key: one.pod.clone(), uid: one.uid.clone(), revision: None };
        let node = Meta { key: Key::new("", one.from.clone()), uid: one.from.clone(), revision: None };
        let events = self.events.reporting_as(COMPONENT, &one.from);
        for (regarding, note) in [
            (Regarding::new(PODS, &pod), format!("{what}: {one}")),
            (Regarding::new(NODES, &node), format!("{} {what}: {one}", one.pod)),
        ] {
            let happened = Happened { severity, reason, action: "Rebalancing", note };
            events.record(regarding, happened, now);
        }
    }
}
