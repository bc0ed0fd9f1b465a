//! `loadline what-if`: every engine, offline. Files in, an answer out; a cluster is only read, and only when asked to.
//!
//! Each command reads top to bottom: objects are read, an engine decides, and what it says is printed, as a table made of
//! the engine's own answer or as a document.

mod divide;
pub mod estimate;
mod live;
pub mod place;
pub mod protect;
mod rebalance;
mod schedule;

use crate::args::WhatIf;
use anyhow::Result;
use jiff::Timestamp;
use loadline_manifests::Problem;

/// At most so many warnings are told on the terminal.
const TOLD: usize = 20;

/// Answers a question.
///
/// # Errors
/// Bad input, as [`loadline_manifests::Problems`].
pub fn run(engine: &WhatIf) -> Result<()> {
    match engine {
        WhatIf::Schedule(args) => schedule::run(args),
        WhatIf::Estimate(args) => estimate::run(args),
        WhatIf::Divide(args) => divide::run(args),
        WhatIf::Place(args) => place::run(args),
        WhatIf::Protect(args) => protect::run(args),
        WhatIf::Rebalance(args) => rebalance::run(args),
    }
}

/// The time that is taken to be now.
fn now(given: Option<Timestamp>) -> Timestamp {
    given.unwrap_or_else(Timestamp::now)
}

/// Each as one line.
fn lines(warnings: &[Problem]) -> Vec<String> {
    warnings.iter().map(ToString::to_string).collect()
}

/// Tells what was odd, without drowning the answer.
pub fn warn(warnings: &[String]) {
    for warning in warnings.iter().take(TOLD) {
        eprintln!("warning: {warning}");
    }
    if warnings.len() > TOLD {
        eprintln!("warning: and {} more; -o json lists all", warnings.len() - TOLD);
    }
}
