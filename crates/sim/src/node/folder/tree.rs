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
use std::collections::{BTreeMap, HashMap};
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
    slices: BTreeMap<&'static str, Cpu>,
    /// By uid.
    pods: BTreeMap<Arc<str>, PodFolder>,
}

#[derive(Debug)]
struct PodFolder {
    pod: Arc<Pod>,
    path: PathBuf,
    cpu: Cpu,
    containers: Vec<ContainerFolder>,
}

#[derive(Debug)]
struct ContainerFolder {
    id: String,
    name: String,
    path: PathBuf,
    cpu: Cpu,
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

/// The files of a cgroup that has done nothing yet.
fn cgroup(max: String, memory: Memory) -> Vec<(&'static str, String)> {
    vec![
        ("cgroup.controllers", CONTROLLERS.to_owned()),
        ("cpu.stat", Cpu::default().stat()),
        ("cpu.max", max),
        ("memory.current", memory.current()),
        ("memory.stat", memory.stat()),
    ]
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
            slices: [KUBEPODS, BURSTABLE, BEST_EFFORT].map(|path| (path, Cpu::default())).into(),
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
        for slice in tree.slices.keys() {
            let files = cgroup(text::cpu_max(CpuQuota::Unlimited), Memory::default());
            all.extend(files.into_iter().map(|(name, text)| (format!("{slice}/{name}"), text)));
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
                let path = container.path.join("cpu.max");
                let found = fs::read_to_string(self.files.path(&path))?;
                if found.trim_end() == container.max.trim_end() {
                    container.odd = None;
                } else if let Some(quota) = text::quota(&found) {
                    self.quotas.set(uid, &container.name, quota);
                    // Shown as the kernel would by whoever writes next, if it is not.
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
        self.gauges_due = if are_gauges_due { GAUGES_EVERY } else { self.gauges_due - passed };
        let mut memory = BTreeMap::<&str, Memory>::new();
        let mut held_milli = 0;
        for (object, figures) in pods {
            let Some(pod) = self.pods.get_mut(&figures.uid) else { continue };
            pod.pod = Arc::clone(object);
            let used_milli = figures.containers.values().map(|used| used.cpu_milli).sum();
            held_milli += figures.held_milli.values().sum::<i64>();
            let rate = Rate { used_milli, ..Rate::default() };
            let (of_class, _) = slice(object.class);
            for path in if of_class == KUBEPODS { vec![KUBEPODS] } else { vec![KUBEPODS, of_class] } {
                self.slices.entry(path).or_default().pass(rate, passed);
            }
            pod.tick(&self.files, &self.quotas, figures, rate, passed)?;
            if are_gauges_due {
                let used = pod.remember(&self.files, figures)?;
                memory.entry(KUBEPODS).or_default().add(used);
                if of_class != KUBEPODS {
                    memory.entry(of_class).or_default().add(used);
                }
            }
        }

        let used_milli = node.used.cpu_milli;
        self.cpu.pass(Rate { used_milli, ..Rate::default() }, passed);
        self.load.pass(used_milli.saturating_add(node.short_milli), passed);
        self.pressure.pass(used_milli, node.short_milli.saturating_add(held_milli), passed);
        self.files.write("proc/stat", &self.stat())?;
        self.files.write(Path::new(CGROUP).join("cpu.stat"), &self.cpu.top_stat())?;
        for (path, cpu) in &self.slices {
            self.files.write(Path::new(path).join("cpu.stat"), &cpu.stat())?;
        }
        if are_gauges_due {
            for path in self.slices.keys() {
                write_memory(&self.files, Path::new(path), memory.get(path).copied().unwrap_or_default())?;
            }
            let cached = memory.get(KUBEPODS).map_or(0, |memory| memory.cached);
            let memory = Memory { cached, ..Memory::of(node.used.memory_bytes) };
            for (path, text) in self.gauges(memory) {
                self.files.write(path, &text)?;
            }
        }
        Ok(())
    }

    /// Folders for pods that have come, none for those that have gone.
    fn come_and_go(&mut self, pods: &[(Arc<Pod>, &PodFigures)]) -> io::Result<()> {
        let here: HashMap<&str, ()> = pods.iter().map(|(_, figures)| (&*figures.uid, ())).collect();
        let gone: Vec<Arc<str>> =
            self.pods.keys().filter(|uid| !here.contains_key(&***uid)).cloned().collect();
        for uid in gone {
            if let Some(pod) = self.pods.get(&uid) {
                self.files.remove(&pod.path)?;
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
        let mut memory = Memory::of(SANDBOX_BYTES);
        let scope = |id: &str| format!("cri-containerd-{id}.scope");
        let mut inside: Vec<(String, String)> = Vec::new();
        let mut add = |id: &str, files: Vec<(&str, String)>| {
            inside.extend(files.into_iter().map(|(name, text)| (format!("{}/{name}", scope(id)), text)));
        };
        add(&bare_id(uid, SANDBOX), cgroup(text::cpu_max(CpuQuota::Unlimited), memory));
        let mut containers = Vec::new();
        for (name, used) in &figures.containers {
            let (id, spec) = (bare_id(uid, name), spec(pod, name));
            let quota = spec.map_or(CpuQuota::Unlimited, |spec| quotas.get(uid, spec));
            let asked =
                spec.and_then(|spec| spec.resources.requests.get("cpu")).map_or(0, Quantity::milli_value);
            let most = spec.and_then(|spec| spec.resources.limits.get("memory")).map(Quantity::value);
            let max = text::cpu_max(quota);
            let used = Memory::of(used.memory_bytes);
            memory.add(used);
            let mut files = cgroup(max.clone(), used);
            files.push(("cpu.weight", text::cpu_weight(asked)));
            files.push(("memory.max", most.map_or("max\n".to_owned(), |most| format!("{most}\n"))));
            add(&id, files);
            let path = path.join(scope(&id));
            containers.push(ContainerFolder {
                id,
                name: name.clone(),
                path,
                cpu: Cpu::default(),
                max,
                odd: None,
            });
        }
        let mut all = cgroup(text::cpu_max(CpuQuota::Unlimited), memory);
        all.extend(inside.iter().map(|(path, text)| (path.as_str(), text.clone())));
        files.add(&path, &all)?;
        Ok(Self { pod: Arc::clone(pod), path, cpu: Cpu::default(), containers })
    }

    fn tick(
        &mut self,
        files: &Files,
        quotas: &Quotas,
        figures: &PodFigures,
        rate: Rate,
        passed: Duration,
    ) -> io::Result<()> {
        for container in &mut self.containers {
            let quota = spec(&self.pod, &container.name).map(|spec| quotas.get(&figures.uid, spec));
            let quota = quota.unwrap_or(CpuQuota::Unlimited);
            let used_milli = figures.containers.get(&container.name).map_or(0, |used| used.cpu_milli);
            let held_milli = figures.held_milli.get(&container.name).copied().unwrap_or(0);
            let is_limited = matches!(quota, CpuQuota::Us(_));
            container.cpu.pass(Rate { used_milli, held_milli, is_limited }, passed);
            files.write(container.path.join("cpu.stat"), &container.cpu.stat())?;
            container.show(files, quota)?;
        }
        self.cpu.pass(rate, passed);
        files.write(self.path.join("cpu.stat"), &self.cpu.stat())
    }

    /// Writes what is in memory, and returns all of it.
    fn remember(&self, files: &Files, figures: &PodFigures) -> io::Result<Memory> {
        let mut all = Memory::of(SANDBOX_BYTES);
        for container in &self.containers {
            let used = figures.containers.get(&container.name).map_or(0, |used| used.memory_bytes);
            write_memory(files, &container.path, Memory::of(used))?;
            all.add(Memory::of(used));
        }
        write_memory(files, &self.path, all)?;
        Ok(all)
    }
}

impl ContainerFolder {
    /// Lets `cpu.max` say what it is held to.
    fn show(&mut self, files: &Files, quota: CpuQuota) -> io::Result<()> {
        let max = text::cpu_max(quota);
        if max.trim_end() != self.max.trim_end() {
            files.write(self.path.join("cpu.max"), &max)?;
            self.max = max;
        }
        Ok(())
    }
}

fn spec<'a>(pod: &'a Pod, name: &str) -> Option<&'a Container> {
    pod.containers.iter().chain(&pod.init_containers).find(|container| container.name == name)
}

fn write_memory(files: &Files, cgroup: &Path, memory: Memory) -> io::Result<()> {
    files.write(cgroup.join("memory.current"), &memory.current())?;
    files.write(cgroup.join("memory.stat"), &memory.stat())
}
