//! `loadline rebalance` on a real control plane: real evictions, a real disruption budget, a real replica set that makes the
//! pod again, our scheduler or a stock kube-scheduler that places it. Nodes are simulated: a thread says that pods run, and
//! what they use.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::{ControlPlane, Gate, Kept, Running, WORKLOADS, Wanted, parts};
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

const PODS: &str = "/api/v1/namespaces/default/pods";
const METRICS: &str = "/apis/metrics.k8s.io/v1beta1";
const MOVED: &str = "loadline.dev/rebalanced";

const SETTINGS: &str = "apiVersion: loadline.dev/v1alpha1
kind: RebalanceSettings
spec: {slack: 0, overFor: 3s, warmUp: 0s}
";

/// What pods use, in thousandths of a core, by app.
const USES: [(&str, i64); 8] = [
    ("web", 1600),
    ("db", 2400),
    ("other", 2000),
    ("sleepy", 2000),
    ("drowsy", 4000),
    ("small", 1500),
    ("middle", 1600),
    ("large", 6400),
];
/// 0.65 of ten cores.
const LINE: i64 = 6500;

/// The metrics API as objects anybody can write: there is no metrics server without a kubelet.
fn define_metrics(plane: &ControlPlane) {
    for (plural, kind, scope) in [("nodes", "NodeMetrics", "Cluster"), ("pods", "PodMetrics", "Namespaced")] {
        let open =
            json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": format!("{plural}.metrics.k8s.io"),
                "annotations": {"api-approved.kubernetes.io": "unapproved, for a test"}},
            "spec": {"group": "metrics.k8s.io", "scope": scope,
                "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List")},
                "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": open}]},
        });
        plane.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).unwrap();
    }
    until("the metrics to be served", || plane.get(&format!("{METRICS}/nodes")).ok());
    until("the metrics to be served", || plane.get(&format!("{METRICS}/pods")).ok());
}

fn uses(pod: &Value) -> i64 {
    let app = pod["metadata"]["labels"]["app"].as_str().unwrap_or_default();
    USES.iter().find(|(name, _)| *name == app).map_or(0, |(_, uses)| *uses)
}

fn pods(plane: &ControlPlane) -> Vec<Value> {
    plane.get(PODS).ok().and_then(|all| all["items"].as_array().cloned()).unwrap_or_default()
}

/// What is used on a node.
fn used(plane: &ControlPlane, node: &str) -> i64 {
    pods(plane).iter().filter(|pod| pod["spec"]["nodeName"] == node).map(uses).sum()
}

/// Writes an object, whether it is there or not.
fn put(plane: &ControlPlane, collection: &str, name: &str, object: &Value) {
    if plane.patch(&format!("{collection}/{name}"), object).is_err() {
        let _ = plane.create(collection, object);
    }
}

/// One look of the simulated nodes: pods that were bound run, and everything is measured.
fn live(plane: &ControlPlane, nodes: &[&str]) {
    live_by(plane, nodes, uses);
}

