//! Quotas set through a real containerd: what the kernel then holds the container to.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use loadline_core::qos::CpuQuota;
use loadline_services::node::Runtime;
use loadline_services::node::cri::Error;
use loadline_testkit::{ControlPlane, RealNode};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Generous: a busy machine must not fail a test.
const DEADLINE: Duration = Duration::from_mins(1);
const PODS: &str = "/api/v1/namespaces/default/pods";

/// The folders of a container in all hierarchies, below the node's own.
fn folders(node: &RealNode, id: &str) -> Vec<PathBuf> {
    fn below(folder: &Path, id: &str, found: &mut Vec<PathBuf>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()) {
            let name = path.file_name().unwrap().to_string_lossy();
            // Named by the container alone, or with words around it where systemd makes them.
            if name.contains(id) {
                found.push(path);
            } else {
                below(&path, id, found);
            }
        }
    }
    let top = Path::new("/sys/fs/cgroup");
    let mut found = Vec::new();
    below(&top.join(node.cgroup()), id, &mut found);
    for hierarchy in fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()) {
        below(&hierarchy.join(node.cgroup()), id, &mut found);
    }
    found
}

/// What a file of a container says, whichever of these names it has.
fn file(folders: &[PathBuf], names: &[&str]) -> String {
    let paths = names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    let mut texts = paths.filter_map(|path| fs::read_to_string(path).ok());
    texts.next().unwrap_or_else(|| panic!("none of {names:?} in {folders:?}")).trim().to_owned()
}

/// Quota, -1 for none, and period, in microseconds.
fn quota(folders: &[PathBuf]) -> (i64, i64) {
    let text = if folders.iter().any(|folder| folder.join("cpu.max").exists()) {
        file(folders, &["cpu.max"]).replace("max", "-1")
    } else {
        format!("{} {}", file(folders, &["cpu.cfs_quota_us"]), file(folders, &["cpu.cfs_period_us"]))
    };
    let (quota, period) = text.split_once(' ').unwrap();
    (quota.parse().unwrap(), period.parse().unwrap())
}

/// How often the kernel has stopped it. Of two hierarchies with such a file only that of the CPU says so.
fn throttled(folders: &[PathBuf]) -> u64 {
    let texts = folders.iter().filter_map(|folder| fs::read_to_string(folder.join("cpu.stat")).ok());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().find_map(|line| line.strip_prefix("nr_throttled ")).unwrap().parse().unwrap()
}

#[test]
fn a_quota_reaches_the_kernel_alone_and_can_be_lifted_again() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    let mut limited = node.pod("limited", &["burn", "400"]);
    limited["spec"]["containers"][0]["resources"] =
        json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "500m", "memory": "64Mi"}});
    plane.create(PODS, &limited).unwrap();
    node.run("free", &["burn", "400"]).unwrap();
    let pod = |name: &str| plane.get(&format!("{PODS}/{name}")).unwrap();
    node.wait_until(|| pod("limited")["status"]["phase"] == "Running").unwrap();
    let id = |name: &str| {
        let pod = pod(name);
        let id = pod["status"]["containerStatuses"][0]["containerID"].as_str().unwrap();
        id.split_once("://").unwrap().1.to_owned()
    };

    let tokio = tokio::runtime::Runtime::new().unwrap();
    let _entered = tokio.enter();
    let runtime = Runtime::at(node.socket(), DEADLINE).unwrap();
    let version = tokio.block_on(runtime.version()).unwrap();
    assert_eq!((version.name.as_str(), version.api.as_str()), ("containerd", "v1"));

    for (name, kubelets, why) in
        [("limited", 50_000, "half of a period of 100 ms"), ("free", -1, "nobody said how much")]
    {
        let (id, set) = (id(name), |to| tokio.block_on(runtime.set_quota(&id(name), to)));
        let folders = folders(&node, &id);
        assert_eq!(quota(&folders), (kubelets, 100_000), "{name}: {why}");
        let others = || {
            let shares = file(&folders, &["cpu.shares", "cpu.weight"]);
            (shares, file(&folders, &["memory.limit_in_bytes", "memory.max"]))
        };
        let (before, stopped) = (others(), throttled(&folders));

        set(CpuQuota::Us(20_000)).unwrap();
        assert_eq!(quota(&folders), (20_000, 100_000), "{name}");
        node.wait_until(|| throttled(&folders) > stopped).unwrap();
        set(CpuQuota::Unlimited).unwrap();
        assert_eq!(quota(&folders), (-1, 100_000), "{name}");
        set(CpuQuota::from_us(kubelets)).unwrap();
        assert_eq!(quota(&folders), (kubelets, 100_000), "{name}");
        assert_eq!(others(), before, "{name}: nobody asked for anything else");
    }

    let unknown = "0".repeat(64);
    let gone = Err(Error::Gone { id: unknown.clone() });
    assert_eq!(tokio.block_on(runtime.set_quota(&unknown, CpuQuota::Us(20_000))), gone);
    let ended = id("free");
    plane.delete(&format!("{PODS}/free")).unwrap();
    let is_gone = || plane.request("GET", &format!("{PODS}/free"), None).unwrap().status == 404;
    node.wait_until(is_gone).unwrap();
    // The kubelet forgets the pod first and then the runtime its containers.
    let set = || tokio.block_on(runtime.set_quota(&ended, CpuQuota::Us(20_000)));
    node.wait_until(|| set() == Err(Error::Gone { id: ended.clone() })).unwrap();
}
