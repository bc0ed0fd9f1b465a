//! What is known of one member cluster, and is it all there yet?
//!
//! One task writes (the watches of that cluster), many read (requests). A reader takes the newest [`Known`] and
//! keeps it for as long as its answer takes; nobody waits for anybody.

use super::remember::Remembered;
use arc_swap::{ArcSwap, ArcSwapOption};
use jiff::Timestamp;
use loadline_core::estimate::{View, Waiting};
use std::collections::BTreeMap;
use std::sync::Arc;
use tokio::sync::watch;

/// Everything answers are made from, as of one moment.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Free resources.
    pub view: View,
    /// Pods that wait in vain.
    pub waiting: Waiting,
    /// What was answered from it so far.
    pub answers: Remembered,
}

/// How a member cluster is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What has been read of it so far, such as `nodes 5000, pods 12000 (still reading)`.
    pub progress: String,
    /// When what is known was last known to be current: the oldest of its watches. A quiet watch says so about once a
    /// minute, so up to a minute and a half is nothing to worry about. `None` until everything has been heard of.
    pub heard: Option<Timestamp>,
    /// What is wrong now: a watch that fails, a kubeconfig that cannot be read.
    pub problem: Option<String>,
    /// Since when it is.
    pub since: Option<Timestamp>,
    /// How many objects are there that cannot be read and are left out. Nodes among them count as full.
    pub unreadable: usize,
}

/// One member cluster.
#[derive(Debug, Default)]
pub struct Member {
    known: ArcSwapOption<Known>,
    status: ArcSwap<Status>,
    changed: watch::Sender<u64>,
}

impl Member {
    /// The newest state; `None` until everything has been read once. Stays what it was when watches fail.
    #[must_use]
    pub fn known(&self) -> Option<Arc<Known>> {
        self.known.load_full()
    }

    /// Replaces the state.
    pub fn publish(&self, known: Known) {
        self.known.store(Some(Arc::new(known)));
        self.changed.send_modify(|times| *times += 1);
    }

    /// How it is doing.
    #[must_use]
    pub fn status(&self) -> Arc<Status> {
        self.status.load_full()
    }

    /// Says how it is doing.
    pub fn tell(&self, status: Status) {
        self.status.store(Arc::new(status));
        self.changed.send_modify(|times| *times += 1);
    }

    /// Says whenever state or status are new, for those who wait for something: how often that was so far.
    #[must_use]
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// The member clusters one process answers for, by name.
pub type Members = BTreeMap<String, Arc<Member>>;
