//! Why is a binding where it is, or nowhere? The last decision about each is remembered with what it was made from; what
//! would be decided now is worked out when somebody asks, from the same estimates.

use super::state::{Decided, State};
use crate::ask;
use crate::ctx::Now;
use crate::fleet::estimators::{NAME, Said};
use jiff::Timestamp;
use loadline_core::divide::due::Due;
use loadline_core::divide::{Answer, Condition, Feasible, Opinion, Target};
use loadline_core::object::Key;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Decisions that are remembered.
const REMEMBERED: usize = 4096;
/// What they say of clusters, in all: in a large fleet fewer decisions are remembered.
const LINES: usize = 200_000;

/// A decision, and what it was made from.
#[derive(Clone, Debug)]
struct Kept {
    /// The how manieth decision it is.
    number: u64,
    at: Timestamp,
    due: Due,
    answer: Arc<Answer>,
    said: Arc<[Said]>,
}

impl Kept {
    fn lines(&self) -> usize {
        self.answer.feasible.len() + self.answer.filtered.len() + self.said.len()
    }
}

/// The last decision about each binding, for the newest.
#[derive(Debug, Default)]
pub(super) struct Decisions {
    kept: BTreeMap<Key, Kept>,
    /// In the order they were made. A binding that is decided about all the time is in it once, and pushes nobody out.
    order: BTreeMap<u64, Key>,
    made: u64,
    /// Clusters that are spoken of.
    lines: usize,
}

impl Decisions {
    pub fn keep(&mut self, decided: &Decided, at: Timestamp) {
        let Decided { known, due, answer, said, .. } = decided;
        let (key, number) = (&known.meta.key, self.made);
        let kept = Kept { number, at, due: *due, answer: answer.clone(), said: said.clone() };
        self.forget(key);
        self.made += 1;
        self.lines += kept.lines();
        self.kept.insert(key.clone(), kept);
        self.order.insert(number, key.clone());
        while self.order.len() > REMEMBERED || (self.lines > LINES && self.order.len() > 1) {
            let Some((_, key)) = self.order.pop_first() else { break };
            self.forget(&key);
        }
    }

    pub fn forget(&mut self, key: &Key) {
        if let Some(kept) = self.kept.remove(key) {
            self.order.remove(&kept.number);
            self.lines -= kept.lines();
        }
    }
}

/// Everything there is to say. Field names are a promise.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation<'a> {
    api_version: &'static str,
    kind: &'static str,
    binding: String,
    /// By whom it wants to be scheduled, and whether that is us and it is not suspended.
    scheduler: &'a str,
    ours: bool,
    /// Where it is.
    clusters: &'a [Value],
    condition: Option<&'a Value>,
    /// The last decision; `null` if none is remembered.
    decision: Option<Decision<'a>>,
    now: Recomputed<'a>,
}

/// A decision.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Decision<'a> {
    at: Timestamp,
    why: &'static str,
    #[serde(flatten)]
    result: Division<'a>,
}

/// What would be decided now.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Recomputed<'a> {
    at: Timestamp,
    /// Why it would be; `null` if there is nothing to decide.
    why: Option<&'static str>,
    /// Would it get other clusters, or other numbers?
    would_change: bool,
    #[serde(flatten)]
    result: Option<Division<'a>>,
    /// What would have to be different for another outcome, each checked.
    would: Vec<String>,
}

/// Who gets how many, and why.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Division<'a> {
    targets: Vec<TargetResult<'a>>,
    feasible: Vec<FeasibleResult<'a>>,
    filtered: Vec<FilteredResult<'a>>,
    result: ConditionResult,
    shortfall: i32,
    affinity: Option<&'a str>,
    warnings: &'a [String],
}

#[derive(Serialize)]
struct TargetResult<'a> {
    name: &'a str,
    replicas: Option<i32>,
}

#[derive(Serialize)]
struct FeasibleResult<'a> {
    name: &'a str,
    tier: usize,
    score: i64,
    allocatable: i32,
    available: i64,
    confirmed: bool,
    estimates: Vec<Estimate<'a>>,
}

/// What one estimator said.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Estimate<'a> {
    by: &'a str,
    /// `null` for no opinion.
    count: Option<i32>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
    /// How long ago it said so; what clusters say of themselves has no age here.
    #[serde(skip_serializing_if = "Option::is_none")]
    age_seconds: Option<f64>,
}

#[derive(Serialize)]
struct FilteredResult<'a> {
    name: &'a str,
    reason: String,
}

#[derive(Serialize)]
struct ConditionResult {
    status: bool,
    reason: &'static str,
    message: String,
}

/// In words.
fn why(due: Due) -> &'static str {
    match due {
        Due::Placement => "placement changed",
        Due::Replicas => "replicas changed",
        Due::Asked => "rescheduling was asked for",
        Due::Everywhere => "it goes to every cluster that fits",
        Due::Leaving => "a cluster it is on goes away",
    }
}

fn division<'a>(answer: &'a Answer, said: &'a [Said], now: Timestamp) -> Division<'a> {
    let Condition { status, reason, message } = answer.condition();
    Division {
        targets: answer
            .clusters
            .iter()
            .map(|t| TargetResult { name: &t.name, replicas: t.replicas })
            .collect(),
        feasible: answer.feasible.iter().map(|one| feasible(answer, one, said, now)).collect(),
        filtered: answer
            .filtered
            .iter()
            .map(|one| FilteredResult { name: &one.name, reason: one.reason.to_string() })
            .collect(),
        result: ConditionResult { status, reason, message },
        shortfall: answer.shortfall,
        affinity: answer.affinity.as_deref(),
        warnings: &answer.warnings,
    }
}

