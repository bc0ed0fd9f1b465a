//! How much of a member cluster is taken, and what is its hub told of it?
//!
//! A hub places work without seeing nodes or pods. It goes by a [`Summary`] of each member: per resource what there is,
//! what pods ask for, and what is used. [`Member`] keeps the facts one is made from, an event costs the same whatever the
//! size of the cluster; [`Summary::scores`] makes the points of it that placements weigh, and [`due()`] says when it is worth
//! a write.
//!
//! ```text
//! allocatable = all nodes that are not cordoned: what the hub takes a member to have
//! requested   = the pods on nodes that are up                + all of the nodes that are down
//! measured    = use of the measured nodes × up ÷ measured    + all of the nodes that are down
//! ```
//!
//! **Down** is full. A node that is not ready takes nothing, but still counts among what a hub takes a cluster to have;
//! counted as anything less than full, a cluster that loses half of its nodes would look like the idlest of all.
//!
//! **Cordoned** is not there: neither what it has nor what runs on it.
//!
//! **Used** is what the [ledger](crate::ledger) expects of each node: its newest measurement, and what pods ask for that
//! came too late to be in it. A node without a recent one is taken to be used as much as the others are. Where fewer than
//! [`Rules::enough`] of what is up are measured, use is not known; not known is nowhere zero.
//!
//! Amounts are whole numbers in the units of [`crate::resources`]: CPU in thousandths, memory in bytes, the rest in pieces.

mod due;
mod score;
mod summary;

pub use due::{Due, due};
pub use score::{AVAILABLE, BEST, WORST};
pub use summary::{Summary, Taken};

use crate::ledger::{Assigned, Ledger, Options, Sample, Uid};
use crate::load::estimate::estimate;
use crate::load::ratio::Ratio;
use crate::load::term::AHEAD;
use crate::load::{Load, Metered};
use crate::resources::{Amounts, Names, Resource};
use crate::view::{NodeFacts, NodeId, PodFacts};
use jiff::{SignedDuration, Timestamp};
use rustc_hash::FxHashMap;

/// What is summed up, and when it is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// How long a summary holds from the moment its oldest measurement is of.
    pub validity: SignedDuration,
    /// How much of what is up must be measured for use to be known.
    pub enough: Ratio,
    /// By what share of the whole something must have changed to be told before it is renewed anyway.
    pub min_change: Ratio,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            validity: SignedDuration::from_mins(5),
            enough: Ratio::from_nano(800_000_000),
            min_change: Ratio::from_nano(10_000_000),
        }
    }
}

impl Rules {
    /// How old a measurement may be to count: half of what it holds for. The other half is for telling it.
    #[must_use]
    pub fn recent(&self) -> SignedDuration {
        self.validity / 2
    }
}

/// Is a node up, by its own account?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Up {
    Yes,
    No,
}

/// One slot: a node, or pods of one that is not there yet.
#[derive(Clone, Debug, Default)]
struct Node {
    name: String,
    /// None while it is not there.
    has: Option<Has>,
    /// What its pods ask for.
    asked: Amounts,
    pods: usize,
}

#[derive(Clone, Debug)]
struct Has {
    allocatable: Amounts,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Up,
    Down,
    Cordoned,
}

/// Everything known of a member cluster that its summary is made from. See the [module](self).
#[derive(Clone, Debug)]
pub struct Member {
    names: Names,
    nodes: Vec<Node>,
    slots: FxHashMap<String, NodeId>,
    /// Slots nobody uses.
    vacant: Vec<NodeId>,
    pods: FxHashMap<Uid, (NodeId, Amounts)>,
    ledger: Ledger,
}

impl Default for Member {
    fn default() -> Self {
        Self {
            names: Names::new(),
            nodes: Vec::new(),
            slots: FxHashMap::default(),
            vacant: Vec::new(),
            pods: FxHashMap::default(),
            ledger: Ledger::new(Options::default()),
        }
    }
}

