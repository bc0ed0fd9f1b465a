//! A folder as somebody sees it who knows nothing but the kernel's formats.

use super::*;
use crate::cluster::{Container, Key, Meta, ObjectMeta};
use crate::node::burn::{USAGE_CPU, USAGE_MEMORY};
use crate::node::quota::Quotas;
use crate::node::usage::Meter;
use crate::node::{Shape, Use};
use loadline_api::cri::v1::runtime_service_server::RuntimeService as _;
use loadline_api::cri::v1::{
    ContainerFilter, ContainerStateValue, LinuxContainerResources, ListContainersRequest,
    UpdateContainerResourcesRequest,
};
use loadline_core::qos::{Class, CpuQuota};
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use tonic::{Code, Request};

const UID: &str = "0b5c8a5e-7c1b-4f0f-9a51-6f1d3c1b2a99";

/// One node, its meter, and time that passes when it is told to.
struct Stage {
    folder: NodeFolder,
    tree: Arc<Mutex<Tree>>,
    meter: Meter,
    shape: Shape,
    pods: Vec<Arc<Pod>>,
    now: Instant,
    _folders: Folders,
}

impl Stage {
    fn new(pods: Vec<Pod>) -> Self {
        let folders = Folders::new(Duration::from_secs(1)).unwrap();
        let folder = folders.of("node-00");
        let files = Files::new(folder.root().to_owned(), folders.unfinished("node-00")).unwrap();
        let (shape, quotas, now) = (Shape::new(0, 1, 1), Arc::<Quotas>::default(), Instant::now());
        let tree = Tree::new(files, &shape, quotas.clone(), (Timestamp::UNIX_EPOCH, now)).unwrap();
        let (tree, meter) = (Arc::new(Mutex::new(tree)), Meter::new(1, 60, quotas));
        let pods = pods.into_iter().map(Arc::new).collect();
        let mut stage = Self { folder, tree, meter, shape, pods, now, _folders: folders };
        stage.pass(Duration::ZERO);
        stage
    }

    /// Some time later. What was used all along is what is said now.
    fn pass(&mut self, time: Duration) -> Figures {
        self.now += time;
        let mut tree = self.tree.lock().unwrap();
        tree.adopt().unwrap();
        let nodes = [(self.shape.name.as_str(), self.shape.cpus * 1000)];
        let (figures, _) = self.meter.read(nodes, &self.pods, (Timestamp::UNIX_EPOCH, time));
        let pods: Vec<_> = self.pods.iter().cloned().zip(&figures.pods).collect();
        tree.tick(self.now, &figures.nodes[0], &pods).unwrap();
        figures
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.folder.root().join(path)).unwrap()
    }

    /// A number of a file with a name and a number on each line.
    fn number(&self, path: &str, name: &str) -> u64 {
        let text = self.read(path);
        let line = text.lines().find(|line| line.split(' ').next() == Some(name));
        line.and_then(|line| line.split_whitespace().nth(1)).unwrap().parse().unwrap()
    }

    /// Busy and all ticks of a line of `/proc/stat`.
    fn ticks(&self, name: &str) -> (u64, u64) {
        let text = self.read("proc/stat");
        let line = text.lines().find(|line| line.split(' ').next() == Some(name)).unwrap();
        let ticks: Vec<u64> = line.split_whitespace().skip(1).map(|word| word.parse().unwrap()).collect();
        assert_eq!(ticks.len(), 10, "{line}");
        (ticks[0], ticks.iter().sum())
    }

    fn runtime(&self) -> Runtime {
        Runtime::new(self.tree.clone())
    }
}

fn pod(uid: &str, class: Class, containers: &[&str], annotations: &[(&str, &str)]) -> Pod {
    let id = Meta { key: Key::new("default", uid), uid: uid.into(), ..Meta::default() };
    let annotations = annotations.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let containers = containers.iter().map(|name| Container { name: (*name).into(), ..Container::default() });
    Pod {
        meta: ObjectMeta { id, annotations, ..ObjectMeta::default() },
        node: Some("node-00".into()),
        class,
        containers: containers.collect(),
        ..Pod::default()
    }
}

/// One container that wants this much.
fn wants(uid: &str, cpu: &str, memory: &str) -> Pod {
    pod(uid, Class::BestEffort, &["main"], &[(USAGE_CPU, cpu), (USAGE_MEMORY, memory)])
}

