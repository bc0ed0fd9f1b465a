//! Evicting a pod: a deletion that respects disruption budgets.

use super::body::Wanted;
use super::delete::Options;
use super::{Answer, ApiServer, Call};
use crate::status::Status;
use crate::store::{Expect, Key, TableId};
use loadline_machinery::label::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Beyond this many pods in flight a budget is not trusted any more.
const MOST_DISRUPTED: usize = 2000;

impl ApiServer {
    pub(super) fn evict(&self, call: &Call) -> Result<Answer, Status> {
        call.check_options("CreateOptions", Vec::new())?;
        let wanted = Wanted { group: "policy", version: "v1", kind: "Eviction" };
        let body = call.decode_as(wanted)?;
        let given = body["metadata"]["name"].as_str().unwrap_or_default();
        if !given.is_empty() && given != call.name() {
            return Err(Status::bad_request("name in URL does not match name in Eviction object"));
        }
        let text = |v: &Value| v.as_str().map(str::to_owned);
        let delete = &body["deleteOptions"];
        let options = Options {
            grace: delete["gracePeriodSeconds"].as_i64(),
            uid: text(&delete["preconditions"]["uid"]),
            revision: text(&delete["preconditions"]["resourceVersion"]),
            policy: text(&delete["propagationPolicy"]),
            orphan: None,
            dry_run: call.dry_run() || delete["dryRun"].as_array().is_some_and(|d| d.contains(&json!("All"))),
        };
        let pod = self.existing(call)?.value();
        if !ignores_budgets(&pod) {
            self.spend_budget(call, &pod, options.dry_run)?;
            if !options.dry_run {
                self.mark_disrupted(call);
            }
        }
        self.delete_object(call, &options)?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        Ok(Answer::value(201, &status))
    }

    /// Takes one disruption from the pod's budget, if it has one.
    fn spend_budget(&self, call: &Call, pod: &Value, dry_run: bool) -> Result<(), Status> {
        let table: TableId = "policy/poddisruptionbudgets".into();
        let labels = BTreeMap::<String, String>::deserialize(&pod["metadata"]["labels"]).unwrap_or_default();
        let matching: Vec<Value> = self
            .all_of(&table, call.namespace())
            .into_iter()
            .filter(|budget| {
                let selector = LabelSelector::deserialize(&budget["spec"]["selector"]);
                let selector = selector.ok().and_then(|selector| selector.selector().ok());
                selector.is_some_and(|selector| selector.matches(&labels))
            })
            .collect();
        let budget = match matching.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                return Err(Status::new(
                    500,
                    "",
                    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
                ));
            }
        };
        if !is_ready(pod) && unhealthy_may_go(budget) {
            return Ok(());
        }
        let name = budget["metadata"]["name"].as_str().unwrap_or_default();
        let key: Key = crate::store::key(call.namespace(), name);
        let now = self.now_text();
        loop {
            let Some(live) = self.0.store.get(&table, &key) else { return Ok(()) };
            let mut value = live.value();
            allowed(&value, name)?;
            if dry_run {
                return Ok(());
            }
            let status = &mut value["status"];
            status["disruptionsAllowed"] = json!(status["disruptionsAllowed"].as_i64().unwrap_or(0) - 1);
            status["disruptedPods"][call.name()] = json!(now);
            if self.0.store.put(&table, &key, Expect::Revision(live.revision), value).is_ok() {
                return Ok(());
            }
        }
    }

    /// Says on the pod why it goes.
    fn mark_disrupted(&self, call: &Call) {
        let now = self.now_text();
        self.rewrite(&call.resource.table, &call.key(), |pod| {
            let condition = json!({
                "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
            });
            let conditions = &mut pod["status"]["conditions"];
            if !conditions.is_array() {
                *conditions = json!([]);
            }
            if let Some(list) = conditions.as_array_mut()
                && !list.iter().any(|c| c["type"] == "DisruptionTarget")
            {
                list.push(condition);
            }
        });
    }
}

/// Pods that are over, not started or already going cost no budget.
fn ignores_budgets(pod: &Value) -> bool {
    matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed" | "Pending"))
        || pod["metadata"].get("deletionTimestamp").is_some_and(|t| !t.is_null())
}

fn is_ready(pod: &Value) -> bool {
    let conditions = pod["status"]["conditions"].as_array();
    conditions.is_some_and(|c| c.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

/// Whether an unready pod may go without counting against the budget.
fn unhealthy_may_go(budget: &Value) -> bool {
    let status = &budget["status"];
    let enough = status["currentHealthy"].as_i64().unwrap_or(0)
        >= status["desiredHealthy"].as_i64().unwrap_or(0)
        && status["desiredHealthy"].as_i64().unwrap_or(0) > 0;
    budget["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow" || enough
}

fn allowed(budget: &Value, name: &str) -> Result<(), Status> {
    let status = &budget["status"];
    let seen = status["observedGeneration"].as_i64().unwrap_or(0);
    if seen < budget["metadata"]["generation"].as_i64().unwrap_or(0) {
        let cause = format!("The disruption budget {name} is still being processed by the server.");
        return Err(refused(&cause, Some(10)));
    }
    let left = status["disruptionsAllowed"].as_i64().unwrap_or(0);
    if left < 0 {
        return Err(Status::new(403, "Forbidden", "pdb disruptions allowed is negative"));
    }
    if status["disruptedPods"].as_object().is_some_and(|p| p.len() > MOST_DISRUPTED) {
        return Err(Status::new(
            403,
            "Forbidden",
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if left == 0 {
        let needs = status["desiredHealthy"].as_i64().unwrap_or(0);
        let has = status["currentHealthy"].as_i64().unwrap_or(0);
        let cause =
            format!("The disruption budget {name} needs {needs} healthy pods and has {has} currently");
        return Err(refused(&cause, None));
    }
    Ok(())
}

/// 429, because trying again later may work.
fn refused(cause: &str, retry_after: Option<u32>) -> Status {
    let message = "Cannot evict pod as it would violate the pod's disruption budget.";
    let mut status = Status::new(429, "TooManyRequests", message).with_cause("DisruptionBudget", cause, "");
    if let Some(details) = &mut status.details {
        details.retry_after_seconds = retry_after;
    }
    status
}