impl Member {
    /// Nothing is known yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A node is there, and this is what it is like.
    pub fn set_node(&mut self, facts: &NodeFacts, up: Up) {
        let id = self.slot(&facts.name);
        let state = match up {
            _ if facts.unschedulable => State::Cordoned,
            Up::Yes => State::Up,
            Up::No => State::Down,
        };
        let allocatable = self.names.amounts(&facts.allocatable);
        self.nodes[id.index()].has = Some(Has { allocatable, state });
        self.ledger.node(id);
    }

    /// A node is gone. Its pods count again if it comes back.
    pub fn remove_node(&mut self, name: &str) {
        if let Some(id) = self.slots.get(name).copied() {
            self.nodes[id.index()].has = None;
            self.ledger.remove_node(id);
            self.vacate(id);
        }
    }

    /// A pod is there, as its object says now. It holds resources from when it has a node until it is over.
    pub fn set_pod(&mut self, facts: &PodFacts, now: Timestamp) {
        let uid = Uid::new(&facts.uid);
        let node = facts.node.as_deref().filter(|node| !node.is_empty() && !facts.phase.is_over());
        let Some(node) = node else { return self.remove_pod(&facts.uid, now) };
        let (id, asked) = (self.slot(node), self.names.amounts(&facts.requests).with(Resource::PODS, 1));
        self.release(uid, Some(id));
        let slot = &mut self.nodes[id.index()];
        slot.asked.add(&asked);
        slot.pods += 1;
        self.pods.insert(uid, (id, asked));
        // One that is deleted before it ever ran will not bring load any more.
        if facts.terminating && facts.started.is_none() {
            self.ledger.remove(uid, now);
        } else {
            let estimate = estimate(&facts.asks, None, Load::ZERO).load;
            self.ledger.assign(uid, Assigned { node: id, estimate, started: facts.started });
        }
    }

    /// A pod is gone.
    pub fn remove_pod(&mut self, uid: &str, now: Timestamp) {
        let uid = Uid::new(uid);
        self.ledger.remove(uid, now);
        self.release(uid, None);
    }

    /// What a node used. What is stamped too far ahead is not believed: nothing would be newer than it.
    pub fn sample(&mut self, node: &str, sample: Sample, now: Timestamp) {
        if let Some(id) = self.slots.get(node).copied()
            && sample.at.duration_since(now) <= AHEAD
        {
            self.ledger.sample(id, sample);
        }
    }

    /// All of it at this moment.
    #[must_use]
    pub fn summary(&self, now: Timestamp, rules: &Rules) -> Summary {
        let mut sum = Sum::default();
        for (node, id) in self.nodes.iter().zip(0..) {
            let Some(has) = &node.has else { continue };
            match has.state {
                State::Cordoned => {}
                State::Down => {
                    sum.nodes += 1;
                    sum.down.add(&has.allocatable);
                }
                State::Up => {
                    sum.nodes += 1;
                    sum.up.add(&has.allocatable);
                    sum.asked.add(&node.asked);
                    let figures = self.ledger.figures(NodeId(id));
                    let recent = figures.newest.filter(|s| now.duration_since(s.at) <= rules.recent());
                    if let (Some(sample), Some(used)) = (recent, figures.expected()) {
                        sum.measured_nodes += 1;
                        sum.measured.add(&has.allocatable);
                        sum.used = sum.used.plus(used);
                        sum.oldest = Some(sum.oldest.map_or(sample.at, |oldest| oldest.min(sample.at)));
                    }
                }
            }
        }
        sum.summary(&self.names, now, rules)
    }

    fn slot(&mut self, name: &str) -> NodeId {
        if let Some(id) = self.slots.get(name) {
            return *id;
        }
        let node = Node { name: name.to_owned(), ..Node::default() };
        let id = if let Some(id) = self.vacant.pop() {
            self.nodes[id.index()] = node;
            id
        } else {
            self.nodes.push(node);
            // No cluster has four billion nodes.
            NodeId(u32::try_from(self.nodes.len() - 1).unwrap_or(u32::MAX))
        };
        self.slots.insert(name.to_owned(), id);
        id
    }

