//! What does everything on this machine use, and how are its containers held back? The kernel's files say it.
//!
//! A look reads a handful of small files: those of the metrics that rules are about, and per pod and container what it has
//! used so far and what it is held to. What is counted is told by two looks, so the first one tells little. What cannot be
//! read, or is no measurement, is missing; nothing is made up for it.

use super::cri::{self, Runtime};
use super::files::Files;
use super::kept::Kept;
use super::pods::{self, Memory, Wanted};
use crate::agent::Host;
use crate::agent::host::{Ask, ContainerUsage, Error, Located, PodUsage, Reclaimed, Usage, Whole};
use jiff::Timestamp;
use loadline_core::qos::cgroup::{self, Figure, Layout, Version};
use loadline_core::qos::collect::{Look, Machine};
use loadline_core::qos::metric::{Metric, disk};
use loadline_core::qos::{self, CpuQuota, Level, Series};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Where all cgroups are, below the root of the file system.
const CGROUPS: &str = "sys/fs/cgroup";

/// No longer is waited for page cache: a cycle goes on.
const RECLAIM_DEADLINE: Duration = Duration::from_secs(2);

/// How quotas are written.
#[derive(Clone, Debug)]
pub enum Actuator {
    /// By the container runtime, which then knows of it, and so does systemd.
    Runtime(Box<Runtime>),
    /// Straight into the kernel's file.
    Cgroup,
}

/// What is to be looked at.
#[derive(Clone, Debug)]
pub struct Options {
    /// The node this is.
    pub node: Arc<str>,
    /// Where its file system is: `/`, or where a container sees it.
    pub root: PathBuf,
    /// The cgroup below which the kubelet has its own, as in its `--cgroup-root`.
    pub cgroup_root: String,
    /// Network interfaces that count; none: all but the loopback.
    pub interfaces: Vec<Arc<str>>,
    /// Is waiting for disks busy, as crane's agent has it?
    pub count_iowait: bool,
    /// An earlier look is compared with as long as it is not older than that: what was used in the last hour is not what is used now.
    pub longest: Duration,
    pub actuator: Actuator,
}

/// This machine.
pub struct Local {
    options: Options,
    files: Files,
    seen: Mutex<Seen>,
}

impl fmt::Debug for Local {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Local").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What earlier looks found.
#[derive(Debug)]
struct Seen {
    began: Instant,
    machine: Machine,
    layout: Option<Layout>,
    /// Was any pod found there?
    has_pods: bool,
    /// What the files of metrics said.
    texts: HashMap<&'static str, (String, Duration)>,
    /// The files of cgroups that are read in every look.
    kept: Kept,
    /// What pods and containers had used, by the folder of their cgroup.
    counters: HashMap<String, (u64, Duration)>,
    /// What files said that only one metric is about, by group and metric.
    others: HashMap<(String, &'static str), (String, Duration)>,
    /// Where containers are, by their id.
    folders: HashMap<Arc<str>, String>,
    /// What containers were held to, by their id: what the file said, and what that means.
    quotas: HashMap<Arc<str>, (String, cgroup::Quota)>,
    /// How long the processes of containers had waited for a CPU, by the container's id and theirs.
    waits: HashMap<Arc<str>, (BTreeMap<u32, u64>, Duration)>,
    /// For how long the quotas of containers had held them back, by the container's id.
    throttled: HashMap<Arc<str>, (u64, Duration)>,
    /// The lock on the folder of all pods.
    claim: Option<File>,
    problem: Option<String>,
}

impl Local {
    /// Looks at nothing yet.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let files = Files::at(&options.root);
        let machine = Machine {
            interfaces: options.interfaces.clone(),
            count_iowait: options.count_iowait,
            ..Machine::default()
        };
        let seen = Seen {
            began: Instant::now(),
            machine,
            layout: None,
            has_pods: false,
            texts: HashMap::new(),
            kept: Kept::new(),
            counters: HashMap::new(),
            others: HashMap::new(),
            folders: HashMap::new(),
            quotas: HashMap::new(),
            waits: HashMap::new(),
            throttled: HashMap::new(),
            claim: None,
            problem: None,
        };
        Self { options, files, seen: Mutex::new(seen) }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the kubelet has its cgroups here; found out, and again when they are gone.
    fn layout(&self, seen: &mut Seen) -> Option<Layout> {
        let is_there = |layout: &Layout| self.is_there(layout, &layout.kubepods());
        if seen.layout.as_ref().is_some_and(is_there) {
            return seen.layout.clone();
        }
        let found = self.candidates().into_iter().find(is_there);
        if found.is_some() && seen.layout != found {
            tracing::info!(layout = ?found, "cgroups found");
            seen.has_pods = false;
        }
        seen.layout.clone_from(&found);
        found
    }

