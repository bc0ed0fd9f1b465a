//! CPU: compressible, in millicores. Pods are slowed down by their quota, and their end frees what they use.

use super::{Metric, Resource, Throttle, as_it_is};
use crate::qos::level::Level;
use crate::qos::pod::{Node, Pod};
use crate::qos::throttle::quota;
use std::cmp::Ordering;

pub const CPU: Resource = Resource("cpu");

/// How CPU is taken away and given back.
pub const QUOTA: Throttle = Throttle { knob: "cpu", down: quota::down, up: quota::up };

/// The metrics of CPU.
#[must_use]
pub fn all() -> Vec<Metric> {
    let usage = Metric {
        name: "cpu_total_usage",
        aliases: &[],
        unit: "millicores",
        resource: CPU,
        rank: 5,
        scale: as_it_is,
        elastic: |pod| pod.elastic_cpu.is_some_and(|limit| limit != Level::ZERO),
        compare: Some(compare),
        release: Some(|pod| pod.cpu),
        throttle: Some(QUOTA),
        percent: false,
        suspicious_below: Some(Level::whole(100)),
    };
    let utilization = Metric {
        name: "cpu_total_utilization",
        scale: share,
        percent: true,
        suspicious_below: None,
        ..usage.clone()
    };
    vec![usage, utilization]
}

/// `percent × cores × 1000 / 100` millicores.
fn share(percent: Level, node: &Node) -> Option<Level> {
    Some(percent.times(node.cpu?.nano(), Level::whole(100).nano()))
}

/// Who uses more goes first; of two elastic ones with equal usage, who uses less of its limit.
fn compare(a: &Pod, b: &Pod) -> Ordering {
    by_usage(a.cpu, b.cpu).then_with(|| by_share((a.cpu, a.elastic_cpu), (b.cpu, b.elastic_cpu)))
}

/// The higher first, absent is nothing. Usage is read to the billionth of a core, so noise of floats is gone.
pub(super) fn by_usage(a: Option<Level>, b: Option<Level>) -> Ordering {
    b.unwrap_or_default().cmp(&a.unwrap_or_default())
}

/// Usage by limit, the lower first, where both have a limit.
pub(super) fn by_share(a: (Option<Level>, Option<Level>), b: (Option<Level>, Option<Level>)) -> Ordering {
    let (Some(limit_a), Some(limit_b)) = (a.1, b.1) else { return Ordering::Equal };
    if limit_a <= Level::ZERO || limit_b <= Level::ZERO {
        return Ordering::Equal;
    }
    let share =
        |used: Option<Level>, limit: Level| used.unwrap_or_default().times(1_000_000_000, limit.nano());
    share(a.0, limit_a).cmp(&share(b.0, limit_b))
}
