//! `loadline scheduler` with a real node: its pods run there, and what they really use decides where the next one goes.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::{ControlPlane, MetricsServer, RealNode};
use serde_json::{Value, json};
use service::{Service, until};

const PODS: &str = "/api/v1/namespaces/default/pods";
const EVENTS: &str = "/apis/events.k8s.io/v1/namespaces/default/events";

/// The line of the node, in thousandths of a core; the machine may have any number of them.
const LINE: f64 = 300.0;
/// What a pod requests: a dozen of them are far below the line.
const REQUEST: &str = "20m";
/// What the busy pod is told to use. A busy machine may not give it all, but what is above the line is enough.
const BURN: &str = "600";

/// A line for CPU, and no other limit: what else the machine does must not matter.
fn policy(cores: f64) -> String {
    let target = LINE / 1000.0 / cores;
    format!(
        "apiVersion: scheduler.policy.crane.io/v1alpha1
kind: DynamicSchedulerPolicy
spec:
  syncPolicy: [{{name: cpu_usage_avg_5m, period: 3m}}]
  priority: [{{name: cpu_usage_avg_5m, weight: 1}}]
---
apiVersion: loadline.dev/v1alpha1
kind: LoadSettings
spec:
  targets: {{cpu: {target:.6}, memory: 1}}
"
    )
}

/// A pod of ours, for whatever node will do.
fn pod(node: &RealNode, name: &str, args: &[&str]) -> Value {
    let mut pod = node.pod(name, args);
    let spec = pod["spec"].as_object_mut().unwrap();
    spec.remove("nodeName");
    spec.insert("schedulerName".into(), json!("loadline"));
    spec["containers"][0]["resources"] = json!({"requests": {"cpu": REQUEST, "memory": "16Mi"}});
    pod
}

fn get(plane: &ControlPlane, pod: &str) -> Value {
    plane.get(&format!("{PODS}/{pod}")).unwrap()
}

/// What our scheduler told of a pod, once it did, by reason.
fn told(plane: &ControlPlane, pod: &str, reason: &str) -> String {
    until(reason, || {
        let events = plane.get(EVENTS).ok()?;
        let ours = events["items"].as_array()?.iter().find(|event| {
            event["regarding"]["name"] == pod
                && event["reason"] == reason
                && event["reportingController"] == "loadline-scheduler"
        })?;
        Some(ours["note"].as_str()?.to_owned())
    })
}

/// What the scheduler says of a node for another pod like this one.
fn explained(scheduler: &Service, pod: &str, node: &str) -> Option<Value> {
    let answer = scheduler.get(&format!("/debug/explain/pods/default/{pod}"));
    let report: Value = serde_json::from_str(answer.lines().last()?).ok()?;
    report["now"]["nodes"].as_array()?.iter().find(|found| found["node"] == node).cloned()
}

#[test]
fn a_pod_that_burns_cpu_on_a_real_node_sends_the_next_one_to_a_neighbour() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let object = plane.get(&format!("/api/v1/nodes/{}", node.name())).unwrap();
    let cores: f64 = object["status"]["allocatable"]["cpu"].as_str().unwrap().parse().unwrap();
    let file = plane.folder().join("policy.yaml");
    std::fs::write(&file, policy(cores)).unwrap();
    let (kubeconfig, file) = (plane.kubeconfig(), file.display().to_string());
    let scheduler = Service::start(&[
        "scheduler",
        "--kubeconfig",
        kubeconfig.to_str().unwrap(),
        "--policy",
        &file,
        "--metrics-interval",
        "1s",
    ]);
    scheduler.until("active");

    // Nobody measures yet: by what they request, both are far below the line.
    for (name, args) in [("quiet", &["pause"][..]), ("busy", &["burn", BURN])] {
        plane.create(PODS, &pod(&node, name, args)).unwrap();
        node.wait_until(|| get(&plane, name)["status"]["phase"] == "Running").unwrap();
        assert_eq!(get(&plane, name)["spec"]["nodeName"], node.name());
        let said = format!("Successfully assigned default/{name} to {}", node.name());
        assert_eq!(told(&plane, name, "Scheduled"), said);
    }

    let metrics = MetricsServer::start(&plane, &node).unwrap();
    let used = until("the busy pod to be measured", || {
        metrics.pod("busy").filter(|usage| usage.cpu_milli > LINE).map(|usage| usage.cpu_milli)
    });
    println!("the busy pod uses {used}m, and the line is at {LINE}m");
    until("the scheduler to know of it", || {
        let found = explained(&scheduler, "busy", node.name())?;
        (found["fits"] == false).then_some(())
    });

    // It requests what the others did. By requests there is room for it.
    plane.create(PODS, &pod(&node, "next", &["pause"])).unwrap();
    let refused = "0/1 nodes are available: 1 node(s) would pass the load line.";
    assert!(told(&plane, "next", "FailedScheduling").starts_with(refused));
    let found = explained(&scheduler, "next", node.name()).unwrap();
    let reasons: Vec<&str> = found["reasons"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(matches!(&reasons[..], [one] if one.starts_with("cpu would pass the line: ")), "{reasons:?}");

    // A neighbour that nobody runs, ten times as large, of which next to nothing is used.
    let has = json!({"cpu": format!("{}", 10.0 * cores), "memory": "64Gi", "pods": "100"});
    plane.add_node("neighbour", &json!({}), &has).unwrap();
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
    let annotations = json!({"cpu_usage_avg_5m": format!("0.00100,{now}")});
    plane.patch("/api/v1/nodes/neighbour", &json!({"metadata": {"annotations": annotations}})).unwrap();
    let next = until("the next pod to have a node", || {
        get(&plane, "next")["spec"]["nodeName"].as_str().map(str::to_owned)
    });
    assert_eq!(next, "neighbour");
    assert_eq!(told(&plane, "next", "Scheduled"), "Successfully assigned default/next to neighbour");

    // Who wants the real node and no other waits, and is told why; who runs there stays.
    let mut pinned = pod(&node, "pinned", &["pause"]);
    pinned["spec"]["nodeSelector"] = json!({"kubernetes.io/hostname": node.name()});
    plane.create(PODS, &pinned).unwrap();
    let refused = told(&plane, "pinned", "FailedScheduling");
    for part in ["0/2 nodes are available: ", "1 node(s) would pass the load line", "node affinity/selector"]
    {
        assert!(refused.contains(part), "{refused}");
    }
    for name in ["quiet", "busy"] {
        assert_eq!(get(&plane, name)["status"]["phase"], "Running", "{name}");
    }
    assert!(scheduler.ends());
}
