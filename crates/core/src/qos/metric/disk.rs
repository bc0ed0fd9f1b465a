//! Disks: what is read and written, and how long a disk has something to do, in `/proc/diskstats` between two looks.
//!
//! ```text
//! disk_read_kibps, disk_write_kibps = Δsectors × 512 / 1024 / Δt      KiB/s
//! disk_read_iops, disk_write_iops   = Δrequests / Δt                  1/s
//! disk_utilization                  = 100 × Δbusy ms / 1000 / Δt      percent, at most 100
//! ```
//!
//! 3 000 sectors read in 1.5 s are 1 000 KiB/s; 750 ms busy in 1.5 s are 50 %. A request that took longer than the time between the
//! looks is counted when it ends, so more than all of the time is all of it. One series for each whole disk, label `diskName`.

use super::Metric;
use crate::qos::collect::{Collector, Found, Look, Machine, Rates};
use crate::qos::level::Level;

/// What disks do is here.
pub const FILE: &str = "proc/diskstats";

/// The metrics of disks.
#[must_use]
pub fn all() -> Vec<Metric> {
    let metric = |name, unit, read| Metric::watched(name, unit, Some(Collector { file: FILE, read }));
    vec![
        metric("disk_read_iops", "1/s", |machine, now, before| rates(machine, now, before, 0, (1, 1))),
        metric("disk_read_kibps", "KiB/s", |machine, now, before| rates(machine, now, before, 2, (1, 2))),
        metric("disk_write_iops", "1/s", |machine, now, before| rates(machine, now, before, 4, (1, 1))),
        metric("disk_write_kibps", "KiB/s", |machine, now, before| rates(machine, now, before, 6, (1, 2))),
        Metric {
            // The name crane publishes it under.
            aliases: &["disk_read_utilization"],
            ..metric("disk_utilization", "%", busy)
        },
    ]
}

/// `254 0 vda 91658 10361 6550802 60606 21383 145633 15859904 55602 1 26112 117970 …`: the name is the third, and eleven fields
/// follow on every kernel.
const DISK: Rates = Rates { label: "diskName", split, fields: 11, place: 0, scale: (1, 1), most: None };

fn split(line: &str) -> Option<(&str, &str)> {
    fn after_number(text: &str) -> Option<&str> {
        Some(text.trim_start().split_once(' ')?.1.trim_start())
    }
    after_number(after_number(line)?)?.split_once(' ')
}

fn rates(
    machine: &Machine,
    now: Look<'_>,
    before: Option<Look<'_>>,
    place: usize,
    scale: (u32, u32),
) -> Vec<Found> {
    Rates { place, scale, ..DISK }.of(&machine.disks, now, before)
}

fn busy(machine: &Machine, now: Look<'_>, before: Option<Look<'_>>) -> Vec<Found> {
    let most = Some(Level::whole(100));
    Rates { place: 9, scale: (1, 10), most, ..DISK }.of(&machine.disks, now, before)
}
