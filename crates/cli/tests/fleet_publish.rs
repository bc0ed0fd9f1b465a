//! `loadline fleet --publish`, end to end: the real binary tells a hub how loaded members are. Members are in-memory API
//! servers over sockets; the hub is one, too, or a real kube-apiserver on which Open Cluster Management's own placement
//! controller decides. It knows nothing of us but the scores.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

#[path = "common/service.rs"]
mod service;

use jiff::{SignedDuration, Timestamp};
use loadline_api::ocm::DEFINITIONS;
use loadline_apiserver::ApiServer;
use loadline_apiserver::listen::Serving;
use loadline_apiserver::metrics::Sample;
use loadline_testkit::ocm::{self, Ocm, path};
use serde_json::{Value, json};
use service::{Service, until};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const HOUR: i64 = 3600;

/// An in-memory API server that listens, with a kubeconfig.
struct Server {
    api: ApiServer,
    /// Serves as long as it is there.
    _serving: Serving,
    client: kube::Client,
    kubeconfig: PathBuf,
}

impl Server {
    async fn start(folder: &Path, name: &str) -> Self {
        let api = ApiServer::default();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let serving = api.listen(address).await.unwrap().start();
        let kubeconfig = folder.join(name);
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": serving.url()}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {}}],
        });
        std::fs::write(&kubeconfig, text.to_string()).unwrap();
        let client = common::client(&kubeconfig).await;
        Self { api, _serving: serving, client, kubeconfig }
    }

    async fn send(&self, method: &str, path: &str, body: &Value) -> Value {
        let kind = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = http::Request::builder().method(method).uri(path).header("content-type", kind);
        self.client.request(request.body(body.to_string().into_bytes()).unwrap()).await.unwrap()
    }
}

/// A member with two nodes of 8 cores, 32 GiB and 4 GPUs.
struct Member(Server);

impl Member {
    async fn start(folder: &Path, name: &str) -> Self {
        let member = Self(Server::start(folder, name).await);
        for node in ["n1", "n2"] {
            let has = json!({"cpu": "8", "memory": "32Gi", "pods": "110", "nvidia.com/gpu": "4"});
            let status = json!({"allocatable": has, "capacity": has, "conditions": [{"type": "Ready", "status": "True"}]});
            let node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": node}, "status": status});
            member.0.send("POST", "/api/v1/nodes", &node).await;
        }
        member
    }

    /// Both nodes use so much each.
    fn uses(&self, cpu: &str, memory: &str, at: Timestamp) {
        for node in ["n1", "n2"] {
            let usage = [("cpu", cpu), ("memory", memory)].map(|(k, v)| (k.to_owned(), v.to_owned()));
            let sample = Sample { at, window: Duration::from_secs(15) };
            self.0.api.set_node_metrics(node, &usage.into(), sample);
        }
    }

    /// A pod that has been running for an hour and asks for that.
    async fn pod(&self, name: &str, asks: Value) {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i", "resources": {"requests": asks, "limits": asks}}]}});
        self.0.send("POST", "/api/v1/namespaces/default/pods", &pod).await;
        let started = ago(HOUR).strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let status = json!({"status": {"phase": "Running", "containerStatuses": [{"name": "c", "image": "i", "imageID": "i",
            "ready": true, "restartCount": 0, "state": {"running": {"startedAt": started}}}]}});
        self.0.send("PATCH", &format!("/api/v1/namespaces/default/pods/{name}/status"), &status).await;
    }

    fn flag(&self, name: &str) -> String {
        format!("--member={name}={}", self.0.kubeconfig.display())
    }
}

fn ago(seconds: i64) -> Timestamp {
    Timestamp::now() - SignedDuration::from_secs(seconds)
}

