//! Who is moved away from a node that turned out too full? A plain rule, to see what moving is worth.
//!
//! A node over its target in two measurements gives up one pod: the one whose use is nearest to what is too much, if it was
//! not moved within two hours. It goes to the node that stays lowest with the pod's 95th percentile, if that stays under its
//! target and the pod fits there by its request.

use crate::HOUR;
use crate::forecast::Now;

/// How long a pod that came or was moved stays.
const DWELL: usize = 2 * HOUR;

/// One move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub pod: usize,
    pub to: usize,
}

/// The next move, if one is due; `since` is when each pod came to where it is, `busy` which nodes have had their turn.
pub(crate) fn next(now: &Now<'_>, target: f64, since: &[usize], busy: &mut [bool]) -> Option<Move> {
    let before = now.step.checked_sub(2)?;
    let line = |node: usize| target * now.world.nodes[node] as f64;
    for node in 0..now.world.nodes.len() {
        let row = &now.books.row(node)[before..now.step];
        if busy[node] || row.iter().any(|load| f64::from(*load) <= line(node)) {
            continue;
        }
        busy[node] = true;
        let gap = now.measured(node) - line(node);
        let movable = now.books.on[node].iter().filter(|pod| now.step >= since[**pod] + DWELL);
        let off = |pod: &usize| (now.world.usage(*pod, now.step - 1) as f64 - gap).abs();
        let Some(pod) = movable.min_by(|a, b| off(a).total_cmp(&off(b)).then(a.cmp(b))).copied() else {
            continue;
        };
        let more = now.usage.p95(now.world, pod, now.step);
        let free = |to: &usize| {
            let request = now.world.pods[pod].request_milli;
            *to != node && !busy[*to] && now.books.requested[*to] + request <= now.world.nodes[*to]
        };
        let after = |to: &usize| (now.measured(*to) + more) / (now.world.nodes[*to] as f64).max(1.0);
        let best = (0..now.world.nodes.len()).filter(free).min_by(|a, b| after(a).total_cmp(&after(b)));
        if let Some(to) = best.filter(|to| now.measured(*to) + more <= line(*to)) {
            // One newcomer at a time: it has not been measured there.
            busy[to] = true;
            return Some(Move { pod, to });
        }
    }
    None
}
