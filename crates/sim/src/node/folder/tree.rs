//! What is in the folder of one node? What the simulation says of it, as files; and what others write there counts.

use super::files::Files;
use super::text::{self, CONTROLLERS, Cpu, Load, Memory, Pressure, Rate};
use crate::cluster::{Container, Key, Pod};
use crate::node::life::bare_id;
use crate::node::quota::Quotas;
use crate::node::{NodeFigures, PodFigures, Shape};
use jiff::Timestamp;
use loadline_core::qos::{Class, CpuQuota};
use loadline_core::quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where cgroups are, below the folder of a node.
pub const CGROUP: &str = "sys/fs/cgroup";
/// How often memory and averages are written: they change slowly, and nobody takes differences of them.
const GAUGES_EVERY: Duration = Duration::from_secs(1);
/// The container that holds the namespaces of a pod; no container can be called that.
const SANDBOX: &str = "";
/// What that one uses, once and for all.
const SANDBOX_BYTES: i64 = 256 << 10;

/// The files of one node.
#[derive(Debug)]
pub struct Tree {
    files: Files,
    quotas: Arc<Quotas>,
    cpus: u64,
    memory_bytes: u64,
    /// In seconds since 1970.
    since: i64,
    up: Duration,
    last: Instant,
    gauges_due: Duration,
    cpu: Cpu,
    load: Load,
    pressure: Pressure,
    /// By path: the one of all pods, and those of classes.
    slices: BTreeMap<&'static str, Cgroup>,
    /// By uid.
    pods: BTreeMap<Arc<str>, PodFolder>,
}

/// A folder of counters. Only what has changed is written.
#[derive(Debug)]
struct Cgroup {
    path: PathBuf,
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug)]
struct PodFolder {
    pod: Arc<Pod>,
    cgroup: Cgroup,
    containers: Vec<ContainerFolder>,
}

#[derive(Debug)]
struct ContainerFolder {
    id: String,
    name: String,
    cgroup: Cgroup,
    /// `cpu.max`, as it was when we looked last.
    max: String,
    /// What else was found there and makes no sense. It may be about to.
    odd: Option<String>,
}

/// A container, as its runtime lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub id: String,
    pub sandbox: String,
    pub name: String,
    pub pod: Key,
    pub uid: Arc<str>,
    pub since: Option<Timestamp>,
}

/// The folder of a class, below which its pods are, and how their names begin.
fn slice(class: Class) -> (&'static str, &'static str) {
    match class {
        Class::Guaranteed => (KUBEPODS, "kubepods"),
        Class::Burstable => (BURSTABLE, "kubepods-burstable"),
        Class::BestEffort | Class::Unset => (BEST_EFFORT, "kubepods-besteffort"),
    }
}

const KUBEPODS: &str = "sys/fs/cgroup/kubepods.slice";
const BURSTABLE: &str = "sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice";
const BEST_EFFORT: &str = "sys/fs/cgroup/kubepods.slice/kubepods-besteffort.slice";

impl Cgroup {
    /// One that has done nothing yet.
    fn new(path: impl Into<PathBuf>, memory: Memory) -> Self {
        Self { path: path.into(), cpu: Cpu::default(), memory }
    }

    /// Its files, for who makes it.
    fn files(&self, max: String) -> Vec<(&'static str, String)> {
        vec![
            ("cgroup.controllers", CONTROLLERS.to_owned()),
            ("cpu.stat", self.cpu.stat()),
            ("cpu.max", max),
            ("memory.current", self.memory.current()),
            ("memory.stat", self.memory.stat()),
        ]
    }

    fn pass(&mut self, files: &Files, rate: Rate, passed: Duration) -> io::Result<()> {
        let before = self.cpu;
        self.cpu.pass(rate, passed);
        if self.cpu == before { Ok(()) } else { files.write(self.path.join("cpu.stat"), &self.cpu.stat()) }
    }