/// The folder of a container, written out as kubelets and containerd have it.
fn scope(pod: &str, name: &str) -> String {
    let id = super::super::life::bare_id(pod, name);
    format!("{}/cri-containerd-{id}.scope", slice(pod))
}

fn slice(pod: &str) -> String {
    let uid = pod.replace('-', "_");
    format!("sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{uid}.slice")
}

#[test]
fn counters_go_on_by_exactly_what_the_simulation_says_is_used() {
    let mut two = wants(UID, "1500m", "800Mi");
    two.containers.push(Container { name: "side".into(), ..Container::default() });
    let mut stage = Stage::new(vec![two, wants("b", "300m", "100Mi")]);
    let usage = |stage: &Stage, path: &str| stage.number(&format!("{path}/cpu.stat"), "usage_usec");
    let paths = [
        scope(UID, "main"),
        scope(UID, "side"),
        slice(UID),
        scope("b", "main"),
        "sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice".into(),
        "sys/fs/cgroup/kubepods.slice".into(),
        "sys/fs/cgroup".into(),
    ];
    let before: Vec<u64> = paths.iter().map(|path| usage(&stage, path)).collect();
    let (busy, all) = stage.ticks("cpu");
    for milliseconds in [700, 1301] {
        stage.pass(Duration::from_millis(milliseconds));
    }
    // Thousandths of a CPU × 2001 ms are microseconds: 1500 are divided by two, and daemons use 60.
    for ((path, before), (milli, what)) in paths.iter().zip(before).zip([
        (750, "half of 1500"),
        (750, "the other half"),
        (1500, "a pod is its containers"),
        (300, "another pod"),
        (1800, "all pods of the class"),
        (1800, "all pods"),
        (1860, "the node, with its daemons"),
    ]) {
        assert_eq!(usage(&stage, path) - before, milli * 2001, "{what}");
    }
    // 1.86 CPUs for 2.001 s are 372.186 ticks.
    let cpus = stage.shape.cpus.unsigned_abs();
    let (busy_after, all_after) = stage.ticks("cpu");
    assert_eq!(busy_after - busy, 372);
    assert!((all_after - all).abs_diff(200 * cpus) <= 1, "{cpus} CPUs, 2 s, 100 a second");
    let each: u64 = (0..cpus).map(|cpu| stage.ticks(&format!("cpu{cpu}")).0).sum();
    assert!(busy_after - each <= cpus, "each line is rounded: {each}, {busy_after}");
}

#[test]
fn memory_is_what_is_used_and_what_is_cached_beside_it() {
    let mut stage = Stage::new(vec![wants(UID, "1", "800Mi")]);
    let figures = stage.pass(Duration::from_secs(1));
    let Use { memory_bytes, .. } = figures.pods[0].containers["main"];
    for (path, used, why) in [
        (scope(UID, "main"), memory_bytes, "the container"),
        (slice(UID), memory_bytes + (256 << 10), "the pod, with its sandbox"),
    ] {
        let current: i64 = stage.read(&format!("{path}/memory.current")).trim_end().parse().unwrap();
        let inactive = stage.number(&format!("{path}/memory.stat"), "inactive_file");
        assert_eq!(current - i64::try_from(inactive).unwrap(), used, "{why}: the working set");
    }
    let kib = |name: &str| stage.number("proc/meminfo", name);
    assert_eq!(kib("MemTotal:"), stage.shape.gibibytes.unsigned_abs() << 20);
    let used = u64::try_from(figures.nodes[0].used.memory_bytes).unwrap();
    assert_eq!(kib("MemTotal:") - kib("MemAvailable:"), used >> 10);
    assert!(kib("MemFree:") < kib("MemAvailable:"), "what is cached is not free, but can be had");
}

