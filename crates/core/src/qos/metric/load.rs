//! Load: how many tasks run or wait, on average over one, five and fifteen minutes, as `/proc/loadavg` says. What acting on a pod
//! would do to it nobody can tell.

use super::Metric;
use crate::qos::collect::{Collector, Found, Look, decimal, lines};

/// The metrics of load.
#[must_use]
pub fn all() -> Vec<Metric> {
    let metric = |name, read| Metric::watched(name, "load", Some(Collector { file: "proc/loadavg", read }));
    vec![
        metric("cpu_load_1_min", |_, now, _| average(now, 0)),
        metric("cpu_load_5_min", |_, now, _| average(now, 1)),
        metric("cpu_load_15_min", |_, now, _| average(now, 2)),
    ]
}

/// `5.21 3.49 1.70 9/130 21069`.
fn average(now: Look<'_>, place: usize) -> Vec<Found> {
    let line = lines(now.text).next().unwrap_or_default();
    let whole = line.split(' ').count() == 5;
    Found::only(line.split(' ').nth(place).filter(|_| whole).and_then(decimal))
}
