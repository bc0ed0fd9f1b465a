//! Nodes as facts.

use loadline_api::json::Tree;
use loadline_api::{Context, node};
use loadline_core::quantity::Quantity;
use loadline_core::select::taint::Effect;
use loadline_core::view::images::ImageName;
use serde_json::{Value, json};

fn worker() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "n1", "labels": {"zone": "a"}, "annotations": {"node_hot_value": "1,2025"},
            "creationTimestamp": null},
        "spec": {"unschedulable": true, "taints": [
            {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule", "timeAdded": "2025-01-01T00:00:00Z"},
            {"key": "gpu", "value": "yes", "effect": "NoExecute"}]},
        "status": {
            "allocatable": {"cpu": "3910m", "memory": "15Gi", "pods": "110", "example.com/gpu": 2},
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"}]}
    })
}

fn amount(text: &str) -> Quantity {
    text.parse().expect("tests write valid quantities")
}

#[test]
fn a_node_becomes_facts() {
    let (facts, warnings) = node::facts(&Tree::from(&worker())).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(facts.name, "n1");
    assert_eq!(facts.labels["zone"], "a");
    assert_eq!(facts.annotations["node_hot_value"], "1,2025");
    assert!(facts.unschedulable);
    assert_eq!(facts.taints.len(), 2);
    assert_eq!(facts.taints[1].effect, Effect::NoExecute);
    assert_eq!(facts.allocatable["cpu"], amount("3910m"));
    assert_eq!(facts.allocatable["example.com/gpu"], amount("2"), "a number is a quantity, too");
    assert_eq!(facts.capacity["memory"], amount("16Gi"));
}

#[test]
fn images_are_read_by_name_and_size_for_who_asks() {
    let mut node = worker();
    node["status"]["images"] = json!([
        {"names": ["web@sha256:00ff", "web:1"], "sizeBytes": 5_000_000_000i64},
        {"names": ["db:2"]},
        {"sizeBytes": 7},
        {"names": "odd", "sizeBytes": "odd"},
        {"names": ["late:1", 3], "sizeBytes": 8},
        "odd",
    ]);
    let (facts, warnings) = node::with_images(&Tree::from(&node)).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    let want = [("web@sha256:00ff", 5_000_000_000), ("web:1", 5_000_000_000), ("db:2", 0), ("late:1", 8)];
    assert_eq!(facts.images, want.map(|(name, size)| (ImageName::held(name), size)));
    let (facts, _) = node::facts(&Tree::from(&node)).unwrap();
    assert!(facts.images.is_empty(), "nobody else pays for them");
}

#[test]
fn a_bare_node_is_a_node() {
    for value in [
        json!({"metadata": {"name": "n1"}}),
        json!({"metadata": {"name": "n1", "labels": null}, "spec": null, "status": {"allocatable": null}}),
    ] {
        let (facts, warnings) = node::facts(&Tree::from(&value)).unwrap();
        assert_eq!((facts.name.as_str(), facts.allocatable.len(), warnings.len()), ("n1", 0, 0));
    }
}

/// Unknown is never zero: the resource is not there, and somebody is told.
#[test]
fn an_amount_that_does_not_read_is_left_out_with_a_warning() {
    for (bad, why) in [
        (json!("4 cores"), "must be a number"),
        (json!(""), "must be a number"),
        (json!("4X"), "must be a number"),
        (json!("1e"), "unknown suffix"),
        (json!("NaN"), "must be a number"),
        (json!("Inf"), "must be a number"),
        (json!("-4"), "must not be negative"),
        (json!(null), "found nothing"),
        (json!([]), "a quantity such as"),
        (json!(true), "a quantity such as"),
    ] {
        let mut node = worker();
        node["status"]["allocatable"]["cpu"] = bad.clone();
        let (facts, warnings) = node::facts(&Tree::from(&node)).unwrap();
        assert!(!facts.allocatable.contains_key("cpu"), "{bad}");
        assert_eq!(facts.allocatable["memory"], amount("15Gi"), "{bad}: the others stay");
        let [warning] = warnings.as_slice() else { panic!("{bad}: {warnings:?}") };
        let text = warning.to_string();
        assert!(text.starts_with("Node n1: status.allocatable.cpu: "), "{text}");
        assert!(text.contains(why), "{bad}: {text}");
    }
}

#[test]
fn every_problem_is_told_at_once() {
    let node = json!({"metadata": {"labels": {"a": 1}}, "spec": {"unschedulable": "yes", "taints": {}}});
    let error = node::facts(&Tree::from(&node)).unwrap_err().to_string();
    assert_eq!(
        error,
        "Node without a name: metadata.name: must not be empty; metadata.labels.a: expected a string, found a \
         number; spec.taints: expected a list, found an object; spec.unschedulable: expected true or false, \
         found a string"
    );
    assert_eq!(
        node::facts(&Tree::from(&json!([]))).unwrap_err().problems[0].problem,
        "expected an object, found a list"
    );
}

#[test]
fn readiness_is_told_but_is_no_fact() {
    for (status, want) in [("True", Some(true)), ("False", Some(false)), ("Unknown", None)] {
        let node = json!({"status": {"conditions": [{"type": "Ready", "status": status}]}});
        assert_eq!(node::is_ready(&Tree::from(&node)), want, "{status}");
    }
    assert_eq!(node::is_ready(&Tree::from(&json!({}))), None);
}

#[test]
fn limits_on_volumes_come_from_the_csi_node_of_the_same_name() {
    let mut context = Context::new();
    context
        .csi_node(&Tree::from(&json!({"metadata": {"name": "n1"}, "spec": {"drivers": [
            {"name": "ebs.csi.aws.com", "nodeID": "i-1", "allocatable": {"count": 25}},
            {"name": "efs.csi.aws.com", "nodeID": "i-1", "allocatable": null},
        ]}})))
        .unwrap();
    let (mut facts, _) = node::facts(&Tree::from(&worker())).unwrap();
    context.complete(&mut facts);
    assert_eq!(facts.attach_limits, [("ebs.csi.aws.com".to_owned(), 25)].into(), "no limit is no entry");
    context.remove_csi_node("n1");
    context.complete(&mut facts);
    assert!(facts.attach_limits.is_empty());
}
