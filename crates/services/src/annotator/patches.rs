//! How do patches get to nodes? The most urgent first, a few at a time, at a limited rate, and only from who leads.

use super::state::{Due, State};
use super::taint::Tainting;
use super::watched::{Node, Nodes};
use crate::cluster::Writer;
use crate::cluster::connection::Cause;
use crate::cluster::leading::Leading;
use crate::cluster::lease::Leadership;
use crate::cluster::pace::Pace;
use crate::cluster::resource::NODES;
use crate::cluster::write::Patch;
use crate::ctx::Now;
use loadline_core::load::publish;
use loadline_core::object::Meta;
use serde_json::json;
use std::collections::VecDeque;
use std::future::pending;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

/// Patches under way at a time.
const WRITES: usize = 16;

/// Patches on their way, and those that wait.
pub(super) struct Patches {
    writer: Writer,
    leadership: Leadership,
    pace: Pace,
    due: VecDeque<Due>,
    in_flight: JoinSet<Patched>,
    /// When the rate lets the next go.
    wait: Option<Instant>,
}

impl Patches {
    pub fn new(lead: &Leading, per_second: f64) -> Self {
        Self {
            writer: lead.writer.clone(),
            leadership: lead.leadership.clone(),
            pace: Pace::new(per_second, Instant::now()),
            due: VecDeque::new(),
            in_flight: JoinSet::new(),
            wait: None,
        }
    }

    /// What is due now, in place of what was.
    pub fn set(&mut self, due: Vec<Due>) {
        self.due = due.into();
    }

    pub fn waiting(&self) -> usize {
        self.due.len()
    }

    /// Sends as many as may be sent.
    pub fn send(&mut self, state: &mut State, now: Now) {
        self.wait = None;
        while self.leadership.may_write() && self.in_flight.len() < WRITES && !self.due.is_empty() {
            if let Err(at) = self.pace.take(now.at) {
                self.wait = Some(at);
                return;
            }
            let Some(next) = self.due.pop_front() else { return };
            state.sent(&next.node, now);
            self.in_flight.spawn(patch(self.writer.clone(), next));
        }
    }

    /// What came of one, or nothing when the next may go.
    pub async fn next(&mut self) -> Option<Patched> {
        let rate = async {
            match self.wait {
                Some(at) => sleep_until(at).await,
                None => pending().await,
            }
        };
        let ended = async {
            match self.in_flight.join_next().await {
                Some(ended) => ended.ok(),
                None => pending().await,
            }
        };
        tokio::select! {
            ended = ended => ended,
            () = rate => None,
        }
    }

    /// Waits for those under way, then sends these, whatever the rate: it is for those who stay. Tells what came of each.
    pub async fn finish(
        &mut self,
        state: &mut State,
        last: impl FnOnce(&mut State) -> Vec<Due>,
        told: impl Fn(&Patched),
    ) {
        while let Some(ended) = self.in_flight.join_next().await {
            if let Ok(patched) = ended {
                told(&patched);
                state.done(&patched.node.key, patched.wrote, Now::read());
            }
        }
        self.due = last(state).into();
        while self.leadership.may_write() && !(self.due.is_empty() && self.in_flight.is_empty()) {
            while self.in_flight.len() < WRITES
                && let Some(next) = self.due.pop_front()
            {
                self.in_flight.spawn(patch(self.writer.clone(), next));
            }
            if let Some(Ok(patched)) = self.in_flight.join_next().await {
                told(&patched);
            }
        }
    }
}

/// What came of a patch.
pub(super) struct Patched {
    pub node: Meta,
    pub urgency: publish::Urgency,
    pub taint: Option<Tainting>,
    pub wrote: Option<(Meta, Option<Box<Node>>)>,
    pub problem: Option<String>,
}

/// One patch for everything that is due on a node.
async fn patch(writer: Writer, due: Due) -> Patched {
    let Due { node, update, taint } = due;
    // Of another node of that name nothing is known: the uid makes sure that it is this one.
    let mut change = json!({"metadata": {"uid": &*node.uid, "annotations": update.annotations}});
    if let Some(taint) = &taint {
        // The list is replaced: if it is not the one that was read, somebody else's taint would be lost.
        change["metadata"]["resourceVersion"] = json!(node.revision.map(|revision| revision.to_string()));
        change["spec"] = json!({"taints": taint.taints});
    }
    let answer = writer.patch(NODES.whole(), &node.key, Patch::Merge, &change).await;
    let (wrote, problem) = match answer {
        Ok(written) => (written.read::<Nodes>().map(|(meta, read)| (meta, read.ok())), None),
        Err(failure) => {
            let gone = matches!(failure.cause, Cause::NotFound | Cause::Conflict);
            (None, (!gone).then_some(failure.message))
        }
    };
    Patched { node, urgency: update.urgency, taint, wrote, problem }
}
