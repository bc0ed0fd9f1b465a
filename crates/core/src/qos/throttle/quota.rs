//! CPU quotas: one step down, one step up.
//!
//! ```text
//! base    = usage without a quota, else the smaller of the two, in millicores
//! target  = base × (1 − step/100), not below the floor
//! floor   = the largest of: 1 ms per period and 10 millicores (the kernel takes no less), the request, and the
//!           smallest share (min/100) of the limit, or of the elastic limit where there is no other
//! release = usage − target
//! ```
//!
//! A step starts at the usage where that is below the quota: lowering air would touch many pods and free nothing. And it
//! never raises, and never happens where it frees nothing.

use super::{Lowered, Raised, Room, Step};
use crate::qos::level::Level;
use crate::qos::pod::{Container, CpuQuota, Node, Pod};

/// The kernel's least quota, in microseconds.
const LEAST_US: i64 = 1_000;
/// The least anybody is left with.
const LEAST: Level = Level::whole(10);
/// A quota binds when at least this share of it, in percent, is used: more would be used if there was more.
const BINDS: i128 = 95;

/// One step down, if there is anything to take away.
#[must_use]
pub fn down(_: &Pod, container: &Container, step: Step) -> Option<Lowered> {
    let usage = container.usage?;
    if step.percent <= 0 || container.period_us <= 0 || container.quota == CpuQuota::Unknown {
        return None;
    }
    let quota = container.quota.level(container.period_us);
    let base = quota.map_or(usage, |quota| quota.min(usage));
    let target = base.times(i128::from(100 - step.percent.min(100)), 100).max(floor(container, step));
    if target >= quota.unwrap_or(usage) || target >= usage {
        return None;
    }
    Some(Lowered { quota_us: whole_us(target, container.period_us), release: usage - target })
}

/// What a container keeps in any case, in millicores.
fn floor(container: &Container, step: Step) -> Level {
    let kernel = Level::whole(LEAST_US).times(1000, container.period_us.into());
    let share = |of: Level| of.times(step.least_percent.clamp(0, 100).into(), 100);
    let specified = container.limit.or(container.elastic).map(share);
    kernel.max(LEAST).max(container.request.unwrap_or_default()).max(specified.unwrap_or_default())
}

/// `millicores × period / 1000`, down to a whole microsecond; a millionth of one is forgiven.
fn whole_us(target: Level, period_us: i64) -> i64 {
    let exact = target.times(period_us.into(), 1000) + Level::CLOSED;
    i64::try_from(exact.nano() / Level::whole(1).nano()).unwrap_or(i64::MAX)
}

/// One step up: `quota × (1 + step/100)`, not above what the container had, and for one that would use more at once not
/// further than there is room. Without a step it all comes back at once. What it had counts, not what its limit would make of it: a kubelet
/// that enforces no quotas (`cpuCFSQuota: false`) leaves a container with a limit without one.
#[must_use]
pub fn up(node: &Node, container: &Container, step: Step, room: Room) -> Option<Raised> {
    let period = container.period_us;
    let quota = container.quota.level(period)?;
    let most = match room.original {
        CpuQuota::Unknown => container.limit.or(container.elastic),
        original => original.level(period),
    };
    let usage = container.usage;
    if step.percent <= 0 || room.at_once {
        return Some(Raised {
            quota: most.map_or(CpuQuota::Unlimited, |most| back(most, room.original, period)),
            added: Level::ZERO,
            back: true,
        });
    }
    let mut target = quota.times(i128::from(step.percent) + 100, 100);
    target = most.map_or(target, |most| target.min(most));
    if let (Some(left), Some(usage)) = (room.left, usage) {
        // A container its quota does not bind will not use more for having more.
        if usage.times(100, 1) >= quota.times(BINDS, 1) {
            target = target.min(usage + left);
        }
    }
    let added = (target - usage.or(room.left.map(|_| Level::ZERO)).unwrap_or(target)).at_least_zero();
    let all = most.is_none_or(|most| target >= most);
    let unlimited = most.is_none() && node.cpu.is_some_and(|all| target >= all);
    if unlimited {
        return Some(Raised { quota: CpuQuota::Unlimited, added, back: true });
    }
    let back_again = most.is_some() && all;
    let new =
        if back_again { back(target, room.original, period) } else { CpuQuota::Us(whole_us(target, period)) };
    // Nothing changes, or it would be a step down: it waits.
    (new.us() > container.quota.us())
        .then_some(Raised { quota: new, added, back: back_again })
        .or(back_again.then_some(Raised { quota: container.quota, added: Level::ZERO, back: true }))
}

/// The quota for what it had at most: to the microsecond what was written down.
fn back(most: Level, original: CpuQuota, period_us: i64) -> CpuQuota {
    let us = whole_us(most, period_us);
    match original {
        CpuQuota::Us(was) => CpuQuota::Us(us.min(was)),
        _ => CpuQuota::Us(us),
    }
}
