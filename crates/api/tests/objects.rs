//! Events, workloads, namespaces, budgets: the smaller objects.

use loadline_api::json::Tree;
use loadline_api::{cluster, event, owners};
use loadline_core::load::recommend::Form;
use loadline_core::select::Lookup;
use loadline_core::view::Texts;
use loadline_core::view::siblings::Maker;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn scheduled(message: &str) -> Value {
    json!({"type": "Normal", "reason": "Scheduled", "message": message, "count": 1,
        "lastTimestamp": "2025-01-01T00:00:05Z", "eventTime": null,
        "involvedObject": {"kind": "Pod", "namespace": "shop", "name": "web-1", "uid": "u1"}})
}

#[test]
fn a_scheduled_event_tells_of_a_binding() {
    let binding = event::binding(&Tree::from(&scheduled("Successfully assigned shop/web-1 to n1"))).unwrap();
    assert_eq!((binding.pod_namespace.as_str(), binding.pod_name.as_str()), ("shop", "web-1"));
    assert_eq!((binding.pod_uid.as_deref(), binding.node.as_str()), (Some("u1"), "n1"));
    assert_eq!(binding.at, "2025-01-01T00:00:05Z".parse().unwrap());
}

#[test]
fn the_message_is_read_word_by_word() {
    for (message, want) in [
        ("Successfully assigned shop/web-1 to n1", Some(("shop", "web-1", "n1"))),
        ("Successfully assigned shop/web-1 to n1 after all", Some(("shop", "web-1", "n1"))),
        ("Successfully assigned web-1 to n1", Some(("shop", "web-1", "n1"))),
        ("Successfully assigned a/b/c to n1", None),
        ("Successfully assigned shop/ to n1", None),
        ("Successfully assigned shop/web-1", None),
        ("Successfully assigned shop/web-1 on n1", None),
        ("successfully assigned shop/web-1 to n1", None),
        ("Binding: Successfully assigned shop/web-1 to n1", None),
        ("", None),
    ] {
        let got = event::binding(&Tree::from(&scheduled(message)));
        let got = got.as_ref().map(|b| (b.pod_namespace.as_str(), b.pod_name.as_str(), b.node.as_str()));
        assert_eq!(got, want, "{message:?}");
    }
}

#[test]
fn words_of_a_message_may_be_any_white_space_apart() {
    for message in ["Successfully  assigned shop/web-1 to n1", " Successfully assigned\nshop/web-1\tto n1\n"]
    {
        let binding = event::binding(&Tree::from(&scheduled(message))).unwrap();
        assert_eq!((&*binding.pod_name, &*binding.node), ("web-1", "n1"), "{message:?}");
    }
}

#[test]
fn only_normal_scheduled_events_count() {
    for (key, value) in
        [("type", json!("Warning")), ("reason", json!("FailedScheduling")), ("message", json!(null))]
    {
        let mut event = scheduled("Successfully assigned shop/web-1 to n1");
        event[key] = value;
        assert_eq!(event::binding(&Tree::from(&event)), None, "{key}");
    }
}

#[test]
fn the_time_is_the_last_one_counted_or_that_of_the_event_in_whole_seconds() {
    let (last, micro) = ("2025-01-01T00:00:05Z", "2025-01-01T00:00:07.654321Z");
    for (why, count, last, event_time, want) in [
        ("counted", json!(3), json!(last), json!(micro), Some(last)),
        ("not counted", json!(null), json!(null), json!(micro), Some("2025-01-01T00:00:07Z")),
        ("counted as none", json!(0), json!(last), json!(micro), Some("2025-01-01T00:00:07Z")),
        ("no time is no binding", json!(null), json!(last), json!(null), None),
        ("counted without a time", json!(1), json!(null), json!(micro), None),
        ("nonsense", json!(1), json!("soon"), json!(micro), None),
    ] {
        let mut event = scheduled("Successfully assigned shop/web-1 to n1");
        event["count"] = count;
        event["lastTimestamp"] = last;
        event["eventTime"] = event_time;
        let got = event::binding(&Tree::from(&event)).map(|b| b.at);
        assert_eq!(got, want.map(|t| t.parse().unwrap()), "{why}");
    }
    let newer = json!({"apiVersion": "events.k8s.io/v1", "type": "Normal", "reason": "Scheduled",
        "note": "Successfully assigned shop/web-1 to n1", "eventTime": micro,
        "regarding": {"namespace": "shop", "name": "web-1", "uid": "u1"}});
    let binding = event::binding(&Tree::from(&newer)).unwrap();
    assert_eq!(
        (binding.pod_uid.as_deref(), binding.at),
        (Some("u1"), "2025-01-01T00:00:07Z".parse().unwrap())
    );
}

