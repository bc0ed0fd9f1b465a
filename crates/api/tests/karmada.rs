//! What is read of a fleet: clusters, bindings, policies.

use loadline_api::json::Tree;
use loadline_api::{Context, Error, karmada};
use loadline_core::divide::due::Applied;
use loadline_core::divide::{By, Division};
use serde_json::{Value, json};

fn problems(error: &Error) -> Vec<String> {
    error.problems.iter().map(ToString::to_string).collect()
}

fn binding(spec: &Value) -> Value {
    let mut spec = spec.clone();
    spec["resource"] = json!({"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "web", "uid": "u"});
    json!({"apiVersion": "work.karmada.io/v1alpha2", "kind": "ResourceBinding",
        "metadata": {"name": "web-deployment", "namespace": "shop"}, "spec": spec})
}

fn policy(placement: &Value) -> Value {
    json!({"apiVersion": "policy.karmada.io/v1alpha1", "kind": "PropagationPolicy",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}], "placement": placement}})
}

#[test]
fn a_cluster_says_where_it_is_and_what_it_has() {
    let value = json!({"metadata": {"name": "member1", "labels": {"site": "home"}, "deletionTimestamp": "2025-01-01T00:00:00Z"},
        "spec": {"provider": "acme", "region": "north", "zone": "old",
            "taints": [{"key": "gone", "effect": "NoExecute"}],
            "resourceModels": [{"grade": 1, "ranges": [{"name": "cpu", "min": "2", "max": "4"}]}]},
        "status": {"apiEnablements": [{"groupVersion": "apps/v1", "resources": [{"name": "deployments", "kind": "Deployment"}]}],
            "nodeSummary": {"totalNum": 5, "readyNum": 3},
            "resourceSummary": {"allocatable": {"cpu": "10", "pods": "110"}, "allocated": {"cpu": "2500m"},
                "allocating": {"cpu": "1"}, "allocatableModelings": [{"grade": 1, "count": 3}]}}});
    let (member, warnings) = karmada::cluster(&Tree::from(&value)).expect("the cluster is right");
    assert_eq!(
        (&*member.name, member.region.as_str(), member.provider.as_str()),
        ("member1", "north", "acme")
    );
    assert_eq!(member.zones, ["old"], "the older field stands in");
    assert!(member.deleting && member.apis["apps/v1"].contains("Deployment"));
    let summary = member.summary.expect("there is one");
    assert_eq!((summary.total.get("cpu"), summary.free.get("cpu")), (Some(10_000), Some(6_500)));
    assert_eq!(summary.grades, [(1, 3)]);
    assert_eq!((member.models[0].grade, member.models[0].least.get("cpu")), (1, Some(2_000)));
    // Row 9: the totals of others count nodes that are not ready.
    let told: Vec<_> = warnings.iter().map(|warning| warning.problem.to_string()).collect();
    assert_eq!(told, ["status.nodeSummary: 2 of 5 nodes are not ready, and the totals count them"]);
}

#[test]
fn what_a_cluster_observed_may_be_anything() {
    let of = |status: &Value| json!({"metadata": {"name": "a"}, "spec": {}, "status": status});
    for (status, known, warned) in [
        (json!(null), false, 0),
        (json!({}), false, 0),
        (json!({"resourceSummary": {"allocatable": {"cpu": "lots", "pods": "5"}}}), true, 1),
        (json!({"resourceSummary": {"allocatable": {"cpu": "-1"}}}), true, 1),
        (json!({"resourceSummary": {"allocatableModelings": [{"grade": "one"}]}}), true, 1),
        (json!({"apiEnablements": "all"}), false, 1),
        (json!({"nodeSummary": {"totalNum": "many"}, "resourceSummary": {}}), true, 1),
    ] {
        let (member, warnings) =
            karmada::cluster(&Tree::from(&of(&status))).expect("a status is no reason to refuse");
        assert_eq!((member.summary.is_some(), warnings.len()), (known, warned), "{status}");
    }
}

