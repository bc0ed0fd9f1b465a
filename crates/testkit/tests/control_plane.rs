//! A real control plane starts, answers, and its controllers and scheduler work.

#![expect(clippy::unwrap_used, reason = "a failed step of a helper fails its test")]

use loadline_testkit::{ControlPlane, Error, WORKLOADS};
use serde_json::{Value, json};
use std::fs;
use std::sync::LazyLock;
use std::thread;
use std::time::{Duration, Instant};

static PLANE: LazyLock<Option<ControlPlane>> =
    LazyLock::new(|| ControlPlane::setup().controllers(WORKLOADS).scheduler(&[]).start_or_skip());

fn post(plane: &ControlPlane, path: &str, body: &Value) -> Value {
    let reply = plane.request("POST", path, Some(body)).unwrap();
    assert_eq!(reply.status, 201, "{}", String::from_utf8_lossy(&reply.body));
    reply.json()
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_mins(2), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(50));
    }
}

fn items(plane: &ControlPlane, path: &str) -> Vec<Value> {
    let list = plane.request("GET", path, None).unwrap().json();
    list["items"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_namespace_made_over_https_is_there() {
    let Some(plane) = PLANE.as_ref() else { return };
    post(plane, "/api/v1/namespaces", &json!({"metadata": {"name": "hello"}}));
    let reply = plane.request("GET", "/api/v1/namespaces/hello", None).unwrap();
    assert_eq!((reply.status, reply.json()["status"]["phase"].as_str()), (200, Some("Active")));
    assert_eq!(plane.request("GET", "/api/v1/namespaces/other", None).unwrap().status, 404);
}

#[test]
fn a_deployment_gets_a_replica_set_whose_pods_are_bound() {
    let Some(plane) = PLANE.as_ref() else { return };
    post(plane, "/api/v1/namespaces", &json!({"metadata": {"name": "web"}}));
    let room = json!({"cpu": "4", "memory": "8Gi", "pods": "20"});
    let node = json!({"metadata": {"name": "node"}});
    post(plane, "/api/v1/nodes", &node);
    let status = json!({"status": {"capacity": room, "allocatable": room,
        "conditions": [{"type": "Ready", "status": "True"}]}});
    let reply = plane.request("PATCH", "/api/v1/nodes/node/status", Some(&status)).unwrap();
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));

    let labels = json!({"app": "web"});
    let container = json!({"name": "c", "image": "none", "resources": {"requests": {"cpu": "100m"}}});
    let spec = json!({"replicas": 3, "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}});
    let path = "/apis/apps/v1/namespaces/web";
    post(plane, &format!("{path}/deployments"), &json!({"metadata": {"name": "web"}, "spec": spec}));

    wait_until("one replica set is there", || items(plane, &format!("{path}/replicasets")).len() == 1);
    wait_until("three pods are bound", || {
        let pods = items(plane, "/api/v1/namespaces/web/pods");
        pods.len() == 3 && pods.iter().all(|pod| pod["spec"]["nodeName"] == "node")
    });
}

#[test]
fn kubectl_is_of_the_servers_version_and_reaches_it() {
    let Some(plane) = PLANE.as_ref() else { return };
    let output = plane.kubectl().unwrap().args(["version", "-o", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let versions: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(versions["serverVersion"]["gitVersion"].as_str().unwrap().starts_with("v1."), "{versions}");
}

#[test]
fn a_flag_the_server_does_not_know_is_shown_from_its_log() {
    let setup = ControlPlane::setup().apiserver(&["--no-such-flag"]);
    match setup.start() {
        Err(Error::NotReady { name, what, lines }) => {
            assert_eq!((name.as_str(), what.as_str()), ("kube-apiserver", "ended with status 1"));
            assert!(lines.contains("--no-such-flag"), "{lines}");
        }
        Err(Error::Missing(missing)) => loadline_testkit::parts::skip(&missing),
        other => panic!("started: {other:?}"),
    }
}

#[test]
fn dropping_it_leaves_nothing_behind() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let (folder, url) = (plane.folder().to_owned(), plane.url().to_owned());
    assert!(fs::metadata(plane.kubeconfig()).is_ok() && fs::metadata(plane.ca_file()).is_ok());
    assert!(plane.log("kube-apiserver").is_some_and(|log| log.is_file()));
    drop(plane);
    assert!(!folder.exists());
    assert!(std::net::TcpStream::connect(url.trim_start_matches("https://")).is_err());
}