/// The same, where pods use so much.
fn live_by(plane: &ControlPlane, nodes: &[&str], uses: impl Fn(&Value) -> i64) {
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let mut sums: BTreeMap<&str, i64> = nodes.iter().map(|node| (*node, 0)).collect();
    for pod in pods(plane) {
        let (Some(name), Some(node)) = (pod["metadata"]["name"].as_str(), pod["spec"]["nodeName"].as_str())
        else {
            continue;
        };
        if pod["status"]["phase"] != "Running" {
            let status = json!({"status": {"phase": "Running", "startTime": now,
                "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": now}],
                "containerStatuses": [{"name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                    "state": {"running": {"startedAt": now}}}]}});
            let _ = plane.patch(&format!("{PODS}/{name}/status"), &status);
        }
        if let Some(sum) = sums.get_mut(node) {
            *sum += uses(&pod);
        }
        let usage = json!({"cpu": format!("{}m", uses(&pod)), "memory": "16Mi"});
        let object = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics", "metadata": {"name": name},
            "timestamp": now, "window": "1s", "containers": [{"name": "main", "usage": usage}]});
        put(plane, &format!("{METRICS}/namespaces/default/pods"), name, &object);
    }
    for (node, cpu) in sums {
        let object = json!({"apiVersion": "metrics.k8s.io/v1beta1", "kind": "NodeMetrics", "metadata": {"name": node},
            "timestamp": now, "window": "1s", "usage": {"cpu": format!("{cpu}m"), "memory": "1Gi"}});
        put(plane, &format!("{METRICS}/nodes"), node, &object);
    }
}

/// A pod on a node; a replica set of its app adopts it later.
fn pod(plane: &ControlPlane, scheduler: &str, name: &str, app: &str, node: &str) {
    let mut template = template(scheduler, app);
    template["metadata"]["name"] = json!(name);
    template["spec"]["nodeName"] = json!(node);
    plane.create(PODS, &template).unwrap();
}

fn template(scheduler: &str, app: &str) -> Value {
    let cpu = match app {
        "sleepy" => "6",
        "drowsy" => "7",
        _ => "100m",
    };
    json!({"metadata": {"labels": {"app": app}}, "spec": {
        "schedulerName": scheduler, "terminationGracePeriodSeconds": 0,
        "containers": [{"name": "main", "image": "i", "resources": {"requests": {"cpu": cpu, "memory": "16Mi"}}}]}})
}

fn replica_set(plane: &ControlPlane, scheduler: &str, app: &str, replicas: usize) {
    let set = json!({"metadata": {"name": app}, "spec": {"replicas": replicas,
        "selector": {"matchLabels": {"app": app}}, "template": template(scheduler, app)}});
    plane.create("/apis/apps/v1/namespaces/default/replicasets", &set).unwrap();
    until("the replica set to adopt its pods", || {
        let all = pods(plane);
        let owned = all.iter().filter(|pod| pod["metadata"]["ownerReferences"][0]["name"] == app);
        (owned.count() == replicas).then_some(())
    });
}

/// A kubeconfig for an account that may do what the shipped file says, and nothing else.
fn least_privilege(plane: &ControlPlane) -> String {
    const SHIPPED: &str = include_str!("../../../deploy/rebalance/act.yaml");
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    const ACCOUNT: &str = "loadline-rebalance";
    for text in SHIPPED.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(text).unwrap();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(|name| format!("/namespaces/{name}"));
        if kind.ends_with("Binding") {
            object["subjects"] =
                json!([{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": ACCOUNT}]);
        }
        if kind.contains("Role") {
            let path = format!("{RBAC}{}/{}s", namespace.unwrap_or_default(), kind.to_lowercase());
            plane.create(&path, &object).unwrap();
        }
    }
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(plane.kubeconfig()).unwrap()).unwrap();
    config["users"][0]["user"]["as"] = json!(ACCOUNT);
    let file = plane.folder().join("least-privilege");
    std::fs::write(&file, config.to_string()).unwrap();
    file.display().to_string()
}

/// Names of pods that were evicted, each time one was.
fn evicted(plane: &ControlPlane) -> Vec<String> {
    let log = plane.audit().unwrap();
    let done = log.iter().filter(|entry| {
        entry["objectRef"]["subresource"] == "eviction"
            && entry["stage"] == "ResponseComplete"
            && entry["responseStatus"]["code"].as_u64().is_some_and(|code| (200..300).contains(&code))
    });
    done.map(|entry| entry["objectRef"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

fn moves(plane: &ControlPlane, node: &str) -> Option<Value> {
    let node = plane.get(&format!("/api/v1/nodes/{node}")).ok()?;
    serde_json::from_str(node["metadata"]["annotations"][MOVED].as_str()?).ok()
}

/// Whatever happens, the thread ends.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_hot_node_cools_within_the_budget_and_nobody_is_evicted_twice_though_it_is_killed() {
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).audited().start_or_skip() else { return };
    define_metrics(&plane);
    let nodes = ["n1", "n2", "n3"];
    for node in nodes {
        plane.add_node(node, &json!({}), &json!({"cpu": "10", "memory": "64Gi", "pods": "100"})).unwrap();
    }
    // n1: 2 × 1.6 + 2 × 2.4 = 8, 1.5 too much; n2: 2; n3: 2 × 2 = 4. A web would close the gap best, and its budget keeps it.
    for (name, app, node) in [
        ("web-a", "web", "n1"),
        ("web-b", "web", "n1"),
        ("db-a", "db", "n1"),
        ("db-b", "db", "n1"),
        ("other-a", "other", "n2"),
        ("other-b", "other", "n3"),
        ("other-c", "other", "n3"),
    ] {
        pod(&plane, "loadline", name, app, node);
    }
    replica_set(&plane, "loadline", "web", 2);
    replica_set(&plane, "loadline", "db", 2);
    let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}}});
    plane.create("/apis/policy/v1/namespaces/default/poddisruptionbudgets", &budget).unwrap();
    let settings = plane.folder().join("settings.yaml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let (settings, account) = (settings.display().to_string(), least_privilege(&plane));
    let admin = plane.kubeconfig().display().to_string();

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                live(&plane, &nodes);
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _end = End(&ended);
        until("the budget to be counted", || {
            let budget = plane.get("/apis/policy/v1/namespaces/default/poddisruptionbudgets/web").ok()?;
            (budget["status"]["currentHealthy"] == 2).then_some(())
        });
        let scheduler = Service::start(&["scheduler", "--kubeconfig", &admin, "--metrics-interval", "500ms"]);
        scheduler.until("active");
        let start = || {
            let mut args = vec!["rebalance", "--act", "--kubeconfig", &account, "--settings", &settings];
            args.extend(["--metrics-interval", "500ms"]);
            Service::start(&args)
        };
        let first = start();
        let said = until("a move to be written on the node", || moves(&plane, "n1"));
        // In the middle of it, before or after the eviction: nobody can know.
        drop(first);
        let second = start();
        second.until("active");
        until("the node to cool", || (used(&plane, "n1") <= LINE && used(&plane, "n1") > 0).then_some(()));
        // Who is gone, not who was answered: the eviction may be under way, or its answer lost with who was killed.
        let missing = || -> BTreeSet<String> {
            let all = pods(&plane);
            let is_there = |name: &&str| all.iter().any(|pod| pod["metadata"]["name"] == **name);
            ["web-a", "web-b", "db-a", "db-b"]
                .iter()
                .filter(|name| !is_there(name))
                .map(ToString::to_string)
                .collect()
        };
        let gone = missing();
        assert_eq!(gone.len(), 1, "one was enough: {gone:?}");
        assert!(gone.iter().all(|name| name.starts_with("db-")), "the budget keeps every web: {gone:?}");

        // The replica set makes it again, and it lands where the plan said.
        let known = ["db-a", "db-b"];
        let landed = until("the new pod to be bound", || {
            let all = pods(&plane);
            let new = all.iter().find(|pod| {
                pod["metadata"]["labels"]["app"] == "db"
                    && !known.contains(&pod["metadata"]["name"].as_str().unwrap_or_default())
            })?;
            new["spec"]["nodeName"].as_str().map(str::to_owned)
        });
        assert_eq!(landed, said[0]["to"], "{said}");
        assert_eq!(landed, "n2", "where it leaves most room");

        // Measured again several times: it stays calm.
        let looks = second.sum("loadline_rebalance_plans_total");
        until("more plans", || (second.sum("loadline_rebalance_plans_total") > looks + 10.0).then_some(()));
        let all = evicted(&plane);
        assert!(all.len() <= 1, "nobody is evicted twice: {all:?}");
        assert_eq!(missing(), gone, "nor anybody else");
        assert!(all.iter().all(|name| gone.contains(name)), "{all:?}");
        for node in nodes {
            assert!(used(&plane, node) <= LINE, "{node} is under its line");
        }
        assert!(second.get("/debug/rebalance").contains("\"moves\""), "the last plan is served");
        let moved = gone.first().expect("one is gone");
        explained(&plane, moved, said[0]["because"].as_str().unwrap(), &scheduler.url());
        assert!(second.ends());
        assert!(scheduler.ends());
    });
}

