//! Pressure: how much of the last ten seconds was lost waiting for CPU, memory or disks, as `/proc/pressure` says, in percent.
//!
//! What acting on a pod would do to it nobody can tell, so that pods are acted on as is asked for without figures. For memory and
//! disks all tasks at once have to wait (`full`): nothing gets done. For CPU that cannot be, and one that waits is enough (`some`).
//!
//! Tasks that their quota holds back count as waiting for CPU on many kernels. Slowing pods down can then raise the pressure it
//! answers, so a rule on `psi_cpu_some` is for keeping new pods away, or for evicting.

use super::Metric;
use crate::qos::collect::{Collector, Found, Look, Stall, stalled};

/// The metrics of pressure.
#[must_use]
pub fn all() -> Vec<Metric> {
    let metric = |name, file, read| Metric::watched(name, "%", Some(Collector { file, read }));
    vec![
        metric("psi_cpu_some", "proc/pressure/cpu", |_, now, _| lost(now, Stall::Some)),
        metric("psi_io_full", "proc/pressure/io", |_, now, _| lost(now, Stall::Full)),
        metric("psi_memory_full", "proc/pressure/memory", |_, now, _| lost(now, Stall::Full)),
    ]
}

fn lost(now: Look<'_>, who: Stall) -> Vec<Found> {
    Found::only(stalled(now.text, who).map(|stalled| stalled.avg10))
}
