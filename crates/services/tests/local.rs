//! A machine looked into through its files: those that kernels of several versions printed, and those that lie.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::qos::metric::{Catalogue, Metric};
use loadline_core::qos::{Class, Container, CpuQuota, Level, Pod, Series};
use loadline_core::select::Lookup as _;
use loadline_services::agent::Host as _;
use loadline_services::agent::host::{Ask, Error, Located, Usage};
use loadline_services::node::local::{Actuator, Local, Options};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

/// With version 2 of cgroups, and with version 1.
const KERNELS: [&str; 5] = ["5.4", "5.15", "6.1", "6.12", "5.4-v1"];

/// A machine as it was recorded, to be changed at will.
struct Machine {
    folder: TempDir,
    version_1: bool,
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

impl Machine {
    fn of(kernel: &str) -> Self {
        let base = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../core/tests/fixtures/node");
        let folder = tempfile::tempdir().unwrap();
        copy(&base.join(kernel).join("now"), folder.path());
        let version_1 = kernel.ends_with("-v1");
        if !version_1 {
            fs::write(folder.path().join("sys/fs/cgroup/cgroup.controllers"), "cpu memory\n").unwrap();
        }
        Self { folder, version_1 }
    }

    fn local(&self) -> Local {
        self.local_comparing(Duration::from_mins(1))
    }

    /// One that compares with looks that are not older than that.
    fn local_comparing(&self, longest: Duration) -> Local {
        Local::new(Options {
            node: "n1".into(),
            root: self.folder.path().to_owned(),
            cgroup_root: String::new(),
            interfaces: Vec::new(),
            count_iowait: false,
            longest,
            actuator: Actuator::Cgroup,
        })
    }

    /// A file of the cgroup of a container, wherever that is.
    fn file(&self, id: &str, name: &str) -> PathBuf {
        fn find(folder: &Path, id: &str, name: &str) -> Option<PathBuf> {
            let entries = fs::read_dir(folder).ok()?.filter_map(Result::ok).map(|entry| entry.path());
            let mut folders = entries.filter(|path| path.is_dir());
            folders.find_map(|path| {
                let is_it =
                    path.file_name().unwrap().to_str().unwrap().contains(id) && path.join(name).exists();
                if is_it { Some(path.join(name)) } else { find(&path, id, name) }
            })
        }
        find(&self.folder.path().join("sys/fs/cgroup"), id, name).unwrap()
    }

    fn quota_file(&self, id: &str) -> PathBuf {
        self.file(id, if self.version_1 { "cpu.cfs_quota_us" } else { "cpu.max" })
    }

    fn counter_file(&self, id: &str) -> PathBuf {
        self.file(id, if self.version_1 { "cpuacct.usage" } else { "cpu.stat" })
    }
}

fn pod(name: &str, class: Class, uid: &str, id: &str) -> Pod {
    let container = Container { name: "main".into(), id: Some(id.into()), ..Container::default() };
    Pod {
        key: Key::new("default", name),
        uid: uid.into(),
        class,
        containers: vec![container],
        ..Pod::default()
    }
}

/// One that is held to a fifth of a CPU, and one that is held by nothing.
fn pods() -> [Pod; 2] {
    [
        pod("held", Class::Burstable, "11111111-0000-4000-8000-000000000001", "aa01"),
        pod("free", Class::BestEffort, "22222222-0000-4000-8000-000000000002", "bb02"),
    ]
}

fn metrics(names: &[&str]) -> Vec<Arc<Metric>> {
    let catalogue = Catalogue::default();
    names.iter().map(|name| catalogue.find(name).unwrap().clone()).collect()
}

async fn look(local: &Local, pods: &[&Pod]) -> Usage {
    let metrics = metrics(&["cpu_total_utilization", "memory_total_usage", "cpu_load_1_min"]);
    local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &metrics, pods }).await
}

fn value(usage: &Usage, metric: &str) -> Option<Level> {
    usage.nodes["n1"].iter().find(|series| *series.name == *metric).and_then(|series| series.value)
}

