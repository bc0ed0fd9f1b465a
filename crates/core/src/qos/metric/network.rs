//! Networks: what is received, sent and lost, in `/proc/1/net/dev` between two looks. `/proc/net` is that of whoever reads it: in a container,
//! the interface of its own pod.
//!
//! ```text
//! network_receive_kibps, network_sent_kibps = Δbytes × 8 / 1000 / Δt       kilobits per second, whatever the name says
//! network_receive_pckps, network_sent_pckps = Δpackets / Δt                packets per second
//! network_drop_in, network_drop_out         = Δdropped packets / Δt        packets per second
//! ```
//!
//! 1 500 000 bytes in 1.5 s are 8 000 kbit/s. One series for each interface, label `NetInterface`.

use super::Metric;
use crate::qos::collect::{Collector, Found, Look, Machine, Rates};

/// What the interfaces of the node do is here: those of its first process, whoever asks.
pub const FILE: &str = "proc/1/net/dev";

const LOOPBACK: &str = "lo";

/// The metrics of networks.
#[must_use]
pub fn all() -> Vec<Metric> {
    let metric = |name, unit, read| Metric::watched(name, unit, Some(Collector { file: FILE, read }));
    vec![
        metric("network_receive_kibps", "kbit/s", |machine, now, before| {
            rates(machine, now, before, 0, BITS)
        }),
        metric("network_receive_pckps", "packets/s", |machine, now, before| {
            rates(machine, now, before, 1, ONE)
        }),
        metric("network_drop_in", "packets/s", |machine, now, before| rates(machine, now, before, 3, ONE)),
        metric("network_sent_kibps", "kbit/s", |machine, now, before| rates(machine, now, before, 8, BITS)),
        metric("network_sent_pckps", "packets/s", |machine, now, before| rates(machine, now, before, 9, ONE)),
        metric("network_drop_out", "packets/s", |machine, now, before| rates(machine, now, before, 11, ONE)),
    ]
}

const ONE: (u32, u32) = (1, 1);
/// Bytes to kilobits.
const BITS: (u32, u32) = (8, 1000);

/// `eth0: 238023975 13799 0 0 0 0 0 0 1012923 9557 0 0 0 0 0 0`: eight fields received, eight sent. Older kernels leave no space after
/// the colon, and the two lines of headings have none.
fn split(line: &str) -> Option<(&str, &str)> {
    line.rsplit_once(':').map(|(name, rest)| (name.trim_start(), rest))
}

fn rates(
    machine: &Machine,
    now: Look<'_>,
    before: Option<Look<'_>>,
    place: usize,
    scale: (u32, u32),
) -> Vec<Found> {
    let rates = Rates { label: "NetInterface", split, fields: 16, place, scale, most: None };
    if machine.interfaces.is_empty() {
        return rates.all(|name| name != LOOPBACK, now, before);
    }
    rates.of(&machine.interfaces, now, before)
}