    fn hold(&mut self, files: &Files, memory: Memory) -> io::Result<()> {
        if self.memory == memory {
            return Ok(());
        }
        self.memory = memory;
        files.write(self.path.join("memory.current"), &memory.current())?;
        files.write(self.path.join("memory.stat"), &memory.stat())
    }
}

impl Tree {
    /// Makes the folder of a node that has just been switched on and runs nothing yet.
    pub fn new(
        files: Files,
        shape: &Shape,
        quotas: Arc<Quotas>,
        now: (Timestamp, Instant),
    ) -> io::Result<Self> {
        let tree = Self {
            files,
            quotas,
            cpus: shape.cpus.unsigned_abs(),
            memory_bytes: shape.gibibytes.unsigned_abs() << 30,
            since: now.0.as_second(),
            up: Duration::ZERO,
            last: now.1,
            gauges_due: Duration::ZERO,
            cpu: Cpu::default(),
            load: Load::default(),
            pressure: Pressure::default(),
            slices: [KUBEPODS, BURSTABLE, BEST_EFFORT]
                .map(|path| (path, Cgroup::new(path, Memory::default())))
                .into(),
            pods: BTreeMap::new(),
        };
        let mut all = vec![
            (format!("{CGROUP}/cgroup.controllers"), CONTROLLERS.to_owned()),
            (format!("{CGROUP}/cgroup.subtree_control"), CONTROLLERS.to_owned()),
            (format!("{CGROUP}/cpu.stat"), tree.cpu.top_stat()),
            ("proc/stat".to_owned(), tree.stat()),
            ("proc/pressure/memory".to_owned(), Pressure::default().text()),
            ("proc/pressure/io".to_owned(), Pressure::default().text()),
        ];
        all.extend(tree.gauges(Memory::default()).map(|(path, text)| (path.to_owned(), text)));
        for (path, slice) in &tree.slices {
            let files = slice.files(text::cpu_max(CpuQuota::Unlimited)).into_iter();
            all.extend(files.map(|(name, text)| (format!("{path}/{name}"), text)));
        }
        let all: Vec<(&str, String)> = all.iter().map(|(path, text)| (path.as_str(), text.clone())).collect();
        tree.files.add("", &all)?;
        Ok(tree)
    }

    fn stat(&self) -> String {
        text::stat(self.cpus, self.cpu.used_ns, self.up, self.since)
    }