    /// Takes a pod off the node it was on; `next` is where it will be.
    fn release(&mut self, uid: Uid, next: Option<NodeId>) {
        let Some((id, asked)) = self.pods.remove(&uid) else { return };
        let slot = &mut self.nodes[id.index()];
        slot.asked.sub(&asked);
        slot.pods -= 1;
        if next != Some(id) {
            self.ledger.remove(uid, Timestamp::MIN);
            self.vacate(id);
        }
    }

    fn vacate(&mut self, id: NodeId) {
        let node = &self.nodes[id.index()];
        if node.has.is_none() && node.pods == 0 && self.slots.remove(&node.name).is_some() {
            self.vacant.push(id);
        }
    }
}

/// A summary while it is added up.
#[derive(Default)]
struct Sum {
    /// What nodes that are up have, and those that are down.
    up: Amounts,
    down: Amounts,
    /// What pods on nodes that are up ask for.
    asked: Amounts,
    /// What the measured ones have, and use.
    measured: Amounts,
    used: Load,
    oldest: Option<Timestamp>,
    nodes: usize,
    measured_nodes: usize,
}

impl Sum {
    fn summary(self, names: &Names, now: Timestamp, rules: &Rules) -> Summary {
        let (cpu, memory) = (self.used_of(Metered::Cpu, rules), self.used_of(Metered::Memory, rules));
        let is_measured = self.oldest.is_some() && (cpu.is_some() || memory.is_some());
        let mut out = Summary {
            // Of what is not measured the moment is this one; a measurement is never of a later one.
            at: self.oldest.filter(|_| is_measured).map_or(now, |oldest| oldest.min(now)),
            nodes: self.nodes,
            measured_nodes: self.measured_nodes,
            resources: std::collections::BTreeMap::new(),
        };
        let all = self.up.iter().count().max(self.down.iter().count());
        for resource in Resource::all().take(all) {
            let (name, up, down) = (names.name(resource), self.up.get(resource), self.down.get(resource));
            let allocatable = up.saturating_add(down);
            // Volumes are attached, not asked for: by requests all of them would be free for ever.
            if allocatable <= 0 || name.starts_with("attachable-volumes-") {
                continue;
            }
            let measured = match resource {
                Resource::CPU => cpu,
                Resource::MEMORY => memory,
                _ => None,
            };
            let taken = Taken {
                allocatable,
                requested: self.asked.get(resource).saturating_add(down),
                measured: measured.map(|used| used.saturating_add(down)),
            };
            out.resources.insert(name.to_owned(), taken);
        }
        out
    }

    /// What all nodes that are up use, if enough of them are measured: use × up ÷ measured, rounded up.
    fn used_of(&self, of: Metered, rules: &Rules) -> Option<i64> {
        let (resource, used) = match of {
            // Billionths to thousandths, rounded up: load is never understated.
            Metered::Cpu => (Resource::CPU, ceil(i128::from(self.used.cpu_nano), 1_000_000)),
            Metered::Memory => (Resource::MEMORY, i128::from(self.used.memory_bytes)),
        };
        let (up, measured) = (i128::from(self.up.get(resource)), i128::from(self.measured.get(resource)));
        if up <= 0 {
            // There is nothing to measure: what is down is full, whatever runs there.
            return (self.down.get(resource) > 0).then_some(0);
        }
        let needed = up * i128::from(rules.enough.nano());
        let known = measured > 0 && measured * i128::from(Ratio::ONE.nano()) >= needed;
        known.then(|| i64::try_from(ceil(used.saturating_mul(up), measured)).unwrap_or(i64::MAX))
    }
}

/// Rounded up; neither is negative.
fn ceil(part: i128, whole: i128) -> i128 {
    part.div_euclid(whole) + i128::from(part.rem_euclid(whole) != 0)
}

#[cfg(test)]
mod tests;
