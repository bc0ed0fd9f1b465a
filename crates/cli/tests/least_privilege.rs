//! Do components ask of the API server what their roles say? What they record of themselves, where no other test makes them do it.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;
#[path = "common/service.rs"]
mod service;

use common::{Up, client};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, Patch, PatchParams, PostParams};
use loadline_services::cluster::connection::RECORD_FOLDER;
use serde_json::{Value, json};
use service::{Service, until};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where everybody records, so that what is seen here counts there, too; else a folder of our own.
fn folder(own: &Path) -> PathBuf {
    std::env::var_os(RECORD_FOLDER).map_or_else(|| own.join("calls"), PathBuf::from)
}

/// What a process asked: verb and resource.
fn asked(folder: &Path, process: u32) -> BTreeSet<String> {
    let files = fs::read_dir(folder).into_iter().flatten().map(|file| file.unwrap().path());
    let of = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().starts_with(&format!("{process}-"));
    let mut out = BTreeSet::new();
    for path in files.filter(of) {
        for line in fs::read_to_string(path).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let text = |field: &str| line[field].as_str().unwrap();
            let below = if text("subresource").is_empty() { "" } else { "/" };
            out.insert(format!("{} {}{below}{}", text("verb"), text("resource"), text("subresource")));
        }
    }
    out
}

#[test]
fn whoever_may_lead_gets_creates_and_updates_a_lease_and_nothing_else_of_it() {
    let up = Up::start(&["--nodes", "2", "--without", "scheduler"]);
    let kubeconfig = up.kubeconfig();
    let folder = folder(up.folder());
    for command in [
        &["scheduler"][..],
        &["annotator", "--metrics-interval", "1s"],
        &["recommender"],
        &["rebalance"],
        &["rebalance", "--act"],
        &["fleet", "--api", "ocm"],
    ] {
        let lease = format!("privilege-{}", command.join("").replace("--", ""));
        let name = ["--leader-elect-resource-name", &lease];
        let more = ["--kubeconfig", kubeconfig.to_str().unwrap(), "--leader-elect"];
        let args = [command, &more, &name].concat();
        let service = Service::start_with(&args, &[(RECORD_FOLDER, folder.as_os_str())]);
        let process = service.pid();
        until("a lease", || asked(&folder, process).contains("create leases").then_some(()));
        assert!(service.ends(), "{command:?}");
        let all = asked(&folder, process);
        let leases: Vec<&str> = all.iter().filter_map(|call| call.strip_suffix(" leases")).collect();
        assert_eq!(leases, ["create", "get", "update"], "{command:?}");
        assert!(!all.contains("create pods/eviction"), "{command:?}: {all:?}");
        let writes = ["patch nodes", "get nodes"].iter().any(|call| all.contains(*call));
        assert!(
            command == ["annotator", "--metrics-interval", "1s"] || !writes || command.contains(&"--act")
        );
    }
}

#[test]
fn whoever_only_looks_changes_nothing() {
    let nodes = tempfile::tempdir().unwrap();
    let at = nodes.path().join("nodes");
    let up =
        Up::start(&["--nodes", "1", "--without", "agent,scheduler", "--node-folders", at.to_str().unwrap()]);
    let kubeconfig = up.kubeconfig();
    let folder = folder(up.folder());
    let node = at.join("node-00");
    let (socket, state) = (node.join("cri.sock"), nodes.path().join("state"));
    let agent =
        ["agent", "--node-name", "node-00", "--interval", "1s", "--host-root", node.to_str().unwrap()];
    let more = ["--runtime-endpoint", socket.to_str().unwrap(), "--state-dir", state.to_str().unwrap()];
    let agent = [&agent[..], &more].concat();
    // One that acts brings the kinds, without which there is nothing to look by.
    let brings =
        [&agent[..], &["--act", "--create-definitions", "--kubeconfig", kubeconfig.to_str().unwrap()]]
            .concat();
    let service = Service::start_with(&brings, &[(RECORD_FOLDER, folder.as_os_str())]);
    let process = service.pid();
    until("the kinds", || asked(&folder, process).contains("watch podqoss").then_some(()));
    assert!(service.ends());
    for (command, last) in [
        (&["scheduler", "--shadow"][..], "watch avoidanceactions"),
        (&["rebalance"], "watch namespaces"),
        (&agent, "watch podqoss"),
    ] {
        let args = [command, &["--kubeconfig", kubeconfig.to_str().unwrap()]].concat();
        let service = Service::start_with(&args, &[(RECORD_FOLDER, folder.as_os_str())]);
        let process = service.pid();
        until(last, || asked(&folder, process).contains(last).then_some(()));
        assert!(service.ends(), "{command:?}");
        let all = asked(&folder, process);
        let changes = |call: &&String| !call.starts_with("list ") && !call.starts_with("watch ");
        assert_eq!(all.iter().filter(changes).collect::<Vec<_>>(), [""; 0], "{command:?}");
        assert!(all.len() > 5, "{all:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cleanup_uses_all_that_it_is_granted_and_nothing_else() {
    let up = Up::start(&["--nodes", "1"]);
    let client = client(&up.kubeconfig()).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let taints = json!({"spec": {"taints": [{"key": "interference.crane.io", "effect": "NoSchedule"}]}});
    nodes.patch("node-00", &PatchParams::default(), &Patch::Merge(taints)).await.unwrap();
    let condition =
        json!({"status": {"conditions": [{"type": "interference-identified", "status": "True"}]}});
    nodes.patch_status("node-00", &PatchParams::default(), &Patch::Strategic(condition)).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-system");
    let map =
        json!({"metadata": {"name": "loadline-x", "labels": {"app.kubernetes.io/managed-by": "loadline"}}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    let leases: Api<k8s_openapi::api::coordination::v1::Lease> = Api::namespaced(client, "kube-system");
    let lease = json!({"metadata": {"name": "loadline-x"}, "spec": {}});
    leases.create(&PostParams::default(), &serde_json::from_value(lease).unwrap()).await.unwrap();

    let folder = folder(up.folder());
    let cleanup = Command::new(env!("CARGO_BIN_EXE_loadline"))
        .args([OsStr::new("cleanup"), OsStr::new("--kubeconfig"), up.kubeconfig().as_os_str()])
        .env(RECORD_FOLDER, &folder)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let process = cleanup.id();
    let output = cleanup.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("1 nodes") && said.contains("1 ConfigMaps"), "{said}");
    let expected = [
        "delete configmaps",
        "delete leases",
        "list configmaps",
        "list leases",
        "list nodes",
        "list pods",
        "patch nodes",
        "patch nodes/status",
    ];
    assert_eq!(asked(&folder, process), expected.map(str::to_owned).into());
}