    fn gauges(&self, memory: Memory) -> [(&'static str, String); 3] {
        [
            ("proc/meminfo", memory.meminfo(self.memory_bytes)),
            ("proc/loadavg", self.load.text()),
            ("proc/pressure/cpu", self.pressure.text()),
        ]
    }

    /// Takes over what others have written to `cpu.max`. What the kernel would have refused is undone, but not at once:
    /// whoever writes empties the file first.
    pub fn adopt(&mut self) -> io::Result<()> {
        for (uid, pod) in &mut self.pods {
            for container in &mut pod.containers {
                let path = container.cgroup.path.join("cpu.max");
                let found = fs::read_to_string(self.files.path(&path))?;
                if found.trim_end() == container.max.trim_end() {
                    container.odd = None;
                } else if let Some(quota) = text::quota(&found) {
                    self.quotas.set(uid, &container.name, quota);
                    // If the kernel would show it otherwise, that is written with the next tick.
                    container.max = found;
                    container.odd = None;
                } else if container.odd.as_ref() == Some(&found) {
                    self.files.write(&path, &container.max)?;
                    container.odd = None;
                } else {
                    container.odd = Some(found);
                }
            }
        }
        Ok(())
    }

    /// Time has passed, in which all was used that is said to be.
    pub fn tick(
        &mut self,
        now: Instant,
        node: &NodeFigures,
        pods: &[(Arc<Pod>, &PodFigures)],
    ) -> io::Result<()> {
        let passed = now.saturating_duration_since(self.last);
        self.last = now;
        self.up += passed;
        self.come_and_go(pods)?;

        let are_gauges_due = self.gauges_due <= passed;
        self.gauges_due = if are_gauges_due { GAUGES_EVERY } else { self.gauges_due.saturating_sub(passed) };
        let mut rates: BTreeMap<&str, Rate> =
            self.slices.keys().map(|path| (*path, Rate::default())).collect();
        let mut memory: BTreeMap<&str, Memory> =
            self.slices.keys().map(|path| (*path, Memory::default())).collect();
        let mut held_milli = 0;
        for (object, figures) in pods {
            let Some(pod) = self.pods.get_mut(&figures.uid) else { continue };
            pod.pod = Arc::clone(object);
            pod.tick(&self.files, &self.quotas, figures, passed)?;
            if are_gauges_due {
                pod.hold(&self.files, figures)?;
            }
            let used_milli: i64 = figures.containers.values().map(|used| used.cpu_milli).sum();
            held_milli += figures.held_milli.values().sum::<i64>();
            let (of_class, _) = slice(object.class);
            for path in BTreeSet::from([KUBEPODS, of_class]) {
                rates.entry(path).or_default().used_milli += used_milli;
                memory.entry(path).or_default().add(pod.cgroup.memory);
            }
        }
        for (path, slice) in &mut self.slices {
            slice.pass(&self.files, rates[path], passed)?;
            if are_gauges_due {
                slice.hold(&self.files, memory[path])?;
            }
        }

        let used_milli = node.used.cpu_milli;
        self.cpu.pass(Rate { used_milli, ..Rate::default() }, passed);
        self.load.pass(used_milli.saturating_add(node.short_milli), passed);
        self.pressure.pass(used_milli, node.short_milli.saturating_add(held_milli), passed);
        self.files.write("proc/stat", &self.stat())?;
        self.files.write(Path::new(CGROUP).join("cpu.stat"), &self.cpu.top_stat())?;
        if are_gauges_due {
            let memory = Memory { cached: memory[KUBEPODS].cached, ..Memory::of(node.used.memory_bytes) };
            for (path, text) in self.gauges(memory) {
                self.files.write(path, &text)?;
            }
        }
        Ok(())
    }

    /// Folders for pods that have come, none for those that have gone.
    fn come_and_go(&mut self, pods: &[(Arc<Pod>, &PodFigures)]) -> io::Result<()> {
        let here: HashSet<&str> = pods.iter().map(|(_, figures)| &*figures.uid).collect();
        let gone: Vec<Arc<str>> = self.pods.keys().filter(|uid| !here.contains(&***uid)).cloned().collect();
        for uid in gone {
            if let Some(pod) = self.pods.get(&uid) {
                self.files.remove(&pod.cgroup.path)?;
            }
            self.pods.remove(&uid);
        }
        for (object, figures) in pods {
            if !self.pods.contains_key(&figures.uid) {
                let pod = PodFolder::new(&self.files, &self.quotas, object, figures)?;
                self.pods.insert(figures.uid.clone(), pod);
            }
        }
        Ok(())
    }

    /// Every container that runs.
    pub fn list(&self) -> impl Iterator<Item = Listed> {
        self.pods.iter().flat_map(|(uid, pod)| {
            pod.containers.iter().map(move |container| Listed {
                id: container.id.clone(),
                sandbox: bare_id(uid, SANDBOX),
                name: container.name.clone(),
                pod: pod.pod.meta.id.key.clone(),
                uid: uid.clone(),
                since: pod.pod.started,
            })
        })
    }

    /// Holds a container to a quota, and shows it. None if there is no such container.
    pub fn set_quota(&mut self, id: &str, quota: CpuQuota) -> Option<io::Result<()>> {
        let pods = self.pods.iter_mut();
        let mut found = pods.flat_map(|(uid, pod)| pod.containers.iter_mut().map(move |it| (uid, it)));
        let (uid, container) = found.find(|(_, container)| container.id == id)?;
        self.quotas.set(uid, &container.name, quota);
        Some(container.show(&self.files, quota))
    }
}

impl PodFolder {
    fn new(files: &Files, quotas: &Quotas, pod: &Arc<Pod>, figures: &PodFigures) -> io::Result<Self> {
        let uid = &figures.uid;
        let (slice, prefix) = slice(pod.class);
        let path = PathBuf::from(format!("{slice}/{prefix}-pod{}.slice", uid.replace('-', "_")));
        let scope = |id: &str| format!("cri-containerd-{id}.scope");
        let mut inside: Vec<(String, String)> = Vec::new();
        let mut add = |id: &str, files: Vec<(&str, String)>| {
            inside.extend(files.into_iter().map(|(name, text)| (format!("{}/{name}", scope(id)), text)));
        };
        let unlimited = || text::cpu_max(CpuQuota::Unlimited);
        let sandbox = Cgroup::new("", Memory::of(SANDBOX_BYTES));
        add(&bare_id(uid, SANDBOX), sandbox.files(unlimited()));
        let mut containers = Vec::new();
        for (name, used) in &figures.containers {
            let (id, spec) = (bare_id(uid, name), spec(pod, name));
            let cgroup = Cgroup::new(path.join(scope(&id)), Memory::of(used.memory_bytes));
            let max = text::cpu_max(spec.map_or(CpuQuota::Unlimited, |spec| quotas.get(uid, spec)));
            let asked =
                spec.and_then(|spec| spec.resources.requests.get("cpu")).map_or(0, Quantity::milli_value);
            let most = spec.and_then(|spec| spec.resources.limits.get("memory")).map(Quantity::value);
            let mut files = cgroup.files(max.clone());
            files.push(("cpu.weight", text::cpu_weight(asked)));
            files.push(("memory.max", most.map_or("max\n".to_owned(), |most| format!("{most}\n"))));
            add(&id, files);
            containers.push(ContainerFolder { id, name: name.clone(), cgroup, max, odd: None });
        }
        let cgroup = Cgroup::new(path, memory(figures));
        let mut all = cgroup.files(unlimited());
        all.extend(inside.iter().map(|(path, text)| (path.as_str(), text.clone())));
        files.add(&cgroup.path, &all)?;
        Ok(Self { pod: Arc::clone(pod), cgroup, containers })
    }

