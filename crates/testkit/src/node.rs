//! How does a test get a real node, on which pods really run and use what they use?
//!
//! A kubelet and a containerd on this machine, for one control plane. They and everything they start live in namespaces
//! of their own: processes, so that the end of the first is the end of all, in whatever way it comes; mounts, so that
//! none is left and no path that kubelet and containerd have built in is one of the machine's; and the network, so that
//! nodes may use the same addresses. Their pods are in cgroups below one of the node's own ([`RealNode::cgroup`]), since
//! several nodes on one machine otherwise take each other's pods for leftovers.
//!
//! What follows from that: a pod's address is not reachable from outside unless the node is [joined](RealNode::start_joined),
//! `kubectl exec` is not served, and each node measures the whole machine.

mod containerd;
mod image;
mod kubelet;
mod link;
mod metrics_server;
mod root;

pub use image::IMAGE;
pub(crate) use link::Addresses;
pub use metrics_server::{MetricsServer, Usage};
pub use root::NodeRoot;

use crate::ControlPlane;
use crate::control_plane::{Error, or_skip};
use crate::guard::Guard;
use crate::parts;
use crate::running::{self, with_free_ports};
use link::Link;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

/// What a node is made of.
const PARTS: &[&str] =
    &["kubelet", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "ptp", "workload"];

/// What every node here is called: its servers are asked by that name, and it must lead to this machine.
const NAME: &str = "localhost";

/// A node that runs pods on this machine. Dropping it ends them all and removes their cgroups.
#[derive(Debug)]
pub struct RealNode<'a> {
    // Declared, and so dropped, before the folder they write to. With containerd everything ends.
    kubelet: Guard,
    containerd: Guard,
    _link: Option<Link>,
    plane: &'a ControlPlane,
    cgroup: String,
    folder: TempDir,
}

impl<'a> RealNode<'a> {
    /// A node for a test: none means "return", and the reason has been printed.
    ///
    /// # Panics
    /// When the parts are there and do not start, or are missing though `LOADLINE_REQUIRE_REAL=1`.
    #[must_use]
    pub fn start_or_skip(plane: &'a ControlPlane) -> Option<Self> {
        or_skip(Self::start(plane))
    }

    /// Starts it and waits until the API server has it as ready.
    ///
    /// # Errors
    /// When a part is missing, we are not root, or a server does not get ready; the message shows the end of its log.
    pub fn start(plane: &'a ControlPlane) -> Result<Self, Error> {
        parts::find_all(PARTS)?;
        if !is_root() {
            return Err(Error::Machine("the rights of root"));
        }
        with_free_ports(|| Self::try_start(plane, false))
    }

    /// The same, and its pods reach the API server, at [`ControlPlane::address_for_pods`], and kubelet reaches them: probes
    /// work, and so does whatever acts on the cluster from within.
    ///
    /// # Errors
    /// As [`RealNode::start`].
    pub fn start_joined(plane: &'a ControlPlane) -> Result<Self, Error> {
        parts::find_all(&[PARTS, &["ip"]].concat())?;
        if !is_root() {
            return Err(Error::Machine("the rights of root"));
        }
        with_free_ports(|| Self::try_start(plane, true))
    }

    /// [`RealNode::start_joined`] for a test: none means "return", and the reason has been printed.
    ///
    /// # Panics
    /// As [`RealNode::start_or_skip`].
    #[must_use]
    pub fn start_joined_or_skip(plane: &'a ControlPlane) -> Option<Self> {
        or_skip(Self::start_joined(plane))
    }

    fn try_start(plane: &'a ControlPlane, joined: bool) -> Result<Self, Error> {
        static NODES: AtomicU32 = AtomicU32::new(0);
        let cgroup = format!("loadline-{}-{}", process::id(), NODES.fetch_add(1, Ordering::Relaxed));
        let folder = tempfile::Builder::new().prefix("loadline-").tempdir();
        let folder = folder.map_err(Error::io("make a temporary folder"))?;
        let containerd = containerd::start(folder.path(), &cgroup, Addresses::of(plane.port()))?;
        let link = if joined {
            let first = containerd::first_process(&containerd);
            let gone = || Error::io("find containerd's process")(io::Error::from(io::ErrorKind::NotFound));
            Some(Link::make(plane.port(), first.ok_or_else(gone)?)?)
        } else {
            None
        };
        image::import(folder.path())?;
        let kubelet = kubelet::start(plane, folder.path(), &cgroup, &containerd)?;
        let node = Self { kubelet, containerd, _link: link, plane, cgroup, folder };
        running::wait(&node.kubelet, || node.is_ready())?;
        Ok(node)
    }

    fn is_ready(&self) -> bool {
        let node = self.plane.get(&format!("/api/v1/nodes/{NAME}")).unwrap_or_default();
        let conditions = node.pointer("/status/conditions").and_then(Value::as_array);
        conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
    }

    /// What the node is called.
    #[must_use]
    pub fn name(&self) -> &'static str {
        NAME
    }

    /// The cgroup below which all its pods are: a name in the top folder of every hierarchy.
    #[must_use]
    pub fn cgroup(&self) -> &str {
        &self.cgroup
    }

    /// Where containerd answers, by the container runtime interface.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        containerd::socket(self.folder.path())
    }

    /// Makes an image known to it, from an archive as `ctr images import` takes it.
    ///
    /// # Errors
    /// When it is none.
    pub fn import(&self, archive: &Path) -> Result<(), Error> {
        image::import_archive(self.folder.path(), archive)
    }

    /// The logs of kubelet and of containerd.
    #[must_use]
    pub fn logs(&self) -> [PathBuf; 2] {
        [self.kubelet.log(), self.containerd.log()]
    }

    /// The process whose end is the end of everything on this node, once it is known.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        containerd::first_process(&self.containerd)
    }

    /// A pod in the default namespace that is bound to this node and runs what its image is for: `pause`,
    /// `burn MILLICORES` or `allocate MIB`.
    #[must_use]
    pub fn pod(&self, name: &str, args: &[&str]) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {
            "nodeName": NAME, "restartPolicy": "Never",
            "containers": [{"name": "workload", "image": IMAGE, "imagePullPolicy": "Never", "args": args}],
        }})
    }

    /// Makes such a pod and waits until it runs.
    ///
    /// # Errors
    /// When the API server refuses it or it does not run; the message shows the end of kubelet's log.
    pub fn run(&self, name: &str, args: &[&str]) -> Result<(), Error> {
        self.plane.create("/api/v1/namespaces/default/pods", &self.pod(name, args))?;
        let path = format!("/api/v1/namespaces/default/pods/{name}");
        running::wait(&self.kubelet, || {
            self.plane.get(&path).is_ok_and(|pod| pod["status"]["phase"] == "Running")
        })
    }

    /// Waits until `done`, which something on this node brings about.
    ///
    /// # Errors
    /// When it does not come, or kubelet ends; the message shows the end of kubelet's log.
    pub fn wait_until(&self, done: impl Fn() -> bool) -> Result<(), Error> {
        running::wait(&self.kubelet, done)
    }
}

/// Who we are is whose our entry in /proc is.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|entry| entry.uid() == 0)
}

/// Writes settings, which for every program here are JSON or text.
fn write(path: &Path, text: &str) -> Result<(), Error> {
    fs::write(path, text).map_err(Error::io("write a node's settings"))
}