#[tokio::test]
async fn a_quota_counts_whether_asked_for_or_written() {
    let mut stage = Stage::new(vec![wants(UID, "1", "1Mi")]);
    let main = scope(UID, "main");
    let used = |figures: &Figures| figures.pods[0].containers["main"].cpu_milli;
    let max = |stage: &Stage| stage.read(&format!("{main}/cpu.max"));
    assert_eq!((used(&stage.pass(Duration::from_secs(1))), max(&stage)), (1000, "max 100000\n".into()));

    let runtime = stage.runtime();
    let ask = |id: &str, cpu_quota: i64| {
        let linux = Some(LinuxContainerResources { cpu_quota, ..LinuxContainerResources::default() });
        let request = UpdateContainerResourcesRequest { container_id: id.to_owned(), linux };
        let runtime = runtime.clone();
        async move {
            runtime.update_container_resources(Request::new(request)).await.map_err(|status| status.code())
        }
    };
    let id = super::super::life::bare_id(UID, "main");
    ask(&id, 20_000).await.unwrap();
    assert_eq!(max(&stage), "20000 100000\n", "shown before it is answered");
    assert_eq!(used(&stage.pass(Duration::from_secs(1))), 200);
    assert_eq!(stage.number(&format!("{main}/cpu.stat"), "nr_throttled"), 10, "ten periods in a second");
    ask(&id, 0).await.unwrap();
    assert_eq!(max(&stage), "20000 100000\n", "nothing was said of it");
    ask(&id, -1).await.unwrap();
    assert_eq!((used(&stage.pass(Duration::from_secs(1))), max(&stage)), (1000, "max 100000\n".into()));
    for (id, quota, code) in [
        (id.as_str(), 999, Code::InvalidArgument),
        ("0123", 20_000, Code::NotFound),
        ("0123", 0, Code::NotFound),
    ] {
        assert_eq!(ask(id, quota).await.unwrap_err(), code, "{id} {quota}");
    }

    let write = |stage: &Stage, text: &str| {
        fs::write(stage.folder.root().join(&main).join("cpu.max"), text).unwrap();
    };
    for (written, milli, shown, why) in [
        ("30000 100000", 300, "30000 100000", "as it is shown"),
        ("40000", 400, "40000 100000\n", "the period is added"),
        ("25000 50000", 500, "50000 100000\n", "there is one period here"),
        ("max", 1000, "max 100000\n", "lifted"),
    ] {
        write(&stage, written);
        assert_eq!(used(&stage.pass(Duration::from_secs(1))), milli, "{written:?}: {why}");
        assert_eq!(max(&stage), shown, "{written:?}: {why}");
    }
    ask(&id, 20_000).await.unwrap();
    for written in ["", "10", "-1", "quick"] {
        write(&stage, written);
        assert_eq!(used(&stage.pass(Duration::from_secs(1))), 200, "{written:?} is no quota");
        assert_eq!(max(&stage), written, "but might become one");
        stage.pass(Duration::from_secs(1));
        assert_eq!(max(&stage), "20000 100000\n", "{written:?} has not");
    }
}

#[test]
fn what_is_limited_from_the_start_says_so() {
    let mut limited = pod("a", Class::BestEffort, &["main"], &[]);
    let resources = &mut limited.containers[0].resources;
    resources.limits.insert("cpu".into(), "1500m".parse().unwrap());
    resources.limits.insert("memory".into(), "1Gi".parse().unwrap());
    resources.requests.insert("cpu".into(), "500m".parse().unwrap());
    let stage = Stage::new(vec![limited]);
    let read = |name: &str| stage.read(&format!("{}/{name}", scope("a", "main")));
    assert_eq!(read("cpu.max"), "150000 100000\n");
    assert_eq!(read("memory.max"), "1073741824\n");
    // 512 shares: 1 + 510 × 9999 / 262142.
    assert_eq!(read("cpu.weight"), "20\n");
}

#[test]
fn pods_have_folders_by_their_class_as_long_as_they_are_there() {
    let kubepods = "sys/fs/cgroup/kubepods.slice";
    let mut stage = Stage::new(vec![]);
    for (class, path) in [
        (Class::Guaranteed, format!("{kubepods}/kubepods-poda_1.slice")),
        (Class::Burstable, format!("{kubepods}/kubepods-burstable.slice/kubepods-burstable-poda_1.slice")),
        (Class::BestEffort, format!("{kubepods}/kubepods-besteffort.slice/kubepods-besteffort-poda_1.slice")),
    ] {
        stage.pods = vec![Arc::new(pod("a-1", class, &["x", "y"], &[]))];
        stage.pass(Duration::from_secs(1));
        let folder = stage.folder.root().join(path);
        let scopes = |folder: &Path| {
            let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
            names.filter(|name| name.to_string_lossy().ends_with(".scope")).count()
        };
        assert_eq!(scopes(&folder), 3, "{class:?}: two containers and the sandbox");
        let used = |stage: &Stage| stage.number(&format!("{kubepods}/cpu.stat"), "usage_usec");
        let before = used(&stage);
        stage.pods.clear();
        stage.pass(Duration::from_secs(1));
        assert!(!folder.exists(), "{class:?}");
        assert_eq!(used(&stage), before, "what it has used stays used");
    }
    let root = stage.folder.root().to_owned();
    drop(stage);
    assert!(!root.exists());
}

