//! `loadline scheduler` on a real kube-apiserver makes room for pods that are worth more: by the Eviction API, as far as
//! disruption budgets allow, with an account that may do what the shipped file says. Who was asked to go and what came of it is
//! read from the audit log of the API server. How many pods may go is worked out by the real disruption controller.
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
const SLOTS: &str = "example.com/slots";
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

/// The one that is shipped.
fn configuration() -> String {
    let objects = SHIPPED.split("\n---\n").map(|text| serde_saphyr::from_str::<Value>(text).unwrap());
    let mut texts = objects.filter_map(|object| Some(object["data"]["scheduler.yaml"].as_str()?.to_owned()));
    texts.next().unwrap()
}

/// A node of one core.
fn node(plane: &ControlPlane, name: &str) {
    let has = json!({"cpu": "1", "memory": "4Gi", "pods": "10"});
    plane.add_node(name, &json!({"kubernetes.io/hostname": name}), &has).unwrap();
}

/// A node of one core, and a pod on it that takes most of it.
fn full_node(plane: &ControlPlane, name: &str) {
    node(plane, name);
    runs(plane, name, name, "600m");
}

/// A pod that takes so much of a node, and runs.
fn runs(plane: &ControlPlane, name: &str, node: &str, cpu: &str) {
    let mut pod = pod(name, "lesser");
    pod["spec"]["containers"][0]["resources"]["requests"]["cpu"] = json!(cpu);
    is_running(plane, &pod, node);
}

