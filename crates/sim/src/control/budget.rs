//! How many pods may a disruption budget let go right now?

use crate::cluster::{Amount, Budget, Condition, Pod};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A granted eviction that was not followed by a deletion within this time did not happen.
const GRANT_LASTS: SignedDuration = SignedDuration::from_mins(2);

/// What a budget says, and when to look again.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub status: Value,
    /// When a granted eviction lapses.
    pub look_again: Option<SignedDuration>,
}

/// How many pods the workload of a pod wants: `Ok(None)` for a pod nobody made.
pub type Wanted<'a> = &'a dyn Fn(&Pod) -> Result<Option<(String, i64)>, String>;

/// Decides what a budget says, given the pods its selector matches.
#[must_use]
pub fn plan(budget: &Budget, pods: &[Arc<Pod>], wanted: Wanted<'_>, now: Timestamp) -> Plan {
    let numbers = expected(budget, pods, wanted);
    let (disrupted, look_again) = disrupted(budget, pods, now);
    let healthy = pods.iter().filter(|pod| {
        pod.ready.is_some() && !pod.meta.is_deleted() && !disrupted.contains_key(&*pod.meta.id.key.name)
    });
    let healthy = i64::try_from(healthy.count()).unwrap_or(i64::MAX);
    let (expected, desired, failure) = match numbers {
        Ok((expected, desired)) => (expected, desired, None),
        // What it said before stays, except that nothing may go.
        Err(failure) => {
            let before = |field: &str| budget.status[field].as_i64().unwrap_or(0);
            (before("expectedPods"), before("desiredHealthy"), Some(failure))
        }
    };
    let allowed = if failure.is_some() || expected <= 0 { 0 } else { (healthy - desired).max(0) };
    let (status, reason, message) = match failure {
        Some(failure) => ("False", "SyncFailed", failure),
        None if allowed > 0 => ("True", "SufficientPods", String::new()),
        None => ("False", "InsufficientPods", String::new()),
    };
    let condition = condition(budget, (status, reason, message), now);
    let mut status = json!({
        "observedGeneration": budget.meta.generation,
        "disruptionsAllowed": allowed, "currentHealthy": healthy, "desiredHealthy": desired,
        "expectedPods": expected, "conditions": [condition],
    });
    if !disrupted.is_empty() {
        let text = |at: &Timestamp| loadline_api::time::text(*at);
        let map = disrupted.iter().map(|(name, at)| (name.clone(), json!(text(at))));
        status["disruptedPods"] = Value::Object(map.collect());
    }
    Plan { status, look_again }
}

/// How many pods there should be, and how many of them must be healthy.
fn expected(budget: &Budget, pods: &[Arc<Pod>], wanted: Wanted<'_>) -> Result<(i64, i64), String> {
    let there = i64::try_from(pods.len()).unwrap_or(i64::MAX);
    match (&budget.max_unavailable, &budget.min_available) {
        (Some(most), _) => {
            let scale = scale(pods, wanted)?;
            Ok((scale, (scale - most.of_up(scale)).max(0)))
        }
        (None, Some(Amount::Count(least))) => Ok((there, *least)),
        (None, Some(least @ Amount::Share(_))) => {
            let scale = scale(pods, wanted)?;
            Ok((scale, least.of_up(scale)))
        }
        (None, None) => Ok((0, 0)),
    }
}

/// What all workloads behind the pods want, together.
fn scale(pods: &[Arc<Pod>], wanted: Wanted<'_>) -> Result<i64, String> {
    let mut workloads = BTreeMap::new();
    for pod in pods {
        let name = &pod.meta.id.key.name;
        let (uid, replicas) =
            wanted(pod)?.ok_or_else(|| format!("found no controller ref for pod {name:?}"))?;
        workloads.insert(uid, replicas);
    }
    Ok(workloads.values().sum())
}

/// Pods whose eviction was granted and that are still there, unharmed.
fn disrupted(
    budget: &Budget,
    pods: &[Arc<Pod>],
    now: Timestamp,
) -> (BTreeMap<String, Timestamp>, Option<SignedDuration>) {
    let here = |name: &str| pods.iter().any(|pod| *pod.meta.id.key.name == *name && !pod.meta.is_deleted());
    let left = |at: &Timestamp| GRANT_LASTS - now.duration_since(*at);
    let kept: BTreeMap<_, _> = budget
        .disrupted
        .iter()
        .filter(|(name, at)| here(name) && left(at) > SignedDuration::ZERO)
        .map(|(name, at)| (name.clone(), *at))
        .collect();
    let soonest = kept.values().map(left).min();
    (kept, soonest)
}