    /// The same for who knows which pods run here: one who changed the driver may have left the folder of the other behind, which is empty.
    /// Says whether any of those that run is found, or ever was.
    fn layout_of(&self, seen: &mut Seen, pods: &[&qos::Pod]) -> Option<(Layout, bool)> {
        let layout = self.layout(seen)?;
        let runs = |pod: &&&qos::Pod| !pod.ended && pod.containers.iter().any(|one| one.id.is_some());
        let mut running = pods.iter().filter(runs).peekable();
        if seen.has_pods || running.peek().is_none() {
            return Some((layout, true));
        }
        let running: Vec<&qos::Pod> = running.copied().collect();
        let has_one = |layout: &Layout| {
            let group = |pod: &&qos::Pod| layout.pod(pod.class, uid(pod));
            running.iter().filter_map(group).any(|group| self.is_there(layout, &group))
        };
        if has_one(&layout) {
            seen.has_pods = true;
            return Some((layout, true));
        }
        let Some(other) = self.candidates().into_iter().find(has_one) else { return Some((layout, false)) };
        tracing::info!(layout = ?other, "cgroups of pods found");
        (seen.layout, seen.has_pods) = (Some(other.clone()), true);
        seen.folders.clear();
        Some((other, true))
    }

    /// What the kubelet's cgroups may look like, the likeliest first.
    fn candidates(&self) -> Vec<Layout> {
        let unified = self.files.exists(&format!("{CGROUPS}/cgroup.controllers"));
        let version = if unified { Version::V2 } else { Version::V1 };
        Layout::candidates(version, &self.options.cgroup_root)
    }

    /// Is there such a group?
    fn is_there(&self, layout: &Layout, group: &str) -> bool {
        let files = layout.files(group, Figure::CpuUsage);
        let mut folders = files.iter().filter_map(|file| Some(file.rsplit_once('/')?.0));
        folders.any(|folder| self.files.exists(&format!("{CGROUPS}/{folder}")))
    }

    /// What the file of a figure of a group says. What the group had used is forgotten if this is another one of its name.
    fn read(&self, seen: &mut Seen, layout: &Layout, group: &str, figure: Figure) -> Option<String> {
        let open = || {
            let files = layout.files(group, figure);
            files.iter().find_map(|file| self.files.open(&format!("{CGROUPS}/{file}")))
        };
        let said = seen.kept.read(group, figure, open)?;
        if said.is_another {
            seen.counters.remove(group);
            seen.others.retain(|(of, _), _| of != group);
        }
        Some(said.text)
    }

