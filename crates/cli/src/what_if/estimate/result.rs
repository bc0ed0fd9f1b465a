//! The answer of `what-if estimate`, as programs read it. Field names are a promise.
//!
//! Replicas are counted in `maxReplicas`, complete sets of components in `maxSets`; 2147483647 says that nothing
//! limits. Nodes come in the order in which they would be filled: by turns from each zone, by name within one.

use loadline_core::explain::Reason;
use serde::{Serialize, Serializer, ser::SerializeMap as _};

/// How many fit.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EstimateResult {
    /// What was asked about, such as `Deployment shop/web`.
    pub workload: String,
    #[serde(flatten)]
    pub most: Most,
    /// The quota, if one allows less than the nodes.
    pub limited_by: Option<String>,
    /// What quotas leave; `null` if none has a say.
    pub quota: Option<QuotaResult>,
    /// What each node takes; empty for sets, whose components say it.
    pub nodes: Vec<NodeResult>,
    /// What each component of a set would find if it came alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub components: Vec<ComponentResult>,
    /// The same under the load line; `null` if not asked for or nothing is known of load.
    pub load: Option<LoadResult>,
    /// The same if pods of lower priority were evicted; `null` if not asked for or the priority is not known.
    pub preempting: Option<Preempting>,
    pub warnings: Vec<String>,
}

/// How many, under the name that says of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Most {
    Replicas(i32),
    Sets(i32),
}

impl Most {
    /// How many.
    pub fn count(self) -> i32 {
        match self {
            Self::Replicas(count) | Self::Sets(count) => count,
        }
    }

    /// Another number of the same.
    pub fn with(self, count: i32) -> Self {
        match self {
            Self::Replicas(_) => Self::Replicas(count),
            Self::Sets(_) => Self::Sets(count),
        }
    }
}

impl Serialize for Most {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let name = match self {
            Self::Replicas(_) => "maxReplicas",
            Self::Sets(_) => "maxSets",
        };
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(name, &self.count())?;
        map.end()
    }
}

/// The tightest quota.
#[derive(Debug, Serialize)]
pub struct QuotaResult {
    pub name: String,
    /// The resource of which least is left, as the quota names it.
    pub resource: String,
    #[serde(flatten)]
    pub most: Most,
}

/// What one node takes.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeResult {
    pub node: String,
    pub replicas: i32,
    /// The resource that ends first, or `pods`.
    pub limited_by: Option<String>,
    /// Why none, in one sentence.
    pub reason: Option<String>,
    /// The same as data.
    pub detail: Option<Reason>,
}

/// One component of a set.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ComponentResult {
    pub name: String,
    /// How many a set has.
    pub replicas: i32,
    /// How many would fit if nothing else came.
    pub max_replicas: i32,
    pub nodes: Vec<NodeResult>,
}

/// How many fit under the load line.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadResult {
    #[serde(flatten)]
    pub most: Most,
    /// The quota, if one allows less.
    pub limited_by: Option<String>,
    /// What each node takes; empty for sets.
    pub nodes: Vec<NodeResult>,
}

/// How many would fit if pods of lower priority were evicted.
#[derive(Debug, Serialize)]
pub struct Preempting {
    #[serde(flatten)]
    pub most: Most,
}