fn condition(budget: &Budget, (status, reason, message): (&str, &str, String), now: Timestamp) -> Condition {
    let before = budget.status["conditions"].as_array().into_iter().flatten();
    let before = before.filter_map(|c| serde_json::from_value::<Condition>(c.clone()).ok());
    let mut before = before.filter(|c| c.r#type == "DisruptionAllowed" && c.status == status);
    let since = before.find_map(|c| c.last_transition_time);
    // The server keeps whole seconds; comparing with more would never find anything equal.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    Condition {
        r#type: "DisruptionAllowed".into(),
        status: status.into(),
        reason: reason.into(),
        message,
        last_transition_time: Some(since.unwrap_or(now)),
        last_update_time: None,
        observed_generation: Some(budget.meta.generation),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Key, Meta, ObjectMeta};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn pod(name: &str, ready: bool) -> Arc<Pod> {
        Arc::new(Pod {
            meta: ObjectMeta {
                id: Meta { key: Key::new("default", name), ..Meta::default() },
                ..ObjectMeta::default()
            },
            ready: ready.then(|| at(0)),
            ..Pod::default()
        })
    }

    fn budget(min: Option<Amount>, max: Option<Amount>) -> Budget {
        Budget { min_available: min, max_unavailable: max, ..Budget::default() }
    }

    fn share(text: &str) -> Amount {
        Amount::Share(text.into())
    }

    #[test]
    fn budgets_allow_what_is_more_than_they_need() {
        let count = |n| Some(Amount::Count(n));
        let ready = |n: usize| (0..n).map(|i| pod(&i.to_string(), true)).collect::<Vec<_>>();
        let mut sick = ready(3);
        sick.push(pod("sick", false));
        // Pods, expected, desired, allowed. The workload always wants four.
        let table = [
            (budget(count(2), None), ready(4), (4, 2, 2), "two must stay"),
            (budget(count(9), None), ready(4), (4, 9, 0), "more must stay than there are"),
            (budget(None, count(1)), ready(4), (4, 3, 1), "one may go"),
            (budget(None, count(1)), ready(3), (4, 3, 0), "one is gone already"),
            (budget(None, count(1)), sick, (4, 3, 0), "one is not healthy"),
            (budget(Some(share("30%")), None), ready(4), (4, 2, 2), "shares of what must stay round up"),
            (budget(None, Some(share("30%"))), ready(4), (4, 2, 2), "shares of what may go round up, too"),
            (budget(count(0), None), vec![], (0, 0, 0), "there is nothing to disrupt"),
        ];
        for (budget, pods, expected, why) in table {
            let status = plan(&budget, &pods, &|_| Ok(Some(("u".into(), 4))), at(0)).status;
            let got =
                ["expectedPods", "desiredHealthy", "disruptionsAllowed"].map(|f| status[f].as_i64().unwrap());
            assert_eq!(got, <[i64; 3]>::from(expected), "{why}");
        }
    }

    #[test]
    fn a_granted_eviction_counts_until_it_happens_or_lapses() {
        let mut budget = budget(Some(Amount::Count(1)), None);
        budget.disrupted = [("a".to_owned(), at(0)), ("gone".to_owned(), at(0))].into();
        let pods = [pod("a", true), pod("b", true)];
        let wanted: Wanted<'_> = &|_| Ok(None);
        let plan_at = |second| plan(&budget, &pods, wanted, at(second));
        assert_eq!(plan_at(30).status["disruptionsAllowed"], 0, "a may go any moment");
        assert_eq!(plan_at(30).status["disruptedPods"].as_object().unwrap().len(), 1, "gone is forgotten");
        assert_eq!(plan_at(30).look_again, Some(SignedDuration::from_secs(90)));
        assert_eq!(plan_at(120).status["disruptionsAllowed"], 1, "a was not deleted after all");
    }

    #[test]
    fn a_share_of_pods_nobody_made_is_refused() {
        let plan = plan(&budget(Some(share("50%")), None), &[pod("lone", true)], &|_| Ok(None), at(0));
        assert_eq!(plan.status["disruptionsAllowed"], 0);
        assert_eq!(plan.status["conditions"][0]["reason"], "SyncFailed");
    }
}