// R10 and R11.
#[tokio::test]
async fn a_node_of_every_kernel_is_read_through_its_files() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let local = machine.local();
        let [held, free] = pods();
        let first = look(&local, &[&held, &free]).await;
        assert_eq!(local.problem(), None, "{kernel}");
        assert_eq!(value(&first, "cpu_total_utilization"), None, "{kernel}: a counter looked at once");
        // Of the one with version 1, only cgroups were recorded.
        if !machine.version_1 {
            assert!(value(&first, "memory_total_usage").unwrap() > Level::whole(1 << 20), "{kernel}");
            assert!(value(&first, "cpu_load_1_min").is_some(), "{kernel}");
        }
        for (pod, quota) in [(&held, CpuQuota::Us(20_000)), (&free, CpuQuota::Unlimited)] {
            let used = &first.pods[&pod.uid];
            let container = &used.containers["main"];
            assert_eq!((container.quota, container.period_us), (quota, 100_000), "{kernel} {}", pod.key);
            assert_eq!((container.cpu, used.cpu), (None, None), "{kernel}: a counter looked at once");
            let memory = used.memory.unwrap_or_else(|| panic!("{kernel}: no memory of {}", pod.key));
            assert!(memory > Level::ZERO && used.unreclaimable.unwrap() > Level::ZERO, "{kernel}");
        }
        let asked = metrics(&["container_mem_total_usage"]);
        let usage = local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &asked, pods: &[&held] }).await;
        let (whole, part) =
            (usage.pods[&held.uid].memory.unwrap(), usage.pods[&held.uid].containers["main"].memory);
        assert!(
            part.is_some_and(|part| part > Level::ZERO && part <= whole),
            "{kernel}: {part:?} of {whole:?}"
        );
        assert_eq!(first.pods[&held.uid].containers["main"].memory, None, "{kernel}: nobody asked");
        // Nothing has moved since.
        let second = look(&local, &[&held, &free]).await;
        assert_eq!(second.pods[&held.uid].containers["main"].cpu, Some(Level::ZERO), "{kernel}");
        assert_eq!(second.pods[&held.uid].cpu, Some(Level::ZERO), "{kernel}");
    }
}

#[tokio::test]
async fn files_that_lie_are_no_measurement() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let local = machine.local();
        let [held, free] = pods();
        look(&local, &[&held, &free]).await;
        let text_of = |number: &str| {
            if machine.version_1 {
                format!("{number}\n")
            } else {
                format!("usage_usec {number}\nuser_usec 1\n")
            }
        };
        let counter = machine.counter_file("aa01");
        for (text, why) in [
            (text_of("18446744073709551615"), "more than a machine could have used since"),
            (text_of("18446744073709551616"), "2^64"),
            (text_of("-5"), "less than nothing"),
            (text_of("NaN"), "no number"),
            (String::new(), "nothing"),
            ("\u{0}\u{1}\u{2}".to_owned(), "rubbish"),
        ] {
            fs::write(&counter, &text).unwrap();
            let used = look(&local, &[&held, &free]).await;
            assert_eq!(used.pods[&held.uid].containers["main"].cpu, None, "{kernel}: {why}");
            assert_eq!(
                used.pods[&free.uid].containers["main"].cpu,
                Some(Level::ZERO),
                "{kernel}: the others are read"
            );
            assert_eq!(
                used.pods[&held.uid].containers["main"].quota,
                CpuQuota::Us(20_000),
                "{kernel}: {why}"
            );
        }
        for text in ["", "-17\n", "500 100000\n", "x 100000\n", "99999999999999999999 100000\n"] {
            fs::write(machine.quota_file("aa01"), text).unwrap();
            let used = look(&local, &[&held]).await;
            assert_eq!(
                used.pods[&held.uid].containers["main"].quota,
                CpuQuota::Unknown,
                "{kernel}: {text:?}"
            );
        }
        fs::create_dir_all(machine.folder.path().join("proc")).unwrap();
        fs::write(machine.folder.path().join("proc/meminfo"), "MemTotal: lots kB\n").unwrap();
        assert_eq!(value(&look(&local, &[]).await, "memory_total_usage"), None, "{kernel}");
        fs::remove_dir_all(machine.folder.path().join("sys")).unwrap();
        let used = look(&local, &[&held]).await;
        assert!(used.pods.is_empty(), "{kernel}: what is gone is not idle");
        assert!(local.problem().unwrap().contains("no cgroup of the kubelet"), "{kernel}");
    }
}

