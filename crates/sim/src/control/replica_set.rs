//! Which pods does a replica set make or delete, and what does it say?

use crate::cluster::{Pod, ReplicaSet, ReplicaSetStatus};
use jiff::Timestamp;
use loadline_core::view::Phase;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// At most so many pods are made or deleted in one step; the next follows at once.
const BURST: usize = 500;

/// What a replica set needs.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Pods to make.
    pub create: usize,
    /// Pods to delete, first those that would be missed least.
    pub delete: Vec<Arc<Pod>>,
    /// What it says now.
    pub status: ReplicaSetStatus,
    /// Seconds until a pod that is ready counts as available.
    pub look_again: Option<i64>,
}

/// Decides what a replica set needs, given the pods that belong to it. `related` counts, per node, the pods of
/// all replica sets of the same Deployment: where they crowd, one is missed least.
#[must_use]
pub fn plan(set: &ReplicaSet, pods: &[Arc<Pod>], related: &BTreeMap<String, usize>, now: Timestamp) -> Plan {
    let mut active: Vec<_> = pods.iter().filter(|pod| pod.is_active()).cloned().collect();
    let status = status(set, &active, now);
    let waiting =
        active.iter().filter(|pod| pod.ready.is_some() && !pod.is_available(set.min_ready_seconds, now));
    let left = waiting.filter_map(|pod| {
        let passed = now.duration_since(pod.ready?).as_secs();
        Some((set.min_ready_seconds - passed).max(1))
    });
    let mut plan = Plan { look_again: left.min(), status, ..Plan::default() };
    if set.meta.is_deleted() {
        return plan;
    }
    let wanted = usize::try_from(set.replicas).unwrap_or(0);
    if active.len() < wanted {
        plan.create = (wanted - active.len()).min(BURST);
    } else if active.len() > wanted {
        let surplus = (active.len() - wanted).min(BURST);
        active.sort_by_cached_key(|pod| worth(pod, related));
        active.truncate(surplus);
        plan.delete = active;
    }
    plan
}

/// Smaller goes first: unbound, not started, not ready, cheap, crowded, ready for a short time, young.
type Worth = (
    bool,
    u8,
    bool,
    i64,
    std::cmp::Reverse<usize>,
    std::cmp::Reverse<Option<Timestamp>>,
    std::cmp::Reverse<Option<Timestamp>>,
);

fn worth(pod: &Pod, related: &BTreeMap<String, usize>) -> Worth {
    let phase = match pod.phase {
        Phase::Pending => 0,
        Phase::Unknown => 1,
        _ => 2,
    };
    let cost = pod.meta.annotation("controller.kubernetes.io/pod-deletion-cost");
    let cost = cost.and_then(|cost| cost.parse().ok()).unwrap_or(0);
    let crowd = pod.node.as_ref().and_then(|node| related.get(node)).copied().unwrap_or(0);
    (
        pod.node.is_some(),
        phase,
        pod.ready.is_some(),
        cost,
        std::cmp::Reverse(crowd),
        std::cmp::Reverse(pod.ready),
        std::cmp::Reverse(pod.meta.created),
    )
}

fn status(set: &ReplicaSet, active: &[Arc<Pod>], now: Timestamp) -> ReplicaSetStatus {
    let labels = set.template["metadata"]["labels"].as_object();
    let labelled = |pod: &&Arc<Pod>| {
        let mut wanted = labels.into_iter().flatten();
        wanted.all(|(k, v)| pod.meta.labels.get(k).map(String::as_str) == v.as_str())
    };
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    ReplicaSetStatus {
        replicas: count(active.len()),
        fully_labeled_replicas: count(active.iter().filter(labelled).count()),
        ready_replicas: count(active.iter().filter(|pod| pod.ready.is_some()).count()),
        available_replicas: count(
            active.iter().filter(|pod| pod.is_available(set.min_ready_seconds, now)).count(),
        ),
        observed_generation: set.status.observed_generation.max(set.meta.generation),
    }
}

