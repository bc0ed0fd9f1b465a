//! What must whoever schedules a binding know of it? Whose it is, what was decided about it and told, and how far its
//! clusters have come.
//!
//! A binding that cannot be divided is still somebody's, and that it cannot be must be told: so this is read of any
//! object, and what is wrong with the rest of it comes along.

use super::binding::{APPLIED, applied, binding};
use crate::context::Context;
use crate::estimator::Replica;
use crate::json::Tree;
use crate::read::{At, Error, Warning, tolerant};
use loadline_core::divide::due::Applied;
use loadline_core::divide::{Binding, Condition};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Who schedules what names nobody.
pub const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// A binding nobody stands behind is not scheduled: one of these must say who does.
const MANAGED: [&str; 3] = [
    "propagationpolicy.karmada.io/permanent-id",
    "clusterpropagationpolicy.karmada.io/permanent-id",
    "binding.karmada.io/managed-by",
];

/// A binding, as its scheduler sees it.
#[derive(Clone, Debug)]
pub struct Scheduling {
    /// By whom it wants to be scheduled.
    pub scheduler: String,
    /// It is to be left alone for now.
    pub suspended: bool,
    /// Does a policy, or another controller, stand behind it?
    pub managed: bool,
    /// It is on its way out.
    pub deleting: bool,
    pub generation: i64,
    /// Higher goes first.
    pub priority: i32,
    /// Its placement as it is written, to be remembered as the one gone by.
    pub placement: String,
    /// The placement of the last division.
    pub applied: Applied,
    /// Where it is, as it is written.
    pub clusters: Vec<Value>,
    /// The generation of the last division.
    pub observed_generation: i64,
    /// All conditions, as they are written.
    pub conditions: Vec<Value>,
    /// How far clusters have come.
    pub reported: BTreeMap<String, Reported>,
    /// What estimators are asked, in their words.
    pub asks: Asks,
    /// What is divided, or what keeps it from being divided.
    pub binding: Result<Binding, Error>,
    pub warnings: Vec<Warning>,
}

/// What one cluster says of what it got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reported {
    /// All is well there.
    pub healthy: bool,
    /// Replicas that are ready, where it says so.
    pub ready: Option<i32>,
}

/// What estimators are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asks {
    /// Whose quotas bind it.
    pub namespace: String,
    /// What one replica asks for; `None` if its template says nothing.
    pub replica: Option<Replica>,
    /// The parts of a set: name, how many, what each asks for.
    pub components: Vec<(String, i32, Replica)>,
}

impl Scheduling {
    /// The condition `Scheduled`, if there is one.
    #[must_use]
    pub fn condition(&self) -> Option<&Value> {
        self.conditions.iter().find(|condition| condition["type"] == Condition::TYPE)
    }

    /// How many replicas are ready, by cluster.
    #[must_use]
    pub fn ready(&self) -> BTreeMap<String, i32> {
        self.reported.iter().filter_map(|(name, said)| Some((name.clone(), said.ready?))).collect()
    }
}

/// Reads a `ResourceBinding` or `ClusterResourceBinding` for its scheduler. Whatever it is like, there is an answer.
#[must_use]
pub fn scheduling(value: &Tree<'_>, context: &Context) -> Scheduling {
    let (metadata, spec, status) = (&value["metadata"], &value["spec"], &value["status"]);
    let text = |value: &Tree<'_>| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Tree<'_>| {
        let items = value.as_array().unwrap_or_default().iter();
        items.map(|item| serde_json::to_value(item).unwrap_or_default()).collect::<Vec<_>>()
    };
    let scheduler = Some(text(&spec["schedulerName"])).filter(|name| !name.is_empty());
    let read = binding(value, context);
    let (binding, warnings) = match read {
        Ok((binding, warnings)) => (Ok(binding), warnings),
        Err(error) => (Err(error), Vec::new()),
    };
    let priority = spec["schedulePriority"]["priority"].as_i64().unwrap_or_default();
    Scheduling {
        scheduler: scheduler.unwrap_or_else(|| DEFAULT_SCHEDULER.to_owned()),
        suspended: spec["suspension"]["scheduling"].as_bool().unwrap_or_default(),
        managed: MANAGED.iter().any(|label| !text(&metadata["labels"][*label]).is_empty()),
        deleting: !metadata["deletionTimestamp"].is_null(),
        generation: metadata["generation"].as_i64().unwrap_or_default(),
        priority: i32::try_from(priority).unwrap_or(if priority < 0 { i32::MIN } else { i32::MAX }),
        placement: spec["placement"].to_string(),
        applied: applied(value),
        clusters: list(&spec["clusters"]),
        observed_generation: status["schedulerObservedGeneration"].as_i64().unwrap_or_default(),
        conditions: list(&status["conditions"]),
        reported: reported(&status["aggregatedStatus"]),
        asks: asks(value),
        binding,
        warnings,
    }
}

fn reported(list: &Tree<'_>) -> BTreeMap<String, Reported> {
    let one = |item: &Tree<'_>| {
        let ready = item["status"]["readyReplicas"].as_i64().and_then(|count| i32::try_from(count).ok());
        let said = Reported { healthy: item["health"].as_str() == Some("Healthy"), ready };
        Some((item["clusterName"].as_str()?.to_owned(), said))
    };
    list.as_array().unwrap_or_default().iter().filter_map(one).collect()
}

