//! `loadline scheduler --shadow` beside the real kube-scheduler, with an account that may only list and watch.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::{BTreeMap, BTreeSet};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BURST: usize = 20;
const ACCOUNT: &str = "shadow";

/// A kubeconfig for who may read everything and write nothing.
fn read_only(plane: &ControlPlane) -> String {
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    let rules = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["list", "watch"]}]);
    let role = json!({"metadata": {"name": ACCOUNT}, "rules": rules});
    plane.create(&format!("{RBAC}/clusterroles"), &role).unwrap();
    let group = "rbac.authorization.k8s.io";
    let binding = json!({"metadata": {"name": ACCOUNT},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": ACCOUNT},
        "subjects": [{"apiGroup": group, "kind": "User", "name": ACCOUNT}]});
    plane.create(&format!("{RBAC}/clusterrolebindings"), &binding).unwrap();
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(plane.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"]["as"] = json!(ACCOUNT);
    let file = plane.folder().join("read-only");
    std::fs::write(&file, config.to_string()).unwrap();
    file.display().to_string()
}

/// A node of which so much is used, as an annotator would write it.
fn node(plane: &ControlPlane, name: &str, cpu: &str, used: &str) {
    plane.add_node(name, &json!({}), &json!({"cpu": cpu, "memory": "64Gi", "pods": "500"})).unwrap();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let annotations = json!({"cpu_usage_avg_5m": format!("{used},{now}")});
    plane
        .patch(&format!("/api/v1/nodes/{name}"), &json!({"metadata": {"annotations": annotations}}))
        .unwrap();
}

/// Where each pod is, once all are somewhere.
fn placed(plane: &ControlPlane) -> BTreeMap<String, String> {
    until("all pods to be bound", || {
        let pods = plane.get(PODS).ok()?;
        let placed: BTreeMap<String, String> = pods["items"]
            .as_array()?
            .iter()
            .filter_map(|pod| {
                let node = pod["spec"]["nodeName"].as_str()?.to_owned();
                Some((format!("default/{}", pod["metadata"]["name"].as_str()?), node))
            })
            .collect();
        (placed.len() == BURST).then_some(placed)
    })
}

#[test]
fn beside_kube_scheduler_it_sends_no_pod_to_the_hot_node_and_writes_nothing() {
    let Some(plane) = ControlPlane::setup().scheduler(&[]).audited_whole().start_or_skip() else { return };
    // By requests the hot one is the best: it has four times as much to give.
    node(&plane, "hot", "32", "0.90000");
    node(&plane, "calm-0", "8", "0.10000");
    node(&plane, "calm-1", "8", "0.10000");
    let shadow = Service::start(&["scheduler", "--shadow", "--kubeconfig", &read_only(&plane)]);
    shadow.until("active");

    for i in 0..BURST {
        let requests = json!({"cpu": "100m", "memory": "16Mi"});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p-{i:02}")}, "spec": {
            "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}});
        plane.create(PODS, &pod).unwrap();
    }
    let placed = placed(&plane);
    let on_hot: BTreeSet<&str> =
        placed.iter().filter(|(_, node)| *node == "hot").map(|(pod, _)| pod.as_str()).collect();
    assert!(!on_hot.is_empty(), "kube-scheduler goes by requests: {placed:?}");

    let report = until("all pods to be counted", || {
        let answer = shadow.get("/debug/shadow");
        let report: Value = serde_json::from_str(answer.lines().last()?).ok()?;
        let counted = report["podsSame"].as_u64()? + report["podsElsewhere"].as_u64()?;
        (counted == BURST as u64).then_some(report)
    });
    assert_eq!(report["podsWaiting"], 0, "{report}");
    let differences = report["differences"].as_array().unwrap();
    for one in differences {
        assert_eq!(one["actual"], placed[one["pod"].as_str().unwrap()], "it knows where each really is");
        assert_ne!(one["shadow"], "hot", "it sends nobody there: {one}");
    }
    let elsewhere: BTreeSet<&str> = differences.iter().filter_map(|one| one["pod"].as_str()).collect();
    assert!(elsewhere.is_superset(&on_hot), "all that went there: {on_hot:?}, {report}");

    assert!(shadow.ends());
    let log = plane.audit().unwrap();
    assert!(log.iter().any(|entry| entry["objectRef"]["subresource"] == "binding"), "it has what is written");
    let ours: Vec<&Value> =
        log.iter().filter(|entry| entry["impersonatedUser"]["username"] == ACCOUNT).collect();
    assert!(ours.is_empty(), "nothing was even tried: {ours:?}");
    let is_of = |entry: &&Value, resource: &str| entry["objectRef"]["resource"] == resource;
    assert!(
        log.iter().any(|entry| is_of(&entry, "events")),
        "an Event would have been seen: kube-scheduler's are"
    );
}
