//! What is the least that breaks a promise? The plan with as much as possible left out.

use crate::check::Promise;
use crate::judge;
use crate::plan::Plan;

/// Runs that may be spent on it.
const RUNS: usize = 120;

/// A plan that is no larger and still breaks the same promise.
#[must_use]
pub fn shrink(plan: &Plan, promise: Promise) -> Plan {
    let mut runs = 0;
    let mut breaks = |plan: &Plan| {
        runs += 1;
        runs <= RUNS
            && judge(plan).is_ok_and(|outcome| outcome.violations.iter().any(|one| one.promise == promise))
    };
    let mut least = plan.clone();
    without(&mut least, |plan| &mut plan.troubles, &mut breaks);
    without(&mut least, |plan| &mut plan.pods, &mut breaks);
    without(&mut least, |plan| &mut plan.fleet.bindings, &mut breaks);
    without(&mut least, |plan| &mut plan.fleet.placements, &mut breaks);
    least
}

/// Leaves out halves, quarters and so on, and then one by one.
fn without<T: Clone>(
    least: &mut Plan,
    part: fn(&mut Plan) -> &mut Vec<T>,
    breaks: &mut impl FnMut(&Plan) -> bool,
) {
    let mut size = part(least).len();
    while size > 0 {
        let mut at = 0;
        while at < part(least).len() {
            let mut smaller = least.clone();
            let list = part(&mut smaller);
            let to = (at + size).min(list.len());
            list.drain(at..to);
            if breaks(&smaller) {
                *least = smaller;
            } else {
                at = to;
            }
        }
        size /= 2;
    }
}
