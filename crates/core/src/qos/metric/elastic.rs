//! Elastic resources: how much of what others leave is handed out and used. Put together from other figures, so no file has them.

use super::Metric;

/// The metrics of elastic resources.
#[must_use]
pub fn all() -> Vec<Metric> {
    [
        ("exclusive_cpu_idle", "millicores"),
        ("ext_cpu_total_distribute", "%"),
        ("ext_res_container_cpu_total_usage", "cores"),
        ("ext_res_container_mem_total_usage", "bytes"),
    ]
    .map(|(name, unit)| Metric::watched(name, unit, None))
    .into()
}