#[tokio::test]
async fn the_runtime_lists_containers_with_the_labels_of_a_kubelet() {
    let stage = Stage::new(vec![
        pod("a", Class::Burstable, &["x", "y"], &[]),
        pod("b", Class::Burstable, &["z"], &[]),
    ]);
    let runtime = stage.runtime();
    let list = |filter: Option<ContainerFilter>| {
        let runtime = runtime.clone();
        async move {
            let answer = runtime.list_containers(Request::new(ListContainersRequest { filter })).await;
            answer.unwrap().into_inner().containers
        }
    };
    let all = list(None).await;
    let names: Vec<&str> = all.iter().map(|it| it.metadata.as_ref().unwrap().name.as_str()).collect();
    assert_eq!(names, ["x", "y", "z"]);
    assert_eq!(all[0].id, super::super::life::bare_id("a", "x"));
    assert_eq!(all[2].labels["io.kubernetes.pod.uid"], "b");
    assert!(all[0].pod_sandbox_id == all[1].pod_sandbox_id && all[0].pod_sandbox_id != all[2].pod_sandbox_id);
    let of = |name: &str, value: &str| [(name.to_owned(), value.to_owned())].into();
    for (filter, want, why) in [
        (ContainerFilter { id: all[1].id.clone(), ..ContainerFilter::default() }, 1, "by id"),
        (
            ContainerFilter { pod_sandbox_id: all[0].pod_sandbox_id.clone(), ..ContainerFilter::default() },
            2,
            "by pod",
        ),
        (
            ContainerFilter {
                label_selector: of("io.kubernetes.container.name", "z"),
                ..ContainerFilter::default()
            },
            1,
            "by label",
        ),
        (
            ContainerFilter { label_selector: of("app", "z"), ..ContainerFilter::default() },
            0,
            "nobody has that label",
        ),
        (
            ContainerFilter { state: Some(ContainerStateValue::default()), ..ContainerFilter::default() },
            0,
            "none was merely created",
        ),
    ] {
        assert_eq!(list(Some(filter)).await.len(), want, "{why}");
    }
}

#[test]
fn nobody_ever_sees_half_of_anything() {
    let mut stage = Stage::new(vec![wants("stays", "1", "800Mi")]);
    let (root, is_over) = (stage.folder.root().to_owned(), AtomicBool::new(false));
    let whole = |path: &Path, lines: usize| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n') && text.lines().count() == lines, "{} is {text:?}", path.display());
    };
    let cpus = usize::try_from(stage.shape.cpus).unwrap();
    let (stays, goes) = (root.join(scope("stays", "main")), root.join(scope("goes", "main")));
    let look = || {
        let mut seen = 0;
        while !is_over.load(Ordering::Relaxed) || seen == 0 {
            whole(&root.join("proc/stat"), cpus + 7);
            whole(&root.join("proc/meminfo"), 7);
            for (name, lines) in [("cpu.stat", 8), ("cpu.max", 1), ("memory.current", 1), ("memory.stat", 8)]
            {
                whole(&stays.join(name), lines);
            }
            // A pod comes with all of its files, or is gone with them.
            match fs::read_to_string(goes.join("cpu.stat")) {
                Ok(text) => assert_eq!(text.lines().count(), 8, "{text:?}"),
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::NotFound),
            }
            seen += 1;
        }
        seen
    };
    thread::scope(|threads| {
        let looking = threads.spawn(look);
        let stays = stage.pods[0].clone();
        for round in 0..400 {
            let goes = (round % 2 == 0).then(|| Arc::new(wants("goes", "1", "1Mi")));
            stage.pods = [stays.clone()].into_iter().chain(goes).collect();
            stage.tree.lock().unwrap().set_quota(
                &super::super::life::bare_id("stays", "main"),
                if round % 3 == 0 { CpuQuota::Unlimited } else { CpuQuota::Us(20_000) },
            );
            stage.pass(Duration::from_secs(1));
        }
        is_over.store(true, Ordering::Relaxed);
        assert!(looking.join().unwrap() > 0);
    });
}
