//! What can be measured of a node, and what can be done about it?
//!
//! Everything there is to know of a metric is in its [`Metric`]: how it is measured, the unit gaps are counted in, who comes first,
//! what the end of a pod would free and what one step of throttling would. The planner itself knows no metric by name; one
//! more is one more value in a [`Catalogue`], from a file of its own.

pub mod container;
pub mod cpu;
pub mod disk;
pub mod elastic;
pub mod load;
pub mod memory;
pub mod network;
pub mod pressure;

use super::collect::{Collector, OfPods};
use super::level::Level;
use super::pod::{Container, Node, Pod};
use super::throttle::{Lowered, Raised, Room, Step};
use std::cmp::Ordering;
use std::sync::Arc;

/// What a metric is a part of: what is freed of it counts for all its metrics, and nothing of it is given back while
/// any of them is over its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Resource(pub &'static str);

/// How pods are slowed down, one container at a time.
#[derive(Clone, Copy, Debug)]
pub struct Throttle {
    /// What is written, such as `cpu`.
    pub knob: &'static str,
    /// One step down; none if there is nothing to lower.
    pub down: fn(&Pod, &Container, Step) -> Option<Lowered>,
    /// One step up, as far as there is room; none if it has to wait.
    pub up: fn(&Node, &Container, Step, Room) -> Option<Raised>,
}

/// A metric of the node.
#[derive(Clone, Debug)]
pub struct Metric {
    /// Its name in rules and series.
    pub name: &'static str,
    /// Other names it has been given.
    pub aliases: &'static [&'static str],
    /// The unit gaps and releases are counted in.
    pub unit: &'static str,
    /// What it is a part of.
    pub resource: Resource,
    /// What is acted on first: the highest, and what cannot be compressed before what can.
    pub rank: u8,
    /// Turns a value of the metric into the unit of gaps; none if the node does not say how much it has.
    pub scale: fn(Level, &Node) -> Option<Level>,
    /// Whether a pod has a share of the elastic part of the resource: those go first.
    pub elastic: fn(&Pod) -> bool,
    /// Which of two pods that are equally important goes first; none: it does not matter.
    pub compare: Option<fn(&Pod, &Pod) -> Ordering>,
    /// What the end of a pod would free, in the unit of gaps; none if that cannot be told. Unknown is none as well.
    pub release: Option<fn(&Pod) -> Option<Level>>,
    /// What of a pod's memory the kernel could take back, in bytes; none if that is no help. Unknown is none as well.
    pub reclaimable: Option<fn(&Pod) -> Option<Level>>,
    /// How pods are slowed down, if that helps and by how much can be told.
    pub throttle: Option<Throttle>,
    /// Is a share of 100, where more makes no sense?
    pub percent: bool,
    /// Values below this are surely meant in another unit.
    pub suspicious_below: Option<Level>,
    /// How the agent measures it on the node; none if it is put together from other figures.
    pub collect: Option<Collector>,
    /// How it measures what each pod uses of it, which is then in [`Pod::usage`]; none if that is known otherwise, or not at all.
    pub of_pods: Option<OfPods>,
}

impl Metric {
    /// What a rule may watch, though nobody can tell what acting on a pod would do to it.
    #[must_use]
    pub fn watched(name: &'static str, unit: &'static str, collect: Option<Collector>) -> Self {
        Self {
            name,
            aliases: &[],
            unit,
            resource: Resource(name),
            rank: 0,
            scale: as_it_is,
            elastic: not_elastic,
            compare: None,
            release: None,
            reclaimable: None,
            throttle: None,
            percent: unit == "%",
            suspicious_below: None,
            collect,
            of_pods: None,
        }
    }

    /// Is the order of pods by this one the same as by the other?
    pub(super) fn compares_like(&self, other: &Self) -> bool {
        let same = match (self.compare, other.compare) {
            (Some(mine), Some(theirs)) => std::ptr::fn_addr_eq(mine, theirs),
            (None, None) => true,
            _ => false,
        };
        same && std::ptr::fn_addr_eq(self.elastic, other.elastic)
    }
}

/// The value is in the unit of gaps already.
#[must_use]
pub fn as_it_is(value: Level, _: &Node) -> Option<Level> {
    Some(value)
}

/// No pod has an elastic share.
#[must_use]
pub fn not_elastic(_: &Pod) -> bool {
    false
}

/// The metrics there are, first the one that is acted on first.
#[derive(Clone, Debug)]
pub struct Catalogue {
    metrics: Vec<Arc<Metric>>,
}

impl Default for Catalogue {
    fn default() -> Self {
        let mut all = Self { metrics: Vec::new() };
        let families = [
            container::all(),
            cpu::all(),
            disk::all(),
            elastic::all(),
            load::all(),
            memory::all(),
            network::all(),
            pressure::all(),
        ];
        let mut metrics: Vec<Metric> = families.into_iter().flatten().collect();
        // Names decide among equals, which also puts what is used before the share it is.
        metrics.sort_by_key(|metric| metric.name);
        for metric in metrics {
            all.register(metric);
        }
        all
    }
}

impl Catalogue {
    /// Adds a metric, or puts another in the place of the one of that name.
    pub fn register(&mut self, metric: Metric) {
        self.metrics.retain(|known| known.name != metric.name);
        self.metrics.push(Arc::new(metric));
        // By rank; equals stay in the order they came in.
        self.metrics.sort_by_key(|known| std::cmp::Reverse(known.rank));
    }

    /// The metric of that name or alias.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Arc<Metric>> {
        self.metrics.iter().find(|known| known.name == name || known.aliases.contains(&name))
    }

    /// All, in the order they are acted on.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Metric>> {
        self.metrics.iter()
    }
}
