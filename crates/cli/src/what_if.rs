//! `loadline what-if`: every engine, offline. Files in, an answer out; a cluster is only read, and only when asked to.

mod divide;
mod divide_input;
mod divide_result;
mod divide_table;
mod estimate;
mod estimate_input;
mod estimate_result;
mod estimate_table;
mod live;
mod place;
mod place_input;
mod place_result;
mod place_table;
mod protect;
mod protect_input;
mod protect_result;
mod protect_table;
mod schedule;
mod schedule_result;
mod schedule_table;
mod schema;
mod world;

use crate::args::WhatIf;
use anyhow::Result;
use jiff::Timestamp;

/// At most so many warnings are told on the terminal.
const TOLD: usize = 20;

/// Answers a question.
///
/// # Errors
/// Bad input, as [`crate::out::Refused`].
pub fn run(engine: &WhatIf) -> Result<()> {
    match engine {
        WhatIf::Schedule(args) => schedule::run(args),
        WhatIf::Estimate(args) => estimate::run(args),
        WhatIf::Divide(args) => divide::run(args),
        WhatIf::Place(args) => place::run(args),
        WhatIf::Protect(args) => protect::run(args),
    }
}

/// The time that is taken to be now.
fn now(given: Option<Timestamp>) -> Timestamp {
    given.unwrap_or_else(Timestamp::now)
}

/// Tells what was odd, without drowning the answer.
fn warn(warnings: &[String]) {
    for warning in warnings.iter().take(TOLD) {
        eprintln!("warning: {warning}");
    }
    if warnings.len() > TOLD {
        eprintln!("warning: and {} more; -o json lists all", warnings.len() - TOLD);
    }
}
