//! `loadline what-if rebalance`: which pods should leave which nodes, and where would they go?

mod table;

use super::{lines, now, warn};
use crate::args::Rebalance;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_api::rebalance::{PlanResult, of};
use loadline_core::rebalance::{Input, Plan, plan};
use loadline_manifests::{Manifests, RebalanceInput, Steady};
use serde::Serialize;

/// Reads, plans and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Rebalance) -> Result<()> {
    let manifests = Manifests::gather(&args.input.files, RebalanceInput::KINDS);
    let steady = if args.steady { Steady::Assumed } else { Steady::Unknown };
    let input = RebalanceInput::read(manifests, now(args.input.now), steady)?;
    let answer = decide(input);
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// What would be moved.
struct Answer {
    plan: Plan,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct RebalanceResult<'a> {
    #[serde(flatten)]
    plan: PlanResult<'a>,
    warnings: &'a [String],
}

impl out::Answer for Answer {
    const KIND: &'static str = "RebalanceResult";

    fn table(&self, detail: Detail) -> String {
        table::render(&self.plan, detail)
    }

    fn document(&self) -> impl Serialize {
        RebalanceResult { plan: of(&self.plan), warnings: &self.warnings }
    }
}

fn decide(input: RebalanceInput) -> Answer {
    let RebalanceInput { mut cluster, settings, recent, moves, off, warnings } = input;
    let given = Input { settings: &settings, recent: &recent, moves: &moves, off: &off, soon: None };
    Answer { plan: plan(&mut cluster, &given), warnings: lines(&warnings) }
}
