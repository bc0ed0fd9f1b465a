//! What came of it? Figures about load and waiting, gathered from outside: whoever schedules, and however.

use crate::cluster::{Cluster, Node, Pod};
use crate::node::Figures;
use loadline_core::load::estimate::nanocores;
use loadline_core::load::policy::Rules;
use loadline_core::load::{Both, Metered};
use loadline_core::qos::agree::About;
use loadline_core::quantity::Quantity;
use loadline_services::scheduler::heat::{Heat, Peak};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What came of it so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Pods without a node because they fit nowhere.
    pub pending: usize,
    /// The most there were of these.
    pub pending_most: usize,
    /// Pods sent to a node that was over its target when it was last measured.
    pub onto_hot: u64,
    /// Nodes over their target when they were last measured.
    pub hot: usize,
    /// Measured seconds over target, summed over nodes.
    pub node_seconds: u64,
    /// The worst that was measured.
    pub peak: Option<Peak>,
    /// The node that has least left now.
    pub hottest: Option<Peak>,
    /// What each scheduler did, by the name pods call it.
    pub placed: BTreeMap<String, Placed>,
}

/// What a scheduler did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Placed {
    /// Pods it gave nodes.
    pub pods: u64,
    /// Of these, to nodes that were over their target when they were last measured.
    pub onto_hot: u64,
}

#[derive(Debug, Default)]
struct State {
    heat: Heat,
    tally: Tally,
}

/// Looks on.
#[derive(Debug)]
pub struct Observer {
    rules: Rules,
    state: Mutex<State>,
}

impl Observer {
    /// Looks at a cluster, and holds its load against these rules.
    #[must_use]
    pub fn new(cluster: &Cluster, rules: Rules) -> Arc<Self> {
        let observer = Arc::new(Self { rules, state: Mutex::default() });
        let this = Arc::downgrade(&observer);
        cluster.nodes.listen(move |old, new| {
            if let Some(this) = this.upgrade() {
                this.node(old.map(|node| &**node), new.map(|node| &**node));
            }
        });
        let this = Arc::downgrade(&observer);
        cluster.pods.listen(move |old, new| {
            if let Some(this) = this.upgrade() {
                this.pod(old.map(|pod| &**pod), new.map(|pod| &**pod));
            }
        });
        observer
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn node(&self, old: Option<&Node>, new: Option<&Node>) {
        let mut state = self.lock();
        match (old, new) {
            (_, Some(Node { meta, allocatable, .. })) => {
                let allocatable = Both {
                    cpu: allocatable.get(Metered::Cpu.name()).map(nanocores),
                    memory: allocatable.get(Metered::Memory.name()).map(Quantity::value),
                };
                let (labels, annotations) = (&meta.labels, &meta.annotations);
                let about = About { labels, annotations, allocatable, capacity: allocatable };
                state.heat.set(&meta.id.key.name, &about, &self.rules);
            }
            (Some(node), None) => state.heat.remove(&node.meta.id.key.name),
            (None, None) => {}
        }
    }

    fn pod(&self, old: Option<&Pod>, new: Option<&Pod>) {
        let waits = |pod: Option<&Pod>| {
            pod.is_some_and(|pod| pod.node.is_none() && pod.unschedulable.is_some() && pod.is_active())
        };
        let State { heat, tally } = &mut *self.lock();
        tally.pending = tally.pending + usize::from(waits(new)) - usize::from(waits(old));
        tally.pending_most = tally.pending_most.max(tally.pending);
        if let (Some(Pod { node: None, .. }), Some(Pod { node: Some(node), scheduler, .. })) = (old, new) {
            let hot = u64::from(heat.is_hot(node));
            tally.onto_hot += hot;
            let placed = tally.placed.entry(scheduler.clone()).or_default();
            placed.pods += 1;
            placed.onto_hot += hot;
        }
    }

    /// What nodes use was measured.
    pub fn measured(&self, figures: &Figures) {
        for node in &figures.nodes {
            self.lock().heat.feel(&node.name, figures.sample(node.used));
        }
    }

    /// The figures so far.
    pub fn tally(&self) -> Tally {
        let State { heat, tally } = &*self.lock();
        Tally {
            hot: heat.hot(),
            node_seconds: heat.node_seconds(),
            peak: heat.peak().cloned(),
            hottest: heat.hottest(),
            ..tally.clone()
        }
    }
}
