//! `loadline fleet --api ocm` on a real kube-apiserver with Open Cluster Management's own definitions: it and OCM's placement
//! controller take over from each other without a change, and whoever watches never misses a selected cluster.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

#[path = "common/service.rs"]
mod service;

use loadline_testkit::ocm::{self, Ocm, path};
use loadline_testkit::{ControlPlane, parts};
use serde_json::{Value, json};
use service::{PATIENCE, Service, until};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;

const TEAM: &str = "team";
/// Placements with such names come last.
const LAST_NAMES: &str = "zz";

fn start(plane: &ControlPlane) -> Service {
    Service::start(&["fleet", "--api", "ocm", "--kubeconfig", plane.kubeconfig().to_str().unwrap()])
}

fn cluster(number: usize) -> Value {
    let taints = if number % 7 == 3 {
        json!([{"key": "gpu", "value": "a100", "effect": "PreferNoSelect", "timeAdded": "2026-01-01T00:00:00Z"}])
    } else {
        json!([])
    };
    let amounts = |more: usize| json!({"cpu": (4 + number % 5 + more).to_string(), "memory": format!("{}Gi", 8 + number % 9)});
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": format!("c{number:03}"), "labels": {
            "cluster.open-cluster-management.io/clusterset": "main", "zone": format!("z{}", number % 3)}},
        "spec": {"hubAcceptsClient": true, "taints": taints},
        "status": {"allocatable": amounts(0), "capacity": amounts(2), "version": {}, "conditions": [],
            "clusterClaims": [{"name": "tier", "value": format!("t{}", number % 2)}]},
    })
}

/// A hub with so many clusters in the set `main`, which the team may use.
fn fill(ocm: Ocm<'_>, clusters: usize) {
    ocm.namespace(TEAM).unwrap();
    let version = |version: &str| format!("cluster.open-cluster-management.io/{version}");
    let set = json!({"apiVersion": version("v1beta2"), "kind": "ManagedClusterSet", "metadata": {"name": "main"},
        "spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}});
    ocm.create("managedclustersets", &set).unwrap();
    let binding = json!({"apiVersion": version("v1beta2"), "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "main", "namespace": TEAM}, "spec": {"clusterSet": "main"}});
    ocm.create("managedclustersetbindings", &binding).unwrap();
    for number in 0..clusters {
        ocm.create("managedclusters", &cluster(number)).unwrap();
    }
}

fn placement(ocm: Ocm<'_>, name: &str, spec: &Value) {
    let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": TEAM}, "spec": spec});
    ocm.create("placements", &object).unwrap();
}

/// Of every kind a few.
fn placements() -> Vec<Value> {
    let weigh = |what: &str, weight: i64| json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": what}, "weight": weight});
    let mut all = vec![
        json!({}),
        json!({"numberOfClusters": 5}),
        json!({"numberOfClusters": 400}),
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"zone": "z1"}}}}]}),
        json!({"predicates": [{"requiredClusterSelector": {"claimSelector": {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["t0"]}]}}}]}),
        json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"zone": "none"}}}}]}),
        json!({"numberOfClusters": 4, "prioritizerPolicy": {"mode": "Exact", "configurations": [weigh("ResourceAllocatableCPU", 2), weigh("Steady", 3)]}}),
        json!({"numberOfClusters": 6, "prioritizerPolicy": {"configurations": [weigh("ResourceAllocatableMemory", -1)]}}),
        json!({"clusterSets": ["elsewhere"]}),
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "30%"}}}),
        json!({"decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 7, "decisionGroups": [
            {"groupName": "canary", "groupClusterSelector": {"labelSelector": {"matchLabels": {"zone": "z2"}}}}]}}}),
    ];
    let tolerant = json!({"tolerations": [{"key": "gpu", "operator": "Exists"}], "numberOfClusters": 9});
    all.push(tolerant);
    all
}

/// Is it the test's, and not one that only tells the time?
fn is_own(object: &Value) -> bool {
    let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default();
    text("namespace") == TEAM && !text("name").starts_with(LAST_NAMES)
}

/// What is published, by name: its revision, labels and clusters.
fn published(ocm: Ocm<'_>) -> BTreeMap<String, Value> {
    let decisions = ocm.all("placementdecisions").unwrap();
    let own = decisions.into_iter().filter(is_own);
    own.map(|decision| (decision["metadata"]["name"].as_str().unwrap().to_owned(), decision)).collect()
}

