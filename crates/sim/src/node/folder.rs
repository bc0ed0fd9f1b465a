//! How can a simulated node be looked into? As a real one: by the files its kernel would show, and by its runtime's socket.
//!
//! ```text
//! FOLDER/NODE/proc/{stat,meminfo,loadavg,pressure/{cpu,memory,io}}
//! FOLDER/NODE/sys/fs/cgroup/kubepods.slice/…/cri-containerd-ID.scope/{cpu.stat,cpu.max,memory.current,memory.stat,…}
//! FOLDER/NODE/cri.sock
//! ```
//!
//! cgroups are those of version 2, named as systemd has them. Counters go on with what the simulation says is used, every
//! [`Folders::every`]. A quota counts however it is set: through the socket, or written to `cpu.max`, which must be emptied
//! before or written up to the end of its line, since a plain file keeps what the kernel would not.
//!
//! Files are replaced, never changed: whoever keeps one open keeps the past.

mod files;
mod runtime;
#[cfg(test)]
mod tests;
mod text;
mod tree;

use super::{Figures, Kubelets, NodeFigures, PodFigures};
use crate::cluster::Pod;
use files::Files;
use jiff::Timestamp;
use runtime::Runtime;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::os::unix::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::UnixListener;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::{CancellationToken, DropGuard};
use tree::Tree;

/// Memory that is a file system, where there is one: nothing here is worth a disk.
const IN_MEMORY: &str = "/dev/shm";
/// The socket of the runtime, in the folder of its node.
const SOCKET: &str = "cri.sock";
/// Where files are written before they are moved, beside the folders of nodes.
const UNFINISHED: &str = ".unfinished";

/// Asks for folders, of all nodes of one world: two have nodes of the same names. All is gone when the last clone is.
#[derive(Clone, Debug)]
pub struct Folders {
    top: Arc<TempDir>,
    every: Duration,
}

impl Folders {
    /// Worlds with more nodes have none: a thousand nodes would have tens of thousands of files written each second.
    pub const MOST_NODES: usize = 50;

    /// Counters go on so often. They are that old at most when somebody looks: whoever takes differences should do so far
    /// less often.
    ///
    /// # Errors
    /// When there is no place for temporary files, or one whose name is too long for a socket.
    pub fn new(every: Duration) -> io::Result<Self> {
        let mut builder = tempfile::Builder::new();
        builder.prefix("loadline-");
        let in_memory = builder.tempdir_in(IN_MEMORY);
        let top = Arc::new(in_memory.or_else(|_| builder.tempdir())?);
        SocketAddr::from_pathname(top.path().join("node-00").join(SOCKET))?;
        Ok(Self { top, every })
    }

    /// Time between two ticks of the counters.
    #[must_use]
    pub fn every(&self) -> Duration {
        self.every
    }

    /// Where all of them are.
    #[must_use]
    pub fn top(&self) -> &Path {
        self.top.path()
    }

    /// Where a node of that name has its folder, while it is there.
    #[must_use]
    pub fn of(&self, node: &str) -> NodeFolder {
        NodeFolder(self.top.path().join(node))
    }

    fn unfinished(&self, node: &str) -> PathBuf {
        self.top.path().join(UNFINISHED).join(node)
    }
}

/// What is to be seen of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeFolder(PathBuf);

impl NodeFolder {
    /// What takes the place of `/`.
    #[must_use]
    pub fn root(&self) -> &Path {
        &self.0
    }

    /// What takes the place of `/proc`.
    #[must_use]
    pub fn proc(&self) -> PathBuf {
        self.0.join("proc")
    }

    /// What takes the place of `/sys/fs/cgroup`.
    #[must_use]
    pub fn cgroup(&self) -> PathBuf {
        self.0.join(tree::CGROUP)
    }

    /// Where its container runtime answers.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.0.join(SOCKET)
    }
}

/// Keeps the folders of all nodes.
#[derive(Debug)]
pub(crate) struct Keeper {
    kubelets: Arc<Kubelets>,
    folders: Folders,
    nodes: BTreeMap<String, Kept>,
    servers: JoinSet<()>,
    is_failing: bool,
}