    /// What the files of these metrics say.
    fn series(&self, seen: &mut Seen, metrics: &[Arc<Metric>], now: Timestamp) -> Vec<Series> {
        let mut texts: HashMap<&'static str, (String, Duration)> = HashMap::new();
        let mut found = Vec::new();
        for metric in metrics {
            let Some(collector) = metric.collect else { continue };
            if !texts.contains_key(collector.file) {
                let at = seen.began.elapsed();
                if let Some(text) = self.files.read(collector.file) {
                    texts.insert(collector.file, (text, at));
                }
            }
            let Some((text, at)) = texts.get(collector.file) else { continue };
            let before = seen.texts.get(collector.file);
            let before = before.filter(|(_, before)| at.saturating_sub(*before) <= self.options.longest);
            let before = before.map(|(text, at)| Look { text, at: *at });
            for one in (collector.read)(&seen.machine, Look { text, at: *at }, before) {
                found.push(Series {
                    name: metric.name.into(),
                    labels: one.labels,
                    value: one.value,
                    at: now,
                });
            }
        }
        seen.texts = texts;
        found
    }

    /// What a group of processes uses of CPU, in millicores.
    fn cpu(
        &self,
        seen: &mut Seen,
        layout: &Layout,
        group: &str,
        counters: &mut HashMap<String, (u64, Duration)>,
    ) -> Option<Level> {
        let text = self.read(seen, layout, group, Figure::CpuUsage)?;
        let now = (cgroup::cpu_usage_ns(layout.version, &text)?, seen.began.elapsed());
        counters.insert(group.to_owned(), now);
        let before = seen.counters.get(group)?;
        if now.1.saturating_sub(before.1) > self.options.longest {
            return None;
        }
        cgroup::cpu_rate(seen.machine.cores, *before, now)
    }

    /// What a pod uses of a metric that says how to find out.
    fn other(&self, seen: &mut Seen, layout: &Layout, group: &str, metric: &Metric) -> Option<Level> {
        let of = metric.of_pods?;
        let (text, at) = (self.read(seen, layout, group, of.figure)?, seen.began.elapsed());
        let before = seen.others.insert((group.to_owned(), metric.name), (text.clone(), at));
        let before = before.filter(|(_, before)| at.saturating_sub(*before) <= self.options.longest);
        let before = before.as_ref().map(|(text, at)| Look { text, at: *at });
        (of.read)(layout.version, Look { text: &text, at }, before)
    }

    /// What a container is held to. The period, which has a file of its own in version 1, is read again when the quota is another: nobody
    /// changes the one without the other.
    fn quota(&self, seen: &mut Seen, layout: &Layout, group: &str, id: &Arc<str>) -> Option<cgroup::Quota> {
        let text = self.read(seen, layout, group, Figure::Quota)?;
        if let Some((before, quota)) = seen.quotas.get(id)
            && *before == text
        {
            return Some(*quota);
        }
        let period = match layout.version {
            Version::V1 => Some(self.read(seen, layout, group, Figure::Period)?),
            Version::V2 => None,
        };
        let quota = cgroup::quota(layout.version, &text, period.as_deref())?;
        seen.quotas.insert(id.clone(), (text, quota));
        Some(quota)
    }

    fn shares(&self, seen: &mut Seen, layout: &Layout, group: &str) -> Option<Level> {
        let shares = cgroup::shares(layout.version, &self.read(seen, layout, group, Figure::Shares)?)?;
        i64::try_from(shares).ok().map(Level::whole)
    }

    /// How long the processes of a container wait for a CPU, in microseconds a second.
    fn waits(&self, seen: &mut Seen, layout: &Layout, group: &str, id: &Arc<str>) -> Option<Level> {
        let text = self.read(seen, layout, group, Figure::Processes)?;
        let waited = |pid: u32| {
            let text = self.files.read(&format!("proc/{pid}/schedstat"))?;
            Some((pid, cgroup::run_queue_wait_ns(&text)?))
        };
        let all: BTreeMap<u32, u64> = text.lines().filter_map(|pid| waited(pid.parse().ok()?)).collect();
        if all.is_empty() {
            // They are out of sight: in another namespace of processes, of which version 1 does not even list them, or in groups below.
            return None;
        }
        let now = (all, seen.began.elapsed());
        let before = seen.waits.insert(id.clone(), now.clone())?;
        let is_recent = now.1.saturating_sub(before.1) <= self.options.longest;
        cgroup::wait_rate((&before.0, before.1), (&now.0, now.1)).filter(|_| is_recent)
    }

