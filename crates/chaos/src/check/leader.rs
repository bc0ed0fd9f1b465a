//! Did who wrote lead?

use super::{Findings, Promise};
use crate::history::{Entry, SPIN};
use std::collections::BTreeMap;

/// Who of which components are elected by which lease.
const LEASES: [(&str, &str); 3] = [
    ("scheduler/", "loadline-scheduler"),
    ("placement/", "loadline-placement"),
    ("binding/", "loadline-binding"),
];

pub(super) fn leads(history: &[Entry], found: &mut Findings) {
    let mut holders: BTreeMap<&str, &str> = BTreeMap::new();
    for entry in history {
        if entry.is_of("leases") {
            let holder = entry.after["spec"]["holderIdentity"].as_str().unwrap_or_default();
            holders.insert(entry.name(), holder);
            continue;
        }
        let Some((_, lease)) = LEASES.iter().find(|(prefix, _)| entry.who.starts_with(prefix)) else {
            continue;
        };
        // What happened is told by whoever saw it.
        if entry.is_of("events") || entry.verb == SPIN {
            continue;
        }
        let holder = holders.get(lease).copied().unwrap_or_default();
        found.occasion(Promise::Leader);
        if holder != entry.identity {
            let what = format!("{} wrote {} while {holder:?} held {lease}", entry.identity, entry.path);
            found.broken(Promise::Leader, what, vec![entry.path.clone(), format!("/leases/{lease}")]);
        }
    }
}