/// 9.5 cores on n1, of which 6.5 may be used: two have to go, 1.6 first and then the 1.5 that close the gap. It is killed where nobody
/// has to guess: a gate keeps the request or the answer in question.
#[test]
fn killed_at_every_step_nothing_is_evicted_twice_and_nothing_is_lost() {
    let wanted = |nth, kept| Wanted { method: "POST", begins: PODS, ends: "/eviction", nth, kept };
    for (when, wanted, gone) in [
        ("between the mark and the eviction", wanted(1, Kept::Request), &[][..]),
        ("after the eviction, the answer lost", wanted(1, Kept::Answer), &["middle-a"][..]),
        ("between two evictions", wanted(2, Kept::Request), &["middle-a"][..]),
    ] {
        let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).audited().start_or_skip() else {
            return;
        };
        let Some(kubectl) = parts::find_or_skip("kubectl") else { return };
        define_metrics(&plane);
        let nodes = ["n1", "n2"];
        for node in nodes {
            plane.add_node(node, &json!({}), &json!({"cpu": "10", "memory": "64Gi", "pods": "100"})).unwrap();
        }
        for (name, app, node) in [
            ("small-a", "small", "n1"),
            ("middle-a", "middle", "n1"),
            ("large-a", "large", "n1"),
            ("other-a", "other", "n2"),
        ] {
            pod(&plane, "loadline", name, app, node);
            replica_set(&plane, "loadline", app, 1);
        }
        let settings = plane.folder().join("settings.yaml");
        std::fs::write(&settings, SETTINGS).unwrap();
        let (settings, account) = (settings.display().to_string(), least_privilege(&plane));
        let admin = plane.kubeconfig().display().to_string();
        // In the open, so that the gate sees what is asked.
        let open = Running::start("kubectl-proxy", &kubectl, |port| {
            ["proxy", "--kubeconfig", &admin, "--port", &port.to_string()].map(str::to_owned).to_vec()
        });
        let open = open.unwrap();
        let gate = Gate::to(open.port(), wanted).unwrap();
        let mut through: Value = serde_json::from_str(&std::fs::read_to_string(&account).unwrap()).unwrap();
        through["clusters"][0]["cluster"] = json!({"server": format!("http://127.0.0.1:{}", gate.port())});
        let gated = plane.folder().join("gated");
        std::fs::write(&gated, through.to_string()).unwrap();
        let gated = gated.display().to_string();

        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                while !ended.load(Ordering::Relaxed) {
                    live(&plane, &nodes);
                    thread::sleep(Duration::from_millis(300));
                }
            });
            let _end = End(&ended);
            let scheduler =
                Service::start(&["scheduler", "--kubeconfig", &admin, "--metrics-interval", "500ms"]);
            scheduler.until("active");
            let start = |account: &str| {
                let args = ["rebalance", "--act", "--kubeconfig", account, "--settings", &settings];
                Service::start(&[&args[..], &["--metrics-interval", "500ms"]].concat())
            };
            let first = start(&gated);
            assert!(gate.waits(service::PATIENCE), "{when}: it never came to that:\n{}", first.log());
            drop(first);
            assert!(moves(&plane, "n1").is_some(), "{when}: the mark is there");
            assert_eq!(until_written(&plane, gone.len()), gone, "{when}");

            let second = start(&account);
            second.until("active");
            let cool = || (used(&plane, "n1") <= LINE && used(&plane, "n1") > 0).then_some(());
            until("the node to cool", cool);
            let looks = second.sum("loadline_rebalance_plans_total");
            until("more plans", || {
                (second.sum("loadline_rebalance_plans_total") > looks + 10.0).then_some(())
            });
            assert_eq!(evicted(&plane), ["middle-a", "small-a"], "{when}: both, each once, and nobody else");
            until("each to be there again", || {
                let all = pods(&plane);
                let on = |app: &str| {
                    let mut here = all.iter().filter(|pod| pod["metadata"]["labels"]["app"] == app);
                    let one = here.next().and_then(|pod| pod["spec"]["nodeName"].as_str());
                    one.filter(|_| here.next().is_none()).map(str::to_owned)
                };
                let where_to = ["small", "middle", "large", "other"].map(on);
                (where_to == ["n2", "n2", "n1", "n2"].map(|node| Some(node.to_owned()))).then_some(())
            });
            let said = moves(&plane, "n1").unwrap();
            let said: BTreeSet<&str> =
                said.as_array().unwrap().iter().filter_map(|one| one["pod"].as_str()).collect();
            assert_eq!(
                said,
                BTreeSet::from(["default/middle-a", "default/small-a"]),
                "{when}: what was done is said"
            );
            assert!(second.ends());
            assert!(scheduler.ends());
        });
    }
}