/// What cannot be read is told by [`binding`]; nobody is asked about it then.
pub(crate) fn asks(value: &Tree<'_>) -> Asks {
    let read = tolerant("", value, |root| {
        let spec = root.get("spec");
        let wanted = spec.get("replicaRequirements");
        let resource = spec.get("resource");
        let own = root.get("metadata").get("namespace").string();
        let namespace =
            wanted.get("namespace").text().or(resource.get("namespace").text()).unwrap_or(&own).to_owned();
        let component = |at: At<'_, '_>| {
            let asks = replica(&at.get("replicaRequirements"), &namespace);
            (at.get("name").string(), at.get("replicas").int32().unwrap_or_default(), asks)
        };
        Asks {
            replica: wanted.is_set().then(|| replica(&wanted, &namespace)),
            components: spec.get("components").items().map(component).collect(),
            namespace,
        }
    });
    read.map(|(asks, _)| asks).unwrap_or_default()
}

fn replica(at: &At<'_, '_>, namespace: &str) -> Replica {
    let claim = at.get("nodeClaim");
    Replica {
        selector: claim.get("nodeSelector").texts(),
        affinity: claim.get("hardNodeAffinity").parse(),
        tolerations: claim.get("tolerations").list(),
        requests: at.get("resourceRequest").known_amounts(),
        limits: None,
        namespace: namespace.to_owned(),
        priority_class: at.get("priorityClassName").string(),
        priority: None,
    }
}

/// What is written with a division: the clusters, and the placement gone by.
#[must_use]
pub fn decided(clusters: &[Value], placement: &str) -> Value {
    // What has no clusters has no list of them.
    let clusters = if clusters.is_empty() { Value::Null } else { clusters.into() };
    json!({"metadata": {"annotations": {APPLIED: placement}}, "spec": {"clusters": clusters}})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &Value) -> Scheduling {
        scheduling(&Tree::from(value), &Context::new())
    }

    #[test]
    fn who_schedules_and_whether_at_all() {
        let nothing = read(&json!({}));
        assert_eq!(nothing.scheduler, "default-scheduler");
        assert!(!nothing.managed && !nothing.suspended && !nothing.deleting);
        assert!(nothing.binding.is_err(), "it has not even a name");
        let ours = read(&json!({
            "metadata": {"name": "web", "generation": 7, "deletionTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"binding.karmada.io/managed-by": "x"}},
            "spec": {"schedulerName": "loadline", "suspension": {"scheduling": true},
                "schedulePriority": {"priority": 5}, "placement": {"spreadConstraints": []}},
            "status": {"schedulerObservedGeneration": 6},
        }));
        assert_eq!((ours.scheduler.as_str(), ours.generation, ours.observed_generation), ("loadline", 7, 6));
        assert!(ours.managed && ours.suspended && ours.deleting);
        assert_eq!((ours.priority, ours.placement.as_str()), (5, r#"{"spreadConstraints":[]}"#));
    }

    #[test]
    fn what_clusters_report_is_read_as_far_as_it_goes() {
        let binding = json!({"metadata": {"name": "web"}, "status": {"aggregatedStatus": [
            {"clusterName": "a", "health": "Healthy", "status": {"readyReplicas": 2}},
            {"clusterName": "b", "health": "Unhealthy"},
            {"clusterName": "c", "status": "odd"},
            {"status": {"readyReplicas": 2}},
        ]}});
        let reported = read(&binding).reported;
        let said = |name: &str| (reported[name].healthy, reported[name].ready);
        assert_eq!((said("a"), said("b"), said("c")), ((true, Some(2)), (false, None), (false, None)));
        assert_eq!(reported.len(), 3);
    }

    #[test]
    fn a_wrong_quantity_keeps_it_from_being_divided_and_is_told() {
        let wrong = read(&json!({
            "metadata": {"name": "web", "namespace": "shop", "labels": {"binding.karmada.io/managed-by": "x"}},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                "replicas": 1, "replicaRequirements": {"resourceRequest": {"cpu": "much"}}, "placement": {}},
        }));
        assert!(wrong.managed);
        let told = wrong.binding.expect_err("cpu is no quantity").to_string();
        assert!(told.contains("spec.replicaRequirements.resourceRequest.cpu"), "{told}");
    }

    #[test]
    fn requirements_are_kept_in_the_words_estimators_are_asked_in() {
        let asks = read(&json!({
            "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"resource": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "namespace": "shop"},
                "replicaRequirements": {"resourceRequest": {"cpu": "500m"}, "priorityClassName": "high",
                    "nodeClaim": {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}},
                "components": [{"name": "leader", "replicas": 2, "replicaRequirements": {"resourceRequest": {"cpu": "1"}}}]},
        }))
        .asks;
        let replica = asks.replica.expect("it asks for something");
        assert_eq!(replica.selector["disk"], "ssd");
        assert_eq!((replica.tolerations.len(), replica.namespace.as_str()), (1, "shop"));
        assert_eq!(replica.requests["cpu"].to_string(), "500m");
        assert_eq!(replica.priority_class, "high");
        let (name, replicas, part) = &asks.components[0];
        assert_eq!((name.as_str(), *replicas, part.requests["cpu"].to_string()), ("leader", 2, "1".into()));
    }
}
