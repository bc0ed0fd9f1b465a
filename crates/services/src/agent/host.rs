//! What is used on a node, and how are containers held back there?

use jiff::Timestamp;
use loadline_core::qos::metric::Metric;
use loadline_core::qos::{self, CpuQuota, Level, PERIOD_US, Series};
use loadline_core::view::Labels;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

/// Where an agent runs: what it measures and what it writes besides the API server.
#[tonic::async_trait]
pub trait Host: fmt::Debug + Send + Sync + 'static {
    /// What everything uses now.
    async fn measure(&self, ask: &Ask<'_>) -> Usage;

    /// Holds a container to a quota.
    async fn set_quota(&self, of: &Located<'_>, quota: CpuQuota) -> Result<(), Error>;

    /// Asks the kernel for page cache of a pod, at most so many bytes.
    async fn reclaim(&self, _of: &Whole<'_>, _bytes: i64) -> Result<Reclaimed, Error> {
        Err(Error::Unwritten("page cache cannot be asked back here".to_owned()))
    }

    /// Takes the place for this agent, as long as it lives, unless another has it: whatever folders their journals are in, only one may act.
    fn claim(&self) -> bool {
        true
    }

    /// What whoever looks after the agent should know: what is in its way. Nothing if nothing is.
    fn problem(&self) -> Option<String> {
        None
    }
}

/// What is to be measured.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    pub now: Timestamp,
    /// Of nodes: what rules are about.
    pub metrics: &'a [Arc<Metric>],
    pub pods: &'a [&'a qos::Pod],
}

impl Ask<'_> {
    /// Is a metric of this resource asked about?
    #[must_use]
    pub fn wants(&self, resource: qos::metric::Resource) -> bool {
        self.metrics.iter().any(|metric| metric.resource == resource)
    }
}

/// A quota could not be written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is as it was.
    #[error("{0}")]
    Unwritten(String),
    /// Nobody answered: it may be written, or may be in a moment.
    #[error("{0}; nobody knows whether it was written")]
    Unsure(String),
}

/// A container, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Located<'a> {
    pub node: &'a str,
    pub pod: &'a qos::Pod,
    pub container: &'a qos::Container,
}

/// A pod, and where it is.
#[derive(Clone, Copy, Debug)]
pub struct Whole<'a> {
    pub node: &'a str,
    pub pod: &'a qos::Pod,
}

/// What came of asking for page cache. How much it was shows at the next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reclaimed {
    /// As much as was asked for.
    Enough,
    /// Less: the rest is in use.
    Less,
}

/// What everything used at one time. What is not in here was not measured, which is not nothing.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// By name.
    pub nodes: HashMap<Arc<str>, Vec<Series>>,
    /// By uid.
    pub pods: HashMap<Arc<str>, PodUsage>,
}

/// What a pod used.
#[derive(Clone, Debug, Default)]
pub struct PodUsage {
    /// In millicores, with what the pod needs beside its containers; the sum of these if not measured.
    pub cpu: Option<Level>,
    /// The working set, in bytes.
    pub memory: Option<Level>,
    /// What of it cannot be reclaimed, in bytes.
    pub unreclaimable: Option<Level>,
    /// Page cache it has not used of late, in bytes.
    pub reclaimable: Option<Level>,
    /// What else it uses, by metric.
    pub other: BTreeMap<Arc<str>, Level>,
    /// Containers, by name.
    pub containers: BTreeMap<Arc<str>, ContainerUsage>,
}

/// What a container used, and what it is held to.
#[derive(Clone, Copy, Debug)]
pub struct ContainerUsage {
    /// In millicores; `None` if that was not measured.
    pub cpu: Option<Level>,
    /// Its working set in bytes, where somebody asks for it.
    pub memory: Option<Level>,
    pub quota: CpuQuota,
    /// In how many microseconds.
    pub period_us: i64,
    /// Its share of CPU that is short, where somebody asks for it.
    pub shares: Option<Level>,
    /// How long its processes wait for a CPU, in microseconds a second, where somebody asks for it.
    pub waits: Option<Level>,
    /// For how long its quota held it back, in microseconds a second, where somebody asks for it.
    pub throttled: Option<Level>,
}

impl Default for ContainerUsage {
    fn default() -> Self {
        let (cpu, memory, shares, waits, throttled) = (None, None, None, None, None);
        Self { cpu, memory, quota: CpuQuota::Unknown, period_us: PERIOD_US, shares, waits, throttled }
    }
}

impl PodUsage {
    /// CPU of all of it; `None` if nothing was measured.
    #[must_use]
    pub fn cpu(&self) -> Option<Level> {
        let sum = || self.containers.values().filter_map(|one| one.cpu).reduce(|a, b| a + b);
        self.cpu.or_else(sum)
    }
}

/// An amount of CPU and memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu_milli: i64,
    pub memory_bytes: i64,
}

/// The series of a node that is known to use and to have so much.
#[must_use]
pub fn series(used: Used, has: Used, at: Timestamp) -> Vec<Series> {
    let percent = |used: i64, has: i64| (has > 0).then(|| Level::whole(used).times(100, i128::from(has)));
    let series =
        |name: &str, value: Option<Level>| Series { name: name.into(), labels: Labels::default(), value, at };
    vec![
        series("cpu_total_usage", Some(Level::whole(used.cpu_milli))),
        series("cpu_total_utilization", percent(used.cpu_milli, has.cpu_milli)),
        series("memory_total_usage", Some(Level::whole(used.memory_bytes))),
        series("memory_total_utilization", percent(used.memory_bytes, has.memory_bytes)),
    ]
}
