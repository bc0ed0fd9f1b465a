//! What does it take to break a promise? The whole system in simulated time, with faults by seed, and a checker that reads
//! nothing but what the API server saw.
//!
//! | question | module |
//! |---|---|
//! | what follows from a seed | [`plan`] |
//! | how does it run | [`world`] |
//! | what did the API server see | [`history`] |
//! | was a promise broken | [`check`] |
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
pub mod plan;
pub mod shrink;
pub mod world;

use check::{Violation, check};
use history::Entry;
use plan::Plan;

/// What came of one plan.
#[derive(Debug)]
pub struct Outcome {
    pub history: Vec<Entry>,
    pub violations: Vec<Violation>,
}

/// Runs a plan and looks whether everything promised was kept.
///
/// # Errors
/// When the run could not begin.
pub fn judge(plan: &Plan) -> Result<Outcome, world::Error> {
    let history = world::run(plan)?;
    let violations = check(&history, plan.conditions());
    Ok(Outcome { history, violations })
}