#[test]
fn what_is_wrong_with_a_cluster_is_told_at_once() {
    let value = json!({"metadata": {}, "spec": {"zones": "all", "taints": [{"key": "a"}],
        "resourceModels": [{"grade": -1, "ranges": [{"name": "cpu", "min": "much"}]}, {"ranges": []}]}});
    let error = karmada::cluster(&Tree::from(&value)).expect_err("much is wrong");
    assert_eq!(
        problems(&error),
        [
            "spec.zones: expected a list, found a string",
            "metadata.name: must not be empty",
            "spec.taints[0]: missing field `effect`",
            "spec.resourceModels[0].ranges[0].min: quantity \"much\" must be a number with an optional suffix, such as 100m or 1.5Gi",
            "spec.resourceModels[0].grade: expected a whole number, 0 or more",
            "spec.resourceModels[1].grade: expected a whole number, 0 or more",
        ]
    );
}

#[test]
fn a_binding_says_what_is_wanted_and_what_there_is() {
    let mut value = binding(&json!({"replicas": 3, "replicaRequirements": {"resourceRequest": {"cpu": "1"}},
        "clusters": [{"name": "a", "replicas": 2}], "gracefulEvictionTasks": [{"fromCluster": "b"}],
        "rescheduleTriggeredAt": "2025-01-01T12:00:00Z",
        "placement": {"clusterAffinity": {"clusterNames": ["a"], "exclude": ["c"],
            "labelSelector": {"matchLabels": {"site": "home"}},
            "fieldSelector": {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}}}}));
    value["status"] =
        json!({"lastScheduledTime": "2025-01-01T11:00:00Z", "schedulerObservingAffinityName": "home"});
    let (read, _) = karmada::binding(&Tree::from(&value), &Context::new()).expect("the binding is right");
    assert_eq!((read.replicas, read.resource.uid.as_str(), read.observed.as_str()), (3, "u", "home"));
    assert!(read.is_fresh() && read.is_workload());
    assert_eq!(read.clusters[0].replicas, 2);
    assert!(read.evicting.contains("b"));
    let affinity = read.placement.expect("it has one").affinity.expect("it has one");
    assert_eq!((affinity.names, affinity.exclude), (vec!["a".to_owned()], vec!["c".to_owned()]));
    assert!(affinity.labels.is_some() && affinity.fields.is_some_and(|fields| fields.len() == 1));
}

#[test]
fn admission_fills_in_what_a_policy_leaves_out_and_a_binding_keeps_it_missing() {
    let missing = json!({"spreadConstraints": [{}], "replicaScheduling": {}});
    let (read, _) = karmada::policy(&Tree::from(&policy(&missing))).expect("the policy is right");
    assert_eq!(read.placement.division, Division::Weighted(None), "divided, by weights");
    assert_eq!((&read.placement.spread[0].by, read.placement.spread[0].min), (&By::Cluster, 1));
    assert_eq!(read.placement.spread[0].max, 0, "no default");
    let (bound, _) = karmada::binding(&Tree::from(&binding(&json!({"placement": missing}))), &Context::new())
        .expect("it is right");
    let placement = bound.placement.expect("it has one");
    assert_eq!(placement.division, Division::Unknown { kind: "Divided".into(), preference: String::new() });
    assert_eq!((&placement.spread[0].by, placement.spread[0].min), (&By::Unsaid, 0));
    let (empty, _) = karmada::policy(&Tree::from(&policy(&json!({})))).expect("the policy is right");
    assert_eq!(empty.placement.division, Division::Duplicated);
}

