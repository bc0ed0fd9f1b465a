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
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

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

const HUB: &str = "open-cluster-management-hub";
const OPERATOR: &str = "open-cluster-management";

/// What the page says to type to replace the other, and to roll that back.
fn typed() -> [Vec<String>; 2] {
    const PAGE: &str = include_str!("../../../docs/guide/fleet-ocm.md");
    let (_, section) = PAGE.split_once("## Replace this Deployment by that one\n").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let blocks = section.split("```console\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let lines = |block: &str| block.lines().map(|line| line.strip_prefix("$ ").unwrap().to_owned()).collect();
    let [replace, back] = blocks.map(lines).collect::<Vec<_>>().try_into().unwrap();
    [replace, back]
}

/// Types a command of the page, at the top of this repository.
fn kubectl(plane: &ControlPlane, line: &str) {
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!(words[0], "kubectl", "{line}");
    let top = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let output = plane.kubectl().unwrap().args(&words[1..]).current_dir(top).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

fn deployment_path(namespace: &str, name: &str) -> String {
    format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}")
}

/// A Deployment that is only scaled: the programs are the test's to start and end, as it says.
fn resting(plane: &ControlPlane, namespace: &str, name: &str) {
    let labels = json!({"app": name});
    let spec = json!({"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels},
        "spec": {"containers": [{"name": "main", "image": "none"}]}}});
    plane
        .create(&deployment_path(namespace, ""), &json!({"metadata": {"name": name}, "spec": spec}))
        .unwrap();
}

fn replicas(plane: &ControlPlane, namespace: &str, name: &str) -> i64 {
    plane.get(&deployment_path(namespace, name)).unwrap()["spec"]["replicas"].as_i64().unwrap()
}

/// Starts ours as its Deployment says, as its account and with some more flags.
fn deployed(plane: &ControlPlane, more: &[&str]) -> Service {
    let mut config: Value =
        serde_json::from_str(&std::fs::read_to_string(plane.kubeconfig()).unwrap()).unwrap();
    let spec =
        plane.get(&deployment_path(HUB, "loadline-fleet")).unwrap()["spec"]["template"]["spec"].clone();
    let account = spec["serviceAccountName"].as_str().unwrap();
    config["users"][0]["user"]["as"] = json!(format!("system:serviceaccount:{HUB}:{account}"));
    let file = plane.folder().join("least-privilege");
    std::fs::write(&file, config.to_string()).unwrap();
    let args =
        spec["containers"][0]["args"].as_array().unwrap().iter().map(|arg| arg.as_str().unwrap().to_owned());
    // These two are said where it is started.
    let here = |arg: &String| !arg.starts_with("--http-bind-address=") && !arg.starts_with("--log-format=");
    let more = more.iter().map(|arg| (*arg).to_owned());
    let args: Vec<String> =
        args.filter(here).chain([format!("--kubeconfig={}", file.display())]).chain(more).collect();
    Service::start(&args)
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
fn replaced_and_rolled_back_as_the_page_says_the_shipped_deployment_waits_takes_over_and_gives_back() {
    if parts::find_or_skip("kubectl").is_none() {
        return;
    }
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).expect("the definitions");
    ocm.namespace(OPERATOR).unwrap();
    fill(ocm, 10);
    let theirs = ocm.elected_controller().unwrap();
    let lease = "/apis/coordination.k8s.io/v1/namespaces/open-cluster-management-hub/leases/placement-lock";
    let holder = || {
        let lease = plane.get(lease).ok()?;
        lease["spec"]["holderIdentity"].as_str().filter(|holder| !holder.is_empty()).map(str::to_owned)
    };
    let first = until("theirs to lead", holder);
    for (namespace, name) in [(OPERATOR, "cluster-manager"), (HUB, "cluster-manager-placement-controller")] {
        resting(&plane, namespace, name);
    }
    let [replace, back] = typed();
    let [bring, rest @ ..] = &replace[..] else { panic!("no commands") };
    kubectl(&plane, bring);
    let ours = deployed(
        &plane,
        &[
            // Short enough to wait for, long enough for a busy machine.
            "--leader-elect-lease-duration=8s",
            "--leader-elect-renew-deadline=5s",
            "--leader-elect-retry-period=1s",
            "--authorize-debug",
        ],
    );
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
    for line in rest {
        kubectl(&plane, line);
    }
    let resting = |name| replicas(&plane, HUB, name) == 0;
    assert_eq!(replicas(&plane, OPERATOR, "cluster-manager"), 0, "it would put the other back");
    assert!(resting("cluster-manager-placement-controller") && !resting("loadline-fleet"));
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
    for line in &back {
        kubectl(&plane, line);
    }
    assert!(resting("loadline-fleet"));
    assert_eq!(replicas(&plane, OPERATOR, "cluster-manager"), 1, "it puts the other back");
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
    let Some(plane) = ocm::plane_or_skip() else { return };
    never_absent(Ocm::install(&plane).expect("the definitions"));
}