#[tokio::test]
async fn quotas_are_written_as_the_kernel_takes_them() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let local = machine.local();
        let [held, free] = pods();
        let write = async |pod: &Pod, quota| {
            local.set_quota(&Located { node: "n1", pod, container: &pod.containers[0] }, quota).await
        };
        let text = |id: &str| fs::read_to_string(machine.quota_file(id)).unwrap();
        write(&free, CpuQuota::Us(16_000)).await.unwrap();
        assert_eq!(text("bb02"), if machine.version_1 { "16000\n" } else { "16000 100000\n" }, "{kernel}");
        write(&held, CpuQuota::Unlimited).await.unwrap();
        assert_eq!(text("aa01"), if machine.version_1 { "-1\n" } else { "max 100000\n" }, "{kernel}");
        for (quota, why) in [(CpuQuota::Us(999), "less than a millisecond"), (CpuQuota::Unknown, "not known")]
        {
            assert!(matches!(write(&free, quota).await, Err(Error::Unwritten(_))), "{kernel}: {why}");
        }
        let other = pod("gone", Class::Burstable, "33333333-0000-4000-8000-000000000003", "cc03");
        assert!(matches!(write(&other, CpuQuota::Us(16_000)).await, Err(Error::Unwritten(_))), "{kernel}");
        // An id is made into a path; one that would lead elsewhere is not.
        let evil = pod("evil", Class::BestEffort, &free.uid, "../bb02");
        assert!(matches!(write(&evil, CpuQuota::Us(16_000)).await, Err(Error::Unwritten(_))), "{kernel}");
    }
}

// R2.
#[test]
fn of_two_agents_of_a_node_one_has_it_wherever_they_keep_their_state() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let (first, second) = (machine.local(), machine.local());
        assert!(first.claim(), "{kernel}");
        assert!(!second.claim(), "{kernel}: it is taken");
        assert!(first.claim(), "{kernel}: the first still has it");
        drop(first);
        assert!(second.claim(), "{kernel}: it is free again");
    }
}

#[tokio::test]
async fn disks_that_come_are_measured_and_those_that_go_are_no_series() {
    let machine = Machine::of("6.1");
    let root = machine.folder.path();
    let local = machine.local();
    let disks = async |names: &[&str]| {
        let _ = fs::remove_dir_all(root.join("sys/block"));
        let line =
            |(minor, name): (usize, &&str)| format!("8 {minor} {name} 1 0 8 1 1 0 8 1 0 2 2 0 0 0 0 0 0\n");
        for name in names {
            fs::create_dir_all(root.join("sys/block").join(name)).unwrap();
        }
        let text: String = names.iter().enumerate().map(line).collect();
        fs::write(root.join("proc/diskstats"), text).unwrap();
        let metrics = metrics(&["disk_read_iops"]);
        let used = local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &metrics, pods: &[] }).await;
        let shown =
            |one: &Series| (one.labels.value("diskName").unwrap_or_default().to_owned(), one.value.is_some());
        used.nodes["n1"].iter().map(shown).collect::<Vec<_>>()
    };
    let is = |name: &str| (name.to_owned(), true);
    assert_eq!(disks(&["sda"]).await, [], "two looks are needed");
    assert_eq!(disks(&["sda", "sdb"]).await, [is("sda")], "one that has just come is compared with nothing");
    assert_eq!(disks(&["sda", "sdb"]).await, [is("sda"), is("sdb")]);
    assert_eq!(disks(&["sdb"]).await, [is("sdb")], "one that is gone is no series that nobody can read");
}

