//! What is wrong with a policy or with settings? Everything at once, with paths.

use super::{Derivable, Figure, Policy, Problem};
use crate::load::ratio::Ratio;
use crate::load::settings::{Mode, Settings};
use crate::load::{Both, Metered};
use crate::select::label::check_key;
use jiff::SignedDuration;
use std::collections::BTreeSet;
use std::sync::Arc;

/// More than any sensible weight, and few enough digits for exact sums.
const LARGEST_WEIGHT: f64 = 1e6;

/// What crane takes and we refuse, then what is merely worth a word.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) refused: Vec<Problem>,
    pub(super) warned: Vec<Problem>,
}

pub(super) fn policy(policy: &Policy) -> Findings {
    let mut found = Findings::default();
    names(&mut found, "syncPolicy", policy.sync.iter().map(|s| &s.name));
    for (i, sync) in policy.sync.iter().enumerate() {
        found.positive(format!("spec.syncPolicy[{i}].period"), sync.period);
    }
    names(&mut found, "predicate", policy.predicates.iter().map(|p| &p.name));
    for (i, predicate) in policy.predicates.iter().enumerate() {
        if let Some(message) = wrong_limit(predicate.limit) {
            found.refused.push(Problem::policy(format!("spec.predicate[{i}].maxLimitPecent"), message));
        }
        found.fetched(policy, &predicate.name, format!("spec.predicate[{i}].name"));
    }
    names(&mut found, "priority", policy.priorities.iter().map(|p| &p.name));
    for (i, priority) in policy.priorities.iter().enumerate() {
        let weight = priority.weight;
        if !(0.0..=LARGEST_WEIGHT).contains(&weight) {
            let message = format!("expected a weight from 0 to {LARGEST_WEIGHT}, not {weight}");
            found.refused.push(Problem::policy(format!("spec.priority[{i}].weight"), message));
        }
        found.fetched(policy, &priority.name, format!("spec.priority[{i}].name"));
    }
    if !policy.priorities.is_empty() && policy.priorities.iter().all(|p| p.weight == 0.0) {
        found.refused.push(Problem::policy(
            "spec.priority",
            "all weights are 0, expected at least one above 0: every node would score alike",
        ));
    }
    for (i, bucket) in policy.hot.iter().enumerate() {
        found.positive(format!("spec.hotValue[{i}].timeRange"), bucket.range);
        if bucket.count <= 0 {
            let message = format!("expected at least 1, not {}", bucket.count);
            found.refused.push(Problem::policy(format!("spec.hotValue[{i}].count"), message));
        }
    }
    found
}

fn names<'a>(found: &mut Findings, list: &str, names: impl Iterator<Item = &'a Arc<str>>) {
    let mut seen = BTreeSet::new();
    for (i, name) in names.enumerate() {
        let path = format!("spec.{list}[{i}].name");
        if let Err(problem) = check_key(name) {
            let message = format!("{name:?} cannot be the key of an annotation: {problem}");
            found.refused.push(Problem::policy(path, message));
        } else if !seen.insert(name) {
            let message = format!("{name} is listed twice, expected each metric once");
            found.refused.push(Problem::policy(path, message));
        }
    }
}

impl Findings {
    fn positive(&mut self, path: String, time: SignedDuration) {
        if !time.is_positive() {
            self.refused.push(Problem::policy(path, format!("expected more than 0s, not {time:#}")));
        }
    }

    /// A metric that nobody fetches would never limit and never count.
    fn fetched(&mut self, policy: &Policy, name: &str, path: String) {
        if check_key(name).is_err() || policy.sync.iter().any(|s| &*s.name == name) {
            return;
        }
        if Derivable::of(name).is_some() {
            let message = format!("no syncPolicy entry fetches {name}: it comes from the metrics API alone");
            self.warned.push(Problem::policy(path, message));
        } else {
            let message = format!(
                "no syncPolicy entry fetches {name}, expected one with that name: it would never be enforced"
            );
            self.refused.push(Problem::policy(path, message));
        }
    }
}

/// What is wrong with a limit, if something is.
fn wrong_limit(limit: f64) -> Option<String> {
    if (0.0..=1.0).contains(&limit) {
        return None;
    }
    let hint = if limit > 1.0 && limit <= 100.0 {
        // By way of the exact decimal: 65 / 100 reads 0.65 and not a nearby float.
        Ratio::from_f64(limit)
            .map(|r| format!(": did you mean {}?", Ratio::from_nano(r.nano() / 100)))
            .unwrap_or_default()
    } else {
        String::new()
    };
    Some(format!("{limit} is not a ratio 0..1{hint}"))
}

pub(super) fn settings(settings: &Settings, policy: &Policy) -> Findings {
    let mut found = Findings::default();
    let mut share = |path: String, value: Option<Ratio>, zero: bool| {
        let Some(value) = value else { return };
        let fine = value <= Ratio::ONE && if zero { value >= Ratio::ZERO } else { value > Ratio::ZERO };
        if !fine {
            let message = wrong_limit(value.to_f64())
                .unwrap_or_else(|| "expected more than 0: nothing would ever fit".to_owned());
            found.refused.push(Problem::settings(path, message));
        }
    };
    for resource in Metered::ALL {
        share(format!("spec.targets.{resource}"), settings.targets.get(resource), false);
        for (i, rule) in settings.nodes.iter().enumerate() {
            share(format!("spec.nodes[{i}].targets.{resource}"), rule.targets.get(resource), false);
        }
    }
    for (i, rule) in settings.nodes.iter().enumerate() {
        for (metric, limit) in &rule.thresholds {
            share(format!("spec.nodes[{i}].thresholds.{metric}"), Some(*limit), true);
        }
    }
    for (i, rule) in settings.nodes.iter().enumerate() {
        for metric in rule.thresholds.keys() {
            if !policy.predicates.iter().any(|p| *p.name == **metric) {
                found.warned.push(Problem::settings(
                    format!("spec.nodes[{i}].thresholds.{metric}"),
                    "no predicate of the policy has that name: the limit is never looked at",
                ));
            }
        }
    }
    if settings.settle.is_negative() {
        let message = format!("expected 0s or more, not {:#}", settings.settle);
        found.refused.push(Problem::settings("spec.settle", message));
    }
    if settings.mode == Mode::Upstream {
        if settings.time_zone.is_none() {
            found.warned.push(Problem::settings(
                "spec.timeZone",
                "stamps are read as UTC, but crane writes the local time of Asia/Shanghai unless TZ is set: name the zone",
            ));
        }
        if settings.targets != Both::default() {
            let message = "not looked at in upstream mode: crane knows no targets";
            found.warned.push(Problem::settings("spec.targets", message));
        }
        if !settings.nodes.is_empty() {
            let message = "not looked at in upstream mode: crane has one limit for all nodes";
            found.warned.push(Problem::settings("spec.nodes", message));
        }
    }
    found
}

/// A share given as text, for one node: what is wrong with it, if it cannot be used.
pub(super) fn override_of(value: Option<Ratio>, zero: bool) -> Result<Figure, &'static str> {
    match value {
        Some(value) if value > Ratio::ZERO && value <= Ratio::ONE => Ok(Figure::Exact(value)),
        Some(Ratio::ZERO) if zero => Ok(Figure::Exact(Ratio::ZERO)),
        _ if zero => Err("expected a ratio 0..1"),
        _ => Err("expected a ratio above 0, up to 1"),
    }
}
