//! What do all nodes and pods use, and where do the figures go?
//!
//! A node uses what its pods [burn](super::burn) and what its own daemons need. No container gets more CPU than its
//! [quota](super::quota), and the CPU of a node ends at what it has: daemons come first, then all containers get the same part of what they want, as the kernel's scheduler would
//! have it among equals. Memory has no such end; a node that runs out of it has other means. Figures are those
//! of their moment; `window` says how long ago the ones before were taken.

use super::burn::{Burn, Moment, Split, Use};
use super::quota::{self, Quotas};
use crate::cluster::{Key, Meta, Pod};
use jiff::{SignedDuration, Timestamp};
use loadline_core::ledger::Sample;
use loadline_core::load::Load;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

/// What a node's own daemons use.
const DAEMONS: Use = Use { cpu_milli: 60, memory_bytes: 400 << 20 };
/// Complaints remembered, so that each is made once; there may not be so many.
const COMPLAINTS: usize = 256;

/// What all nodes and pods used, taken at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figures {
    /// When.
    pub at: Timestamp,
    /// Over which time before that.
    pub window: Duration,
    /// Per node.
    pub nodes: Vec<NodeFigures>,
    /// Per pod.
    pub pods: Vec<PodFigures>,
}

/// What one node used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFigures {
    pub name: String,
    pub used: Use,
    /// CPU that containers may take, want, and do not get because there is none left.
    pub short_milli: i64,
}

/// What one pod used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFigures {
    pub key: Key,
    pub uid: Arc<str>,
    /// By name.
    pub containers: BTreeMap<String, Use>,
    /// CPU that containers want and their quotas keep from them, by name; those that are not held back are left out.
    pub held_milli: BTreeMap<String, i64>,
}

impl Figures {
    /// What was used, as a measurement of that time.
    #[must_use]
    pub fn sample(&self, used: Use) -> Sample {
        Sample {
            at: self.at,
            window: SignedDuration::try_from(self.window).unwrap_or(SignedDuration::MAX),
            usage: Load::new(used.cpu_milli.saturating_mul(1_000_000), used.memory_bytes),
        }
    }
}

/// Where figures go, such as a metrics API.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(&Figures) + Send + Sync>);

impl Sink {
    /// Calls `take` with every set of figures.
    pub fn new(take: impl Fn(&Figures) + Send + Sync + 'static) -> Self {
        Self(Arc::new(take))
    }

    /// Drops all figures.
    #[must_use]
    pub fn none() -> Self {
        Self::new(|_| {})
    }

    /// The same, and `take` as well.
    #[must_use]
    pub fn and(self, take: impl Fn(&Figures) + Send + Sync + 'static) -> Self {
        Self::new(move |figures| {
            self.take(figures);
            take(figures);
        })
    }

    pub(crate) fn take(&self, figures: &Figures) {
        (self.0)(figures);
    }
}

impl std::fmt::Debug for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sink")
    }
}

/// Measures all nodes, again and again, and remembers what it found out about pods on the way.
#[derive(Debug)]
pub struct Meter {
    seed: u64,
    pace: u32,
    quotas: Arc<Quotas>,
    /// By the address of the pod, which stays its own as long as it is held here.
    plans: HashMap<usize, Plan>,
    complaints: BTreeSet<String>,
}

#[derive(Debug)]
struct Plan {
    pod: Arc<Pod>,
    burn: Burn,
}

/// What is wrong with a pod, told once for all pods that have it.
#[derive(Debug, PartialEq, Eq)]
pub struct Complaint {
    pub pod: Key,
    pub what: String,
}

/// A node while it is measured.
struct Tally {
    daemons: Use,
    /// CPU that daemons leave.
    room: i64,
    /// CPU its containers want.
    wanted: i128,
    /// Divides the room, if it is too small.
    split: Option<Split>,
    used: Use,
}

impl Tally {
    fn new(capacity_milli: i64) -> Self {
        let daemons = Use { cpu_milli: DAEMONS.cpu_milli.min(capacity_milli), ..DAEMONS };
        let room = capacity_milli - daemons.cpu_milli;
        Self { daemons, room, wanted: 0, split: None, used: daemons }
    }

    /// All containers have said what they want: is there enough for all?
    fn close(&mut self) {
        self.used = self.daemons;
        self.split = (self.wanted > i128::from(self.room)).then(|| Split::new(self.room, self.wanted));
    }

    /// What nobody gets of what is wanted.
    fn short_milli(&self) -> i64 {
        i64::try_from(self.wanted - i128::from(self.room)).unwrap_or(i64::MAX).max(0)
    }

