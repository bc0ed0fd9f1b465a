//! Elastic resources: how much of what others leave is handed out and used. Put together from other figures, so no file has them.

use super::Metric;
use crate::qos::level::Level;
use crate::qos::pod::Pod;

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

/// How much of a node's elastic CPU is handed out, in percent: what pods may take of it, in millicores, by what there is.
///
/// ```text
/// share = 100 × Σ limits / allocatable
/// ```
///
/// 1500 and 500 of 4000 millicores are 50 %. None of nothing.
#[must_use]
pub fn handed_out<'p>(pods: impl IntoIterator<Item = &'p Pod>, allocatable: Level) -> Option<Level> {
    let there = pods.into_iter().filter(|pod| !pod.ended);
    let sum = there.filter_map(|pod| pod.elastic_cpu).fold(Level::ZERO, |sum, one| sum + one);
    (allocatable > Level::ZERO).then(|| sum.times(Level::whole(100).nano(), allocatable.nano()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pods_may_take_is_a_share_of_what_there_is() {
        let pod =
            |milli: Option<i64>, ended| Pod { elastic_cpu: milli.map(Level::whole), ended, ..Pod::default() };
        let pods = [pod(Some(1500), false), pod(Some(500), false), pod(None, false), pod(Some(900), true)];
        assert_eq!(handed_out(&pods, Level::whole(4000)), Some(Level::whole(50)));
        assert_eq!(handed_out(&[], Level::whole(4000)), Some(Level::ZERO));
        assert_eq!(handed_out(&pods, Level::ZERO), None, "no share of nothing");
    }
}
