//! What is done to pods when a node is in trouble?

use super::NoStatus;
use super::parts::DNS_LABEL;
use kube::core::Rule;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done; neither throttling nor evicting means that only new pods are kept away.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ensurance.crane.io",
    version = "v1alpha1",
    kind = "AvoidanceAction",
    doc = "What is done to pods when a node is in trouble.",
    plural = "avoidanceactions",
    shortname = "avoid",
    status = "NoStatus",
    validation = named()
)]
pub struct AvoidanceActionSpec {
    /// For how long new pods are kept away after the trouble is over.
    #[schemars(range(min = 1), extend("default" = 300))]
    pub cool_down_seconds: Option<i32>,
    /// Whether pods get less, and how much less.
    pub throttle: Option<Throttle>,
    /// Whether pods are evicted.
    pub eviction: Option<Eviction>,
    /// What the action is for.
    #[schemars(length(max = 1024))]
    pub description: Option<String>,
}

/// The name is that of an action in a rule.
fn named() -> Rule {
    Rule::new(format!("self.metadata.name.matches('{DNS_LABEL}') && size(self.metadata.name) <= 63"))
        .message(
            "must be a DNS label: at most 63 lower-case letters, digits and '-', none of them '-' at an end",
        )
        .field_path(".metadata.name")
}

/// How pods are made to take less.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Throttle {
    /// Less processor time.
    pub cpu_throttle: Option<CpuThrottle>,
    /// Less page cache.
    pub memory_throttle: Option<MemoryThrottle>,
}

/// How much less processor time.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct CpuThrottle {
    /// What is always left, in percent of the limit; 10 if it is not said.
    #[serde(rename = "minCPURatio")]
    #[schemars(range(min = 0, max = 100))]
    pub min_cpu_ratio: Option<i32>,
    /// How much is taken, or given back, at a time, in percent; 10 if it is not said.
    #[serde(rename = "stepCPURatio")]
    #[schemars(range(min = 0, max = 100))]
    pub step_cpu_ratio: Option<i32>,
}

/// How page cache is taken.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct MemoryThrottle {
    /// Whether the kernel is asked to drop page cache.
    #[serde(rename = "forceGC")]
    pub force_gc: Option<bool>,
}

/// How pods are evicted.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Eviction {
    /// How long a pod has to end; as long as the pod itself says if it is not said here.
    #[schemars(range(min = 0))]
    pub termination_grace_period_seconds: Option<i32>,
}