    /// What a container that wants this much gets.
    fn grant(&mut self, wanted: Use) -> Use {
        let cpu_milli = self.split.as_mut().map_or(wanted.cpu_milli, |split| split.next(wanted.cpu_milli));
        self.used.cpu_milli += cpu_milli;
        self.used.memory_bytes = self.used.memory_bytes.saturating_add(wanted.memory_bytes);
        Use { cpu_milli, ..wanted }
    }
}

impl Meter {
    /// For a seed, with time in traces passing `pace` times as fast and containers held to their quotas.
    pub fn new(seed: u64, pace: u32, quotas: Arc<Quotas>) -> Self {
        Self { seed, pace, quotas, plans: HashMap::new(), complaints: BTreeSet::new() }
    }

    /// What running pods and their nodes use, and what is newly found wrong with pods. Nodes come with the CPU
    /// they have; pods on other nodes are left out.
    pub fn read<'a>(
        &mut self,
        nodes: impl IntoIterator<Item = (&'a str, i64)>,
        pods: &[Arc<Pod>],
        (at, window): (Timestamp, Duration),
    ) -> (Figures, Vec<Complaint>) {
        let mut tallies: BTreeMap<&str, Tally> =
            nodes.into_iter().map(|(name, capacity_milli)| (name, Tally::new(capacity_milli))).collect();
        let ours = |pod: &&Arc<Pod>| pod.node.as_deref().is_some_and(|node| tallies.contains_key(node));
        let pods: Vec<&Arc<Pod>> = pods.iter().filter(ours).collect();
        let complaints = self.plan(&pods);
        let moment = Moment::new(at, self.pace);
        let burns = || {
            let burns = pods.iter().filter_map(|pod| Some((*pod, &self.plans.get(&address(pod))?.burn)));
            burns.map(|(pod, burn)| (pod, self.held(pod, burn.at(moment))))
        };

        for (pod, wanted) in burns() {
            let Some(tally) = pod.node.as_deref().and_then(|node| tallies.get_mut(node)) else { continue };
            tally.wanted += wanted.map(|(_, wanted, _)| i128::from(wanted.cpu_milli)).sum::<i128>();
        }
        tallies.values_mut().for_each(Tally::close);
        let mut out = Vec::with_capacity(pods.len());
        for (pod, wanted) in burns() {
            let Some(tally) = pod.node.as_deref().and_then(|node| tallies.get_mut(node)) else { continue };
            let mut held_milli = BTreeMap::new();
            let containers = wanted.map(|(name, wanted, held)| {
                if held > 0 {
                    held_milli.insert(name.to_owned(), held);
                }
                (name.to_owned(), tally.grant(wanted))
            });
            let containers = containers.collect();
            let Meta { key, uid, .. } = pod.meta.id.clone();
            out.push(PodFigures { key, uid, containers, held_milli });
        }
        let nodes = tallies.into_iter();
        let nodes = nodes.map(|(name, tally)| NodeFigures {
            name: name.to_owned(),
            used: tally.used,
            short_milli: tally.short_milli(),
        });
        (Figures { at, window, nodes: nodes.collect(), pods: out }, complaints)
    }

    /// What containers want, as far as their quotas let them, and how much CPU these keep from them.
    fn held<'a>(
        &'a self,
        pod: &'a Pod,
        wanted: impl Iterator<Item = (&'a str, Use)>,
    ) -> impl Iterator<Item = (&'a str, Use, i64)> {
        wanted.map(|(name, wanted)| {
            let container = pod.containers.iter().chain(&pod.init_containers).find(|c| c.name == name);
            let most = container.and_then(|c| quota::milli(self.quotas.get(&pod.meta.id.uid, c)));
            let cpu_milli = most.map_or(wanted.cpu_milli, |most| wanted.cpu_milli.min(most));
            (name, Use { cpu_milli, ..wanted }, wanted.cpu_milli - cpu_milli)
        })
    }

    /// Makes plans for pods that are new or have changed and forgets those of pods that are gone.
    fn plan(&mut self, pods: &[&Arc<Pod>]) -> Vec<Complaint> {
        let mut old = std::mem::replace(&mut self.plans, HashMap::with_capacity(pods.len()));
        let mut complaints = Vec::new();
        for pod in pods {
            let plan = old.remove(&address(pod)).unwrap_or_else(|| {
                let (burn, wrong) = Burn::new(self.seed, pod);
                for what in wrong {
                    if self.complaints.len() < COMPLAINTS && self.complaints.insert(what.clone()) {
                        complaints.push(Complaint { pod: pod.meta.id.key.clone(), what });
                    }
                }
                Plan { pod: Arc::clone(pod), burn }
            });
            self.plans.insert(address(&plan.pod), plan);
        }
        complaints
    }
}

/// A pod that changes is a new one in a new place.
fn address(pod: &Arc<Pod>) -> usize {
    Arc::as_ptr(pod).addr()
}

#[cfg(test)]
mod tests;
