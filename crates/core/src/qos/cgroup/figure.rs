//! What do the files of a group say? Texts to figures, and a quota to the text the kernel takes.
//!
//! | figure | version 1 | version 2 |
//! |---|---|---|
//! | CPU used so far | `cpuacct.usage`, ns | `usage_usec` in `cpu.stat` |
//! | quota, period | `cpu.cfs_quota_us` (−1: none), `cpu.cfs_period_us` | `cpu.max`: `<quota or max> <period>` |
//! | held back | `nr_periods`, `nr_throttled`, `throttled_time` (ns) in `cpu.stat` | the same with `throttled_usec` |
//! | working set | used − `total_inactive_file`, not below 0 | used − `inactive_file`, not below 0 |
//! | reclaimable | `total_inactive_file` | `inactive_file` |
//! | not reclaimable | `total_inactive_anon + total_active_anon + total_unevictable` | the same without `total_` |
//!
//! What a kernel could not have printed is no measurement.

use super::layout::Version;
use crate::qos::collect::{counter, elapsed, lines, moved, named};
use crate::qos::level::Level;
use crate::qos::pod::CpuQuota;
use std::collections::BTreeMap;
use std::time::Duration;

/// The least quota and period the kernel takes, in microseconds.
const LEAST_US: i64 = 1_000;
/// The longest period.
const LONGEST_US: i64 = 1_000_000;

/// How much CPU a group may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    pub quota: CpuQuota,
    /// In how many microseconds.
    pub period_us: i64,
}

/// How often its quota held a group back, since it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Throttling {
    /// Periods in which it wanted to run.
    pub periods: u64,
    /// And in how many of those it had used its quota up.
    pub throttled: u64,
    /// For how long its tasks waited for the next.
    pub time_ns: u64,
}

/// How long the tasks of a group ran, in nanoseconds.
#[must_use]
pub fn cpu_usage_ns(version: Version, text: &str) -> Option<u64> {
    match version {
        Version::V1 => only(text).and_then(counter),
        Version::V2 => named(text, "usage_usec")?.checked_mul(1000),
    }
}

/// What a group may take. With version 1 the period is in a file of its own.
#[must_use]
pub fn quota(version: Version, quota_text: &str, period_text: Option<&str>) -> Option<Quota> {
    let (quota, period) = match version {
        Version::V1 => (only(quota_text)?, only(period_text?)?),
        Version::V2 => only(quota_text)?.split_once(' ')?,
    };
    let quota = match (version, quota) {
        (Version::V1, "-1") | (Version::V2, "max") => CpuQuota::Unlimited,
        (_, quota) => CpuQuota::Us(us(quota).filter(|us| *us >= LEAST_US)?),
    };
    let period_us = us(period).filter(|us| (LEAST_US..=LONGEST_US).contains(us))?;
    Some(Quota { quota, period_us })
}

/// What to write so that a group gets a quota: with version 1 into the file of the quota alone. None for what the kernel would refuse,
/// and for a quota nobody knows.
#[must_use]
pub fn quota_text(version: Version, quota: CpuQuota, period_us: i64) -> Option<String> {
    if !(LEAST_US..=LONGEST_US).contains(&period_us) {
        return None;
    }
    let us = match quota {
        CpuQuota::Unknown => return None,
        CpuQuota::Us(us) if us < LEAST_US => return None,
        CpuQuota::Us(us) => Some(us.to_string()),
        CpuQuota::Unlimited => None,
    };
    // With its end, so that it reads as it was written where a file is only a file.
    Some(match version {
        Version::V1 => format!("{}\n", us.as_deref().unwrap_or("-1")),
        Version::V2 => format!("{} {period_us}\n", us.as_deref().unwrap_or("max")),
    })
}

/// How often a group was held back. None where the controller is not on, which then says nothing of it.
#[must_use]
pub fn throttled(version: Version, text: &str) -> Option<Throttling> {
    let time_ns = match version {
        Version::V1 => named(text, "throttled_time")?,
        Version::V2 => named(text, "throttled_usec")?.checked_mul(1000)?,
    };
    Some(Throttling { periods: named(text, "nr_periods")?, throttled: named(text, "nr_throttled")?, time_ns })
}

/// For how long its quota held a group back between two looks, from how long it had at both, in nanoseconds. In microseconds a second:
///
/// ```text
/// rate = Δthrottled / 1000 / Δt
/// ```
///
/// 1.5 s in 2 s are 750 000. Each CPU waits by itself, so it may be more than a second in a second. None if the counter went backwards or no
/// time passed.
#[must_use]
pub fn throttled_rate(before: (u64, Duration), now: (u64, Duration)) -> Option<Level> {
    let passed = i128::try_from(elapsed(now.1, before.1)?.as_nanos()).ok()?;
    Some(Level::whole(1_000_000).times(moved(now.0, before.0)?.into(), passed))
}

