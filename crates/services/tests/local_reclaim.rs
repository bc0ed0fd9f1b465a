//! Page cache is asked back on a folder that looks like the kernel's.

#![allow(clippy::unwrap_used, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::{Class, Level, Pod};
use loadline_services::agent::Host as _;
use loadline_services::agent::host::{Ask, Error, Reclaimed, Whole};
use loadline_services::node::local::{Actuator, Local, Options};
use std::fs;
use std::path::Path;

/// A pod of the class Burstable, with the uid `u-NAME`.
fn pod(name: &str) -> Pod {
    let uid = format!("u-{name}").into();
    Pod { key: Key::new("default", name), uid, class: Class::Burstable, ..Pod::default() }
}

fn local(root: &Path) -> Local {
    Local::new(Options {
        node: "n1".into(),
        root: root.to_owned(),
        cgroup_root: String::new(),
        interfaces: Vec::new(),
        count_iowait: false,
        longest: std::time::Duration::from_mins(1),
        actuator: Actuator::Cgroup,
    })
}

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join("sys/fs/cgroup").join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The tree of a node with version 2 and the driver cgroupfs, and a pod with 300 bytes of old page cache.
fn tree() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), "cgroup.controllers", "cpu memory\n");
    write(root.path(), "kubepods/cpu.stat", "usage_usec 1\n");
    let group = "kubepods/burstable/podu-a";
    write(root.path(), &format!("{group}/memory.current"), "1000\n");
    let stat = "inactive_anon 100\nactive_anon 200\ninactive_file 300\nactive_file 400\nunevictable 0\n";
    write(root.path(), &format!("{group}/memory.stat"), stat);
    write(root.path(), &format!("{group}/memory.reclaim"), "");
    root
}

#[tokio::test]
async fn what_could_be_reclaimed_is_measured_and_the_kernel_is_asked_for_so_many_bytes() {
    let root = tree();
    let (host, pod) = (local(root.path()), pod("a"));
    let catalogue = Catalogue::default();
    let metrics = [catalogue.find("memory_total_usage").unwrap().clone()];
    let usage = host.measure(&Ask { now: Timestamp::now(), metrics: &metrics, pods: &[&pod] }).await;
    assert_eq!(usage.pods[&pod.uid].reclaimable, Some(Level::whole(300)), "inactive_file");
    let of = Whole { node: "n1", pod: &pod };
    assert_eq!(host.reclaim(&of, 250).await, Ok(Reclaimed::Enough));
    let asked = root.path().join("sys/fs/cgroup/kubepods/burstable/podu-a/memory.reclaim");
    assert_eq!(fs::read_to_string(asked).unwrap(), "250\n");
}

#[tokio::test]
async fn what_cannot_be_asked_says_why() {
    let why = async |root: &Path, name: &str| match local(root)
        .reclaim(&Whole { node: "n1", pod: &pod(name) }, 1)
        .await
    {
        Err(Error::Unwritten(why)) => why,
        other => unreachable!("{other:?}"),
    };
    let root = tree();
    assert_eq!(why(root.path(), "b").await, "its cgroup is gone, or this kernel is older than 5.19");

    // Version 1 has only `memory.force_empty`, which takes no amount.
    let old = tempfile::tempdir().unwrap();
    write(old.path(), "cpuacct/kubepods/cpuacct.usage", "1\n");
    write(old.path(), "memory/kubepods/burstable/podu-a/memory.force_empty", "");
    assert_eq!(
        why(old.path(), "a").await,
        "cgroups of version 1 take no amount: they would give back everything"
    );
    let untouched = old.path().join("sys/fs/cgroup/memory/kubepods/burstable/podu-a/memory.force_empty");
    assert_eq!(fs::read_to_string(untouched).unwrap(), "");

    let empty = tempfile::tempdir().unwrap();
    assert_eq!(why(empty.path(), "a").await, "the kubelet's cgroups are not there");
}