/// What placements say of their groups.
fn said(ocm: Ocm<'_>) -> BTreeMap<String, Value> {
    let own = ocm.all("placements").unwrap().into_iter().filter(is_own);
    own.map(|one| {
        let status = &one["status"];
        let told = |kind: &str| {
            let all = status["conditions"].as_array().unwrap();
            let condition = all.iter().find(|condition| condition["type"] == kind).unwrap();
            json!([condition["status"], condition["reason"], condition["lastTransitionTime"]])
        };
        let said = json!({
            "count": status["numberOfSelectedClusters"].as_u64().unwrap_or(0), "groups": status["decisionGroups"],
            "satisfied": told("PlacementSatisfied"), "misconfigured": told("PlacementMisconfigured"),
        });
        (one["metadata"]["name"].as_str().unwrap().to_owned(), said)
    })
    .collect()
}

/// Tells only what differs.
#[track_caller]
fn same(now: &BTreeMap<String, Value>, before: &BTreeMap<String, Value>) {
    assert!(now.keys().eq(before.keys()), "{:?}, before {:?}", now.keys(), before.keys());
    for (name, now) in now {
        assert_eq!(now, &before[name], "{name}");
    }
}

/// Waits until ours has decided and written everything: a placement that comes now, the last by name, is decided last.
fn settled(ocm: Ocm<'_>, ours: &Service) {
    static LAST: AtomicUsize = AtomicUsize::new(0);
    for _ in 0..2 {
        let name = format!("{LAST_NAMES}-{}", LAST.fetch_add(1, Ordering::Relaxed));
        placement(ocm, &name, &json!({"numberOfClusters": 0}));
        let path = format!("{}/{name}", path("placements", Some(TEAM)));
        until("the last placement to be decided", || {
            ocm.plane().get(&path).unwrap().pointer("/status/conditions").map(drop)
        });
        ours.until("placements being written: 0");
    }
}

#[test]
fn either_controller_takes_over_from_the_other_without_a_change() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).expect("the definitions");
    fill(ocm, 40);
    let all = placements();
    for (number, spec) in all.iter().enumerate() {
        placement(ocm, &format!("ours-{number:02}"), spec);
    }
    let ours = start(&plane);
    settled(ocm, &ours);
    let (decisions, words) = (published(ocm), said(ocm));
    assert!(decisions.len() > all.len(), "some have groups");
    let selected: usize = decisions
        .values()
        .map(|decision| decision["status"]["decisions"].as_array().map_or(0, Vec::len))
        .sum();
    assert!(selected > 100, "there is something to take over: {selected}");
    drop(ours);

    let theirs = ocm.controller().unwrap();
    theirs.settle().unwrap();
    // Theirs leaves every object of ours as it is, revisions included.
    same(&published(ocm), &decisions);
    same(&said(ocm), &words);
    // What it decides anew, ours leaves as it is.
    for (number, spec) in all.iter().enumerate() {
        placement(ocm, &format!("theirs-{number:02}"), spec);
    }
    theirs.settle().unwrap();
    let names: Vec<String> = said(ocm).into_keys().collect();
    let tables: Vec<Value> = names.iter().map(|name| theirs.tables(TEAM, name).unwrap()).collect();
    drop(theirs);
    let (decisions, words) = (published(ocm), said(ocm));
    assert_eq!(words.len(), 2 * all.len());
    let ours = start(&plane);
    settled(ocm, &ours);
    // Ours leaves every object of theirs as it is, revisions included.
    same(&published(ocm), &decisions);
    same(&said(ocm), &words);
    // Asked why, it tells what the other told, of all that have candidates. (Theirs asks clusters of other sets, too.)
    let mut compared = 0;
    for (name, theirs) in names.iter().zip(&tables) {
        let answer = ours.get(&format!("/debug/placements/{TEAM}/{name}"));
        let ours: Value = serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        if ours["clusters"].as_array().unwrap().is_empty() {
            continue;
        }
        let by_name = |tables: &Value| -> BTreeMap<String, Value> {
            let all = tables["prioritizeResults"].as_array().cloned().unwrap_or_default();
            let counts = all.into_iter().filter(|table| table["weight"] != 0 && table["scores"] != json!({}));
            counts.map(|table| (table["name"].as_str().unwrap().to_owned(), table)).collect()
        };
        same(&by_name(&ours), &by_name(theirs));
        // This version of theirs does not add them up yet.
        for total in ours["aggregatedScores"].as_array().unwrap() {
            let points = |table: &Value| {
                let points = table["scores"][total["clusterName"].as_str().unwrap()].as_i64();
                points.unwrap_or(0) * table["weight"].as_i64().unwrap()
            };
            let sum: i64 = by_name(theirs).values().map(points).sum();
            assert_eq!(total["score"], sum, "{name}: {total}");
        }
        compared += by_name(&ours).len();
    }
    assert!(compared > 40, "{compared} tables");
    let metrics = ours.get("/metrics");
    for wanted in [
        "scheduling_scheduling_duration_seconds_count{name=\"placement_scheduling\"} ",
        "scheduling_bind_duration_seconds_count{name=\"placement_scheduling\"} ",
        "scheduling_plugin_duration_seconds_count{name=\"placement_scheduling\",plugin_type=\"filter\",plugin_name=\"TaintToleration\"} ",
        "scheduling_plugin_duration_seconds_count{name=\"placement_scheduling\",plugin_type=\"prioritizer\",plugin_name=\"ResourceAllocatableCPU\"} ",
        "loadline_placement_objects{resource=\"managedclusters\"} 40",
    ] {
        assert!(metrics.contains(wanted), "{wanted} is not in {metrics}");
    }
}