#[test]
fn a_workload_has_a_controller_and_perhaps_advice() {
    let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {
        "namespace": "shop", "name": "web-5d9", "uid": "u2", "ownerReferences": [
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "u1", "controller": true}]}});
    let (workload, warnings) = owners::read(&Tree::from(&set)).unwrap();
    assert!(warnings.is_empty());
    assert_eq!(workload.target.to_string(), "ReplicaSet shop/web-5d9");
    assert_eq!((&*workload.target.group, workload.uid.as_str()), ("apps", "u2"));
    let owner = workload.controller.unwrap();
    assert_eq!((&*owner.group, &*owner.kind, &*owner.name), ("apps", "Deployment", "web"));
    assert_eq!(workload.advice, None);

    let metadata_only = json!({"metadata": {"name": "night", "annotations": {
        "analysis.crane.io/resource-recommendation":
            "containers:\n- containerName: main\n  target:\n    cpu: 114m\n    memory: \"120586239\"\n"}}});
    let (workload, warnings) = owners::read_as("batch", "CronJob", &Tree::from(&metadata_only)).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let advice = workload.advice.unwrap();
    assert_eq!((&advice.target, advice.shape, advice.success), (&workload.target, Form::Annotation, true));
    assert_eq!(&*advice.name, "CronJob default/night");
    let main = advice.containers["main"];
    assert_eq!((main.cpu_nano, main.memory_bytes), (Some(114_000_000), Some(120_586_239)));

    assert!(owners::read(&Tree::from(&json!({"metadata": {"name": "x"}}))).is_err(), "of no kind");
}

#[test]
fn some_workloads_say_which_pods_are_theirs() {
    let labels = json!({"app": "web"});
    let structured =
        json!({"matchLabels": labels, "matchExpressions": [{"key": "rev", "operator": "Exists"}]});
    let odd = json!({"matchExpressions": [{"key": "rev", "operator": "Near"}]});
    for (version, kind, selector, want, warned, why) in [
        (
            "apps/v1",
            "ReplicaSet",
            &structured,
            Some((Maker::ReplicaSet, Some("app=web,rev"))),
            0,
            "structured",
        ),
        (
            "apps/v1",
            "StatefulSet",
            &structured,
            Some((Maker::StatefulSet, Some("app=web,rev"))),
            0,
            "structured",
        ),
        (
            "v1",
            "ReplicationController",
            &labels,
            Some((Maker::ReplicationController, Some("app=web"))),
            0,
            "plain",
        ),
        ("apps/v1", "ReplicaSet", &json!(null), Some((Maker::ReplicaSet, None)), 0, "none selects nobody"),
        ("apps/v1", "ReplicaSet", &odd, Some((Maker::ReplicaSet, None)), 1, "nor does one that is not valid"),
        ("apps/v1", "Deployment", &structured, None, 0, "its replica sets do"),
        ("batch/v1", "Job", &structured, None, 0, "its pods are not spread"),
        ("example.com/v1", "ReplicaSet", &structured, None, 0, "of the same name elsewhere"),
    ] {
        let object = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": {"selector": selector}});
        let (workload, warnings) = owners::read(&Tree::from(&object)).unwrap();
        let found = workload.selects.map(|(maker, s)| (maker, s.requirements().map(|_| s.to_string())));
        assert_eq!(found, want.map(|(maker, s)| (maker, s.map(str::to_owned))), "{kind}: {why}");
        assert_eq!(warnings.len(), warned, "{kind}: {why}");
    }
}