    fn tick(
        &mut self,
        files: &Files,
        quotas: &Quotas,
        figures: &PodFigures,
        passed: Duration,
    ) -> io::Result<()> {
        let mut all = Rate::default();
        for container in &mut self.containers {
            let quota = spec(&self.pod, &container.name).map(|spec| quotas.get(&figures.uid, spec));
            let quota = quota.unwrap_or(CpuQuota::Unlimited);
            let used_milli = figures.containers.get(&container.name).map_or(0, |used| used.cpu_milli);
            let held_milli = figures.held_milli.get(&container.name).copied().unwrap_or(0);
            let is_limited = matches!(quota, CpuQuota::Us(_));
            all.used_milli += used_milli;
            container.cgroup.pass(files, Rate { used_milli, held_milli, is_limited }, passed)?;
            container.show(files, quota)?;
        }
        self.cgroup.pass(files, all, passed)
    }

    fn hold(&mut self, files: &Files, figures: &PodFigures) -> io::Result<()> {
        for container in &mut self.containers {
            let used = figures.containers.get(&container.name).map_or(0, |used| used.memory_bytes);
            container.cgroup.hold(files, Memory::of(used))?;
        }
        self.cgroup.hold(files, memory(figures))
    }
}

/// What a pod has in memory: its containers and its sandbox.
fn memory(figures: &PodFigures) -> Memory {
    let mut all = Memory::of(SANDBOX_BYTES);
    for used in figures.containers.values() {
        all.add(Memory::of(used.memory_bytes));
    }
    all
}

impl ContainerFolder {
    /// Lets `cpu.max` say what it is held to.
    fn show(&mut self, files: &Files, quota: CpuQuota) -> io::Result<()> {
        let max = text::cpu_max(quota);
        if max.trim_end() != self.max.trim_end() {
            files.write(self.cgroup.path.join("cpu.max"), &max)?;
            self.max = max;
        }
        Ok(())
    }
}

fn spec<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    pod.containers.iter().chain(&pod.init_containers).find(|container| container.name == name)
}