/// Makes a pod run on a node: whoever does not is no concern of a budget.
fn is_running(plane: &ControlPlane, pod: &Value, node: &str) {
    let mut pod = pod.clone();
    pod["spec"]["nodeName"] = json!(node);
    pod["metadata"]["labels"] = json!({"on": node});
    plane.create(PODS, &pod).unwrap();
    let status = json!({"status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let name = pod["metadata"]["name"].as_str().unwrap();
    plane.patch(&format!("{PODS}/{name}/status"), &status).unwrap();
}

/// A pod that takes so many of what load has nothing to do with.
fn taking(name: &str, class: &str, slots: u32) -> Value {
    let mut pod = pod(name, class);
    let takes = json!({"cpu": "100m", SLOTS: slots.to_string()});
    pod["spec"]["containers"][0]["resources"] =
        json!({"requests": takes, "limits": {SLOTS: slots.to_string()}});
    pod
}

/// A budget for the pods of a node of which so many have to stay; waits until so many may go.
fn budget(plane: &ControlPlane, node: &str, stay: u32, go: u32) {
    let budget = json!({"metadata": {"name": "keep"},
        "spec": {"minAvailable": stay, "selector": {"matchLabels": {"on": node}}}});
    plane.create(BUDGETS, &budget).unwrap();
    allows(plane, go);
}

/// From now on so many have to stay.
fn keep(plane: &ControlPlane, stay: u32) {
    plane.patch(&format!("{BUDGETS}/keep"), &json!({"spec": {"minAvailable": stay}})).unwrap();
}

/// Waits until so many may go, as the disruption controller has worked out.
fn allows(plane: &ControlPlane, go: u32) {
    until("the disruption controller", || {
        let budget = plane.get(&format!("{BUDGETS}/keep")).unwrap();
        let is_new = budget["status"]["observedGeneration"] == budget["metadata"]["generation"];
        (is_new && budget["status"]["disruptionsAllowed"] == go).then_some(())
    });
}

/// Classes of priority, and a scheduler by an account that may do what is shipped.
fn scheduler(plane: &ControlPlane) -> Service {
    for (name, value) in [("lesser", 1), ("important", 1000)] {
        let class = json!({"metadata": {"name": name}, "value": value});
        plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", &class).unwrap();
    }
    let kubeconfig = account::least_privilege(plane, SHIPPED, "loadline-scheduler");
    let file = plane.folder().join("scheduler.yaml").display().to_string();
    std::fs::write(&file, configuration()).unwrap();
    Service::start(&["scheduler", "--config", &file, "--leader-elect", "--kubeconfig", &kubeconfig])
}

fn plane() -> Option<ControlPlane> {
    ControlPlane::setup().controllers(&["disruption-controller"]).audited().start_or_skip()
}

/// Who was told to go for whom, by whose uid and where, in no particular order.
fn told(plane: &ControlPlane) -> Vec<(String, String)> {
    let events = plane.get("/apis/events.k8s.io/v1/namespaces/default/events").unwrap();
    let all = events["items"].as_array().unwrap().iter().filter(|event| event["reason"] == "Preempted");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut told: Vec<_> =
        all.map(|event| (text(&event["regarding"]["name"]), text(&event["note"]))).collect();
    told.sort();
    told
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
    let Some(plane) = plane() else { return };
    let scheduler = scheduler(&plane);
    full_node(&plane, "free");
    full_node(&plane, "guarded");
    budget(&plane, "guarded", 1, 0);
    scheduler.until("active");
    let get = |name: &str| plane.get(&format!("{PODS}/{name}"));
    let bound = |name: &str| {
        until("it to have a node", || get(name).unwrap()["spec"]["nodeName"].as_str().map(str::to_owned))
    };

    // Both nodes could be cleared; of one of them the budget says no.
    plane.create(PODS, &pod("first", "important")).unwrap();
    assert_eq!(bound("first"), "free");
    assert_eq!(evictions(&plane), [("free".to_owned(), 201)]);
    let goes = |victim: &str, pod: &str| {
        let uid = get(pod).unwrap()["metadata"]["uid"].as_str().unwrap().to_owned();
        (victim.to_owned(), format!("Preempted by pod {uid} on node {victim}"))
    };
    let first = goes("free", "first");
    until("who goes to be told for whom", || (told(&plane) == [first.clone()]).then_some(()));

    // Only that one is left, and has to stay: it is not even asked, and its node is not kept for the pod either.
    plane.create(PODS, &pod("second", "important")).unwrap();
    let said = until("it to be told why it waits", || {
        get("second").unwrap()["status"]["conditions"][0]["message"].as_str().map(str::to_owned)
    });
    assert_eq!(
        said,
        "0/2 nodes are available: 2 Insufficient cpu. preemption: disruption budgets keep 1 of 1 pod(s) that would have to \
        go from guarded."
    );
    let tries = || scheduler.sum("scheduler_schedule_attempts_total{result=\"unschedulable\"");
    let before = tries();
    plane.patch("/api/v1/nodes/free", &json!({"metadata": {"labels": {"news": "some"}}})).unwrap();
    until("it to be tried again", || (tries() > before + 0.5).then_some(()));
    let (free, guarded) = (("free".to_owned(), 201), ("guarded".to_owned(), 201));
    assert_eq!(evictions(&plane), std::slice::from_ref(&free));
    assert!(get("second").unwrap()["spec"]["nodeName"].is_null());
    assert!(get("second").unwrap()["status"]["nominatedNodeName"].is_null());

    // The budget lets one go.
    keep(&plane, 0);
    assert_eq!(bound("second"), "guarded");
    assert_eq!(evictions(&plane), [free, guarded], "each was asked once");
    let both = [first, goes("guarded", "second")];
    until("the other one to be told", || (told(&plane).len() == 2).then_some(()));
    assert_eq!(told(&plane), both, "and not while it stayed");
    assert_eq!(forbidden(&scheduler), Vec::<String>::new());
    assert!(scheduler.ends());
}

#[test]
fn of_several_who_have_to_go_nobody_goes_before_their_budget_lets_all_of_them_and_others_have_the_rest_of_the_node()
 {
    let Some(plane) = plane() else { return };
    let scheduler = scheduler(&plane);
    // Whoever goes, the other one takes too much still: of five, each has two, and four are asked for.
    let has = json!({"cpu": "1", "memory": "4Gi", "pods": "10", SLOTS: "5"});
    plane.add_node("shared", &json!({"kubernetes.io/hostname": "shared"}), &has).unwrap();
    for name in ["left", "right"] {
        is_running(&plane, &taking(name, "lesser", 2), "shared");
    }
    budget(&plane, "shared", 1, 1);
    scheduler.until("active");
    plane.create(PODS, &taking("important", "important", 4)).unwrap();
    let get = |name: &str| plane.get(&format!("{PODS}/{name}")).unwrap();
    let expected = "preemption: disruption budgets keep 1 of 2 pod(s) that would have to go from shared.";
    until("it to be told why it waits", || {
        let said = get("important")["status"]["conditions"][0]["message"].as_str().map(str::to_owned);
        said.filter(|said| said.ends_with(expected))
    });

    // What is free there is not kept for a pod that has to wait: another one may have it.
    plane.create(PODS, &taking("small", "lesser", 1)).unwrap();
    until("it to have a node", || (get("small")["spec"]["nodeName"] == "shared").then_some(()));
    assert!(get("important")["status"]["nominatedNodeName"].is_null());
    assert_eq!(evictions(&plane), [], "half of its room is no room");

    keep(&plane, 0);
    until("it to have a node", || (get("important")["spec"]["nodeName"] == "shared").then_some(()));
    let mut gone = evictions(&plane);
    gone.sort();
    assert_eq!(gone, ["left", "right"].map(|name| (name.to_owned(), 201)), "each was asked once");
    assert!(get("small")["metadata"]["deletionTimestamp"].is_null());
    assert_eq!(forbidden(&scheduler), Vec::<String>::new());
    assert!(scheduler.ends());
}