#[test]
fn a_service_selects_by_labels() {
    for (spec, want) in [
        (json!({"selector": {"app": "web"}}), vec![("app", "web")]),
        (json!({"selector": null, "externalName": "x"}), vec![]),
        (json!({}), vec![]),
    ] {
        let object = json!({"metadata": {"name": "web", "namespace": "shop"}, "spec": spec});
        let service = cluster::service(&Tree::from(&object)).unwrap();
        assert_eq!(service.key.to_string(), "shop/web");
        let found: Vec<_> = service.selector.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(found, want);
    }
}

#[test]
fn an_annotation_that_does_not_read_is_passed_over_with_a_warning() {
    for text in
        ["containers: {", "containers: 5", "- a", "containers:\n- containerName: a\n  target: {cpu: lots}"]
    {
        let set = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"namespace": "shop",
            "name": "web", "annotations": {"analysis.crane.io/resource-recommendation": text}}});
        let (workload, warnings) = owners::read(&Tree::from(&set)).unwrap();
        assert_eq!(workload.advice, None, "{text:?}");
        let [warning] = warnings.as_slice() else { panic!("{text:?}: {warnings:?}") };
        let want = "Deployment shop/web: metadata.annotations[analysis.crane.io/resource-recommendation]";
        assert!(warning.to_string().starts_with(want), "{warning}");
    }
}

#[test]
fn a_budget_without_selector_is_for_no_pod_and_with_an_empty_one_for_all() {
    let budget = |selector: Value| {
        let value = json!({"metadata": {"namespace": "shop", "name": "web"}, "spec": {"selector": selector},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"web-2": "2025-01-01T00:00:00Z", "web-1": null}}});
        cluster::budget(&Tree::from(&value)).unwrap()
    };
    let (web, db): (BTreeMap<_, _>, BTreeMap<_, _>) =
        ([("app".to_owned(), "web".to_owned())].into(), [("app".to_owned(), "db".to_owned())].into());
    for (selector, for_web, for_db) in [
        (json!(null), false, false),
        (json!({}), true, true),
        (json!({"matchLabels": {"app": "web"}}), true, false),
    ] {
        let (budget, warnings) = budget(selector.clone());
        assert!(warnings.is_empty());
        assert_eq!(
            (budget.selector.matches(&web), budget.selector.matches(&db)),
            (for_web, for_db),
            "{selector}"
        );
        assert_eq!((&*budget.key.namespace, &*budget.key.name, budget.allowed), ("shop", "web", 2));
        assert_eq!(budget.disrupted.iter().map(|p| &**p).collect::<Vec<_>>(), ["web-1", "web-2"]);
    }
    let (bad, warnings) = budget(json!({"matchLabels": {"not a key": "x"}}));
    assert!(!bad.selector.matches(&web));
    assert!(warnings[0].to_string().starts_with("PodDisruptionBudget shop/web: spec.selector: label key"));
    let new = json!({"metadata": {"name": "new"}, "spec": {"selector": {}}});
    assert_eq!(cluster::budget(&Tree::from(&new)).unwrap().0.allowed, 0, "nobody has counted yet");
}

#[test]
fn the_name_of_a_namespace_is_among_its_labels() {
    let value = json!({"metadata": {"name": "shop", "labels": {"env": "prod"}}});
    let facts = cluster::namespace_facts(&Tree::from(&value), &mut Texts::default()).unwrap();
    assert_eq!(&*facts.name, "shop");
    assert_eq!(facts.labels.value("env"), Some("prod"));
    assert_eq!(facts.labels.value("kubernetes.io/metadata.name"), Some("shop"));
}