fn object(kind: &str, version: &str, namespace: Option<&str>, name: &str, spec: &Value) -> Value {
    let mut object = json!({"apiVersion": format!("{}/{version}", ocm::GROUP), "kind": kind,
        "metadata": {"name": name}, "spec": spec});
    if let Some(namespace) = namespace {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}

/// A placement that weighs scores of ours, and how steady it is.
fn placement(name: &str, clusters: u32, scores: &[&str], steady: i32) -> Value {
    let coordinate = |score: &&str| {
        let add_on = json!({"resourceName": "loadline", "scoreName": score});
        json!({"scoreCoordinate": {"type": "AddOn", "addOn": add_on}, "weight": 1})
    };
    let mut weighed: Vec<Value> = scores.iter().map(coordinate).collect();
    if steady > 0 {
        weighed.push(json!({"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": steady}));
    }
    let spec = json!({"numberOfClusters": clusters, "prioritizerPolicy": {"mode": "Exact", "configurations": weighed}});
    object("Placement", "v1beta1", Some("apps"), name, &spec)
}

/// Which clusters a placement has been given.
fn selected(ocm: Ocm<'_>, placement: &str) -> Vec<String> {
    let label = "cluster.open-cluster-management.io/placement";
    let all = ocm.all("placementdecisions").unwrap();
    let own = all.iter().filter(|one| one["metadata"]["labels"][label] == placement);
    let names = own.flat_map(|one| one["status"]["decisions"].as_array().cloned().unwrap_or_default());
    let mut names: Vec<String> = names.map(|one| one["clusterName"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn placements_decided_by_open_cluster_management_itself_follow_the_load_of_members() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let set = json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": {}}});
    ocm.create("managedclustersets", &object("ManagedClusterSet", "v1beta2", None, "all", &set)).unwrap();
    ocm.namespace("apps").unwrap();
    let binding =
        object("ManagedClusterSetBinding", "v1beta2", Some("apps"), "all", &json!({"clusterSet": "all"}));
    ocm.create("managedclustersetbindings", &binding).unwrap();
    let mut members = Vec::new();
    for name in ["m1", "m2", "m3"] {
        ocm.namespace(name).unwrap();
        let mut cluster = object("ManagedCluster", "v1", None, name, &json!({"hubAcceptsClient": true}));
        // All the same: nothing but what we publish tells them apart.
        let has = json!({"cpu": "16", "memory": "64Gi"});
        cluster["status"] = json!({"capacity": has, "allocatable": has, "conditions": [], "version": {}});
        ocm.create("managedclusters", &cluster).unwrap();
        members.push(Member::start(folder.path(), name).await);
    }
    let [m1, m2, m3] = &members[..] else { unreachable!("three of them") };
    for (member, cpu, memory) in [(m1, "6", "4Gi"), (m2, "2", "24Gi"), (m3, "3", "8Gi")] {
        member.uses(cpu, memory, ago(60));
    }
    m1.pod("idle", json!({"cpu": "1"})).await;
    m2.pod("train-2", json!({"nvidia.com/gpu": "6"})).await;
    m3.pod("train-3", json!({"nvidia.com/gpu": "2"})).await;
    for wanted in [
        placement("least-cpu", 1, &["cpuFreeMeasured"], 0),
        placement("both", 2, &["cpuFreeMeasured", "memoryFreeMeasured"], 0),
        placement("gpu", 1, &["nvidia.com/gpuFreeRequested"], 0),
    ] {
        ocm.create("placements", &wanted).unwrap();
    }
    let _controller = ocm.controller().unwrap();
    let hub = format!("--kubeconfig={}", plane.kubeconfig().display());
    let publisher = Service::start(&[
        "fleet".to_owned(),
        "--publish".to_owned(),
        hub,
        m1.flag("m1"),
        m2.flag("m2"),
        m3.flag("m3"),
        "--publish-interval=1s".to_owned(),
        "--score-validity=20m".to_owned(),
    ]);
    publisher.until("active");
    let decided = |placement: &str, want: &[&str]| {
        let what = format!("{placement}: {want:?}");
        until(&what, || (selected(ocm, placement) == want).then_some(()));
    };
    let scores = |cluster: &str, want: &[(&str, i64)]| {
        let path = format!("{}/loadline", path("addonplacementscores", Some(cluster)));
        until(&format!("{cluster}: {want:?}"), || {
            let object = plane.get(&path).ok()?;
            let scores = object["status"]["scores"].as_array()?.clone();
            let has = |(name, points): &(&str, i64)| {
                scores.iter().any(|one| one["name"] == *name && one["value"] == *points)
            };
            want.iter().all(has).then_some(())
        });
    };

    // Of 16 cores and 64 GiB: 12, 4 and 6 cores, 8, 48 and 16 GiB are used.
    scores("m1", &[("cpuFreeMeasured", -50), ("memoryFreeMeasured", 75)]);
    scores(
        "m2",
        &[("cpuFreeMeasured", 50), ("memoryFreeMeasured", -50), ("nvidia.com/gpuFreeRequested", -50)],
    );
    scores("m3", &[("cpuFreeMeasured", 25), ("memoryFreeMeasured", 50), ("nvidia.com/gpuFreeRequested", 50)]);
    // Story 1: the cluster whose CPU is used least; two by CPU and memory, with 25, 0 and 75 points.
    decided("least-cpu", &["m2"]);
    decided("both", &["m1", "m3"]);
    // Story 5: the least GPU usage.
    decided("gpu", &["m1"]);
    // Pinned from now on: before there were scores it would have been to anybody.
    ocm.create("placements", &placement("pinned", 1, &["cpuFreeMeasured"], 3)).unwrap();
    decided("pinned", &["m2"]);

    // Story 3: load moves, and the decision with it; story 4: unless it is pinned.
    m1.uses("1", "4Gi", ago(40));
    m2.uses("7", "24Gi", ago(40));
    scores("m1", &[("cpuFreeMeasured", 75)]);
    scores("m2", &[("cpuFreeMeasured", -75)]);
    decided("least-cpu", &["m1"]);
    m1.pod("train-1", json!({"nvidia.com/gpu": "7"})).await;
    decided("gpu", &["m3"]);
    decided("pinned", &["m2"]);

    // A member that loses all of its nodes is not the idlest.
    for node in ["n1", "n2"] {
        let down = json!({"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}});
        m1.0.send("PATCH", &format!("/api/v1/nodes/{node}/status"), &down).await;
    }
    scores("m1", &[("cpuFreeMeasured", -100), ("cpuFreeRequested", -100)]);
    decided("least-cpu", &["m3"]);

    let load = plane.get(&format!("{}/m3", path("managedclusters", None))).unwrap();
    let text = load["metadata"]["annotations"]["loadline.dev/load"].as_str().unwrap();
    let load: Value = serde_json::from_str(text).unwrap();
    assert_eq!((&load["measured"]["cpu"], &load["requested"]["nvidia.com/gpu"]), (&json!("6"), &json!("2")));
    assert!(publisher.sum("loadline_publish_writes_total") >= 6.0);
    assert!(publisher.ends());
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_member_it_tells_the_hub_of_that_one_and_says_how_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let hub = Server::start(folder.path(), "hub").await;
    for text in DEFINITIONS {
        let definition: Value = serde_saphyr::from_str(text).unwrap();
        hub.send("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition).await;
    }
    hub.send(
        "POST",
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m1"}}),
    )
    .await;
    let member = Member::start(folder.path(), "member").await;
    member.uses("2", "8Gi", ago(60));
    let late = folder.path().join("late");
    let file = |flag: &str, server: &Server| format!("--{flag}={}", server.kubeconfig.display());
    let publisher = Service::start(&[
        "fleet".to_owned(),
        "--publish".to_owned(),
        "--cluster-name=m1".to_owned(),
        file("kubeconfig", &hub),
        file("member-kubeconfig", &member.0),
        format!("--member=m2={}", late.display()),
        "--publish-interval=1s".to_owned(),
        "--score-name=resource-usage-score".to_owned(),
        "--leader-elect".to_owned(),
        "--leader-elect-resource-namespace=m1".to_owned(),
    ]);
    publisher.until("the hub has no ManagedCluster m1: waiting for it to be registered");
    publisher.until("m2: away: kubeconfig ");
    let cluster = object("ManagedCluster", "v1", None, "m1", &json!({"hubAcceptsClient": true}));
    hub.send("POST", &path("managedclusters", None), &cluster).await;
    publisher.until("active\nm1: 2 nodes, 0 pods, measured");
    publisher.until("scores: told");
    let scores = format!("{}/resource-usage-score", path("addonplacementscores", Some("m1")));
    let written = hub.send("GET", &scores, &Value::Null).await;
    let listed = written["status"]["scores"].as_array().unwrap();
    let names: Vec<&str> = listed.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert!(names.contains(&"cpuAvailable") && names.contains(&"memAvailable"), "as the add-on's: {names:?}");
    let lease = "/apis/coordination.k8s.io/v1/namespaces/m1/leases/loadline-publish-m1";
    assert!(
        hub.send("GET", lease, &Value::Null).await["spec"]["holderIdentity"].is_string(),
        "a lease of its own"
    );
    let metrics = publisher.get("/metrics");
    for metric in [
        "loadline_publish_writes_total{object=\"scores\",reason=\"first\"} 1",
        "loadline_publish_summary_age_seconds{cluster=\"m1\"}",
        "loadline_publish_measured_nodes{cluster=\"m1\"} 2",
        "loadline_publish_expired{cluster=\"m1\"} 0",
        "loadline_publish_failures_total{object=\"annotation\",reason=\"missing\"}",
    ] {
        assert!(metrics.contains(metric), "{metric} is not in {metrics}");
    }
    // A member whose kubeconfig comes later is told of then.
    let cluster = object("ManagedCluster", "v1", None, "m2", &json!({"hubAcceptsClient": true}));
    hub.send("POST", &path("managedclusters", None), &cluster).await;
    hub.send(
        "POST",
        "/api/v1/namespaces",
        &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "m2"}}),
    )
    .await;
    std::fs::copy(&member.0.kubeconfig, &late).unwrap();
    publisher.until("m2: 2 nodes, 0 pods, measured");
    assert!(publisher.ends());
}

/// The YAML of the guide, object by object: what it must be allowed.
fn rights() -> Vec<Value> {
    let guide = include_str!("../../../docs/guide/fleet-publish.md");
    let (_, part) = guide.split_once("## What it must be allowed").unwrap();
    let blocks = part.split("```yaml\n").skip(1).filter_map(|block| block.split("```").next());
    let objects = blocks.flat_map(|block| block.split("---\n"));
    objects.map(|text| serde_saphyr::from_str(text).unwrap()).collect()
}

#[test]
fn the_rights_of_the_guide_suffice_and_are_those_of_one_member() {
    let Some(plane) = ocm::plane_or_skip() else { return };
    let ocm = Ocm::install(&plane).unwrap();
    let folder = tempfile::tempdir().unwrap();
    for name in ["m1", "m2"] {
        ocm.namespace(name).unwrap();
        let cluster = object("ManagedCluster", "v1", None, name, &json!({"hubAcceptsClient": true}));
        ocm.create("managedclusters", &cluster).unwrap();
    }
    // The hub is its own member, too: a real API server to read from with rights of its own.
    plane.add_node("n1", &Value::Null, &json!({"cpu": "8", "memory": "32Gi", "pods": "110"})).unwrap();
    let account = json!({"metadata": {"name": "publisher"}});
    plane.create("/api/v1/namespaces/m1/serviceaccounts", &account).unwrap();
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    let subjects = json!([{"kind": "ServiceAccount", "name": "publisher", "namespace": "m1"}]);
    let rights = rights();
    assert_eq!(rights.len(), 3, "in the member, in the hub, and in its namespace there");
    for role in rights {
        let (kind, name) = (role["kind"].as_str().unwrap(), &role["metadata"]["name"]);
        let plural = match kind {
            "Role" => "namespaces/m1/roles",
            _ => "clusterroles",
        };
        plane.create(&format!("{rbac}/{plural}"), &role).unwrap();
        let granted = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": name});
        let binding = json!({"metadata": {"name": name}, "roleRef": granted, "subjects": subjects});
        plane.create(&format!("{rbac}/{}", plural.replace("roles", "rolebindings")), &binding).unwrap();
    }
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}});
    let token = plane.create("/api/v1/namespaces/m1/serviceaccounts/publisher/token", &asked).unwrap();
    let kubeconfig = folder.path().join("publisher");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": plane.url(), "certificate-authority": plane.ca_file()}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {"token": token["status"]["token"]}}],
    });
    std::fs::write(&kubeconfig, text.to_string()).unwrap();
    let file = kubeconfig.display();
    let publisher = Service::start(&[
        "fleet".to_owned(),
        "--publish".to_owned(),
        format!("--kubeconfig={file}"),
        format!("--member=m1={file}"),
        format!("--member=m2={file}"),
        "--publish-interval=1s".to_owned(),
        "--leader-elect".to_owned(),
        "--leader-elect-resource-namespace=m1".to_owned(),
    ]);
    publisher.until("m2: 1 nodes, 0 pods, use not known (0 of 1 nodes measured)");
    publisher.until("annotation: told");
    publisher.until("scores: told");
    let scores = plane.get(&format!("{}/loadline", path("addonplacementscores", Some("m1")))).unwrap();
    let free = json!({"name": "cpuFreeRequested", "value": 100});
    assert!(scores["status"]["scores"].as_array().unwrap().contains(&free), "{scores}");
    // Nothing of the other member's.
    publisher
        .until("annotation: cannot patch /apis/cluster.open-cluster-management.io/v1/managedclusters/m2");
    publisher.until("scores: cannot get /apis/cluster.open-cluster-management.io/v1alpha1/namespaces/m2");
    let m2 = plane.get(&format!("{}/m2", path("managedclusters", None))).unwrap();
    assert!(m2["metadata"]["annotations"].is_null(), "{m2}");
    assert!(publisher.ends());

    // As the chart runs it, in the member, it gets its lease by the same rights.
    plane.delete(&format!("{}/loadline", path("addonplacementscores", Some("m1")))).unwrap();
    let mut shipped = shipped();
    for word in &mut shipped {
        *word = word.replace("/etc/loadline/hub/kubeconfig", &file.to_string()).replace("member1", "m1");
    }
    // A pod would be in the member.
    shipped.push(format!("--member-kubeconfig={file}"));
    let publisher = Service::start(&shipped);
    publisher.until("scores: told");
    let lease = plane.get("/apis/coordination.k8s.io/v1/namespaces/m1/leases/loadline-publish-m1").unwrap();
    assert!(lease["spec"]["holderIdentity"].is_string(), "{lease}");
    assert!(publisher.ends());
}

