//! Memory: not compressible, in bytes. Nothing is slowed down; the end of a pod frees what cannot be reclaimed.

use super::{Metric, Resource, as_it_is, cpu};
use crate::qos::level::Level;
use crate::qos::pod::{Node, Pod};
use std::cmp::Ordering;

pub const MEMORY: Resource = Resource("memory");

/// The metrics of memory.
#[must_use]
pub fn all() -> Vec<Metric> {
    let usage = Metric {
        name: "memory_total_usage",
        aliases: &[],
        unit: "bytes",
        resource: MEMORY,
        rank: 10,
        scale: as_it_is,
        elastic: |pod| pod.elastic_memory.is_some_and(|limit| limit != Level::ZERO),
        compare: Some(compare),
        release: Some(release),
        throttle: None,
        percent: false,
        suspicious_below: None,
    };
    let utilization =
        Metric { name: "memory_total_utilization", scale: share, percent: true, ..usage.clone() };
    vec![usage, utilization]
}

/// `percent × total / 100` bytes.
fn share(percent: Level, node: &Node) -> Option<Level> {
    Some(percent.times(node.memory?.nano(), Level::whole(100).nano()))
}

/// The working set decides who goes first, as everywhere; but it counts page cache the node counts as free, so what is
/// expected of the end of a pod is the part nobody can reclaim, where that is known.
fn release(pod: &Pod) -> Option<Level> {
    pod.unreclaimable.or(pod.memory)
}

/// Who uses more goes first; of two elastic ones with equal usage, who uses less of its limit.
fn compare(a: &Pod, b: &Pod) -> Ordering {
    cpu::by_usage(a.memory, b.memory)
        .then_with(|| cpu::by_share((a.memory, a.elastic_memory), (b.memory, b.elastic_memory)))
}
