//! Did who wrote lead?

use super::{Findings, Promise};
use crate::history::{ENDED, Entry, PANIC, SPIN};
use std::collections::BTreeMap;

/// Who of which components are elected by which lease.
const LEASES: [(&str, &str); 3] = [
    ("scheduler/", "loadline-scheduler"),
    ("placement/", "loadline-placement"),
    ("binding/", "loadline-binding"),
];

pub(super) fn leads(history: &[Entry], found: &mut Findings) {
    // Who held which lease from when on.
    let mut holders: BTreeMap<&str, Vec<(u64, &str)>> = BTreeMap::new();
    for entry in history {
        if entry.is_of("leases") {
            let holder = entry.after["spec"]["holderIdentity"].as_str().unwrap_or_default();
            holders.entry(entry.name()).or_default().push((entry.at, holder));
            continue;
        }
        let Some((_, lease)) = LEASES.iter().find(|(prefix, _)| entry.who.starts_with(prefix)) else {
            continue;
        };
        // What happened is told by whoever saw it.
        if entry.is_of("events") || matches!(entry.verb, SPIN | ENDED | PANIC) {
            continue;
        }
        // Whoever led when it was sent led: on its way it is nobody's.
        let known = holders.get(lease).into_iter().flatten();
        let before = |(at, _): &&(u64, &str)| entry.sent == entry.at || *at <= entry.sent;
        let holder = known.rev().find(before).map(|(_, holder)| *holder).unwrap_or_default();
        found.occasion(Promise::Leader);
        if holder != entry.identity {
            let what = format!("{} wrote {} while {holder:?} held {lease}", entry.identity, entry.path);
            found.broken(Promise::Leader, what, vec![entry.path.clone(), format!("/leases/{lease}")]);
        }
    }
}
