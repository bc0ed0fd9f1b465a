//! `loadline up`, end to end: the real binary, a real client, and kubectl where there is one.
#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

mod common;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use common::Up;
use futures::TryStreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, EvictParams, ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use loadline_testkit::parts;
use serde_json::json;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);

fn web(replicas: i32) -> serde_json::Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {
            "replicas": replicas, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{"name": "web", "image": "nginx"}]},
            },
        },
    })
}

fn is_running(pod: &Pod) -> bool {
    pod.metadata.deletion_timestamp.is_none()
        && pod.status.as_ref().and_then(|s| s.phase.as_deref()) == Some("Running")
}

fn node_of(pod: &Pod) -> &str {
    pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default()
}

/// Follows pods until they are as wanted.
async fn pods_until(api: &Api<Pod>, wanted: impl Fn(&[Pod]) -> bool) -> Vec<Pod> {
    let writer = reflector::store::Writer::default();
    let store = writer.as_reader();
    let events = reflector::reflector(writer, watcher(api.clone(), watcher::Config::default()));
    let mut events = Box::pin(events.default_backoff());
    let seen = async {
        loop {
            events.try_next().await.unwrap();
            let pods: Vec<Pod> = store.state().iter().map(|pod| (**pod).clone()).collect();
            if wanted(&pods) {
                return pods;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("pods never were as wanted")
}

fn all_running(count: usize) -> impl Fn(&[Pod]) -> bool {
    move |pods| pods.len() == count && pods.iter().all(is_running)
}

#[tokio::test]
async fn forty_replicas_run_and_evictions_move_them() {
    let up = Up::start(&["--nodes", "20", "--for", "10m"]);
    let client = common::client(&up.kubeconfig()).await;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let deployments: Api<Deployment> = Api::default_namespaced(client.clone());
    deployments.create(&PostParams::default(), &serde_json::from_value(web(40)).unwrap()).await.unwrap();
    let running = pods_until(&pods, all_running(40)).await;

    let mut spread = BTreeMap::<&str, usize>::new();
    for pod in &running {
        *spread.entry(node_of(pod)).or_default() += 1;
    }
    assert!(spread.len() == 20 && spread.values().all(|count| *count == 2), "in turn: {spread:?}");

    let nodes: Api<Node> = Api::all(client);
    nodes.cordon("node-00").await.unwrap();
    for pod in running.iter().filter(|pod| node_of(pod) == "node-00") {
        pods.evict(pod.metadata.name.as_deref().unwrap(), &EvictParams::default()).await.unwrap();
    }
    let moved = |pods: &[Pod]| all_running(40)(pods) && pods.iter().all(|pod| node_of(pod) != "node-00");
    pods_until(&pods, moved).await;

    let smaller = json!({"spec": {"replicas": 3}});
    deployments.patch("web", &PatchParams::default(), &Patch::Merge(&smaller)).await.unwrap();
    pods_until(&pods, all_running(3)).await;
    assert_eq!(nodes.list(&ListParams::default()).await.unwrap().items.len(), 20);
}

#[tokio::test]
async fn a_pod_ends_by_itself_when_its_annotation_says_so() {
    let up = Up::start(&["--nodes", "1", "--for", "10m"]);
    let pods: Api<Pod> = Api::default_namespaced(common::client(&up.kubeconfig()).await);
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "short", "annotations": {"loadline.dev/run-for": "1s"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let over = |pods: &[Pod]| {
        let phase = |pod: &Pod| pod.status.as_ref().and_then(|s| s.phase.clone());
        pods.iter().any(|pod| phase(pod).as_deref() == Some("Succeeded"))
    };
    let pods = pods_until(&pods, over).await;
    let state = pods[0].status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].state.clone();
    assert_eq!(state.unwrap().terminated.unwrap().exit_code, 0);
}

#[test]
fn kubectl_applies_forty_replicas_and_drain_moves_them() {
    let Some(program) = parts::find_or_skip("kubectl") else { return };
    let up = Up::start(&["--nodes", "20", "--for", "10m"]);
    let manifest = up.folder().join("web.json");
    std::fs::write(&manifest, web(40).to_string()).unwrap();
    let manifest = manifest.to_str().unwrap();
    let kubectl = |args: &[&str]| {
        let output = common::kubectl(&program, &up.kubeconfig(), up.folder()).args(args).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "kubectl {args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    kubectl(&["apply", "-f", manifest]);
    kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    let count = |field: &str| {
        kubectl(&["get", "pods", "--no-headers", "--ignore-not-found", "--field-selector", field])
            .lines()
            .count()
    };
    assert_eq!(count("status.phase=Running"), 40);
    assert_eq!(count("spec.nodeName=node-07"), 2);
    kubectl(&["drain", "node-07", "--ignore-daemonsets", "--timeout=120s"]);
    kubectl(&["rollout", "status", "deployment/web", "--timeout=120s"]);
    assert_eq!(count("status.phase=Running"), 40);
    assert_eq!(count("spec.nodeName=node-07"), 0);
    assert!(kubectl(&["top", "nodes"]).contains("node-07"));
}

#[test]
fn a_bounded_run_ends_with_a_summary() {
    let (status, text) = Up::start(&["--nodes", "3", "--for", "1s"]).wait();
    assert!(status.success());
    assert!(text.contains("Ending: 1s are over."), "{text}");
    assert!(text.contains("nodes     3, 3 ready"), "{text}");
}

#[cfg(unix)]
#[test]
fn a_request_to_terminate_ends_it_cleanly_with_the_same_summary() {
    let up = Up::start(&["--nodes", "2"]);
    let kubeconfig: PathBuf = up.kubeconfig();
    assert!(kubeconfig.exists());
    up.terminate();
    let (status, text) = up.wait();
    assert!(status.success());
    assert!(text.contains("Summary") && text.contains("nodes     2, 2 ready"), "{text}");
}

fn refused(args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_loadline")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    assert!(output.stdout.is_empty(), "{args:?} printed results");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_port_in_use_is_refused() {
    let taken = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let error = refused(&["up", "--port", &port]);
    assert!(error.starts_with(&format!("error: cannot listen on 127.0.0.1:{port}: ")), "{error}");
}

#[test]
fn a_kubeconfig_of_somebody_else_is_not_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config");
    std::fs::write(&path, "mine").unwrap();
    let error = refused(&["up", "--kubeconfig-out", path.to_str().unwrap()]);
    assert!(error.contains("was not written by loadline"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
}
