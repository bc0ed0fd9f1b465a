//! Which figures of which nodes must stay below which line, and what is done if one does not?

use super::NoStatus;
use super::parts::{HttpGet, LineName, Name, Selector};
use crate::schema::parts::Quantity;
use kube::core::{Reason, Rule};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Every figure an agent collects, and so may be named in a rule. The last is an older name of `disk_utilization`.
pub const METRICS: [&str; 35] = [
    "cpu_core_numbers",
    "cpu_load_15_min",
    "cpu_load_1_min",
    "cpu_load_5_min",
    "cpu_total_usage",
    "cpu_total_utilization",
    "container_cpu_limit",
    "container_cpu_period",
    "container_cpu_quota",
    "container_cpu_throttled_time",
    "container_cpu_total_usage",
    "container_mem_total_usage",
    "container_sched_run_queue_time",
    "disk_read_iops",
    "disk_read_kibps",
    "disk_utilization",
    "disk_write_iops",
    "disk_write_kibps",
    "exclusive_cpu_idle",
    "ext_cpu_total_distribute",
    "ext_res_container_cpu_total_usage",
    "ext_res_container_mem_total_usage",
    "memory_total",
    "memory_total_usage",
    "memory_total_utilization",
    "network_drop_in",
    "network_drop_out",
    "network_receive_kibps",
    "network_receive_pckps",
    "network_sent_kibps",
    "network_sent_pckps",
    "psi_cpu_some",
    "psi_io_full",
    "psi_memory_full",
    "disk_read_utilization",
];

/// Which nodes, which figures, which lines.
#[derive(Clone, Debug, Deserialize, Serialize, CustomResource, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = collected())]
#[kube(
    group = "ensurance.crane.io",
    version = "v1alpha1",
    kind = "NodeQOS",
    doc = "Lines that nodes must stay below, and what is done if one does not.",
    plural = "nodeqoss",
    singular = "nodeqos",
    shortname = "nq",
    status = "NoStatus",
    validation = named()
)]
pub struct NodeQOSSpec {
    /// Which nodes; every node if it is not said.
    pub selector: Option<Selector>,
    /// Where the figures come from.
    pub node_quality_probe: NodeQualityProbe,
    /// The lines, at most 64.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub rules: Vec<RuleOf>,
    /// How much elastic pods may take.
    pub elastic_cpu_limit: Option<ElasticCpuLimit>,
    /// How much page cache there may be.
    pub mem_limit: Option<MemLimit>,
    /// Whether memory is compressed.
    pub memory_compression: Option<Enable>,
    /// How much elastic pods may send and receive.
    pub net_limits: Option<NetLimits>,
}

fn named() -> Rule {
    Rule::new("self.metadata.name.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$') && size(self.metadata.name) <= 63")
        .message(
            "must be a DNS label that starts with a letter: at most 63 lower-case letters, digits and '-', not '-' at \
             its end",
        )
        .field_path(".metadata.name")
}

/// Whoever is asked over HTTP may have other figures.
fn collected() -> Rule {
    let names = METRICS.map(|name| format!("'{name}'")).join(", ");
    Rule::new(format!(
        "has(self.nodeQualityProbe.httpGet) || self.rules.all(r, r.metricRule.name in [{names}])"
    ))
    .message(
        "metricRule.name must be a figure that is collected, such as cpu_total_usage, unless httpGet is used",
    )
    .field_path(".rules")
}

/// Where the figures come from: from the node itself, or from somebody who is asked over HTTP.
#[derive(Clone, Debug, Deserialize, Serialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = one_of_two(), validation = path())]
pub struct NodeQualityProbe {
    /// From somebody who is asked over HTTP.
    pub http_get: Option<HttpGet>,
    /// From the node itself.
    pub node_local_get: Option<NodeLocalGet>,
    /// How long an answer may take; zero is forever.
    pub timeout_seconds: Option<i32>,
}

fn one_of_two() -> Rule {
    Rule::new("has(self.httpGet) != has(self.nodeLocalGet)")
        .message("exactly one of httpGet and nodeLocalGet must be set")
}

fn path() -> Rule {
    Rule::new("!has(self.httpGet) || (has(self.httpGet.path) && self.httpGet.path != '')")
        .message("what is asked for must be said")
        .reason(Reason::FieldValueRequired)
        .field_path(".httpGet.path")
}