/// A kubeconfig for an account that may do what the shipped file says, and nothing else.
fn least_privilege(plane: &ControlPlane) -> String {
    const SHIPPED: &str = include_str!("../../../deploy/fleet/ocm.yaml");
    const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
    const ACCOUNT: &str = "loadline-fleet";
    let group = "rbac.authorization.k8s.io";
    for text in SHIPPED.split("\n---\n") {
        let mut object: Value = serde_saphyr::from_str(text).unwrap();
        let kind = object["kind"].as_str().unwrap().to_owned();
        let namespace = object["metadata"]["namespace"].as_str().map(|name| format!("/namespaces/{name}"));
        if kind.ends_with("Binding") {
            object["subjects"] = json!([{"apiGroup": group, "kind": "User", "name": ACCOUNT}]);
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

/// Why something is so is told to whoever may read it, by their token, and to nobody else.
fn authorized(plane: &ControlPlane, ours: &Service) {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    plane.create(accounts, &json!({"metadata": {"name": "nosy"}})).unwrap();
    let request = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let granted = plane.create(&format!("{accounts}/nosy/token"), &request).unwrap();
    let nosy = granted["status"]["token"].as_str().unwrap();
    let path = format!("/debug/placements/{TEAM}/nobody");
    let (unknown, refused) =
        ("user information not found", "user does not have permission to get placements");
    for (token, status, told) in [
        (None, "401", unknown),
        (Some("made-up"), "401", unknown),
        (Some(nosy), "403", refused),
        (Some(plane.token()), "404", "placement 'nobody' not found"),
    ] {
        let answer = ours.get_as(&path, token);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")) && answer.contains(told),
            "{token:?}: {answer}"
        );
    }
}

#[test]
fn with_the_shipped_account_and_the_others_lease_it_waits_takes_over_and_gives_back() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).expect("the definitions");
    fill(ocm, 10);
    let theirs = ocm.elected_controller().unwrap();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/open-cluster-management-hub/leases/placement-lock";
    let holder = || {
        let lease = plane.get(lease).ok()?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    };
    let first = until("theirs to lead", holder);
    let account = least_privilege(&plane);
    let mut args = vec!["fleet", "--api", "ocm", "--kubeconfig", &account, "--leader-elect"];
    args.extend(["--leader-elect-resource-name", "placement-lock"]);
    args.extend(["--leader-elect-resource-namespace", "open-cluster-management-hub"]);
    // Short enough to wait for, long enough for a busy machine.
    args.extend(["--leader-elect-lease-duration", "8s", "--leader-elect-renew-deadline", "5s"]);
    args.extend(["--leader-elect-retry-period", "1s"]);
    args.push("--authorize-debug");
    let ours = Service::start(&args);
    ours.until("standing by: another one leads");
    authorized(&plane, &ours);
    placement(ocm, "first", &json!({}));
    let decided = |name: &str| {
        let path = format!("{}/{name}", path("placements", Some(TEAM)));
        until("the placement to be decided", || {
            plane.get(&path).unwrap().pointer("/status/conditions/0").cloned()
        })
    };
    decided("first");
    let before = published(ocm);
    drop(theirs);
    until("ours to lead", || holder().filter(|now| *now != first));
    ours.until("active");
    placement(ocm, "second", &json!({}));
    let told = decided("second");
    assert_eq!(told["observedGeneration"], 1, "ours says which wish it saw");
    let now = published(ocm);
    assert_eq!(now["first-decision-1"], before["first-decision-1"], "nothing else is written");
    until("the events", || {
        let events = ocm.events().ok()?;
        let about = |event: &&Value| event["regarding"]["name"] == "second";
        (events.iter().filter(about).count() == 3).then_some(())
    });
    drop(ours);
    let theirs = ocm.elected_controller().unwrap();
    placement(ocm, "third", &json!({}));
    decided("third");
    let again = published(ocm);
    assert!(now.iter().all(|(name, decision)| again[name] == *decision), "given back as it was");
    drop(theirs);
}