#[test]
fn values_the_schema_refuses_are_problems() {
    let value = policy(&json!({
        "clusterAffinities": [{"affinityName": ""}, {"affinityName": "a".repeat(33)}],
        "spreadConstraints": [{"spreadByField": "planet"}, {"spreadByField": "zone", "spreadByLabel": "rack"}],
        "replicaScheduling": {"replicaSchedulingType": "Shared", "weightPreference":
            {"staticWeightList": [{"weight": 0}], "dynamicWeight": "Mood"}}}));
    let error = karmada::policy(&Tree::from(&value)).expect_err("much is wrong");
    assert_eq!(
        problems(&error),
        [
            "spec.placement.clusterAffinities[0].affinityName: must not be empty",
            "spec.placement.clusterAffinities[1].affinityName: expected at most 32 characters, found 33",
            "spec.placement.spreadConstraints[0].spreadByField: expected cluster, region, zone or provider, found \"planet\"",
            "spec.placement.spreadConstraints[1].spreadByLabel: spreadByField and spreadByLabel exclude each other",
            "spec.placement.replicaScheduling.weightPreference.dynamicWeight: expected AvailableReplicas, found \"Mood\"",
            "spec.placement.replicaScheduling.weightPreference.staticWeightList[0].weight: expected 1 or more, found 0",
            "spec.placement.replicaScheduling.replicaSchedulingType: expected Duplicated or Divided, found \"Shared\"",
        ]
    );
    let too_many = binding(&json!({"replicas": 3_000_000_000_u64}));
    let error = karmada::binding(&Tree::from(&too_many), &Context::new()).expect_err("it does not fit");
    assert_eq!(problems(&error), ["spec.replicas: expected a whole number of 32 bits, found a number"]);
}

#[test]
fn a_plain_workload_is_bound_as_karmada_would() {
    let pod = |containers: Value| json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}});
    let asking = pod(json!([{"name": "a", "resources": {"limits": {"cpu": "2"}}}]));
    let plain = pod(json!([{"name": "a"}]));
    for (why, kind, spec, replicas, asks) in [
        ("replicas and requests", "Deployment", json!({"replicas": 3, "template": asking}), 3, true),
        ("one by default, nothing asked", "StatefulSet", json!({"template": plain}), 1, false),
        (
            "no more at once than to be done",
            "Job",
            json!({"parallelism": 5, "completions": 2, "template": plain}),
            2,
            false,
        ),
        ("as many at once", "Job", json!({"parallelism": 5, "template": asking}), 5, true),
    ] {
        let version = if kind == "Job" { "batch/v1" } else { "apps/v1" };
        let value = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "web", "uid": "u1"}, "spec": spec});
        let (read, _) =
            karmada::workload(&Tree::from(&value), &Context::new()).expect("the workload is right");
        assert_eq!((read.replicas, read.ask.is_some()), (replicas, asks), "{why}");
        assert_eq!((&*read.resource.key.namespace, read.resource.uid.as_str()), ("default", "u1"), "{why}");
    }
}

#[test]
fn a_policy_is_about_what_it_selects() {
    let (read, _) = karmada::policy(&Tree::from(&policy(&json!({})))).expect("the policy is right");
    let (bound, _) =
        karmada::binding(&Tree::from(&binding(&json!({}))), &Context::new()).expect("the binding is right");
    let none = std::collections::BTreeMap::new();
    assert!(read.is_about(&bound.resource, &none));
    let mut other = bound.resource.clone();
    other.key.name = "api".into();
    assert!(!read.is_about(&other, &none));
    other = bound.resource.clone();
    other.key.namespace = "elsewhere".into();
    assert!(!read.is_about(&other, &none), "a policy of a namespace stays there");
}

// Row 31: what is remembered and cannot be read counts as another placement.
#[test]
fn the_last_placement_is_remembered_in_an_annotation() {
    let with = |text: &str| {
        let mut value = binding(&json!({}));
        value["metadata"]["annotations"] = json!({"policy.karmada.io/applied-placement": text});
        karmada::applied(&Tree::from(&value))
    };
    assert_eq!(karmada::applied(&Tree::from(&binding(&json!({})))), Applied::Never);
    assert_eq!(with(""), Applied::Never);
    for text in ["{", "[]", "{\"spreadConstraints\": 3}"] {
        assert_eq!(with(text), Applied::Unreadable, "{text}");
    }
    let text = r#"{"replicaScheduling":{"replicaSchedulingType":"Duplicated"}}"#;
    assert!(matches!(with(text), Applied::Placement(last) if last.division == Division::Duplicated));
}