/// Who was evicted, once the log of the server has as many: it is written after the answer.
fn until_written(plane: &ControlPlane, count: usize) -> Vec<String> {
    until("the log to be written", || Some(evicted(plane)).filter(|all| all.len() >= count))
}

/// Answers to requests to evict, in order: whom, and with which code.
fn asked(plane: &ControlPlane) -> Vec<(String, u64)> {
    let log = plane.audit().unwrap();
    let answers = log
        .iter()
        .filter(|one| one["objectRef"]["subresource"] == "eviction" && one["stage"] == "ResponseComplete");
    let answer = |one: &Value| {
        let name = one["objectRef"]["name"].as_str().unwrap_or_default().to_owned();
        (name, one["responseStatus"]["code"].as_u64().unwrap_or_default())
    };
    answers.map(answer).collect()
}

/// A budget that was changed is not gone by before somebody has counted anew, whatever it allowed when it was counted last: that is
/// the server's to know.
#[test]
fn whom_the_servers_budget_keeps_stays_and_another_one_goes() {
    let controllers = ["replicaset-controller"];
    let Some(plane) = ControlPlane::setup().controllers(&controllers).audited().start_or_skip() else {
        return;
    };
    define_metrics(&plane);
    let nodes = ["n1", "n2"];
    for node in nodes {
        plane.add_node(node, &json!({}), &json!({"cpu": "10", "memory": "64Gi", "pods": "100"})).unwrap();
    }
    // 2 × 1.6 + 2 × 2.4 = 8, 1.5 too much: a web closes the gap best.
    for (name, app) in [("web-a", "web"), ("web-b", "web"), ("db-a", "db"), ("db-b", "db")] {
        pod(&plane, "loadline", name, app, "n1");
    }
    replica_set(&plane, "loadline", "web", 2);
    replica_set(&plane, "loadline", "db", 2);
    // Counted once, and changed since.
    let budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";
    let budget = json!({"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    plane.create(budgets, &budget).unwrap();
    let status = json!({"status": {"disruptionsAllowed": 1, "currentHealthy": 2, "desiredHealthy": 1, "expectedPods": 2,
        "observedGeneration": 1}});
    plane.patch(&format!("{budgets}/web/status"), &status).unwrap();
    plane.patch(&format!("{budgets}/web"), &json!({"spec": {"minAvailable": 2}})).unwrap();
    let settings = plane.folder().join("settings.yaml");
    std::fs::write(&settings, SETTINGS).unwrap();
    let (settings, account) = (settings.display().to_string(), least_privilege(&plane));

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                live(&plane, &nodes);
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _end = End(&ended);
        let mut args = vec!["rebalance", "--act", "--kubeconfig", &account, "--settings", &settings];
        args.extend(["--metrics-interval", "500ms"]);
        let rebalance = Service::start(&args);
        rebalance.until("active");
        until("somebody to go", || (!evicted(&plane).is_empty()).then_some(()));
        until("the node to cool", || (used(&plane, "n1") <= LINE && used(&plane, "n1") > 0).then_some(()));
        let looks = rebalance.sum("loadline_rebalance_plans_total");
        until("more plans", || {
            (rebalance.sum("loadline_rebalance_plans_total") > looks + 10.0).then_some(())
        });
        let asked = asked(&plane);
        let [refused @ .., (gone, code)] = &asked[..] else { panic!("nobody was asked to go") };
        assert!(gone.starts_with("db-") && *code == 201, "another one goes: {asked:?}");
        let kept = |(name, code): &(String, u64)| name.starts_with("web-") && *code == 429;
        assert!(
            !refused.is_empty() && refused.iter().all(kept),
            "first the best one, which is kept: {asked:?}"
        );
        let names: BTreeSet<&String> = refused.iter().map(|(name, _)| name).collect();
        assert_eq!(names.len(), refused.len(), "nobody is asked twice in a row: {asked:?}");
        let webs = pods(&plane).into_iter().filter(|pod| pod["metadata"]["labels"]["app"] == "web");
        assert_eq!(webs.count(), 2, "and both are there");
        assert!(rebalance.ends());
    });
}

