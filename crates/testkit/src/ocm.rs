//! How does a test get Open Cluster Management's placement controller, to stand ours beside it?
//!
//! A real kube-apiserver is the hub: it gets the custom resources as they are in the pinned module. What the controller
//! decides depends on what it decided before, so a comparison changes the fleet while no [`Controller`] runs, starts
//! one, waits until it has nothing more to do ([`Controller::settle`]), and reads what it wrote.

use crate::ControlPlane;
use crate::control_plane::{Error, demand};
use crate::parts::{self, OCM};
use crate::running::{PATIENCE, Running};
use crate::sources;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// The API group of all kinds.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// The controller's row in the table of parts.
const ROW: &str = "ocm-placement";

/// The module that holds the definitions.
const DEFINITIONS: &str = "open-cluster-management.io/api";

/// Where the controller thinks it lives, and where marks are left.
const NAMESPACE: &str = "open-cluster-management-hub";

/// Every kind the controller reads or writes: its version, and whether it is in namespaces. Those that others are made
/// from come last.
const KINDS: [(&str, &str, bool); 6] = [
    ("placements", "v1beta1", true),
    ("placementdecisions", "v1beta1", true),
    ("addonplacementscores", "v1alpha1", true),
    ("managedclustersetbindings", "v1beta2", true),
    ("managedclustersets", "v1beta2", false),
    ("managedclusters", "v1", false),
];

/// The path of a list: of all objects of that plural, or of those in a namespace.
///
/// # Panics
/// When there is no such kind.
#[must_use]
pub fn path(plural: &str, namespace: Option<&str>) -> String {
    let kind = KINDS.iter().find(|(known, ..)| *known == plural).expect("a kind of this group");
    let within = namespace.map(|name| format!("namespaces/{name}/")).unwrap_or_default();
    format!("/apis/{GROUP}/{}/{within}{plural}", kind.1)
}

/// A control plane for a test with the controller: none means "return", and the reason has been printed.
///
/// # Panics
/// As [`crate::Setup::start_or_skip`].
#[must_use]
pub fn plane_or_skip() -> Option<ControlPlane> {
    parts::find_or_skip(ROW)?;
    ControlPlane::start_or_skip()
}

/// The folder of Open Cluster Management's own solutions, in Go's module cache. None means that its programs are missing, and
/// that has been printed.
///
/// # Errors
/// When Go cannot say where the module's files are.
///
/// # Panics
/// As [`parts::find_or_skip`].
#[must_use]
pub fn solutions_or_skip() -> Option<Result<PathBuf, Error>> {
    parts::find_or_skip(ROW)?;
    Some(sources::folder(&OCM, OCM.upstream).map(|folder| folder.join("solutions")))
}

/// A control plane that the placement controller can work on.
#[derive(Clone, Copy, Debug)]
pub struct Ocm<'a> {
    plane: &'a ControlPlane,
}

impl<'a> Ocm<'a> {
    /// Adds what the controller reads and writes.
    ///
    /// # Errors
    /// When Go cannot say where the module's files are, or the API server does not take them.
    pub fn install(plane: &'a ControlPlane) -> Result<Self, Error> {
        let folder = sources::folder(&OCM, DEFINITIONS)?.join("cluster");
        let mut all = Vec::new();
        for version in ["v1", "v1alpha1", "v1beta1", "v1beta2"] {
            all.extend(definitions(&folder.join(version)).map_err(Error::io("read the definitions"))?);
        }
        Self::define(plane, all)
    }

    /// The same with other definitions of these kinds, from a folder with a `PLURAL.yaml` for each.
    ///
    /// # Errors
    /// When one is not there, or the API server does not take it.
    pub fn install_from(plane: &'a ControlPlane, folder: &Path) -> Result<Self, Error> {
        let mut all = Vec::new();
        for (plural, ..) in KINDS {
            let text = fs::read_to_string(folder.join(format!("{plural}.yaml")));
            all.push((plural.to_owned(), text.map_err(Error::io("read the definitions"))?));
        }
        Self::define(plane, all)
    }

