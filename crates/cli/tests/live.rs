//! `what-if --live`: the same answer from a cluster as from files.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use loadline_apiserver::ApiServer;
use loadline_apiserver::metrics::Sample;
use loadline_testkit::ControlPlane;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

async fn create(client: &Client, resource: &ApiResource, namespaced: bool, object: Value) {
    let api: Api<DynamicObject> = if namespaced {
        Api::default_namespaced_with(client.clone(), resource)
    } else {
        Api::all_with(client.clone(), resource)
    };
    let object = serde_json::from_value(object).unwrap();
    let created: DynamicObject = api.create(&PostParams::default(), &object).await.unwrap();
    drop(created);
}

fn resource(group: &str, kind: &str, plural: &str) -> ApiResource {
    let gvk = kube::core::GroupVersionKind::gvk(group, "v1", kind);
    ApiResource::from_gvk_with_plural(&gvk, plural)
}

fn node(name: &str) -> Value {
    let amounts = json!({"cpu": "400", "memory": "64Gi", "pods": "1000"});
    json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": {"allocatable": amounts, "capacity": amounts}})
}

fn estimate(kubeconfig: &Path, more: &[&str]) -> Output {
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/estimate/solver.yaml");
    Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args(["what-if", "estimate", "-o", "json", "-f", workload, "--live", "--kubeconfig"])
        .arg(kubeconfig)
        .args(more)
        .output()
        .unwrap()
}

fn kubeconfig(folder: &Path, url: &str) -> std::path::PathBuf {
    let path = folder.join("kubeconfig");
    let text = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": url}}],
        "users": [{"name": "me", "user": {}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "me"}}],
    });
    std::fs::write(&path, text.to_string()).unwrap();
    path
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_answers_like_files() {
    let server = ApiServer::default();
    let client = Client::new(server.clone(), "default");
    let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &listening.url());
    let serving = tokio::spawn(listening.serve(std::future::pending()));

    let (nodes, pods) = (resource("", "Node", "nodes"), resource("", "Pod", "pods"));
    for name in ["n1", "n2"] {
        create(&client, &nodes, false, node(name)).await;
    }
    // More than a page, half a core each: 600 × 0.5 = 300 cores of n1 are taken.
    for at in 0..600 {
        let spec = json!({"nodeName": "n1", "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]});
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}")}, "spec": spec});
        create(&client, &pods, true, pod).await;
    }
    let answered = estimate(&config, &["--context", "here"]);
    let told = String::from_utf8_lossy(&answered.stderr).into_owned();
    assert!(answered.status.success(), "{told}");
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(answer["maxReplicas"], 8 + 33, "⌊100 ÷ 12⌋ + ⌊400 ÷ 12⌋: {answer}");

    // Another node in a file is another node.
    let more = folder.path().join("more.json");
    std::fs::write(&more, node("n3").to_string()).unwrap();
    let answered = estimate(&config, &["--load", "-f", more.to_str().unwrap()]);
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(answer["maxReplicas"], 8 + 33 + 33);
    // The metrics API is there, and empty.
    let warnings = answer["warnings"].to_string();
    assert!(warnings.contains("the load of 3 of 3 nodes was not measured"), "{warnings}");

    // The line is at 0.65 of 400 = 260 cores. On n1 40 are used, and pods that ask for 300 have not started yet: nothing
    // more comes. On n2 200 are used.
    let sample = Sample { at: jiff::Timestamp::now(), window: Duration::from_secs(15) };
    for (name, cpu) in [("n1", "40"), ("n2", "200")] {
        server.set_node_metrics(
            name,
            &[("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), "1Gi".to_owned())].into(),
            sample,
        );
    }
    let answered = estimate(&config, &["--load"]);
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(
        (&answer["maxReplicas"], &answer["load"]["maxReplicas"]),
        (&json!(41), &json!(5)),
        "⌊(260 − 200) ÷ 12⌋"
    );
    serving.abort();
}

/// What a cluster with crane's definitions says of one of its nodes.
#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_says_whom_a_node_would_slow_down() {
    let server = ApiServer::default();
    let client = Client::new(server.clone(), "default");
    let listening = server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    let folder = tempfile::tempdir().unwrap();
    let config = kubeconfig(folder.path(), &listening.url());
    let serving = tokio::spawn(listening.serve(std::future::pending()));
    let ask = |more: &[&str]| {
        let config = config.clone();
        let more: Vec<String> = more.iter().map(ToString::to_string).collect();
        tokio::task::spawn_blocking(move || {
            let mut command = Command::new(env!("CARGO_BIN_EXE_loadline"));
            command.args(["what-if", "protect", "-o", "json", "--live", "--kubeconfig"]).arg(config);
            command.args(more).output().unwrap()
        })
    };

    let amounts = json!({"cpu": "8", "memory": "32Gi", "pods": "110"});
    for name in ["n1", "n2"] {
        let status = json!({"allocatable": amounts, "capacity": amounts});
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status});
        create(&client, &resource("", "Node", "nodes"), false, node).await;
    }
    let class = json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "batch-low"}, "value": 50});
    create(&client, &resource("scheduling.k8s.io", "PriorityClass", "priorityclasses"), false, class).await;
    for (name, node) in [("crunch", "n1"), ("elsewhere", "n2")] {
        let resources = json!({"requests": {"cpu": "1"}, "limits": {"cpu": "5"}});
        let spec = json!({
            "nodeName": node, "priorityClassName": "batch-low",
            "containers": [{"name": "main", "image": "i", "resources": resources}],
        });
        let metadata = json!({"name": name, "labels": {"tier": "batch"}});
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec});
        create(&client, &resource("", "Pod", "pods"), true, pod).await;
    }
    let without = ask(&["--node", "n1"]).await.unwrap();
    let told = String::from_utf8_lossy(&without.stderr).into_owned();
    assert_eq!(without.status.code(), Some(2), "{told}");
    assert!(told.contains("expected a NodeSnapshot or NodeMetrics of the node n1, found neither"), "{told}");

    let sample = Sample { at: jiff::Timestamp::now(), window: Duration::from_secs(15) };
    let amounts = |cpu: &str| -> BTreeMap<String, String> {
        [("cpu".to_owned(), cpu.to_owned()), ("memory".to_owned(), "4Gi".to_owned())].into()
    };
    server.set_node_metrics("n1", &amounts("7500m"), sample);
    server.set_node_metrics("n2", &amounts("7900m"), sample);
    for name in ["crunch", "elsewhere"] {
        server.set_pod_metrics("default", name, &[("main".to_owned(), amounts("4500m"))].into(), sample);
    }
    // The cluster has none of crane's objects: they come from a file, and with them the class that both have.
    let policy = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/others/crane/qos.yaml");
    let answered = ask(&["--node", "n1", "-f", policy]).await.unwrap();
    let told = String::from_utf8_lossy(&answered.stderr).into_owned();
    assert!(answered.status.success(), "{told}");
    assert!(told.contains("the cluster has no NodeQOS"), "{told}");
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(answer["node"], "n1");
    let slowed: Vec<&Value> =
        answer["writes"].as_array().unwrap().iter().map(|write| &write["pod"]).collect();
    assert_eq!(slowed, ["default/crunch"], "(7500 − 6000) × 1.1 is to be released: {answer}");
    serving.abort();
}