#[tokio::test]
async fn a_folder_another_driver_left_behind_does_not_hide_the_pods() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        // The likelier of the two, and nobody is in it.
        let (top, empty) = if machine.version_1 {
            ("sys/fs/cgroup/cpu,cpuacct", "kubepods")
        } else {
            ("sys/fs/cgroup", "kubepods.slice")
        };
        let top = machine.folder.path().join(top);
        let other = if machine.version_1 { "kubepods.slice" } else { "kubepods" };
        if machine.version_1 {
            // What was recorded is of the likelier one: the pods are where the other has them.
            let group = top.join("kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod11111111_0000_4000_8000_000000000001.slice");
            fs::create_dir_all(&group).unwrap();
            let from = top.join("kubepods/burstable/pod11111111-0000-4000-8000-000000000001");
            copy(&from, &group);
        } else {
            let group = top.join("kubepods/burstable/pod11111111-0000-4000-8000-000000000001");
            let quota = machine.quota_file("aa01");
            copy(quota.parent().unwrap().parent().unwrap(), &group);
        }
        assert!(top.join(other).exists(), "{kernel}");
        fs::remove_dir_all(top.join(empty)).unwrap();
        fs::create_dir_all(top.join(empty)).unwrap();
        let local = machine.local();
        let [held, free] = pods();
        assert!(local.claim(), "{kernel}");
        let used = look(&local, &[&held]).await;
        assert_eq!(used.pods[&held.uid].containers["main"].quota, CpuQuota::Us(20_000), "{kernel}");
        assert_eq!(local.problem(), None, "{kernel}");
        look(&local, &[&free]).await;
        assert_eq!(local.problem(), None, "{kernel}: one that has just gone");
        drop(local);
        let local = machine.local();
        look(&local, &[&free]).await;
        let problem = local.problem().unwrap();
        assert!(problem.contains("none of the pods that run here has a cgroup"), "{kernel}: {problem}");
        let waits = Pod { containers: Vec::new(), ..free };
        look(&local, &[&waits]).await;
        assert_eq!(local.problem(), None, "{kernel}: nobody runs yet");
    }
}

#[tokio::test]
async fn cpus_that_come_while_it_runs_count() {
    let machine = Machine::of("6.1");
    let local = machine.local();
    let metrics = metrics(&["cpu_core_numbers"]);
    let cores = async |all: usize| {
        let lines: Vec<String> = (0..all).map(|core| format!("cpu{core} 1 0 0 1 0 0 0 0 0 0\n")).collect();
        let text = format!("cpu  1 0 0 1 0 0 0 0 0 0\n{}intr 1\n", lines.concat());
        fs::write(machine.folder.path().join("proc/stat"), text).unwrap();
        let used = local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &metrics, pods: &[] }).await;
        value(&used, "cpu_core_numbers")
    };
    for all in [2, 4, 3] {
        assert_eq!(cores(all).await, Some(Level::whole(i64::try_from(all).unwrap())));
    }
}

#[tokio::test]
async fn the_network_of_the_node_is_measured_and_not_that_of_who_reads() {
    let machine = Machine::of("6.1");
    let local = machine.local();
    let metrics = metrics(&["network_receive_pckps"]);
    let interfaces = async |own: &str, of_node: &str| {
        for (folder, name) in [("proc/net", own), ("proc/1/net", of_node)] {
            let folder = machine.folder.path().join(folder);
            fs::create_dir_all(&folder).unwrap();
            let text = format!("Inter-| Receive\n face |bytes\n  {name}: 1 1 0 0 0 0 0 0 1 1 0 0 0 0 0 0\n");
            fs::write(folder.join("dev"), text).unwrap();
        }
        let used = local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &metrics, pods: &[] }).await;
        let name = |one: &Series| one.labels.value("NetInterface").unwrap_or_default().to_owned();
        used.nodes["n1"].iter().map(name).collect::<Vec<_>>()
    };
    interfaces("eth0", "bond0").await;
    assert_eq!(interfaces("eth0", "bond0").await, ["bond0"]);
}

#[tokio::test]
async fn what_was_used_since_long_ago_is_not_what_is_used_now() {
    let machine = Machine::of("6.1");
    let [held, _] = pods();
    // Whatever time passes between two looks is longer.
    let local = machine.local_comparing(Duration::ZERO);
    look(&local, &[&held]).await;
    let used = look(&local, &[&held]).await;
    assert_eq!(used.pods[&held.uid].containers["main"].cpu, None);
    assert_eq!(value(&used, "cpu_total_utilization"), None);
    assert_eq!(
        used.pods[&held.uid].containers["main"].quota,
        CpuQuota::Us(20_000),
        "what needs one look is there"
    );
}

