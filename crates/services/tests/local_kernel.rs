//! A machine looked into through the files of its real kernel: those of cgroups made for it, which come and go. Needs root.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a helper that fails fails the test")]

use jiff::Timestamp;
use loadline_core::object::Key;
use loadline_core::qos::metric::Catalogue;
use loadline_core::qos::{Class, Container, CpuQuota, Level, Pod};
use loadline_services::agent::Host as _;
use loadline_services::agent::host::{Ask, PodUsage};
use loadline_services::node::local::{Actuator, Local, Options};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Generous: a busy machine must not fail a test.
const PATIENCE: Duration = Duration::from_mins(2);
const CGROUPS: &str = "/sys/fs/cgroup";
const UID: &str = "11111111-0000-4000-8000-000000000001";
const ID: &str = "aa01";

/// cgroups of one version, with one pod. They go with the value.
struct Tree {
    /// What takes the place of `/`.
    root: TempDir,
    /// Not on the way to any other cgroup of this machine.
    name: String,
    /// Where it is, in each hierarchy that counts; the first one has the counters.
    tops: Vec<PathBuf>,
}

impl Tree {
    /// One for each version this machine has.
    fn all() -> Vec<Self> {
        let top = Path::new(CGROUPS);
        let mut all = Vec::new();
        if top.join("cpuacct/cpuacct.usage").exists() {
            all.push(Self::at("v1", top, &["cpuacct", "cpu"]));
        }
        let unified = [top.to_owned(), top.join("unified")];
        let unified = unified.iter().find(|top| top.join("cgroup.controllers").exists());
        all.extend(unified.map(|top| Self::at("v2", top, &[""])));
        all
    }

    fn at(version: &str, top: &Path, controllers: &[&str]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("sys/fs")).unwrap();
        symlink(top, root.path().join("sys/fs/cgroup")).unwrap();
        symlink("/proc", root.path().join("proc")).unwrap();
        let name = format!("loadline-test-{version}-{}", std::process::id());
        let tops = controllers.iter().map(|one| top.join(one).join(&name)).collect();
        Self { root, name, tops }
    }

    /// The folders of the pod, the outermost first, in one hierarchy.
    fn folders(top: &Path) -> [PathBuf; 5] {
        let pod = top.join(format!("kubepods/besteffort/pod{UID}"));
        [top.to_owned(), top.join("kubepods"), top.join("kubepods/besteffort"), pod.clone(), pod.join(ID)]
    }

    /// Makes what is not there.
    fn make(&self) -> std::io::Result<()> {
        for top in &self.tops {
            for folder in Self::folders(top) {
                if !folder.exists() {
                    // Without, and where the machine has it elsewhere, there are no quotas.
                    let _ = fs::write(folder.parent().unwrap().join("cgroup.subtree_control"), "+cpu");
                    fs::create_dir(&folder)?;
                }
            }
        }
        Ok(())
    }

    /// Removes the pod with its container.
    fn remove_pod(&self) {
        for top in &self.tops {
            for folder in Self::folders(top).into_iter().skip(3).rev() {
                until("nobody is in it any more", || fs::remove_dir(&folder).is_ok());
            }
        }
    }

    fn container(&self, hierarchy: usize) -> PathBuf {
        Self::folders(&self.tops[hierarchy])[4].clone()
    }

    /// What the container has used so far, as the kernel counts.
    fn used(&self) -> u64 {
        let folder = self.container(0);
        let one = fs::read_to_string(folder.join("cpuacct.usage"));
        one.or_else(|_| fs::read_to_string(folder.join("cpu.stat")))
            .unwrap()
            .split_ascii_whitespace()
            .find_map(|word| word.parse().ok())
            .unwrap()
    }

    /// Runs something in the container until it has used more than that.
    fn burn(&self, more_than: u64) {
        let busy = Busy::start();
        fs::write(self.container(0).join("cgroup.procs"), busy.0.id().to_string()).unwrap();
        until("it runs", || self.used() > more_than);
    }

    /// The file of its quota and what makes it a fifth of a CPU; none where version 2 does not have that controller.
    fn quota(&self) -> Option<(PathBuf, &'static str)> {
        let all = self.tops.iter().map(|top| Self::folders(top)[4].clone());
        let mut files = all.flat_map(|folder| {
            [(folder.join("cpu.cfs_quota_us"), "20000"), (folder.join("cpu.max"), "20000 100000")]
        });
        files.find(|(file, _)| file.exists())
    }

    /// Files of these cgroups that this process has open.
    fn open_files(&self) -> usize {
        let links =
            fs::read_dir("/proc/self/fd").unwrap().filter_map(|entry| entry.ok()?.path().read_link().ok());
        links.filter(|target| target.to_string_lossy().contains(&self.name)).count()
    }

    fn local(&self) -> Local {
        Local::new(Options {
            node: "n1".into(),
            root: self.root.path().to_owned(),
            cgroup_root: self.name.clone(),
            interfaces: Vec::new(),
            count_iowait: false,
            longest: PATIENCE,
            actuator: Actuator::Cgroup,
        })
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        for top in &self.tops {
            for folder in Self::folders(top).iter().rev() {
                let _ = fs::remove_dir(folder);
            }
        }
    }
}

