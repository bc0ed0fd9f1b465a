//! `loadline what-if divide`: which clusters get how many replicas, and why these?

use super::divide_input::{self, Input};
use super::divide_result::{
    ClusterResult, ComponentResult, ConditionResult, DivideResult, FeasibleResult, FilteredResult,
};
use super::{divide_table, warn};
use crate::args::{Divide, EstimatorMode, ShortfallPolicy};
use crate::out::{self, Output};
use anyhow::Result;
use loadline_core::divide::{self, Answer, Condition, Given, Mode, Options, Shortfall};
use std::collections::BTreeMap;

/// Reads, divides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Divide) -> Result<()> {
    let input = divide_input::read(&args.input.files)?;
    let result = decide(input, args);
    warn(&result.warnings);
    match args.output {
        Output::Table | Output::Wide => {
            out::print(&divide_table::render(&result, args.output == Output::Wide));
            Ok(())
        }
        format => out::document(format, &result),
    }
}

fn decide(input: Input, args: &Divide) -> DivideResult {
    let Input { workload, members, binding, assumed, mut warnings } = input;
    let replaced: BTreeMap<String, i32> = args.estimates.iter().cloned().collect();
    for name in replaced.keys().filter(|name| !members.iter().any(|member| *member.name == ***name)) {
        warnings.push(format!("--estimate {name}: there is no such cluster"));
    }
    let options = Options {
        mode: match args.estimator_mode {
            EstimatorMode::Min => Mode::Min,
            EstimatorMode::AccurateFirst => Mode::AccurateFirst,
        },
        shortfall: match args.shortfall {
            ShortfallPolicy::Fail => Shortfall::Fail,
            ShortfallPolicy::Partial => Shortfall::Partial,
        },
        empty: args.empty_workload_propagation,
        ..Options::default()
    };
    let given = Given { replaced, assumed, options, ..Given::default() };
    let answer = divide::divide(&members, &binding, &given);
    told(workload, answer, warnings)
}

fn told(workload: String, answer: Answer, mut warnings: Vec<String>) -> DivideResult {
    let Condition { status, reason, message } = answer.condition();
    let feasible = answer
        .feasible
        .iter()
        .map(|cluster| FeasibleResult {
            name: cluster.name.to_string(),
            tier: cluster.tier,
            score: cluster.score,
            allocatable: cluster.allocatable,
            available: cluster.available,
            estimates: answer.estimates(cluster).map(|(name, count)| (name.to_string(), count)).collect(),
        })
        .collect();
    warnings.extend(answer.warnings);
    let component = |(name, replicas)| ComponentResult { name, replicas };
    DivideResult {
        api_version: "loadline.dev/v1alpha1",
        kind: "DivideResult",
        workload,
        clusters: answer
            .clusters
            .into_iter()
            .map(|target| ClusterResult {
                name: target.name.to_string(),
                replicas: target.replicas,
                components: target.components.into_iter().map(component).collect(),
            })
            .collect(),
        feasible,
        filtered: answer
            .filtered
            .into_iter()
            .map(|cluster| FilteredResult {
                name: cluster.name.to_string(),
                reasons: vec![cluster.reason.to_string()],
            })
            .collect(),
        condition: ConditionResult {
            kind: Condition::TYPE,
            status: if status { "True" } else { "False" },
            reason,
            message,
        },
        shortfall: answer.shortfall,
        affinity: answer.affinity,
        warnings,
    }
}
