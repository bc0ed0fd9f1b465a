//! What does the agent cost on a node full of pods? `cargo xtask bench agent`
//!
//! The real binary, looking every two seconds at real cgroups (empty ones, made for this; needs root) of 50, 250 and 1 000 pods with
//! two containers each, all of which a rule on CPU may touch; the API server is in memory, in this process. *Reading alone* (with the periods, which the agent reads only when a quota has changed) is what
//! opening, reading and closing the same files once costs this process. `-- PODS…` measures with other numbers of pods.
#![allow(
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    dead_code,
    reason = "a benchmark that fails ends; counts are small"
)]

#[path = "../tests/common/service.rs"]
mod service;

use anyhow::{Context as _, Result, ensure};
use loadline_apiserver::ApiServer;
use loadline_services::cluster::resource::{NODES, PODS};
use loadline_services::cluster::write::Patch;
use loadline_services::cluster::{Connection, Writer};
use serde_json::{Value, json};
use service::Service;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How long each is measured.
const TIME: Duration = Duration::from_secs(30);
const INTERVAL: f64 = 2.0;
const CONTAINERS: usize = 2;

fn main() -> Result<()> {
    let args: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if args.is_empty() { vec![50, 250, 1_000] } else { args };
    println!(
        "{:>5} {:>11} {:>14} {:>10} {:>8} {:>18} {:>8}",
        "pods", "containers", "CPU of a look", "of a core", "MB", "reading alone", "ratio"
    );
    for pods in sizes {
        measure(pods)?;
    }
    Ok(())
}

/// cgroups of a node. They go with the value.
struct Cgroups {
    name: String,
    /// The folder of all pods of each controller that counts.
    tops: Vec<PathBuf>,
    groups: Vec<PathBuf>,
}

impl Cgroups {
    /// For pods of these uids.
    fn new(uids: &[String]) -> Result<Self> {
        let name = format!("loadline-bench-{}", std::process::id());
        let top = Path::new("/sys/fs/cgroup");
        let tops: Vec<PathBuf> = if top.join("cgroup.controllers").exists() {
            vec![top.join(&name)]
        } else {
            ["cpu", "cpuacct", "memory"].iter().map(|controller| top.join(controller).join(&name)).collect()
        };
        let mut made = Self { name, tops: tops.clone(), groups: Vec::new() };
        for top in &tops {
            for (pod, uid) in uids.iter().enumerate() {
                for container in 0..CONTAINERS {
                    let folder = top.join(format!("kubepods/besteffort/pod{uid}/{}", id(pod, container)));
                    fs::create_dir_all(&folder).context("cgroups cannot be made: this needs root")?;
                    made.groups.push(folder);
                }
                made.groups.push(top.join(format!("kubepods/besteffort/pod{uid}")));
            }
        }
        Ok(made)
    }

    /// The files a look at CPU reads: counters of pods and containers, and the quotas of these.
    fn files(&self) -> Vec<PathBuf> {
        let names = ["cpuacct.usage", "cpu.cfs_quota_us", "cpu.cfs_period_us", "cpu.stat", "cpu.max"];
        let wanted = |group: &PathBuf, name: &str| {
            let is_pod = group.file_name().is_some_and(|name| name.to_string_lossy().starts_with("pod"));
            let controller = |of: &str| group.starts_with(format!("/sys/fs/cgroup/{of}/"));
            match name {
                "cpuacct.usage" => controller("cpuacct"),
                "cpu.cfs_quota_us" | "cpu.cfs_period_us" => controller("cpu") && !is_pod,
                "cpu.max" => !is_pod,
                _ => !controller("cpu") && !controller("cpuacct") && !controller("memory"),
            }
        };
        let of = |group: &PathBuf| {
            let all = names.iter().filter(|name| wanted(group, name)).map(|name| group.join(name));
            all.filter(|file| file.exists()).collect::<Vec<_>>()
        };
        self.groups.iter().flat_map(of).collect()
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        for group in &self.groups {
            let _ = fs::remove_dir(group);
        }
        for top in &self.tops {
            for below in ["kubepods/besteffort", "kubepods", ""] {
                let _ = fs::remove_dir(top.join(below));
            }
        }
    }
}

fn id(pod: usize, container: usize) -> String {
    format!("{pod:062x}{container:02x}")
}

/// Time this process was on a CPU, in seconds.
fn spent() -> f64 {
    let text = fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanos| nanos.parse::<f64>().ok()).unwrap_or_default() / 1e9
}

fn reading_alone(files: &[PathBuf]) -> f64 {
    const TIMES: u32 = 20;
    let before = spent();
    let mut bytes = 0;
    for _ in 0..TIMES {
        for file in files {
            bytes += fs::read(file).map_or(0, |text| text.len());
        }
    }
    assert!(bytes > 0 || files.is_empty());
    (spent() - before) / f64::from(TIMES)
}