    /// For how long its quota held a container back, in microseconds a second.
    fn throttled(&self, seen: &mut Seen, layout: &Layout, group: &str, id: &Arc<str>) -> Option<Level> {
        let text = self.read(seen, layout, group, Figure::CpuStat)?;
        let now = (cgroup::throttled(layout.version, &text)?.time_ns, seen.began.elapsed());
        let before = seen.throttled.insert(id.clone(), now)?;
        let is_recent = now.1.saturating_sub(before.1) <= self.options.longest;
        cgroup::throttled_rate(before, now).filter(|_| is_recent)
    }

    /// Where a container is; looked for once.
    fn folder(&self, seen: &mut Seen, layout: &Layout, pod: &str, id: &Arc<str>) -> Option<String> {
        if let Some(known) = seen.folders.get(id) {
            return Some(known.clone());
        }
        let is_there = |folder: &String| {
            let files = layout.files(folder, Figure::Quota);
            files.iter().any(|file| self.files.exists(&format!("{CGROUPS}/{file}")))
        };
        let found = layout.container(pod, id).into_iter().find(is_there)?;
        seen.folders.insert(id.clone(), found.clone());
        Some(found)
    }

    /// What a group uses of memory, and what it uses it for.
    fn memory(&self, seen: &mut Seen, layout: &Layout, group: &str) -> Option<(String, String)> {
        let stat = self.read(seen, layout, group, Figure::MemoryStat)?;
        Some((self.read(seen, layout, group, Figure::MemoryUsed)?, stat))
    }

    fn pod(
        &self,
        seen: &mut Seen,
        layout: &Layout,
        pod: &qos::Pod,
        (wanted, metrics): (Wanted, &[Arc<Metric>]),
        counters: &mut HashMap<String, (u64, Duration)>,
    ) -> Option<PodUsage> {
        let group = layout.pod(pod.class, uid(pod))?;
        let bytes = |bytes: u64| i64::try_from(bytes).ok().map(Level::whole);
        let mut usage = PodUsage { cpu: self.cpu(seen, layout, &group, counters), ..PodUsage::default() };
        if wanted.memory >= Memory::OfPods
            && let Some((used, stat)) = self.memory(seen, layout, &group)
        {
            usage.memory = cgroup::working_set(layout.version, &used, &stat).and_then(bytes);
            usage.unreclaimable = cgroup::unreclaimable(layout.version, &stat).and_then(bytes);
            usage.reclaimable = cgroup::reclaimable(layout.version, &stat).and_then(bytes);
        }
        for metric in metrics.iter().filter(|metric| metric.of_pods.is_some()) {
            if let Some(level) = self.other(seen, layout, &group, metric) {
                usage.other.insert(metric.name.into(), level);
            }
        }
        for container in &pod.containers {
            let Some(id) = &container.id else { continue };
            let Some(folder) = self.folder(seen, layout, &group, id) else { continue };
            let cpu = self.cpu(seen, layout, &folder, counters);
            let held = self.quota(seen, layout, &folder, id);
            if cpu.is_none() && held.is_none() {
                // It is gone, or began again elsewhere.
                seen.folders.remove(id);
            }
            let mut one = ContainerUsage { cpu, ..ContainerUsage::default() };
            if let Some(held) = held {
                (one.quota, one.period_us) = (held.quota, held.period_us);
            }
            if wanted.memory == Memory::OfContainers
                && let Some((used, stat)) = self.memory(seen, layout, &folder)
            {
                one.memory = cgroup::working_set(layout.version, &used, &stat).and_then(bytes);
            }
            if wanted.shares {
                one.shares = self.shares(seen, layout, &folder);
            }
            if wanted.waits {
                one.waits = self.waits(seen, layout, &folder, id);
            }
            if wanted.throttled {
                one.throttled = self.throttled(seen, layout, &folder, id);
            }
            usage.containers.insert(container.name.clone(), one);
        }
        Some(usage)
    }

