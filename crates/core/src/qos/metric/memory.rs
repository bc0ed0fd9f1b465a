//! Memory: not compressible, in bytes. Nothing is slowed down; page cache can be asked back, and the end of a pod frees
//! what cannot be reclaimed.
//!
//! Measured in `/proc/meminfo`: used is `MemTotal − MemAvailable`, so page cache the kernel could take back is free; in percent of
//! `MemTotal`. 24 682 416 kB of which 23 652 344 kB are available are 1 054 793 728 bytes in use, or 4.17 %.

use super::{Metric, Resource, as_it_is, cpu};
use crate::qos::collect::{Collector, Found, Look, Machine, named};
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
        reclaimable: Some(|pod| pod.reclaimable),
        throttle: None,
        percent: false,
        suspicious_below: None,
        collect: Some(collector(|_, now, _| Found::only(used(now.text)))),
        of_pods: None,
    };
    let utilization = Metric {
        name: "memory_total_utilization",
        scale: share,
        percent: true,
        collect: Some(collector(|_, now, _| Found::only(used_percent(now.text)))),
        ..usage.clone()
    };
    let all = collector(|_, now, _| Found::only(total(now.text)));
    vec![usage, utilization, Metric::watched("memory_total", "bytes", Some(all))]
}

fn collector(read: fn(&Machine, Look<'_>, Option<Look<'_>>) -> Vec<Found>) -> Collector {
    Collector { file: "proc/meminfo", read }
}

/// A line in bytes.
fn bytes(text: &str, name: &str) -> Option<Level> {
    let kibibytes = i64::try_from(named(text, name)?).ok()?;
    kibibytes.checked_mul(1024).map(Level::whole)
}

/// A machine without memory is a file that lies.
fn total(text: &str) -> Option<Level> {
    bytes(text, "MemTotal:").filter(|all| *all > Level::ZERO)
}

fn used(text: &str) -> Option<Level> {
    let used = total(text)? - bytes(text, "MemAvailable:")?;
    (used >= Level::ZERO).then_some(used)
}

fn used_percent(text: &str) -> Option<Level> {
    Some(Level::whole(100).times(used(text)?.nano(), total(text)?.nano()))
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
