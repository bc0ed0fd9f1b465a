//! Containers: what each of them uses and may use. They are read from cgroups, where [`crate::qos::cgroup`] says, so no file of the
//! node has them; and what acting on a pod would do to one of its own figures is not asked.

use super::Metric;

/// The metrics of containers.
#[must_use]
pub fn all() -> Vec<Metric> {
    [
        ("container_cpu_throttled_time", "µs/s"),
        ("container_cpu_total_usage", "cores"),
        ("container_mem_total_usage", "bytes"),
        ("container_sched_run_queue_time", "µs/s"),
        // Shares, whatever the name says.
        ("container_cpu_limit", "shares"),
        ("container_cpu_quota", "µs"),
        ("container_cpu_period", "µs"),
    ]
    .map(|(name, unit)| Metric::watched(name, unit, None))
    .into()
}