/// What the file that is made from the chart says, but for where it listens and how it logs.
fn shipped() -> Vec<String> {
    let text = include_str!("../../../deploy/fleet/publish.yaml");
    let objects = text.split("\n---\n").map(|text| serde_saphyr::from_str(text).unwrap());
    let args = objects.filter_map(|object: Value| {
        object.pointer("/spec/template/spec/containers/0/args")?.as_array().cloned()
    });
    let words = args.flatten().map(|word| word.as_str().unwrap().to_owned());
    words
        .filter(|word| !word.starts_with("--http-bind-address") && !word.starts_with("--log-format"))
        .collect()
}

/// Ends by itself, with what it says.
fn refused(args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline")).arg("fleet").args(args).output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn everything_that_is_wrong_is_told_at_once() {
    let (code, said) = refused(&[
        "--publish",
        "--kubeconfig=/nowhere/hub",
        "--cluster-name=M_1",
        "--member=m2=/nowhere/m2",
        "--member=m2=/nowhere/m2",
        "--score-name=Load!",
        "--score-validity=1m",
        "--publish-interval=30s",
        "--min-measured=0",
        "--leader-elect",
        "--leader-elect-renew-deadline=1m",
    ]);
    assert_eq!(code, Some(2), "{said}");
    for problem in [
        "the hub: kubeconfig /nowhere/hub",
        "--cluster-name: \"M_1\" given, expected the name of a ManagedCluster",
        "member M_1: not in a cluster",
        "give --member-kubeconfig",
        "member m2: kubeconfig /nowhere/m2",
        "member \"m2\" is given twice",
        "--score-name: \"Load!\" given",
        "--score-validity: 60s given, expected at least 4 times --publish-interval, which is 30s",
        "--min-measured: 0 given",
        "--leader-elect-renew-deadline",
    ] {
        assert!(said.contains(problem), "{problem} is not in {said}");
    }
}

#[test]
fn without_a_member_there_is_nothing_to_publish_and_flags_belong_to_it() {
    let (code, said) = refused(&["--publish", "--kubeconfig=/nowhere/hub"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("no member: give --cluster-name NAME"), "{said}");
    let (code, said) = refused(&["--api=ocm", "--cluster-name=m1"]);
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("--cluster-name is for --publish; --api ocm was given"), "{said}");
}
