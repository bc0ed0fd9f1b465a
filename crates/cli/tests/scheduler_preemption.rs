//! `loadline scheduler` on a real kube-apiserver makes room for pods that are worth more: by the Eviction API, as far as
//! disruption budgets allow, with an account that may do what the shipped file says. Who was asked to go and what came of it is
//! read from the audit log of the API server.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/account.rs"]
mod account;
#[path = "common/service.rs"]
mod service;

use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use service::{Service, until};

const SHIPPED: &str = include_str!("../../../deploy/scheduler/scheduler.yaml");
const PODS: &str = "/api/v1/namespaces/default/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// The one that is shipped.
fn configuration() -> String {
    let objects = SHIPPED.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let mut texts = objects.filter_map(|object| Some(object["data"]["scheduler.yaml"].as_str()?.to_owned()));
    texts.next().unwrap()
}

/// A node of one core, and a pod on it that takes most of it and runs.
fn full_node(plane: &ControlPlane, name: &str) {
    let has = json!({"cpu": "1", "memory": "4Gi", "pods": "10"});
    plane.add_node(name, &json!({"kubernetes.io/hostname": name}), &has).unwrap();
    let mut pod = pod(name, "lesser");
    pod["spec"]["nodeName"] = json!(name);
    pod["metadata"]["labels"] = json!({"on": name});
    plane.create(PODS, &pod).unwrap();
    // Whoever does not run is no concern of a budget.
    let status = json!({"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    plane.patch(&format!("{PODS}/{name}/status"), &status).unwrap();
}

fn pod(name: &str, class: &str) -> Value {
    let requests = json!({"cpu": "600m", "memory": "16Mi"});
    json!({"metadata": {"name": name}, "spec": {
        "schedulerName": "loadline", "priorityClassName": class, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "i", "resources": {"requests": requests}}]}})
}

/// What became of every question whether a pod may go, in their order.
fn evictions(plane: &ControlPlane) -> Vec<(String, u64)> {
    let log = plane.audit().unwrap();
    let asked = log.iter().filter(|entry| {
        entry["objectRef"]["subresource"] == "eviction" && entry["stage"] == "ResponseComplete"
    });
    let asked = asked.map(|entry| {
        let agent = entry["userAgent"].as_str().unwrap();
        assert!(agent.starts_with("loadline-scheduler/"), "{agent}");
        assert_eq!(entry["user"]["username"], "system:serviceaccount:kube-system:loadline-scheduler");
        let name = entry["objectRef"]["name"].as_str().unwrap().to_owned();
        (name, entry["responseStatus"]["code"].as_u64().unwrap())
    });
    asked.collect()
}

/// What a request to the API server was forbidden, if any was.
fn forbidden(scheduler: &Service) -> Vec<String> {
    let metrics = scheduler.get("/metrics");
    metrics.lines().filter(|line| line.contains("outcome=\"forbidden\"")).map(str::to_owned).collect()
}

#[test]
fn who_is_worth_less_goes_unless_a_budget_keeps_it_and_then_as_soon_as_that_lets_it() {
    let Some(plane) = ControlPlane::setup().audited().start_or_skip() else { return };
    for (name, value) in [("lesser", 1), ("important", 1000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).unwrap();
    }
    full_node(&plane, "free");
    full_node(&plane, "guarded");
    let budget = json!({"metadata": {"name": "keep"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"on": "guarded"}}}});
    plane.create(BUDGETS, &budget).unwrap();
    let allow = |count: i64| {
        let status = json!({"status": {"observedGeneration": 1, "disruptionsAllowed": count, "currentHealthy": 1,
            "desiredHealthy": 1, "expectedPods": 1}});
        plane.patch(&format!("{BUDGETS}/keep/status"), &status).unwrap();
    };
    allow(0);

    let kubeconfig = account::least_privilege(&plane, SHIPPED, "loadline-scheduler");
    let file = plane.folder().join("scheduler.yaml").display().to_string();
    std::fs::write(&file, configuration()).unwrap();
    let scheduler =
        Service::start(&["scheduler", "--config", &file, "--leader-elect", "--kubeconfig", &kubeconfig]);
    scheduler.until("active");
    let get = |name: &str| plane.get(&format!("{PODS}/{name}"));
    let bound = |name: &str| {
        until("it to have a node", || get(name).unwrap()["spec"]["nodeName"].as_str().map(str::to_owned))
    };

    // Both nodes could be cleared; of one of them the budget says no.
    plane.create(PODS, &pod("first", "important")).unwrap();
    assert_eq!(bound("first"), "free");
    assert_eq!(evictions(&plane), [("free".to_owned(), 201)]);

    // Only that one is left. It is asked, and stays; the place on its node is kept meanwhile.
    plane.create(PODS, &pod("second", "important")).unwrap();
    until("its node to be named", || {
        (get("second").unwrap()["status"]["nominatedNodeName"] == "guarded").then_some(())
    });
    until("the refusal", || evictions(&plane).get(1).cloned());
    let tries = || scheduler.sum("scheduler_schedule_attempts_total{result=\"unschedulable\"");
    let before = tries();
    plane.patch("/api/v1/nodes/free", &json!({"metadata": {"labels": {"news": "some"}}})).unwrap();
    until("it to be tried again", || (tries() > before + 0.5).then_some(()));
    let (free, guarded) = (("free".to_owned(), 201), ("guarded".to_owned(), 429));
    let asked = evictions(&plane);
    assert!(asked[0] == free && asked[1..].iter().all(|one| *one == guarded), "{asked:?}");
    assert!(get("guarded").unwrap()["metadata"]["deletionTimestamp"].is_null());
    assert!(get("second").unwrap()["spec"]["nodeName"].is_null());
    let said = get("second").unwrap()["status"]["conditions"][0]["message"].as_str().unwrap().to_owned();
    assert!(said.starts_with("0/2 nodes are available: 2 Insufficient cpu."), "{said}");

    // The budget lets one go.
    allow(1);
    assert_eq!(bound("second"), "guarded");
    let gone: Vec<(String, u64)> = evictions(&plane).into_iter().filter(|(_, code)| *code == 201).collect();
    assert_eq!(gone, [free, ("guarded".to_owned(), 201)], "each was evicted once");
    assert_eq!(forbidden(&scheduler), Vec::<String>::new());
    assert!(scheduler.ends());
}
