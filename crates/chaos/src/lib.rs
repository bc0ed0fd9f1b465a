//! What does it take to break a promise? The whole system in simulated time, with faults by seed, and a checker that reads
//! nothing but what the API server saw.
//!
//! | question | module |
//! |---|---|
//! | what follows from a seed | [`plan`] |
//! | how does it run | [`world`] |
//! | what did the API server see | [`history`] |
//! | was a promise broken | [`mod@check`] |
//! | what is the least that breaks it | [`shrink`] |

pub mod check;
mod dice;
mod fleet;
mod floor;
mod front;
mod hands;
pub mod history;
mod host;
mod life;
mod panics;
pub mod plan;
pub mod shrink;
pub mod world;

use check::{Findings, Promise, Violation, check};
use history::Entry;
use plan::Plan;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// What came of one plan.
#[derive(Debug)]
pub struct Outcome {
    pub history: Vec<Entry>,
    pub violations: Vec<Violation>,
    /// How often each promise could have been broken.
    pub occasions: BTreeMap<Promise, u64>,
}

/// Runs the plans that are made of many seeds, on several threads, and hands over what came of each, in no order. Ends early when told so.
pub fn judge_all(
    seeds: std::ops::Range<u64>,
    threads: usize,
    plan_of: impl Fn(u64) -> Plan + Sync,
    tell: impl Fn(&Plan, Result<Outcome, world::Error>) -> bool + Sync,
) {
    let next = AtomicU64::new(seeds.start);
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let plan = plan_of(seed);
                    if seed >= seeds.end || !tell(&plan, judge(&plan)) {
                        next.store(seeds.end, Ordering::Relaxed);
                        return;
                    }
                }
            });
        }
    });
}

/// Runs a plan and looks whether everything promised was kept.
///
/// # Errors
/// When the run could not begin.
pub fn judge(plan: &Plan) -> Result<Outcome, world::Error> {
    let history = world::run(plan)?;
    let Findings { violations, occasions } = check(&history, plan.conditions());
    Ok(Outcome { history, violations, occasions })
}
