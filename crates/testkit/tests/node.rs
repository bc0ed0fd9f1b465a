//! A real node runs pods, the metrics API tells what they use, and nothing of it is left behind.

#![expect(clippy::unwrap_used, reason = "a failed step of a helper fails its test")]

use loadline_testkit::{ControlPlane, MetricsServer, RealNode};
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let started = Instant::now();
    while !done() {
        assert!(started.elapsed() < Duration::from_mins(3), "waited in vain until {what}");
        thread::sleep(Duration::from_millis(200));
    }
}

/// The folders of that name in all hierarchies, however they are mounted.
fn cgroups(name: &str) -> Vec<PathBuf> {
    let top = Path::new("/sys/fs/cgroup");
    let hierarchies = fs::read_dir(top).unwrap().map(|entry| entry.unwrap().path()).chain([top.to_owned()]);
    hierarchies.map(|hierarchy| hierarchy.join(name)).filter(|path| path.is_dir()).collect()
}

/// Processes in a cgroup and all below it.
fn processes(cgroup: &Path) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for entry in fs::read_dir(cgroup).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(processes(&entry));
        } else if entry.ends_with("cgroup.procs") {
            found.extend(fs::read_to_string(entry).unwrap().lines().map(str::to_owned));
        }
    }
    found
}

fn is_running(pid: &str) -> bool {
    // One that has ended stays until its parent has looked; it has no command line any more.
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty())
}

#[test]
fn a_node_runs_pods_whose_use_the_metrics_api_tells() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    node.run("busy", &["burn", "500"]).unwrap();
    node.run("large", &["allocate", "200"]).unwrap();
    node.run("idle", &["pause"]).unwrap();
    let metrics = MetricsServer::start(&plane, &node).unwrap();

    // Of an average over seconds on a machine with other work little can be said but which one it is.
    let cpu = |pod: &str| metrics.pod(pod).map(|usage| usage.cpu_milli);
    wait_until("the busy pod is measured near 500m", || {
        cpu("busy").is_some_and(|milli| (350.0..650.0).contains(&milli))
    });
    wait_until("the idle pod is measured near nothing", || cpu("idle").is_some_and(|milli| milli < 50.0));
    let mib = metrics.pod("large").unwrap().memory_bytes / 1024.0 / 1024.0;
    assert!((200.0..400.0).contains(&mib), "{mib}");

    // What the node uses is what the machine does, the pods included; it measures itself a little later than them.
    wait_until("the node is measured with its pods", || {
        metrics.node(&node).is_some_and(|usage| usage.cpu_milli > 350.0)
    });
}

#[test]
fn pods_end_when_they_are_deleted() {
    let Some(plane) = ControlPlane::start_or_skip() else { return };
    let Some(node) = RealNode::start_or_skip(&plane) else { return };
    node.run("brief", &["pause"]).unwrap();
    let pods = format!("{}/kubepods", node.cgroup());
    let count = || cgroups(&pods).iter().map(|cgroup| processes(cgroup).len()).max().unwrap_or_default();
    assert!(count() > 0);
    let path = "/api/v1/namespaces/default/pods/brief";
    plane.delete(path).unwrap();
    wait_until("the pod is gone", || plane.request("GET", path, None).unwrap().status == 404);
    wait_until("its processes are gone", || count() == 0);
}

#[test]
fn killing_our_process_ends_the_node_with_its_pods() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hold-node")).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    if line.is_empty() {
        assert!(child.wait().unwrap().success(), "it has not even skipped");
        return;
    }
    let cgroup = line.trim();
    let pids: Vec<String> = cgroups(cgroup).iter().flat_map(|cgroup| processes(cgroup)).collect();
    assert!(pids.iter().any(|pid| is_running(pid)), "{line:?}");

    child.kill().unwrap();
    child.wait().unwrap();
    wait_until("its processes are gone", || !pids.iter().any(|pid| is_running(pid)));
    wait_until("its cgroups are gone", || cgroups(cgroup).is_empty());
}

#[test]
fn two_nodes_on_one_machine_leave_each_other_alone_and_nothing_behind() {
    let (Some(first), Some(second)) = (ControlPlane::start_or_skip(), ControlPlane::start_or_skip()) else {
        return;
    };
    let Some(one) = RealNode::start_or_skip(&first) else { return };
    let Some(two) = RealNode::start_or_skip(&second) else { return };
    one.run("a", &["burn", "100"]).unwrap();
    two.run("b", &["burn", "100"]).unwrap();
    let of = |node: &RealNode| -> Vec<String> {
        let inside = cgroups(node.cgroup()).iter().flat_map(|cgroup| processes(cgroup)).collect::<Vec<_>>();
        inside.into_iter().chain(node.pid().map(|pid| pid.to_string())).collect()
    };
    let (name, pids) = (one.cgroup().to_owned(), of(&one));
    assert!(pids.len() > 1 && pids.iter().all(|pid| is_running(pid)), "{pids:?}");

    drop(one);
    assert_eq!(cgroups(&name), [] as [PathBuf; 0]);
    assert!(!pids.iter().any(|pid| is_running(pid)), "{pids:?}");

    let pod = second.get("/api/v1/namespaces/default/pods/b").unwrap();
    assert_eq!(
        (&pod["status"]["phase"], &pod["status"]["containerStatuses"][0]["restartCount"]),
        (&"Running".into(), &0.into())
    );
    assert!(of(&two).iter().all(|pid| is_running(pid)));
}
