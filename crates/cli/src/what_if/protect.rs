//! `loadline what-if protect`: whom would a node with too much load throttle or evict, and what would it give back?

use super::{protect_input, protect_result, protect_table, warn};
use crate::args::Protect;
use crate::out::{self, Output, Refused};
use anyhow::Result;
use loadline_core::qos::plan;

/// Reads, plans and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Protect) -> Result<()> {
    let input = protect_input::read(&args.input.files, args.input.now).map_err(Refused::new)?;
    let plan = plan(&input.policy, &input.snapshot);
    let warnings: Vec<String> = input.warnings.iter().chain(&plan.warnings).cloned().collect();
    warn(&warnings);
    match args.output {
        Output::Table | Output::Wide => {
            out::print(&protect_table::render(&input, &plan, args.output == Output::Wide));
            Ok(())
        }
        format => out::document(format, &protect_result::result(&input.snapshot, &plan, warnings)),
    }
}