/// A new pod of a replica set.
#[must_use]
pub fn pod(set: &ReplicaSet) -> Value {
    let template = &set.template["metadata"];
    let mut metadata = json!({
        "generateName": format!("{}-", set.meta.id.key.name),
        "namespace": &*set.meta.id.key.namespace,
        "ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": &*set.meta.id.key.name, "uid": &*set.meta.id.uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if !template[field].is_null() {
            metadata[field] = template[field].clone();
        }
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": set.template["spec"]})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::{Key, Meta, ObjectMeta};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn set(replicas: i64) -> ReplicaSet {
        ReplicaSet {
            replicas,
            meta: ObjectMeta { generation: 3, ..ObjectMeta::default() },
            ..ReplicaSet::default()
        }
    }

    fn pod(name: &str, ready: Option<i64>) -> Pod {
        Pod {
            meta: ObjectMeta {
                id: Meta { key: Key::new("default", name), ..Meta::default() },
                created: Some(at(0)),
                ..ObjectMeta::default()
            },
            node: Some("a".into()),
            phase: Phase::Running,
            ready: ready.map(at),
            ..Pod::default()
        }
    }

    fn plan_of(set: &ReplicaSet, pods: Vec<Pod>) -> Plan {
        let pods: Vec<_> = pods.into_iter().map(Arc::new).collect();
        plan(set, &pods, &BTreeMap::new(), at(100))
    }

    #[test]
    fn missing_pods_are_made_and_pods_that_are_over_or_going_do_not_count() {
        let over = Pod { phase: Phase::Succeeded, ..pod("over", None) };
        let mut going = pod("going", Some(1));
        going.meta.deleted = Some(at(130));
        let table = [
            (vec![], 3, "nothing is there"),
            (vec![pod("a", Some(1))], 2, "one is there"),
            (vec![pod("a", Some(1)), over, going], 2, "only active pods count"),
        ];
        for (pods, create, why) in table {
            assert_eq!(plan_of(&set(3), pods).create, create, "{why}");
        }
    }

    #[test]
    fn a_set_that_is_being_deleted_makes_nothing() {
        let mut set = set(3);
        set.meta.deleted = Some(at(1));
        assert_eq!(plan_of(&set, vec![]).create, 0);
    }

    #[test]
    fn the_pods_missed_least_go_first() {
        let old = pod("old", Some(1));
        let younger = |change: &dyn Fn(&mut Pod)| {
            let mut pod = pod("goes", Some(1));
            change(&mut pod);
            pod
        };
        let table: Vec<(Pod, &str)> = vec![
            (younger(&|p| p.node = None), "unbound"),
            (younger(&|p| p.phase = Phase::Pending), "not started"),
            (younger(&|p| p.ready = None), "not ready"),
            (younger(&|p| p.ready = Some(at(50))), "ready later"),
            (younger(&|p| p.meta.created = Some(at(50))), "made later"),
            (
                younger(&|p| {
                    let cost = "controller.kubernetes.io/pod-deletion-cost";
                    p.meta.annotations.insert(cost.into(), "-5".into());
                }),
                "said to be cheap",
            ),
        ];
        for (goes, why) in table {
            let plan = plan_of(&set(1), vec![old.clone(), goes]);
            let names: Vec<_> = plan.delete.iter().map(|pod| &*pod.meta.id.key.name).collect();
            assert_eq!(names, ["goes"], "{why}");
        }
    }

    #[test]
    fn crowded_nodes_give_first() {
        let pods = [("a", "x"), ("b", "y")]
            .map(|(name, node)| Arc::new(Pod { node: Some(node.into()), ..pod(name, Some(1)) }));
        let related = BTreeMap::from([("x".to_owned(), 1), ("y".to_owned(), 4)]);
        let plan = plan(&set(1), &pods, &related, at(100));
        assert_eq!(&*plan.delete[0].meta.id.key.name, "b");
    }

    #[test]
    fn availability_comes_after_readiness_has_lasted() {
        let set = ReplicaSet { min_ready_seconds: 10, ..set(2) };
        let plan = plan_of(&set, vec![pod("a", Some(80)), pod("b", Some(94)), pod("c", None)]);
        let status = plan.status;
        assert_eq!((status.replicas, status.ready_replicas, status.available_replicas), (3, 2, 1));
        assert_eq!(plan.look_again, Some(4));
        assert_eq!(status.observed_generation, 3);
    }
}