    fn look(&self, ask: &Ask<'_>) -> Usage {
        let mut seen = self.seen();
        let seen = &mut *seen;
        // They come and go; how many there were says more than a file that cannot be read.
        seen.machine.cores = Some(self.files.cores()).filter(|all| *all > 0).unwrap_or(seen.machine.cores);
        if ask.metrics.iter().any(|metric| metric.collect.is_some_and(|from| from.file == disk::FILE)) {
            // They come and go.
            seen.machine.disks = self.files.disks();
        }
        let mut usage = Usage::default();
        usage.nodes.insert(self.options.node.clone(), self.series(seen, ask.metrics, ask.now));
        let Some((layout, any)) = self.layout_of(seen, ask.pods) else {
            seen.kept.end_look();
            seen.problem = Some(format!(
                "no cgroup of the kubelet is found below {}/{CGROUPS}/{}",
                self.options.root.display(),
                self.options.cgroup_root
            ));
            return usage;
        };
        seen.problem =
            (!any).then(|| format!("none of the pods that run here has a cgroup in {}", layout.kubepods()));
        let wanted = Wanted::by(ask);
        let mut counters = HashMap::with_capacity(seen.counters.len());
        for pod in ask.pods.iter().filter(|pod| !pod.ended) {
            if let Some(used) = self.pod(seen, &layout, pod, (wanted, ask.metrics), &mut counters) {
                usage.pods.insert(pod.uid.clone(), used);
            }
        }
        let here: std::collections::HashSet<&Arc<str>> =
            ask.pods.iter().flat_map(|pod| &pod.containers).filter_map(|one| one.id.as_ref()).collect();
        seen.folders.retain(|id, _| here.contains(id));
        seen.quotas.retain(|id, _| here.contains(id));
        seen.waits.retain(|id, _| wanted.waits && here.contains(id));
        seen.throttled.retain(|id, _| wanted.throttled && here.contains(id));
        seen.others.retain(|(group, _), _| counters.contains_key(group));
        seen.counters = counters;
        seen.kept.end_look();
        let of_pods = pods::series(ask, &usage);
        usage.nodes.entry(self.options.node.clone()).or_default().extend(of_pods);
        usage
    }

    /// The file by which page cache of a pod is asked back. Only version 2 has one that takes an amount: the other gives everything
    /// back, what is in use included, which is more than may be asked for.
    fn reclaim_file(&self, pod: &qos::Pod) -> Result<String, Error> {
        let unwritten = |why: &str| Error::Unwritten(why.to_owned());
        let mut seen = self.seen();
        let layout =
            self.layout(&mut seen).ok_or_else(|| unwritten("the kubelet's cgroups are not there"))?;
        if layout.version == Version::V1 {
            return Err(unwritten("cgroups of version 1 take no amount: they would give back everything"));
        }
        let group = layout.pod(pod.class, uid(pod)).ok_or_else(|| unwritten("its cgroup is not known"))?;
        let file = format!("{CGROUPS}/{}", layout.file(&group, Figure::Reclaim));
        let is_there = self.files.exists(&file);
        is_there
            .then_some(file)
            .ok_or_else(|| unwritten("its cgroup is gone, or this kernel is older than 5.19"))
    }