/// Figures of the node itself.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeLocalGet {
    /// How long they count.
    #[serde(rename = "localCacheTTLSeconds")]
    #[schemars(extend("default" = 60))]
    pub local_cache_ttl_seconds: Option<i32>,
}

/// A line, and what is done when a figure is above it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RuleOf {
    /// A name that no other rule of the object has.
    pub name: LineName,
    /// The figure and the line.
    pub metric_rule: MetricRule,
    /// How often in a row the figure must be above the line before anything is done.
    #[schemars(range(min = 1), extend("default" = 1))]
    pub avoidance_threshold: Option<i32>,
    /// How often in a row it must be below the line before it is undone.
    #[schemars(range(min = 1), extend("default" = 1))]
    pub restore_threshold: Option<i32>,
    /// The name of the action.
    pub action_name: Name,
    /// Whether it is done, or only told what would be.
    #[schemars(extend("default" = "None"))]
    pub strategy: Option<Strategy>,
}

/// Do it, or only tell what would be done.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub enum Strategy {
    None,
    Preview,
}

/// An amount that is more than 0, as text: some digit before the suffix is not 0. A rule that reads amounts would say it in
/// words, but what it costs for the longest text there could be, times the number of rules, is beyond what is allowed.
const POSITIVE: &str = r"^\+?([0-9]*[1-9][0-9]*(\.[0-9]*)?|[0-9]*\.[0-9]*[1-9][0-9]*)([KMGTPE]i|[numkMGTPE]|[eE](\+|-)?([0-9]+(\.[0-9]*)?|\.[0-9]+))?$";

/// A figure and its line.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct MetricRule {
    /// The figure, in at most 253 characters.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Of which device, network interface or container; of any if it is not said.
    pub selector: Option<Selector>,
    /// The line, more than 0, in the unit of the figure: for `cpu_total_usage` that is a thousandth of a processor.
    #[schemars(extend("minimum" = 1, "pattern" = POSITIVE))]
    pub value: Quantity,
}

/// How much elastic pods may take.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ElasticCpuLimit {
    /// Of the whole node.
    pub elastic_node_cpu_limit: Option<Percent>,
    /// Of some processors.
    pub elastic_core_cpu_limit: Option<Vec<CorePercent>>,
    /// Of some processors, at some times.
    pub elastic_core_cpu_limit_period: Option<Vec<CorePercentPeriod>>,
    /// Whether elastic pods make room for others.
    pub elastic_cpu_avoidance: Option<Enable>,
}

/// A share.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Percent {
    /// In percent.
    pub percent: Option<i64>,
}

/// A share of some processors.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorePercent {
    /// Which processors.
    pub core_num: Option<String>,
    /// In percent.
    pub percent: Option<i64>,
}

/// A share of some processors, at some times.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorePercentPeriod {
    /// When.
    pub offline_cpu_limit: Option<String>,
    /// Which processors.
    pub core_num: Option<String>,
    /// In percent.
    pub percent: Option<i64>,
}

/// On or off.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Enable {
    /// On.
    pub enable: Option<bool>,
}

/// How much page cache there may be.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemLimit {
    /// Whether it is limited.
    pub page_cache_limit_global: Option<bool>,
    /// How often the kernel tries to get below the limit.
    pub page_cache_limit_retry_times: Option<i64>,
}

/// How much elastic pods may send and receive, in bytes per second.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NetLimits {
    /// Received, at least.
    pub rx_bps_min: i64,
    /// Received, at most.
    pub rx_bps_max: i64,
    /// Sent, at least.
    pub tx_bps_min: i64,
    /// Sent, at most.
    pub tx_bps_max: i64,
}

#[cfg(test)]
mod tests {
    use super::METRICS;
    use loadline_core::qos::metric::Catalogue;
    use std::collections::BTreeSet;

    #[test]
    fn what_a_rule_may_name_is_what_is_in_the_catalogue() {
        let catalogue = Catalogue::default();
        let names = catalogue.iter().flat_map(|metric| metric.aliases.iter().copied().chain([metric.name]));
        assert_eq!(BTreeSet::from(METRICS), names.collect());
    }
}
