//! `loadline what-if protect`: whom would a node with too much load throttle or evict, and what would it give back?

mod result;
mod table;

use super::{lines, live, warn};
use crate::args::Protect;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_core::qos::policy::Policy;
use loadline_core::qos::{NodeSnapshot, Plan, plan};
use loadline_manifests::{Manifests, ProtectInput};
use loadline_services::agent::explain::Look;
use serde::Serialize;

/// Reads, plans and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Protect) -> Result<()> {
    let mut manifests = Manifests::default();
    if !args.files.is_empty() {
        manifests = Manifests::gather(&args.files, ProtectInput::KINDS);
    }
    if let (true, Some(node), true) = (args.live, &args.node, manifests.check().is_ok()) {
        manifests.supplement(live::node(args.kubeconfig.as_deref(), args.context.clone(), node)?);
    }
    let input = ProtectInput::read(manifests, args.node.as_deref(), args.now)?;
    let answer = decide(input);
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// What the node would do.
pub struct Answer {
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

impl Answer {
    /// What looks wrong: rules in error, what cannot be done as asked.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What an agent would do that knows this.
    pub fn of(look: &Look) -> Self {
        let policy = Policy::clone(&look.policy);
        decide(ProtectInput { policy, snapshot: NodeSnapshot::clone(&look.snapshot), warnings: Vec::new() })
    }
}

fn decide(input: ProtectInput) -> Answer {
    let plan = plan(&input.policy, &input.snapshot);
    let mut warnings = lines(&input.warnings);
    warnings.extend(plan.warnings.iter().cloned());
    Answer { input, plan, warnings }
}
