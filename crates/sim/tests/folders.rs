//! Simulated nodes that are looked into as real ones: by their files, and by the socket of their runtime.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

mod common;

use common::until;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use loadline_apiserver::ApiServer;
use loadline_core::qos::CpuQuota;
use loadline_services::node::Runtime;
use loadline_services::node::cri::Error;
use loadline_sim::node::{Figures, Folders, Sink};
use loadline_sim::{Options, World};
use serde_json::{Value, json};
use std::fs;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const OFTEN: Duration = Duration::from_millis(20);

/// What was measured last, and a sink that it goes to.
fn last() -> (Arc<Mutex<Option<Figures>>>, Sink) {
    let last = Arc::<Mutex<Option<Figures>>>::default();
    let taken = last.clone();
    (last, Sink::new(move |figures| *taken.lock().unwrap() = Some(figures.clone())))
}

#[tokio::test]
async fn a_pod_is_found_by_what_the_api_says_and_slowed_by_what_is_written() {
    let server = ApiServer::default();
    let client = Client::new(server.clone(), "default");
    let (last, sink) = last();
    let folders = Folders::new(OFTEN).unwrap();
    let options = Options { nodes: 2, figures: OFTEN, folders: Some(folders.clone()), ..Options::default() };
    let world = World::start(client.clone(), &options, sink).await.unwrap();
    let folder = world.folder("node-01").unwrap();
    assert!(folder.proc().join("stat").exists() && folder.socket().exists(), "there with the node");

    // A tenth of what it wants, which is what it starts with, is two CPUs.
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let pod = json!({
        "metadata": {"name": "busy", "annotations": {"loadline.dev/usage-cpu": "20"}},
        "spec": {"nodeName": "node-01", "containers": [{
            "name": "main", "image": "simulated", "resources": {"requests": {"cpu": "100m"}},
        }]},
    });
    pods.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await.unwrap();
    let (uid, id, class) = until("the pod runs", async || {
        let pod: Value = serde_json::to_value(pods.get("busy").await.unwrap()).unwrap();
        let text = |path: &str| pod.pointer(path).and_then(Value::as_str).map(str::to_owned);
        Some((
            text("/metadata/uid")?,
            text("/status/containerStatuses/0/containerID")?,
            text("/status/qosClass")?,
        ))
    })
    .await;
    assert_eq!(class, "Burstable");
    let id = id.strip_prefix("containerd://").unwrap();
    assert!(id.len() == 64 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let slice = folder.cgroup().join(format!(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice",
        uid.replace('-', "_")
    ));
    let max = slice.join(format!("cri-containerd-{id}.scope/cpu.max"));
    until("its folder is there", async || max.exists().then_some(())).await;

    let used = || {
        let figures = last.lock().unwrap().clone()?;
        Some(figures.pods.first()?.containers.get("main")?.cpu_milli)
    };
    let wait = async |what: &str, wanted: &dyn Fn(i64) -> bool| {
        until(what, async || used().filter(|milli| wanted(*milli))).await;
    };
    wait("it uses what it wants", &|milli| milli >= 2000).await;
    let runtime = Runtime::at(folder.socket(), common::PATIENCE).unwrap();
    assert_eq!(runtime.version().await.unwrap().name, "containerd");
    runtime.set_quota(id, CpuQuota::Us(20_000)).await.unwrap();
    assert_eq!(fs::read_to_string(&max).unwrap(), "20000 100000\n");
    wait("it is slowed through the socket", &|milli| milli == 200).await;
    fs::write(&max, "50000 100000").unwrap();
    wait("it is given more by its file", &|milli| milli == 500).await;
    runtime.set_quota(id, CpuQuota::Unlimited).await.unwrap();
    wait("it is let go", &|milli| milli >= 2000).await;

    pods.delete("busy", &DeleteParams::default().grace_period(0)).await.unwrap();
    until("its folder is gone", async || (!slice.exists()).then_some(())).await;
    let gone = Err(Error::Gone { id: id.to_owned() });
    assert_eq!(runtime.set_quota(id, CpuQuota::Us(20_000)).await, gone);

    let nodes: Api<Node> = Api::all(client);
    nodes.delete("node-01", &DeleteParams::default()).await.unwrap();
    until("its node's folder is gone", async || (!folder.root().exists()).then_some(())).await;
    until("nobody answers", async || match runtime.version().await {
        Err(Error::Away { .. }) => Some(()),
        _ => None,
    })
    .await;
    let other = world.folder("node-00").unwrap().root().to_owned();
    assert!(other.exists(), "nothing happened to it");
    let top = other.parent().unwrap().to_owned();
    world.stop().await;
    assert!(!other.exists());
    drop((options, folders));
    assert!(!top.exists(), "nothing is left");
}

#[tokio::test]
async fn only_small_worlds_have_folders() {
    let server = ApiServer::default();
    let nodes = Folders::MOST_NODES + 1;
    let options = Options { nodes, folders: Some(Folders::new(OFTEN).unwrap()), ..Options::default() };
    let world = World::start(Client::new(server, "default"), &options, Sink::none()).await.unwrap();
    assert_eq!(world.folder("node-00"), None);
    world.stop().await;
}
