//! What was moved of late? So that neither a node nor a workload nor the cluster is stirred too much, and nothing goes back.
//!
//! Where a pod lands that was sent away is not ours to say, so what its workload makes in its place is [looked for](Moves::follow)
//! on all nodes: each takes the place of one. Whoever comes as that stays for the dwell time, wherever it came to.

use crate::load::Load;
use crate::object::Key;
use crate::view::{PodView, Snapshot};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeSet, VecDeque};
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

impl Moved {
    /// May that pod, which is on that node, be what was made in its place? Times of objects are in whole seconds.
    #[must_use]
    pub fn is_succeeded_by(&self, pod: &PodView, node: Option<&str>) -> bool {
        let made = pod.created.or(pod.accepted);
        made.is_some_and(|made| made.as_second() >= self.at.as_second())
            && (pod.uid != self.uid || node.is_some_and(|node| *node != *self.from))
            && workload(pod).is_some_and(|of| of == self.workload)
    }
}

/// What took the place of a pod that was sent away.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Heir {
    uid: Arc<str>,
    node: Arc<str>,
}

/// A move, and what is known to have come of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    moved: Moved,
    heir: Option<Heir>,
}

impl Known {
    fn place(&self) -> &Arc<str> {
        self.heir.as_ref().map_or(&self.moved.to, |heir| &heir.node)
    }
}

/// What was moved, as long as it matters.
#[derive(Clone, Debug, Default)]
pub struct Moves {
    /// By time.
    all: VecDeque<Known>,
}

impl Moves {
    /// A pod is sent away. The same one twice counts once: as it was sent last, for the first time it stayed.
    pub fn note(&mut self, moved: Moved) {
        if self.all.iter().any(|one| one.moved.uid == moved.uid && one.moved.at >= moved.at) {
            return;
        }
        self.forget(&moved.uid);
        let at = self.all.partition_point(|one| one.moved.at <= moved.at);
        self.all.insert(at, Known { moved, heir: None });
    }

    /// It was not sent away after all.
    pub fn forget(&mut self, uid: &str) {
        self.all.retain(|one| &*one.moved.uid != uid);
    }

    /// Forgets what is so long ago that it matters no more.
    pub fn expire(&mut self, now: Timestamp, dwell: SignedDuration) {
        let keep = dwell.max(HOUR);
        while self.all.front().is_some_and(|one| now.duration_since(one.moved.at) > keep) {
            self.all.pop_front();
        }
    }

    /// Looks where what was made in place of moved pods is by now, and remembers it.
    pub fn follow(&mut self, cluster: &Snapshot) {
        let open = self.all.iter().filter(|one| one.heir.is_none());
        let Some(first) = open.map(|one| one.moved.at.as_second()).min() else { return };
        let mut taken: BTreeSet<Arc<str>> =
            self.all.iter().filter_map(|one| Some(one.heir.as_ref()?.uid.clone())).collect();
        // Few were made since: whatever costs more is asked of those only.
        let mut made: Vec<(Timestamp, &Arc<PodView>, &Arc<str>)> = Vec::new();
        for node in cluster.nodes() {
            let since =
                |pod: &Arc<PodView>| pod.created.or(pod.accepted).filter(|at| at.as_second() >= first);
            made.extend(node.pods.iter().filter_map(|pod| Some((since(pod)?, pod, &node.name))));
        }
        made.sort_by(|a, b| a.1.uid.cmp(&b.1.uid));
        // The newest first: what was made since then cannot have been made for an earlier one that found its own.
        for one in self.all.iter_mut().rev().filter(|one| one.heir.is_none()) {
            let heirs = made.iter().filter(|(_, pod, node)| {
                !taken.contains(&pod.uid) && one.moved.is_succeeded_by(pod, Some(&***node))
            });
            // Of those made in the same second the one that came where one was expected.
            let heir = heirs.min_by_key(|(at, _, node)| (at.as_second(), ***node != *one.moved.to));
            if let Some((_, pod, node)) = heir {
                taken.insert(pod.uid.clone());
                one.heir = Some(Heir { uid: pod.uid.clone(), node: (*node).clone() });
            }
        }
    }

    /// All that are remembered, by time.
    #[must_use]
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Moved> {
        self.all.iter().map(|one| &one.moved)
    }

    /// The move that brought a pod to the node it is on.
    pub(super) fn brought(&self, pod: &PodView, node: &str) -> Option<&Moved> {
        let is = |heir: &Heir| heir.uid == pod.uid && *heir.node == *node;
        self.all.iter().rev().find(|one| one.heir.as_ref().is_some_and(is)).map(|one| &one.moved)
    }

    /// Those since a moment.
    pub(super) fn since(&self, at: Timestamp) -> impl Iterator<Item = &Moved> {
        self.all.iter().rev().map(|one| &one.moved).take_while(move |one| one.at > at)
    }

    /// Those since a moment that went to a node: were found there, or else are expected there.
    pub(super) fn to(&self, node: &str, at: Timestamp) -> impl Iterator<Item = &Moved> {
        let those = self.all.iter().rev().take_while(move |one| one.moved.at > at);
        those.filter(move |one| &**one.place() == node).map(|one| &one.moved)
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