fn feasible<'a>(
    answer: &'a Answer,
    one: &'a Feasible,
    said: &'a [Said],
    now: Timestamp,
) -> FeasibleResult<'a> {
    let own = said.iter().find(|said| said.cluster == one.name);
    let estimate = |(by, count): (&'a Arc<str>, Option<i32>)| {
        let heard = own.filter(|_| **by == *NAME);
        Estimate {
            by,
            count,
            problem: heard.and_then(|said| match &said.opinion {
                Opinion::Failed(why) => Some(why.as_str()),
                Opinion::Count(_) => None,
            }),
            age_seconds: heard.map(|said| now.duration_since(said.at).as_secs_f64().max(0.0)),
        }
    };
    FeasibleResult {
        name: &one.name,
        tier: one.tier,
        score: one.score,
        allocatable: one.allocatable,
        available: one.available,
        confirmed: one.confirmed,
        estimates: answer.estimates(one).map(estimate).collect(),
    }
}

impl State {
    /// What there is to say about a binding; nothing if there is none.
    pub(super) fn explain(&mut self, key: &Key, now: Now) -> Option<Value> {
        let known = self.binding(key)?.clone();
        let fleet = self.fleet();
        let kept = self.decisions.kept.get(key).cloned();
        let said: &[Said] = kept.as_ref().map_or(&[], |kept| &kept.said);
        let binding = known.facts.binding.as_ref().ok();
        let answer = binding.map(|binding| self.divide(&fleet.members, binding, said));
        let would = binding.zip(answer.as_ref());
        let would =
            would.map(|(binding, answer)| self.counterfactuals(&fleet.members, binding, said, answer));
        let targets = |clusters: &[Target]| -> Vec<(String, i32)> {
            clusters.iter().map(|t| (t.name.to_string(), t.replicas.unwrap_or(0))).collect()
        };
        let is = binding.map(|binding| {
            let mut is: Vec<_> = binding.clusters.iter().map(|p| (p.name.clone(), p.replicas)).collect();
            is.sort();
            is
        });
        let decided = answer.as_ref().filter(|answer| answer.failure.is_none());
        let due = self.is_due(&known, &fleet);
        let explanation = Explanation {
            api_version: "loadline.dev/v1alpha1",
            kind: "BindingExplanation",
            binding: format!("{} {key}", known.of.kind),
            scheduler: &known.facts.scheduler,
            ours: self.is_ours(&known.facts),
            clusters: &known.facts.clusters,
            condition: known.facts.condition(),
            decision: kept.as_ref().map(|kept| Decision {
                at: kept.at,
                why: why(kept.due),
                result: division(&kept.answer, &kept.said, now.clock),
            }),
            now: Recomputed {
                at: now.clock,
                why: due.map(why),
                would_change: due.is_some()
                    && decided.is_some_and(|answer| Some(targets(&answer.clusters)) != is),
                result: answer.as_ref().map(|answer| division(answer, said, now.clock)),
                would: would.unwrap_or_default(),
            },
        };
        serde_json::to_value(explanation).ok()
    }
}

/// Where a running controller is asked about a binding; nothing is answered if there is no such binding.
pub type Asker = ask::Asker<Key, Option<Value>>;

/// Where it hears of that.
pub type Asked = ask::Asked<Key, Option<Value>>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::resource::RESOURCE_BINDINGS;
    use crate::fleet::binding::state::Known;
    use loadline_api::json::Tree;
    use loadline_api::{Context, karmada, object};
    use loadline_core::divide::Filtered;
    use serde_json::json;
    use tokio::time::Instant;

    /// A decision that speaks of so many clusters.
    fn decided(name: &str, clusters: usize) -> Decided {
        let object = json!({"metadata": {"name": name, "namespace": "shop"}, "spec": {}});
        let facts = karmada::scheduling(&Tree::from(&object), &Context::new());
        let known =
            Arc::new(Known { of: RESOURCE_BINDINGS, meta: object::meta(&Tree::from(&object)), facts });
        let mut answer = Answer::default();
        let refused = loadline_core::divide::Refusal::Affinity;
        answer.filtered = vec![Filtered { name: "a".into(), reason: refused }; clusters];
        let (due, began) = (Due::Asked, Instant::now());
        Decided { known, due, answer: Arc::new(answer), said: [].into(), began, before: None }
    }

    #[test]
    fn one_that_is_decided_about_all_the_time_pushes_nobody_out() {
        let (mut decisions, at) = (Decisions::default(), Timestamp::UNIX_EPOCH);
        decisions.keep(&decided("quiet", 1), at);
        for _ in 0..2 * REMEMBERED {
            decisions.keep(&decided("busy", 1), at);
        }
        let quiet = Key::new("shop", "quiet");
        assert!(decisions.kept.contains_key(&quiet));
        assert_eq!((decisions.kept.len(), decisions.order.len(), decisions.lines), (2, 2, 2));
        decisions.forget(&quiet);
        assert_eq!((decisions.kept.len(), decisions.order.len(), decisions.lines), (1, 1, 1));
        // Memory is bounded by what is told, too.
        decisions.keep(&decided("large", LINES), at);
        assert_eq!((decisions.kept.len(), decisions.lines), (1, LINES), "the newest is kept");
    }
}
