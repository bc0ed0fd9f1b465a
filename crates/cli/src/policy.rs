//! `loadline policy`: what a load policy means, what is wrong with it, and whether the lines of agents agree with it.

mod result;
mod table;

use crate::args::PolicyCheck;
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_core::load::policy::Rules;
use loadline_core::qos::agree::{About, Disagreement, disagreements};
use loadline_core::view::NodeFacts;
use loadline_manifests::{CheckInput, Kind, Manifests, Problem};
use serde::Serialize;
use std::process::ExitCode;

/// The documents contradict each other, as documented.
const DISAGREE: u8 = 1;

/// Checks a policy and prints what follows from it.
///
/// # Errors
/// Bad input.
pub fn check(args: &PolicyCheck) -> Result<ExitCode> {
    let mut manifests = Manifests::gather(&args.files, CheckInput::KINDS);
    manifests.require(Kind::LOAD_POLICY, format!("expected a {}, found none", Kind::LOAD_POLICY.name));
    let CheckInput { rules, policy, nodes, warnings } = CheckInput::read(manifests)?;
    // Of one file the path says which document is meant.
    let told = |warning: Problem| match args.files[..] {
        [_] => Problem { location: None, ..warning }.to_string(),
        _ => warning.to_string(),
    };
    let mut warnings: Vec<String> = warnings.into_iter().map(told).collect();
    warnings.extend(policy.warnings().iter().cloned());
    if !policy.is_empty() && nodes.is_empty() {
        warnings.push("no Node is given, so targets are not held against the lines of NodeQOS".to_owned());
    }
    if !policy.is_empty() {
        warnings.extend(nodes.iter().filter_map(silent));
    }
    let of = |node| disagreements(&rules, &policy, &About::from(node));
    let found = nodes.iter().flat_map(|node| of(node).into_iter().map(|one| (node.name.clone(), one)));
    let disagreements: Vec<(String, Disagreement)> = found.collect();
    let code = if disagreements.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(DISAGREE) };
    out::answer(&Answer { rules, warnings, disagreements }, args.output)?;
    Ok(code)
}

/// What to say of a node nothing can be said of.
fn silent(node: &NodeFacts) -> Option<String> {
    let has = About::from(node).allocatable;
    let is_silent = has.cpu.is_none() && has.memory.is_none();
    is_silent.then(|| {
        format!("Node {} does not say what it has for pods, so nothing is compared there", node.name)
    })
}

/// A policy that can be used.
struct Answer {
    rules: Rules,
    warnings: Vec<String>,
    /// By node.
    disagreements: Vec<(String, Disagreement)>,
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