#[tokio::test]
async fn shares_and_waiting_are_read_where_a_rule_is_about_them() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let local = machine.local();
        let [held, _] = pods();
        let names = ["container_cpu_limit", "container_sched_run_queue_time"];
        let asked = metrics(&names);
        let look = async || {
            let usage =
                local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &asked, pods: &[&held] }).await;
            names.map(|name| value(&usage, name))
        };
        let group = machine.quota_file("aa01").parent().unwrap().to_owned();
        let (shares, text) = if machine.version_1 { ("cpu.shares", "512\n") } else { ("cpu.weight", "20\n") };
        fs::write(group.join(shares), text).unwrap();
        for (text, why) in [
            ("", "version 1 does not list what is in another namespace of processes"),
            ("0\n0\n", "version 2 lists it as nobody"),
        ] {
            fs::write(group.join("cgroup.procs"), text).unwrap();
            for _ in 0..2 {
                assert_eq!(look().await[1], None, "{kernel}: {why}: not known is not nobody waiting");
            }
        }
        // Two processes, one of which is out of sight.
        fs::write(group.join("cgroup.procs"), "11\n12\n").unwrap();
        assert_eq!(look().await[1], None, "{kernel}: nobody can be seen, which is not nobody waiting");
        let process = machine.folder.path().join("proc/11");
        fs::create_dir_all(&process).unwrap();
        fs::write(process.join("schedstat"), "9000 1000000 7\n").unwrap();
        assert_eq!(look().await[1], None, "{kernel}: a counter looked at once");
        fs::write(process.join("schedstat"), "9000 900000000000000 8\n").unwrap();
        let [shares, waits] = look().await;
        // 2 + ⌈19 × 262142 / 9999⌉ = 501 shares have a weight of 20.
        let expected = if machine.version_1 { 512 } else { 501 };
        assert_eq!(shares, Some(Level::whole(expected)), "{kernel}");
        assert!(waits.unwrap() > Level::ZERO, "{kernel}");
        assert_eq!(look().await[1], Some(Level::ZERO), "{kernel}: it has not waited since");
        let usage = unasked(&local, &held).await;
        assert_eq!((usage.shares, usage.waits), (None, None), "{kernel}: nobody asks");
    }
}

#[tokio::test]
async fn how_long_a_quota_holds_a_container_back_is_measured_between_two_looks() {
    for kernel in KERNELS {
        let machine = Machine::of(kernel);
        let local = machine.local();
        let [held, _] = pods();
        let asked = metrics(&["container_cpu_throttled_time"]);
        let look = async || {
            let usage =
                local.measure(&Ask { now: Timestamp::UNIX_EPOCH, metrics: &asked, pods: &[&held] }).await;
            value(&usage, "container_cpu_throttled_time")
        };
        assert_eq!(look().await, None, "{kernel}: a counter looked at once");
        assert_eq!(look().await, Some(Level::ZERO), "{kernel}: it was not held back since");
        let file = machine.quota_file("aa01").with_file_name("cpu.stat");
        let name = if machine.version_1 { "throttled_time " } else { "throttled_usec " };
        let text = fs::read_to_string(&file).unwrap();
        let grown = text.replace(name, &format!("{name}9"));
        fs::write(&file, &grown).unwrap();
        assert!(look().await.unwrap() > Level::ZERO, "{kernel}");
        fs::write(&file, &text).unwrap();
        assert_eq!(look().await, None, "{kernel}: it went backwards");
        fs::write(&file, grown.replace("nr_throttled", "nr_other")).unwrap();
        assert_eq!(look().await, None, "{kernel}: the controller is not on");
        assert_eq!(unasked(&local, &held).await.throttled, None, "{kernel}: nobody asks");
    }
}

/// A container, where no rule is about its figures.
async fn unasked(local: &Local, pod: &Pod) -> loadline_services::agent::host::ContainerUsage {
    look(local, &[pod]).await.pods[&pod.uid].containers["main"]
}
