//! To which pods may something be done?

use super::NoStatus;
use super::node::Enable;
use super::parts::{HttpGet, Selector};
use kube::core::Rule;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Which pods, and what may be done to them. Without labels and scopes it is none.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema, CustomResource)]
#[serde(rename_all = "camelCase")]
#[kube(
    group = "ensurance.crane.io",
    version = "v1alpha1",
    kind = "PodQOS",
    doc = "Pods to which something may be done when their node is in trouble.",
    plural = "podqoss",
    singular = "podqos",
    shortname = "pq",
    status = "NoStatus"
)]
pub struct PodQOSSpec {
    /// Labels of the pods.
    pub label_selector: Option<Selector>,
    /// What else they must be like.
    pub scope_selector: Option<ScopeSelector>,
    /// Names of the actions that may be applied to them.
    pub allowed_actions: Option<Vec<String>>,
    /// How they tell that they are well.
    pub pod_quality_probe: Option<PodQualityProbe>,
    /// What they get of each resource.
    #[serde(rename = "resourceQOS")]
    pub resource_qos: Option<ResourceQos>,
}

/// What pods must be like, besides their labels.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ScopeSelector {
    /// All of these must hold; at most 64.
    #[schemars(length(max = 64))]
    pub match_expressions: Option<Vec<ScopeRequirement>>,
}

/// What is asked of one property.
#[derive(Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = priorities(), validation = ranges())]
pub struct ScopeRequirement {
    /// The property.
    pub scope_name: Scope,
    /// Whether it is one of the values, or none of them.
    pub operator: ScopeOperator,
    /// Namespaces, classes, or priorities such as `1000` and `-1000-0`; at most 256, of at most 63 characters each.
    #[schemars(length(max = 256), inner(length(max = 63)))]
    pub values: Option<Vec<String>>,
}

/// A property of pods.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Scope {
    #[serde(rename = "QOSClass")]
    QosClass,
    Priority,
    Namespace,
}

/// One of the values, or none of them.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum ScopeOperator {
    In,
    NotIn,
}

fn priorities() -> Rule {
    let each = "self.values.all(v, v.matches('^-?[0-9]{1,10}(--?[0-9]{1,10})?$'))";
    Rule::new(format!("self.scopeName != 'Priority' || !has(self.values) || {each}"))
        .message("priorities must be whole numbers such as 1000, or ranges such as -1000-0")
        .field_path(".values")
}

fn ranges() -> Rule {
    // The first number of a range ends where its own digits do; the other begins after one more '-'.
    let range = "v.matches('^-?[0-9]{1,10}--?[0-9]{1,10}$')";
    let low = "v.find('^-?[0-9]+')";
    let each = format!("self.values.all(v, !{range} || int({low}) <= int(v.substring(size({low}) + 1)))");
    Rule::new(format!("self.scopeName != 'Priority' || !has(self.values) || {each}"))
        .message("a range of priorities must begin with the lower one")
        .field_path(".values")
}

/// How pods tell that they are well.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodQualityProbe {
    /// When asked over HTTP.
    pub http_get: Option<HttpGet>,
    /// How long an answer may take; zero is forever.
    pub timeout_seconds: Option<i32>,
}

/// What pods get of each resource.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ResourceQos {
    /// Of processors.
    #[serde(rename = "cpuQOS")]
    pub cpu_qos: Option<CpuQos>,
    /// Of memory.
    #[serde(rename = "memoryQOS")]
    pub memory_qos: Option<MemoryQos>,
    /// Of the network.
    #[serde(rename = "netIOQOS")]
    pub net_io_qos: Option<NetIoQos>,
    /// Of disks.
    #[serde(rename = "diskIOQOS")]
    pub disk_io_qos: Option<DiskIoQos>,
}

/// What pods get of processors.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuQos {
    /// From 0, who comes first, to 7.
    #[schemars(range(min = 0, max = 7))]
    pub cpu_priority: Option<i32>,
    /// The same per container.
    pub container_priority: Option<BTreeMap<String, i32>>,
    /// What may be used beyond the limit for a moment.
    pub cpu_burst: Option<CpuBurst>,
    /// Whether nobody else runs on the other half of a core.
    pub ht_isolation: Option<Enable>,
    /// Whether processors are bound.
    pub cpu_set: Option<CpuSet>,
    /// Cache and memory bandwidth.
    pub rdt: Option<Rdt>,
    /// The same per container.
    pub container_rdt: Option<BTreeMap<String, Rdt>>,
}