/// Memory a group uses without page cache that was not used of late, in bytes.
#[must_use]
pub fn working_set(version: Version, used: &str, stat: &str) -> Option<u64> {
    let used = only(used).and_then(counter)?;
    Some(used.saturating_sub(line_of(version, stat, "inactive_file")?))
}

/// Memory a group uses that nobody can take back, in bytes: what its end frees for certain.
#[must_use]
pub fn unreclaimable(version: Version, stat: &str) -> Option<u64> {
    ["inactive_anon", "active_anon", "unevictable"]
        .iter()
        .try_fold(0_u64, |sum, name| sum.checked_add(line_of(version, stat, name)?))
}

/// Page cache a group has not used of late, in bytes: what the kernel takes back first.
#[must_use]
pub fn reclaimable(version: Version, stat: &str) -> Option<u64> {
    line_of(version, stat, "inactive_file")
}

/// A line of `memory.stat` that counts the groups below as well.
fn line_of(version: Version, stat: &str, name: &str) -> Option<u64> {
    match version {
        Version::V1 => named(stat, &format!("total_{name}")),
        Version::V2 => named(stat, name),
    }
}

/// The shares of a group: what it gets of CPU that is short, beside the others.
#[must_use]
pub fn shares(version: Version, text: &str) -> Option<u64> {
    let number = only(text).and_then(counter)?;
    match version {
        Version::V1 => (2..=262_144).contains(&number).then_some(number),
        Version::V2 => (1..=10_000).contains(&number).then(|| shares_of(number)),
    }
}

/// `weight = 1 + (shares − 2) × 9999 / 262142`, as runtimes had it for years: 1024 shares are a weight of 39. Since 2025 some take a curve
/// that gives 100 for the same.
#[must_use]
pub fn weight_of(shares: u64) -> u64 {
    1 + (shares.clamp(2, 262_144) - 2) * 9_999 / 262_142
}

/// The fewest shares of that weight: 39 are 999 shares, which have it as 1024 do.
#[must_use]
pub fn shares_of(weight: u64) -> u64 {
    2 + ((weight.clamp(1, 10_000) - 1) * 262_142).div_ceil(9_999)
}

/// How long a process waited for a CPU, in nanoseconds: the second number of `/proc/<pid>/schedstat`.
#[must_use]
pub fn run_queue_wait_ns(text: &str) -> Option<u64> {
    let mut numbers = only(text)?.split(' ').map(counter);
    let (_, waited, _) = (numbers.next()??, numbers.next()??, numbers.next()??);
    Some(waited)
}

/// How long processes waited for a CPU between two looks, from how long each had at both, in nanoseconds, by its id. In microseconds a
/// second:
///
/// ```text
/// rate = 10⁶ × Σ Δwaited / Δt
/// ```
///
/// 30 ms and 10 ms in 2 s are 20 000. Who was not there at both looks does not count, nor does one that waited less than before: it is
/// another one with the same id. None if no time passed.
#[must_use]
pub fn wait_rate(
    before: (&BTreeMap<u32, u64>, Duration),
    now: (&BTreeMap<u32, u64>, Duration),
) -> Option<Level> {
    let passed = i128::try_from(elapsed(now.1, before.1)?.as_nanos()).ok()?;
    let more = |(pid, waited): (&u32, &u64)| moved(*waited, *before.0.get(pid)?).map(i128::from);
    let waited: i128 = now.0.iter().filter_map(more).sum();
    Some(Level::whole(1_000_000).times(waited, passed))
}

/// How late a CPU may count: two ticks of the slowest clock.
const LATE: Duration = Duration::from_millis(20);

/// The rate of a CPU counter in nanoseconds between two moments, in millicores:
///
/// ```text
/// rate = 1000 × Δcounter / Δt        at most 1000 × cores
/// ```
///
/// 3 s of CPU in 2 s are 1 500 millicores. None if the counter went backwards, no time passed, or more was counted than so many cores
/// can do in that time and 20 ms more, as late as they may count. Of a machine with 0 cores nobody knows how much that is.
#[must_use]
pub fn cpu_rate(cores: u32, before: (u64, Duration), now: (u64, Duration)) -> Option<Level> {
    let passed = elapsed(now.1, before.1)?;
    let counted = i128::from(moved(now.0, before.0)?);
    let nanos = |time: Duration| i128::try_from(time.as_nanos()).ok();
    let rate = Level::whole(1000).times(counted, nanos(passed)?);
    if cores == 0 {
        return Some(rate);
    }
    let most = i128::from(cores).checked_mul(nanos(passed.checked_add(LATE)?)?)?;
    (counted <= most).then(|| rate.min(Level::whole(i64::from(cores) * 1000)))
}

/// The only line of a text.
fn only(text: &str) -> Option<&str> {
    let mut all = lines(text);
    let line = all.next()?;
    (all.next().is_none() && text.len() == line.len() + 1).then_some(line)
}

fn us(text: &str) -> Option<i64> {
    i64::try_from(counter(text)?).ok()
}