    /// Writes a quota into the file of its cgroup.
    fn write(&self, of: &Located<'_>, id: &Arc<str>, quota: CpuQuota) -> Result<(), Error> {
        let unwritten = |why: &str| Error::Unwritten(why.to_owned());
        let mut seen = self.seen();
        let seen = &mut *seen;
        let layout = self.layout(seen).ok_or_else(|| unwritten("the kubelet's cgroups are not there"))?;
        let group =
            layout.pod(of.pod.class, uid(of.pod)).ok_or_else(|| unwritten("its cgroup is not known"))?;
        let folder =
            self.folder(seen, &layout, &group, id).ok_or_else(|| unwritten("its cgroup is not there"))?;
        let text = cgroup::quota_text(layout.version, quota, of.container.period_us)
            .ok_or_else(|| unwritten("the kernel takes no such quota"))?;
        let files = layout.files(&folder, Figure::Quota).into_iter().map(|file| format!("{CGROUPS}/{file}"));
        let file = files.into_iter().find(|file| self.files.exists(file));
        let file = file.ok_or_else(|| unwritten("its cgroup is gone"))?;
        self.files.write(&file, &text).map_err(|error| Error::Unwritten(error.to_string()))
    }
}

/// What a pod is called in the name of its cgroup.
fn uid(pod: &qos::Pod) -> &str {
    cgroup::folder_uid(pod.origin, &pod.uid, pod.config_hash.as_deref())
}

#[tonic::async_trait]
impl Host for Local {
    async fn measure(&self, ask: &Ask<'_>) -> Usage {
        self.look(ask)
    }

    async fn set_quota(&self, of: &Located<'_>, quota: CpuQuota) -> Result<(), Error> {
        let id = of.container.id.as_ref();
        let id = id.ok_or_else(|| Error::Unwritten("the container has no id yet".to_owned()))?;
        match &self.options.actuator {
            Actuator::Cgroup => self.write(of, id, quota),
            Actuator::Runtime(runtime) => runtime.set_quota(id, quota).await.map_err(|error| match error {
                cri::Error::Away { .. } | cri::Error::Late { .. } => Error::Unsure(error.to_string()),
                _ => Error::Unwritten(error.to_string()),
            }),
        }
    }

    async fn reclaim(&self, of: &Whole<'_>, bytes: i64) -> Result<Reclaimed, Error> {
        let (file, files) = (self.reclaim_file(of.pod)?, self.files.clone());
        // The kernel works on it before it answers.
        let asked = tokio::task::spawn_blocking(move || files.write(&file, &format!("{bytes}\n")));
        match tokio::time::timeout(RECLAIM_DEADLINE, asked).await {
            Ok(Ok(Ok(()))) => Ok(Reclaimed::Enough),
            Ok(Ok(Err(error))) if error.kind() == ErrorKind::WouldBlock => Ok(Reclaimed::Less),
            Ok(Ok(Err(error))) => Err(Error::Unwritten(error.to_string())),
            Ok(Err(error)) => Err(Error::Unwritten(error.to_string())),
            Err(_) => Err(Error::Unsure("the kernel is still at it".to_owned())),
        }
    }

    /// The lock is on the folder of all pods, which is what agents would fight over: every agent of the node sees the same, wherever its
    /// state is kept and however the node's files are mounted. While there is none there is nothing to fight over.
    fn claim(&self) -> bool {
        let mut seen = self.seen();
        let seen = &mut *seen;
        let Some(layout) = self.layout(seen) else { return true };
        let files = layout.files(&layout.kubepods(), Figure::Quota).into_iter();
        let mut folders = files.filter_map(|file| Some(format!("{CGROUPS}/{}/", file.rsplit_once('/')?.0)));
        let Some(folder) = folders.find(|folder| self.files.exists(folder)) else { return true };
        if seen.claim.as_ref().is_some_and(|lock| self.files.is_same(&folder, lock)) {
            return true;
        }
        match self.files.lock(&folder) {
            Ok(Some(lock)) => {
                seen.claim = Some(lock);
                true
            }
            Ok(None) => false,
            Err(error) => {
                // Where it cannot be done, as on some file systems, the lock of the journal is what there is.
                tracing::warn!(folder, %error, "node not locked");
                true
            }
        }
    }

    fn problem(&self) -> Option<String> {
        self.seen().problem.clone()
    }
}
