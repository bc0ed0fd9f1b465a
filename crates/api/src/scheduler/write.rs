//! A configuration as a document, nothing left out: what is in force, for people and for the next start.

use super::{CONFIGURATION, Configuration, SchedulerProfile, WEIGHTS, WhenOverloaded, parts};
use crate::duration::write as duration;
use loadline_core::load::policy::Policy;
use loadline_core::load::ratio::Ratio;
use loadline_core::load::settings::{Line, Missing, Mode, Scored, Settings};
use loadline_core::load::{Both, Metered};
use loadline_core::select::Selector;
use loadline_core::select::label::Op;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use std::collections::BTreeMap;

/// The document, its fields in the order in which one would write them.
#[must_use]
pub fn write(configuration: &Configuration) -> impl Serialize {
    Document {
        api_version: CONFIGURATION.0,
        kind: CONFIGURATION.1,
        profiles: configuration.profiles.iter().map(profile).collect(),
        parallel_writes: configuration.parallel_writes,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Document<'a> {
    api_version: &'a str,
    kind: &'a str,
    profiles: Vec<ProfileDocument<'a>>,
    parallel_writes: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProfileDocument<'a> {
    scheduler_name: &'a str,
    load_aware: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<PolicyDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    settings: Option<SettingsDocument<'a>>,
    weights: Pairs<i64>,
    when_overloaded: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    least_bad_after: Option<String>,
}

/// Names and values in the order given.
struct Pairs<T>(Vec<(String, T)>);

impl<T: Serialize> Serialize for Pairs<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PolicyDocument<'a> {
    sync_policy: Vec<Fetched<'a>>,
    predicate: Vec<Limited<'a>>,
    priority: Vec<Weighed<'a>>,
    hot_value: Vec<Hot>,
}

#[derive(Serialize)]
struct Fetched<'a> {
    name: &'a str,
    period: String,
}

#[derive(Serialize)]
struct Limited<'a> {
    name: &'a str,
    /// As crane spells it.
    #[serde(rename = "maxLimitPecent")]
    limit: f64,
}

#[derive(Serialize)]
struct Weighed<'a> {
    name: &'a str,
    weight: f64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hot {
    time_range: String,
    count: i64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SettingsDocument<'a> {
    mode: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<&'a str>,
    targets: Pairs<Ratio>,
    nodes: Vec<NodeDocument<'a>>,
    missing_data: &'static str,
    settle: String,
    need: &'static str,
    line: &'static str,
    exempt: ExemptDocument<'a>,
}

#[derive(Serialize)]
struct NodeDocument<'a> {
    selector: SelectorDocument<'a>,
    targets: Pairs<Ratio>,
    thresholds: &'a BTreeMap<String, Ratio>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExemptDocument<'a> {
    namespaces: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    pod_selector: Option<SelectorDocument<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SelectorDocument<'a> {
    match_labels: BTreeMap<&'a str, &'a str>,
    match_expressions: Vec<ExpressionDocument<'a>>,
}

#[derive(Serialize)]
struct ExpressionDocument<'a> {
    key: &'a str,
    operator: &'static str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    values: &'a [String],
}

fn profile(one: &SchedulerProfile) -> ProfileDocument<'_> {
    let rules = one.profile.rules.as_ref();
    let mut weights = one.profile.weights;
    let weighed = WEIGHTS.iter().zip(parts(&mut weights));
    let (when_overloaded, least_bad_after) = match one.when_overloaded {
        WhenOverloaded::Wait => ("Wait", None),
        WhenOverloaded::LeastBad { after } => ("LeastBad", Some(duration(after))),
    };
    ProfileDocument {
        scheduler_name: &one.name,
        load_aware: rules.is_some(),
        policy: rules.map(|rules| policy(rules.policy())),
        settings: rules.map(|rules| settings(rules.settings())),
        weights: Pairs(weighed.map(|(name, weight)| ((*name).to_owned(), *weight)).collect()),
        when_overloaded,
        least_bad_after,
    }
}

fn policy(policy: &Policy) -> PolicyDocument<'_> {
    let Policy { sync, predicates, priorities, hot } = policy;
    PolicyDocument {
        sync_policy: sync
            .iter()
            .map(|one| Fetched { name: &one.name, period: duration(one.period) })
            .collect(),
        predicate: predicates.iter().map(|one| Limited { name: &one.name, limit: one.limit }).collect(),
        priority: priorities.iter().map(|one| Weighed { name: &one.name, weight: one.weight }).collect(),
        hot_value: hot.iter().map(|one| Hot { time_range: duration(one.range), count: one.count }).collect(),
    }
}

fn settings(settings: &Settings) -> SettingsDocument<'_> {
    let Settings { mode, time_zone, targets: given, nodes, missing, settle, need, line, exempt } = settings;
    SettingsDocument {
        mode: match mode {
            Mode::Default => "default",
            Mode::Upstream => "upstream",
        },
        time_zone: time_zone.as_ref().and_then(|zone| zone.iana_name()),
        targets: targets(*given),
        nodes: nodes
            .iter()
            .map(|rule| NodeDocument {
                selector: selector(&rule.selector),
                targets: targets(rule.targets),
                thresholds: &rule.thresholds,
            })
            .collect(),
        missing_data: match missing {
            Missing::Estimate => "Estimate",
            Missing::Allow => "Allow",
            Missing::Deny => "Deny",
        },
        settle: duration(*settle),
        need: match need {
            Scored::Yes => "Score",
            Scored::No => "Ignore",
        },
        line: match line {
            Line::Unlearned => "Unlearned",
            Line::Always => "Always",
        },
        exempt: ExemptDocument {
            namespaces: &exempt.namespaces,
            pod_selector: exempt.pod_selector.as_ref().map(selector),
        },
    }
}

fn targets(targets: Both<Option<Ratio>>) -> Pairs<Ratio> {
    Pairs(Metered::ALL.into_iter().filter_map(|r| Some((r.name().to_owned(), targets.get(r)?))).collect())
}

fn selector(selector: &Selector) -> SelectorDocument<'_> {
    let (mut match_labels, mut match_expressions) = (BTreeMap::new(), Vec::new());
    for one in selector.requirements().unwrap_or_default() {
        let operator = match one.op() {
            Op::In => "In",
            Op::NotIn => "NotIn",
            Op::Exists => "Exists",
            Op::DoesNotExist => "DoesNotExist",
            // A selector of a document has no others.
            _ => {
                match_labels.extend(one.values().first().map(|value| (one.key(), &**value)));
                continue;
            }
        };
        match_expressions.push(ExpressionDocument { key: one.key(), operator, values: one.values() });
    }
    SelectorDocument { match_labels, match_expressions }
}
