//! What is known of a pod on the node: who it is, what it uses, how it is held.

use super::level::Level;
use crate::object::Key;
use crate::view::{Labels, Owner};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The node itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Node {
    pub name: Arc<str>,
    pub labels: Labels,
    /// What it has: millicores.
    pub cpu: Option<Level>,
    /// What it has: bytes.
    pub memory: Option<Level>,
    /// Its taints, ours among them.
    pub taints: Vec<crate::select::Taint>,
    /// Told to change nothing (the kill switch): every rule is a preview.
    pub preview: bool,
}

/// How well a pod is served by Kubernetes, the worst first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Not said.
    #[default]
    Unset,
    /// Asks for nothing.
    BestEffort,
    /// Asks for something.
    Burstable,
    /// Asks for exactly what it may use.
    Guaranteed,
}

impl Class {
    /// The class of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "" => Some(Self::Unset),
            "BestEffort" => Some(Self::BestEffort),
            "Burstable" => Some(Self::Burstable),
            "Guaranteed" => Some(Self::Guaranteed),
            _ => None,
        }
    }

    /// Its name; empty if not said.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unset => "",
            Self::BestEffort => "BestEffort",
            Self::Burstable => "Burstable",
            Self::Guaranteed => "Guaranteed",
        }
    }
}

/// How much CPU a container may take in each period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuQuota {
    /// Could not be read.
    #[default]
    Unknown,
    /// As much as it wants.
    Unlimited,
    /// Microseconds of CPU per period.
    Us(i64),
}

impl CpuQuota {
    /// From what the kernel says: -1, and 0 as some runtimes put it, mean unlimited.
    #[must_use]
    pub fn from_us(us: i64) -> Self {
        if us > 0 { Self::Us(us) } else { Self::Unlimited }
    }

    /// As the kernel wants it; -1 for unlimited. None if unknown.
    #[must_use]
    pub fn us(self) -> Option<i64> {
        match self {
            Self::Unknown => None,
            Self::Unlimited => Some(-1),
            Self::Us(us) => Some(us),
        }
    }

    /// In millicores: `quota / period × 1000`. None if there is no limit or none is known.
    #[must_use]
    pub fn level(self, period_us: i64) -> Option<Level> {
        match self {
            Self::Us(us) if period_us > 0 => Some(Level::whole(us).times(1000, period_us.into())),
            _ => None,
        }
    }
}

/// The period of every container that says nothing else, in microseconds.
pub const PERIOD_US: i64 = 100_000;

/// A container of a pod. Amounts of CPU in millicores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    pub name: Arc<str>,
    /// What its runtime knows it by, once it has one: the one that runs now.
    pub id: Option<Arc<str>>,
    /// What it uses.
    pub usage: Option<Level>,
    /// What it may take now.
    pub quota: CpuQuota,
    /// In how many microseconds.
    pub period_us: i64,
    /// What it was promised.
    pub request: Option<Level>,
    /// What it may take by its specification.
    pub limit: Option<Level>,
    /// What it may take of the elastic resource.
    pub elastic: Option<Level>,
}

impl Default for Container {
    fn default() -> Self {
        Self {
            name: Arc::default(),
            id: None,
            usage: None,
            quota: CpuQuota::Unknown,
            period_us: PERIOD_US,
            request: None,
            limit: None,
            elastic: None,
        }
    }
}

/// Where a pod comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// From the API server, which can take it away again.
    #[default]
    Api,
    /// From a file on the node.
    File,
    /// Written by a kubelet: the image of a pod the API server cannot touch.
    Mirror,
}

/// A pod on the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pod {
    pub key: Key,
    /// Its identity, where known: another pod may have had the key before.
    pub uid: Arc<str>,
    pub labels: Labels,
    /// How important it is.
    pub priority: i32,
    pub priority_class: Arc<str>,
    /// How well it is served.
    pub class: Class,
    /// Since when it runs.
    pub started: Option<Timestamp>,
    /// When it is to be gone, if it was told to go.
    pub deleted: Option<Timestamp>,
    /// How long it may take to go, in seconds.
    pub grace_seconds: Option<i64>,
    /// Has it ended?
    pub ended: bool,
    /// Where it comes from.
    pub origin: Origin,
    /// What the node knows it by if it comes from a file there.
    pub config_hash: Option<Arc<str>>,
    /// Asks not to be evicted.
    pub opted_out: bool,
    /// Who made it and makes it again.
    pub owner: Option<Owner>,
    /// What it uses of CPU, in millicores.
    pub cpu: Option<Level>,
    /// Its working set, in bytes.
    pub memory: Option<Level>,
    /// What of it cannot be reclaimed, in bytes: what its end would free for certain.
    pub unreclaimable: Option<Level>,
    /// Page cache it has not used of late, in bytes: what the kernel could take back at little cost.
    pub reclaimable: Option<Level>,
    /// What it may take of elastic memory, in thousandths of a byte.
    pub elastic_memory: Option<Level>,
    /// What it may take of elastic CPU, in millicores.
    pub elastic_cpu: Option<Level>,
    /// What it uses of anything else, by metric.
    pub usage: BTreeMap<Arc<str>, Level>,
    pub containers: Vec<Container>,
    /// Actions allowed on it besides those the scopes allow.
    pub allowed: Vec<Arc<str>>,
}

impl Pod {
    /// Is it one of a `DaemonSet`? It would come back to the same node at once.
    #[must_use]
    pub fn of_daemon_set(&self) -> bool {
        self.owner.as_ref().is_some_and(|owner| &*owner.kind == "DaemonSet")
    }

    /// How long it may take to go: its own time, else what Kubernetes gives.
    #[must_use]
    pub fn grace(&self) -> i64 {
        self.grace_seconds.unwrap_or(30)
    }
}