// The real API server pages and selects as ours does, and has no metrics of its own.
#[test]
fn a_real_cluster_answers_too() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    for name in ["n1", "n2"] {
        plane.add_node(name, &json!({}), &node(name)["status"]["allocatable"]).unwrap();
    }
    for at in 0..510 {
        let spec = json!({"nodeName": "n1", "containers": [{"name": "a", "image": "i", "resources": {"requests": {"cpu": "500m"}}}]});
        let pod =
            json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": format!("p{at}")}, "spec": spec});
        plane.create("/api/v1/namespaces/default/pods", &pod).unwrap();
    }
    let answered = estimate(&plane.kubeconfig(), &["--load"]);
    let told = String::from_utf8_lossy(&answered.stderr).into_owned();
    assert!(answered.status.success(), "{told}");
    let answer: Value = serde_json::from_slice(&answered.stdout).unwrap();
    assert_eq!(answer["maxReplicas"], 12 + 33, "⌊(400 − 510 × 0.5) ÷ 12⌋ + ⌊400 ÷ 12⌋: {answer}");
    assert!(told.contains("the cluster has no measurements (/apis/metrics.k8s.io/v1beta1/nodes)"), "{told}");
}

#[test]
fn a_cluster_that_cannot_be_read_is_one_clear_line() {
    let folder = tempfile::tempdir().unwrap();
    // Nobody listens on the port of a listener that is gone.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let config = kubeconfig(folder.path(), &format!("http://127.0.0.1:{port}"));
    for (more, expected) in [
        (&[][..], "error: cannot read the nodes of the cluster: "),
        (&["--context", "there"], "error: cannot use the kubeconfig "),
    ] {
        let answered = estimate(&config, more);
        let told = String::from_utf8_lossy(&answered.stderr).into_owned();
        assert_eq!((answered.status.code(), answered.stdout.len()), (Some(2), 0), "{told}");
        assert!(told.starts_with(expected) && told.trim_end().lines().count() == 1, "{told}");
    }
}