/// The definitions that are shipped, for a hub without Open Cluster Management.
fn shipped() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds")
}

#[test]
fn neither_is_any_where_the_shipped_definitions_are_and_points_are_published_only_so_often() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let ocm = Ocm::install_from(&plane, &shipped()).expect("the definitions");
    never_absent(ocm);
    points(ocm);
}

/// By how much each cluster is preferred is told with it, and told anew by itself only every eight seconds.
fn points(ocm: Ocm<'_>) {
    let plane = ocm.plane();
    let spec = json!({
        "sortBy": "Score", "scoreRateLimit": "8s",
        "predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"zone": "points"}}}}],
        "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": 1}},
        // As the seed writes it.
        "prioritizerPolicy": {"mode": "Exact", "configurations": [{"name": "ResourceAllocatableCPU", "weight": 1}]},
    });
    let cpu = |name: &str, cpu: &str| {
        let path = format!("{}/{name}/status", path("managedclusters", None));
        plane
            .patch(&path, &json!({"status": {"allocatable": {"cpu": cpu}, "capacity": {"cpu": "64"}}}))
            .unwrap();
    };
    for (name, free) in [("points-a", "4"), ("points-b", "16"), ("points-c", "8")] {
        let labels = json!({"cluster.open-cluster-management.io/clusterset": "main", "zone": "points"});
        let object = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": true}});
        ocm.create("managedclusters", &object).unwrap();
        cpu(name, free);
    }
    let ours = start(plane);
    settled(ocm, &ours);
    let began = Instant::now();
    placement(ocm, "points", &spec);
    let told = |slice: usize| {
        let decision =
            plane.get(&format!("{}/points-decision-{slice}", path("placementdecisions", Some(TEAM)))).ok()?;
        let one = decision.pointer("/status/decisions/0")?;
        Some((one["clusterName"].as_str()?.to_owned(), one["score"].as_i64()?))
    };
    let is = |slice: usize, cluster: &str, points: i64| {
        until(&format!("{cluster} with {points}"), || {
            told(slice).filter(|now| *now == (cluster.to_owned(), points))
        });
    };
    // (8 − 4) / (16 − 4) of the way from −100 to 100 is −33.3.
    for (slice, cluster, points) in [(1, "points-b", 100), (2, "points-c", -33), (3, "points-a", -100)] {
        is(slice, cluster, points);
    }
    // The order stays, the points do not: (9 − 4) / 12 is −16.7.
    cpu("points-c", "9");
    is(2, "points-c", -16);
    assert!(began.elapsed() >= Duration::from_secs(7), "points alone wait for their time, in whole seconds");
    // Who comes first never waits.
    plane
        .patch(
            &format!("{}/points", path("placements", Some(TEAM))),
            &json!({"spec": {"scoreRateLimit": "1h"}}),
        )
        .unwrap();
    cpu("points-a", "32");
    is(1, "points-a", 100);
}

fn never_absent(ocm: Ocm<'_>) {
    let plane = ocm.plane();
    fill(ocm, 250);
    let spec = |order: [&str; 2], size: usize| {
        let group = |zone: &str| json!({"groupName": format!("in-{zone}"), "groupClusterSelector": {"labelSelector": {"matchLabels": {"zone": zone}}}});
        let tolerations = json!([{"operator": "Exists"}]);
        json!({"tolerations": tolerations, "decisionStrategy": {"groupStrategy": {
            "clustersPerDecisionGroup": size, "decisionGroups": order.map(group)}}})
    };
    placement(ocm, "web", &spec(["z0", "z1"], 100));
    let mut ours = start(plane);
    settled(ocm, &ours);
    let (following, slices) = follow(plane);
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
            ours = start(plane);
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
