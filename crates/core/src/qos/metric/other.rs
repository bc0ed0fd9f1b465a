//! What a rule may watch, though nobody can tell what acting on a pod would do to it.

use super::{Metric, Resource, as_it_is, not_elastic};

/// Name, other names, unit, is it a share of 100.
type Row = (&'static str, &'static [&'static str], &'static str, bool);

const ROWS: [Row; 18] = [
    ("cpu_load_1_min", &[], "load", false),
    ("cpu_load_5_min", &[], "load", false),
    ("cpu_load_15_min", &[], "load", false),
    ("disk_read_kibps", &[], "KiB/s", false),
    ("disk_write_kibps", &[], "KiB/s", false),
    ("disk_read_iops", &[], "1/s", false),
    ("disk_write_iops", &[], "1/s", false),
    // The name peers publish it under.
    ("disk_utilization", &["disk_read_utilization"], "%", true),
    // Kilobits, whatever the name says.
    ("network_receive_kibps", &[], "kbit/s", false),
    ("network_sent_kibps", &[], "kbit/s", false),
    ("network_receive_pckps", &[], "packets/s", false),
    ("network_sent_pckps", &[], "packets/s", false),
    ("network_drop_in", &[], "packets/s", false),
    ("network_drop_out", &[], "packets/s", false),
    ("container_cpu_total_usage", &[], "cores", false),
    ("container_mem_total_usage", &[], "bytes", false),
    ("container_sched_run_queue_time", &[], "µs/s", false),
    ("ext_cpu_total_distribute", &[], "%", true),
];

/// Figures that are collected to compute others, and may stand in a rule all the same.
const HELPERS: [Row; 8] = [
    ("cpu_core_numbers", &[], "cores", false),
    ("memory_total", &[], "bytes", false),
    ("exclusive_cpu_idle", &[], "millicores", false),
    ("container_cpu_limit", &[], "shares", false),
    ("container_cpu_quota", &[], "µs", false),
    ("container_cpu_period", &[], "µs", false),
    ("ext_res_container_cpu_total_usage", &[], "cores", false),
    ("ext_res_container_mem_total_usage", &[], "bytes", false),
];

/// All of them. Names decide their order.
#[must_use]
pub fn all() -> Vec<Metric> {
    let mut rows: Vec<Row> = ROWS.into_iter().chain(HELPERS).collect();
    rows.sort_unstable();
    let metric = |(name, aliases, unit, percent)| Metric {
        name,
        aliases,
        unit,
        resource: Resource(name),
        rank: 0,
        scale: as_it_is,
        elastic: not_elastic,
        compare: None,
        release: None,
        throttle: None,
        percent,
        suspicious_below: None,
    };
    rows.into_iter().map(metric).collect()
}