    fn define(plane: &'a ControlPlane, all: Vec<(String, String)>) -> Result<Self, Error> {
        for (plural, text) in all {
            let name = format!("{plural}.{GROUP}");
            let path = format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}");
            plane.apply(&path, &text)?;
        }
        // A resource is served some time after it was defined, and no event tells when.
        plane.wait("kube-apiserver", || {
            KINDS.iter().all(|(plural, ..)| {
                plane.request("GET", &path(plural, None), None).is_ok_and(|reply| reply.status == 200)
            })
        })?;
        let ocm = Self { plane };
        ocm.namespace(NAMESPACE)?;
        Ok(ocm)
    }

    /// The API server behind it.
    #[must_use]
    pub fn plane(&self) -> &'a ControlPlane {
        self.plane
    }

    /// Makes a namespace.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn namespace(&self, name: &str) -> Result<(), Error> {
        self.plane.create("/api/v1/namespaces", &json!({"metadata": {"name": name}})).map(drop)
    }

    /// Makes an object, with its status if it has one. It is of the kind that `plural` names.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn create(&self, plural: &str, object: &Value) -> Result<(), Error> {
        let namespace = object.pointer("/metadata/namespace").and_then(Value::as_str);
        let list = path(plural, namespace);
        self.plane.create(&list, object)?;
        if let Some(status) = object.get("status") {
            let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
            self.plane.patch(&format!("{list}/{name}/status"), &json!({ "status": status }))?;
        }
        Ok(())
    }

    /// All objects of a kind, in all namespaces.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub fn all(&self, plural: &str) -> Result<Vec<Value>, Error> {
        self.list(&path(plural, None))
    }

    /// Everything the controller told, of all namespaces, as events of `events.k8s.io`.
    ///
    /// # Errors
    /// When the API server does not answer.
    pub fn events(&self) -> Result<Vec<Value>, Error> {
        self.list("/apis/events.k8s.io/v1/events")
    }

    fn list(self, path: &str) -> Result<Vec<Value>, Error> {
        let list = self.plane.get(path)?;
        // An answer that is no list must not pass for an empty one.
        list["items"].as_array().cloned().ok_or_else(|| Error::Refused {
            method: "GET",
            path: path.to_owned(),
            status: 200,
            answer: list.to_string(),
        })
    }

    /// Forgets what was told.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn clear_events(&self, namespaces: &[&str]) -> Result<(), Error> {
        for namespace in namespaces {
            self.plane.delete(&format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events"))?;
        }
        Ok(())
    }

    /// Removes everything in these namespaces, marks, and all clusters and sets: for another fleet. No controller may run.
    ///
    /// # Errors
    /// When the API server refuses.
    pub fn clear(&self, namespaces: &[&str]) -> Result<(), Error> {
        for cluster in self.all("managedclusters")? {
            if cluster.pointer("/metadata/finalizers").is_some() {
                let name = cluster.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
                let path = format!("{}/{name}", path("managedclusters", None));
                self.plane.patch(&path, &json!({"metadata": {"finalizers": null}}))?;
            }
        }
        for (plural, _, namespaced) in KINDS {
            if namespaced {
                for namespace in namespaces.iter().chain([&NAMESPACE]) {
                    self.plane.delete(&path(plural, Some(namespace)))?;
                }
            } else {
                self.plane.delete(&path(plural, None))?;
            }
        }
        Ok(())
    }

    /// Starts the placement controller. It ends with the value.
    ///
    /// # Errors
    /// When the program is missing or does not start.
    pub fn controller(&self) -> Result<Controller<'a>, Error> {
        self.start(&["--disable-leader-election"])
    }

    /// The same, one of several that stand for a lease; a lease of a killed one is soon over.
    ///
    /// # Errors
    /// As [`Ocm::controller`].
    pub fn elected_controller(&self) -> Result<Controller<'a>, Error> {
        self.start(&[
            "--leader-election-lease-duration=8s",
            "--leader-election-renew-deadline=5s",
            "--leader-election-retry-period=1s",
        ])
    }

    fn start(self, election: &[&str]) -> Result<Controller<'a>, Error> {
        let program = parts::find(ROW)?;
        // The control plane's own certificate, so that whoever trusts one trusts the other.
        let file = |name: &str| self.plane.folder().join(name);
        let serving = json!({
            "apiVersion": "operator.openshift.io/v1alpha1",
            "kind": "GenericOperatorConfig",
            "servingInfo": {"certFile": file("serving.crt"), "keyFile": file("serving.key")},
        });
        let config = file("ocm-placement.json");
        fs::write(&config, serving.to_string()).map_err(Error::io("write the controller's settings"))?;
        let running = Running::start(ROW, &program, |port| {
            let mut flags = vec![
                "controller".into(),
                format!("--kubeconfig={}", self.plane.kubeconfig().display()),
                format!("--config={}", config.display()),
                format!("--listen=127.0.0.1:{port}"),
                format!("--namespace={NAMESPACE}"),
                // By default it writes no more than 50 times a second, and a test would wait for nothing else.
                "--kube-api-qps=2000".into(),
                "--kube-api-burst=2000".into(),
            ];
            flags.extend(election.iter().map(|&flag| flag.to_owned()));
            flags
        })?;
        Ok(Controller { plane: self.plane, running })
    }
}

