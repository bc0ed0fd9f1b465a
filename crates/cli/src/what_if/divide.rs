//! `loadline what-if divide`: which clusters get how many replicas, and why these?

mod result;
mod table;

use super::{lines, warn};
use crate::args::{Divide, DivideMode, EstimatorMode, ShortfallPolicy};
use crate::out::{self, Detail};
use anyhow::Result;
use loadline_core::divide::{self, Estimator, Given, Mode, Opinion, Options, Shortfall};
use loadline_manifests::{DivideInput, Manifests};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Reads, divides and prints.
///
/// # Errors
/// Bad input.
pub fn run(args: &Divide) -> Result<()> {
    let manifests = Manifests::gather(&args.input.files, DivideInput::KINDS);
    let input = DivideInput::read(manifests)?;
    let answer = decide(input, args);
    warn(&answer.warnings);
    out::answer(&answer, args.output)
}

/// Who gets how many.
struct Answer {
    /// What was divided, such as `ResourceBinding shop/web-deployment`.
    workload: String,
    divided: divide::Answer,
    warnings: Vec<String>,
}

impl out::Answer for Answer {
    const KIND: &'static str = "DivideResult";

    fn table(&self, detail: Detail) -> String {
        table::render(self, detail)
    }

    fn document(&self) -> impl Serialize {
        result::of(self)
    }
}

fn decide(input: DivideInput, args: &Divide) -> Answer {
    let DivideInput { workload, members, binding, assumed, warnings } = input;
    let mut warnings = lines(&warnings);
    let replaced: BTreeMap<String, i32> = args.estimates.iter().cloned().collect();
    for name in replaced.keys().filter(|name| !members.iter().any(|member| *member.name == ***name)) {
        warnings.push(format!("--estimate {name}: there is no such cluster"));
    }
    let (assumed, options) = (Cow::Owned(assumed), options(args));
    // Where the least counts, what is given is one estimate among others; else it stands for all of them.
    let least = options.upstream || options.mode == Mode::Min;
    let opinions = replaced.iter().map(|(name, count)| (name.clone(), Opinion::Count(*count)));
    let told = [Estimator { name: "override".into(), opinions: opinions.collect() }];
    let given = if least && !replaced.is_empty() {
        Given { estimators: &told, assumed, options, ..Given::default() }
    } else {
        Given { replaced, assumed, options, ..Given::default() }
    };
    let divided = divide::divide(&members, &binding, &given);
    warnings.extend(divided.warnings.iter().cloned());
    Answer { workload, divided, warnings }
}

fn options(args: &Divide) -> Options {
    Options {
        mode: match args.estimator_mode {
            EstimatorMode::Min => Mode::Min,
            EstimatorMode::AccurateFirst => Mode::AccurateFirst,
        },
        shortfall: match args.shortfall {
            ShortfallPolicy::Fail => Shortfall::Fail,
            ShortfallPolicy::Partial => Shortfall::Partial,
        },
        empty: args.empty_workload_propagation,
        upstream: args.mode == DivideMode::Upstream,
        ..Options::default()
    }
}
