//! What is used on a node, and how are containers held back there?

use jiff::Timestamp;
use loadline_core::qos::CpuQuota;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Where an agent runs: what it measures and what it writes besides the API server.
#[tonic::async_trait]
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// What everything uses now.
    async fn measure(&self, now: Timestamp) -> Usage;

    /// Holds a container to a quota.
    async fn set_quota(&self, of: &Container<'_>, quota: CpuQuota) -> Result<(), Error>;
}

/// A quota could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Error(pub String);

/// A container on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container<'a> {
    pub node: &'a str,
    pub pod_uid: &'a str,
    pub name: &'a str,
}

/// What everything used at one time. What is not in here was not measured, which is not nothing.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By name.
    pub nodes: HashMap<Arc<str>, Used>,
    /// By uid.
    pub pods: HashMap<Arc<str>, PodUsage>,
}

/// An amount of CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

/// What the containers of a pod used, by name.
#[derive(Clone, Debug, Default)]
pub struct PodUsage {
    pub containers: BTreeMap<String, ContainerUsage>,
}

/// What a container used, and what it is held to.
#[derive(Clone, Copy, Debug, Default)]
pub struct ContainerUsage {
    /// `None` if that was not measured.
    pub used: Option<Used>,
    pub quota: CpuQuota,
}

impl PodUsage {
    /// All containers together; `None` if none was measured.
    #[must_use]
    pub fn total(&self) -> Option<Used> {
        let used = self.containers.values().filter_map(|container| container.used);
        used.reduce(|a, b| Used {
            cpu_milli: a.cpu_milli.saturating_add(b.cpu_milli),
            memory_bytes: a.memory_bytes.saturating_add(b.memory_bytes),
        })
    }
}