#[derive(Debug)]
struct Kept {
    tree: Arc<Mutex<Tree>>,
    /// Ends its runtime.
    _stop: DropGuard,
}

impl Keeper {
    pub(crate) fn new(kubelets: Arc<Kubelets>, folders: Folders) -> Self {
        Self { kubelets, folders, nodes: BTreeMap::new(), servers: JoinSet::new(), is_failing: false }
    }

    /// Makes every folder there is to be.
    pub(crate) async fn begin(self) -> Option<Self> {
        self.tick_once().await
    }

    /// Keeps all of it going until told to stop.
    pub(crate) async fn run(mut self, stop: CancellationToken) {
        let mut ticks = interval(self.folders.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                _ = ticks.tick() => {}
            }
            let Some(this) = self.tick_once().await else { return };
            self = this;
        }
        self.nodes.clear();
        while self.servers.join_next().await.is_some() {}
    }

    /// Files are written where waiting for them holds up nobody.
    async fn tick_once(mut self) -> Option<Self> {
        let ticked = spawn_blocking(move || {
            let failed = self.tick().err();
            if let (Some(error), false) = (&failed, self.is_failing) {
                tracing::warn!(%error, "folders of simulated nodes are not kept");
            }
            self.is_failing = failed.is_some();
            self
        });
        ticked.await.ok()
    }

    /// What goes wrong with one node does not hold up the others; the first of it is told.
    fn tick(&mut self) -> io::Result<()> {
        let mut told = Ok(());
        // What others wrote counts from now on; then all goes on by what is used now.
        for kept in self.nodes.values() {
            told = told.and(kept.tree.lock().unwrap_or_else(PoisonError::into_inner).adopt());
        }
        let figures = self.kubelets.measure(Timestamp::now(), self.folders.every);
        self.nodes.retain(|name, _| figures.nodes.iter().any(|node| node.name == *name));
        let pods = by_node(&self.kubelets, &figures);
        for node in &figures.nodes {
            let pods = pods.get(node.name.as_str()).map(Vec::as_slice).unwrap_or_default();
            told = told.and(self.tick_node(node, pods));
        }
        while self.servers.try_join_next().is_some() {}
        told
    }

    fn tick_node(&mut self, node: &NodeFigures, pods: &[(Arc<Pod>, &PodFigures)]) -> io::Result<()> {
        if !self.nodes.contains_key(&node.name) {
            let kept = self.add(&node.name)?;
            self.nodes.insert(node.name.clone(), kept);
        }
        let Some(kept) = self.nodes.get(&node.name) else { return Ok(()) };
        kept.tree.lock().unwrap_or_else(PoisonError::into_inner).tick(Instant::now(), node, pods)
    }

    fn add(&mut self, name: &str) -> io::Result<Kept> {
        let unknown = || io::Error::new(io::ErrorKind::NotFound, format!("no node {name}"));
        let shape = self.kubelets.shape(name).ok_or_else(unknown)?;
        let folder = self.folders.of(name);
        let files = Files::new(folder.root().to_owned(), self.folders.unfinished(name))?;
        let now = (Timestamp::now(), Instant::now());
        let tree = Arc::new(Mutex::new(Tree::new(files, shape, self.kubelets.quotas().clone(), now)?));
        let stop = CancellationToken::new();
        let listener = UnixListener::bind(folder.socket())?;
        self.servers.spawn(Runtime::new(tree.clone()).serve(listener, stop.clone()));
        Ok(Kept { tree, _stop: stop.drop_guard() })
    }
}

/// The pods of each node, with what they use.
fn by_node<'a>(
    kubelets: &Kubelets,
    figures: &'a Figures,
) -> HashMap<String, Vec<(Arc<Pod>, &'a PodFigures)>> {
    let mut out = HashMap::<String, Vec<_>>::new();
    for figures in &figures.pods {
        let Some(pod) = kubelets.pod(figures) else { continue };
        if let Some(node) = pod.node.clone() {
            out.entry(node).or_default().push((pod, figures));
        }
    }
    out
}
