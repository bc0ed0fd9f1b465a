//! Two real schedulers on a real kube-apiserver: one leads, and when it is killed or stopped the other takes over. Who was
//! stopped never writes again on waking.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::BTreeMap;
use std::path::Path;

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/loadline-scheduler";
const PODS: &str = "/api/v1/namespaces/default/pods";

fn start(kubeconfig: &Path) -> Service {
    let kubeconfig = kubeconfig.to_str().unwrap();
    // Short enough to wait for, long enough for a busy machine.
    let election = ["--leader-elect-lease-duration", "8s", "--leader-elect-renew-deadline", "5s"];
    let mut args = vec!["scheduler", "--leader-elect", "--requests-only", "--kubeconfig", kubeconfig];
    args.extend(election);
    args.extend(["--leader-elect-retry-period", "1s"]);
    Service::start(&args)
}

/// Writes that were carried out for it, leases not counted.
fn writes(of: &Service) -> u64 {
    let text = of.get("/metrics");
    let is_write = |line: &&str| {
        line.starts_with("loadline_scheduler_api_requests_total{")
            && line.contains("outcome=\"done\"")
            && !line.contains("leases")
            && ["create", "patch", "update", "delete"]
                .iter()
                .any(|verb| line.contains(&format!("verb=\"{verb}\"")))
    };
    let count = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    text.lines().filter(is_write).map(count).sum()
}

fn holder(plane: &ControlPlane) -> Option<String> {
    let lease = plane.get(LEASE).ok()?;
    lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
}

fn create(plane: &ControlPlane, prefix: &str, count: usize) {
    for i in 0..count {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("{prefix}-{i}")},
            "spec": {"schedulerName": "loadline", "containers": [{"name": "c", "image": "i"}]}});
        plane.create(PODS, &pod).unwrap();
    }
}

/// Waits until all pods have a node.
fn all_bound(plane: &ControlPlane) {
    until("all pods to be bound", || {
        let pods = plane.get(PODS).unwrap();
        pods["items"].as_array().unwrap().iter().all(|pod| pod["spec"]["nodeName"].is_string()).then_some(())
    });
}

/// Who told of having bound which pod; waits until everybody was told of.
fn bound_by(plane: &ControlPlane, count: usize) -> BTreeMap<String, Vec<String>> {
    until("the events of all pods", || {
        let events = plane.get("/apis/events.k8s.io/v1/namespaces/default/events?limit=5000").unwrap();
        let mut by_pod: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for event in events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "Scheduled")
        {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let pod = text(&event["regarding"]["name"]);
            by_pod.entry(pod).or_default().push(text(&event["reportingInstance"]));
        }
        (by_pod.len() >= count).then_some(by_pod)
    })
}

#[test]
fn one_leads_at_a_time_whoever_is_killed_or_stopped() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let room = json!({"cpu": "64", "memory": "256Gi", "pods": "1000"});
    for name in ["n1", "n2"] {
        plane.add_node(name, &json!({}), &room).unwrap();
    }
    let kubeconfig = plane.kubeconfig();
    let first = start(&kubeconfig);
    first.until("active");
    let first_name = holder(&plane).unwrap();
    let second = start(&kubeconfig);
    second.until("standing by");
    create(&plane, "one", 5);
    all_bound(&plane);

    // Killed: nobody says goodbye.
    first.signal("KILL");
    second.until("active");
    let second_name = holder(&plane).unwrap();
    assert_ne!(first_name, second_name);
    create(&plane, "two", 5);
    all_bound(&plane);

    // Stopped while it has its hands full.
    let third = start(&kubeconfig);
    third.until("standing by");
    create(&plane, "three", 60);
    second.signal("STOP");
    third.until("active");
    let third_name = holder(&plane).unwrap();
    assert!(![&first_name, &second_name].contains(&&third_name));
    create(&plane, "four", 20);
    all_bound(&plane);
    let revision = plane.get(LEASE).unwrap()["spec"]["leaseTransitions"].as_u64();
    assert_eq!(revision, Some(2));

    // It wakes, and finds that it does not lead any more.
    second.signal("CONT");
    second.until("standing by");
    let before = writes(&second);
    create(&plane, "five", 20);
    all_bound(&plane);
    assert_eq!(writes(&second), before, "it never writes again");
    assert_eq!(holder(&plane), Some(third_name.clone()));

    let told = bound_by(&plane, 45);
    for (pod, by) in &told {
        assert_eq!(by.len(), 1, "{pod} was bound once: {by:?}");
    }
    for (prefix, by) in
        [("one", &first_name), ("two", &second_name), ("four", &third_name), ("five", &third_name)]
    {
        let all = told.iter().filter(|(pod, _)| pod.starts_with(&format!("{prefix}-")));
        assert!(
            all.clone().count() > 0 && all.clone().all(|(_, who)| who.as_slice() == std::slice::from_ref(by)),
            "{prefix}: {told:#?}"
        );
    }

    // Ended as asked, it lets go at once: the lease does not have to run out.
    assert!(third.ends());
    second.until("active");
}