/// What may be used beyond the limit for a moment.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuBurst {
    /// How much.
    pub burst_quota: Option<String>,
}

/// Whether processors are bound.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CpuSet {
    /// Not at all, for this pod alone, or shared with others.
    pub cpu_set: Option<CpuSetPolicy>,
}

/// Not at all, for this pod alone, or shared with others.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CpuSetPolicy {
    None,
    Exclusive,
    Share,
}

/// Cache and memory bandwidth, per domain.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Rdt {
    /// Last-level cache.
    pub l3: Option<BTreeMap<String, String>>,
    /// Memory bandwidth.
    pub mb: Option<BTreeMap<String, String>>,
}

/// What pods get of memory.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryQos {
    /// From 0, who is killed last, to 7.
    #[schemars(range(min = 0, max = 7))]
    pub mem_priority: Option<i32>,
    /// When memory is reclaimed in the background.
    pub mem_async_reclaim: Option<MemAsyncReclaim>,
    /// How early the kernel gets busy.
    pub mem_watermark: Option<MemWatermark>,
    /// How much page cache there may be.
    pub mem_page_cache_limit: Option<MemPageCacheLimit>,
    /// Whether and how memory is compressed.
    pub memory_compression: Option<MemoryCompression>,
}

/// When memory is reclaimed in the background.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemAsyncReclaim {
    /// From which use on, in percent.
    pub async_ratio: Option<i64>,
    /// How far.
    pub async_distance_factor: Option<i64>,
}

/// How early the kernel gets busy.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemWatermark {
    /// In percent.
    pub watermark_ratio: Option<i64>,
}

/// How much page cache there may be.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemPageCacheLimit {
    /// In percent of the limit.
    pub page_cache_max_ratio: Option<i64>,
    /// How much of it is given back at a time, in percent.
    pub page_cache_reclaim_ratio: Option<i64>,
}

/// Whether and how memory is compressed.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCompression {
    /// Whether.
    pub enable: Option<bool>,
    /// How hard.
    #[schemars(range(min = 0, max = 4))]
    pub compression_level: Option<i32>,
    /// What is compressed first.
    #[schemars(extend("default" = "Tiny"))]
    pub preference: Option<Preference>,
    /// Who gets what is gained.
    #[schemars(extend("default" = "Allow"))]
    pub oversold: Option<Oversold>,
}

/// What is compressed first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Preference {
    Tiny,
    Normal,
    FileOnly,
    AnonOnly,
}

/// Who gets what compression gains.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Oversold {
    Transparent,
    None,
    Allow,
}

/// What pods get of the network.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetIoQos {
    /// Who comes first.
    #[serde(rename = "netIOPriority")]
    pub net_io_priority: Option<i64>,
    /// The same per container.
    pub containers_priority: Option<BTreeMap<String, i64>>,
    /// At most.
    #[serde(rename = "netIOLimits")]
    pub net_io_limits: Option<NetIoLimits>,
    /// At most, per device.
    #[serde(rename = "devNetIOLimits")]
    pub dev_net_io_limits: Option<BTreeMap<String, NetIoLimits>>,
    /// Ports that are not limited.
    pub whitelist_ports: Option<WhitelistPorts>,
}

/// What may be sent and received, in bytes per second.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetIoLimits {
    /// Received.
    pub rx_bps: i64,
    /// Sent.
    pub tx_bps: i64,
}

/// Ports that are not limited.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct WhitelistPorts {
    /// Here.
    pub lports: Option<String>,
    /// There.
    pub rports: Option<String>,
}

/// What pods get of disks.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct DiskIoQos {
    /// Who comes first.
    #[serde(rename = "diskIOWeight")]
    pub disk_io_weight: Option<DiskIoWeight>,
    /// At most.
    #[serde(rename = "diskIOLimit")]
    pub disk_io_limit: Option<DiskIoLimit>,
}

/// Who comes first.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct DiskIoWeight {
    /// The more, the more.
    pub weight: Option<i64>,
}

/// What may be read and written per second.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DiskIoLimit {
    /// Reads.
    #[serde(rename = "readIOps")]
    pub read_iops: Option<i64>,
    /// Writes.
    #[serde(rename = "writeIOps")]
    pub write_iops: Option<i64>,
    /// Bytes read.
    pub read_bps: Option<i64>,
    /// Bytes written.
    pub write_bps: Option<i64>,
}