async fn fill(server: &ApiServer, pods: usize) -> Result<()> {
    let client = kube::Client::new(server.clone(), "default");
    let writer = Writer::new(Connection::new(client), "bench");
    let failed = |error| anyhow::anyhow!("{error}");
    for definition in loadline_services::agent::definitions() {
        writer.define(&definition).await.map_err(failed)?;
    }
    let has = json!({"cpu": "64", "memory": "256Gi", "pods": "2000"});
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"capacity": has, "allocatable": has}});
    writer.create(NODES, "", &node).await.map_err(failed)?;
    for pod in 0..pods {
        let name = |container: usize| format!("c{container}");
        let containers: Vec<Value> =
            (0..CONTAINERS).map(|one| json!({"name": name(one), "image": "image"})).collect();
        let object = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("pod-{pod:04}"), "labels": {"tier": "batch"}},
            "spec": {"nodeName": "n1", "containers": containers}});
        writer.create(PODS, "default", &object).await.map_err(failed)?;
        let statuses: Vec<Value> = (0..CONTAINERS)
            .map(|one| json!({"name": name(one), "image": "", "imageID": "", "ready": true, "restartCount": 0, "containerID": format!("containerd://{}", id(pod, one))}))
            .collect();
        let status =
            json!({"status": {"phase": "Running", "qosClass": "BestEffort", "containerStatuses": statuses}});
        let key = loadline_core::object::Key::new("default", format!("pod-{pod:04}"));
        writer.patch(PODS.status(), &key, Patch::Strategic, &status).await.map_err(failed)?;
    }
    let object = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "ensurance.crane.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let throttle = json!({"throttle": {"cpuThrottle": {"stepCPURatio": 10, "minCPURatio": 10}}});
    let scope = json!({"labelSelector": {"matchLabels": {"tier": "batch"}}, "allowedActions": ["slow-down"]});
    // Passed by whatever is done: everybody is sorted and looked at, in every cycle.
    let rule = json!({"name": "busy", "actionName": "slow-down", "metricRule": {"name": "cpu_total_usage", "value": 1}});
    let lines = json!({"nodeQualityProbe": {"nodeLocalGet": {}}, "rules": [rule]});
    for (resource, object) in [
        (loadline_services::agent::watched::ACTIONS, object("AvoidanceAction", "slow-down", throttle)),
        (loadline_services::agent::watched::POD_QOS, object("PodQOS", "batch", scope)),
        (loadline_services::agent::watched::NODE_QOS, object("NodeQOS", "lines", lines)),
    ] {
        writer.create(resource, "", &object).await.map_err(failed)?;
    }
    Ok(())
}

fn measure(pods: usize) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let server = ApiServer::default();
    let listening = runtime.block_on(server.listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))))?;
    let url = listening.url();
    runtime.spawn(listening.serve(std::future::pending()));
    runtime.block_on(fill(&server, pods))?;
    let listed = runtime.block_on(async {
        let client = kube::Client::new(server.clone(), "default");
        let api: kube::Api<k8s_openapi::api::core::v1::Pod> = kube::Api::default_namespaced(client);
        api.list(&kube::api::ListParams::default()).await
    })?;
    // In the order of their names, which is that of their numbers.
    let uids: Vec<String> = listed.items.into_iter().filter_map(|pod| pod.metadata.uid).collect();
    let cgroups = Cgroups::new(&uids)?;
    let folder = tempfile::tempdir()?;
    let kubeconfig = folder.path().join("kubeconfig");
    let cluster = json!({"name": "bench", "cluster": {"server": url}});
    let context = json!({"name": "bench", "context": {"cluster": "bench", "user": ""}});
    let config = json!({"apiVersion": "v1", "kind": "Config", "clusters": [cluster], "contexts": [context], "current-context": "bench"});
    fs::write(&kubeconfig, config.to_string())?;
    let agent = Service::start(&[
        "agent",
        "--kubeconfig",
        kubeconfig.to_str().context("a path")?,
        "--node-name=n1",
        "--interval=2s",
        "--act",
        "--actuator=cgroup",
        &format!("--cgroup-root={}", cgroups.name),
        "--state-dir",
        folder.path().join("state").to_str().context("a path")?,
    ]);
    agent.until("rules: there are");
    sleep(Duration::from_secs(6));
    let (before, looks) = (agent.cpu_seconds(), agent.sum("loadline_agent_cycles_total"));
    sleep(TIME);
    let looks = agent.sum("loadline_agent_cycles_total") - looks;
    ensure!(looks >= TIME.as_secs_f64() / INTERVAL - 2.0, "only {looks} looks");
    let look = (agent.cpu_seconds() - before) / looks;
    let alone = reading_alone(&cgroups.files());
    println!(
        "{pods:>5} {:>11} {:>11.1} ms {:>9.2}% {:>8} {:>15.1} ms {:>8.1}",
        pods * CONTAINERS,
        look * 1e3,
        look / INTERVAL * 100.0,
        agent.resident_kib() * 1024 / 1_000_000,
        alone * 1e3,
        look / alone,
    );
    Ok(())
}