/// What the Event about a pod that was moved says.
fn told(plane: &ControlPlane, moved: &str) -> Option<String> {
    let events = plane.get("/apis/events.k8s.io/v1/namespaces/default/events").ok()?;
    events["items"].as_array()?.iter().find_map(|event| {
        let about = event["reason"] == "Rebalanced" && event["regarding"]["name"] == moved;
        event["note"].as_str().filter(|_| about).map(str::to_owned)
    })
}

/// The pod that was moved, and why, in the words of the Event, from a running scheduler and from the cluster itself. Whoever
/// is killed may take the Event along; what is written on the node before anybody goes is there in any case.
fn explained(plane: &ControlPlane, moved: &str, because: &str, scheduler: &str) {
    assert!(because.starts_with("cpu of n1 is "), "{because}");
    let note = format!("goes to n2: {because}");
    assert!(told(plane, moved).is_none_or(|told| told == note), "the Event says the same: {note}");
    let admin = plane.kubeconfig().display().to_string();
    for asked in [["--scheduler", scheduler], ["--kubeconfig", &admin]] {
        let said = Command::new(env!("CARGO_BIN_EXE_loadline"))
            .args(["explain", "pod", &format!("default/{moved}")])
            .args(asked)
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
        assert!(told.contains("is not there any more"), "{told}");
        assert!(told.contains(&format!("moved from n1: {note}")), "{told}");
    }
}