/// Notes after every single change which clusters are published.
fn follow(plane: &ControlPlane) -> (JoinHandle<Vec<BTreeSet<String>>>, usize) {
    let list = plane.get(&path("placementdecisions", Some(TEAM))).unwrap();
    let clusters = |decision: &Value| -> Vec<String> {
        let all =
            decision.pointer("/status/decisions").and_then(Value::as_array).cloned().unwrap_or_default();
        all.iter().map(|one| one["clusterName"].as_str().unwrap().to_owned()).collect()
    };
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap().to_owned();
    let mut known: BTreeMap<String, Vec<String>> =
        list["items"].as_array().unwrap().iter().map(|item| (name(item), clusters(item))).collect();
    let before = known.len();
    let from = list["metadata"]["resourceVersion"].as_str().unwrap();
    let watch = format!("{}?watch=1&resourceVersion={from}", path("placementdecisions", Some(TEAM)));
    let events = plane.watch(&watch, PATIENCE).unwrap();
    let task = std::thread::spawn(move || {
        let mut states = Vec::new();
        for event in events {
            let event = event.expect("the watch goes on");
            let object = &event["object"];
            if name(object) == "end" {
                return states;
            }
            match event["type"].as_str().unwrap() {
                "DELETED" => drop(known.remove(&name(object))),
                _ => drop(known.insert(name(object), clusters(object))),
            }
            states.push(known.values().flatten().cloned().collect());
        }
        panic!("the watch ended");
    });
    (task, before)
}

#[test]
fn on_a_real_hub_no_selected_cluster_is_ever_absent_whoever_is_killed() {
    if parts::find_or_skip("ocm-placement").is_none() {
        return;
    }
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).expect("the definitions");
    fill(ocm, 250);
    let spec = |order: [&str; 2], size: usize| {
        let group = |zone: &str| json!({"groupName": format!("in-{zone}"), "groupClusterSelector": {"labelSelector": {"matchLabels": {"zone": zone}}}});
        let tolerations = json!([{"operator": "Exists"}]);
        json!({"tolerations": tolerations, "decisionStrategy": {"groupStrategy": {
            "clustersPerDecisionGroup": size, "decisionGroups": order.map(group)}}})
    };
    placement(ocm, "web", &spec(["z0", "z1"], 100));
    let mut ours = start(&plane);
    settled(ocm, &ours);
    let (following, slices) = follow(&plane);
    assert!(slices >= 3, "{slices}");
    let web = format!("{}/web", path("placements", Some(TEAM)));
    for round in 0..10 {
        let order = if round % 2 == 0 { ["z1", "z0"] } else { ["z2", "z1"] };
        plane.patch(&web, &json!({"spec": spec(order, 50 + 23 * (round % 3))})).unwrap();
        for number in (round..250).step_by(31) {
            let label = json!({"metadata": {"labels": {"zone": format!("z{}", (number + round) % 3)}}});
            plane.patch(&format!("{}/c{number:03}", path("managedclusters", None)), &label).unwrap();
        }
        if round % 3 == 2 {
            // Dropped is killed, wherever it was.
            drop(ours);
            ours = start(&plane);
        }
    }
    until("the newest wish to be published", || {
        let web = plane.get(&web).unwrap();
        let observed = &web["status"]["conditions"][0]["observedGeneration"];
        (*observed == web["metadata"]["generation"]).then_some(())
    });
    ours.until("placements being written: 0");
    let end = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "end", "namespace": TEAM}});
    ocm.create("placementdecisions", &end).unwrap();
    let states = following.join().unwrap();
    assert!(states.len() > 20, "there was something to see: {}", states.len());
    for (number, state) in states.iter().enumerate() {
        assert_eq!(state.len(), 250, "after change {number}");
    }
}
