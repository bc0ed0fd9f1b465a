//! `loadline policy`: what a load policy means, or what is wrong with it.

mod result;
mod table;

use crate::args::PolicyCheck;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_core::load::policy::Rules;
use loadline_manifests::{Kind, Manifests, PolicyInput, Problem};
use serde::Serialize;

/// Checks a policy and prints what follows from it.
///
/// # Errors
/// Bad input.
pub fn check(args: &PolicyCheck) -> Result<()> {
    let mut manifests = Manifests::read(std::slice::from_ref(&args.file), PolicyInput::KINDS);
    manifests.require(Kind::LOAD_POLICY, format!("expected a {}, found none", Kind::LOAD_POLICY.name));
    let PolicyInput { rules, warnings } = PolicyInput::read(manifests)?;
    let warnings = warnings.into_iter().map(told).collect();
    out::answer(&Answer { rules, warnings }, args.output)
}

/// There is one file, and the path says which document is meant.
fn told(warning: Problem) -> String {
    Problem { location: None, ..warning }.to_string()
}

/// A policy that can be used.
struct Answer {
    rules: Rules,
    warnings: Vec<String>,
}

impl out::Answer for Answer {
    const KIND: &'static str = "PolicyCheck";

    fn table(&self, _: Detail) -> String {
        table::render(self)
    }

    fn document(&self) -> impl Serialize {
        result::of(self)
    }
}