const TAINTING: &str = "apiVersion: loadline.dev/v1alpha1
kind: RebalanceSettings
spec: {slack: 0, overFor: 3s, warmUp: 0s, dwell: 10m, closing: Taint}
";
const TAINT: &str = "loadline.dev/cooling";

fn is_tainted(plane: &ControlPlane, node: &str) -> bool {
    let node = plane.get(&format!("/api/v1/nodes/{node}")).unwrap();
    node["spec"]["taints"].as_array().is_some_and(|all| all.iter().any(|taint| taint["key"] == TAINT))
}

/// By requests n1 is nearly empty: kube-scheduler sends everybody back there who is not kept away.
#[test]
fn beside_a_stock_scheduler_nobody_goes_back_and_forth() {
    const STOCK: &str = "default-scheduler";
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).scheduler(&[]).audited().start_or_skip()
    else {
        return;
    };
    define_metrics(&plane);
    let nodes = ["n1", "n2", "n3"];
    for node in nodes {
        plane.add_node(node, &json!({}), &json!({"cpu": "10", "memory": "64Gi", "pods": "100"})).unwrap();
    }
    // n1 uses 8 and is asked for 0.4; n2 uses 2 and is asked for 6; n3 uses 4 and is asked for 7.
    for (name, app, node) in [
        ("web-a", "web", "n1"),
        ("web-b", "web", "n1"),
        ("db-a", "db", "n1"),
        ("db-b", "db", "n1"),
        ("sleepy", "sleepy", "n2"),
        ("drowsy", "drowsy", "n3"),
    ] {
        pod(&plane, STOCK, name, app, node);
    }
    replica_set(&plane, STOCK, "web", 2);
    replica_set(&plane, STOCK, "db", 2);
    let settings = plane.folder().join("settings.yaml");
    std::fs::write(&settings, TAINTING).unwrap();
    let (settings, account) = (settings.display().to_string(), least_privilege(&plane));

    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                live(&plane, &nodes);
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _end = End(&ended);
        let mut args = vec!["rebalance", "--act", "--requests-only", "--kubeconfig", &account];
        args.extend(["--settings", &settings, "--metrics-interval", "500ms", "--cooling", "10s"]);
        let rebalance = Service::start(&args);
        rebalance.until("active");
        until("somebody to go", || (!evicted(&plane).is_empty()).then_some(()));
        let gone = evicted(&plane);
        assert!(gone.len() == 1 && gone[0].starts_with("web-"), "1.6 closes the gap of 1.5 alone: {gone:?}");
        let landed = until("the new pod to be bound", || {
            let all = pods(&plane);
            let new = all.iter().find(|pod| {
                let name = pod["metadata"]["name"].as_str().unwrap_or_default();
                pod["metadata"]["labels"]["app"] == "web" && !["web-a", "web-b"].contains(&name)
            })?;
            new["spec"]["nodeName"].as_str().map(str::to_owned)
        });
        let said = moves(&plane, "n1").expect("the node says what was moved");
        assert_eq!(
            (landed.as_str(), &said[0]["to"]),
            ("n2", &json!("n2")),
            "where less is asked for: {said}"
        );
        until("the node to cool", || (used(&plane, "n1") <= LINE).then_some(()));
        until("the taint to be taken off", || (!is_tainted(&plane, "n1")).then_some(()));
        // Open again, and twenty looks later: nothing goes anywhere.
        let looks = rebalance.sum("loadline_rebalance_plans_total");
        until("more plans", || {
            (rebalance.sum("loadline_rebalance_plans_total") > looks + 20.0).then_some(())
        });
        assert_eq!(evicted(&plane), gone, "no ping-pong");
        for node in nodes {
            assert!(used(&plane, node) <= LINE && !is_tainted(&plane, node), "{node}");
        }
        assert_eq!(bound(&plane), ["n2"], "one eviction, one binding, and not back to where it came from");
        let told = until("an Event to say that it was moved", || told(&plane, &gone[0]));
        let because = said[0]["because"].as_str().expect("the node says why");
        assert_eq!(told, format!("goes to n2: {because}"));
        assert!(rebalance.ends());
    });
}

