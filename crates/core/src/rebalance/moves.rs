//! What was moved of late? So that neither a node nor a workload nor the cluster is stirred too much, and nothing goes back.

use crate::load::Load;
use crate::object::Key;
use crate::view::PodView;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;
use std::sync::Arc;

const HOUR: SignedDuration = SignedDuration::from_hours(1);

/// A pod that was sent away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moved {
    pub at: Timestamp,
    pub pod: Key,
    /// Its uid while it was on the node it left.
    pub uid: Arc<str>,
    /// See [`workload`].
    pub workload: Arc<str>,
    pub from: Arc<str>,
    /// Where the plan expected it to go.
    pub to: Arc<str>,
    /// What it was expected to use there at most.
    pub high: Load,
    /// Why, in the words of the plan.
    pub because: Arc<str>,
}

/// What was moved, as long as it matters.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// By time.
    all: VecDeque<Moved>,
}

impl Moves {
    /// A pod is sent away. The same one twice counts once.
    pub fn note(&mut self, moved: Moved) {
        if self.all.iter().any(|one| one.uid == moved.uid) {
            return;
        }
        let at = self.all.partition_point(|one| one.at <= moved.at);
        self.all.insert(at, moved);
    }

    /// It was not sent away after all.
    pub fn forget(&mut self, uid: &str) {
        self.all.retain(|one| &*one.uid != uid);
    }

    /// Forgets what is so long ago that it matters no more.
    pub fn expire(&mut self, now: Timestamp, dwell: SignedDuration) {
        let keep = dwell.max(HOUR);
        while self.all.front().is_some_and(|one| now.duration_since(one.at) > keep) {
            self.all.pop_front();
        }
    }

    /// All that are remembered, by time.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Moved> {
        self.all.iter()
    }

    /// Those since a moment.
    pub(super) fn since(&self, at: Timestamp) -> impl Iterator<Item = &Moved> {
        self.all.iter().rev().take_while(move |one| one.at > at)
    }

    /// Those of the last hour.
    pub(super) fn last_hour(&self, now: Timestamp) -> impl Iterator<Item = &Moved> {
        self.since(now.checked_sub(HOUR).unwrap_or(Timestamp::MIN))
    }
}

/// The workload a pod is of, as far as its object says: `namespace/kind/name` of its controller.
#[must_use]
pub fn workload(pod: &PodView) -> Option<Arc<str>> {
    let owner = pod.owner.as_ref()?;
    Some(format!("{}/{}/{}", pod.key.namespace, owner.kind, owner.name).into())
}
