//! `loadline what-if protect`: whom would a node with too much load throttle or evict, and what would it give back?

mod result;
mod table;

use super::{lines, warn};
use crate::args::Protect;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_core::qos::{Plan, plan};
use loadline_manifests::{Manifests, ProtectInput};
use serde::Serialize;

/// Reads, plans and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Protect) -> Result<()> {
    let manifests = Manifests::read(&args.input.files, ProtectInput::KINDS);
    let input = ProtectInput::read(manifests, args.input.now)?;
    let answer = decide(input);
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// What the node would do.
struct Answer {
    input: ProtectInput,
    plan: Plan,
    warnings: Vec<String>,
}

impl out::Answer for Answer {
    const KIND: &'static str = "ProtectResult";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        result::of(self)
    }
}

fn decide(input: ProtectInput) -> Answer {
    let plan = plan(&input.policy, &input.snapshot);
    let mut warnings = lines(&input.warnings);
    warnings.extend(plan.warnings.iter().cloned());
    Answer { input, plan, warnings }
}