/// What apps use in each part of the test: one after the other is too much for wherever it is.
const JUMPS: [&str; 4] = ["a", "c", "e", "b"];

/// Ten minutes are forty looks at a measurement every 15 s. Here a look takes half a second, and what was moved stays for all of it.
/// By requests all nodes are alike, so kube-scheduler puts pods on any of them, whatever was planned.
#[test]
fn beside_a_stock_scheduler_nobody_who_was_moved_is_moved_again_while_load_jumps_about() {
    const STOCK: &str = "default-scheduler";
    const LOOKS: f64 = 40.0;
    let Some(plane) = ControlPlane::setup().controllers(WORKLOADS).scheduler(&[]).audited().start_or_skip()
    else {
        return;
    };
    define_metrics(&plane);
    let nodes = ["n1", "n2", "n3", "n4"];
    for node in nodes {
        plane.add_node(node, &json!({}), &json!({"cpu": "10", "memory": "64Gi", "pods": "100"})).unwrap();
    }
    for (app, node) in [("a", "n1"), ("b", "n1"), ("c", "n2"), ("d", "n2"), ("e", "n3"), ("f", "n3")] {
        for name in [format!("{app}-1"), format!("{app}-2")] {
            pod(&plane, STOCK, &name, app, node);
        }
        replica_set(&plane, STOCK, app, 2);
    }
    let settings = plane.folder().join("settings.yaml");
    std::fs::write(&settings, TAINTING).unwrap();
    let (settings, account) = (settings.display().to_string(), least_privilege(&plane));

    let (ended, part) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                let high = JUMPS[part.load(Ordering::Relaxed)];
                let uses = |pod: &Value| if pod["metadata"]["labels"]["app"] == high { 2600 } else { 900 };
                live_by(&plane, &nodes, uses);
                thread::sleep(Duration::from_millis(300));
            }
        });
        let _end = End(&ended);
        let mut args = vec!["rebalance", "--act", "--requests-only", "--kubeconfig", &account];
        args.extend(["--settings", &settings, "--metrics-interval", "500ms", "--cooling", "5s"]);
        let rebalance = Service::start(&args);
        rebalance.until("active");
        let looks = || rebalance.sum("loadline_rebalance_plans_total");
        for next in 0..JUMPS.len() {
            part.store(next, Ordering::Relaxed);
            let begun = looks();
            until("ten minutes to pass", || (looks() >= begun + LOOKS).then_some(()));
        }
        let gone = evicted(&plane);
        assert!(gone.len() >= 2, "several moves were due: {gone:?}");
        let first: BTreeSet<String> = ["a", "b", "c", "d", "e", "f"]
            .iter()
            .flat_map(|app| [format!("{app}-1"), format!("{app}-2")])
            .collect();
        let again: Vec<&String> = gone.iter().filter(|name| !first.contains(*name)).collect();
        assert!(again.is_empty(), "moved, and moved again within the dwell time: {again:?} of {gone:?}");
        let each: BTreeSet<&String> = gone.iter().collect();
        assert_eq!(each.len(), gone.len(), "each once: {gone:?}");
        // What was made in their place is where it was bound first.
        until("all to be placed again", || (bound(&plane).len() == gone.len()).then_some(()));
        assert!(rebalance.ends());
    });
}

/// Where kube-scheduler sent pods, by the audit log.
fn bound(plane: &ControlPlane) -> Vec<String> {
    let log = plane.audit().unwrap();
    let done = log.iter().filter(|entry| {
        entry["objectRef"]["subresource"] == "binding"
            && entry["stage"] == "ResponseComplete"
            && entry["responseStatus"]["code"] == 201
    });
    done.map(|entry| entry["requestObject"]["target"]["name"].as_str().unwrap_or_default().to_owned())
        .collect()
}