/// A process that is never idle.
struct Busy(Child);

impl Busy {
    fn start() -> Self {
        Self(Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < PATIENCE, "waited too long until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn pod() -> Pod {
    Pod {
        key: Key::new("default", "a"),
        uid: UID.into(),
        class: Class::BestEffort,
        containers: vec![Container { name: "main".into(), id: Some(ID.into()), ..Container::default() }],
        ..Pod::default()
    }
}

async fn look(local: &Local) -> PodUsage {
    let metrics = [Catalogue::default().find("cpu_total_usage").unwrap().clone()];
    let pod = pod();
    let mut usage = local.measure(&Ask { now: Timestamp::now(), metrics: &metrics, pods: &[&pod] }).await;
    assert_eq!(local.problem(), None);
    usage.pods.remove(&pod.uid).unwrap()
}

#[tokio::test]
async fn files_that_stay_open_say_what_is_so_now_and_go_with_their_cgroup() {
    for tree in Tree::all() {
        if let Err(error) = tree.make() {
            return loadline_testkit::parts::skip(&format!("cgroups cannot be made: {error}"));
        }
        let local = tree.local();
        assert_eq!(look(&local).await.cpu, None, "a counter looked at once");
        assert_eq!(look(&local).await.cpu, Some(Level::ZERO), "nobody is in it");
        let open = tree.open_files();
        assert!(open > 0, "{}: none is kept", tree.name);
        tree.burn(0);
        assert!(look(&local).await.cpu.unwrap() > Level::ZERO, "{}", tree.name);
        assert_eq!(tree.open_files(), open, "{}: and none is kept twice", tree.name);
        if let Some((file, fifth)) = tree.quota() {
            assert_eq!(look(&local).await.containers["main"].quota, CpuQuota::Unlimited);
            fs::write(file, fifth).unwrap();
            assert_eq!(look(&local).await.containers["main"].quota, CpuQuota::Us(20_000));
        }

        let used = tree.used();
        tree.remove_pod();
        let gone = look(&local).await;
        let known =
            gone.containers.values().filter(|one| one.cpu.is_some() || one.quota != CpuQuota::Unknown);
        assert_eq!((gone.cpu, known.count()), (None, 0), "{}: what is gone is not idle", tree.name);
        assert_eq!(tree.open_files(), 0, "{}", tree.name);

        // Another one takes its place between two looks, and uses more than the one before had.
        tree.make().unwrap();
        look(&local).await;
        tree.remove_pod();
        tree.make().unwrap();
        tree.burn(used);
        let another = look(&local).await;
        assert_eq!(another.cpu, None, "{}: it is not compared with the one before", tree.name);
        if let Some(container) = another.containers.get("main") {
            assert_eq!((container.cpu, container.quota), (None, CpuQuota::Unlimited), "{}", tree.name);
        }
        assert!(look(&local).await.cpu.is_some(), "{}: but with itself", tree.name);
    }
}