/// A running placement controller.
#[derive(Debug)]
pub struct Controller<'a> {
    plane: &'a ControlPlane,
    running: Running,
}

impl Controller<'_> {
    /// Waits until everything that was asked of it is decided.
    ///
    /// It takes one placement after the other, in the order in which it hears of them. So a placement made now, one
    /// that matches nothing, has its turn after all others; and a second one after those the first turn made due again.
    ///
    /// # Errors
    /// When the API server refuses, or the controller ends or says nothing for minutes.
    pub fn settle(&self) -> Result<(), Error> {
        self.mark()?;
        self.mark()
    }

    fn mark(&self) -> Result<(), Error> {
        static MARKS: AtomicU64 = AtomicU64::new(0);
        let name = format!("mark-{}", MARKS.fetch_add(1, Ordering::Relaxed));
        let list = path("placements", Some(NAMESPACE));
        let mark = json!({"apiVersion": format!("{GROUP}/v1beta1"), "kind": "Placement",
            "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {}});
        self.plane.create(&list, &mark)?;
        let watch = format!("{list}?watch=1&fieldSelector=metadata.name%3D{name}");
        let events = self.plane.watch(&watch, PATIENCE).map_err(Error::io("watch a placement"))?;
        for event in events {
            match event {
                Ok(event) if event.pointer("/object/status/conditions").is_some() => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::TimedOut => break,
                Err(error) => return Err(Error::io("watch a placement")(error)),
            }
        }
        Err(self.running.failure(format!("has not decided about {NAMESPACE}/{name}")))
    }

    /// What it would make of a placement now: the clusters each filter leaves, and the points each prioritizer gives.
    /// It takes all clusters for candidates, whatever sets they are in.
    ///
    /// # Errors
    /// When it does not answer, or with an error.
    pub fn tables(&self, namespace: &str, name: &str) -> Result<Value, Error> {
        let path = format!("/debug/placements/{namespace}/{name}");
        demand("GET", &path, self.plane.client().send(self.running.port(), "GET", &path, None))
    }

    /// The process behind it.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }
}

/// The definitions in a folder, by plural: the file `…_PLURAL.crd.yaml` holds one.
fn definitions(folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".crd.yaml"));
        if let Some((_, plural)) = name.and_then(|name| name.rsplit_once('_')) {
            all.push((plural.to_owned(), fs::read_to_string(&path)?));
        }
    }
    all.sort();
    Ok(all)
}
