//! CPU: compressible, in millicores. Pods are slowed down by their quota, and their end frees what they use.
//!
//! Measured in the first line of `/proc/stat`, where the kernel counts the time all CPUs spent so far, between two looks:
//!
//! ```text
//! busy        = user + nice + system + irq + softirq + steal      (+ iowait, only if asked for)
//! all         = busy + idle + iowait
//! utilization = 100 × Δbusy / Δall                                percent
//! usage       = 1000 × cores × Δbusy / Δall                       millicores
//! ```
//!
//! 60 more of busy and 180 more of idle on 8 cores are 25 % and 2 000 millicores. Waiting for disks is idle: taking CPU away from
//! pods never makes a disk faster. What guests of a hypervisor use is in user and nice already.

use super::{Metric, Resource, Throttle, as_it_is};
use crate::qos::collect::{Collector, Found, Look, Machine, counters, elapsed, lines, moved};
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
        reclaimable: None,
        throttle: Some(QUOTA),
        percent: false,
        suspicious_below: Some(Level::whole(100)),
        collect: Some(Collector { file: "proc/stat", read: usage }),
        of_pods: None,
    };
    let utilization = Metric {
        name: "cpu_total_utilization",
        scale: share,
        percent: true,
        suspicious_below: None,
        collect: Some(Collector { file: "proc/stat", read: utilization }),
        ..usage.clone()
    };
    let cores = |machine: &Machine, now: Look<'_>, _: Option<Look<'_>>| Found::only(cores(machine, now.text));
    let numbers =
        Metric::watched("cpu_core_numbers", "cores", Some(Collector { file: "proc/stat", read: cores }));
    vec![usage, utilization, numbers]
}

fn usage(machine: &Machine, now: Look<'_>, before: Option<Look<'_>>) -> Vec<Found> {
    let Some(before) = before else { return Vec::new() };
    let all = cores(machine, now.text).map(|cores| cores.times(1000, 1));
    Found::only(all.and_then(|all| busy(machine, all, now, before)))
}

fn utilization(machine: &Machine, now: Look<'_>, before: Option<Look<'_>>) -> Vec<Found> {
    let Some(before) = before else { return Vec::new() };
    Found::only(busy(machine, Level::whole(100), now, before))
}

/// How much of all was busy. How much time passed between the looks does not matter, since idle CPUs count as well; but some has to.
fn busy(machine: &Machine, all: Level, now: Look<'_>, before: Look<'_>) -> Option<Level> {
    elapsed(now.at, before.at)?;
    let (now, before) = (Times::read(now.text)?, Times::read(before.text)?);
    // One that went backwards makes the others doubtful. Waiting may go back by a little when a task moves to another CPU; it is
    // idle time then, which has grown as a whole.
    let grown = |of: fn(&Times) -> u64| moved(of(&now), of(&before));
    let mut busy: u64 =
        (0..Times::BUSY).try_fold(0, |sum: u64, i| sum.checked_add(moved(now.busy[i], before.busy[i])?))?;
    let mut idle = grown(|times| times.idle.saturating_add(times.waiting))?;
    if machine.count_iowait {
        busy = busy.checked_add(grown(|times| times.waiting)?)?;
        idle = grown(|times| times.idle)?;
    }
    let sum = busy.checked_add(idle).filter(|sum| *sum > 0)?;
    Some(all.times(busy.into(), sum.into()))
}

/// How long all CPUs did what so far, in ticks.
struct Times {
    /// user, nice, system, irq, softirq, steal
    busy: [u64; Self::BUSY],
    idle: u64,
    waiting: u64,
}

impl Times {
    const BUSY: usize = 6;

    fn read(text: &str) -> Option<Self> {
        let all = counters(lines(text).next()?.strip_prefix("cpu ")?, 8)?;
        let [user, nice, system, idle, waiting, irq, softirq, steal] = all.try_into().ok()?;
        Some(Self { busy: [user, nice, system, irq, softirq, steal], idle, waiting })
    }
}

/// How many CPUs there are: what is known of the machine, else how many have a line of their own.
fn cores(machine: &Machine, text: &str) -> Option<Level> {
    if machine.cores > 0 {
        return Some(Level::whole(machine.cores.into()));
    }
    let own = |line: &&str| {
        line.strip_prefix("cpu").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    // Another line after theirs shows that none of them was cut off.
    let mut rest = lines(text).skip(1).skip_while(own);
    let counted = lines(text).skip(1).take_while(own).count();
    rest.next()?;
    i64::try_from(counted).ok().filter(|counted| *counted > 0).map(Level::whole)
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
